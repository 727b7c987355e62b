"""Programs in documents compile as they stand there, and every link of a document leads somewhere.

pages_test.py SOURCE_ROOT
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def anchors(page):
    """As the usual renderers make them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Pages(unittest.TestCase):
    def compiled(self, command, text, suffix):
        with tempfile.TemporaryDirectory(prefix="hips-pages-") as folder:
            source = pathlib.Path(folder, "program" + suffix)
            source.write_text(text, encoding="utf-8")
            done = subprocess.run([*command, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "include"),
                                   str(source)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stderr}")

    def test_whole_programs_compile(self):
        programs = 0
        for page in PAGES:
            for text in blocks(page, "cpp"):
                if "int main" in text:
                    programs += 1
                    self.compiled(["c++", "-std=c++20"], text, ".cpp")
            for text in blocks(page, "c"):
                if "int main" not in text:
                    continue
                if "mpi.h" in text and shutil.which("mpicc") is None:
                    continue
                programs += 1
                self.compiled(["mpicc" if "mpi.h" in text else "cc", "-std=c11", "-Wno-missing-field-initializers"], text,
                              ".c")
        self.assertGreaterEqual(programs, 4)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
                if "://" in target:
                    continue
                path, _, anchor = target.partition("#")
                linked = (page.parent / path) if path else page
                self.assertTrue(linked.exists(), f"{page.name} links to {target}")
                if anchor and linked.suffix == ".md":
                    self.assertIn(anchor, anchors(linked), f"{page.name} links to {target}")


if __name__ == "__main__":
    unittest.main()
