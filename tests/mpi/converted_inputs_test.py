"""Inputs that the preloaded library does not read: `hips run` converts them, and a library preloaded by hand says so."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from harness import LIBRARY, MPICH, PROGRAMS, Case, args, mpirun, rest

# Four servers of a BCube with names by a list; one NIC is slow, so that no spec of a family describes the file.
SLOW = """hips-topology: 1
shape: bcube:2,1
servers: {names: "n[0-3]", devices: [a, b]}
links: [{server: n2, nic: b, rate: 10Gb}]
"""
PLAIN = "hips-topology: 1\nshape: bcube:2,1\nrate: 25Gb\nservers: {names: 'n[0-1],n2,n3'}\n"
# MPI_Init of MPICH needs the launcher's descriptor; all others are closed.
KEPT = "int(os.environ['PMI_FD'])," if MPICH else ""
WRAPPER = f"import os, subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:], pass_fds=({KEPT})).returncode)\n"


class ConvertedInputs(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    def hips(self, *arguments):
        return subprocess.run([args.hips, *arguments], stdout=subprocess.PIPE, text=True, timeout=240, check=True).stdout

    def mesh(self):
        return self.write("mesh.xml", self.hips("plan", "-t", "switch:4", "--algorithm", "flat-mesh", "--format", "msccl"))

    def run_program(self, *options, ranks=4, program=(), **more):
        return mpirun(ranks, args.hips, "run", "--report", *options, *program, PROGRAMS["exact"], **more)

    def preloaded(self, **more):
        return mpirun(4, "env", f"LD_PRELOAD={LIBRARY}", PROGRAMS["exact"], **more)

    def test_a_plan_in_xml_runs(self):
        outcome = self.run_program(HIPS_PLAN_FILE=self.mesh())
        self.assert_exact(outcome)
        self.assertRegex(outcome.err, r"MPI_COMM_WORLD, 4 ranks: .*hips_flat-mesh")

    def test_a_program_that_a_script_starts_finds_converted_inputs(self):
        # The script's child inherits no descriptor of hips run.
        wrapper = self.write("wrapper.py", WRAPPER)
        outcome = self.run_program("-t", self.write("slow.yaml", SLOW), program=(sys.executable, wrapper),
                                   HIPS_PLAN_FILE=self.mesh())
        self.assert_exact(outcome)
        self.assertRegex(outcome.err, r"MPI_COMM_WORLD, 4 ranks: .*hips_flat-mesh")

    def test_messages_name_the_plan_file_that_was_given(self):
        plan = self.mesh()
        outcome = self.run_program(ranks=3, HIPS_PLAN_FILE=plan)
        self.assert_exact(outcome)
        self.assertIn(f"{plan} is a plan for 4 ranks, and the communicator has 3", outcome.err)

    def test_a_wrong_plan_in_xml_is_refused_before_the_program_starts(self):
        with open(self.mesh(), encoding="ascii") as file:
            lines = file.read().split('type="s"', 1)
        plan = self.write("wrong.xml", 'type="nop"'.join(lines))
        outcome = self.run_program("-t", "switch:4", HIPS_PLAN_FILE=plan)
        self.assertNotEqual(outcome.code, 0)
        self.assertEqual(outcome.out, "")
        self.assertIn(plan, outcome.err)

    def test_a_topology_file_with_a_list_of_names_keeps_its_spec(self):
        topology = self.write("slow.yaml", SLOW)
        spec = self.hips("topo", "-t", topology, "--spec").strip()
        self.assertTrue(spec.startswith(f"file:{topology}#"), spec)
        table = self.write("table", "# HiPS selection table 1\n"
                                    f"topology={spec} up_to=any algorithm=flat-ring pattern=default\n")
        outcome = self.run_program("-t", topology, HIPS_SELECT_TABLE=table)
        self.assert_exact(outcome)
        self.assertRegex(outcome.err, r"MPI_COMM_WORLD, 4 ranks: .*flat ring of 4 ranks")

    def test_a_topology_file_with_a_list_of_names_takes_several_ranks_on_each_server(self):
        topology = self.write("slow.yaml", SLOW)
        for given in (topology, topology + "/2"):
            with self.subTest(topology=given):
                self.assert_exact(self.run_program("-t", given, ranks=8))

    def test_a_topology_file_that_is_a_familys_spec_becomes_that_spec(self):
        topology = self.write("plain.yaml", PLAIN)
        table = self.write("table", "# HiPS selection table 1\n"
                                    "topology=bcube:2,1@25Gb up_to=any algorithm=flat-ring pattern=default\n")
        outcome = self.run_program(HIPS_TOPO_FILE=topology, HIPS_SELECT_TABLE=table)
        self.assert_exact(outcome)
        self.assertRegex(outcome.err, r"MPI_COMM_WORLD, 4 ranks: .*flat ring of 4 ranks")

    def test_a_library_preloaded_by_hand_says_what_to_do(self):
        topology = self.write("slow.yaml", SLOW)
        for more, problem in (({"HIPS_TOPO": topology}, f"{topology}: line 3: names: \"n[0-3]\" is a list of names"),
                              ({"HIPS_PLAN_FILE": self.mesh()}, "mesh.xml: the plan is XML")):
            with self.subTest(**more):
                outcome = self.preloaded(**more)
                self.assertNotEqual(outcome.code, 0)
                errors = outcome.lines_of_hips()
                self.assertEqual(len(errors), 4, outcome.text())
                for line in errors:
                    self.assertIn(problem, line)
                    self.assertIn("start the program with hips run", line)

    def test_the_preloaded_library_holds_no_readers_of_these_inputs(self):
        symbols = subprocess.run(["nm", "-C", LIBRARY], stdout=subprocess.PIPE, text=True, timeout=240, check=True).stdout
        if "parse_topology" not in symbols:
            self.skipTest("the library is stripped")
        # By lines: names of templates are long, and a match of ".*" would begin at each of their characters.
        readers = re.compile(r"Hostlist|topology::\S*[Ss]lurm|[Mm]sccl|GoalWriter|read_xml|[Ss]imgrid|read_nodelist|read_hostfile")
        self.assertEqual([line for line in symbols.splitlines() if readers.search(line)], [])


unittest.main(argv=[__file__, *rest], verbosity=2)
