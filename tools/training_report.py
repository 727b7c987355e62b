"""Trains between namespaces with several backends of torch.distributed, by turns; see tools/training-report."""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "training"))

import networks
from report_file import page_of_docs, report_file

SERVERS = 9
LIMIT_S = 1800  # far beyond any of these runs


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    backend: str
    topology: str


WAYS = (Way("Gloo, rail:9,2", "gloo", "rail:9,2"), Way("Open MPI, rail:9,2", "mpi-underneath", "rail:9,2"),
        Way("HiPS, rail:9,2", "hips", "rail:9,2"), Way("HiPS, BCube(3,1)", "hips", "bcube:3,1"))


def run(way, arguments, trained, exchanged):
    """What tools/training/train.py measured."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "times.json")
        settings = {"PYTHONPATH": os.path.join(arguments.build, "python"), "MASTER_ADDR": "node0", "MASTER_PORT": "29500",
                    "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "nic0", "PYTHONWARNINGS": "ignore"}
        command = [arguments.hips, "lab", "run", "--namespaces", "-t", way.topology, "--mpirun", "--rate", arguments.rate, "--timeout", str(LIMIT_S),
                   "--", "mpirun", "-n", str(SERVERS), "--mca", "mpi_yield_when_idle", "1"]
        for name, value in settings.items():
            command += ["-x", f"{name}={value}"]
        command += ["/usr/bin/python3", os.path.join(HERE, "training", "train.py"), "--backend", way.backend, "--trained", ",".join(trained),
                    "--exchanged", ",".join(exchanged), "--steps", str(arguments.steps), "--output", output]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode != 0 or not os.path.exists(output):
            sys.exit(f"training-report: {way.name}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        with open(output, encoding="utf-8") as file:
            return json.load(file)


def milliseconds(values):
    """Median, least and largest, with three digits."""
    digits = 1 if statistics.median(values) < 0.1 else 0
    median, least, largest = (f"{1e3 * value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{median} ms ({least} to {largest})"


def trained_table(name, found):
    """A row for each way. The time of a step is the median of a round's steps, but for the first three."""
    rows = ["| Backend | step, exchange after backward | step, exchange during backward | shorter than with Gloo | losses |",
            "|---|---|---|---|---|"]
    steps = {way: {kind: [statistics.median(one["trained"][name][kind]["seconds"][3:]) for one in rounds]
                   for kind in ("apart", "overlapped")} for way, rounds in found.items()}
    reference = found[WAYS[0]][0]["trained"][name]["overlapped"]["losses"]
    for way, rounds in found.items():
        gains = [100 * (1 - ours / gloo) for ours, gloo in zip(steps[way]["overlapped"], steps[WAYS[0]]["overlapped"])]
        difference = max(abs(a - b) for one in rounds for a, b in zip(one["trained"][name]["overlapped"]["losses"], reference))
        equal = all(one["trained"][name]["overlapped"]["equal"] for one in rounds)
        shorter = "" if way is WAYS[0] else f"{statistics.median(gains):.1f} % ({min(gains):.1f} to {max(gains):.1f})"
        losses = "those of Gloo" if difference == 0 else f"those of Gloo within {difference:.1g}"
        weights = "" if equal else "; **weights differ between ranks**"
        rows.append(f"| {way.name} | {milliseconds(steps[way]['apart'])} | {milliseconds(steps[way]['overlapped'])} | {shorter} | "
                    f"{losses}{weights} |")
    return "\n".join(rows)


def curve(name, found):
    """Losses of every tenth of the steps."""
    lines = []
    for way, rounds in found.items():
        losses = rounds[0]["trained"][name]["overlapped"]["losses"]
        chosen = [*range(0, len(losses), max(1, len(losses) // 10)), len(losses) - 1]
        if not lines:
            chosen = sorted(set(chosen))
            lines = ["| Step | " + " | ".join(str(step + 1) for step in chosen) + " |", "|---" * (len(chosen) + 1) + "|"]
            steps = chosen
        lines.append(f"| {way.name} | " + " | ".join(f"{losses[step]:.4f}" for step in steps) + " |")
    return "\n".join(lines)


def exchanged_table(name, found):
    rows = ["| Backend | exchange alone | shorter than with Gloo | hidden behind computation | computation and exchange |", "|---|---|---|---|---|"]
    alone = {way: [min(one["exchanged"][name]["alone"]) for one in rounds] for way, rounds in found.items()}
    for way, rounds in found.items():
        hidden = []
        for one in (entry["exchanged"][name] for entry in rounds):
            seconds = min(one["alone"])
            hidden.append(100 * (one["computation"] + seconds - one["together"]) / seconds)
        gains = [100 * (1 - ours / gloo) for ours, gloo in zip(alone[way], alone[WAYS[0]])]
        shorter = "" if way is WAYS[0] else f"{statistics.median(gains):.1f} %"
        right = all(one["exchanged"][name]["right"] for one in rounds)
        together = statistics.median(one["exchanged"][name]["together"] for one in rounds)
        rows.append(f"| {way.name} | {statistics.median(alone[way]):.2f} s ({min(alone[way]):.2f} to {max(alone[way]):.2f})"
                    f"{'' if right else ', **wrong**'} | {shorter} | {statistics.median(hidden):.0f} % | {together:.2f} s |")
    return "\n".join(rows)


def bytes_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def microseconds(seconds):
    return f"{1e6 * seconds:,.1f}" if seconds < 1e-4 else f"{1e6 * seconds:,.0f}"


def one_node(ranks, arguments):
    """A table of all_reduce beside Gloo's, by tools/training/all_reduce.py."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "times.json")
        env = {name: value for name, value in os.environ.items() if not name.startswith("HIPS_")}
        env.update(PYTHONPATH=os.path.join(arguments.build, "python"), OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
        done = subprocess.run(["/usr/bin/python3", "-m", "hips_torch.launch", "-n", str(ranks), os.path.join(HERE, "training", "all_reduce.py"),
                               "--output", output], env=env, text=True, capture_output=True, check=False)
        if done.returncode != 0 or not os.path.exists(output):
            sys.exit(f"training-report: {ranks} ranks on one node: exit status {done.returncode}\n{done.stderr[-4000:]}")
        with open(output, encoding="utf-8") as file:
            found = json.load(file)
    rows = ["| Bytes | HiPS, us | Gloo, us | Gloo / HiPS | HiPS / HiPS |", "|---|---|---|---|---|"]
    quotients = []
    for one in found:
        ours, gloo, again = (statistics.median(one[name]) for name in ("hips", "gloo", "again"))
        rounds = sorted(theirs / mine for theirs, mine in zip(one["gloo"], one["hips"]))
        quotients.append(2 * gloo / (ours + again))
        rows.append(f"| {bytes_text(one['bytes'])}{'' if one['right'] else ', **wrong**'} | {microseconds(ours)} | {microseconds(gloo)} | "
                    f"{quotients[-1]:.2f} ({rounds[0]:.2f} to {rounds[-1]:.2f}) | {ours / again:.2f} |")
    mean = statistics.geometric_mean(quotients)
    return f"### {ranks} ranks: {mean:.1f} times as fast, the least {min(quotients):.2f}\n\n" + "\n".join(rows)


PAGE = """# Training with PyTorch

Data-parallel training with PyTorch 1.13.1 between nine servers with two NICs of {rate} each: network namespaces on one machine with
{cores} cores, which the nine ranks share, TCP between them. `tools/training-report` makes this page again. Medians of {rounds} rounds,
in which the backends took turns; in brackets the least and the largest of the rounds.

- **Gloo, rail:9,2**: PyTorch's own backend. It uses one NIC of each server.
- **Open MPI, rail:9,2**: `MPI_Allreduce` of Open MPI 4.1.4 over both NICs, called in order by a thread of a small backend
  ([`mpi_group.py`](../tools/training/mpi_group.py)), with `mpi_yield_when_idle`.
- **HiPS, rail:9,2** and **HiPS, BCube(3,1)**: the same nine servers, with the NICs of each at two switches of nine ports, or at six
  switches of three ports.

## Training

Nine ranks, 16 images in a step of each, one thread each. The time of a step is that of the slowest rank, the median of {steps} steps.
{trained}

## Gradients of large networks

The buckets of DistributedDataParallel (1 MiB, then 25 MiB or a parameter) with the sizes of the real networks' gradients. The
computation is idle time, half as long again as the exchange alone, spread over the buckets by the multiply-adds of their layers; an
exchange is *hidden* as far as both together take less than one after the other. The last bucket begins when the computation has ended.
{exchanged}

## One node

`all_reduce` of float32 tensors with {cores} cores for all ranks, in shared memory; Gloo uses TCP over loopback. Medians of seven
rounds, in which both took turns, in brackets the least and the largest quotient of a round; the last column is HiPS before Gloo's
turn to HiPS after it. The headings have the geometric mean over the sizes.

{one_node}

## Beside published figures

BML (Wang et al. 2018) trained on nine servers with two RDMA NICs each, BCube(3,1) against a ring in a Fat-Tree, and took 18.7 to
56.4 % less time. The column *shorter than with Gloo* is the same quotient for the machines above: other NICs, another framework and
other processors, so the two agree in kind and not in number.
"""


def chosen(names, known):
    wanted = list(known) if names is None else [name for name in names.split(",") if name]
    for name in wanted:
        if name not in known:
            sys.exit(f"training-report: \"{name}\" is unknown; known: {', '.join(known)}")
    return wanted


def main():
    parser = argparse.ArgumentParser(prog="tools/training-report")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--trained", help="networks to train: " + ", ".join(networks.TRAINED))
    parser.add_argument("--exchanged", help="networks whose gradients are exchanged: " + ", ".join(networks.EXCHANGED))
    parser.add_argument("--steps", type=int, default=40, help="of each training (default 40)")
    parser.add_argument("--rounds", type=int, default=3, help="in which the backends take turns (default 3)")
    parser.add_argument("--rate", default="200mbit", help="of each NIC (default 200mbit)")
    parser.add_argument("--output", type=report_file, default=page_of_docs("training.md"), help="the page (default docs/training.md)")
    arguments = parser.parse_args()
    if arguments.steps < 4 or arguments.rounds < 1:
        parser.error(f"--steps {arguments.steps} --rounds {arguments.rounds}: expected 4 steps or more, and 1 round or more")
    arguments.build = os.path.abspath(arguments.build)
    arguments.hips = os.path.join(arguments.build, "tools", "hips", "hips")
    trained, exchanged = chosen(arguments.trained, networks.TRAINED), chosen(arguments.exchanged, networks.EXCHANGED)
    found, begin = {way: [] for way in WAYS}, time.monotonic()
    for number in range(arguments.rounds):
        for way in WAYS:
            print(f"== round {number + 1} of {arguments.rounds}: {way.name} ({time.monotonic() - begin:.0f} s so far)", flush=True)
            found[way].append(run(way, arguments, trained, exchanged))
    parts = [f"\n### {networks.TRAINED[name][0][0].upper()}{networks.TRAINED[name][0][1:]}\n\n{trained_table(name, found)}\n\n"
             f"Losses:\n\n{curve(name, found)}" for name in trained]
    sums = [f"\n### {networks.EXCHANGED[name][0]}\n\n{exchanged_table(name, found)}" for name in exchanged]
    plans = "\n".join(f"- {way.name}: {rounds[0]['plan']}" for way, rounds in found.items() if "plan" in rounds[0])
    page = PAGE.format(rate=arguments.rate.replace("mbit", " Mbit/s"), cores=os.cpu_count(), rounds=arguments.rounds, steps=arguments.steps,
                       trained="\n".join(parts), exchanged="\n".join(sums),
                       one_node="\n\n".join(one_node(ranks, arguments) for ranks in (2, 4)))
    page = page.replace("## Training\n", f"Plans:\n\n{plans}\n\n## Training\n", 1)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(page)
    print(page)


if __name__ == "__main__":
    main()
