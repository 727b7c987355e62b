"""Benchmark: four ranks in one guest, MPI_Allreduce by HiPS over soft-RoCE beside Open MPI over TCP through the same
interface, alternated in one boot. Fails where HiPS is not faster.

Between them perftest's ib_write_bw loads the device by several pairs at once. The most that they carry in a second, of
all rounds, is the device's rate; the last column is what an allreduce's bytes take at that rate: each of n ranks sends at
least 2 (n - 1) / n of the vector, 6 vectors in all for four.

  beside_tcp.py HIPS ALLREDUCE_TIME
"""
import os
import re
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "lab"))
import lab  # pylint: disable=wrong-import-position

SIZES = (8, 4096, 262144, 4194304)
ROUNDS = 5
PAIRS = (2, 4)  # of ib_write_bw
VECTORS_SENT = 6
ADDRESS = "10.100.0.1"  # of the guest's rail 0

SCRIPT = """
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
flags="-d rxe0 -x 1 -s 1048576 -D 4 -F"
tcp="mpirun --oversubscribe -n 4 --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include nic0"
for round in $(seq {rounds}); do
  echo "TCP $round"; $tcp {program} {sizes} || exit 1
  echo "HiPS $round"; HIPS_TRANSPORT=verbs $tcp {hips} run -t switch:4 {program} {sizes} || exit 1
  for pairs in {pairs}; do
    echo "pairs $pairs $round"
    ids=""
    for i in $(seq $pairs); do ib_write_bw $flags -p $((19000 + i)) > /dev/null & ids="$ids $!"; done
    sleep 1
    for i in $(seq $pairs); do ib_write_bw $flags -p $((19000 + i)) {address} & ids="$ids $!"; done
    wait $ids || exit 1
  done
done
"""


def main():
    hips, program = (os.path.abspath(path) for path in sys.argv[1:])
    lab.skip_unless_possible()
    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as script:
        script.write(SCRIPT.format(rounds=ROUNDS, program=program, hips=hips, sizes=" ".join(map(str, SIZES)),
                                   pairs=" ".join(map(str, PAIRS)), address=ADDRESS))
        script.flush()
        done = lab.run(hips, "-t", "switch:1", "--one-guest", "--mpirun", "--timeout", "1500", "--", "sh", script.name,
                       timeout=None)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    times = {"TCP": {size: [] for size in SIZES}, "HiPS": {size: [] for size in SIZES}}
    rates = {}  # of each number of pairs in each round: the sum of what its pairs show, in MiB/s
    name = None
    for line in done.stdout.splitlines():
        if match := re.fullmatch(r"(TCP|HiPS) \d+", line):
            name = match.group(1)
        elif match := re.fullmatch(r"pairs (\d+) (\d+)", line):
            load = match.groups()
        elif match := re.match(r" 1048576 +\d+ +[\d.]+ +([\d.]+)", line):
            rates[load] = rates.get(load, 0) + float(match.group(1))
        elif match := re.fullmatch(r"(\d+) ([\d.]+)", line):
            times[name][int(match.group(1))].append(float(match.group(2)))
    rate = max(rates.values())
    print(f"The device carries {rate:.0f} MiB/s in all: the most that ib_write_bw shows with "
          f"{' or '.join(map(str, PAIRS))} pairs at once.\n")
    print("| bytes | Open MPI over TCP | HiPS over RoCE | ratio: median (least to most) | its bytes at the device's rate |\n"
          "|---|---|---|---|---|")
    slower = []
    for size in SIZES:
        pairs = list(zip(times["TCP"][size], times["HiPS"][size]))
        ratios = [ours / theirs for theirs, ours in pairs]
        print(f"| {size} | {statistics.median(times['TCP'][size]):.0f} us | {statistics.median(times['HiPS'][size]):.0f} us "
              f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
              f"| {VECTORS_SENT * size / 2**20 / rate * 1e6:.0f} us |")
        if statistics.median(ratios) >= 1:
            slower.append(size)
    if slower:
        sys.exit(f"HiPS is not faster at {', '.join(map(str, slower))} bytes")


if __name__ == "__main__":
    main()
