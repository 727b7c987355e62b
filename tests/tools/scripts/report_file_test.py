"""Where reports go: report_file_test.py TOOLS_FOLDER."""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = sys.argv.pop()
sys.path.insert(0, TOOLS)
import report_file  # noqa: E402


class ReportFile(unittest.TestCase):
    def test_a_name_is_relative_to_the_folder_of_the_caller(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CALLED_FROM"] = folder
            self.assertEqual(report_file.report_file("a.md"), os.path.join(folder, "a.md"))
            self.assertEqual(report_file.report_file("/tmp/a.md"), "/tmp/a.md")
            del os.environ["CALLED_FROM"]

    def test_a_file_that_cannot_be_written_is_refused(self):
        for name, why in (("/nope/a.md", "there is no folder /nope"), ("/tmp", "is a folder")):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, f"^{name}.*{why}"):
                report_file.report_file(name)

    def test_a_page_whose_tables_are_replaced_exists(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "a.md")
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "does not exist"):
                report_file.page_with_tables(name)

    def test_reports_refuse_it_before_they_measure(self):
        for name in ("lab", "nodes", "performance", "programs", "ps"):
            with self.subTest(report=name):
                done = subprocess.run([sys.executable, os.path.join(TOOLS, f"{name}_report.py"), "--build", "/nope",
                                       "--output", "/nope/a.md"], text=True, capture_output=True, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn("--output: /nope/a.md: there is no folder /nope\n", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
