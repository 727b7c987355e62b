"""Benchmark: four ranks in one guest, MPI_Allreduce by HiPS over soft-RoCE beside Open MPI over TCP through the same
interface, alternated in one boot. Fails where HiPS is not faster.

  beside_tcp.py HIPS ALLREDUCE_TIME
"""
import os
import re
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lab"))
import lab  # pylint: disable=wrong-import-position

SIZES = (8, 4096, 262144, 4194304)
ROUNDS = 5

SCRIPT = """
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tcp="mpirun --oversubscribe -n 4 --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include nic0"
for round in $(seq {rounds}); do
  echo "TCP $round"; $tcp {program} {sizes} || exit 1
  echo "HiPS $round"; HIPS_TRANSPORT=verbs $tcp {hips} run -t switch:4 {program} {sizes} || exit 1
done
"""


def main():
    hips, program = (os.path.abspath(path) for path in sys.argv[1:])
    lab.skip_unless_possible()
    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as script:
        script.write(SCRIPT.format(rounds=ROUNDS, program=program, hips=hips, sizes=" ".join(map(str, SIZES))))
        script.flush()
        done = lab.run(hips, "-t", "switch:1", "--one-guest", "--mpirun", "--timeout", "1500", "--", "sh", script.name,
                       timeout=None)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    times = {"TCP": {size: [] for size in SIZES}, "HiPS": {size: [] for size in SIZES}}
    name = None
    for line in done.stdout.splitlines():
        if match := re.fullmatch(r"(TCP|HiPS) \d+", line):
            name = match.group(1)
        elif match := re.fullmatch(r"(\d+) ([\d.]+)", line):
            times[name][int(match.group(1))].append(float(match.group(2)))
    print("| bytes | Open MPI over TCP | HiPS over RoCE | ratio: median (least to most) |\n|---|---|---|---|")
    slower = []
    for size in SIZES:
        pairs = list(zip(times["TCP"][size], times["HiPS"][size]))
        ratios = [ours / theirs for theirs, ours in pairs]
        print(f"| {size} | {statistics.median(times['TCP'][size]):.0f} us | {statistics.median(times['HiPS'][size]):.0f} us "
              f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")
        if statistics.median(ratios) >= 1:
            slower.append(size)
    if slower:
        sys.exit(f"HiPS is not faster at {', '.join(map(str, slower))} bytes")


if __name__ == "__main__":
    main()
