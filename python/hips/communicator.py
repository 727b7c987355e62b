"""Communicators and requests."""

from __future__ import annotations

import atexit
import asyncio
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _comm
from ._comm import Kind, Op
from .arrays import as_input, empty_like, is_array, shape_of

# Of all communicators, so that none outlives the interpreter, whose memory its calls use.
_outstanding = weakref.WeakSet()
# Tables and models, whose end waits for all ranks.
ended_together = weakref.WeakSet()


_OPS = {name.lower(): op for name, op in Op.__members__.items()}


def _op(op):
    if isinstance(op, Op):
        return op
    try:
        return _OPS[op]
    except (KeyError, TypeError):
        known = ", ".join(f'"{name}"' for name in _OPS)
        raise ValueError(f"hips: unknown op {op!r}; expected one of {known}") from None


class Request:
    """A call that was started and has not ended; or one that can be started again and again (Communicator.allreduce_init).

    `wait()` ends it and gives its result. In between its arrays belong to it: do not write to the input, nor use the output.

        request = comm.iallreduce(gradient)
        compute()
        total = request.wait()

    As a context manager it waits at the end of the block, and `await request` waits in asyncio.

    A request that is dropped before its end is waited for as long as HIPS_TIMEOUT says, or HIPS_DEAD_AFTER (4 s); then the
    communicator is aborted, so that no other rank waits for ever.
    """

    def __init__(self, request, result, finish=None):
        self._request, self._result, self._finish = request, result, finish
        _outstanding.add(self)

    def start(self) -> Request:
        """Starts a persistent call once more, and gives this request."""
        self._request.start()
        return self

    def test(self) -> bool:
        """Whether the call has ended. Waits for no other rank. Raises Error when the call failed."""
        return self._request.test()

    def wait(self) -> Any:
        """Waits until the call has ended, and gives its result. Raises Error when the call failed.

        Other threads of Python run meanwhile. Ctrl-C takes effect when the call has ended.
        """
        self._request.wait()
        return self.result

    @property
    def result(self) -> Any:
        """The array of the result; its elements are undefined until the call has ended. None where this rank gets none."""
        return self._finish(self._result) if self._finish else self._result

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.wait()
        else:
            self._request.abandon()
        return False

    def __await__(self):
        delay = 0.0
        while not self.test():
            yield from asyncio.sleep(delay).__await__()
            delay = min(delay + 2e-5, 1e-3)
        return self.result


def wait_all(requests: Iterable[Request]) -> list[Any]:
    """Waits for all requests, and gives the list of their results. Raises the Error of the first that failed."""
    requests = list(requests)
    _comm.wait_all(list({id(request): request._request for request in requests}.values()))
    return [request.result for request in requests]


def wait_any(requests: Iterable[Request]) -> int | None:
    """Waits for one of the outstanding requests: its place in the list, or None when none is outstanding."""
    first: dict[int, tuple[int, Any]] = {}  # a request may be in the list twice
    for place, request in enumerate(requests):
        first.setdefault(id(request), (place, request._request))
    places, outstanding = zip(*first.values()) if first else ((), ())
    which = _comm.wait_any(list(outstanding))
    return None if which is None else places[which]


class Communicator:
    """A group of ranks that reduce together.

    Without `rank`, `size` and `allgather` the ranks are those of the environment: HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port;
    the variables of torchrun, as `python3 -m hips.launch -n 4 script.py` sets them; or a launcher's rank and size, and HIPS_ROOT.
    `Communicator.from_mpi(comm)` makes one of the ranks of mpi4py's communicator.

    topology   "bcube:3,1", a file, ...; "": HIPS_TOPO, or one switch between the nodes
    algorithm  as `hips plan --list` names it; "": chosen by size
    pattern    "mesh", "mesh,ring", "ps:2", ...; "": chosen by size
    name       in logs and errors
    timeout    seconds that a call may wait; None: HIPS_TIMEOUT, or no limit
    allgather  takes bytes, and gives the list of all ranks' bytes; with `rank` and `size`

    Collective, as all of its calls but rank, size, describe() and abort(): every rank makes the same calls in the same order.

    Arrays are of numpy, CPU tensors of PyTorch, or anything contiguous with the buffer protocol or DLPack. Types: integers of 8 to
    64 bits, bool, float16, bfloat16 (DLPack), float32, float64; calls that do not reduce take any other, too. Numbers and lists
    become arrays of numpy. Ops: "sum", "prod", "min", "max", "avg"; for integers and bool "band", "bor", "bxor", "land", "lor",
    "lxor". Results are the same bits on all ranks. `out` receives the result, which is returned, too; without it a new array is made.
    The input may be `out`: in place. Other threads of Python run while a call waits.

        comm = hips.Communicator()
        total = comm.allreduce(gradient)            # a new array
        comm.allreduce(gradient, out=gradient)      # in place
        mean = comm.allreduce(loss, "avg")          # of a number

    Threads  one call at a time on a communicator; different communicators from different threads at once.
    Errors   Error. TypeError and ValueError for arrays that do not fit; the call did not take place then.
    """

    def __init__(self, topology: str = "", *, algorithm: str = "", pattern: str = "", name: str = "", timeout: float | None = None,
                 rank: int | None = None, size: int | None = None, allgather: Callable[[bytes], Sequence[bytes]] | None = None):
        given = [value is not None for value in (rank, size, allgather)]
        if any(given) and not all(given):
            raise TypeError("hips: Communicator: rank, size and allgather belong together; give all three or none")
        if timeout is not None and timeout <= 0:
            raise ValueError(f"hips: Communicator: timeout is {timeout}; expected seconds above 0, or None")
        milliseconds = 0 if timeout is None else max(1, round(timeout * 1000))
        self._set(_comm.Comm(str(topology), algorithm, pattern, name, milliseconds, -1 if rank is None else rank, size or 0, allgather))

    def _set(self, comm):
        self._comm, self._rank, self._size = comm, comm.rank, comm.size

    @classmethod
    def _of(cls, comm):
        if comm is None:
            return None
        made = cls.__new__(cls)
        made._set(comm)
        return made

    @classmethod
    def from_mpi(cls, comm: Any, topology: str = "", **options: Any) -> Communicator:
        """A communicator of the ranks of `comm`, of mpi4py, which is used only until this returns."""
        return cls(topology, rank=comm.Get_rank(), size=comm.Get_size(), allgather=comm.allgather, **options)

    rank = property(lambda self: self._rank, doc="This rank, from 0.")
    size = property(lambda self: self._size, doc="The number of ranks.")

    def describe(self) -> str:
        """Which plan runs, in one line."""
        return self._comm.describe()

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A communicator of the ranks that pass the same color, ordered by key, then by rank; planned on the part of the topology
        that they occupy. None for the color None."""
        return self._of(self._comm.split(-1 if color is None else color, key))

    def duplicate(self) -> Communicator:
        """Another communicator of the same ranks and plans; calls on one wait for none on the other."""
        return self._of(self._comm.duplicate())

    def shrink(self) -> Communicator:
        """A communicator of the ranks that have neither died nor closed this one, in their order. Collective over them, once this one
        has failed; it stays failed. Ranks that die meanwhile are left out, too."""
        return self._of(self._comm.shrink())

    def abort(self, text: str = "") -> None:
        """Ends the calls of all ranks with an Error that has this rank and text. From any thread; waits for nobody."""
        self._comm.abort(text)

    def close(self) -> None:
        """Leaves the communicator; a block of `with` does so at its end. Waits for nobody."""
        self._comm.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        return False

    def __repr__(self):
        return f"<hips.Communicator: rank {self._rank} of {self._size}>"

    # ---- Reductions

    def allreduce(self, array: Any, op: str | Op = "sum", out: Any = None) -> Any:
        """The reduction of all ranks' arrays, element by element, on every rank. Shapes: the same on all ranks."""
        return self._run(Kind.ALLREDUCE, *self._same(array, out), op=op)

    def iallreduce(self, array: Any, op: str | Op = "sum", out: Any = None) -> Request:
        """Starts allreduce(), and gives a Request."""
        return self._start(Kind.ALLREDUCE, *self._same(array, out), op=op)

    def allreduce_init(self, array: Any, op: str | Op = "sum", out: Any = None) -> Request:
        """Prepares allreduce() of this memory: request.start() starts it, any number of times. Local."""
        given, out, finish = self._same(array, out)
        return Request(self._comm.prepare(Kind.ALLREDUCE, given, out, _op(op), 0), out, finish)

    def allreduce_coalesced(self, arrays: Iterable[Any], op: str | Op = "sum", priorities: Sequence[int] = ()) -> None:
        """allreduce() of each array of a list, in place, as one call: small ones are packed, several calls are outstanding at once. Those of
        lower priority numbers go first, else the first of the list."""
        self._comm.allreduce_coalesced(list(arrays), _op(op), list(priorities))

    def iallreduce_coalesced(self, arrays: Iterable[Any], op: str | Op = "sum", priorities: Sequence[int] = ()) -> Request:
        """Starts allreduce_coalesced(), and gives a Request."""
        given = list(arrays)
        return Request(self._comm.start_allreduce_coalesced(given, _op(op), list(priorities)), given)

    def reduce(self, array: Any, op: str | Op = "sum", root: int = 0, out: Any = None) -> Any:
        """The reduction on the root; None on the other ranks."""
        return self._run(Kind.REDUCE, *self._same(array, out, root), op=op, root=root)

    def ireduce(self, array: Any, op: str | Op = "sum", root: int = 0, out: Any = None) -> Request:
        """Starts reduce(), and gives a Request."""
        return self._start(Kind.REDUCE, *self._same(array, out, root), op=op, root=root)

    def reduce_scatter(self, array: Any, op: str | Op = "sum", out: Any = None) -> Any:
        """Section `rank` of the reduction: the first axis of the array is divided by the number of ranks."""
        return self._run(Kind.REDUCE_SCATTER, *self._divided(array, out), op=op)

    def ireduce_scatter(self, array: Any, op: str | Op = "sum", out: Any = None) -> Request:
        """Starts reduce_scatter(), and gives a Request."""
        return self._start(Kind.REDUCE_SCATTER, *self._divided(array, out), op=op)

    # ---- What only moves

    def bcast(self, array: Any, root: int = 0) -> Any:
        """Overwrites the array with that of the root, and gives it."""
        return self._run(Kind.BCAST, None, array, None, root=root)

    def ibcast(self, array: Any, root: int = 0) -> Request:
        """Starts bcast(), and gives a Request."""
        return self._start(Kind.BCAST, None, array, None, root=root)

    def allgather(self, array: Any, out: Any = None) -> Any:
        """The arrays of all ranks, in rank order, along a new first axis."""
        return self._run(Kind.ALLGATHER, *self._collected(array, out))

    def iallgather(self, array: Any, out: Any = None) -> Request:
        """Starts allgather(), and gives a Request."""
        return self._start(Kind.ALLGATHER, *self._collected(array, out))

    def gather(self, array: Any, root: int = 0, out: Any = None) -> Any:
        """The arrays of all ranks along a new first axis, on the root; None on the other ranks."""
        return self._run(Kind.GATHER, *self._collected(array, out, root), root=root)

    def igather(self, array: Any, root: int = 0, out: Any = None) -> Request:
        """Starts gather(), and gives a Request."""
        return self._start(Kind.GATHER, *self._collected(array, out, root), root=root)

    def scatter(self, array: Any, root: int = 0, out: Any = None) -> Any:
        """Part `rank` of the root's array, whose first axis has as many as there are ranks. Other ranks pass None and `out`, or an
        array of the same shape and type, whose elements are ignored."""
        return self._run(Kind.SCATTER, *self._parted(array, out, root), root=root)

    def iscatter(self, array: Any, root: int = 0, out: Any = None) -> Request:
        """Starts scatter(), and gives a Request."""
        return self._start(Kind.SCATTER, *self._parted(array, out, root), root=root)

    def alltoall(self, array: Any, out: Any = None) -> Any:
        """Part `rank` of the arrays of all ranks, in rank order; the first axis has a multiple of the number of ranks."""
        return self._run(Kind.ALLTOALL, *self._exchanged(array, out))

    def ialltoall(self, array: Any, out: Any = None) -> Request:
        """Starts alltoall(), and gives a Request."""
        return self._start(Kind.ALLTOALL, *self._exchanged(array, out))

    def barrier(self) -> None:
        """Returns once every rank has called it."""
        self._run(Kind.BARRIER, None, None, None)

    def ibarrier(self) -> Request:
        """Starts barrier(), and gives a Request."""
        return self._start(Kind.BARRIER, None, None, None)

    # ---- How calls are made of arguments: the input, the output, and what makes the result of the output

    def _run(self, kind, given, out, finish, op=Op.SUM, root=0):
        self._comm.run(kind, given, out, _op(op), root)
        return finish(out) if finish else out

    def _start(self, kind, given, out, finish, op=Op.SUM, root=0):
        return Request(self._comm.start(kind, given, out, _op(op), root), out, finish)

    def _same(self, array, out, root=None):
        if root is not None and root != self._rank:
            return as_input(array), None, None
        if out is array:
            return array, out, None
        given = as_input(array)
        if out is not None:
            return given, out, None
        # Numbers come back as numbers, also those of numpy.
        is_number = not is_array(array) or not hasattr(array, "__setitem__")
        finish = (lambda result: result[()]) if is_number and not shape_of(given) else None
        return given, empty_like(given, shape_of(given)), finish

    def _collected(self, array, out, root=None):
        given = as_input(array)
        if root is not None and root != self._rank:
            return given, None, None
        return given, empty_like(given, (self._size, *shape_of(given))) if out is None else out, None

    def _check_rows(self, call, array):
        shape = shape_of(array)
        if not shape or shape[0] % self._size:
            raise ValueError(f"hips: {call}: the array has shape {shape}; expected a multiple of {self._size}, the ranks, along the first axis")
        return shape

    def _divided(self, array, out):
        given = as_input(array)
        if out is None:
            shape = self._check_rows("reduce_scatter", given)
            out = empty_like(given, (shape[0] // self._size, *shape[1:]))
        return given, out, None

    def _exchanged(self, array, out):
        given, out, finish = self._same(array, out)
        self._check_rows("alltoall", given)
        return given, out, finish

    def _parted(self, array, out, root):
        if array is None:
            if out is None or self._rank == root:
                raise ValueError("hips: scatter: the root passes an array; other ranks an array of that shape, or None and out=")
            return None, out, None
        given = as_input(array)
        if out is None:
            shape = shape_of(given)
            if not shape or shape[0] != self._size:
                raise ValueError(f"hips: scatter: the array has shape {shape}; expected {self._size}, the ranks, along the first axis")
            out = empty_like(given, shape[1:])
        return (given if self._rank == root else None), out, None


@atexit.register
def _end_all():
    """While Python still runs: what is outstanding uses its memory."""
    if getattr(sys, "last_value", None) is not None:
        # An exception ends the script: this rank meets the others nowhere any more, and tells them.
        for one in list(ended_together):
            one._abort()
    for request in list(_outstanding):
        request._request.abandon()
