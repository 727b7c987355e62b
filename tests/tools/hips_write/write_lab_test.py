"""hips-write-bw and hips-write-lat beside perftest: write_lab_test.py HIPS FOLDER_OF_PROGRAMS.

All in one guest of the lab, where this file runs again.
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

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lab"))
import lab  # noqa: E402

INSIDE = "--inside" in sys.argv
if INSIDE:
    sys.argv.remove("--inside")
FOLDER = os.path.abspath(sys.argv.pop())
HIPS = sys.argv.pop()
BW, LAT = os.path.join(FOLDER, "hips-write-bw"), os.path.join(FOLDER, "hips-write-lat")


def one_line(done):
    """What a program that failed said on stderr; one line, or a failure of the test."""
    lines = done.stderr.splitlines()
    assert done.returncode not in (0, 124) and len(lines) == 1, (done.returncode, done.stdout, done.stderr)
    return lines[0]


class Guest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json = os.path.join(folder.name, "out.json")

    def both(self, command, *arguments):
        """The reports of client and server, which both have to succeed."""
        client, server = two_ends.run_both(command, *arguments)
        for end in (client, server):
            self.assertEqual(end.returncode, 0, end.stdout + end.stderr)
            self.assertEqual(end.stderr, "")
        return perftest_output.read_report(client.stdout), perftest_output.read_report(server.stdout)

    def perftest(self, command, *arguments):
        """The client's report of perftest itself, which gives up where an emulated CPU's clock wanders."""
        for _ in range(10):
            client, _ = two_ends.run_both(command, *arguments)
            if client.returncode == 0 and "inf" not in client.stdout:
                return perftest_output.read_report(client.stdout)
        return self.fail(client.stdout + client.stderr)

    def test_one_reader_reads_both_programs(self):
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

    def test_rdma_cm_durations_and_the_newer_layout(self):
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

    def test_the_price_of_the_layer_is_printed(self):
        for command in (BW, LAT):
            client, _ = two_ends.run_both(command, "--price", "-s", "4096", "-n", "200")
            self.assertEqual(client.returncode, 0, client.stderr)
            self.assertRegex(client.stdout, r"(?m)^ #bytes .* raw .*put .*price\[%\]$")
            self.assertRegex(client.stdout, r"(?m)^ 4096 +200 +[\d.]+ +[\d.]+ +-?[\d.]+ +[+-][\d.]+ *$")

    def test_every_byte_is_compared(self):
        for command, flags, compared in ((BW, ["-b", "-q", "2", "-n", "100"], 2 * 65536),
                                         (BW, ["--raw", "--write_with_imm", "-s", "64", "-n", "200"], 4096),
                                         (LAT, ["-s", "100", "-n", "100"], 200)):
            client, server = two_ends.run_both(command, "--data_validation", *flags)
            for end in (client, server):
                self.assertEqual(end.returncode, 0, end.stdout + end.stderr)
                self.assertIn(f" Data validation : {compared} bytes compared, 0 wrong\n", end.stdout)

    def test_a_byte_that_changes_on_the_way_is_noticed_at_both_ends(self):
        flags = ["-D", "2", "-f", "0", "--data_validation", "-d", two_ends.DEVICE]
        with two_ends.Server(BW, *flags) as server, \
                subprocess.Popen(["taskset", "-c", "1", BW, *flags, two_ends.SERVER], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) as client:
            # Half-way, a byte of what the client sends is another one.
            address = None
            for line in client.stdout:
                if found := re.match(r" local address: .* VAddr 0x0*(\w+)$", line):
                    address = int(found.group(1), 16)
                if line.startswith(" #bytes"):
                    break
            time.sleep(1)
            with open(f"/proc/{client.pid}/mem", "r+b", buffering=0) as memory:
                memory.seek(address + 65536 + 1000)  # what comes in, then what goes out
                byte = memory.read(1)[0]
                memory.seek(address + 65536 + 1000)
                memory.write(bytes([byte ^ 1]))
            out, err = client.communicate(timeout=60)
            there = server.end()
        self.assertIn("1 wrong", out)
        for status, text in ((client.returncode, err), (there.returncode, there.stderr)):
            self.assertEqual(status, 1, text)
            self.assertRegex(text, r"^hips-write-bw: data validation: 1 of \d+ bytes .* wrong\n$")

    def test_inline_data_is_what_the_queue_pairs_have(self):
        for end in two_ends.run_both(LAT, "-I", "4096"):
            self.assertEqual(end.returncode, 2, end.stdout + end.stderr)
            self.assertRegex(one_line(end), r"-I 4096 is wrong: rxe0:1 takes \d+$")
        most = one_line(end).split()[-1]
        for flags, expected in (["-I", most], most), ([], "128"), (["-R"], "128"):
            report, _ = self.both(LAT, "-n", "5", *flags)
            self.assertEqual(report.banner["Max inline data"], expected + "[B]")

    def test_mistakes_are_one_line_that_says_what_would_be_right(self):
        self.assertIn("-d nope is wrong: this host has -d rxe0 -i 1", one_line(two_ends.run_client(BW, "-d", "nope")))
        self.assertIn("-i 2 is wrong: rxe0 has 1 port", one_line(two_ends.run_client(BW, "-i", "2")))
        self.assertRegex(one_line(two_ends.run_client(BW, "-x", "77")), r"-x 77\b.*10\.100\.0\.1")
        self.assertIn("start the same command", one_line(two_ends.run_client(LAT, "-p", "18600", two_ends.SERVER)))
        self.assertIn("no host", one_line(two_ends.run_client(LAT, "no.such.host.invalid")))

    def test_ends_that_differ_name_the_flags_at_both(self):
        client, server = two_ends.run_both(BW, "-s", "64", server_arguments=["-s", "128", "-b"])
        self.assertIn("-b on there but off here, -s 128 there but 64 here", one_line(client))
        self.assertIn("-b off there but on here, -s 64 there but 128 here", one_line(server))

    def test_another_program_at_the_other_end_is_told(self):
        with two_ends.Server(BW, "-d", two_ends.DEVICE) as server:
            other = two_ends.run_client("ib_write_bw", "-d", two_ends.DEVICE, two_ends.SERVER)
            self.assertNotEqual(other.returncode, 0)
            self.assertIn("runs another program", one_line(server.end()))

    def test_an_end_that_is_killed_ends_the_other(self):
        for command in (BW, LAT):
            flags = ["-D", "60", "-d", two_ends.DEVICE]
            with two_ends.Server(command, *flags) as server, \
                    subprocess.Popen(["taskset", "-c", "1", command, *flags, two_ends.SERVER], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
                for line in client.stdout:
                    if line.startswith(" #bytes"):
                        break
                server.process.kill()
                _, err = client.communicate(timeout=30)
            self.assertNotEqual(client.returncode, 0)
            self.assertEqual(len(err.splitlines()), 1, err)


class Host(unittest.TestCase):
    @unittest.skipIf(glob.glob("/sys/class/infiniband/*"), "this host has RDMA devices")
    def test_a_host_without_devices_is_told_what_to_do(self):
        self.assertIn("device", one_line(subprocess.run([BW], capture_output=True, text=True, timeout=20, check=False)))

    def test_the_tests_of_the_guest_pass(self):
        done = lab.run(HIPS, "-t", "switch:1", "--one-guest", "--accel", "tcg", "--timeout", "400", "--",
                       sys.executable, os.path.abspath(__file__), HIPS, FOLDER, "--inside", timeout=500)
        sys.stderr.write(done.stdout + done.stderr)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main(defaultTest="Guest" if INSIDE else "Host", verbosity=2)
