"""Every header compiles alone, with the flags of the folder it lies in: headers_test.py ROOT BUILD.

Most are proven by the build. Of the others those that users include, and some that HIPS_SEED chooses; all with
HIPS_TEST_FULL=1."""
import concurrent.futures
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import layers

BUILD = sys.argv.pop()
ROOT = sys.argv.pop()
CHOSEN = 24  # of the headers that no build has proven and no user sees


def commands():
    """Folder -> one of the build's compile commands for a C++ file of it."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    found = {}
    for entry in entries:
        path = os.path.relpath(os.path.realpath(os.path.join(entry["directory"], entry["file"])), os.path.realpath(ROOT))
        if path.endswith(".cpp") and not path.startswith(".."):
            found.setdefault(os.path.dirname(path), (entry["directory"], shlex.split(entry["command"])))
    return found


def first_includes():
    """Headers that a source of the build includes before anything else: the build has compiled them alone."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    found = set()
    for entry in entries:
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        if not path.endswith(".cpp") or not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("#")]
        first = re.match(r'#include ["<]([^">]+)[">]', lines[0]) if lines else None
        if first:
            found.add(first.group(1))
    return found


def command_for(header, found):
    """That of its folder. Public headers are compiled as their users do, with lib/base's; a header of a folder of
    which this build compiles nothing (an optional part that is off) has none."""
    folder = os.path.dirname(header)
    if header in ("include/hips/mpi.h", "tests/mpi/collective_calls.h"):  # need the user's MPI
        return found.get("lib/mpi")
    return found.get("lib/base" if folder.startswith("include") else folder) or found.get(fallback(folder, found))


def fallback(folder, found):
    # transports/ has a header and no source; the folders below it do.
    below = sorted(other for other in found if other.startswith(folder + "/"))
    return below[0] if below else None


def compile_alone(header, found, compiler_for_c, scratch):
    """"" or what the compiler says."""
    directory, command = command_for(header, found)
    kept, skip = [], False
    for word in command:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MQ", "-c"):
            skip = True
        elif word not in ("-MD", "-Winvalid-pch"):
            kept.append(word)
    include = "<" + header[len("include/"):] + ">" if header.startswith("include/") else f'"{header}"'
    runs = [("cpp", kept + ["-Wno-unused-function"])]
    if header.endswith(".h"):
        runs.append(("c", compiler_for_c + ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"] +
                     [word for word in kept if word.startswith(("-I", "-D", "-isystem"))]))
    for suffix, words in runs:
        source = os.path.join(scratch, header.replace("/", "_") + "." + suffix)
        with open(source, "w", encoding="utf-8") as file:
            # Twice: a header without its guard shows itself.
            file.write(f"#include {include}\n#include {include}\n")
        done = subprocess.run(words + ["-fsyntax-only", source], cwd=directory, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            return f"{header} does not compile alone:\n{done.stdout}"
    return ""


def chosen(headers):
    if os.environ.get("HIPS_TEST_FULL"):
        return headers
    public = [path for path in headers if path.startswith("include/")]
    others = [path for path in headers if path not in public]
    return public + random.Random(int(os.environ.get("HIPS_SEED", "1"))).sample(others, min(CHOSEN, len(others)))


class Headers(unittest.TestCase):
    compiler_for_c = ["cc"]

    def check(self, headers):
        found = commands()
        headers = [header for header in headers if command_for(header, found)]
        self.assertTrue(headers)
        # A folder and names that stay the same, so that a compiler cache recognises the compilations.
        scratch = os.path.join(os.path.abspath(BUILD), "headers_alone")
        os.makedirs(scratch, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda header: compile_alone(header, found, self.compiler_for_c, scratch), headers)
            broken = [text for text in results if text]
        return headers, broken

    def test_every_header_compiles_alone(self):
        every = [path for path in layers.sources(ROOT) if path.endswith((".hpp", ".h"))]
        for path in every:  # the build would not notice that this is missing
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?m)^#(pragma once|ifndef )", path)
        built = first_includes()
        unproven = [path for path in every if path.removeprefix("include/") not in built and path not in built]
        headers, broken = self.check(chosen(unproven))
        print(f"{len(every)} headers, {len(unproven)} not proven by the build, {len(headers)} of them compiled for this test",
              file=sys.stderr)
        self.assertIn("include/hips/hips.h", headers)
        self.assertEqual("\n".join(broken), "")

    def test_a_header_that_needs_another_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bad.hpp")
            with open(path, "w", encoding="utf-8") as file:
                file.write("#pragma once\nstd::string name();\n")
            found = commands()
            text = compile_alone(path, {folder: found["lib/base"]}, self.compiler_for_c, folder)
            self.assertIn("does not compile alone", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
