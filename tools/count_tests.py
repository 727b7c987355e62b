#!/usr/bin/env python3
"""Adds up test logs of Meson (testlog.json): prints "passed failed skipped", then the name of each failed test.

A log that is missing or empty counts nothing; a line that is no JSON is an error.
"""
import json
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


def count(paths):
    passed, skipped, failed = 0, 0, []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as log:
                lines = log.readlines()
        except FileNotFoundError:
            continue
        for line in lines:
            test = json.loads(line)
            if test["result"] in PASSED:
                passed += 1
            elif test["result"] in SKIPPED:
                skipped += 1
            else:
                failed.append((test["name"], test["result"]))
    return passed, failed, skipped


def main():
    passed, failed, skipped = count(sys.argv[1:])
    print(passed, len(failed), skipped)
    for name, result in failed:
        print(f"{name}: {result}")


if __name__ == "__main__":
    main()
