"""One rank of tools/training-report on one node: times all_reduce of HiPS and of Gloo by turns, and rank 0 writes JSON."""

import argparse
import json
import time

import torch
import torch.distributed as dist

import hips_torch  # noqa: F401  registers the backend "hips"

SIZES = (4, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20, 64 << 20)


def seconds_of(group, tensor, repeats):
    """Of one call, on the slowest rank."""
    dist.barrier()
    begin = time.monotonic()
    for _ in range(repeats):
        dist.all_reduce(tensor, group=group)
    took = torch.tensor([(time.monotonic() - begin) / repeats], dtype=torch.float64)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return took.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("hips")
    hips, gloo = dist.group.WORLD, dist.new_group(backend="gloo")
    found = []
    for size in SIZES:
        tensor = torch.ones(size // 4)
        repeats = max(2, min(400, (16 << 20) // size))
        times = {"hips": [], "gloo": [], "again": []}
        for number in range(options.rounds + 1):
            for name, group in (("hips", hips), ("gloo", gloo), ("again", hips)):
                tensor.fill_(0)
                seconds = seconds_of(group, tensor, repeats)
                if number > 0:  # the first round is warm-up
                    times[name].append(seconds)
        tensor.fill_(dist.get_rank() + 1)
        dist.all_reduce(tensor)
        expected = dist.get_world_size() * (dist.get_world_size() + 1) / 2
        found.append({"bytes": size, "right": bool((tensor == expected).all()), **times})
    if dist.get_rank() == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
