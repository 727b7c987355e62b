"""HiPS: collectives of ranks on servers whose wiring is known, for arrays of numpy and CPU tensors; topologies, plans and proofs.

    import hips
    import numpy

    comm = hips.Communicator()                       # the ranks of the environment
    total = comm.allreduce(numpy.ones(1000))

    topology = hips.Topology("bcube:3,1")
    plan = topology.plan()
    print(plan, plan.check(), plan.cost("64M").seconds)

Started on this node by `python3 -m hips.launch -n 4 script.py`.
"""

from ._comm import Op, version as _version
from .arrays import empty
from .communicator import Communicator, Request, wait_all, wait_any
from .errors import ArgumentError, Error
from .model import Model
from .plans import Comparison, Plan, Topology, algorithms, compare
from .table import Table

__all__ = ["ArgumentError", "Communicator", "Comparison", "Error", "Model", "Op", "Plan", "Request", "Table", "Topology", "algorithms", "compare", "empty",
           "wait_all", "wait_any"]
__version__ = _version()
