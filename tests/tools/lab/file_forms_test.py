"""`hips lab run -t FILE` wires servers and runs ranks as a file of each form describes, with and without --from."""
import os
import sys
import tempfile
import unittest

import lab

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import file_forms

PERF = os.path.abspath(sys.argv.pop(2))
HIPS = os.path.abspath(sys.argv.pop(1))


class FileForms(unittest.TestCase):
    def reduces(self, *options):
        done = lab.run(HIPS, "--namespaces", "-q", *options, "--", PERF, "-b", "64K", "-e", "64K", "-n", "2", "--check", "1",
                       timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"Out of bounds values +: 0 OK")
        return done

    def test_a_file_of_each_form_is_wired_and_runs(self):
        for form in file_forms.FORMS:
            with self.subTest(form=form.name), tempfile.TemporaryDirectory() as folder:
                path = file_forms.write(form, folder)
                self.assertIn("4 namespaces", lab.run(HIPS, "--namespaces", "-t", path, "--", "true", timeout=240).stderr)
                self.reduces("-t", path)
                self.reduces("-t", path, "--from", form.format)

    def test_a_file_of_another_form_is_refused_before_servers_start(self):
        form = next(form for form in file_forms.FORMS if form.format == "slurm")
        with tempfile.TemporaryDirectory() as folder:
            done = lab.run(HIPS, "--namespaces", "-t", file_forms.write(form, folder), "--from", "simgrid", "--", "echo", "ran", timeout=240)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn(form.file, done.stderr)


lab.skip_unless_possible("namespaces")
unittest.main(verbosity=2)
