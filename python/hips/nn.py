"""Modules of PyTorch whose weights are rows of a table: import hips.nn, which needs PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from .communicator import Communicator, Request
from .table import Table

_PART = 4096  # rows of a call where there are many

class Embedding(torch.nn.Module):
    """As torch.nn.Embedding, with its rows in a table that all ranks of a communicator share, each rank on its own part of the batch.

        with hips.nn.Embedding(comm, 10_000_000, 128, lr=0.05) as words:
            loss(words(indices)).backward()              # changes the rows of `indices`

    forward(indices) brings the rows to this node (localize=True), pulls them, and is a tensor of shape (*indices.shape, dim). The
    backward pass adds up the gradients of equal indices and pushes the change, -lr * gradient: stochastic gradient descent,
    asynchronous between ranks. With average=True a rank's change is divided by the number of ranks, as DDP does with the gradients of
    other layers, for losses that are means over a rank's part of the batch; with False the ranks' changes add up. A step moves the rows
    that it uses and no others. With `staleness` call step() at the end of each step of training, on all ranks.

    The rows are no parameters: optimizers, clipping, .to() and state_dict() do not see them. rows() and load_rows() save and restore
    them.

    `init_std`: first values are normally distributed with this deviation, drawn by each rank for its share of the rows from `seed`;
    0: zeros, and a row takes no memory until it is used. Making and closing it is collective; an exception that leaves its `with` fails
    the communicator, so that no rank waits for this one. Tensors of CPUs.
    """

    def __init__(self, comm: Communicator, num_embeddings: int, embedding_dim: int, *, lr: float, average: bool = True,
                 dtype: torch.dtype = torch.float32, init_std: float = 1.0, seed: int = 0, localize: bool = True, rows_per_node: int = 0,
                 staleness: int = 0):
        super().__init__()
        if dtype not in (torch.float16, torch.float32, torch.float64):
            raise TypeError(f"hips.nn.Embedding: dtype is {dtype}; expected torch.float16, float32 or float64")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.lr, self.share, self.localize, self.dtype = lr, 1 / comm.size if average else 1.0, localize, dtype
        self._coming: Request | None = None
        self.table = Table(comm, num_embeddings, embedding_dim, str(dtype).removeprefix("torch."), rows_per_node=rows_per_node,
                           staleness=staleness)
        if init_std:
            self._draw(comm, init_std, seed)
        comm.barrier()

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """The rows of `indices`."""
        keys, place = torch.unique(indices, return_inverse=True)
        if self.localize:
            self.table.localize(keys)
        rows = self._pull(keys)
        if torch.is_grad_enabled() and self.training:
            rows.requires_grad_()
            rows.register_hook(lambda gradient: self.table.push(keys, gradient.mul(-self.lr * self.share)))
        return rows[place]

    def prefetch(self, indices: torch.Tensor) -> None:
        """Starts to bring the rows of the next step's `indices` to this node, while this step computes. Waits for the prefetch before."""
        self._end_prefetch()
        self._coming = self.table.ilocalize(torch.unique(indices))

    def step(self) -> None:
        """Ends a step of training of this rank: waits for ranks that are more than `staleness` steps behind."""
        self.table.advance_clock()

    def rows(self, first: int = 0, last: int | None = None) -> torch.Tensor:
        """The rows `first` to `last` - 1, wherever they are: to save them, or to look for neighbours. Moves none."""
        end = self.num_embeddings if last is None else last
        parts = [self._pull(torch.arange(at, min(at + _PART, end))) for at in range(first, end, _PART)]
        return torch.cat(parts) if parts else torch.empty(0, self.embedding_dim, dtype=self.dtype)

    def load_rows(self, values: torch.Tensor, first: int = 0) -> None:
        """Sets the rows from `first` on, as rows() gave them. On one rank, or on each for its part; then let all ranks meet."""
        for at in range(0, len(values), _PART):
            part = values[at:at + _PART].to(self.dtype)
            self.table.set(torch.arange(first + at, first + at + len(part)), part)

    def close(self) -> None:
        """Collective: frees the rows."""
        self._end_prefetch()
        self.table.close()

    def __enter__(self) -> Embedding:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.table.__exit__(kind, *rest)

    def extra_repr(self) -> str:
        """What repr() shows."""
        return f"{self.num_embeddings}, {self.embedding_dim}, lr={self.lr}"

    def _pull(self, keys: torch.Tensor) -> torch.Tensor:
        return self.table.pull(keys, out=torch.empty(len(keys), self.embedding_dim, dtype=self.dtype))

    def _end_prefetch(self) -> None:
        if self._coming is not None:
            self._coming.wait()
            self._coming = None

    def _draw(self, comm: Communicator, std: float, seed: int) -> None:
        share = -(-self.num_embeddings // comm.size)
        end = min((comm.rank + 1) * share, self.num_embeddings)
        generator = torch.Generator().manual_seed(seed * comm.size + comm.rank)
        for first in range(comm.rank * share, end, _PART):
            values = torch.empty(min(_PART, end - first), self.embedding_dim, dtype=self.dtype).normal_(0, std, generator=generator)
            self.table.localize(torch.arange(first, first + len(values)))
            self.load_rows(values, first)
