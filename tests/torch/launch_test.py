"""python3 -m hips_torch.launch: variables, failures, wrong arguments."""

import os
import subprocess
import sys
import tempfile
import time
import unittest


class Launch(unittest.TestCase):
    def launch(self, *arguments, script=None):
        with tempfile.TemporaryDirectory() as folder:
            if script is not None:
                path = os.path.join(folder, "script.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(script)
                arguments = (*arguments, path, "argument")
            return subprocess.run([sys.executable, "-m", "hips_torch.launch", *arguments], capture_output=True, text=True, timeout=50, check=False)

    def test_ranks_form_a_group(self):
        done = self.launch("-n", "3", script="import sys, torch, torch.distributed as dist, hips_torch\n"
                                             "dist.init_process_group('hips')\n"
                                             "one = torch.ones(1)\n"
                                             "dist.all_reduce(one)\n"
                                             "print(f'{dist.get_rank()}: {one.item()} {sys.argv[1]}\\n', end='')\n"
                                             "dist.destroy_process_group()\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n")), ["", "0: 3.0 argument", "1: 3.0 argument", "2: 3.0 argument"])

    def test_one_that_fails_ends_the_others(self):
        begin = time.monotonic()
        done = self.launch("-n", "2", script="import os, sys, time\nsys.exit(7) if os.environ['RANK'] == '1' else time.sleep(600)\n")
        self.assertEqual(done.returncode, 7)
        self.assertLess(time.monotonic() - begin, 45)

    def test_wrong_arguments_are_one_clear_error(self):
        for arguments, text in ((("-n", "0", __file__), "-n: 0 processes; expected 1 or more"), (("-n", "2", "nowhere.py"), '"nowhere.py" does not exist'),
                                (("-n", "x", __file__), "invalid int value: 'x'"), ((), "required: -n/--nproc, script")):
            with self.subTest(arguments=arguments):
                done = self.launch(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(text, done.stderr)


class Slurm(unittest.TestCase):
    TASK = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "3", "SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_TASKS": "8",
            "SLURM_STEP_TASKS_PER_NODE": "4(x2)", "SLURM_STEP_NODELIST": "node[003-005,9],x"}

    def test_variables_of_torchrun(self):
        from hips_torch import slurm
        made = slurm.variables(self.TASK)
        port = made.pop("MASTER_PORT")
        self.assertEqual(made, {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "node003"})
        self.assertNotEqual(slurm.variables({**self.TASK, "SLURM_STEP_ID": "4"})["MASTER_PORT"], port)
        for other in ({"SLURM_STEP_ID": "4294967291"}, {"SLURM_STEP_ID": ""}, {"SLURM_STEP_NODELIST": ""}):
            self.assertEqual(slurm.variables({**self.TASK, **other}), {})
        self.assertEqual([slurm.first_host(nodes) for nodes in ("a,b[1-2]", "b[12,14]", "alone", "")], ["a", "b12", "alone", ""])

    def test_what_is_set_stays(self):
        from hips_torch import slurm
        environment = {**self.TASK, "MASTER_ADDR": "other"}
        slurm.set_variables(environment)
        self.assertEqual((environment["MASTER_ADDR"], environment["RANK"]), ("other", "5"))
        environment = {**self.TASK, "RANK": "0"}
        slurm.set_variables(environment)
        self.assertNotIn("MASTER_ADDR", environment)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
