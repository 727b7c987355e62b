"""The package hips without other ranks: topologies, plans, proofs, costs; doctests, stubs, and what notebooks show."""

import ast
import doctest
import json
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

import hips
import hips._comm
import hips._plans
import hips.plans

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import file_forms

SOURCE = os.path.join(sys.argv.pop(1), "python", "hips") if len(sys.argv) > 1 else os.path.dirname(hips.__file__)


class Topologies(unittest.TestCase):
    def test_of_every_family(self):
        for spec, servers, nics in (("bcube:3,1", 9, 2), ("torus:4x4", 16, 4), ("mesh:3x3", 9, 4), ("fattree:4", 16, 1), ("leafspine:2,4", 8, 1),
                                    ("rail:8,2", 8, 2), ("switch:5", 5, 1)):
            topology = hips.Topology(spec)
            self.assertEqual((topology.num_servers, topology.num_nics), (servers, nics))
            self.assertEqual(topology, hips.Topology(topology.spec))
            self.assertEqual(hash(topology), hash(hips.Topology(topology.spec)))
            self.assertEqual(eval(repr(topology)), topology)
            tree.fromstring(topology.svg())
            self.assertIn(f"{servers} servers", str(topology))
            for hop in topology.route(0, servers - 1) if topology.servers_relay else ():
                self.assertIn(hop.target, [one.target for one in topology.neighbours(hop.source)])
            plan = topology.plan()
            self.assertTrue(plan.check(), f"{spec}: {plan.check()}")
            self.assertGreaterEqual(plan.cost().bandwidth_seconds, 0.999 * topology.bound())

    def test_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cluster.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(hips.Topology("torus:3x3@25Gb").yaml())
            self.assertEqual(hips.Topology(path), hips.Topology("torus:3x3@25Gb"))

    def test_of_files_of_every_form(self):
        for form in file_forms.FORMS:
            with self.subTest(form=form.name), tempfile.TemporaryDirectory() as folder:
                topology = hips.Topology(file_forms.write(form, folder))
                self.assertEqual(topology.num_servers, 4)
                tree.fromstring(topology.svg())
                self.assertTrue(topology.plan().check())
                self.assertGreaterEqual(topology.plan().cost().bandwidth_seconds, 0.999 * topology.bound())

    def test_large_ones(self):
        topology = hips.Topology("bcube:100,2")
        self.assertEqual(topology.num_servers, 1_000_000)
        self.assertIsNone(topology._repr_svg_())
        with self.assertRaisesRegex(hips.Error, "too large|more than|at most"):
            topology.svg()
        self.assertIn("1000000 servers", str(topology))

    def test_wrong_ones(self):
        for spec, text in (("bcube:3", "k is missing"), ("nothing:3", "nothing"), ("", "topology"), ("nowhere.yaml", "nowhere.yaml")):
            with self.assertRaisesRegex(hips.ArgumentError, text):
                hips.Topology(spec)
        with self.assertRaisesRegex(IndexError, r"rank 9 is out of range \[0, 8\]"):
            hips.Topology("bcube:3,1").address(9)
        with self.assertRaisesRegex(IndexError, "rank -1"):
            hips.Topology("bcube:3,1").route(0, -1)


class Plans(unittest.TestCase):
    topology = hips.Topology("bcube:3,1")

    def test_every_algorithm(self):
        for name in hips.algorithms():
            if name in ("bucket", "swing"):
                continue  # of toruses
            plan = self.topology.plan(name)
            self.assertEqual(plan.algorithm, name)
            self.assertTrue(plan.check(size="64K"), name)
            self.assertIn(plan.description, repr(plan))
            self.assertIn("<table>", plan._repr_html_())

    def test_programs_match_the_json(self):
        plan = self.topology.plan("hips", "mesh")
        stored = json.loads(plan.json())
        for rank in range(9):
            steps = plan.program(rank)
            self.assertEqual(json.loads(json.dumps(steps)), stored["programs"][rank]["steps"])
        self.assertIn("to <01>", plan.text(0))
        self.assertIn("<svg", plan.html("1M"))

    def test_stored_and_broken(self):
        stored = json.loads(self.topology.plan("hips", "mesh").json())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")

            def read():
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(stored, file)
                return hips.Plan.read(path)

            self.assertTrue(read().check())
            self.assertEqual(read().topology, self.topology)
            victim = next(step for step in stored["programs"][4]["steps"] if step["op"] == "reduce")
            victim["srcs"] = victim["srcs"][:-1]
            report = read().check()
            self.assertFalse(report)
            self.assertGreater(report.num_errors, 0)
            self.assertIn("not proved", str(report))
            self.assertTrue(any(finding.is_error and finding.text for finding in report.findings))
            with self.assertRaisesRegex(hips.Error, "9 ranks"):
                hips.Plan.read(path, "switch:4")
            with self.assertRaisesRegex(hips.Error, "nowhere.json"):
                hips.Plan.read(os.path.join(folder, "nowhere.json"))

    def test_wrong_names(self):
        for arguments, options, text in ((("nothing",), {}, "nothing"), (("hips", "pattern"), {}, "pattern"), ((), {"size": "12Q"}, "invalid size \"12Q\""),
                                         ((), {"size": 3}, "not a multiple of 4")):
            with self.assertRaisesRegex(ValueError, text):
                self.topology.plan(*arguments, **options)
        with self.assertRaisesRegex(hips.Error, "out of range"):
            self.topology.plan().program(9)
        with self.assertRaisesRegex(ValueError, "unknown collective"):
            self.topology.plan().check(collective="nothing")

    def test_comparison(self):
        comparison = hips.compare("bcube:3,1", "4K:64M", baseline=True)
        self.assertEqual(list(comparison.best), comparison.sizes)
        self.assertIn("flat-ring", str(comparison))
        self.assertIn("<b>", comparison._repr_html_())
        self.assertLess(comparison.seconds("hips:ring")[64 << 20], comparison.seconds("flat-ps")[64 << 20])
        with self.assertRaises(KeyError):
            comparison.seconds("nothing")
        with self.assertRaisesRegex(ValueError, "nothing"):
            hips.compare("bcube:3,1", algorithms="nothing")


class Package(unittest.TestCase):
    def test_doctests(self):
        result = doctest.testmod(hips.plans)
        self.assertEqual(result.failed, 0)
        self.assertGreater(result.attempted, 10)

    def test_everything_public_has_a_docstring(self):
        for name in hips.__all__:
            value = getattr(hips, name)
            self.assertTrue(value.__doc__, name)
            for member, what in vars(value).items() if isinstance(value, type) and value is not hips.Op else ():
                if not member.startswith("_") and callable(what):
                    self.assertTrue(what.__doc__, f"{name}.{member}")

    def test_stubs_name_what_there_is(self):
        for module in (hips._comm, hips._plans):
            with open(os.path.join(SOURCE, module.__name__.split(".")[1] + ".pyi"), encoding="utf-8") as file:
                stub = ast.parse(file.read())
            named = {}
            for node in stub.body:
                if isinstance(node, ast.ClassDef):
                    named[node.name] = {member.target.id if isinstance(member, ast.AnnAssign) else member.name for member in node.body}
                elif isinstance(node, ast.FunctionDef):
                    named[node.name] = set()
            real = {name: value for name, value in vars(module).items() if not name.startswith("__")}
            self.assertEqual(set(named), set(real))
            for name, members in named.items():
                if not isinstance(real[name], type):
                    continue
                public = {member for member in vars(real[name]) if not member.startswith("_")}
                self.assertEqual({member for member in members if not member.startswith("_")} - {"name", "value"}, public - {"name", "value"}, name)

    def test_errors_can_be_pickled(self):
        import pickle
        error = hips.Error("text", "peer lost", 3, "peer")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.code, again.rank, again.scope, again.nic), ("text", "peer lost", 3, "peer", None))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
