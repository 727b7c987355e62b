"""How tools/check counts: count_tests_test.py TOOLS_FOLDER."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop())
import count_tests  # noqa: E402


class Count(unittest.TestCase):
    def count(self, *logs):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for index, text in enumerate(logs):
                paths.append(os.path.join(folder, f"{index}.json"))
                if text is not None:
                    with open(paths[-1], "w", encoding="utf-8") as file:
                        file.write(text)
            return count_tests.count(paths)

    def test_every_result_that_is_no_pass_and_no_skip_is_a_failure(self):
        log = "".join(f'{{"name": "{result}", "result": "{result}"}}\n'
                      for result in ["OK", "EXPECTEDFAIL", "SKIP", "FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS",
                                     "INTERRUPT"])
        passed, failed, skipped = self.count(log)
        self.assertEqual((passed, skipped), (2, 1))
        self.assertEqual([name for name, _ in failed], ["FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS", "INTERRUPT"])

    def test_logs_are_added_and_a_missing_one_counts_nothing(self):
        line = '{"name": "a", "result": "OK"}\n'
        self.assertEqual(self.count(line, None, "", line + line), (3, [], 0))

    def test_the_slowest_tests_come_first(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "build", "meson-logs", "testlog.json")
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                for name, seconds in (("a", 1.5), ("b", 20.25), ("c", 3.0)):
                    file.write(f'{{"name": "{name}", "result": "OK", "duration": {seconds}}}\n')
            self.assertEqual(count_tests.slowest([path, "missing"], 2), [(20.25, "build", "b"), (3.0, "build", "c")])

    def test_cases_that_were_skipped_inside_of_tests_are_counted_with_their_reasons(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "testlog.json")
            texts = ("[ RUN      ] A.B\n../../tests/a_test.cpp:12: Skipped\nno RDMA\n\n[  SKIPPED ] A.B (0 ms)\n",
                     "test_a (__main__.A.test_a) ... skipped 'no RDMA'\ntest_b (__main__.A.test_b) ... skipped \"it's MPICH\"\nok\n", "3 passed\n")
            with open(path, "w", encoding="utf-8") as file:
                for text in texts:
                    file.write(json.dumps({"name": "a", "result": "OK", "stdout": text}) + "\n")
                file.write(json.dumps({"name": "b", "result": "OK"}) + "\n")
            self.assertEqual(count_tests.skips([path, "missing"]), [(2, "no RDMA"), (1, "it's MPICH")])

    def test_a_broken_log_is_an_error(self):
        with self.assertRaises(ValueError):
            self.count('{"name": "a", "resu')


if __name__ == "__main__":
    unittest.main(verbosity=2)
