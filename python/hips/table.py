"""Tables of rows by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _comm
from ._comm import Access, Op
from .arrays import _numpy as _np
from .communicator import Communicator, Request, _op, ended_together


class Table:
    """Rows that all ranks of a communicator pull and push by key. Each row is on one node at a time and moves by localize().

        table = hips.Table(comm, 1_000_000, 64)          # rows of 64 float32
        table.localize(keys)                             # bring the rows to this node
        rows = table.pull(keys)                          # shape (len(keys), 64)
        table.push(keys, -0.1 * gradients)               # row += pushed

    keys: an array or a sequence of integers in [0, num_keys), in any order; repeated ones are allowed.
    rows: shape (len(keys), *row_shape), of the table's dtype; arrays of numpy or CPU tensors.

    What is guaranteed while rows move, and what it costs: docs/parameter-server.md. Making and closing a table is collective.
    Other threads of Python run while a call waits. Errors: ArgumentError and TypeError, before anything took place; Error when a
    rank has died or the communicator has failed.
    """

    def __init__(self, comm: Communicator, num_keys: int, row_shape: int | Sequence[int] = (), dtype: Any = "float32", *,
                 update: str | Op = "sum", first_row: Any = None, rows_per_node: int = 0, staleness: int = 0, replicas_per_node: int = 0):
        """update: a push does row = pushed op row. first_row: of keys that nobody has changed; zeros where it is None. rows_per_node: at
        most; 0: all. staleness: clocks that a rank may be ahead of another (advance_clock()). replicas_per_node:
        copies of rows that several nodes have intents for; with update "sum" only (intent())."""
        numpy = _np()
        self.row_shape = (row_shape,) if isinstance(row_shape, int) else tuple(row_shape)
        self.dtype = numpy.dtype(dtype)
        self.num_keys = num_keys
        row = numpy.zeros(self.row_shape, self.dtype)
        if first_row is not None:
            row[...] = first_row
        self._table = _comm.Table(comm._comm, num_keys, numpy.atleast_1d(row), _op(update), rows_per_node, staleness, replicas_per_node)
        ended_together.add(self)

    def recover(self, comm: Communicator) -> tuple[Table, int]:
        """After a rank has died: a table on `comm`, of ranks that are left (Communicator.shrink()), with what is left of the rows; and of how
        many keys they are lost, at most. Those have the first row again. Collective over `comm`. This table has failed then."""
        made = Table.__new__(Table)
        made.row_shape, made.dtype, made.num_keys = self.row_shape, self.dtype, self.num_keys
        made._table, lost = self._table.recover(comm._comm)
        ended_together.add(made)
        return made, lost

    def pull(self, keys: Any, out: Any = None) -> Any:
        """The rows of `keys`, in `out` or a new array of numpy."""
        keys = self._keys(keys)
        out = self._empty(keys) if out is None else out
        self._table.run(Access.PULL, keys, out)
        return out

    def push(self, keys: Any, rows: Any) -> None:
        """row = rows[i] op row, for each keys[i]."""
        keys = self._keys(keys)
        self._table.run(Access.PUSH, keys, self._rows(keys, rows))

    def set(self, keys: Any, rows: Any) -> None:
        """row of keys[i] = rows[i]."""
        keys = self._keys(keys)
        self._table.run(Access.SET, keys, self._rows(keys, rows))

    def localize(self, keys: Any) -> None:
        """Brings the rows to this node, and waits until each has been here."""
        self._table.run(Access.LOCALIZE, self._keys(keys), None)

    def pull_if_local(self, keys: Any) -> tuple[Any, Any]:
        """The rows that this node has, and an array of bool that says which they are. Sends nothing."""
        keys = self._keys(keys)
        rows, here = self._empty(keys), _np().zeros(len(keys), "uint8")
        self._table.pull_if_local(keys, rows, here)
        return rows, here.astype(bool)

    def ipull(self, keys: Any, out: Any = None) -> Request:
        """As pull(), without waiting; request.wait() gives the rows."""
        keys = self._keys(keys)
        out = self._empty(keys) if out is None else out
        return Request(self._table.start(Access.PULL, keys, out), out)

    def ipush(self, keys: Any, rows: Any) -> Request:
        """As push(), without waiting; keys and rows are copied."""
        keys = self._keys(keys)
        return Request(self._table.start(Access.PUSH, keys, self._rows(keys, rows)), None)

    def iset(self, keys: Any, rows: Any) -> Request:
        """As set(), without waiting; keys and rows are copied."""
        keys = self._keys(keys)
        return Request(self._table.start(Access.SET, keys, self._rows(keys, rows)), None)

    def ilocalize(self, keys: Any) -> Request:
        """As localize(), without waiting: for the keys of the next step."""
        return Request(self._table.start(Access.LOCALIZE, self._keys(keys), None), None)

    def intent(self, keys: Any, start: int, end: int) -> None:
        """This rank is going to use the rows while its clock, the number of its calls of advance_clock(), is in [start, end). A hint that
        returns at once: rows that no other node wants come to this one, in the background; with replicas_per_node, copies of those
        that others want, too."""
        self._table.intent(self._keys(keys), start, end)

    def advance_clock(self) -> None:
        """Ends a clock of this rank: waits for its outstanding pulls, pushes and sets, then for ranks that are more than `staleness` clocks behind."""
        self._table.advance_clock()

    def close(self) -> None:
        """Waits until all ranks close the table, and frees it; so does dropping it. No request may be outstanding."""
        self._table.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # A rank that ends by an exception may never meet the others.
        if kind is None:
            self.close()
        else:
            self._abort()

    def _abort(self):
        self._table.abort()

    def __repr__(self):
        return f"<hips.Table of {self.num_keys} keys, rows of {self.row_shape or 1} {self.dtype}>"

    def _keys(self, keys):
        numpy = _np()
        array = numpy.ascontiguousarray(keys)
        if array.size == 0:
            return numpy.zeros(0, "int64")
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise TypeError(f"hips: Table: keys are {array.dtype} of shape {array.shape}; expected a list of integers")
        return array if array.dtype in ("int64", "uint64") else array.astype("int64")

    def _rows(self, keys, rows):
        if hasattr(rows, "is_contiguous"):
            return rows.detach().contiguous() if getattr(rows, "requires_grad", False) else rows.contiguous()
        rows = _np().asarray(rows, self.dtype)
        return _np().ascontiguousarray(_np().broadcast_to(rows, (len(keys), *self.row_shape)))

    def _empty(self, keys):
        return _np().empty((len(keys), *self.row_shape), self.dtype)
