"""HiPS as a backend of torch.distributed, for CPU tensors.

    import torch.distributed as dist
    import hips_torch

    dist.init_process_group("hips")

The ranks find each other as those of other backends do: torchrun's variables, which are set here where Slurm's srun started the
script, or init_method. HIPS_TOPO names the wiring.
"""

import atexit as _atexit
import os as _os

import torch.distributed as _dist

from . import slurm as _slurm

# The module needs libtorch, which importing torch has loaded.
from ._backend import HipsError, create as _create, describe as _describe, end_all as _end_all, version as _version

from .hooks import bf16_hook

__all__ = ["HipsError", "bf16_hook", "describe"]
__version__ = _version()


def describe(group=None):
    """Which plan the process group runs, in one line; of the default group where none is given."""
    return _describe(group if group is not None else _dist.distributed_c10d._get_default_group())


def _make(store, rank, size, timeout):
    """The process group of some ranks, numbered in it. Those of the default group, which comes first, are the job's."""
    job = (_dist.get_rank(), _dist.get_world_size()) if _dist.is_initialized() else (rank, size)
    return _create(store, rank, size, timeout, *job)


def _register():
    try:
        _dist.Backend.register_backend("hips", _make, devices=["cpu"])
    except TypeError:  # before PyTorch 2
        _dist.Backend.register_backend("hips", _make)


_slurm.set_variables(_os.environ)

# While Python still runs: calls that are outstanding refer to its tensors.
_atexit.register(_end_all)

if not hasattr(_dist.Backend, "HIPS"):
    _register()
