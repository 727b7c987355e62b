"""What tools/check builds behind other tests: suite_targets_test.py TOOLS_FOLDER."""
import sys
import unittest

sys.path.insert(0, sys.argv.pop())
import suite_targets  # noqa: E402

# As `meson introspect` says it.
TESTS = [
    {"name": "engine", "suite": ["hips:unit"], "depends": ["engine@exe"]},
    {"name": "rings", "suite": ["hips:process", "hips:threads"], "depends": ["rings@exe", "hips@exe"]},
    {"name": "format", "suite": ["hips:unit"], "depends": []},
    {"name": "guests", "suite": ["hips:lab"], "depends": ["hips@exe", "image@cus"]},
]
TARGETS = [
    {"id": "engine@exe", "filename": ["/build/tests/engine_test"]},
    {"id": "rings@exe", "filename": ["/build/tests/rings_test"]},
    {"id": "hips@exe", "filename": ["/build/tools/hips"]},
    {"id": "image@cus", "filename": ["/build/tools/a.img", "/build/tools/b.img"]},
]


class Targets(unittest.TestCase):
    def targets(self, *suites):
        return suite_targets.targets(TESTS, TARGETS, "/build", suites)

    def test_what_the_tests_of_a_suite_need_is_named_as_ninja_does(self):
        self.assertEqual(self.targets("unit"), ["tests/engine_test"])
        self.assertEqual(self.targets("lab"), ["tools/a.img", "tools/b.img", "tools/hips"])

    def test_a_test_may_be_in_several_suites_and_a_target_of_several_tests(self):
        self.assertEqual(self.targets("threads"), ["tests/rings_test", "tools/hips"])
        self.assertEqual(self.targets("process", "lab", "threads"),
                         ["tests/rings_test", "tools/a.img", "tools/b.img", "tools/hips"])

    def test_a_suite_can_be_left_out(self):
        self.assertEqual(self.targets("unit", "process", "-threads"), ["tests/engine_test"])

    def test_a_suite_that_no_test_is_in_needs_nothing(self):
        self.assertEqual(self.targets("none"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
