"""The rules of house.py hold for the whole tree, and house.py finds what breaks them: house_test.py ROOT."""
import os
import sys
import tempfile
import unittest

import house

ROOT = sys.argv.pop()

# Pages that a reader has to take in at once, and how many lines they may have.
MOST_LINES_OF_PAGES = {"README.md": 160, "docs/architecture.md": 250}

# Known exceptions, each with what ends it.
EXPECTED = {
    # The library's own classes of these names become one class each.
    "Communicator is defined 2 times: include/hips/communicator.hpp",
    "CommunicatorOptions is defined 2 times: include/hips/communicator.hpp",
    "Request is defined 2 times: include/hips/request.hpp",
}


class Tree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = list(house.findings(ROOT, house.files(ROOT)))

    def test_nothing_breaks_the_rules(self):
        unexpected = [text for text in self.found if not any(known in text for known in EXPECTED)]
        self.assertEqual("\n".join(unexpected), "")

    def test_every_exception_is_still_needed(self):
        for known in EXPECTED:
            self.assertTrue(any(known in text for text in self.found), f"remove the exception \"{known}\"")

    def test_pages_that_are_read_at_once_are_short(self):
        for page, most in MOST_LINES_OF_PAGES.items():
            lines = house.read(ROOT, page).count("\n")
            self.assertLessEqual(lines, most, page)


class Rules(unittest.TestCase):
    def findings(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(house.findings(root, sorted(files)))

    def test_a_folder_of_many_files(self):
        files = {f"lib/base/file{i}.hpp": "" for i in range(41)}
        self.assertEqual(len(self.findings(files)), 1)
        files.popitem()
        self.assertEqual(self.findings(files), [])

    def test_a_long_function(self):
        body = "  int x = 0;\n" * 99
        found = self.findings({"lib/base/a.cpp": f"namespace hips {{\nint f() {{\n{body}}}\n}}\n"})
        self.assertEqual(found, ["lib/base/a.cpp:2: f has 101 lines; at most 100"])
        self.assertEqual(self.findings({"lib/base/a.cpp": f"int f() {{\n{body[:-13]}}}\n"}), [])

    def test_a_type_of_two_definitions(self):
        found = self.findings({"lib/base/a.hpp": "namespace hips {\nstruct Name {};\n}\n",
                               "lib/exec/b.hpp": "namespace hips::exec {\nclass Name final : public Other {};\n}\n"})
        self.assertEqual(found, ["Name is defined 2 times: lib/base/a.hpp:2, lib/exec/b.hpp:2"])
        # A declaration, and a type inside another, is none.
        self.assertEqual(self.findings({"lib/base/a.hpp": "struct Name {};\n",
                                        "lib/base/b.hpp": "struct Name;\nstruct Other {\n  struct Name {};\n};\n"}), [])

    def test_words_in_comments_identifiers_and_file_names(self):
        for path, text in (("lib/base/a.hpp", "// the odd rank\n"), ("docs/a.md", "Whoever reads this\n"),
                           ("lib/base/a.hpp", "int count_of_verdicts;\n"), ("lib/base/a.hpp", "class WatchKeeper;\nclass Watchkeeper {};\n"),
                           ("lib/base/verdict.hpp", "\n")):
            with self.subTest(text=text):
                self.assertEqual(len(self.findings({path: text})), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
