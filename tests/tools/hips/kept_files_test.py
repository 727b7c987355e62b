"""What hips topo writes of a cluster's description is the same cluster, with its names: kept_files_test.py HIPS."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import file_forms

HIPS = sys.argv.pop()
WRITTEN = (("yaml",), ("yaml", "-v"), ("dot",))


def hips(*args):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HIPS_")}
    return subprocess.run([HIPS, *args], env=clean, capture_output=True, text=True, timeout=60, check=False)


def table(rows):
    return "side_a_device,side_a_name,side_b_device,side_b_name,rate\n" + "".join(",".join(row) + "\n" for row in rows)


def leaves(num_leaves, servers, cables_to_spine):
    """The cables of a leaf-spine: of each server one, and those that cables_to_spine(leaf) yields as (spine, rate)."""
    rows = []
    for leaf in range(num_leaves):
        rows += [(f"n{servers * leaf + i}", "eth0", f"leaf{leaf}", f"swp{i}", "100G") for i in range(servers)]
        rows += [(f"leaf{leaf}", f"up{i}", f"spine{spine}", f"{leaf}.{i}", rate)
                 for i, (spine, rate) in enumerate(cables_to_spine(leaf))]
    return rows


def two_to_each(leaf):
    """Two cables of each leaf to each of two spines; one pair has one, one has a slow one."""
    cables = [(0, "100G"), (0, "100G"), (1, "100G"), (1, "100G")]
    if leaf == 1:
        del cables[0]
    if leaf == 2:
        cables[3] = (1, "40G")
    return cables


THREE_TIERS = ("SwitchName=a Nodes=n[0-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=c Nodes=n[5-7]\nSwitchName=d Nodes=n[8-10]\n"
               "SwitchName=x Switches=a,b\nSwitchName=y Switches=c,d\nSwitchName=top Switches=x,y\n")
ODD_FILES = {
    "two cables to each spine": ("a.csv", table(leaves(4, 3, two_to_each)), ()),
    "a cable is missing": ("a.csv", table([row for row in leaves(4, 3, lambda leaf: [(i, "400G") for i in range(3)])
                                           if row[:3:2] != ("leaf2", "spine1")]), ()),
    "a leaf with fewer servers": ("a.csv", table([row for row in leaves(4, 4, lambda leaf: [(0, "100G"), (1, "100G")])
                                                  if row[0] not in ("n5", "n14", "n15")]), ()),
    "a slow and a dead cable": ("a.dot", "graph { " + " ".join(
        f'"{a}":"{p}" -- "{b}":"{q}" [rate="{rate}"{" label=down" if a == "n4" else ""}];' for a, p, b, q, rate in leaves(
            3, 3, lambda leaf: [(0, "200G"), (1, "40G" if leaf == 1 else "200G")])) + " }", ()),
    "a graph of parallel cables": ("a.csv", table(
        [(f"n{i}", "eth0", f"leaf{i // 2}", str(i), "100G") for i in range(6)] +
        [("leaf0", "a", "core", "1", "100G"), ("leaf0", "b", "core", "2", "100G"), ("leaf0", "c", "core", "3", "100G"),
         ("leaf1", "a", "leaf0", "x", "100G"), ("leaf1", "b", "leaf0", "y", "40G"), ("leaf2", "a", "core", "4", "100G")]), ()),
    "several NICs": ("a.csv", table([(f"n{i}", f"mlx5_{nic}", f"rail{nic}", str(i), "400G")
                                     for i in range(4) for nic in range(3)]), ()),
    "rates that are assumed": ("a.csv", table([row[:4] + ("",) for row in leaves(2, 3, lambda leaf: [(0, "")])]), ()),
    "Slurm with leaves of other sizes": ("topology.conf", "SwitchName=a Nodes=n[0-2]\nSwitchName=b Nodes=n[3-4]\n"
                                         "SwitchName=c Nodes=n5\nSwitchName=t Switches=a,b,c\n", ()),
    "a Fat-Tree of Slurm": ("topology.conf", "".join(f"SwitchName=e{i} Nodes=n[{2 * i}-{2 * i + 1 - (i == 3)}]\n" for i in range(8)) +
                            "".join(f"SwitchName=p{i} Switches=e{2 * i},e{2 * i + 1}\n" for i in range(4)) +
                            "SwitchName=top Switches=p[0-3]\n", ()),
    "rails of Slurm": ("topology.conf", "SwitchName=r0 Nodes=n[0-3]\nSwitchName=r1 Nodes=n[0-3]\n", ()),
    "three tiers of Slurm": ("topology.conf", THREE_TIERS, ("--rate", "spine=200Gb", "--rate", "core=400Gb")),
    "a ring of Slurm": ("topology.conf", "RingName=r Nodes=n[0-4]\n", ()),
    "latencies": ("edges.txt", "7 3 6\n4 5 6\n" + "".join(f"{a} {b} 100Gbps {us}us 0\n" for a, b, us in (
        (0, 4, 1), (1, 4, 1), (2, 5, 1), (3, 5, 1), (4, 6, 3), (5, 6, 3))), ()),
}


class Kept(unittest.TestCase):
    def write(self, path, options, *written):
        done = hips("topo", path, *options, "--format", *written)
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = f"{path}.{len(written)}.{written[0]}"
        with open(kept, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        return kept

    def check_same(self, old, new, options=()):
        for pair in ((old, new), (new, old)):
            # Options are for one of them.
            if not options:
                done = hips("topo", "diff", *pair)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_each_form_is_the_same_when_it_is_written(self):
        for form in file_forms.FORMS:
            for written in WRITTEN:
                with self.subTest(form=form.name, written=written), tempfile.TemporaryDirectory() as folder:
                    path = file_forms.write(form, folder)
                    kept = self.write(path, (), *written)
                    self.check_same(path, kept)
                    with open(kept, encoding="utf-8") as file:
                        text = file.read()
                    name = {"ns3": "4", "hips": "", "lldp": "leaf", "simgrid": "c level 1 switch 0"}.get(form.format, "leaf0")
                    self.assertRegex(text, rf'(- |label=)"?{name}')

    def test_odd_files_are_the_same_with_the_same_counts_and_the_same_is_assumed(self):
        for name, (file_name, text, options) in ODD_FILES.items():
            with self.subTest(name=name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, file_name)
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
                summary = hips("topo", path, *options)
                for written in WRITTEN:
                    with self.subTest(written=written):
                        kept = self.write(path, options, *written)
                        self.check_same(path, kept, options)
                        again = hips("topo", kept)
                        self.assertEqual(counts(again.stdout), counts(summary.stdout))
                        if written[0] == "yaml":
                            self.assertEqual(again.stderr, summary.stderr)
                            self.assertEqual(self.text(self.write(kept, (), *written)), self.text(kept))

    def test_a_part_has_the_switches_and_cables_that_the_file_tells_of_it(self):
        for name, (file_name, text, options) in ODD_FILES.items():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, file_name)
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
                nodes = json.loads(hips("topo", path, *options, "--json").stdout)["nodes"]
                for job in (nodes[:2], nodes[:len(nodes) // 2], nodes[::2], nodes[:1] + nodes[-2:], nodes[1:]):
                    of_job = (*options, "--nodelist", ",".join(job))
                    summary = hips("topo", path, *of_job)
                    self.assertEqual(summary.returncode, 0, summary.stderr)
                    for written in WRITTEN[:2]:
                        with self.subTest(name=name, job=job, written=written):
                            kept = self.write(path, of_job, *written)
                            again = hips("topo", kept)
                            # The lines about tiers are about the cables of the whole, which the kept file does not have.
                            self.assertEqual((again.returncode, counts(again.stdout)[:3]), (0, counts(summary.stdout)[:3]))
                            self.assertEqual(self.text(self.write(kept, (), *written)), self.text(kept))
                            # Servers that relay are switches to the job; rates that were told by options are not in the file.
                            changed = hips("topo", "diff", path, kept).stdout
                            if not options and name != "a ring of Slurm":
                                self.assertNotRegex(changed, r"(?m)^(\+|~ (cable|server)) ")

    def test_a_part_has_the_names_and_parallel_cables_of_its_switches(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.csv")

            def part(job, form):
                return self.text(self.write(path, ("--nodelist", job), form))

            with open(path, "w", encoding="ascii") as file:
                file.write(table(leaves(4, 3, lambda leaf: [(0, "100G"), (0, "100G"), (1, "100G"), (1, "100G")])))
            # As many servers below each of some leaves.
            equal = part("n[3-8]", "yaml")
            self.assertIn("\n    - leaf1\n    - leaf2\n    - spine0\n    - spine1\n", equal)
            self.assertRegex(equal, r"name: spine,.* cables: 2}")
            self.assertNotIn("assumed:", equal)
            self.assertIn('label="leaf2"', part("n[6-8]", "dot"))
            # Other numbers: the places of the leaves that the job does not use are empty.
            with open(path, "w", encoding="ascii") as file:
                file.write(table(leaves(4, 3, two_to_each)))
            uneven = part("n[0-1,6-8]", "yaml")
            self.assertIn('\n    - leaf0\n    - ""\n    - leaf2\n    - ""\n    - spine0\n    - spine1\n', uneven)
            self.assertRegex(uneven, r"switches: \[leaf2, spine1\], cables: \[100Gb, 40Gb\]}")

    @staticmethod
    def text(path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_cables_are_those_of_the_tiers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "topology.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(THREE_TIERS)
            text = hips("topo", path, "--rate", "spine=200Gb", "--rate", "core=400Gb").stdout
        cables = int(re.search(r"^  cables +(\d+)$", text, re.M).group(1))
        tiers = re.search(r"^  tiers +(.*)$", text, re.M).group(1)
        self.assertEqual(cables, sum(int(count) for count in re.findall(r"(\d+) cables? ", tiers)))

    def test_what_slurm_does_not_tell_is_not_written_as_if_it_did(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "topology.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(file_forms.SLURM)
            self.assertIn("\n  switches  3; 2 assumed ones take the place of spine\n  cables    4, and 4 assumed\n", hips("topo", path).stdout)
            none = self.text(self.write(path, (), "yaml"))
            self.assertNotIn("rate:", none)
            self.assertIn("  assumed:\n    - spine 0\n    - spine 1\n", none)
            one = self.text(self.write(path, ("--rate", "spine=400Gb"), "yaml"))
            self.assertEqual(re.findall("rate: .*?[,}]", one), ["rate: 400Gb,"])
            drawn = self.write(path, (), "dot")
            drawing = self.text(drawn)
            self.assertEqual(drawing.count('rate="100Gb" assumed=true]'), 8)
            self.assertEqual(drawing.count("shape=box, assumed=true, style=dashed]"), 2)
            again = hips("topo", drawn, "--rate", "leaf=25Gb")
            self.assertIn("leaf   radix 2  NIC 0  25 Gb/s", again.stdout)
            self.assertIn("2 switches with their cables are assumed, as the file says\n", again.stderr)
            self.assertNotIn("cables of servers is not known", again.stderr)


def counts(text):
    """The lines of a summary that count, without the spec."""
    lines = [line for line in text.splitlines()[1:] if not line.startswith("  nodes")]
    # Files that hips topo writes do not list the switches whose place assumed ones take.
    lines = [re.sub(r"^(  switches) .*\b(\d+) assumed.*", r"\1  \2 assumed", line) for line in lines]
    return [line for line in lines if re.match(r"  (servers|switches|cables|tiers|uneven|leaf|spine|single) ", line)]


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
