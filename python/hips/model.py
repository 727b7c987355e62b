"""Dense models that are trained asynchronously."""

from __future__ import annotations

from typing import Any

from . import _comm
from .arrays import _numpy as _np
from .communicator import Communicator, Request, ended_together


class Model:
    """One array that all ranks of a communicator fetch and add updates to, each at its own pace.

        model = hips.Model(comm, weights, delay_max=16)      # begins with these weights
        weights = model.fetch()
        while training:
            update = -0.1 * gradient(weights)
            weights, applied = model.push_fetch(update)      # the model, with this update and those of others

    update, out: arrays of numpy or CPU tensors, of the model's dtype and as many elements.
    applied: an array of bool, by shard: False where that part of the update is handed back, because more than delay_max other updates
    came first. Add it to the next update, or leave it.

    What is guaranteed, when to use it, and what it costs: docs/parameter-server.md. Making and closing a model is collective. Other threads
    of Python run while a call waits. Errors: ArgumentError and TypeError, before anything took place; Error when a rank has died or
    the communicator has failed.
    """

    def __init__(self, comm: Communicator, first: Any, *, num_shards: int = 0, delay_max: int | None = None, sends_at_once: bool = False,
                 divergence_max: float | None = None):
        """first: the values that the model begins with; those of ranks without a shard give shape and dtype only. num_shards: on the first nodes; 0:
        one on each. delay_max: updates that may be applied between a fetch and the push; None: any number.
        sends_at_once: transfers are not scheduled. divergence_max: each shard has a replica on another node, for recover(), which lacks groups of
        updates whose norms add up to this at most; then all ranks pass the same `first`. None: there are no replicas."""
        numpy = _np()
        first = numpy.ascontiguousarray(first)
        self.shape, self.dtype = first.shape, first.dtype
        most = 2**64 - 1
        self._model = _comm.Model(comm._comm, numpy.atleast_1d(first), num_shards, most if delay_max is None else delay_max, sends_at_once,
                                   -1.0 if divergence_max is None else divergence_max)
        ended_together.add(self)

    def recover(self, comm: Communicator) -> Model:
        """After a rank has died: a model on `comm`, of ranks that are left (Communicator.shrink()), with the values. Of a shard whose node is
        gone, groups of updates that nodes which are gone have sent to it may be missing, of a norm of divergence_max at most. Collective over
        `comm`. This model has failed then. Error: another rank has died, or a shard is lost."""
        made = Model.__new__(Model)
        made.shape, made.dtype = self.shape, self.dtype
        made._model = self._model.recover(comm._comm)
        ended_together.add(made)
        return made

    @property
    def shards(self) -> list[slice]:
        """The elements of each shard, in the flattened array."""
        return [slice(begin, begin + length) for begin, length in map(self._model.shard, range(self._model.num_shards()))]

    def fetch(self, out: Any = None) -> Any:
        """The values, in `out` or a new array of numpy. Each shard is of one version."""
        out = self._empty() if out is None else out
        self._model.run(None, None, out)
        return out

    def push(self, update: Any) -> Any:
        """model += update, which was computed from the values that this rank fetched last. Gives `applied`."""
        applied = self._flags()
        self._model.run(self._like(update), applied, None)
        return applied

    def push_fetch(self, update: Any, out: Any = None) -> tuple[Any, Any]:
        """push() and then fetch(), faster. Gives the values and `applied`."""
        out, applied = self._empty() if out is None else out, self._flags()
        self._model.run(self._like(update), applied, out)
        return out, applied

    def ifetch(self, out: Any = None) -> Request:
        """As fetch(), without waiting; request.wait() gives the values."""
        out = self._empty() if out is None else out
        return Request(self._model.start(None, None, out), out)

    def ipush(self, update: Any) -> Request:
        """As push(), without waiting; `update` must not change before the request has ended."""
        applied = self._flags()
        return Request(self._model.start(self._like(update), applied, None), applied)

    def ipush_fetch(self, update: Any, out: Any = None) -> Request:
        """As push_fetch(), without waiting; `update` must not change before the request has ended."""
        out, applied = self._empty() if out is None else out, self._flags()
        return Request(self._model.start(self._like(update), applied, out), (out, applied))

    def close(self) -> None:
        """Waits until all ranks close the model, and frees it; so does dropping it. No request may be outstanding."""
        self._model.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # A rank that ends by an exception may never meet the others.
        if kind is None:
            self.close()
        else:
            self._abort()

    def _abort(self):
        self._model.abort()

    def __repr__(self):
        return f"<hips.Model of shape {self.shape}, {self.dtype}>"

    def _flags(self):
        return _np().zeros(self._model.num_shards(), "bool")

    def _empty(self):
        return _np().empty(self.shape, self.dtype)

    def _like(self, update):
        if hasattr(update, "is_contiguous"):
            return update.detach().contiguous() if getattr(update, "requires_grad", False) else update.contiguous()
        return _np().ascontiguousarray(update, self.dtype)
