"""Runs a function in several processes that form a process group of backend "hips"."""

import datetime
import multiprocessing
import os
import signal
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

import hips_torch  # noqa: F401  registers the backend
from hips_torch.launch import free_port

# Processes that hang end a test, however slow the machine is.
LIMIT_S = 240
_forked = multiprocessing.get_context("fork")


def _rank(case, rank, size, store, env, timeout, arguments):
    os.environ.update(env)
    torch.set_num_threads(1)
    try:
        dist.init_process_group("hips", init_method=store, rank=rank, world_size=size, timeout=timeout)
        case(rank, size, *arguments)
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def run(size, case, *arguments, env=None, timeout=datetime.timedelta(seconds=LIMIT_S), killed=(), tcp=False):
    """Calls case(rank, size, *arguments) on each rank. All have to return, but for the killed ones, which SIGKILL has to end.

    The ranks meet by a file, or as torchrun's do by TCP.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = f"tcp://127.0.0.1:{free_port()}" if tcp else f"file://{os.path.join(folder, 'store')}"
        processes = [_forked.Process(target=_rank, args=(case, rank, size, store, env or {}, timeout, arguments)) for rank in range(size)]
        for process in processes:
            process.start()
        end = time.monotonic() + LIMIT_S
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
        hung = [rank for rank, process in enumerate(processes) if process.exitcode is None]
        for rank in hung:
            processes[rank].kill()
            processes[rank].join()
        assert not hung, f"ranks {hung} hung"
        for rank, process in enumerate(processes):
            expected = -signal.SIGKILL if rank in killed else 0
            assert process.exitcode == expected, f"rank {rank}: exit code {process.exitcode}, expected {expected}"


def raises(kind, text, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"no error; expected {text}")
