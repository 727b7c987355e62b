"""PyTorch's own tests of backends (torch.testing._internal.distributed), those that it runs with Gloo, with backend "hips".

    pytorch_test.py RANKS [--backend gloo] [TEST...]    fails where a test does that passes with Gloo
"""

import argparse
import collections
import dataclasses
import importlib.util
import io
import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

# What HiPS does not have, and what these tests then say; the tests whose names contain it.
MISSING = {"monitored_barrier": "a monitored barrier, which PyTorch has for Gloo alone"}


def is_missing(name):
    return any(part in name for part in MISSING)


class HipsAsGloo(str):
    """The name "hips" that compares equal to "gloo", too: so that no test is left out for the backend's name."""

    def __eq__(self, other):
        return other in ("hips", "gloo")

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash("gloo")


def stand_in_for_expecttest():
    """Debian's PyTorch needs this package for its tests and does not have it."""

    class TestCase(unittest.TestCase):
        def assertExpectedInline(self, actual, expect, skip=0):
            self.assertMultiLineEqual(expect, actual)

    module = types.ModuleType("expecttest")
    module.TestCase, module.ACCEPT = TestCase, False
    sys.modules["expecttest"] = module


def allow_defaults_of_dataclasses():
    """PyTorch 1.13 has defaults that Python 3.11 takes for mutable ones, which made Debian's fail whenever such a module is imported."""
    get_field = dataclasses._get_field

    def lenient(cls, name, *arguments):
        default = getattr(cls, name, None)
        if isinstance(default, dataclasses.Field):
            default = default.default
        if dataclasses.is_dataclass(default) and type(default).__hash__ is None:
            type(default).__hash__ = object.__hash__
        return get_field(cls, name, *arguments)

    dataclasses._get_field = lenient


def distributed_test(backend):
    """PyTorch's module, in which BACKEND is `backend`."""
    spec = importlib.util.find_spec("torch.testing._internal.distributed.distributed_test")
    with open(spec.origin, encoding="utf-8") as file:
        text = file.read()
    begin = 'BACKEND = os.environ["BACKEND"]'
    assert begin in text, "PyTorch's module has changed"
    module = types.ModuleType(spec.name)
    module.__file__ = spec.origin
    module.HIPS_BACKEND = backend
    sys.modules[spec.name] = module
    exec(compile(text.replace(begin, "BACKEND = HIPS_BACKEND"), spec.origin, "exec"), module.__dict__)
    return module


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ranks")
    parser.add_argument("--backend", default="hips", choices=("hips", "gloo"))
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    for name in ("barrier", "test_dir"):
        os.makedirs(os.path.join(folder, name))
    os.environ.update(BACKEND=options.backend, WORLD_SIZE=options.ranks, TEMP_DIR=folder, MASTER_ADDR="127.0.0.1")
    stand_in_for_expecttest()
    allow_defaults_of_dataclasses()
    import torch.multiprocessing  # noqa: F401
    from torch.testing._internal import common_utils  # noqa: F401
    import hips_torch  # noqa: F401

    theirs = distributed_test(HipsAsGloo("hips") if options.backend == "hips" else "gloo")

    class Backend(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(multiprocessing.get_context("fork").Process)

    logging.disable(logging.CRITICAL)
    names = options.tests or unittest.TestLoader().getTestCaseNames(Backend)
    results = collections.OrderedDict()
    for name in names:
        output = io.StringIO()
        result = unittest.TextTestRunner(stream=output).run(Backend(name))
        results[name] = ("skipped" if result.skipped else "passed" if result.wasSuccessful() else "failed", output.getvalue())
    shutil.rmtree(folder, ignore_errors=True)
    failed = []
    for name, (state, output) in results.items():
        if state != "skipped":
            print(f"{state:8} {name}")
        if state == "failed" and not is_missing(name):
            failed.append(name)
            print(output)
    counts = collections.Counter(state for state, _ in results.values())
    print(f"{options.backend}, {options.ranks} ranks: " + ", ".join(f"{counts[state]} {state}" for state in ("passed", "failed", "skipped")))
    if options.backend == "hips" and failed:
        # Some need more ranks, whatever the backend.
        again = subprocess.run([sys.executable, __file__, "--backend", "gloo", options.ranks, *failed], text=True, capture_output=True, check=False)
        wrong = [name for name in failed if f"failed   {name}\n" not in again.stdout]
        if wrong:
            sys.exit(f"these fail, and pass with Gloo: {' '.join(wrong)}")
    if not options.tests and counts["passed"] < 20:
        sys.exit("hardly any test ran")


if __name__ == "__main__":
    main()
