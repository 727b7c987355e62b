"""Every header and every source compiles alone, with the flags of the folder it lies in: headers_test.py ROOT BUILD.

Most are proven by the build: a source that it compiles by itself, and the header that this includes first. Of the others,
as of those that the build compiles several at a time, public headers are compiled here, and some that HIPS_SEED chooses;
all with HIPS_TEST_FULL=1."""
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
CHOSEN = 20  # of what the build has not proven and users do not include


INCLUDE = re.compile(r'#[ ]?include ?["<]([^">]+)[">]')


def includes(path):
    with open(path, encoding="utf-8") as file:
        return [found.group(1) for found in map(INCLUDE.match, file) if found]


class Build:
    """What the build compiles."""

    def __init__(self):
        self.commands = {}  # folder, source, or header that a source of its folder includes -> a compile command for it
        self.proven = set()  # headers and sources that the build has compiled with nothing before them
        self.sources = set()
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
            entries = json.load(file)
        for entry in entries:
            path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
            if not path.endswith(".cpp") or not os.path.exists(path):
                continue
            # Several at a time: a file of Meson's that includes them.
            together = includes(path) if "-unity" in os.path.basename(path) else [path]
            together = [os.path.realpath(source) for source in together if os.path.isabs(source)]  # else generated
            for source in together:
                name = os.path.relpath(source, os.path.realpath(ROOT))
                if name.startswith(".."):
                    continue
                self.sources.add(name)
                folder, command = os.path.dirname(name), (entry["directory"], shlex.split(entry["command"]))
                beside = [header for header in includes(source) if os.path.dirname(header) == folder]
                for built in [folder, name, *beside]:
                    self.commands.setdefault(built, command)
                if source == together[0]:
                    self.proven.update([name, *includes(source)[:1]])


def command_for(path, found):
    """That of the file itself or of its folder. Public headers are compiled as their users do, with lib/base's; a header of a folder of
    which this build compiles nothing (an optional part that is off) has none."""
    folder = os.path.dirname(path)
    if path in ("include/hips/mpi.h", "tests/mpi/collective_calls.h"):  # need the user's MPI
        return found.get("lib/mpi/c")
    return found.get(path) or found.get("lib/base" if folder.startswith("include") else folder) or found.get(fallback(folder, found))


def fallback(folder, found):
    # transports/ has a header and no source; the folders below it do.
    below = sorted(other for other in found if other.startswith(folder + "/"))
    return below[0] if below else None


def compile_alone(path, found, compiler_for_c, scratch):
    """"" or what the compiler says."""
    directory, command = command_for(path, found)
    kept, skip = [], False
    for word in command:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MQ", "-c"):
            skip = True
        elif word not in ("-MD", "-Winvalid-pch"):
            kept.append(word)
    include = "<" + path[len("include/"):] + ">" if path.startswith("include/") else f'"{path}"'
    runs = [("cpp", kept + ["-Wno-unused-function"])]
    if path.endswith(".h"):
        runs.append(("c", compiler_for_c + ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"] +
                     [word for word in kept if word.startswith(("-I", "-D", "-isystem"))]))
    for suffix, words in runs:
        source = os.path.join(scratch, path.replace("/", "_") + "." + suffix)
        with open(source, "w", encoding="utf-8") as file:
            # A header twice: one without its guard shows itself.
            file.write(f"#include {include}\n" * (1 if path.endswith(".cpp") else 2))
        done = subprocess.run(words + ["-fsyntax-only", source], cwd=directory, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            return f"{path} does not compile alone:\n{done.stdout}"
    return ""


def chosen(paths):
    if os.environ.get("HIPS_TEST_FULL"):
        return paths
    public = [path for path in paths if path.startswith("include/")]
    others = [path for path in paths if path not in public]
    return public + random.Random(int(os.environ.get("HIPS_SEED", "1"))).sample(others, min(CHOSEN, len(others)))


class Alone(unittest.TestCase):
    maxDiff = None  # what the compiler says, whole
    compiler_for_c = ["cc"]

    def check(self, paths, found):
        """What the compiler says of those that do not."""
        # A folder and names that stay the same, so that a compiler cache recognises the compilations.
        scratch = os.path.join(os.path.abspath(BUILD), "headers_alone")
        os.makedirs(scratch, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda path: compile_alone(path, found, self.compiler_for_c, scratch), paths)
            return [text for text in results if text]

    def test_every_header_and_source_compiles_alone(self):
        headers = [path for path in layers.sources(ROOT) if path.endswith((".hpp", ".h"))]
        for path in headers:  # the build would not notice that this is missing
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?m)^#(pragma once|ifndef )", path)
        build = Build()
        every = [path for path in headers + sorted(build.sources) if command_for(path, build.commands)]
        unproven = [path for path in every if path.removeprefix("include/") not in build.proven]
        paths = chosen(unproven)
        print(f"{len(every)} headers and sources, {len(unproven)} not proven by the build, {len(paths)} of them compiled here",
              file=sys.stderr)
        self.assertIn("include/hips/hips.h", paths)
        self.assertEqual("\n".join(self.check(paths, build.commands)), "")

    def test_a_header_that_needs_another_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bad.hpp")
            with open(path, "w", encoding="utf-8") as file:
                file.write("#pragma once\nstd::string name();\n")
            text = compile_alone(path, {folder: Build().commands["lib/base"]}, self.compiler_for_c, folder)
            self.assertIn("does not compile alone", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
