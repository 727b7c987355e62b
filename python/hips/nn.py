"""Modules of PyTorch whose weights are rows of a table: import hips.nn, which needs PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from .communicator import Communicator, Request
from .table import Table


class Embedding(torch.nn.Module):
    """As torch.nn.Embedding, with its rows in a table that all ranks of a communicator share, each rank on its own part of the batch.

        words = hips.nn.Embedding(comm, 10_000_000, 128, lr=0.05)
        loss(words(indices)).backward()                  # pushes -lr * gradient of the rows of `indices`

    forward(indices) brings the rows to this node (localize=True), pulls them, and is a tensor of shape (*indices.shape, dim). The
    backward pass adds the gradients of equal indices and pushes them: stochastic gradient descent, asynchronous between ranks. No
    optimizer sees these weights and no allreduce carries them, so a step moves the rows that it uses and no others. With `staleness`
    call step() at the end of each step of training, on all ranks.

    `init_std`: first values are normally distributed with this deviation, drawn by each rank for its share of the rows from `seed`;
    0: zeros, and a row takes no memory until it is used. Making and closing it is collective. Tensors of CPUs.
    """

    def __init__(self, comm: Communicator, num_embeddings: int, embedding_dim: int, *, lr: float, dtype: torch.dtype = torch.float32,
                 init_std: float = 1.0, seed: int = 0, localize: bool = True, rows_per_node: int = 0, staleness: int = 0):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.lr, self.localize, self.dtype = lr, localize, dtype
        self.table = Table(comm, num_embeddings, embedding_dim, str(dtype).removeprefix("torch."), rows_per_node=rows_per_node,
                           staleness=staleness)
        if init_std:
            self._draw(comm, init_std, seed)
        comm.barrier()

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        keys, place = torch.unique(indices, return_inverse=True)
        if self.localize:
            self.table.localize(keys)
        rows = self.table.pull(keys, out=torch.empty(len(keys), self.embedding_dim, dtype=self.dtype))
        if torch.is_grad_enabled() and self.training:
            rows.requires_grad_()
            rows.register_hook(lambda gradient: self.table.push(keys, gradient.mul(-self.lr)))
        return rows[place]

    def prefetch(self, indices: torch.Tensor) -> Request:
        """Starts to bring the rows of the next step's `indices` to this node. Wait for it before close()."""
        return self.table.ilocalize(torch.unique(indices))

    def step(self) -> None:
        """Ends a step of training of this rank: waits for ranks that are more than `staleness` steps behind."""
        self.table.advance_clock()

    def rows(self, first: int = 0, last: int | None = None) -> torch.Tensor:
        """The rows `first` to `last` - 1, wherever they are: to save them, or to look for neighbours. Moves none."""
        keys = torch.arange(first, self.num_embeddings if last is None else last)
        return self.table.pull(keys, out=torch.empty(len(keys), self.embedding_dim, dtype=self.dtype))

    def close(self) -> None:
        """Collective: frees the rows."""
        self.table.close()

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, lr={self.lr}"

    def _draw(self, comm: Communicator, std: float, seed: int) -> None:
        share = -(-self.num_embeddings // comm.size)
        end = min((comm.rank + 1) * share, self.num_embeddings)
        generator = torch.Generator().manual_seed(seed * comm.size + comm.rank)
        for first in range(comm.rank * share, end, 4096):
            keys = torch.arange(first, min(first + 4096, end))
            values: Any = torch.empty(len(keys), self.embedding_dim, dtype=self.dtype).normal_(0, std, generator=generator)
            self.table.localize(keys)
            self.table.set(keys, values)
