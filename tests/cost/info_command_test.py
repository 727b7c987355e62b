"""hips info as users meet it.

usage: info_command_test.py <hips>
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HIPS = sys.argv.pop(1)
PLANS = ["hips", "hips, rings", "recursive-doubling", "halving-doubling"]


def hips(*args, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HIPS_")}
    return subprocess.run([HIPS, *args], env={**clean, **environment}, capture_output=True, text=True, timeout=60,
                          check=False)


class InfoSelect(unittest.TestCase):
    def test_shows_the_plan_of_each_size_and_what_each_candidate_would_take(self):
        done = hips("info", "select", "-t", "switch:4")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = re.search(r"^ +size  plan +(.*)$", done.stdout, re.MULTILINE).group(1)
        self.assertEqual(re.split(r" {2,}", names), [f"{plan} (us)" for plan in PLANS])
        rows = re.findall(r"^ +(\d+ \w+)  (\S.*?)  +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", done.stdout, re.MULTILINE)
        self.assertEqual(rows[0][:2], ("4 B", "recursive-doubling"))
        self.assertEqual(rows[-1][:2], ("1 GiB", "hips, rings"))
        for size, plan, *times in rows:
            times = dict(zip(PLANS, map(float, times)))
            self.assertLessEqual(0.99 * times[plan], min(times.values()), size)

    def test_says_why_a_candidate_is_not_taken(self):
        done = hips("info", "select", HIPS_TOPO="bcube:3,1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("BCube(3,1), 9 ranks", done.stdout)
        self.assertRegex(done.stdout, r"recursive-doubling .*; excluded: its messages may have to be relayed")

    def test_json_has_the_same(self):
        report = json.loads(hips("info", "select", "-t", "rail:8,2", "--json").stdout)
        self.assertEqual([candidate["plan"] for candidate in report["candidates"]], PLANS)
        self.assertEqual(report["choices"][-1], {"plan": "hips, rings", "up_to_bytes": None})
        for row in report["sizes"]:
            plan = next(choice["plan"] for choice in report["choices"]
                        if choice["up_to_bytes"] is None or row["bytes"] <= choice["up_to_bytes"])
            self.assertEqual(row["plan"], plan)

    def test_messages_over_tcp_are_dearer(self):
        def report(*args, **environment):
            return json.loads(hips("info", "select", "-t", "switch:4", "--json", *args, **environment).stdout)

        def most_of_doubling(report):
            return max(choice["up_to_bytes"] for choice in report["choices"] if choice["plan"] == "recursive-doubling")

        verbs, tcp = report(), report("--transport", "tcp")
        self.assertEqual(verbs["message_seconds"], 0.5e-6)
        self.assertGreater(tcp["message_seconds"], verbs["message_seconds"])
        self.assertGreater(most_of_doubling(tcp), most_of_doubling(verbs))
        self.assertEqual(report(HIPS_TRANSPORT="tcp"), tcp)
        self.assertEqual(report("--transport", "verbs", HIPS_TRANSPORT="tcp"), verbs)
        self.assertIn("2 us per message over TCP",
                      hips("info", "select", "-t", "switch:4", "--transport", "tcp").stdout)
        unknown = hips("info", "select", "-t", "switch:4", "--transport", "pigeon")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("pigeon not in {verbs,tcp}", unknown.stderr)

    def test_mistakes_give_one_line(self):
        for args in ((), ("-t", "switch:0"), ("-t", "nothing:3")):
            done = hips("info", "select", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_table_decides_before_the_model(self):
        with tempfile.NamedTemporaryFile("w", suffix=".table") as table:
            table.write("# HiPS selection table 1\n"
                        "topology=switch:4 up_to=3000 algorithm=flat-mesh pattern=default\n"
                        "topology=switch:4 up_to=65536 algorithm=recursive-doubling pattern=default\n"
                        "topology=switch:4 up_to=any algorithm=hips pattern=ring\n")
            table.flush()
            text = hips("info", "select", "-t", "switch:4", HIPS_SELECT_TABLE=table.name).stdout
            self.assertIn(f"HIPS_SELECT_TABLE={table.name} selects for switch:4:", text)
            self.assertRegex(text, r" 3000 B  flat-mesh\n +64 KiB  recursive-doubling\n +any  hips:ring\n")
            plans = json.loads(hips("info", "select", "-t", "switch:4", "--json",
                                    HIPS_SELECT_TABLE=table.name).stdout)["table"]["plans"]
            self.assertEqual(plans[-1], {"algorithm": "hips", "pattern": "ring", "up_to_bytes": None})
            other = hips("info", "select", "-t", "switch:5", HIPS_SELECT_TABLE=table.name).stdout
            self.assertIn("has no line for switch:5", other)
        gone = hips("info", "select", "-t", "switch:4", HIPS_SELECT_TABLE="/nowhere")
        self.assertEqual((gone.returncode, gone.stdout), (1, ""))


class InfoEnv(unittest.TestCase):
    def test_says_where_each_value_comes_from(self):
        with tempfile.TemporaryDirectory() as home:
            with open(os.path.join(home, ".hips.conf"), "w", encoding="utf-8") as file:
                file.write("# this user's\nHIPS_CREDITS=3\nHIPS_TIMEOUT=9s\n")
            report = json.loads(hips("info", "env", "--json", HOME=home, HIPS_TIMEOUT="5s").stdout)
            rows = {row["name"]: row for row in report["variables"]}
            self.assertEqual((rows["HIPS_CREDITS"]["value"], rows["HIPS_CREDITS"]["origin"]),
                             ("3", f"{home}/.hips.conf:2"))
            self.assertEqual((rows["HIPS_TIMEOUT"]["value"], rows["HIPS_TIMEOUT"]["origin"]), ("5s", "environment"))
            self.assertEqual((rows["HIPS_LOG"]["value"], rows["HIPS_LOG"]["origin"]), ("warn", "default"))
            text = hips("info", "env", HOME=home).stdout
            for name in rows:
                self.assertIn(f" {name} ", text)
            self.assertRegex(text, r"\* HIPS_CREDITS +3 +\S+/.hips.conf:2; default 4, tcp 8\n")
            # The file counts in other commands, too.
            with open(os.path.join(home, ".hips.conf"), "w", encoding="utf-8") as file:
                file.write("HIPS_TOPO=bcube:3,1\n")
            self.assertIn("BCube(3,1)", hips("topo", HOME=home).stdout)

    def test_names_what_is_wrong_and_what_is_nearest(self):
        text = hips("info", "env", HIPS_ALGORITM="x", HIPS_CREDITS="99").stdout
        self.assertIn("! HIPS_ALGORITM is not a variable of HiPS; did you mean HIPS_ALGORITHM?", text)
        self.assertIn("invalid; give a number from 1 to 15", text)


class InfoAlone(unittest.TestCase):
    def test_shows_build_algorithms_transports_and_variables(self):
        done = hips("info")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for part in ("Build\n", "\nAlgorithms\n", "\nTransports\n", "\nVariables\n", "halving-doubling", "  shm    shared"):
            self.assertIn(part, done.stdout)
        for part in ("build", "algorithms", "transports"):
            self.assertNotEqual(hips("info", part).stdout, "", part)


    def test_names_the_library_of_each_mpi_that_was_built(self):
        with tempfile.TemporaryDirectory() as tree:
            for folder in ("tools/hips", "lib/mpi"):
                os.makedirs(os.path.join(tree, folder))
            copy = shutil.copy(HIPS, os.path.join(tree, "tools/hips"))
            for built in ("libhips_mpich.so", "libhips_mpi.so"):
                with open(os.path.join(tree, "lib/mpi", built), "w", encoding="utf-8"):
                    pass
                shown = subprocess.run([copy, "info", "build"], capture_output=True, text=True, timeout=60,
                                       check=True).stdout
                for mpi, library in (("Open MPI", "libhips_mpi.so"), ("MPICH", "libhips_mpich.so")):
                    path = os.path.realpath(os.path.join(tree, "lib/mpi", library))
                    expected = path if os.path.exists(path) else "not built"
                    self.assertRegex(shown, rf"(?m)^  for {mpi} programs +{re.escape(expected)}$")


class Completion(unittest.TestCase):
    """The words that bash offers are those of the help."""

    def offered(self, *words):
        script = """
source <("$0" completion bash)
shift 0
COMP_WORDS=(hips "$@")
COMP_CWORD=$#
_hips
printf '%s\\n' "${COMPREPLY[@]}"
"""
        done = subprocess.run(["bash", "-c", script, HIPS, *words], capture_output=True, text=True, timeout=60, check=True)
        return set(done.stdout.split())

    def test_subcommands_and_options_of_every_command(self):
        commands = re.findall(r"^  (\w[\w-]*) {2,}", hips("--help").stdout.split("Subcommands:")[1], re.MULTILINE)
        self.assertIn("compare", commands)
        self.assertEqual(self.offered(""), set(commands))
        for command in commands:
            help_text = hips(command, "--help").stdout.split("Options:")[1]
            options = set(re.findall(r"^  (?:-\w,)?(--[a-z][\w-]*)", help_text, re.MULTILINE))
            self.assertTrue(options)
            self.assertLessEqual(options, self.offered(command, "-"), command)

    def test_what_has_begun_and_what_lies_deeper(self):
        self.assertEqual(self.offered("com"), {"compare", "completion"})
        self.assertEqual(self.offered("info", "se"), {"select"})
        self.assertIn("--topology", self.offered("info", "select", "--t"))
        self.assertEqual(self.offered("plan", "--format", ""), set())
        self.assertEqual(self.offered("run", "--", "-"), set())

    def test_zsh_has_the_same_by_bashcompinit(self):
        text = hips("completion", "zsh").stdout
        self.assertIn("bashcompinit\n", text)
        self.assertTrue(text.endswith(hips("completion", "bash").stdout))


if __name__ == "__main__":
    unittest.main(verbosity=2)
