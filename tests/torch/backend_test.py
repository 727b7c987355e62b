"""PyTorch's backend "hips": collectives against their definition, works and futures, errors, groups."""

import datetime
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
import unittest

import torch
import torch.distributed as dist

import hips_torch
from ranks import raises, run

SEED = int(os.environ.get("HIPS_SEED", random.SystemRandom().randrange(10**9)))
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
ARITHMETIC = (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX)
BITWISE = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


def tensor_of(rng, values, shape, dtype):
    """A tensor of small numbers, which every type holds exactly; it may be a part of another, with gaps."""
    tensor = torch.randint(0, 3, shape, generator=values).to(dtype)
    layout = rng.randrange(3)
    if layout == 1 and len(shape) == 2:
        return tensor.t().contiguous().t()
    if layout == 2:
        return torch.stack((tensor, tensor), -1)[..., 0]
    return tensor


def reduced(tensors, op):
    """What the operation is, by PyTorch's own arithmetic."""
    dtype = tensors[0].dtype
    all_of_them = torch.stack([one.to(torch.float64 if dtype in FLOATS else torch.int64) for one in tensors])
    if op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        result = all_of_them.sum(0)
        if op == dist.ReduceOp.AVG:
            result = result / len(tensors) if dtype in FLOATS else torch.div(result, len(tensors), rounding_mode="trunc")
    elif op == dist.ReduceOp.PRODUCT:
        result = all_of_them.prod(0)
    elif op == dist.ReduceOp.MIN:
        result = all_of_them.amin(0)
    elif op == dist.ReduceOp.MAX:
        result = all_of_them.amax(0)
    else:
        result = all_of_them[0]
        for one in all_of_them[1:]:
            result = result & one if op == dist.ReduceOp.BAND else result | one if op == dist.ReduceOp.BOR else result ^ one
    return result != 0 if dtype == torch.bool else result.to(dtype)


def close(actual, expected, what):
    # An average is rounded once by HiPS, and twice by way of float64 here.
    tolerance = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-6, torch.float64: 1e-15}.get(actual.dtype, 0)
    same = torch.equal(actual, expected) if tolerance == 0 else torch.allclose(actual.double(), expected.double(), rtol=tolerance, atol=0)
    assert same, f"{what}: {actual} instead of {expected}"


class Trial:
    """One random collective, the same on all ranks, checked on each."""

    def __init__(self, rng, seed, rank, size, gloo):
        self.rng, self.rank, self.size, self.gloo = rng, rank, size, gloo
        self.values = torch.Generator().manual_seed(seed * 1000 + rank)
        self.shape = rng.choice([(), (1,), (7,), (0,), (3, 5), (1000,), (257, 33), (70000,)])
        self.dtype = rng.choice(INTEGERS + FLOATS + (torch.bool,))
        self.op = rng.choice(ARITHMETIC + (() if self.dtype in FLOATS else BITWISE))
        if self.dtype == torch.bool and self.op == dist.ReduceOp.AVG:
            self.op = dist.ReduceOp.SUM
        self.root = rng.randrange(size)
        self.is_async = rng.random() < 0.5

    def tensor(self):
        return tensor_of(self.rng, self.values, self.shape, self.dtype)

    def everyones(self, tensor):
        """The tensor of each rank, by another backend."""
        all_of_them = [None] * self.size
        dist.all_gather_object(all_of_them, tensor.clone(), group=self.gloo)
        return all_of_them

    def call(self, function, *arguments, **options):
        work = function(*arguments, async_op=self.is_async, **options)
        if self.is_async:
            work.wait()

    def all_reduce(self):
        tensor = self.tensor()
        expected = reduced(self.everyones(tensor), self.op)
        self.call(dist.all_reduce, tensor, op=self.op)
        close(tensor, expected, self)

    def reduce(self):
        tensor = self.tensor()
        expected = reduced(self.everyones(tensor), self.op)
        self.call(dist.reduce, tensor, dst=self.root, op=self.op)
        if self.rank == self.root:
            close(tensor, expected, self)

    def broadcast(self):
        tensor = self.tensor()
        expected = self.everyones(tensor)[self.root]
        self.call(dist.broadcast, tensor, src=self.root)
        close(tensor, expected, self)

    def all_gather(self):
        tensor = self.tensor()
        expected = self.everyones(tensor)
        outputs = [self.tensor() for _ in range(self.size)]
        if self.rng.random() < 0.5:  # one behind the other in memory
            outputs = list(torch.zeros((self.size, *self.shape), dtype=self.dtype))
        self.call(dist.all_gather, outputs, tensor)
        for actual, wanted in zip(outputs, expected):
            close(actual, wanted, self)

    def all_gather_into_tensor(self):
        tensor = self.tensor()
        expected = torch.stack(self.everyones(tensor))
        output = torch.zeros((self.size, *self.shape), dtype=self.dtype)
        self.call(dist.all_gather_into_tensor, output, tensor)
        close(output, expected, self)

    def reduce_scatter(self):
        inputs = [self.tensor() for _ in range(self.size)]
        expected = reduced([one[self.rank] for one in self.everyones(torch.stack(inputs))], self.op)
        output = self.tensor()
        self.call(dist.reduce_scatter, output, inputs, op=self.op)
        close(output, expected, self)

    def reduce_scatter_tensor(self):
        tensor = torch.stack([self.tensor() for _ in range(self.size)])
        expected = reduced([one[self.rank] for one in self.everyones(tensor)], self.op)
        output = torch.zeros(self.shape, dtype=self.dtype)
        self.call(dist.reduce_scatter_tensor, output, tensor, op=self.op)
        close(output, expected, self)

    def all_reduce_coalesced(self):
        tensors = [self.tensor() for _ in range(3)]
        expected = [reduced(self.everyones(tensor), self.op) for tensor in tensors]
        self.call(dist.all_reduce_coalesced, tensors, op=self.op)
        for actual, wanted in zip(tensors, expected):
            close(actual, wanted, self)

    def all_gather_coalesced(self):
        tensors = [self.tensor() for _ in range(2)]
        expected = [self.everyones(tensor) for tensor in tensors]
        outputs = [[self.tensor() for _ in tensors] for _ in range(self.size)]
        self.call(dist.all_gather_coalesced, outputs, tensors)
        for rank, i in itertools.product(range(self.size), range(2)):
            close(outputs[rank][i], expected[i][rank], self)

    def gather(self):
        tensor = self.tensor()
        expected = self.everyones(tensor)
        outputs = [self.tensor() for _ in range(self.size)]
        is_root = self.rank == self.root
        self.call(dist.gather, tensor, outputs if is_root else None, dst=self.root)
        for actual, wanted in zip(outputs if is_root else (), expected):
            close(actual, wanted, self)

    def scatter(self):
        inputs = [self.tensor() for _ in range(self.size)]
        expected = self.everyones(torch.stack(inputs))[self.root][self.rank]
        output = self.tensor()
        self.call(dist.scatter, output, inputs if self.rank == self.root else None, src=self.root)
        close(output, expected, self)

    def all_to_all(self):
        inputs = [self.tensor() for _ in range(self.size)]
        expected = [one[self.rank] for one in self.everyones(torch.stack(inputs))]
        outputs = [self.tensor() for _ in range(self.size)]
        self.call(dist.all_to_all, outputs, inputs)
        for actual, wanted in zip(outputs, expected):
            close(actual, wanted, self)

    def all_to_all_single(self):
        tensor = torch.stack([self.tensor() for _ in range(self.size)])
        expected = torch.stack([one[self.rank] for one in self.everyones(tensor)])
        output = torch.zeros_like(tensor)
        self.call(dist.all_to_all_single, output, tensor)
        close(output, expected, self)

    def uneven_all_to_all(self):
        # Rank i has rows[i][j] rows for rank j.
        rows = [[self.rng.randrange(4) for _ in range(self.size)] for _ in range(self.size)]
        inputs = [torch.full((number, 5), 10 * self.rank + j).to(self.dtype) for j, number in enumerate(rows[self.rank])]
        expected = [torch.full((rows[i][self.rank], 5), 10 * i + self.rank).to(self.dtype) for i in range(self.size)]
        if self.rng.random() < 0.5:
            outputs = [torch.empty_like(one) for one in expected]
            self.call(dist.all_to_all, outputs, inputs)
            output = torch.cat(outputs)
        else:
            output = torch.empty(sum(map(len, expected)), 5, dtype=self.dtype)
            self.call(dist.all_to_all_single, output, torch.cat(inputs), [len(one) for one in expected], rows[self.rank])
        close(output, torch.cat(expected), self)

    def sparse_all_reduce(self):
        dense = torch.randint(0, 3, (6, 4, 2), generator=self.values).float()
        dense[torch.randint(0, 2, (6, 4), generator=self.values) == 0] = 0
        expected = sum(self.everyones(dense))
        tensor = dense.to_sparse(self.rng.choice((1, 2, 3)))
        self.call(dist.all_reduce, tensor)
        close(tensor.to_dense(), expected, self)

    KINDS = (uneven_all_to_all, sparse_all_reduce, all_reduce, reduce, broadcast, all_gather, all_gather_into_tensor, reduce_scatter, reduce_scatter_tensor,
             all_reduce_coalesced, all_gather_coalesced, gather, scatter, all_to_all, all_to_all_single)

    def __str__(self):
        return f"HIPS_SEED={SEED}, rank {self.rank} of {self.size}, {self.shape}, {self.dtype}, {self.op}, root {self.root}"


def random_collectives(rank, size, seed):
    gloo = dist.new_group(backend="gloo")
    rng = random.Random(seed)
    for i in range(60):
        trial = Trial(rng, seed + i, rank, size, gloo)
        kind = rng.choice(Trial.KINDS)
        kind(trial)


def works(rank, size):
    # Many outstanding, waited for in another order; some by nobody.
    tensors = [torch.full((1 + i * 100,), float(i + rank)) for i in range(40)]
    all_works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i in range(39, 0, -2):
        assert all_works[i].wait()
    while not all(work.is_completed() for work in all_works):
        time.sleep(0.001)
    for i, tensor in enumerate(tensors):
        assert torch.equal(tensor, torch.full_like(tensor, size * i + size * (size - 1) / 2)), i
    assert all(work.is_success() for work in all_works)
    # A chain that runs without anybody waiting, and its value.
    done = threading.Event()
    tensor = torch.ones(5)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    chained = future.then(lambda ended: ended.value()[0] * 2).then(lambda ended: (done.set(), ended.value() + 1)[1])
    assert done.wait(60)
    assert torch.equal(chained.wait(), torch.full((5,), 2.0 * size + 1))
    assert torch.equal(future.value()[0], torch.full((5,), float(size)))
    # The tensors of a work that is dropped live until the call has ended.
    for _ in range(100):
        dist.all_reduce(torch.ones(10000), async_op=True)
    dist.barrier()
    # Two threads wait for one work, and for different ones.
    work, other = dist.all_reduce(torch.ones(100000), async_op=True), dist.all_reduce(torch.ones(3), async_op=True)
    threads = [threading.Thread(target=one.wait) for one in (work, work, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert work.is_completed() and other.is_completed()
    # A wait with a limit: the call goes on.
    if rank == 0:
        late = dist.all_reduce(tensor, async_op=True)
        try:
            late.wait(datetime.timedelta(milliseconds=10))
            raise AssertionError("no error")
        except hips_torch.HipsError as error:
            assert error.code == "timed out" and "10 ms" in str(error), error
        dist.barrier(group=dist.new_group(backend="gloo"))
        late.wait()
    else:
        dist.barrier(group=dist.new_group(backend="gloo"))
        dist.all_reduce(tensor)


def work_after_a_rest(rank, size):
    # The completer's thread sleeps when there was nothing to do. It wakes for a work that this thread has completed by then,
    # because it lets this one go first, and has to wake again for the next.
    os.sched_setaffinity(0, {0})
    for thread in map(int, os.listdir("/proc/self/task")):
        if thread != os.getpid():
            os.sched_setaffinity(thread, {0})
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    for _ in range(3):
        time.sleep(0.3)
        dist.all_reduce(torch.ones(3))
        time.sleep(0.05)
        dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()


def groups(rank, size):
    assert "BCube(2,1)" in hips_torch.describe(), hips_torch.describe()
    column = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
    assert "BCube(2,0)" in hips_torch.describe(column), hips_torch.describe(column)
    apart = dist.new_group([0, 3])
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=column)
    assert tensor.item() == 2 + 2 * (rank % 2)
    if rank in (0, 3):
        dist.all_reduce(tensor, group=apart)
        assert tensor.item() == 6, tensor
        dist.destroy_process_group(apart)
    dist.barrier(group=column)
    try:
        hips_torch.describe(dist.new_group(backend="gloo"))
        raise AssertionError("no error")
    except TypeError as error:
        assert "backend gloo; expected one of backend hips" in str(error), error


def wrong_arguments(rank, size):
    raises(TypeError, "sparse", dist.broadcast, torch.eye(3).to_sparse(), 0)
    raises(ValueError, "with SUM only", dist.all_reduce, torch.eye(3).to_sparse(), op=dist.ReduceOp.MAX)
    raises(ValueError, "rank 1 has a sparse tensor of 2 dimensions with 4 bytes in each value, rank 0 one of 1 with 12", dist.all_reduce,
           torch.eye(3).to_sparse(rank + 1))
    raises(ValueError, "rank 1 has a sparse tensor of another type or other sizes", dist.all_reduce, torch.eye(3 + rank).to_sparse())
    raises(ValueError, "rank 0 sends 4 bytes to rank 1, which expects 8", dist.all_to_all_single, torch.empty(2 + rank), torch.ones(2),
           [1 + rank, 1], [1, 1])
    raises(TypeError, "tensors of ComplexFloat cannot be reduced", dist.reduce, torch.zeros(3, dtype=torch.complex64), 0)
    raises(hips_torch.HipsError, "band does not apply to float32", dist.all_reduce, torch.zeros(3), op=dist.ReduceOp.BAND)
    raises(ValueError, "output of 5 elements; expected 6", dist.all_gather_into_tensor, torch.zeros(5), torch.zeros(3))
    raises(ValueError, "1 tensors in the list; expected 2, one for each rank", dist.all_gather, [torch.zeros(3)], torch.zeros(3))
    # The group goes on.
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.full((3,), float(size)))


def mismatch(rank, size):
    error = raises(hips_torch.HipsError, "", dist.all_reduce, torch.ones(3 + rank))
    assert error.code == "mismatch", (error.code, str(error))
    # It stays failed.
    raises(hips_torch.HipsError, str(error)[:20], dist.all_reduce, torch.ones(3))
    # A rank that ends here by os._exit() is lost to one that has not heard of the mismatch yet.
    store = dist.distributed_c10d._get_default_store()
    store.add("heard", 1)
    while store.add("heard", 0) < size:
        time.sleep(0.01)


def late_rank(rank, size):
    group = dist.new_group(timeout=datetime.timedelta(seconds=4))
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if rank == 1:
        store.wait(["rank 0 has its error", "rank 2 has its error"])
    error = raises(hips_torch.HipsError, "", dist.all_reduce, torch.ones(3), group=group)
    assert error.code == "timed out", (error.code, str(error))
    assert "rank 1" in str(error) and "its timeout of 4 s" in str(error), error
    store.set(f"rank {rank} has its error", "")


def other_size(rank, size):
    os.environ["HIPS_TOPO"] = "bcube:3,1"
    dist.destroy_process_group()
    store = dist.FileStore(os.environ["STORE"], size)
    raises(hips_torch.HipsError, "bcube:3,1 has 9 ranks, but the job has 2", dist.init_process_group, "hips", store=store, rank=rank, world_size=size)


def destroyed_while_outstanding(rank, size):
    if rank == 0:
        dist.all_reduce(torch.ones(10), async_op=True)
        dist.destroy_process_group()
        return
    time.sleep(1)
    error = raises(hips_torch.HipsError, "", dist.all_reduce, torch.ones(10))
    assert error.code in ("aborted", "peer lost") and error.rank == 0, (error.code, error.rank, str(error))


def gradients_as_bfloat16(rank, size):
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(100, 100) for _ in range(5)]), bucket_cap_mb=0.1)
    model.register_comm_hook(None, hips_torch.bf16_hook)
    inputs = [torch.randn(8, 100) + r for r in range(size)]
    own = []
    for one in inputs:
        model.module.zero_grad()
        model.module(one).square().mean().backward()
        own.append([parameter.grad.clone() for parameter in model.parameters()])
    model.zero_grad()
    model(inputs[rank]).square().mean().backward()
    for i, parameter in enumerate(model.parameters()):
        rounded = torch.stack([gradients[i].bfloat16().float() for gradients in own]).mean(dim=0)
        assert parameter.grad.dtype == torch.float32 and torch.allclose(parameter.grad, rounded, rtol=8e-3), i
        everyones = [torch.empty_like(parameter.grad) for _ in range(size)]
        dist.all_gather(everyones, parameter.grad)
        assert all(torch.equal(one, parameter.grad) for one in everyones), i


def killed_in_backward(rank, size):
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(200, 200) for _ in range(10)])
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.2)
    loss = model(torch.ones(4, 200)).sum()
    if rank == 1:
        # Some buckets have been reduced, others never will be.
        list(model.parameters())[3].register_hook(lambda gradient: os.kill(os.getpid(), signal.SIGKILL))
    begin = time.monotonic()
    # PyTorch's autograd makes it a plain RuntimeError.
    raises(RuntimeError, "rank 1 ", loss.backward)
    assert time.monotonic() - begin < 60
    error = raises(hips_torch.HipsError, "rank 1 ", dist.barrier)
    assert error.rank == 1 and error.code == "peer lost", (error.code, error.rank, str(error))


class Backend(unittest.TestCase):
    def test_collectives_are_what_they_should_be(self):
        for size in (1, 2, 4):
            with self.subTest(size=size, seed=SEED):
                run(size, random_collectives, SEED)

    def test_collectives_of_a_named_topology(self):
        run(4, random_collectives, SEED + 1, env={"HIPS_TOPO": "bcube:2,1"})

    def test_works_and_futures(self):
        run(2, works)
        run(3, works)

    def test_a_work_after_a_rest(self):
        run(1, work_after_a_rest)

    def test_groups_are_planned_on_their_part_of_the_topology(self):
        run(4, groups, env={"HIPS_TOPO": "bcube:2,1"})

    def test_wrong_arguments_are_python_exceptions(self):
        run(2, wrong_arguments)

    def test_ranks_that_disagree_all_hear_of_it(self):
        run(3, mismatch)

    def test_a_late_rank_ends_the_call_after_the_groups_timeout(self):
        run(3, late_rank)

    def test_destroying_a_group_ends_what_is_outstanding(self):
        run(3, destroyed_while_outstanding)

    def test_gradients_travel_as_bfloat16(self):
        run(2, gradients_as_bfloat16)

    def test_a_rank_killed_in_backward_is_named(self):
        run(3, killed_in_backward, env={"HIPS_DEAD_AFTER": "2"}, killed=(1,))

    def test_a_topology_of_another_size_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            run(2, other_size, env={"STORE": os.path.join(folder, "store")})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
