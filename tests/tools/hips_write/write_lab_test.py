"""Tests hips-write-bw and hips-write-lat with soft-RoCE, and compares them with perftest:
write_lab_test.py HIPS FOLDER_OF_PROGRAMS.

The tests run in one guest of the lab, in which this file starts itself again.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import perftest_output
import two_ends

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))
import lab  # noqa: E402

INSIDE = "--inside" in sys.argv
if INSIDE:
    sys.argv.remove("--inside")
FOLDER = os.path.abspath(sys.argv.pop())
HIPS = sys.argv.pop()
BW, LAT = os.path.join(FOLDER, "hips-write-bw"), os.path.join(FOLDER, "hips-write-lat")


def one_line(done):
    """Returns the one line that a failed program printed on stderr."""
    lines = done.stderr.splitlines()
    assert done.returncode not in (0, 124) and len(lines) == 1, (done.returncode, done.stdout, done.stderr)
    return lines[0]


class Guest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json = os.path.join(folder.name, "out.json")

    def both(self, command, *arguments):
        """Runs a client and a server, which must both succeed, and returns their reports."""
        client, server = two_ends.run_both(command, *arguments)
        for end in (client, server):
            self.assertEqual(end.returncode, 0, end.stdout + end.stderr)
            self.assertEqual(end.stderr, "")
        return perftest_output.read_report(client.stdout), perftest_output.read_report(server.stdout)

    def perftest(self, command, *arguments):
        """Runs perftest and returns the client's report. It sometimes fails with the unsteady clock of an emulated
        CPU, and is then run again."""
        for _ in range(10):
            client, _ = two_ends.run_both(command, *arguments)
            if client.returncode == 0 and "inf" not in client.stdout:
                return perftest_output.read_report(client.stdout)
        return self.fail(client.stdout + client.stderr)

    def test_the_output_has_the_layout_of_perftest(self):
        for command, ours, kind, flags in (("ib_write_bw", BW, ["--raw"], ["-s", "4096", "-n", "500"]),
                                           ("ib_write_lat", LAT, [], ["-n", "200"])):
            json = ["--out_json", f"--out_json_file={self.json}"]
            expected = self.perftest(command, *flags)
            report, at_server = self.both(ours, *kind, *flags, *json)
            self.assertEqual(report.title, expected.title)
            self.assertEqual(report.unit, expected.unit)
            self.assertEqual([*report.banner], [*list(expected.banner)[:-1], "Requests", "Data ex. method"])
            for name in ("Device", "Mtu", "GID index", "CQ Moderation", "Link type", "TX depth"):
                self.assertEqual(report.banner.get(name), expected.banner.get(name), name)
            self.assertEqual([list(end) for end in report.local], [list(end) for end in expected.local])
            self.assertEqual(report.local, at_server.remote)
            self.assertEqual([list(row) for row in report.rows], [list(row) for row in expected.rows])
            self.assertGreater(min(value for name, value in report.rows[0].items() if name != "t_stdev"), 0)
            with open(self.json, encoding="utf-8") as file:
                saved = perftest_output.read_json(file.read())
            self.assertEqual(saved["test_info"]["Device"], two_ends.DEVICE)
            self.assertEqual(list(saved["results"]), list(report.rows[0]))

    def test_all_sizes_run_in_one_connection(self):
        report, _ = self.both(BW, "-a", "-n", "5")
        self.assertEqual([row["MsgSize"] for row in report.rows], [2 ** power for power in range(1, 24)])

    def test_rdma_cm_durations_and_the_newer_layout_work(self):
        report, server = self.both(BW, "-R", "-b", "-D", "1", "--report_gbits", "-T", "96", "-F", "-I", "64")
        self.assertEqual(report.banner["rdma_cm QPs"], "ON")
        self.assertEqual(report.unit, "Gb/sec")
        self.assertAlmostEqual(report.rows[0]["BW_average"], server.rows[0]["BW_average"], delta=0.02)
        report, _ = self.both(LAT, "-D", "1", "--raw", "-s", "64", "-S", "1")
        self.assertGreater(report.rows[0]["tps_average"], 0)
        report, _ = self.both(BW, "-q", "2", "-m", "1024", "-l", "8", "-s", "64", "-n", "800", "--perftest-format=6",
                              "--out_json", f"--out_json_file={self.json}")
        self.assertEqual(report.unit, "MiB/sec")
        self.assertEqual(report.rows[0]["n_iterations"], 1600)
        self.assertEqual(len(report.remote), 2)
        with open(self.json, encoding="utf-8") as file:
            self.assertEqual(perftest_output.read_json(file.read())["test_info"]["Mtu"], 1024)

    def test_the_overhead_of_the_transport_is_printed(self):
        for command in (BW, LAT):
            client, _ = two_ends.run_both(command, "--price", "-s", "4096", "-n", "200")
            self.assertEqual(client.returncode, 0, client.stderr)
            self.assertRegex(client.stdout, r"(?m)^ #bytes .* raw .*put .*overhead\[%\]$")
            self.assertRegex(client.stdout, r"(?m)^ 4096 +200 +[\d.]+ +[\d.]+ +-?[\d.]+ +[+-][\d.]+ *$")

    def test_data_validation_compares_every_byte(self):
        for command, flags, compared in ((BW, ["-b", "-q", "2", "-n", "100"], 2 * 65536),
                                         (BW, ["--raw", "--write_with_imm", "-s", "64", "-n", "200"], 4096),
                                         (LAT, ["-s", "100", "-n", "100"], 200)):
            client, server = two_ends.run_both(command, "--data_validation", *flags)
            for end in (client, server):
                self.assertEqual(end.returncode, 0, end.stdout + end.stderr)
                self.assertIn(f" Data validation : {compared} bytes compared, 0 wrong\n", end.stdout)

    def test_a_wrong_byte_is_reported_at_both_ends(self):
        flags = ["-D", "2", "-f", "0", "--data_validation", "-d", two_ends.DEVICE]
        with two_ends.Server(BW, *flags) as server, \
                subprocess.Popen(["taskset", "-c", "1", BW, *flags, two_ends.SERVER], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) as client:
            # In the middle of the run, a byte of the client's send buffer is changed.
            address = None
            for line in client.stdout:
                if found := re.match(r" local address: .* VAddr 0x0*(\w+)$", line):
                    address = int(found.group(1), 16)
                if line.startswith(" #bytes"):
                    break
            time.sleep(1)
            with open(f"/proc/{client.pid}/mem", "r+b", buffering=0) as memory:
                memory.seek(address + 65536 + 1000)  # the receive buffer comes first, then the send buffer
                byte = memory.read(1)[0]
                memory.seek(address + 65536 + 1000)
                memory.write(bytes([byte ^ 1]))
            out, err = client.communicate(timeout=300)
            there = server.end()
        self.assertIn("1 wrong", out)
        for status, text in ((client.returncode, err), (there.returncode, there.stderr)):
            self.assertEqual(status, 1, text)
            self.assertRegex(text, r"^hips-write-bw: data validation: 1 of \d+ bytes .* wrong\n$")

    def test_inline_sizes_above_the_limit_are_rejected_before_connecting(self):
        for flags in [], ["-R"]:
            # No server runs, so that a client that tried to connect would report that.
            client = two_ends.run_client(LAT, *flags, "-I", "4096", "-d", two_ends.DEVICE, two_ends.SERVER)
            self.assertEqual(client.returncode, 2, client.stdout + client.stderr)
            self.assertRegex(one_line(client), r"-I 4096 is too large; rxe0:1 has at most \d+$")

    def test_the_banner_shows_the_inline_size_of_the_queue_pairs(self):
        client = two_ends.run_client(LAT, "-I", "4096", "-d", two_ends.DEVICE, two_ends.SERVER)
        largest = one_line(client).split()[-1]
        for flags, expected in (["-I", largest], largest), ([], "128"), (["-R"], "128"):
            report, _ = self.both(LAT, "-n", "5", *flags)
            self.assertEqual(report.banner["Max inline data"], expected + "[B]")

    def test_each_error_is_one_line_that_names_valid_values(self):
        self.assertIn("invalid -d nope: this node has -d rxe0 -i 1", one_line(two_ends.run_client(BW, "-d", "nope")))
        self.assertIn("invalid -i 2: rxe0 has 1 port", one_line(two_ends.run_client(BW, "-i", "2")))
        self.assertRegex(one_line(two_ends.run_client(BW, "-x", "77")), r"-x 77\b.*10\.100\.0\.1")
        self.assertIn("start the same command", one_line(two_ends.run_client(LAT, "-p", "18600", two_ends.SERVER)))
        self.assertIn("unknown host", one_line(two_ends.run_client(LAT, "no.such.host.invalid")))

    def test_both_ends_list_different_flags(self):
        client, server = two_ends.run_both(BW, "-s", "64", server_arguments=["-s", "128", "-b"])
        self.assertIn("-b is off here and on there, -s is 64 here and 128 there", one_line(client))
        self.assertIn("-b is on here and off there, -s is 128 here and 64 there", one_line(server))

    def test_another_program_at_the_other_end_is_reported(self):
        with two_ends.Server(BW, "-d", two_ends.DEVICE) as server:
            other = two_ends.run_client("ib_write_bw", "-d", two_ends.DEVICE, two_ends.SERVER)
            self.assertNotEqual(other.returncode, 0)
            self.assertIn("runs another program", one_line(server.end()))

    def test_an_end_exits_when_the_other_is_killed(self):
        for command in (BW, LAT):
            flags = ["-D", "60", "-d", two_ends.DEVICE]
            with two_ends.Server(command, *flags) as server, \
                    subprocess.Popen(["taskset", "-c", "1", command, *flags, two_ends.SERVER], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
                for line in client.stdout:
                    if line.startswith(" #bytes"):
                        break
                server.process.kill()
                _, err = client.communicate(timeout=300)
            self.assertNotEqual(client.returncode, 0)
            self.assertEqual(len(err.splitlines()), 1, err)


class Host(unittest.TestCase):
    @unittest.skipIf(glob.glob("/sys/class/infiniband/*"), "this node has RDMA devices")
    def test_missing_devices_are_reported(self):
        self.assertIn("device", one_line(subprocess.run([BW], capture_output=True, text=True, timeout=20, check=False)))

    def test_the_tests_of_the_guest_pass(self):
        done = lab.run(HIPS, "-t", "switch:1", "--one-guest", "--accel", "tcg", "--timeout", "400", "--",
                       sys.executable, os.path.abspath(__file__), HIPS, FOLDER, "--inside", timeout=1500)
        sys.stderr.write(done.stdout + done.stderr)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main(defaultTest="Guest" if INSIDE else "Host", verbosity=2)
