"""Trains a small network on the digits of scikit-learn, data-parallel. From a script for Gloo it differs in two lines.

    python3 -m hips_torch.launch -n 4 examples/train_digits.py
    python3 -m hips_torch.launch -n 4 examples/train_digits.py --backend gloo
"""

import argparse

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

import hips_torch  # registers the backend "hips"

parser = argparse.ArgumentParser(description="Trains a small network on handwritten digits.")
parser.add_argument("--backend", default="hips", choices=("hips", "gloo"))
parser.add_argument("--epochs", type=int, default=5)
options = parser.parse_args()

dist.init_process_group(options.backend)
rank, size = dist.get_rank(), dist.get_world_size()
if rank == 0 and options.backend == "hips":
    print("plan:", hips_torch.describe())

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
num_train = 1500
mine = torch.arange(rank, num_train, size)  # every rank trains on its share

torch.manual_seed(0)  # the same first weights and the same order of batches everywhere
model = DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(512, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()

for epoch in range(options.epochs):
    total = torch.zeros(1)
    order = torch.randperm(num_train // size)
    batches = order.split(max(1, 60 // size))
    for batch in batches:
        chosen = mine[batch]
        optimizer.zero_grad()
        loss = loss_of(model(images[chosen]), labels[chosen])
        loss.backward()  # gradients are reduced while it runs
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)
    if rank == 0:
        print(f"epoch {epoch + 1}: loss {total.item() / size / len(batches):.6f}")

with torch.no_grad():
    right = (model.module(images[num_train:]).argmax(1) == labels[num_train:]).sum()
if rank == 0:
    print(f"{right.item()} of {len(labels) - num_train} unseen digits recognised")
dist.destroy_process_group()
