"""Compares a 4-byte allreduce of 16 ranks with one of 2 ranks on the cores of this machine:
oversubscribed_benchmark.py PERF MPIRUN.

Runs both alternately, five times, and prints the ratio of each pair, the median and the range. Exits with 1 if the
median is above the limit: with more ranks than cores, waiting ranks must yield their core.
"""
import os
import re
import statistics
import subprocess
import sys

LIMIT = 80.0
PAIRS = 5


def time_us(perf, mpirun, ranks):
    """Microseconds of one in-place allreduce, as the benchmark prints it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HIPS_")}
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(
        [mpirun, "--oversubscribe", "-n", str(ranks), perf, "-b", "4", "-e", "4", "-n", "2000", "-w", "20"],
        env=environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    row = re.search(r"^ +4 +1 +float +sum +-1 .*$", done.stdout, re.MULTILINE).group().split()
    return float(row[9])


def main(perf, mpirun):
    ratios = []
    for pair in range(PAIRS):
        two, sixteen = time_us(perf, mpirun, 2), time_us(perf, mpirun, 16)
        ratios.append(sixteen / two)
        print(f"pair {pair}: 2 ranks {two:.2f} us, 16 ranks {sixteen:.2f} us, ratio {ratios[-1]:.1f}")
    median = statistics.median(ratios)
    print(f"ratio: median {median:.1f}, {min(ratios):.1f} to {max(ratios):.1f}, limit {LIMIT:.0f},"
          f" {os.cpu_count()} cores")
    return 0 if median <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
