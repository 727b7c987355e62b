"""Compares hips-write-bw and hips-write-lat with perftest in one guest of the lab:
perftest_benchmark.py HIPS FOLDER_OF_PROGRAMS [--pairs N] [--sizes 64,4096,...] [--only KIND,...]

Each round runs perftest twice, and our program before or after it. The ratio of the two runs of perftest shows the
noise of the machine. Ratios are of times: above 1, our program is slower. A kind passes if the median of its ratios is
within its limit, or no further from 1 than the middle half of the ratios of perftest with itself. Exits with 1 if one
does not pass.
"""
import argparse
import functools
import os
import statistics
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))
import lab  # noqa: E402
import perftest_output  # noqa: E402
import two_ends  # noqa: E402

# Name -> program of perftest, ours, its flags, the compared column, the limit of the ratio.
KINDS = {
    "raw bandwidth": ("ib_write_bw", "hips-write-bw", ["--raw"], "BW_average", 0.03),
    "put bandwidth": ("ib_send_bw", "hips-write-bw", [], "BW_average", 0.10),
    "raw latency": ("ib_write_lat", "hips-write-lat", ["--raw"], "t_typical", 0.05),
    "put latency": ("ib_send_lat", "hips-write-lat", [], "t_typical", 0.10),
}
# Size -> number of messages; a run takes a second or less.
MESSAGES = {
    "BW_average": {64: 20000, 4096: 10000, 65536: 1000, 1048576: 60},
    "t_typical": {64: 400, 4096: 400, 65536: 100, 1048576: 20},
}
ATTEMPTS = 8


def measure(command, flags, size, column):
    """Returns the seconds per byte or per message. On an emulated CPU with an unsteady clock, perftest sometimes fails,
    or hangs because its other end failed; it is then run again."""
    for _ in range(ATTEMPTS):
        latency = column == "t_typical"
        # In cycles, because perftest only estimates the CPU's frequency. Without the peak, whose computation takes
        # longer than the run.
        try:
            client, _ = two_ends.run_both(command, *flags, "-s", str(size), "-n", str(MESSAGES[column][size]),
                                          "-C" if latency else "-N", timeout=30)
        except subprocess.TimeoutExpired:
            continue
        if client.returncode != 0 or "inf" in client.stdout:
            continue
        figure = perftest_output.read_report(client.stdout).rows[-1][column]
        return figure if latency else 1 / figure
    raise RuntimeError(f"{command} {flags} printed no report in {ATTEMPTS} attempts")


def quartiles(values):
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def text_of(ratios):
    return "{:.3f} ({:.2f} to {:.2f})".format(statistics.median(ratios), *quartiles(ratios))


def let_the_kernel_preempt():
    """Gives the kernel's soft interrupt threads real-time priority. Soft-RoCE handles packets in them; otherwise a
    process that spins on the same core delays them by whole scheduler ticks, and latencies become hundreds of times
    longer."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        if lab.name_of(process).startswith("ksoftirqd/"):
            os.sched_setscheduler(int(process), os.SCHED_FIFO, os.sched_param(1))


def inside(folder, pairs, sizes, kinds):
    let_the_kernel_preempt()
    failures = 0
    start = time.monotonic()
    print("| Kind | Bytes | ours / perftest, median (middle half) | perftest / perftest | limit | |")
    print("|---|---|---|---|---|---|", flush=True)
    for kind in kinds:
        theirs, ours, flags, column, limit = KINDS[kind]
        for size in sizes:
            ratios, selves = [], []
            for round_number in range(pairs):
                # Our program runs last and first alternately, always next to the perftest it is compared with.
                run_ours = functools.partial(measure, os.path.join(folder, ours), flags, size, column)
                mine = run_ours() if round_number % 2 else None
                near, far = (measure(theirs, [], size, column) for _ in range(2))
                if mine is None:
                    near, far = far, near
                    mine = run_ours()
                ratios.append(mine / near)
                selves.append(far / near)
            noise = max(abs(ratio - 1) for ratio in quartiles(selves))
            allowed = max(limit, noise)
            good = statistics.median(ratios) <= 1 + allowed
            failures += not good
            print(f"| {kind}: {ours} {' '.join(flags)} / {theirs} | {size} | {text_of(ratios)} | {text_of(selves)}"
                  f" | {1 + allowed:.2f}{' (noise)' if noise > limit else ''} | {'within' if good else 'MISSED'} |",
                  flush=True)
    print(f"{pairs} rounds of each kind in {time.monotonic() - start:.0f} s on {os.cpu_count()} cores")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hips")
    parser.add_argument("folder")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--sizes", default="64,4096,65536,1048576")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--inside", action="store_true", help="this is the guest")
    options = parser.parse_args()
    if options.inside:
        return inside(options.folder, options.pairs, [int(size) for size in options.sizes.split(",")],
                      options.only.split(","))
    command = lab.command(options.hips, "-t", "switch:1", "--one-guest", "--timeout", "7200", "--", sys.executable,
                          os.path.abspath(__file__), options.hips, os.path.abspath(options.folder), "--pairs",
                          str(options.pairs), "--sizes", options.sizes, "--only", options.only, "--inside")
    os.execvpe(command[0], command, lab.environment())


if __name__ == "__main__":
    sys.exit(main())
