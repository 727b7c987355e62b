"""Tensors and lifetimes that PyTorch's programs have, beyond plain ones: parts of one another, other modes, groups that end early."""

import gc
import os
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist

import hips_torch  # noqa: F401  registers the backend
from ranks import run


def output_is_a_part_of_the_input(rank, size):
    n = 5
    expected = [sum(i + 10 * r for r in range(size)) for i in range(n * size)][rank * n:(rank + 1) * n]
    for form in ("tensor", "list"):
        whole = torch.arange(n * size, dtype=torch.float32) + 10 * rank
        before = whole.clone()
        chunks = list(whole.chunk(size))
        if form == "tensor":
            dist.reduce_scatter_tensor(chunks[rank], whole)
        else:
            dist.reduce_scatter(chunks[rank], chunks)
        assert chunks[rank].tolist() == expected, (form, chunks[rank], expected)
        for other in range(size):
            if other != rank:
                assert torch.equal(chunks[other], before.chunk(size)[other]), (form, "another rank's part has changed")


def inference_mode(rank, size):
    for i in range(60):
        with torch.inference_mode():
            apart = [torch.zeros(7) for _ in range(size)]
            work = dist.all_gather(apart, torch.full((7,), float(rank)), async_op=i % 2 == 0)
            if work:
                if i % 4 == 0:
                    while not work.is_completed():
                        pass
                work.wait()
            assert all(torch.equal(one, torch.full((7,), float(r))) for r, one in enumerate(apart)), apart
            rows = torch.zeros(4, 6).t()
            if rank == 0:
                rows += 3
            dist.broadcast(rows, 0)
            assert torch.equal(rows, torch.full((6, 4), 3.0))
            peer = torch.zeros(3, 5).t()
            if rank == 0:
                dist.send(torch.ones(5, 3), 1)
            elif rank == 1:
                dist.recv(peer, 0)
                assert torch.equal(peer, torch.ones(5, 3))


def parameters(rank, size):
    for i in range(20):
        weight = torch.nn.Parameter(torch.full((2, 3, 4, 4), float(rank)).to(memory_format=torch.channels_last))
        assert not weight.is_contiguous()
        work = dist.broadcast(weight, size - 1, async_op=True)
        if i % 2 == 0:
            work.get_future().wait()
        work.wait()
        assert weight.is_leaf and weight.grad_fn is None and (weight == size - 1).all()
        apart = [torch.zeros(3, requires_grad=True) for _ in range(size)]
        dist.all_gather(apart, torch.full((3,), float(rank), requires_grad=True))
        assert all(one.is_leaf and (one == r).all() for r, one in enumerate(apart))


def lazy_views(rank, size):
    z = torch.complex(torch.arange(4.0) + rank, torch.arange(4.0) - 7)
    # PyTorch itself refuses them in other calls.
    if rank == 0:
        dist.send(z.conj(), 1)
    elif rank == 1:
        received = torch.zeros(4, dtype=torch.complex64)
        dist.recv(received, 0)
        assert torch.equal(received, torch.complex(torch.arange(4.0), 7 - torch.arange(4.0))), received


def last_reference_in_a_callback(rank, size):
    for _ in range(10):
        group = dist.new_group()
        held = [group]
        work = dist.all_reduce(torch.ones(1000), group=group, async_op=True)
        dist.destroy_process_group(group)
        future = work.get_future().then(lambda done, held=held: held.clear())
        del group, held, work
        gc.collect()
        future.wait()
        del future
    dist.barrier()


def left_after_the_last_call(rank, size):
    # Every call has ended on all ranks when the barrier has; nobody has waited for some.
    for _ in range(20):
        group = dist.new_group()
        works = [dist.all_reduce(torch.ones(10), group=group, async_op=True) for _ in range(5)]
        dist.barrier(group)
        dist.destroy_process_group(group)
        del group, works


def parts_of_another_backends_job(rank, size, folder):
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"file://{os.path.join(folder, 'gloo')}", rank=rank, world_size=size)
    pairs = [dist.new_group([first, first + 1], backend="hips") for first in range(0, size, 2)]
    mine = pairs[rank // 2]
    values = torch.tensor([float(rank)])
    dist.all_reduce(values, group=mine)
    assert values.item() == 4 * (rank // 2) + 1, values
    assert "BCube(2,0)" in hips_torch.describe(mine), hips_torch.describe(mine)
    dist.barrier()


class Tensors(unittest.TestCase):
    def test_the_output_of_a_reduce_scatter_may_be_a_part_of_its_input(self):
        for size in (2, 3):
            run(size, output_is_a_part_of_the_input)

    def test_tensors_of_inference_mode_change_whichever_thread_copies(self):
        run(2, inference_mode)

    def test_parameters_need_not_be_contiguous_and_enter_no_graph(self):
        run(2, parameters)

    def test_lazily_conjugated_tensors_travel_as_their_values(self):
        run(2, lazy_views)


class Groups(unittest.TestCase):
    def test_a_callback_may_drop_the_last_reference_to_its_group(self):
        run(2, last_reference_in_a_callback)

    def test_a_group_is_not_aborted_for_calls_that_have_ended(self):
        run(3, left_after_the_last_call)

    def test_groups_of_a_job_of_another_backend_are_planned_on_their_part_of_the_topology(self):
        with tempfile.TemporaryDirectory() as folder:
            # The topology is the job's; the default group of HiPS has all its ranks.
            run(4, parts_of_another_backends_job, folder, env={"HIPS_TOPO": "bcube:2,1"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
