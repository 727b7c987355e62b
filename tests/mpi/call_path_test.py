"""The classes that a call passes on its way from MPI_Allreduce to the library's communicator, as docs/architecture.md tells them."""

import bisect
import os
import re
import subprocess
import unittest

from harness import LIBRARY, PROGRAMS, Case, args, mpirun, rest


def functions():
    """Begin, end and name of each function of the interposer, by begin."""
    found = []
    for line in subprocess.run(["nm", "-S", "-C", LIBRARY], capture_output=True, text=True, check=True).stdout.splitlines():
        match = re.match(r"([0-9a-f]+) ([0-9a-f]+) [tTwW] (.*)", line)
        if match:
            begin = int(match[1], 16)
            found.append((begin, begin + int(match[2], 16), match[3]))
    return sorted(found)


def class_of(function):
    """"hips::mpi::Guard" of "hips::mpi::Guard::decide(int)"; "" of other functions."""
    function = function.replace("(anonymous namespace)::", "")
    while (shorter := re.sub(r"<[^<>]*>", "", function)) != function:
        function = shorter
    scopes = function.split("(")[0].split(" ")[-1].split("::")
    return "::".join(scopes[:-1]) if scopes[0] == "hips" and len(scopes) > 2 and scopes[-2][0].isupper() else ""


class CallPath(Case):
    def test_tells_the_class_of_a_function(self):
        self.assertEqual(class_of("hips::comm::Communicator::call(hips::comm::CallArgs const&)"), "hips::comm::Communicator")
        self.assertEqual(class_of("hips::Status hips::mpi::(anonymous namespace)::A<int>::b<C<D> >(E<F>)"), "hips::mpi::A")
        self.assertEqual(class_of("int hips::mpi::call_blocking<hips::mpi::AllreduceCall>(int)"), "")

    def test_a_call_reaches_the_communicator_through_at_most_three_classes_of_the_interposer(self):
        known = functions()
        begins = [begin for begin, _, _ in known]
        for options in ([], ["-t", "switch:2"]):
            with self.subTest(options):
                outcome = mpirun(2, args.hips, "run", *options, PROGRAMS["call_path"])
                self.assertEqual(outcome.code, 0, outcome.text())
                names = []
                for line in reversed(outcome.out.splitlines()):
                    path, place = line.rsplit(" ", 1)
                    at = bisect.bisect_right(begins, int(place, 16)) - 1
                    if os.path.basename(path) == os.path.basename(LIBRARY) and at >= 0 and int(place, 16) < known[at][1]:
                        names.append(known[at][2])
                self.assertTrue(any(re.fullmatch(r"P?MPI_Allreduce", name) for name in names), names)
                classes = list(dict.fromkeys(one for one in map(class_of, names) if one))
                self.assertIn("hips::comm::Communicator", classes, names)
                of_mpi = classes[:classes.index("hips::comm::Communicator")]
                self.assertLessEqual(len(of_mpi), 3, names)
                self.assertTrue(all(one.startswith("hips::mpi::") for one in of_mpi), names)


unittest.main(argv=[__file__, *rest], verbosity=2)
