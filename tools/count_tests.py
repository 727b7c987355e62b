#!/usr/bin/env python3
"""Adds up test logs of Meson (testlog.json): prints "passed failed skipped", then the name of each failed test.

With --slowest N it prints the N tests that took longest instead, with --skips why cases inside of tests were skipped, and how often. A log that is missing or empty counts nothing; a line
that is no JSON is an error.
"""
import argparse
import collections
import json
import os
import re
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


def tests(paths):
    """(log, test) of each test of the logs."""
    for path in paths:
        try:
            with open(path, encoding="utf-8") as log:
                lines = log.readlines()
        except FileNotFoundError:
            continue
        for line in lines:
            yield path, json.loads(line)


def count(paths):
    passed, skipped, failed = 0, 0, []
    for _, test in tests(paths):
        if test["result"] in PASSED:
            passed += 1
        elif test["result"] in SKIPPED:
            skipped += 1
        else:
            failed.append((test["name"], test["result"]))
    return passed, failed, skipped


def slowest(paths, number):
    """(seconds, build folder, name) of the tests that took longest, the longest first."""
    taken = [(test["duration"], os.path.basename(os.path.dirname(os.path.dirname(path))), test["name"])
             for path, test in tests(paths)]
    return sorted(taken, reverse=True)[:number]


# GoogleTest's reason is on the lines after the place; unittest's is on the line of the case.
REASONS = re.compile(r"^\S+:\d+: Skipped\n(.+)$|\.\.\. skipped (['\"])(.*)\2$", re.MULTILINE)


def skips(paths):
    """(times, reason) of cases that were skipped inside of tests, the most frequent first."""
    found = collections.Counter()
    for _, test in tests(paths):
        for text in (test.get("stdout", ""), test.get("stderr", "")):
            for match in REASONS.finditer(text):
                found[match[1] or match[3]] += 1
    return [(times, reason) for reason, times in found.most_common()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slowest", type=int, metavar="N")
    parser.add_argument("--skips", action="store_true")
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()
    if args.skips:
        for times, reason in skips(args.logs):
            print(f"  {times}: {reason}")
        return
    if args.slowest is not None:
        for seconds, folder, name in slowest(args.logs, args.slowest):
            print(f"  {seconds:.0f} {folder}: {name}")
        return
    passed, failed, skipped = count(args.logs)
    print(passed, len(failed), skipped)
    for name, result in failed:
        print(f"{name}: {result}")


if __name__ == "__main__":
    main()
