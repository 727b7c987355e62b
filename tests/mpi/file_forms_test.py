"""`hips run -t FILE` starts a job with a file of each form that describes the wiring, with and without --from."""

import os
import sys
import tempfile
import unittest

from harness import PROGRAMS, Case, args, mpirun, possible, rest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import file_forms


class FileForms(Case):
    def run_exact(self, *options, ranks=4):
        outcome = mpirun(ranks, args.hips, "run", "--report", *options, PROGRAMS["exact"])
        self.assert_exact(outcome)
        self.assertGreater(outcome.report()[0][0], 0, outcome.text())  # calls that HiPS took
        return outcome

    def test_a_file_of_each_form_runs(self):
        for form in file_forms.FORMS:
            with self.subTest(form=form.name), tempfile.TemporaryDirectory() as folder:
                path = file_forms.write(form, folder)
                for options in ([], ["--from", form.format]):
                    outcome = self.run_exact("-t", path, *options)
                    self.assertRegex(outcome.err, r"MPI_COMM_WORLD, 4 ranks: ")

    def test_several_ranks_on_each_server_of_a_graph_run(self):
        form = next(form for form in file_forms.FORMS if form.text == file_forms.GRAPH)
        for ranks in possible(8):
            with tempfile.TemporaryDirectory() as folder:
                self.run_exact("-t", file_forms.write(form, folder) + "/2", ranks=ranks)

    def test_a_folder_of_lldp_runs(self):
        form = next(form for form in file_forms.FORMS if form.format == "lldp")
        with tempfile.TemporaryDirectory() as folder:
            for line in form.text.splitlines():
                node, text = line.split(": ", 1)
                with open(os.path.join(folder, node + ".json"), "w", encoding="ascii") as file:
                    file.write(text)
            self.run_exact("-t", folder)
            self.run_exact("-t", folder, "--from", "lldp")

    def test_a_file_is_read_as_the_options_tell(self):
        with tempfile.TemporaryDirectory() as folder:
            dot = os.path.join(folder, "two.dot")
            with open(dot, "w", encoding="ascii") as file:
                file.write("graph { n0 -- leaf; n1 -- leaf; n2 -- leaf; n3 -- leaf; n0 -- mgmt; store -- mgmt }\n")
            outcome = self.run_exact("-t", dot, "--hosts", "^n", "--switches", "leaf", "--rate", "leaf=25Gb")
            self.assertRegex(outcome.err, r"MPI_COMM_WORLD, 4 ranks: ")
            # No spec tells two rates, so that the program gets a file.
            conf = os.path.join(folder, "topology.conf")
            with open(conf, "w", encoding="ascii") as file:
                file.write("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=c Switches=a,b\n")
            self.run_exact("-t", conf, "--rate", "leaf=25Gb", "--rate", "spine=100Gb")
            several = os.path.join(folder, "topology.yaml")
            with open(several, "w", encoding="ascii") as file:
                for name, nodes in ("a", "n[0-2]"), ("b", "n[0-3]"):
                    file.write(f"- topology: {name}\n  tree:\n    switches:\n      - {{switch: s, nodes: '{nodes}'}}\n")
            self.run_exact("-t", several, "--slurm-topology", "b")

    def test_several_files_of_lldp_run(self):
        form = next(form for form in file_forms.FORMS if form.format == "lldp")
        with tempfile.TemporaryDirectory() as folder:
            options = []
            for line in form.text.splitlines():
                node, text = line.split(": ", 1)
                options += ["-t", os.path.join(folder, node + ".json")]
                with open(options[-1], "w", encoding="ascii") as file:
                    file.write(text)
            self.run_exact(*options)

    def test_a_file_of_another_number_of_servers_is_refused_with_both_numbers(self):
        for form in file_forms.FORMS:
            with self.subTest(form=form.name), tempfile.TemporaryDirectory() as folder:
                outcome = mpirun(3, args.hips, "run", "-t", file_forms.write(form, folder), PROGRAMS["exact"])
                self.assertNotEqual(outcome.code, 0)
                self.assertEqual(outcome.out, "")
                self.assertRegex(outcome.err, r"4 (servers|ranks).* 3 ")

    def test_a_file_that_is_not_of_the_form_that_is_named_is_refused(self):
        form = next(form for form in file_forms.FORMS if form.format == "slurm")
        with tempfile.TemporaryDirectory() as folder:
            outcome = mpirun(2, args.hips, "run", "-t", file_forms.write(form, folder), "--from", "simgrid", PROGRAMS["exact"])
        self.assertNotEqual(outcome.code, 0)
        self.assertIn(form.file, outcome.err)
        self.assertEqual(outcome.out, "")


unittest.main(argv=[__file__, *rest], verbosity=2)
