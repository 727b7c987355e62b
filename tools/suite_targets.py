#!/usr/bin/env python3
"""Prints the targets of Ninja that the tests of some suites of a build need: suite_targets.py BUILD SUITE... [-SUITE...]

Tests of a suite that has a "-" before it are left out. The targets can then be built before the tests are run, with what
else that takes, as `meson test` would at that time.
"""
import json
import os
import subprocess
import sys


def introspect(build, what):
    done = subprocess.run(["meson", "introspect", build, "--" + what], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def targets(tests, built, build, suites):
    """Names below the build folder; `tests` and `built` are what `meson introspect` says of tests and targets."""
    files = {target["id"]: target["filename"] for target in built}
    wanted = {suite for suite in suites if not suite.startswith("-")}
    left_out = {suite[1:] for suite in suites if suite.startswith("-")}
    needed = set()
    for test in tests:
        its_suites = {suite.rpartition(":")[2] for suite in test["suite"]}
        if not its_suites & wanted or its_suites & left_out:
            continue
        for target in test["depends"]:
            needed.update(files[target])
    return sorted(os.path.relpath(path, os.path.realpath(build)) for path in needed)


def main():
    build, suites = sys.argv[1], sys.argv[2:]
    print("\n".join(targets(introspect(build, "tests"), introspect(build, "targets"), build, suites)))


if __name__ == "__main__":
    main()
