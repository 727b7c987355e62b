"""Times allreduce between ranks of this machine beside the native MPI and writes docs/performance.md with its plots;
tools/performance-report builds and calls it.

Every figure is of hips-allreduce-perf --compare mpi --bound: HiPS, the native MPI and plain copying in turns within one run.
"""
import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile

from report_file import page_of_docs, report_file

# First size, last size, calls in a turn: long enough to be timed, short enough to end.
BANDS = [(4, 2048, 3000), (4096, 65536, 300), (131072, 2 << 20, 40), (4 << 20, 32 << 20, 4), (64 << 20, 256 << 20, 1)]
# MPICH spins: with more ranks than cores a call takes tens of milliseconds, whatever its size.
# Over TCP a small call takes tens of microseconds, a large one goes through the kernel twice.
BANDS_TCP = [(4, 65536, 300), (131072, 2 << 20, 20), (4 << 20, 64 << 20, 2)]
BANDS_OVERSUBSCRIBED_MPICH = [(4, 65536, 10), (131072, 32 << 20, 10), (64 << 20, 256 << 20, 1)]
BANDS_SHARED = [(4 << 20, 32 << 20, 4), (64 << 20, 256 << 20, 1)]
RANKS = (2, 4, 9)
RANKS_TCP = (2, 4)
MPIRUN = ["mpirun", "--oversubscribe"]
# Both sides over the loopback interface, and neither through shared memory.
OVER_TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "-x",
            "HIPS_TRANSPORT=tcp", "-x", "HIPS_SOCKET_IFNAME=lo"]
NOISE = 0.05
# Through the interposer against the direct call.
BANDS_INTERPOSER = [(4, 4096, 2000), (8192, 65536, 200), (131072, 1 << 20, 20)]
# How two cores hand lines to each other settles at the beginning of a turn, and for all of it.
MORE_ROUNDS_INTERPOSER = 10
OVERHEAD_NS = 60
# Vectors that no cache holds.
LARGE = 64 << 20


def run(arguments, launcher, perf, ranks, band, compare=("mpi", "--bound"), rounds=None):
    """The results of one run, a dict for each size, what carried the calls, and what they were held against."""
    first, last, calls = band
    scale = 1 if ranks == 2 else 10  # more ranks than cores: a call takes longer
    with tempfile.TemporaryDirectory(prefix="hips-performance-") as folder:
        file = os.path.join(folder, "results.json")
        command = [*launcher, "-n", str(ranks), *perf, "--compare", *compare, "-b", str(first), "-e", str(last), "-f",
                   "2", "-n", str(max(1, calls // scale)), "-w", "3", "--rounds", str(rounds or arguments.rounds), "-J", file]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"performance-report: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        with open(file, encoding="utf-8") as stream:
            report = json.load(stream)
    return report["results"], report["config"]["plan"], report["host_mpi"]


def mean_ratio(results):
    return math.exp(sum(math.log(result["ratio"]) for result in results) / len(results))


def size(count):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count} B"


def table(results):
    lines = ["| size | HiPS | MPI | MPI / HiPS (rounds) | copy / HiPS |", "|---:|---:|---:|---:|---:|"]
    for result in results:
        lines.append(f"| {size(result['size'])} | {result['out_of_place']['time']:.2f} us | {result['host_time']:.2f} us "
                     f"| {result['ratio']:.2f} ({result['ratio_low']:.2f} to {result['ratio_high']:.2f}) "
                     f"| {result['bound_percent']:.0f} % |")
    return lines


def measure(arguments, launcher, perf, ranks, bands, **how):
    results = []
    for band in bands:
        more, plan, host = run(arguments, launcher, [perf] if isinstance(perf, str) else perf, ranks, band, **how)
        results += more
    return results, plan, host


def plot(folder, name, title, results, host):
    """Time and bandwidth against size, as SVG."""
    rows = "\n".join(f"{result['size']} {result['out_of_place']['time']} {result['host_time']} {result['bound_time']}"
                     for result in results)
    labelled = results[::3] if len(results) > 9 else results
    sizes = ", ".join(f"'{size(result['size'])}' {result['size']}" for result in labelled)
    for kind, label, value in (("time", "time (us)", "{0}"), ("bandwidth", "size / time (GB/s)", "($1/{0}/1e3)")):
        columns = [("HiPS", "$2"), (host, "$3"), ("copy", "$4")]
        curves = ", ".join(f"$data using 1:({value.format(column)}) with linespoints pointtype 7 pointsize 0.4 "
                           f"linewidth 2 title '{curve}'" for curve, column in columns)
        script = f"""
            $data << EOD\n{rows}\nEOD
            set terminal svg size 720,420 dynamic background rgb 'white'
            set output '{os.path.join(folder, f"{name}-{kind}.svg")}'
            set title 'allreduce, {title}' noenhanced
            set logscale xy
            set xlabel 'size'
            set ylabel '{label}'
            set xtics ({sizes})
            set autoscale xfix
            set format y '%.10g'
            set grid
            set key {'left' if kind == 'time' else 'right bottom'}
            plot {curves}
            """
        subprocess.run(["gnuplot"], input=script, text=True, check=True)


def section(folder, name, title, measured):
    """A chapter with its plots and its table."""
    results, plan, host = measured
    plot(folder, name, title, results, host)
    base = os.path.basename(folder)
    return [f"## {title[0].upper()}{title[1:]}", "", f"{plan}.", "", f"![time]({base}/{name}-time.svg)",
            f"![bandwidth]({base}/{name}-bandwidth.svg)", "", *table(results), ""]


def summarize(title, results, host):
    slower = [size(result["size"]) for result in results if result["ratio"] < 1 - NOISE]
    line = (f"{title}: {mean_ratio(results):.2f} times as fast as {host} (geometric mean of {len(results)} sizes), "
            f"slower by more than 5 % at {', '.join(slower) or 'none'}")
    print(line, flush=True)
    return f"- {line}."


def share_of_copying(title, results):
    large = [result for result in results if result["size"] >= LARGE]
    shares = ", ".join(f"{result['bound_percent']:.0f}" for result in large)
    line = f"{title}: {shares} % of the speed of plain copying at {', '.join(size(result['size']) for result in large)}"
    print(line, flush=True)
    return f"- {line}."


def shared_memory(arguments, folder, ranks):
    """Large calls in memory that the others read where it lies: a line for the summary and a chapter."""
    title = f"{ranks} ranks, memory of hips_mem_alloc()"
    measured = measure(arguments, MPIRUN, arguments.perf, ranks, BANDS_SHARED, compare=("mpi", "--bound", "-R", "1"))
    return share_of_copying(title, measured[0]), section(folder, f"{ranks}-ranks-shared", title, measured)


def overhead(arguments):
    """What the interposer adds to a call: a line for the summary and a chapter."""
    # The guard would compare with the native MPI meanwhile.
    perf = ["env", "HIPS_GUARD=off", arguments.hips, "run", arguments.perf]
    rounds = arguments.rounds * MORE_ROUNDS_INTERPOSER
    results, _, _ = measure(arguments, MPIRUN, perf, 2, BANDS_INTERPOSER, compare=("interposer",), rounds=rounds)
    lines = ["| size | direct | MPI_Allreduce | more | ratio (rounds) |", "|---:|---:|---:|---:|---:|"]
    dear = []
    for result in results:
        direct, through = result["out_of_place"]["time"], result["host_time"]
        more_ns = 1000 * direct * (result["ratio"] - 1)
        lines.append(f"| {size(result['size'])} | {direct:.2f} us | {through:.2f} us | {more_ns:.0f} ns "
                     f"| {result['ratio']:.2f} ({result['ratio_low']:.2f} to {result['ratio_high']:.2f}) |")
        if more_ns > OVERHEAD_NS and result["ratio"] > 1 + NOISE:
            dear.append(size(result["size"]))
    line = (f"Through the interposer, 2 ranks: more than {OVERHEAD_NS} ns and 5 % above the direct call at "
            f"{', '.join(dear) or 'no size'}")
    print(line, flush=True)
    text = ["## Through the interposer", "",
            f"`hips_allreduce` and, in the same processes, `MPI_Allreduce` under `hips run` (guard off), in {rounds} rounds.",
            "\"more\" is the median of the rounds' ratios applied to the direct time.", "", *lines, ""]
    return f"- {line}.", text


def main():
    parser = argparse.ArgumentParser(prog="performance-report", description=__doc__)
    parser.add_argument("--perf", required=True, type=os.path.abspath, help="hips-allreduce-perf")
    parser.add_argument("--hips", type=os.path.abspath, help="hips, to measure the overhead of the interposer")
    parser.add_argument("--perf-mpich", type=os.path.abspath, help="hips-allreduce-perf-mpich, where it is built")
    parser.add_argument("--ranks", type=int, action="append", help="only these numbers of ranks; repeatable (2, 4, 9)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds (9)")
    parser.add_argument("--output", type=report_file, default=page_of_docs("performance.md"), help="the page; plots go into a folder beside it")
    arguments = parser.parse_args()
    folder = os.path.splitext(arguments.output)[0]
    os.makedirs(folder, exist_ok=True)

    sections, summary = [], []
    for ranks in arguments.ranks or RANKS:
        title = f"{ranks} ranks"
        measured = measure(arguments, MPIRUN, arguments.perf, ranks, BANDS)
        summary.append(summarize(title, measured[0], measured[2]))
        sections += section(folder, f"{ranks}-ranks", title, measured)
        if ranks == 2:
            summary.append(share_of_copying(title, measured[0]))
            line, text = shared_memory(arguments, folder, ranks)
            summary.append(line)
            sections += text
        if arguments.perf_mpich:
            bands = BANDS if ranks == 2 else BANDS_OVERSUBSCRIBED_MPICH
            mpich, _, host = measure(arguments, ["mpirun.mpich"], arguments.perf_mpich, ranks, bands)
            summary.append(summarize(title, mpich, host))
    for ranks in RANKS_TCP:
        if ranks not in (arguments.ranks or RANKS):
            continue
        title = f"{ranks} ranks over TCP"
        measured = measure(arguments, [*MPIRUN, *OVER_TCP], arguments.perf, ranks, BANDS_TCP)
        summary.append(summarize(title, measured[0], f"{measured[2]} over TCP"))
        sections += section(folder, f"{ranks}-ranks-tcp", title, measured)
    if arguments.hips:
        line, text = overhead(arguments)
        summary.append(line)
        sections += text
    head = f"""# Performance on one machine

Allreduce between ranks of one node: HiPS beside Open MPI, MPICH and plain copying. `tools/performance-report` makes this page
again on your machine. This run: {os.cpu_count()} cores ({platform.machine()}), float32, sum, out of place.

## How to read the tables

- **Times** are medians of {arguments.rounds} rounds. In each round HiPS, the MPI library and plain copying run one after the other in the
  same processes, so that other work on the machine slows all of them. Ratios count; absolute times vary from run to run.
- **MPI / HiPS** is the median of the rounds' ratios of times, with the lowest and the highest round in parentheses. Above 1 HiPS
  is faster.
- **copy / HiPS** compares with a physical limit: each rank copies as many bytes from its input to its output, all ranks at
  once, bypassing the caches. An allreduce of vectors that fit in no cache cannot take less time, so 97 % means 3 % above
  the limit. Where vectors fit in a cache HiPS reads them from there, and exceeds 100 %. One or two percent above 100 % for
  large vectors are noise.
- **4 and 9 ranks** share the cores of this machine. A rank of MPICH spins while it waits and blocks the ranks on its core, which
  explains ratios of 20 and more; with a core for each rank expect those of 2 ranks.

## Summary
"""
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write("\n".join([head, *summary, "", *sections]).rstrip() + "\n")


if __name__ == "__main__":
    main()
