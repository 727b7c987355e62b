"""Runs PyTorch's own tests of backends with HiPS and with Gloo on 1, 2 and 4 ranks, and writes docs/pytorch-tests.md.

    PYTHONPATH=build/python python3 tests/torch/pytorch_report.py
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "pytorch-tests.md")
RANKS = ("1", "2", "4")
TEXT = """# PyTorch's tests of backends

PyTorch 1.13.1's own tests of `torch.distributed` backends (`torch.testing._internal.distributed.distributed_test`), those that it runs
with Gloo, with `backend="hips"` and with Gloo. `tests/torch/pytorch_report.py` makes this page again; `tools/check --full` runs the
tests. A dash: PyTorch leaves the test out with that number of ranks. Failures with one rank are tests that need a second one, and
fail with Gloo, too.

{totals}

The monitored barrier is a function that PyTorch allows for Gloo only.

| Test | {head} |
|---|{dashes}
{rows}
"""


def results_of(backend, ranks):
    command = [sys.executable, os.path.join(HERE, "pytorch_test.py"), ranks, "--backend", backend]
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=dict(os.environ, PYTHONWARNINGS="ignore", OMP_NUM_THREADS="1"))
    return {name: state for state, name in re.findall(r"(?m)^(passed|failed) +(test_\S+)$", done.stdout)}


def main():
    columns = [(ranks, backend, results_of(backend, ranks)) for ranks in RANKS for backend in ("hips", "gloo")]
    names = sorted(set().union(*(found for _, _, found in columns)))
    shown = {"hips": "HiPS", "gloo": "Gloo"}
    totals = ["| Ranks | passed with HiPS | passed with Gloo | of |", "|---|---|---|---|"]
    for ranks in RANKS:
        ours, gloo = ([state for state in found.values()] for count, _, found in columns if count == ranks)
        totals.append(f"| {ranks} | {ours.count('passed')} | {gloo.count('passed')} | {len(gloo)} |")
    rows = [f"| `{name}` | " + " | ".join(found.get(name, "-") for _, _, found in columns) + " |" for name in names]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(TEXT.format(totals="\n".join(totals), head=" | ".join(f"{shown[backend]}, {ranks}" for ranks, backend, _ in columns),
                               dashes="---|" * len(columns), rows="\n".join(rows)))
    print("\n".join(totals))


if __name__ == "__main__":
    main()
