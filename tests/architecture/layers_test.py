"""Every #include of the tree points downwards, and the check that says so can fail."""
import os
import sys
import tempfile
import unittest

import layers

ROOT = sys.argv.pop()


class Tree(unittest.TestCase):
    def test_every_include_points_downwards(self):
        self.assertEqual(list(layers.findings(ROOT)), [])

    def test_the_tree_was_found(self):
        self.assertIn("include/hips/hips.h", set(layers.sources(ROOT)))

    def test_the_table_has_no_cycle(self):
        done, order = set(), []
        while len(done) < len(layers.LAYERS):
            ready = [layer for layer, below in layers.LAYERS.items() if layer not in done and below <= done]
            self.assertTrue(ready, f"a cycle among {sorted(set(layers.LAYERS) - done)}")
            done.update(ready)
            order += ready


class PlantedMistakes(unittest.TestCase):
    """Each puts one file into a tree of its own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.plant("transports/transport.hpp", "#include <hips/status.hpp>\n")
        self.plant("transports/shm/shm.hpp", "")
        self.plant("lib/plan/builder.hpp", "")
        self.plant("include/hips/status.hpp", "#include <string>\n")
        self.assertEqual(self.findings(), [])

    def plant(self, path, text):
        full = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def findings(self):
        return list(layers.findings(self.folder.name))

    def expect(self, path, text, finding):
        self.plant(path, text)
        found = self.findings()
        self.assertEqual(len(found), 1, found)
        self.assertIn(finding, found[0])

    def test_a_plan_that_knows_transports(self):
        self.expect("lib/plan/bad.cpp", '// why\n#include "transports/transport.hpp"\n',
                    "lib/plan/bad.cpp:2: lib/plan may not include from transports")

    def test_a_transport_that_knows_plans(self):
        self.expect("transports/shm/bad.cpp", '  #  include "lib/plan/builder.hpp"\n',
                    "transports/shm may not include from lib/plan")

    def test_an_executor_that_knows_one_transport(self):
        self.expect("lib/exec/bad.cpp", '#include "transports/transport.hpp"\n#include "transports/shm/shm.hpp"\n',
                    "lib/exec may not include from transports/shm")

    def test_a_public_header_that_needs_a_library(self):
        self.expect("include/hips/bad.hpp", "#include <fmt/format.h>\n", "a public header includes fmt/format.h")

    def test_a_public_header_that_needs_the_tree(self):
        self.plant("include/hips/bad.hpp", '#include "lib/plan/builder.hpp"\n')
        self.assertEqual(len(self.findings()), 2)

    def test_an_example_that_needs_more_than_the_public_headers(self):
        self.expect("examples/bad.cpp", '#include "lib/plan/builder.hpp"\n', "examples may not include")

    def test_a_name_that_does_not_start_at_the_root(self):
        self.expect("lib/plan/bad.cpp", '#include "builder.hpp"\n', "not named from the root")

    def test_a_public_header_in_quotes(self):
        self.expect("lib/plan/bad.cpp", '#include "hips/status.hpp"\n', "write <hips/status.hpp>")

    def test_a_folder_that_the_table_lacks(self):
        self.expect("lib/new/file.cpp", "", "belongs to no folder")

    def test_comments_do_not_count(self):
        self.plant("lib/plan/good.cpp", '// #include "transports/transport.hpp"\n/*\n#include "nothing.hpp"\n*/\n')
        self.assertEqual(self.findings(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
