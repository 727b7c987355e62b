"""Tests perftest_output with recorded output: perftest_output_test.py FOLDER."""
import os
import sys
import unittest

import perftest_output

FOLDER = sys.argv.pop()


def recorded(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


class ReadReport(unittest.TestCase):
    def test_both_ends_of_a_bandwidth_run_print_the_same_rows(self):
        for name in ("bw.client.txt", "bw.server.txt"):
            report = perftest_output.read_report(recorded(name))
            self.assertEqual(report.title, "RDMA_Write BW Test")
            self.assertEqual(report.unit, "MB/sec")
            self.assertEqual(report.banner["Device"], "rxe0")
            self.assertEqual(report.banner["rdma_cm QPs"], "OFF")
            self.assertEqual(report.rows, [{"MsgSize": 65536, "n_iterations": 5000, "BW_peak": 71.36,
                                            "BW_average": 32.87, "MsgRate": 0.000526}])
        self.assertEqual(report.local[0]["QPN"], "0x0012")
        self.assertEqual(report.remote[0]["GID"], "00:00:00:00:00:00:00:00:00:00:255:255:10:100:00:01")

    def test_latencies_by_count_and_by_duration_are_read(self):
        row = perftest_output.read_report(recorded("lat.client.txt")).rows[0]
        self.assertEqual((row["MsgSize"], row["t_typical"], row["percentile_99.9"]), (2, 9.76, 10015.51))
        row = perftest_output.read_report(recorded("latD.client.txt")).rows[0]
        self.assertEqual(sorted(row), ["MsgSize", "n_iterations", "t_avg", "tps_average"])

    def test_each_queue_pair_has_an_address(self):
        self.assertEqual(len(perftest_output.read_report(recorded("bwg.client.txt")).local), 2)

    def test_an_unexpected_line_is_an_error(self):
        text = recorded("bw.client.txt").replace(" 65536", " about 65536")
        self.assertRaises(ValueError, perftest_output.read_report, text)


class ReadJson(unittest.TestCase):
    def test_the_dialect_of_version_45_is_read(self):
        for name, keys in (("bw.server.json", ["BW_average", "BW_peak", "MsgRate", "MsgSize", "n_iterations"]),
                           ("lat.client.json", ["MsgSize", "n_iterations", "percentile_99", "percentile_99.9", "t_avg",
                                                "t_max", "t_min", "t_stdev", "t_typical"])):
            data = perftest_output.read_json(recorded(name))
            self.assertEqual(sorted(data["results"]), keys)
            self.assertEqual(data["test_info"]["Device"], "rxe0")
            self.assertEqual(data["test_info"]["Mtu"], 4096)
            self.assertEqual(data["test_info"]["Link_type"], "Ethernet")

    def test_valid_json_is_read(self):
        self.assertEqual(perftest_output.read_json('{"results": {"MsgSize": 2}}'), {"results": {"MsgSize": 2}})


if __name__ == "__main__":
    unittest.main(verbosity=2)
