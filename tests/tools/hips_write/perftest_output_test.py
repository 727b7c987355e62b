"""The reader that the guest's tests use, on recorded output: perftest_output_test.py FOLDER."""
import os
import sys
import unittest

import perftest_output

FOLDER = sys.argv.pop()


def recorded(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


class ReadReport(unittest.TestCase):
    def test_both_ends_of_a_bandwidth_run_tell_the_same_rows(self):
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

    def test_latencies_are_read_by_count_and_over_time(self):
        row = perftest_output.read_report(recorded("lat.client.txt")).rows[0]
        self.assertEqual((row["MsgSize"], row["t_typical"], row["percentile_99.9"]), (2, 9.76, 10015.51))
        row = perftest_output.read_report(recorded("latD.client.txt")).rows[0]
        self.assertEqual(sorted(row), ["MsgSize", "n_iterations", "t_avg", "tps_average"])

    def test_several_queue_pairs_have_an_address_each(self):
        self.assertEqual(len(perftest_output.read_report(recorded("bwg.client.txt")).local), 2)

    def test_a_line_of_another_program_is_refused(self):
        text = recorded("bw.client.txt").replace(" 65536", " about 65536")
        self.assertRaises(ValueError, perftest_output.read_report, text)


class ReadJson(unittest.TestCase):
    def test_the_dialect_of_45_is_read_as_json(self):
        for name, keys in (("bw.server.json", ["BW_average", "BW_peak", "MsgRate", "MsgSize", "n_iterations"]),
                           ("lat.client.json", ["MsgSize", "n_iterations", "percentile_99", "percentile_99.9", "t_avg",
                                                "t_max", "t_min", "t_stdev", "t_typical"])):
            data = perftest_output.read_json(recorded(name))
            self.assertEqual(sorted(data["results"]), keys)
            self.assertEqual(data["test_info"]["Device"], "rxe0")
            self.assertEqual(data["test_info"]["Mtu"], 4096)
            self.assertEqual(data["test_info"]["Link_type"], "Ethernet")

    def test_json_is_read_as_it_is(self):
        self.assertEqual(perftest_output.read_json('{"results": {"MsgSize": 2}}'), {"results": {"MsgSize": 2}})


if __name__ == "__main__":
    unittest.main(verbosity=2)
