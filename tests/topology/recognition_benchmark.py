"""Recognition of a shuffled table of cables by hips topo: at most 1 s for 1,024 servers, and 15 s for 10,000.

usage: recognition_benchmark.py <hips>     HIPS_SEED=N shuffles otherwise
"""
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HIPS = sys.argv[1]
SEED = int(os.environ.get("HIPS_SEED", "1"))
LIMITS = {
    1.0: ("leafspine:32,32", "fattree:16", "bcube:32,1", "bcube:4,4", "torus:32x32", "torus:16x8x8", "mesh:32x32", "mesh:16x8x8",
          "rail:1024,8", "switch:1024"),
    15.0: ("leafspine:100,100", "fattree:36", "bcube:100,1", "bcube:10,3", "torus:100x100", "torus:25x20x20", "mesh:100x100",
           "mesh:25x20x20", "rail:10000,4", "switch:10000"),  # hips topo -v lists up to 60,000 cables
}
REPETITIONS = 3  # the fastest counts


def hips(*args):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HIPS_")}
    done = subprocess.run([HIPS, *args], env={**clean, "HOME": "/nowhere"}, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(f"hips {' '.join(args)}: {done.stderr}")
    return done.stdout


def links(spec):
    """The cables, as pairs of ends: a server's number or a switch's name."""
    for line in hips("topo", "-t", spec, "--format", "yaml", "-v").splitlines():
        if found := re.search(r"\{server: (\d+), nic: \d+, (?:switch|to): ([^,}]+)", line):
            yield found.groups()
        elif found := re.search(r"\{switches: \[([^,]+), ([^\]]+)\]", line):
            yield found.groups()


def shuffled(spec, chance):
    """A table of the cables: names, ports, ends and rows in random order."""
    pairs = list(links(spec))
    nodes = sorted({end for pair in pairs for end in pair})
    names = dict(zip(nodes, chance.sample(range(len(nodes)), len(nodes))))
    names = {node: f"{'h' if node.isdigit() else 's'}{number}" for node, number in names.items()}
    degree = {node: 0 for node in nodes}
    for end in (end for pair in pairs for end in pair):
        degree[end] += 1
    ports = {node: chance.sample(range(count), count) for node, count in degree.items()}
    rows = [chance.sample([f"{names[end]},p{ports[end].pop()}" for end in pair], 2) for pair in pairs]
    chance.shuffle(rows)
    return "side_a_device,side_a_name,side_b_device,side_b_name\n" + "".join(f"{a},{b}\n" for a, b in rows)


def main():
    print(f"HIPS_SEED={SEED}")
    failed = False
    for limit, specs in LIMITS.items():
        for spec in specs:
            with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="ascii") as table:
                table.write(shuffled(spec, random.Random(SEED)))
                table.flush()
                seconds = []
                for _ in range(REPETITIONS):
                    start = time.monotonic()
                    found = hips("topo", table.name, "--hosts", "^h").partition("\n")[0].partition("  (")[2].rstrip(")")
                    seconds.append(time.monotonic() - start)
            good = found == spec and min(seconds) <= limit
            failed |= not good
            print(f"{spec:18} {min(seconds):6.2f} s (at most {limit:g} s)  {found}{'' if good else '  FAILED'}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
