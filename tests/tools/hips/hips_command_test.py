"""Behaviour that all commands of hips share: errors, settings and output.

usage: hips_command_test.py <hips>
"""
import os
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import file_forms

HIPS = sys.argv.pop(1)


def hips(*args, stdout=subprocess.PIPE, **environment):
    """A CompletedProcess of `hips ARGS` for a user without settings files."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HIPS_")}
    return subprocess.run([HIPS, *args], env={**clean, "HOME": "/nowhere", **environment}, stdout=stdout,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)


class Output(unittest.TestCase):
    """Incomplete output must not look complete."""

    def refused(self, *args):
        with open("/dev/full", "w", encoding="utf-8") as full:
            return hips(*args, stdout=full)

    def test_every_command_reports_that_it_cannot_write_its_output(self):
        for args in (("plan", "-t", "bcube:3,1"), ("plan", "--list"), ("plan", "-t", "switch:4", "--format", "goal"),
                     ("plan", "-t", "switch:4", "--format", "msccl"), ("plan", "-t", "switch:4", "--json"),
                     ("plan", "-t", "bcube:4,2", "--all"), ("check", "-t", "bcube:3,1"), ("info", "env"), ("info",),
                     ("info", "select", "-t", "switch:4"), ("doctor",), ("topo", "-t", "bcube:3,1"),
                     ("compare", "-t", "switch:4", "-b", "1M"), ("completion", "bash"), ("--help",), ("--version",)):
            with self.subTest(args=args):
                done = self.refused(*args)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"\Ahips: (\w+( \w+)?: )?cannot write the output: [^\n]+\n\Z")

    def test_the_message_names_the_command(self):
        self.assertIn("hips: info select: cannot write", self.refused("info", "select", "-t", "switch:4").stderr)

    def test_a_command_that_failed_keeps_its_exit_code(self):
        done = self.refused("topo", "-t", "nothing:3")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))


class Arguments(unittest.TestCase):
    def test_an_unknown_command_is_reported_with_the_valid_ones(self):
        for args, message in ((("foo",), 'hips: unknown command "foo"; expected one of topo, plan, '),
                              (("trace", "foo"), "hips: trace: cannot open foo: No such file or directory\n"),
                              (("lab", "foo"), 'hips: lab: unknown command "foo"; expected one of run, exec, link, prepare\n'),
                              (("info", "foo"), 'hips: info: unknown command "foo"; expected one of select, '),
                              (("completion", "fish"),
                               'hips: completion: unknown command "fish"; expected one of bash, zsh\n'),
                              (("trace",), "hips: trace: no traces; give the folder that HIPS_TRACE named, or files of it\n"),
                              ((), "hips: missing command; expected one of topo, plan, "),
                              (("--foo",), 'hips: unknown option "--foo"\n')):
            with self.subTest(args=args):
                done = hips(*args)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(message, done.stderr)

    def test_the_message_for_wrong_options_names_the_program_and_the_command(self):
        done = hips("plan", "--foo")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "hips: plan: unknown option \"--foo\"\n"
                                      "Run hips plan --help for more information.\n")

    def test_a_misspelt_option_gets_the_nearest_one(self):
        for args, message in ((("plan", "--byte", "64M"), 'plan: unknown option "--byte"; did you mean --bytes?'),
                              (("plan", "-t", "switch:2", "--algoritm=hips"),
                               'plan: unknown option "--algoritm"; did you mean --algorithm?'),
                              (("plan", "64M", "--byte"), 'plan: unexpected argument "64M"'),
                              (("compare", "--zzzzzz"), 'compare: unknown option "--zzzzzz"')):
            with self.subTest(args=args):
                done = hips(*args)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr.splitlines()[0], "hips: " + message)

    def test_the_lab_names_the_limits_of_its_numbers(self):
        for args, message in ((("--timeout", "-1"), "--timeout: Value -1 not in range 0 to 31536000\n"),
                              (("--queue", "-1"), '--queue: invalid size "-1"; write 512K or 4M\n')):
            with self.subTest(args=args):
                done = hips("lab", "run", "-t", "switch:2", *args, "--", "true", PATH="/nowhere")
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith("hips: lab run: " + message), done.stderr)


class Run(unittest.TestCase):
    """`hips run` checks before it starts the program. Without a launcher it is one rank."""

    @classmethod
    def setUpClass(cls):
        if "is not installed" in hips("run", "/bin/true").stderr:
            raise unittest.SkipTest("missing: the library for MPI programs")

    def test_the_program_may_follow_a_separator(self):
        for args in (("--", "echo", "-n", "--", "a"), ("--report", "--", "echo", "-n", "--", "a"),
                     ("-t", "switch:1", "--", "echo", "-n", "--", "a"), ("echo", "-n", "--", "a")):
            with self.subTest(args=args):
                done = hips("run", *args)
                self.assertEqual((done.returncode, done.stdout), (0, "-- a"), done.stderr)

    def test_what_cannot_work_is_refused_before_the_program_starts(self):
        for args, environment, message in (
                (("./nothing",), {}, 'program "./nothing" does not exist'),
                (("/etc/passwd",), {}, 'program "/etc/passwd" is not executable'),
                (("--algorithm", "foo", "echo"), {}, '--algorithm: '),
                (("echo",), {"HIPS_ALGORITHM": "foo"}, "HIPS_ALGORITHM: "),
                (("echo",), {"HIPS_PLAN_FILE": "/nope"}, "HIPS_PLAN_FILE: "),
                (("echo",), {"HIPS_SELECT_TABLE": "/nope"}, "HIPS_SELECT_TABLE: "),
                (("--report=/nope/a.json", "echo"), {},
                 "run: the report cannot be written to /nope/a.json: there is no folder /nope\n"),
                (("echo",), {"HIPS_MPI_REPORT": "/nope/a.json"}, "run: the report cannot be written to /nope/a.json: "),
                (("-t", "bcube:3,1", "echo"), {}, "bcube:3,1 has 9 ranks, but no launcher started them")):
            with self.subTest(args=args, environment=environment):
                done = hips("run", *args, **environment)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stdout, "")
                self.assertTrue(done.stderr.startswith("hips: " + message), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_an_empty_value_is_a_mistake_and_not_the_default(self):
        for option, name in (("-t", "--topology"), ("--algorithm", "--algorithm"), ("--trace", "--trace")):
            done = hips("run", option, "", "echo")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith(f"hips: run: {name}: is empty; leave it out"), done.stderr)

    def test_a_program_that_needs_no_mpi_is_warned_of(self):
        done = hips("run", "/bin/true")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "hips: warning: /bin/true needs no MPI library, so that HiPS has no calls to intercept\n"))

    def test_the_help_shows_the_program(self):
        self.assertIn("Usage: hips run [OPTIONS] [--] PROGRAM [ARGUMENTS...]", hips("run", "--help").stdout)


class Forms(unittest.TestCase):
    def test_each_is_drawn_and_written_as_a_topology_file(self):
        for form in file_forms.FORMS:
            with self.subTest(form=form.name), tempfile.TemporaryDirectory() as folder:
                path = file_forms.write(form, folder)
                picture = hips("topo", path, "--from", form.format, "--format", "svg")
                self.assertEqual(picture.returncode, 0, picture.stderr)
                drawn = ElementTree.fromstring(picture.stdout).itertext()
                names = ["0", "1", "2", "3"] if form.format == "ns3" else ["n0", "n1", "n2", "n3"]
                self.assertLessEqual(set(names), set(text.strip() for text in drawn))
                self.assertRegex(hips("topo", path, "--format", "dot").stdout, r"\Agraph ")
                kept = os.path.join(folder, "kept.yaml")
                with open(kept, "w", encoding="utf-8") as file:
                    file.write(hips("topo", path, "--format", "yaml").stdout)
                self.assertEqual(hips("topo", "diff", path, kept).stdout, "")


class Size(unittest.TestCase):
    def test_groups_larger_than_any_cluster_are_rejected_at_once(self):
        for args in (("plan",), ("info", "select"), ("check",), ("check", "-a", "flat-mesh")):
            with self.subTest(args=args):
                done = hips(*args, "-t", "switch:100000000")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, r"\Ahips: plan: [\w-]+ on Switch\(100000000\) has groups of 100000000 [^\n]+\n\Z")
        # Closed forms have no limit.
        self.assertIn("100 %", hips("compare", "-t", "switch:100000000", "-b", "1M", "-a", "hips").stdout)
        self.assertEqual(hips("plan", "-a", "halving-doubling", "-t", "switch:100000000").returncode, 0)


class Settings(unittest.TestCase):
    """All commands read the environment, ~/.hips.conf and /etc/hips.conf."""

    def home(self, text):
        folder = tempfile.TemporaryDirectory(prefix="hips-command-test-")
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, ".hips.conf"), "w", encoding="utf-8") as file:
            file.write(text)
        return folder.name

    def test_every_command_reads_the_topology_from_each_of_them(self):
        yaml = os.path.join(self.home(""), "lab.yaml")
        with open(yaml, "w", encoding="utf-8") as file:
            file.write(hips("topo", "-t", "bcube:3,1", "--format", "yaml").stdout)
        for environment in ({"HIPS_TOPO": "bcube:3,1"}, {"HIPS_TOPO_FILE": yaml},
                            {"HOME": self.home("HIPS_TOPO=bcube:3,1\n")}):
            for args in (("topo",), ("plan",), ("check",), ("compare", "-b", "1M"), ("info", "select")):
                with self.subTest(args=args, environment=environment):
                    done = hips(*args, **environment)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_lab_reads_the_topology_from_each_of_them(self):
        # A lab cannot have so many servers, so that no guest is booted.
        for environment in ({"HIPS_TOPO": "switch:300"}, {"HOME": self.home("HIPS_TOPO=switch:300\n")}):
            with self.subTest(environment=environment):
                done = hips("lab", "run", "--", "true", **environment)
                self.assertEqual(done.returncode, 2)
                self.assertIn("300 servers", done.stderr)
        self.assertIn("hips: lab run: no topology; give -t SPEC", hips("lab", "run", "--", "true").stderr)

    def test_a_flag_overrides_settings_and_a_stored_plan_needs_no_topology(self):
        self.assertIn("on Switch(4)", hips("check", "-t", "switch:4", HIPS_TOPO="bcube:3,1").stdout)
        plan = os.path.join(self.home(""), "plan.json")
        with open(plan, "w", encoding="utf-8") as file:
            file.write(hips("plan", "-t", "switch:4", "--all", "--json").stdout)
        done = hips("check", "--plan", plan, HIPS_TOPO="bcube:3,1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_command_names_a_malformed_settings_file(self):
        home = self.home("HIPS_TOPO=bcube:2,1\ngarbage\n")
        for args in (("topo",), ("plan",), ("check",), ("compare",), ("info", "select"), ("lab", "run", "--", "true"),
                     ("plan", "-t", "switch:4"), ("topo", "discover"), ("run", "true")):
            with self.subTest(args=args):
                done = hips(*args, HOME=home)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, r"\Ahips: [^\n]*/\.hips\.conf[^\n]*line 2[^\n]*garbage[^\n]*\n\Z")

    def test_an_invalid_value_is_an_error_whatever_the_flags_are(self):
        for name, value in (("HIPS_TRANSPORT", "foo"), ("HIPS_CREDITS", "99")):
            for command in (("info", "select"), ("plan",), ("check",), ("topo",), ("compare",)):
                with self.subTest(command=command, name=name):
                    done = hips(*command, "-t", "switch:4", **{name: value})
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertIn(f'hips: {name}="{value}" is wrong: give ', done.stderr)

    def test_an_unknown_name_is_reported_once(self):
        for args in (("plan", "-t", "switch:4"), ("check", "-t", "switch:4"), ("topo", "-t", "switch:4"),
                     ("compare", "-t", "switch:4", "-b", "1M"), ("info", "select", "-t", "switch:4"), ("topo", "discover")):
            with self.subTest(args=args):
                done = hips(*args, HIPS_FOO="1")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("HIPS_FOO is not a variable of HiPS"), 1, done.stderr)

    def test_commands_that_show_settings_show_invalid_ones(self):
        home = self.home("garbage\n")
        self.assertIn("garbage", hips("info", "env", HOME=home).stdout)
        self.assertIn("garbage", hips("doctor", HOME=home).stdout)
        self.assertIn("HIPS_CREDITS", hips("doctor", HIPS_CREDITS="99").stdout)
        self.assertEqual(hips("completion", "bash", HOME=home).stderr, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
