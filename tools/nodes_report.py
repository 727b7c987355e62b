"""Times allreduce between servers of network namespaces, by turns; see tools/nodes-report."""

import argparse
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from report_file import page_of_docs, report_file

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = [4 << (2 * step) for step in range(12)]  # 4 B to 16 MiB
LIMIT_S = 1800  # far beyond any of these runs


@dataclasses.dataclass(frozen=True)
class Cell:
    """Servers, and what joins them."""
    topology: str
    ranks: int  # on each server
    rate: str   # "": as fast as the machine
    delay: str

    @staticmethod
    def parse(text):
        found = re.fullmatch(r"([^@+/]+)(?:/(\d+))?(?:@([^+]+))?(?:\+(.+))?", text)
        if not found:
            sys.exit(f'nodes-report: "{text}" is no cell; write TOPOLOGY[/RANKS][@RATE][+DELAY], such as rail:9,2/3@200mbit+2ms')
        topology, ranks, rate, delay = found.groups()
        return Cell(topology, int(ranks or 1), rate or "", delay or "")

    def __str__(self):
        ranks = f"/{self.ranks}" if self.ranks > 1 else ""
        return f"{self.topology}{ranks}{'@' + self.rate if self.rate else ''}{'+' + self.delay if self.delay else ''}"

    @property
    def title(self):
        each = "one rank" if self.ranks == 1 else f"{self.ranks} ranks"
        rate = f"NICs of {self.rate.replace('mbit', ' Mbit/s').replace('gbit', ' Gbit/s')}" if self.rate else "NICs without a limit"
        return f"`{self.topology}`, {each} on each server, {rate}" + (f", {self.delay} of delay on each cable" if self.delay else "")

    @property
    def bands(self):
        """First size, last size, calls of each: long enough to be timed, short enough to end. A NIC with a rate sends 256 KiB at once after
        a pause, so the calls of a size take many times that."""
        slow = bool(self.delay)
        return [(4, 16384, 10 if slow else 200), (65536, 262144, 40), (1 << 20, 1 << 20, 10), (4 << 20, 16 << 20, 3)]


# Enough calls that what a NIC sends at once after a pause is a small part.
ALGORITHM_BANDS = [(4, 1024, 50), (4096, 16384, 200), (65536, 262144, 20), (1 << 20, 1 << 20, 5)]
CELLS = [Cell(topology, ranks, rate, delay) for topology in ("rail:9,2", "bcube:3,1", "switch:9", "torus:3x3") for ranks in (1, 3)
         for rate in ("200mbit", "1gbit") for delay in ("", "2ms")]
WAYS = ("open-mpi", "predicted", "named", "algorithms", "hips-run", "mpich", "gloo")
# The names of the columns.
DEFAULT, NAMED, OPEN_MPI, MPICH, GLOO = "HiPS", "HiPS, topology named", "Open MPI", "MPICH", "Gloo"
PREDICTED = "predicted"
HIPS_RUN = "`hips run` / native"
# Of a prediction, relative to the time.
CLOSE = 0.15


class Failed(Exception):
    """A program that was to be timed has failed."""


class Runner:
    """Runs the ways of a cell; each returns seconds by column and size."""

    def __init__(self, arguments, cell, folder):
        self.arguments, self.cell, self.folder = arguments, cell, folder
        self.output = os.path.join(folder, "out.json")
        perf = os.path.join(arguments.build, "tools", "hips-allreduce-perf", "hips-allreduce-perf")
        self.perf, self.perf_mpich = os.path.abspath(perf), os.path.abspath(perf + "-mpich")

    def lab(self, flags, command):
        cell = self.cell
        words = [os.path.abspath(os.path.join(self.arguments.build, "tools", "hips", "hips")), "lab", "run", "-q", "--namespaces", "-t", cell.topology,
                 "--ranks-per-server", str(cell.ranks), "--timeout", str(LIMIT_S), *flags]
        words += ["--rate", cell.rate] if cell.rate else []
        words += ["--delay", cell.delay] if cell.delay else []
        if os.path.exists(self.output):
            os.remove(self.output)
        done = subprocess.run([*words, "--", *command], text=True, capture_output=True, check=False, cwd=self.folder)
        if done.returncode != 0:
            raise Failed(f"nodes-report: {cell}: {' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout

    def results(self):
        with open(self.output, encoding="utf-8") as file:
            return json.load(file)["results"]

    @staticmethod
    def sizes(band):
        first, last, calls = band
        return ["-b", str(first), "-e", str(last), "-f", "4", "-n", str(calls), "-w", str(max(2, calls // 10))]

    # Of the ranks' times, the longest.
    SLOWEST = ["-a", "3"]

    def compared(self, launcher, perf, other):
        found = {DEFAULT: {}, other: {}}
        for band in self.cell.bands:
            self.lab(["--mpirun", "--without-topology"], [*launcher, perf, "--compare", "mpi", "--rounds", "3", *self.SLOWEST, *self.sizes(band), "-J", self.output])
            for result in self.results():
                found[DEFAULT][result["size"]] = result["out_of_place"]["time"] / 1e6
                found[other][result["size"]] = result["host_time"] / 1e6
        return found

    def ranks(self):
        return str(self.cell.ranks * servers_of(self.arguments, self.cell.topology))

    def mpirun(self):
        return ["mpirun.openmpi", "-n", self.ranks(), "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]

    def run_open_mpi(self):
        return self.compared(self.mpirun(), self.perf, OPEN_MPI)

    def run_hips_run(self):
        """The ratio of a program's calls under hips run, once HiPS has adopted its communicator and the trials are over, to native
        ones, by turns in one process."""
        program, found = os.path.join(self.folder, "by_turns"), {}
        if not os.path.exists(program):
            subprocess.run(["mpicc.openmpi", "-O2", os.path.join(HERE, "nodes", "by_turns.c"), "-o", program], check=True)
        hips = os.path.abspath(os.path.join(self.arguments.build, "tools", "hips", "hips"))
        for first, last, calls in self.cell.bands:
            warmup = 1500 if last <= 16384 else 150 if last <= 1 << 20 else 50
            self.lab(["--mpirun", "--without-topology"],
                     [*self.mpirun(), hips, "run", "--adopt", "always", program,
                      *map(str, (first, last, calls, warmup, 7 if last <= 1 << 20 else 3)), self.output])
            with open(self.output, encoding="utf-8") as file:
                found.update({int(size): under / native for size, (under, native) in json.load(file).items()})
        return {HIPS_RUN: found}

    def run_mpich(self):
        return {MPICH: self.compared(["mpiexec.mpich", "-n", self.ranks()], self.perf_mpich, MPICH)[MPICH]}

    def run_named(self):
        found = {}
        for band in self.cell.bands:
            self.lab([], [self.perf, *self.SLOWEST, *self.sizes(band), "-J", self.output])
            found.update({result["size"]: result["out_of_place"]["time"] / 1e6 for result in self.results()})
        return {NAMED: found}

    def run_predicted(self):
        """By the constants that HiPS measures between these servers; of one rank on each."""
        if self.cell.ranks > 1:
            return {}
        text = self.lab(["--without-topology"], [os.path.abspath(os.path.join(self.arguments.build, "tools", "hips", "hips")), "info", "select", "--json"])
        return {PREDICTED: {row["bytes"]: row["measured"]["seconds"] for row in json.loads(text)["sizes"]}}

    def run_gloo(self):
        bands = ",".join(":".join(map(str, band)) for band in self.cell.bands)
        self.lab(["-x", "GLOO_SOCKET_IFNAME=nic0"], ["/usr/bin/python3", os.path.join(HERE, "nodes", "gloo.py"), "--bands", bands, "--output", self.output])
        with open(self.output, encoding="utf-8") as file:
            return {GLOO: {int(size): seconds for size, seconds in json.load(file).items()}}

    def run_algorithms(self):
        """Of all algorithms on the topology, by turns; "auto" is the one that HiPS chooses. A server that reduces for all others takes
        seconds for large vectors, where HiPS is near the bound anyway."""
        found = {}
        for band in ALGORITHM_BANDS:
            text = self.lab([], [self.perf, "--tune", os.path.join(self.folder, "table"), "--rounds", "3", *self.sizes(band)])
            lines = [re.split(r"\s{2,}", line.lstrip("# ").strip()) for line in text.splitlines() if re.match(r"#?\s+(size|\d)", line)]
            names = lines[0][1:-1]
            for line in lines[1:]:
                for name, microseconds in zip(names, line[1:-1]):
                    found.setdefault("algorithm " + name, {})[int(line[0])] = float(microseconds) / 1e6
        return found

    def run(self, way):
        return getattr(self, "run_" + way.replace("-", "_"))()


def servers_of(arguments, topology):
    hips = os.path.join(arguments.build, "tools", "hips", "hips")
    text = subprocess.run([hips, "topo", "-t", topology, "--format", "json"], text=True, capture_output=True, check=True).stdout
    return json.loads(text)["servers"]


def bound_of(arguments, cell, size):
    """Seconds that no allreduce beats, by what the cables carry; none without a rate."""
    if not cell.rate:
        return None
    hips = os.path.join(arguments.build, "tools", "hips", "hips")
    rate = cell.rate.replace("mbit", "Mb").replace("gbit", "Gb")
    ranks = f"/{cell.ranks}" if cell.ranks > 1 else ""
    text = subprocess.run([hips, "compare", "-t", f"{cell.topology}@{rate}{ranks}", "--bytes", str(size)], text=True, capture_output=True, check=True).stdout
    value, unit = re.search(r"takes less than ([\d.]+) (ns|us|ms|s) there", text).groups()
    return float(value) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def can_delay(arguments):
    """Has this kernel netem, which delays packets?"""
    hips = os.path.join(arguments.build, "tools", "hips", "hips")
    return subprocess.run([hips, "lab", "run", "-q", "--namespaces", "-t", "switch:2", "--delay", "1ms", "--", "true"], capture_output=True,
                          check=False).returncode == 0


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def time_text(seconds):
    return f"{1e3 * seconds:,.1f} ms" if seconds >= 1e-2 else f"{1e6 * seconds:,.0f} us"


def table_of(arguments, cell, rounds):
    """The table of a cell: medians, and the least and largest ratio of the rounds to HiPS."""
    columns = [name for name in (NAMED, OPEN_MPI, MPICH, GLOO) if name in rounds[0]]
    algorithms = sorted(name for name in rounds[0] if name.startswith("algorithm ") and name != "algorithm auto")
    predicted = PREDICTED in rounds[0] and DEFAULT in rounds[0]
    under = HIPS_RUN in rounds[0]
    base = next((name for name in (DEFAULT, NAMED) if name in rounds[0]), None)
    head = ["Size", *([base] if base else []), *([HIPS_RUN] if under else []), *([PREDICTED] if predicted else []), *columns, *(["fastest of our algorithms", "chosen / fastest"] if algorithms else []), "bound"]
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    ratios = {name: [] for name in columns}
    worst_choice, most_under = (0, ""), (0, "")
    off = {}  # by size: how far the prediction is off

    def median(name, size):
        return statistics.median(one[name][size] for one in rounds)

    for size in SIZES:
        cells = [size_text(size), *([time_text(median(base, size))] if base else [])]
        if under:
            each = [one[HIPS_RUN][size] for one in rounds]
            most_under = max(most_under, (statistics.median(each), size_text(size)))
            cells.append(f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})")
        if predicted:
            cells.append(time_text(median(PREDICTED, size)))
            off[size] = median(PREDICTED, size) / median(base, size) - 1
        for name in columns:
            if not base:
                cells.append(time_text(median(name, size)))
                continue
            each = [one[name][size] / one[base][size] for one in rounds]
            ratios[name].append(statistics.median(each))
            cells.append(f"{time_text(median(name, size))} ({min(each):.2f} to {max(each):.2f})")
        if algorithms and size in rounds[0]["algorithm auto"]:
            fastest = min(algorithms, key=lambda name: median(name, size))
            over = median("algorithm auto", size) / median(fastest, size)
            worst_choice = max(worst_choice, (over, size_text(size)))
            cells += [f"{time_text(median(fastest, size))}, {fastest.removeprefix('algorithm ')}", f"{over:.2f}"]
        elif algorithms:
            cells += ["", ""]
        bound = bound_of(arguments, cell, size)
        cells.append(time_text(bound) if bound and size >= 65536 else "")
        rows.append("| " + " | ".join(cells) + " |")
    said = [f"{name} takes {statistics.geometric_mean(each):.2f} times as long as HiPS (geometric mean; least {min(each):.2f})" for name, each in ratios.items() if each]
    if under:
        said.append(f"under `hips run` a call takes at most {most_under[0]:.2f} times the native one, at {most_under[1]}")
    if algorithms:
        said.append(f"the chosen plan takes at most {worst_choice[0]:.2f} times the fastest, at {worst_choice[1]}")
    if predicted:
        worst = max(off, key=lambda size: abs(off[size]))
        close = sum(abs(each) <= CLOSE for each in off.values())
        said.append(f"{close} of {len(off)} predictions are within {100 * CLOSE:.0f} %, the worst is {100 * off[worst]:+.0f} % at {size_text(worst)}")
    return f"## {cell.title}\n\n" + "\n".join(rows) + "\n\n" + "; ".join(said) + ".\n"


PAGE = """# Between nodes

Allreduce of float32 between servers: network namespaces on one machine with {cores} cores, which all ranks share, TCP between
them. `tools/nodes-report` makes this page again. {rounds}; in brackets the time divided by that of HiPS in the same round, the least
and the largest.

{columns}

Cells with a delay on the cables need a kernel with netem, and are left out on others.

{tables}
"""

# What the columns of each way are.
COLUMNS = {
    "": "**HiPS**: the library, called by `hips-allreduce-perf`, at its defaults, no topology named, started by mpirun. Programs under\n"
        "  `hips run` also have trials of native MPI: [programs.md](programs.md).",
    "predicted": "**Predicted**: by the constants that HiPS measures when it starts (`hips info select` in the job), for one rank on each server.",
    "named": "**HiPS, topology named**: with `HIPS_TOPO`.",
    "open-mpi": "**Open MPI**: 4.1.4 over all NICs, without binding (it would bind the first ranks of all servers to one core) and with\n"
                "  `mpi_yield_when_idle`: with this many ranks on these cores it takes tens of milliseconds without.",
    "hips-run": "**`hips run` / native**: MPI_Allreduce of a program under `hips run --adopt always`, once the trials are over, to Open MPI's in the same process, by\n"
                "  turns; in brackets the least and the largest ratio of a round.",
    "mpich": "**MPICH**: 4.0 over TCP. It spins, which ranks that share cores cannot afford.",
    "gloo": "**Gloo**: PyTorch 1.13's, over one NIC, all that it can use.",
    "algorithms": "**Fastest of our algorithms**: of those that `hips-allreduce-perf --tune` times, for the topology named and started without MPI;\n"
                  "  **chosen**: what HiPS takes there by itself, timed in the same run; below 1 it was faster, as calls in several steps can be.",
    "bound": "**Bound**: what cables of this rate need at least. After a pause 256 KiB pass a NIC at once, so short times may be below it.",
}


def page_of(rounds, ways, tables):
    columns = "\n".join(f"- {text}" for way, text in COLUMNS.items() if way in ("", "bound", *ways))
    said = "One round" if rounds == 1 else f"Medians of {rounds} rounds, in which all took turns"
    return PAGE.format(cores=os.cpu_count(), rounds=said, columns=columns, tables="\n".join(tables))


def main():
    parser = argparse.ArgumentParser(prog="tools/nodes-report")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--cells", help="TOPOLOGY[/RANKS][@RATE][+DELAY], separated by ;")
    parser.add_argument("--ways", default=",".join(WAYS), help="what is timed: " + ", ".join(WAYS))
    parser.add_argument("--rounds", type=int, default=3, help="in which all take turns (default 3)")
    parser.add_argument("--output", type=report_file, default=page_of_docs("nodes.md"), help="the page (default docs/nodes.md)")
    arguments = parser.parse_args()
    cells = [Cell.parse(text) for text in arguments.cells.split(";")] if arguments.cells else CELLS
    if any(cell.delay for cell in cells) and not can_delay(arguments):
        print("nodes-report: this kernel cannot delay packets (netem); those cells are left out", flush=True)
        cells = [cell for cell in cells if not cell.delay]
    ways = arguments.ways.split(",")
    for way in ways:
        if way not in WAYS:
            parser.error(f'--ways: "{way}" is unknown; known: {", ".join(WAYS)}')
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: expected 1 or more")
    tables, failures = [], []
    with tempfile.TemporaryDirectory(prefix="hips-nodes-") as folder:
        for number, cell in enumerate(cells):
            runner = Runner(arguments, cell, folder)
            rounds = []
            try:
                for turn in range(arguments.rounds):
                    found = {}
                    for way in ways:
                        print(f"[{number + 1}/{len(cells)}] {cell}: round {turn + 1} of {arguments.rounds}, {way}", flush=True)
                        found.update(runner.run(way))
                    rounds.append(found)
            except Failed as failure:
                failures.append(str(cell))
                print(failure, file=sys.stderr, flush=True)
                continue
            tables.append(table_of(arguments, cell, rounds))
            print(tables[-1], flush=True)
    if not tables:
        sys.exit(f"nodes-report: nothing was timed; {arguments.output} stays as it is")
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(page_of(arguments.rounds, ways, tables))
    print(f"Written to {arguments.output}")
    if failures:
        sys.exit(f"nodes-report: left out because a program failed, see above: {'; '.join(failures)}")


if __name__ == "__main__":
    main()
