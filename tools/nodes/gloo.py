"""One rank of tools/nodes-report: times all_reduce of PyTorch's Gloo backend, and rank 0 writes seconds by size as JSON."""

import argparse
import datetime
import json
import os
import time

import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bands", required=True, help="first size, last size and calls of each, as in 4:65536:20,262144:1048576:3")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rank, size = int(os.environ["HIPS_RANK"]), int(os.environ["HIPS_SIZE"])
    dist.init_process_group("gloo", init_method="tcp://node0:29500", rank=rank, world_size=size, timeout=datetime.timedelta(minutes=5))
    seconds = {}
    for band in options.bands.split(","):
        first, last, calls = map(int, band.split(":"))
        while first <= last:
            tensor = torch.zeros(first // 4)
            dist.all_reduce(tensor)
            dist.barrier()
            begin = time.monotonic()
            for _ in range(calls):
                dist.all_reduce(tensor)
            took = torch.tensor([(time.monotonic() - begin) / calls], dtype=torch.float64)
            dist.all_reduce(took, dist.ReduceOp.MAX)
            seconds[first] = took.item()
            first *= 4
    if rank == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(seconds, file)
    dist.barrier()


if __name__ == "__main__":
    main()
