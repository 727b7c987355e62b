"""Every collective of mpi4py with upper and lower case names, blocking and non-blocking, on three communicators.

Prints a digest of all results, which is the same under any MPI, and "ok". With the argument "single" MPI is
initialised without threads.
"""

import array
import hashlib
import sys

import mpi4py

if "single" in sys.argv:
    mpi4py.rc.threads = False
from mpi4py import MPI  # noqa: E402  calls MPI_Init

COUNTS = (0, 1, 5, 1000, 30000)
digest = hashlib.sha256()


def ints(values):
    return array.array("i", values)


def doubles(count):
    return array.array("d", [0.0] * count)


def note(*results):
    for result in results:
        digest.update(bytes(result) if isinstance(result, array.array) else repr(result).encode())


class Calls:
    """Calls of one communicator, each in both forms; `finish` waits for all that are outstanding."""

    def __init__(self, comm, blocking):
        self.comm, self.blocking = comm, blocking
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.requests, self.outputs, self.arguments = [], [], []

    def call(self, name, *arguments, output=(), **more):
        """Calls `Bcast` as Bcast or Ibcast; `output` is what to compare afterwards."""
        if self.blocking:
            getattr(self.comm, name)(*arguments, **more)
        else:
            # mpi4py 3.1 does not keep what it passed to MPI_Ireduce_scatter.
            self.arguments.append(arguments)
            self.requests.append(getattr(self.comm, "I" + name.lower())(*arguments, **more))
        self.outputs += [output] if isinstance(output, array.array) else list(output)

    def finish(self):
        MPI.Request.Waitall(self.requests)
        assert all(request == MPI.REQUEST_NULL for request in self.requests)
        note(*self.outputs)
        self.requests, self.outputs, self.arguments = [], [], []


def value(rank, i):
    return (rank * 31 + i * 17) % 1009


def upper_case(comm, blocking):
    calls = Calls(comm, blocking)
    rank, size = calls.rank, calls.size
    for count in COUNTS:
        mine = ints(value(rank, i) for i in range(count))
        floats = array.array("d", (value(rank, i) / 4 for i in range(count)))
        everything = ints(value(rank, i) for i in range(count * size))
        root = count % size
        calls.call("Barrier")

        cast = ints(mine)
        calls.call("Bcast", cast, root, output=cast)
        assert not blocking or cast == ints(value(root, i) for i in range(count))

        total = doubles(count)
        calls.call("Allreduce", floats, total, MPI.SUM, output=total)
        if blocking:
            for i in range(0, count, 97):
                assert total[i] == sum(value(r, i) for r in range(size)) / 4
        in_place = ints(mine)
        calls.call("Allreduce", MPI.IN_PLACE, in_place, MPI.MAX, output=in_place)

        reduced = ints(mine)
        if rank == root:
            calls.call("Reduce", MPI.IN_PLACE, reduced, MPI.SUM, root, output=reduced)
        else:
            calls.call("Reduce", mine, None, MPI.SUM, root)
        at_root = ints([0] * count)
        calls.call("Reduce", mine, at_root, MPI.BXOR, root, output=at_root if rank == root else ())

        gathered = ints([0] * (count * size))
        calls.call("Allgather", mine, gathered, output=gathered)
        assert not blocking or gathered == ints(value(r, i) for r in range(size) for i in range(count))
        counts = [count // (r + 1) for r in range(size)]
        places = [sum(counts[:r]) + r for r in range(size)]
        uneven = ints([-1] * (sum(counts) + size))
        calls.call("Allgatherv", [mine, counts[rank], MPI.INT], [uneven, counts, places, MPI.INT], output=uneven)

        block = ints([0] * count)
        calls.call("Reduce_scatter_block", everything, block, MPI.SUM, output=block)
        section = ints([0] * counts[rank])
        calls.call("Reduce_scatter", ints(everything[:sum(counts)]), section, counts, MPI.MIN, output=section)

        # Calls that HiPS delegates to native MPI, between the others.
        at_root = ints([0] * (count * size)) if rank == root else None
        calls.call("Gather", mine, at_root, root, output=at_root if rank == root else ())
        scattered = ints([0] * count)
        calls.call("Scatter", everything if rank == root else None, scattered, root, output=scattered)
        at_root = ints([0] * sum(counts)) if rank == root else None
        calls.call("Gatherv", [mine, counts[rank], MPI.INT],
                   [at_root, counts, [sum(counts[:r]) for r in range(size)], MPI.INT] if rank == root else None, root,
                   output=at_root if rank == root else ())
        scattered = ints([0] * counts[rank])
        calls.call("Scatterv",
                   [everything, counts, [sum(counts[:r]) for r in range(size)], MPI.INT] if rank == root else None,
                   scattered, root, output=scattered)
        exchanged = ints([0] * (count * size))
        calls.call("Alltoall", everything, exchanged, output=exchanged)
        exchanged = ints([0] * (count * size))
        calls.call("Alltoallv", [everything, [count] * size, None, MPI.INT], [exchanged, [count] * size, None, MPI.INT],
                   output=exchanged)
        for name in ("Scan", "Exscan"):
            prefix = ints([0] * count)
            # The result of an exclusive scan on rank 0 has no meaning.
            calls.call(name, mine, prefix, MPI.SUM, output=prefix if name == "Scan" or rank > 0 else ())
        calls.finish()


def derived_types(comm, blocking):
    """Every other of these ints; their type is freed while the calls are outstanding."""
    calls = Calls(comm, blocking)
    rank, size = calls.rank, calls.size
    gappy = MPI.INT.Create_vector(50, 1, 2).Create_resized(0, 100 * MPI.INT.Get_size()).Commit()
    cast = ints(value(rank, i) for i in range(300))
    calls.call("Bcast", [cast, 3, gappy], size - 1, output=cast)
    mine = ints(value(rank, i) for i in range(150))
    gathered = ints([-1] * (300 * size))
    calls.call("Allgather", [mine, 150, MPI.INT], [gathered, 3, gappy], output=gathered)
    gappy.Free()
    calls.finish()
    for i in range(300):
        assert cast[i] == value(size - 1 if i % 2 == 0 else rank, i)
        assert gathered[i] == (-1 if i % 2 else value(0, i // 2))


def lower_case(comm):
    """Python objects, of different sizes on each rank."""
    rank, size = comm.Get_rank(), comm.Get_size()
    for length in (0, 3, 2000):
        thing = {"rank": rank, "text": "x" * (length + rank), "list": list(range(length))}
        comm.barrier()
        note(comm.bcast(thing if rank == size - 1 else None, root=size - 1)["rank"])
        everyone = comm.allgather(thing)
        assert [one["rank"] for one in everyone] == list(range(size))
        assert all(len(one["text"]) == length + one["rank"] for one in everyone)
        note(comm.gather(rank * 7, root=0))
        note(comm.scatter([str(i) * length for i in range(size)] if rank == 0 else None, root=0))
        note(comm.alltoall([rank * size + i for i in range(size)]))
        note(comm.allreduce([rank] * length, op=MPI.SUM))
        note(comm.reduce(rank + 1, op=MPI.PROD, root=0))
        note(comm.scan(rank), comm.exscan(rank))
        note(comm.allreduce((rank, "of a pair"), op=MPI.MINLOC))
    # Messages in between.
    request = comm.isend(rank, dest=(rank + 1) % size, tag=5)
    note(comm.recv(source=(rank + size - 1) % size, tag=5))
    request.wait()


def mixed_requests(comm):
    """Calls of HiPS and of native MPI, and messages, completed in any order."""
    rank, size = comm.Get_rank(), comm.Get_size()
    total, ones, got = ints([0] * 10000), ints([1] * 10000), ints([-1])
    prefix = ints([0])
    requests = [comm.Irecv(got, (rank + 1) % size, 9), comm.Iallreduce(ones, total), comm.Iscan(ints([1]), prefix),
                comm.Isend(ints([rank]), (rank + size - 1) % size, 9), comm.Ibarrier(), MPI.REQUEST_NULL]
    while (done := MPI.Request.Waitsome(requests)) is not None:
        assert done
    assert MPI.Request.Testall(requests) and all(request == MPI.REQUEST_NULL for request in requests)
    assert got[0] == (rank + 1) % size and prefix[0] == rank + 1 and set(total) == {size}


def main():
    world = MPI.COMM_WORLD
    reversed_world = world.Split(0, -world.Get_rank())
    halves = world.Split(world.Get_rank() % 2, world.Get_rank())
    for comm in (world, reversed_world, halves, MPI.COMM_SELF):
        for blocking in (True, False):
            upper_case(comm, blocking)
            derived_types(comm, blocking)
        lower_case(comm)
        mixed_requests(comm)
    digests = world.gather(digest.hexdigest(), root=0)
    if world.Get_rank() == 0:
        print("digest", hashlib.sha256("".join(digests).encode()).hexdigest())
        print("ok")
    reversed_world.Free()
    halves.Free()


main()
