"""A backend "mpi-underneath" of torch.distributed for comparisons: a thread calls Open MPI's blocking collectives in order."""

import collections
import queue
import threading

import mpi4py

mpi4py.rc.thread_level = "serialized"

import torch
import torch.distributed as dist
from mpi4py import MPI


class MpiWork(dist._Work):
    def __init__(self, future):
        super().__init__()
        self._future = future

    def wait(self, timeout=None):
        self._future.wait()
        return True

    def get_future(self):
        return self._future


class MpiGroup(dist.ProcessGroup):
    def __init__(self, rank, size):
        super().__init__(rank, size)
        self._calls = queue.SimpleQueue()
        # PyTorch 1.13 keeps the C++ part of a work only, and then no longer finds the methods of this class.
        self._works = collections.deque(maxlen=4096)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while (started := self._calls.get()) is not None:
            call, future, result = started
            try:
                call()
                future.set_result(result)
            except Exception as error:
                future.set_exception(error)

    def stop(self):
        self._calls.put(None)
        self._thread.join()

    def _start(self, call, result):
        future = torch.futures.Future()
        self._calls.put((call, future, result))
        self._works.append(MpiWork(future))
        return self._works[-1]

    def getBackendName(self):
        return "mpi-underneath"

    def allreduce(self, tensors, opts=None):
        return self._start(lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, tensors[0].numpy()), tensors)

    def broadcast(self, tensors, opts=None):
        return self._start(lambda: MPI.COMM_WORLD.Bcast(tensors[0].numpy(), root=opts.rootRank), tensors)

    def allgather(self, outputs, inputs, opts=None):
        def call():
            gathered = torch.empty(len(outputs[0]), *inputs[0].shape, dtype=inputs[0].dtype)
            MPI.COMM_WORLD.Allgather(inputs[0].numpy(), gathered.numpy())
            for output, part in zip(outputs[0], gathered):
                output.copy_(part)

        return self._start(call, outputs)

    def barrier(self, opts=None):
        return self._start(MPI.COMM_WORLD.Barrier, [])


_groups = []


def create(store, rank, size, timeout):
    _groups.append(MpiGroup(rank, size))
    return _groups[-1]


def register():
    dist.Backend.register_backend("mpi-underneath", create)


def stop():
    """Ends the threads of all groups."""
    while _groups:
        _groups.pop().stop()
