"""hips-allreduce-perf as a program: perf_run_test.py PERF [MPIRUN]. Without MPIRUN the ranks have no launcher."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import ranks  # noqa: E402

MPIRUN = sys.argv.pop() if len(sys.argv) > 2 else None
PERF = sys.argv.pop()

ROW = re.compile(r"^ +(\d+) +(\d+) +(\w+) +(\w+) +(-1)"
                 r"  ([ 0-9.e+]{7})  ([ 0-9.e+-]{6})  ([ 0-9.e+-]{6})  ([ 0-9N/A]{6})"
                 r"  ([ 0-9.e+]{7})  ([ 0-9.e+-]{6})  ([ 0-9.e+-]{6})  ([ 0-9N/A]{6})$")
# The header of nccl-tests, whose table users parse.
HEADER = ["#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw"
          "  #wrong",
          "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)"
          "  (GB/s)"]


def rows(text):
    return [match.groups() for match in map(ROW.match, text.splitlines()) if match]


class Base(unittest.TestCase):
    def start(self, size, *args, **extra):
        """The output of rank 0. Every rank must succeed."""
        if MPIRUN:
            done = subprocess.run([MPIRUN, "--oversubscribe", "-n", str(size), PERF, *args], text=True, timeout=240,
                                  capture_output=True, env=ranks.environment(**extra), check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout
        done = ranks.run_ranks(size, [PERF, *args], **extra)
        for rank in done:
            self.assertEqual(rank.returncode, 0, rank.stdout + rank.stderr)
        for rank in done[1:]:
            self.assertEqual(rank.stdout, "")
        return done[0].stdout


class Table(Base):
    def test_rows_and_columns_are_those_of_nccl_tests(self):
        text = self.start(3, "-b", "8", "-e", "512", "-f", "8", "-n", "2")
        lines = [line.rstrip() for line in text.splitlines()]
        for header in HEADER:
            self.assertIn(header, lines)
        found = rows(text)
        self.assertEqual([(row[0], row[1], row[2], row[3]) for row in found],
                         [("8", "2", "float", "sum"), ("64", "16", "float", "sum"), ("512", "128", "float", "sum")])
        for row in found:
            self.assertEqual((row[8].strip(), row[12].strip()), ("0", "0"))
        self.assertIn("# Out of bounds values : 0 OK", lines)
        self.assertIn("# Collective test concluded: hips-allreduce-perf", lines)

    def test_every_type_and_operation_is_exact_for_two_sizes(self):
        text = self.start(3, "-b", "40", "-e", "100K", "-i", "99960", "-n", "1", "-w", "0", "-d", "all", "-o", "all")
        found = rows(text)
        # Two sizes of eight integer types with eleven operations, and of four floating ones with five.
        self.assertEqual(len(found), 2 * (8 * 11 + 4 * 5))
        self.assertEqual({(row[8].strip(), row[12].strip()) for row in found}, {("0", "0")})

    def test_unchecked_rows_have_no_count_of_wrong_elements(self):
        found = rows(self.start(2, "-b", "8", "-e", "8", "-n", "1", "-c", "0"))
        self.assertEqual((found[0][8].strip(), found[0][12].strip()), ("N/A", "N/A"))

    def test_the_plan_is_for_the_given_topology(self):
        text = self.start(4, "-b", "8", "-e", "8", "-n", "1", "--topo", "bcube:2,1", "--pattern", "mesh")
        self.assertRegex(text, r"# Plan: .*BCube\(2,1\)")


class Json(Base):
    def test_it_has_the_keys_of_nccl_tests_and_keeps_an_earlier_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            for _ in range(2):
                text = self.start(2, "-b", "64", "-e", "128", "-f", "2", "-n", "1", "-J", path)
            self.assertIn(f"# Writing JSON output to {path}.0", text)
            self.assertEqual(sorted(os.listdir(folder)), ["out.json", "out.json.0"])
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
        self.assertLessEqual({"version", "start_time", "end_time", "args", "env", "config", "results", "out_of_bounds",
                              "average_bus_bandwidth"}, set(report))
        self.assertEqual(report["config"]["minimum_bytes"], 64)
        self.assertEqual([device["rank"] for device in report["config"]["devices"]], [0, 1])
        self.assertEqual([row["size"] for row in report["results"]], [64, 128])
        for row in report["results"]:
            self.assertEqual((row["type"], row["redop"], row["count"]), ("float", "sum", row["size"] // 4))
            for half in (row["out_of_place"], row["in_place"]):
                self.assertEqual(half["nwrong"], 0)
                self.assertGreater(half["time"], 0)
                self.assertAlmostEqual(half["alg_bw"], row["size"] / half["time"] / 1e3, places=9)
                self.assertAlmostEqual(half["bus_bw"], half["alg_bw"], places=9)  # 2(n-1)/n of two ranks


class Compared(Base):
    """Alternating with native MPI and with copying."""

    def compared(self, *flags):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            text = self.start(2, "-b", "8", "-e", "64K", "-f", "8192", "-n", "3", "--rounds", "3", "-J", path, *flags)
            with open(path, encoding="utf-8") as file:
                return text, json.load(file)

    def check_columns(self, text, report, count):
        self.assertEqual([row["size"] for row in report["results"]], [8, 65536])
        for line, row in zip([line for line in text.splitlines() if re.match(r" +\d", line)], report["results"]):
            # The columns of nccl-tests keep their positions; ours follow.
            self.assertTrue(ROW.match(line[:118]), line)
            self.assertEqual(len(line[118:].replace(" - ", "  ").split()), count, line)
            self.assertEqual(row["out_of_place"]["nwrong"], 0)

    def test_copying_is_timed(self):
        text, report = self.compared("--bound")
        self.check_columns(text, report, 2)
        for row in report["results"]:
            self.assertGreater(row["bound_time"], 0)
            self.assertGreater(row["bound_percent"], 0)
            self.assertNotIn("ratio", row)

    @unittest.skipUnless(MPIRUN, "needs native MPI")
    def test_native_mpi_and_copying_are_timed(self):
        text, report = self.compared("--compare", "mpi", "--bound")
        self.check_columns(text, report, 6)
        self.assertRegex(text, r"# Alternating, 3 rounds of 3 calls: HiPS, Open MPI v[\d.]+\w*, copying by all ranks\n")
        self.assertTrue(report["host_mpi"].startswith("Open MPI v"))
        for row in report["results"]:
            self.assertLessEqual(row["ratio_low"], row["ratio"])
            self.assertLessEqual(row["ratio"], row["ratio_high"])
            self.assertGreater(row["host_time"], 0)
        ratios = [row["ratio"] for row in report["results"]]
        self.assertAlmostEqual(report["compared"]["geometric_mean_ratio"], (ratios[0] * ratios[1]) ** 0.5, places=6)
        self.assertEqual(report["compared"]["slower"], sum(ratio < 0.95 for ratio in ratios))

    @unittest.skipUnless(MPIRUN, "needs native MPI")
    def test_the_allreduce_of_an_interposer_is_timed(self):
        text, report = self.compared("--compare", "interposer")
        self.check_columns(text, report, 4)
        self.assertRegex(text, r"calls: HiPS, Open MPI v[\d.]+\w*, including interposers\n")

    @unittest.skipUnless(MPIRUN, "needs native MPI")
    def test_a_type_that_native_mpi_does_not_have_is_rejected(self):
        done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", PERF, "-b", "8", "-e", "8", "-d", "half", "--compare",
                               "mpi"], text=True, capture_output=True, env=ranks.environment(), timeout=240, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--compare: MPI has no sum of half", done.stderr)

    @unittest.skipIf(MPIRUN, "runs under MPI")
    def test_comparing_with_mpi_needs_mpi(self):
        for rank in ranks.run_ranks(2, [PERF, "-b", "8", "-e", "8", "--compare", "mpi"]):
            self.assertEqual(rank.returncode, 2)
            self.assertRegex(rank.stderr,
                             r"^hips-allreduce-perf: --compare: the ranks were not started by MPI; .*mpirun -n N\n$")

    def test_other_forms_of_the_call_are_timed(self):
        for form, calls in (("nonblocking", "hips_iallreduce() and hips_wait()"),
                            ("persistent", "hips_start() and hips_wait()")):
            text, report = self.compared("--compare", form)
            self.check_columns(text, report, 4)
            self.assertIn(f"calls: HiPS, {calls}\n", text)
            self.assertEqual(report["compared_with"], calls)
            self.assertEqual(len([row["ratio"] for row in report["results"]]), 2)


class Overlap(Base):
    def test_its_figures_are_consistent(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "perf.json")
            text = self.start(3, "-b", "8", "-e", "64K", "-f", "8192", "-n", "5", "--overlap", "--tests", "4", "-J", path)
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
        titles = next(line for line in text.splitlines() if " overall " in line)
        self.assertEqual(titles.split()[-4:], ["overall", "compute", "pure", "overlap"])
        lines = [line for line in text.splitlines() if re.match(r" +\d", line)]
        for line, row in zip(lines, report["results"], strict=True):
            self.assertEqual(len(line), len(titles), line)
            overlap = row["overlap"]
            for name in ("overall", "compute", "pure"):
                self.assertGreater(overlap[name], 0)
            hidden = 100 * (1 - (overlap["overall"] - overlap["compute"]) / overlap["pure"])
            self.assertAlmostEqual(overlap["percent"], min(100, max(0, hidden)), places=6)


class Tuned(Base):
    def test_a_table_is_written_for_one_topology_kept_for_others_and_used(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table")
            sizes = ["-b", "64", "-e", "4K", "-f", "64", "-n", "2", "--rounds", "1"]
            for topology in ("bcube:2,1", "torus:2x2"):
                text = self.start(4, *sizes, "--topo", topology, "--tune", path)
                self.assertIn(f"HIPS_SELECT_TABLE={path} uses it", text)
                self.assertEqual(len([line for line in text.splitlines() if re.match(r" +\d", line)]), 2)
            with open(path, encoding="utf-8") as file:
                table = file.read()
            self.assertRegex(table, r"topology=bcube:2,1 up_to=any algorithm=\S+ pattern=\S+\n")
            self.assertRegex(table, r"topology=torus:2x2 up_to=any algorithm=\S+ pattern=\S+\n")
            with open(path, "w", encoding="utf-8") as file:
                file.write("# HiPS selection table 1\n"
                           "topology=bcube:2,1 up_to=100 algorithm=halving-doubling pattern=default\n"
                           "topology=bcube:2,1 up_to=any algorithm=hips pattern=ring\n")
            text = self.start(4, *sizes, "--topo", "bcube:2,1", HIPS_SELECT_TABLE=path)
            self.assertRegex(text, r"# Plan: .*[Hh]alving.* up to 100 bytes, else HiPS.*ring")
            self.assertEqual({row[8].strip() for row in rows(text)}, {"0"})

    def test_the_default_of_hips_is_timed_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table")
            sizes = ["-b", "64", "-e", "64K", "-f", "1024", "-n", "2", "--rounds", "1", "--topo", "switch:2/2"]
            # The current table is ignored.
            text = self.start(4, *sizes, "--tune", path, HIPS_SELECT_TABLE="/nowhere/table")
            self.assertRegex(text, r"(?m)^# +size \(B\) +auto +hips mesh ")
            with open(path, "w", encoding="utf-8") as file:
                file.write("# HiPS selection table 1\n"
                           "topology=switch:2/2 up_to=100 algorithm=flat-ring pattern=default\n"
                           "topology=switch:2/2 up_to=any algorithm=auto pattern=default\n")
            text = self.start(4, *sizes, HIPS_SELECT_TABLE=path)
            self.assertRegex(text, r"# Plan: barrier and allreduce of sizes without a chosen algorithm in the shared memory of "
                                   r"the 2 ranks of a node .*; other calls flat ring.* up to 100 bytes, else ")
            self.assertEqual({row[8].strip() for row in rows(text)}, {"0"})

    def test_a_malformed_table_is_one_error_on_every_rank(self):
        with tempfile.NamedTemporaryFile("w", suffix=".table") as file:
            file.write("hello\n")
            file.flush()
            for rank in ranks.run_ranks(2, [PERF, "-b", "8", "-e", "8"], HIPS_SELECT_TABLE=file.name):
                self.assertEqual(rank.returncode, 2)
                self.assertRegex(rank.stderr, r"^hips-allreduce-perf: selection table .*: line 1: .*\n$")


class Fitted(Base):
    def test_the_output_is_a_topology_file_with_the_measured_rates(self):
        text = self.start(4, "-b", "64", "-e", "1M", "-f", "128", "-n", "2", "--rounds", "1", "--topo", "bcube:2,1", "--fit")
        self.assertRegex(text, r"(?m)^# with a reduction term: alpha \S+ us per hop, beta \S+ GB/s .*, gamma .*; median error$")
        self.assertRegex(text, r"(?m)^hips-topology: 1\nshape: \"bcube:2,1\"$")
        # Equal levels have one common rate, others one rate each.
        self.assertRegex(text, r"(?m)^(  - \{name: level 1, .*, )?rate: [\d.]+[GM]b")
        for line in text.splitlines():
            self.assertRegex(line, r"^#|^[a-z-]+:|^  ")


class EachCall(Base):
    def test_the_statistics_of_calls_follow_each_half(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "perf.json")
            text = self.start(2, "-b", "8", "-e", "64K", "-f", "8192", "-n", "50", "-I", "-J", path)
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
        titles = next(line for line in text.splitlines() if " i_p99 " in line)
        half = ["time", "algbw", "busbw", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"]
        self.assertEqual(titles.split()[1:], ["size", "count", "type", "redop", "root", *half, *half])
        lines = [line for line in text.splitlines() if re.match(r" +\d", line)]
        self.assertEqual(len(lines), 2)
        for line, row in zip(lines, report["results"]):
            self.assertEqual(len(line.split()), 5 + 2 * len(half), line)
            self.assertEqual(len(line), len(titles), line)
            for place in ("out_of_place", "in_place"):
                each = row[place]["each_call"]
                times = [each[name] for name in ("min", "p50", "p90", "p99", "max")]
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[0], 0)
                self.assertEqual(row[place]["nwrong"], 0)


class Errors(unittest.TestCase):
    def test_a_missing_launcher_gives_one_line(self):
        done = subprocess.run([PERF], text=True, capture_output=True, env=ranks.environment(), timeout=240, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^hips-allreduce-perf: no launcher; .*mpirun -n N.*HIPS_RANK.*\n$")

    def test_only_rank_0_reports_an_error_common_to_all_ranks(self):
        done = ranks.run_ranks(2, [PERF, "-b", "many"])
        self.assertEqual([rank.returncode for rank in done], [2, 2])
        self.assertEqual(done[0].stderr.count("\n"), 1)
        self.assertIn('invalid size "many"', done[0].stderr)
        self.assertEqual(done[1].stderr, "")

    def test_a_file_that_cannot_be_written_is_reported_before_any_measurement(self):
        with tempfile.TemporaryDirectory() as folder:
            for file, reason in ((f"{folder}/none/x", "No such file or directory"), (folder, "Is a directory")):
                for option in ("-J", "--tune"):
                    done = ranks.run_ranks(2, [PERF, "-b", "8", "-e", "8", option, file])
                    for rank in done:
                        self.assertEqual(rank.returncode, 2)
                        self.assertEqual(rank.stderr, f"hips-allreduce-perf: cannot write {file}: {reason}\n")
                        self.assertEqual(rank.stdout, "")
            self.assertEqual(os.listdir(folder), [])

    def one_rank(self, *words):
        return subprocess.run(words, text=True, capture_output=True, timeout=240, check=False,
                              env=ranks.environment(HIPS_RANK="0", HIPS_SIZE="1", HIPS_ROOT=f"127.0.0.1:{ranks.free_port()}"))

    def test_results_go_beside_earlier_ones_into_pipes_or_nowhere(self):
        few = ["-b", "8", "-e", "8", "-n", "1"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write("earlier")
            os.chmod(path, 0o400)
            self.assertEqual(self.one_rank(PERF, *few, "-J", path).returncode, 0)
            with open(path + ".0", encoding="utf-8") as file:
                self.assertIn("results", json.load(file))
            # Where the disk is full, or a limit is reached, nothing is left that looks like results.
            full = os.path.join(folder, "full.json")
            done = self.one_rank("sh", "-c", f"ulimit -f 1; trap '' XFSZ; exec {PERF} -b 8 -e 64K -f 2 -n 1 -J {full}")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, f"hips-allreduce-perf: cannot write {full}: File too large\n")
            self.assertFalse(os.path.exists(full))
        done = self.one_rank("sh", "-c", f"{PERF} {' '.join(few)} -J /proc/self/fd/3 3>&1 >/dev/null | cat")
        self.assertIn("results", json.loads(done.stdout))

    def test_the_launcher_of_another_mpi_is_refused(self):
        if "libmpi.so.40" not in subprocess.run(["ldd", PERF], text=True, capture_output=True, check=True).stdout:
            self.skipTest("not built for Open MPI")
        done = subprocess.run([PERF, "-b", "8", "-e", "8"], text=True, capture_output=True, timeout=240, check=False,
                              env=ranks.environment(PMI_RANK="0", PMI_SIZE="2", OMPI_MCA_ess_singleton_isolated="1"))
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("the launcher has started 2 ranks, but MPI knows of this one only", done.stderr)

    def test_output_that_cannot_be_written_is_an_error(self):
        env = ranks.environment(HIPS_RANK="0", HIPS_SIZE="1", HIPS_ROOT=f"127.0.0.1:{ranks.free_port()}")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([PERF, "-b", "8", "-e", "8", "-n", "1"], text=True, stdout=full, stderr=subprocess.PIPE,
                                  env=env, timeout=240, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "hips-allreduce-perf: cannot write the output: No space left on device\n")

    def test_vectors_that_exceed_memory_are_reported(self):
        for size in ("100000G", "17000000000G"):
            for rank in ranks.run_ranks(2, [PERF, "-b", size, "-e", size, "-n", "1"]):
                self.assertEqual(rank.returncode, 1)
                self.assertRegex(rank.stderr, r"^hips-allreduce-perf: out of memory for vectors of \d+ bytes, .*-e\n$")

    def test_a_topology_of_another_size_is_an_error_on_every_rank(self):
        done = ranks.run_ranks(2, [PERF, "-b", "8", "-e", "8", "--topo", "bcube:3,1"])
        for rank in done:
            self.assertEqual(rank.returncode, 2)
            self.assertIn("9", rank.stderr)
            self.assertIn("2", rank.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
