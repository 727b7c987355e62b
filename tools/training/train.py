"""One rank of tools/training-report, under mpirun: trains and exchanges, and rank 0 writes the times as JSON."""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mpi_group
import networks
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def elapsed(work):
    """Seconds of the slowest rank."""
    dist.barrier()
    begin = time.monotonic()
    work()
    seconds = torch.tensor([time.monotonic() - begin])
    all_seconds = [torch.empty(1) for _ in range(dist.get_world_size())]
    dist.all_gather(all_seconds, seconds)
    return max(one.item() for one in all_seconds)


def train(name, steps, overlap):
    """Loss of each step on rank 0, and seconds of the steps. Without overlap the gradients are exchanged after backward()."""
    _, network, data = networks.TRAINED[name]
    images, labels = data()
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = network()
    ranks_model = DistributedDataParallel(model) if overlap else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    mine = torch.arange(rank, len(labels), size)
    order = torch.randperm(len(mine) // 16 * 16)
    losses, seconds = [], []

    def step(batch):
        optimizer.zero_grad()
        loss = loss_of(ranks_model(images[batch]), labels[batch])
        loss.backward()
        if not overlap:
            gradients = torch.cat([parameter.grad.reshape(-1) for parameter in reversed(list(model.parameters()))])
            dist.all_reduce(gradients)
            at = 0
            for parameter in reversed(list(model.parameters())):
                parameter.grad.copy_(gradients[at:at + parameter.numel()].view_as(parameter.grad) / size)
                at += parameter.numel()
        optimizer.step()
        losses.append(loss.detach().clone())

    batches = order.view(-1, 16)
    for number in range(steps):
        batch = mine[batches[number % len(batches)]]
        seconds.append(elapsed(lambda: step(batch)))
    mean = torch.stack(losses)
    dist.all_reduce(mean)
    own = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    weights = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(weights, own)
    return {"losses": (mean / size).tolist(), "seconds": seconds,
            "equal": all(torch.equal(one, own) for one in weights)}


def exchange(name, times):
    """Seconds to reduce the gradients' buckets alone, and hidden behind a computation half as long again."""
    _, parameters = networks.EXCHANGED[name]
    planned = networks.buckets_of(parameters())
    buckets = [torch.empty(elements) for elements, _ in planned]

    def step(computation):
        works = []
        for bucket, (_, share) in zip(buckets, planned):
            time.sleep(computation * share)
            works.append(dist.all_reduce(bucket, async_op=True))
        for work in works:
            work.wait()

    alone = []
    for _ in range(times):
        for bucket in buckets:
            bucket.fill_(dist.get_rank() + 1.0)
        alone.append(elapsed(lambda: step(0)))
    size = dist.get_world_size()
    expected = size * (size + 1) / 2
    right = all(bool((bucket == expected).all()) for bucket in buckets)
    computation = 1.5 * min(alone)
    together = elapsed(lambda: step(computation))
    return {"alone": alone, "computation": computation, "together": together, "right": right}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", required=True)
    parser.add_argument("--trained", default="")
    parser.add_argument("--exchanged", default="")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--exchanges", type=int, default=1, help="of each network's gradients alone")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.update(RANK=os.environ["OMPI_COMM_WORLD_RANK"], WORLD_SIZE=os.environ["OMPI_COMM_WORLD_SIZE"])
    found = {"trained": {}, "exchanged": {}}
    if options.backend == "hips":
        import hips_torch
    elif options.backend == "mpi-underneath":
        mpi_group.register()
    dist.init_process_group(options.backend)
    for name in filter(None, options.trained.split(",")):
        found["trained"][name] = {"apart": train(name, options.steps, False), "overlapped": train(name, options.steps, True)}
    for name in filter(None, options.exchanged.split(",")):
        found["exchanged"][name] = exchange(name, options.exchanges)
    if options.backend == "hips":
        found["plan"] = hips_torch.describe()
    if dist.get_rank() == 0:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.barrier()
    mpi_group.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
