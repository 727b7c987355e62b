"""Jobs of a real Slurm, three nodes of it on this machine: slurm_test.py BUILD MPI_PROGRAM [PYTHON_WITH_HIPS]."""

import os
import subprocess
import sys
import tempfile
import unittest

import cluster

BUILD, MPI_PROGRAM, PYTHON = (sys.argv[1:] + [""])[:3]
HIPS = os.path.join(BUILD, "tools/hips/hips")
ALLREDUCE = os.path.join(BUILD, "examples/allreduce")


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cluster = cluster.Cluster(cls.folder.name, 3)

    def srun(self, *arguments, **options):
        code, output, errors = self.cluster.srun(*arguments, **options)
        self.assertEqual(code, 0, output + errors + self.cluster.logs())
        return output

    def test_a_program_of_the_library(self):
        output = self.srun("-N3", "-n6", ALLREDUCE)
        self.assertEqual(sorted(output.split("\n"))[1:], [f"rank {rank} of 6: every element is 21" for rank in range(6)])

    def test_an_mpi_program(self):
        if not MPI_PROGRAM:
            self.skipTest("built without MPI")
        output = self.srun("--mpi=pmix", "-N3", "-n6", HIPS, "run", "--report", MPI_PROGRAM, "bits", OMPI_MCA_mpi_yield_when_idle="1")
        self.assertIn("wrong 0", output)

    def test_without_pmix_the_error_says_what_to_type(self):
        if not MPI_PROGRAM:
            self.skipTest("built without MPI")
        code, _, errors = self.cluster.srun("--mpi=none", "-N2", "-n2", HIPS, "run", MPI_PROGRAM, "bits")
        self.assertNotEqual(code, 0)
        self.assertIn("srun --mpi=pmix -n 2 hips run", errors)

    def test_the_nodes_of_a_job_are_examined(self):
        for mpi in ("none", "pmi2", "pmix"):
            with self.subTest(mpi=mpi):
                code, output, errors = self.cluster.srun(f"--mpi={mpi}", "-N3", "-n3", HIPS, "doctor")
                self.assertIn("reach: all 3 paths work", output, errors)
                self.assertIn(code, (0, 1))

    def test_steps_at_once_do_not_meet(self):
        script = f"srun -N1 -n2 --exact {ALLREDUCE} & srun -N1 -n3 --exact {ALLREDUCE} & wait"
        with open(os.path.join(self.folder.name, "both.sh"), "w", encoding="utf-8") as file:
            file.write(script)
        done = subprocess.run(["salloc", "--quiet", "-N2", "-n8", "sh", file.name], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        expected = [f"rank {rank} of {size}: every element is {size * (size + 1) // 2}" for size in (2, 3) for rank in range(size)]
        self.assertEqual(sorted(done.stdout.split()), sorted("\n".join(expected).split()))

    def test_python(self):
        if not PYTHON:
            self.skipTest("built without the Python package")
        output = self.srun("-N3", "-n6", PYTHON, "-c", "import hips; comm = hips.Communicator(); print(comm.allreduce(comm.rank))",
                           PYTHONPATH=os.path.join(BUILD, "python"))
        self.assertEqual(output.split(), ["15"] * 6)

    def test_pytorch(self):
        if not PYTHON or subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True, check=False).returncode != 0:
            self.skipTest("PyTorch is missing")
        script = ("import os, torch, torch.distributed as dist, hips_torch; dist.init_process_group('hips'); one = torch.ones(1); dist.all_reduce(one); "
                  "print(int(one), os.environ['LOCAL_WORLD_SIZE'] >= '1'); dist.destroy_process_group()")
        output = self.srun("-N3", "-n3", PYTHON, "-c", script, PYTHONPATH=os.path.join(BUILD, "python"), OMP_NUM_THREADS="1")
        self.assertEqual(output.split("\n")[:3], ["3 True"] * 3)

    def test_a_lost_rank_is_named(self):
        if not PYTHON:
            self.skipTest("built without the Python package")
        script = ("import hips, numpy, os\ncomm = hips.Communicator()\ncomm.barrier()\nif comm.rank == 1: os._exit(0)\n"
                  "try:\n  while True: comm.allreduce(numpy.ones(1000))\nexcept hips.Error as error: print(error.code, error.rank)\n")
        output = self.srun("-N3", "-n3", PYTHON, "-c", script, PYTHONPATH=os.path.join(BUILD, "python"))
        self.assertEqual(output.split("\n")[:2], ["peer lost 1"] * 2)


if __name__ == "__main__":
    why = cluster.missing()
    if why:
        print(f"skipped: no Slurm here: {why}")
        sys.exit(77)
    cluster.enter()
    unittest.main(argv=sys.argv[:1] + ["-v"])
