"""Programs in documents compile as they stand there, every link of a document leads somewhere, and every command that
needs neither a launcher nor hardware works.

pages_test.py SOURCE_ROOT HIPS
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HIPS = sys.argv.pop()
ROOT = pathlib.Path(sys.argv.pop())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def anchors(page):
    """As the usual renderers make them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# A command line of a page: `hips` and one of these.
COMMAND = re.compile(r"^(?:\$ )?(hips (?:plan|check|compare|topo|info|completion)\b[^#\n]*)", re.MULTILINE)
# What looks at this machine's hardware, at other servers, is a pattern to fill in, or ends with 1 where files differ.
NOT_HERE = re.compile(r"topo discover|topo diff|\b(SPEC|FILE|DIR|NAME)\b|\.\.\.|\| *dot\b|\\$")
SLURM = "SwitchName=leaf0 Nodes=node[0-3]\nSwitchName=leaf1 Nodes=node[4-7]\nSwitchName=spine Switches=leaf[0-1]\n"


def run_line(line, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HIPS_")}
    environment.update(PATH=f"{os.path.dirname(HIPS)}:{environment['PATH']}", SLURM_JOB_NODELIST="node[0-3]")
    line = line.replace("/etc/slurm/", "slurm/").replace("/shared/", "")
    return subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=120, check=False)


def write_cables(folder):
    """Lists of cables of two leaves with four nodes each, below two spines; site.dot and site.csv have a storage node, too."""
    cables = [(f"gpu{leaf * 4 + node}", "eth0", f"leaf{leaf}", f"swp{node}") for leaf in (0, 1) for node in range(4)]
    cables += [(f"leaf{leaf}", f"swp{10 + spine}", f"spine{spine}", f"swp{leaf}") for leaf in (0, 1) for spine in (0, 1)]
    more = [*cables, ("storage0", "eth0", "leaf0", "swp9")]
    header = "side_a_device,side_a_name,side_b_device,side_b_name\n"
    for name, rows in (("cables.csv", cables), ("site.csv", more)):
        (folder / name).write_text(header + "".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    edges = "".join(f'  "{a}":"{a_port}" -- "{b}":"{b_port}";\n' for a, a_port, b, b_port in more)
    (folder / "site.dot").write_text("graph site {\n" + edges + "}\n", encoding="utf-8")
    (folder / "fabric.ib").write_text(
        'Switch 4 "leaf"\n[1] "node1"[1]\n[2] "node2"[1]\n\n' +
        "".join(f'Hca 1 "node{node}"\n[1] "leaf"[{node}]\n\n' for node in (1, 2)), encoding="utf-8")
    (folder / "lldp").mkdir()
    for node in range(8):
        (folder / f"lldp/node{node}.json").write_text(
            f'{{"lldp": {{"interface": [{{"eth0": {{"via": "LLDP", "chassis": {{"leaf{node // 4}": {{"capability": {{"type": "Bridge", '
            f'"enabled": true}}}}}}, "port": {{"id": {{"type": "ifname", "value": "swp{node % 4 + 1}"}}, '
            '"auto-negotiation": {"current": "100GBaseCR4"}}}}]}}', encoding="utf-8")


def prepare(folder):
    """Files that the pages take for granted: the examples, wirings from Slurm, as lists of cables and by hand, names of nodes, a stored plan."""
    write_cables(folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "slurm").mkdir()
    (folder / "slurm/topology.conf").write_text(SLURM, encoding="utf-8")
    (folder / "slurm/topology.yaml").write_text(
        "- topology: default\n  cluster_default: true\n  tree:\n    switches:\n"
        "      - {switch: leaf0, nodes: 'node[0-3]'}\n      - {switch: leaf1, nodes: 'node[4-7]'}\n"
        "      - {switch: spine, children: 'leaf[0-1]'}\n", encoding="utf-8")
    (folder / "ring.yaml").write_text("hips-topology: 1\nshape: torus:8\nservers:\n  names: [n0, n1, n2, n3, n4, n5, n6, n7]\n", encoding="utf-8")
    (folder / "hosts").write_text("".join(f"node{i} slots=1\n" for i in range(8)), encoding="utf-8")
    for line in ("hips topo --slurm slurm/topology.conf --format yaml > cluster.yaml", "cp cluster.yaml draft.yaml",
                 "hips topo -t bcube:3,1@25Gb --format yaml > here.yaml", "cp here.yaml wiring.yaml",
                 "hips plan -t switch:8 -a flat-ring --format msccl > allreduce.xml",
                 "hips plan -t bcube:3,1 --all --json > plan.json"):
        done = run_line(line, folder)
        if done.returncode != 0:
            raise AssertionError(f"{line}: {done.stderr}")


class Pages(unittest.TestCase):
    def test_commands_work(self):
        number = 0
        for page in PAGES:
            with tempfile.TemporaryDirectory(prefix="hips-pages-") as name:
                folder = pathlib.Path(name)
                prepare(folder)
                for block in re.findall(r"^```(?:sh|console)?\n(.*?)^```$", page.read_text(encoding="utf-8"),
                                        re.MULTILINE | re.DOTALL):
                    for line in COMMAND.findall(block):
                        if NOT_HERE.search(line.strip()):
                            continue
                        with self.subTest(page=page.name, line=line.strip()):
                            number += 1
                            done = run_line(line, folder)
                            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(number, 20)

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
    unittest.main(verbosity=2)
