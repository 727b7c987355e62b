"""PyTorch's backend "hips": send and recv."""

import datetime
import os
import random
import signal
import sys
import time
import unittest

import torch
import torch.distributed as dist

import hips_torch
from ranks import raises, run

SEED = int(os.environ.get("HIPS_SEED", random.SystemRandom().randrange(10**9)))
TYPES = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)


def message_of(source, number):
    """The tensor that a rank sends as its message of that number, and its tag."""
    rng = random.Random(SEED * 100003 + source * 1009 + number)
    elements = rng.choice((0, 1, 5, 3000, 200000))
    dtype = rng.choice(TYPES)
    return (torch.arange(elements) % 7 + source).to(dtype), rng.randrange(3)


def random_messages(rank, size):
    """Each rank sends to each, and receives with other tags first, from sources that it names and from any."""
    number = 30
    rng = random.Random(SEED + rank)
    sent = [dist.isend(message_of(rank, to * number + i)[0], to, tag=message_of(rank, to * number + i)[1])
            for i in range(number) for to in range(size) if to != rank]
    for source in range(size):
        if source != rank:
            mine = [message_of(source, rank * number + i) for i in range(number)]
            # Messages of one tag come in order, whatever the order of tags.
            for tag in rng.sample(range(3), 3):
                wanted = [tensor for tensor, of in mine if of == tag]
                outputs = [torch.empty_like(tensor) for tensor in wanted]
                works = [dist.irecv(output, source, tag=tag) for output in outputs]
                for work in works:
                    work.wait()
                for output, tensor in zip(outputs, wanted):
                    assert torch.equal(output, tensor), f"HIPS_SEED={SEED}, from {source}: {output} instead of {tensor}"
    for work in sent:
        work.wait()
    dist.barrier()
    # From any rank: each once.
    if rank == 0:
        sources = set()
        for _ in range(size - 1):
            output = torch.zeros(3, 4).t()
            source = dist.recv(output, tag=5)
            assert torch.equal(output, torch.full((4, 3), float(source))), output
            sources.add(source)
        assert sources == set(range(1, size))
    else:
        dist.send(torch.full((4, 3), float(rank)), 0, tag=5)
    # A group whose ranks still wait for messages that nobody sends ends at once.
    apart = dist.new_group()
    if rank == 0:
        for peer in range(1, size):
            dist.send(torch.ones(1), peer, group=apart)
        dist.recv(torch.ones(1), group=apart)
    else:
        dist.recv(torch.ones(1), 0, group=apart)
        if rank == size - 1:
            dist.send(torch.ones(1), 0, group=apart)
    left = dist.irecv(torch.ones(1), (rank + 1) % size, group=apart, tag=3)
    dist.destroy_process_group(apart)
    del apart  # the last reference
    error = raises(hips_torch.HipsError, "was destroyed while messages were outstanding", left.wait)
    assert error.code == "aborted", error.code
    # Several at once, around a ring.
    output, tensor = torch.zeros(50000), torch.full((50000,), float(rank))
    ring = [dist.P2POp(dist.isend, tensor, (rank + 1) % size), dist.P2POp(dist.irecv, output, (rank - 1) % size)]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    assert torch.equal(output, torch.full_like(output, float((rank - 1) % size)))
    # The last message of a rank that leaves at once arrives.
    if rank == 0:
        dist.send(torch.ones(7), 1)
        return
    if rank == 1:
        time.sleep(0.5)
        dist.recv(tensor := torch.zeros(7), 0)
        assert torch.equal(tensor, torch.ones(7))


def first_messages(rank, size):
    """The first ones of each direction at any moments, while other groups are made."""
    rng = random.Random(SEED * 31 + rank)
    for _ in range(6):
        group = dist.new_group()
        sent = []
        for peer in random.Random(SEED).sample(range(size), size):
            if peer != rank:
                time.sleep(rng.random() * 0.03)
                sent.append(dist.isend(torch.full((3,), float(rank)), peer, group=group))
        for peer in rng.sample(range(size), size):
            if peer != rank:
                time.sleep(rng.random() * 0.03)
                dist.recv(tensor := torch.zeros(3), peer, group=group)
                assert tensor.sum() == 3 * peer
        for work in sent:
            work.wait()
        dist.destroy_process_group(group)
    # A message that is on its way while its receiver makes a group.
    if rank == 0:
        work = dist.isend(torch.ones(2), 1)
        dist.new_group()
        work.wait()
    else:
        if rank == 1:
            dist.recv(torch.ones(2), 0)
        dist.new_group()
    dist.barrier()  # rank 0, which has the store, leaves last


def nobody_left(rank, size):
    if rank > 0:
        dist.send(torch.ones(1), 0)
        return
    for _ in range(size - 1):
        dist.recv(torch.ones(1))
    error = raises(hips_torch.HipsError, "message from rank", dist.recv, torch.ones(1))
    assert error.code == "peer lost", (error.code, str(error))


def wrong_messages(rank, size):
    raises(ValueError, f"rank {rank}; expected another rank", dist.distributed_c10d._get_default_group().send, [torch.ones(1)], rank, 0)
    if rank == 0:
        dist.send(torch.ones(3), 1)
        dist.send(torch.ones(5), 1)
    if rank == 1:
        error = raises(hips_torch.HipsError, "the tensor has 8 bytes, but rank 0 sent 12", dist.recv, torch.zeros(2), 0)
        assert error.code == "mismatch" and error.rank == 0
        dist.recv(torch.zeros(5), 0)  # the next one is in order
    # Nobody sends, or receives.
    hasty = dist.new_group(timeout=datetime.timedelta(seconds=3))
    if rank == 0:
        for function in (dist.irecv, dist.isend):
            work = function(torch.zeros(2), 1, tag=9, group=hasty)
            error = raises(hips_torch.HipsError, "ms; it goes on", work.wait, datetime.timedelta(milliseconds=20))
            assert error.code == "timed out"
            error = raises(hips_torch.HipsError, "has waited for its timeout of 3000 ms", work.wait)
            assert error.code == "timed out"
    dist.barrier()


def killed_sender(rank, size):
    if rank == 1:
        dist.send(torch.ones(1), 0)
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        dist.recv(torch.ones(1), 1)
        error = raises(hips_torch.HipsError, "message from rank 1 to rank 0", dist.recv, torch.ones(1), 1)
        assert error.code == "peer lost" and error.rank == 1, (error.code, error.rank, str(error))
        dist.send(torch.full((3,), 4.0), 2)
    if rank == 2:
        dist.recv(tensor := torch.zeros(3), 0)  # other pairs of ranks go on
        assert tensor.sum() == 12


class Messages(unittest.TestCase):
    def test_messages_of_any_size_tag_and_source(self):
        run(2, random_messages)
        run(4, random_messages, tcp=True)

    def test_first_messages_by_way_of_a_tcp_store(self):
        run(2, first_messages, tcp=True)
        run(4, first_messages, tcp=True)

    def test_a_recv_from_any_rank_ends_when_none_is_left(self):
        run(3, nobody_left, tcp=True)

    def test_wrong_messages_are_errors_of_their_own(self):
        run(2, wrong_messages)

    def test_a_lost_rank_ends_the_messages_with_it(self):
        run(3, killed_sender, env={"HIPS_DEAD_AFTER": "2"}, killed=(1,))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
