"""hips doctor with RDMA devices: in a soft-RoCE guest, alone and between ranks, without and with errors."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))
import lab  # noqa: E402

HIPS = os.path.abspath(sys.argv.pop(1))

# All parts run in one boot. Each has its own port, because ranks reach it at different times.
SCRIPT = """
out=${0%/*}
part() {  # part NAME [VARIABLE=VALUE...]
  name=$1; shift
  port=$((port + 1))
  env HIPS_ROOT=127.0.0.1:$port HIPS_TRANSPORT=verbs "$@" $HIPS doctor --json >"$out/$name$HIPS_RANK.json"
  echo "$name exit $?"
}
port=18600
if [ $HIPS_RANK = 0 ]; then
  env -u HIPS_RANK -u HIPS_SIZE -u HIPS_ROOT -u HIPS_IB_HCA -u HIPS_TOPO $HIPS doctor >"$out/alone.txt"
  echo "alone exit $?"
  env -u HIPS_RANK -u HIPS_SIZE -u HIPS_ROOT $HIPS topo discover --format json >"$out/server.json"
fi
part whole
unset HIPS_TOPO
case $HIPS_RANK in
  1) part broken HIPS_IB_HCA=rxe1:1 ;;
  2) part broken HIPS_IB_HCA=rxe0:1 HIPS_IB_GID_INDEX=7 ;;
  *) part broken HIPS_IB_HCA=rxe0:1 ;;
esac
[ $HIPS_RANK = 3 ] && ip link set nic1 down
if [ $HIPS_RANK = 3 ]; then part down HIPS_IB_HCA=rxe1:1; else part down HIPS_IB_HCA=rxe0:1; fi
"""


class Guest(unittest.TestCase):
    def test_devices_are_found_ranks_reach_each_other_and_errors_are_named(self):
        with tempfile.TemporaryDirectory(prefix="hips-doctor-test-") as folder:
            script = os.path.join(folder, "rank.sh")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"HIPS={HIPS}\n" + SCRIPT)
            done = lab.run(HIPS, "-t", "bcube:2,1", "--one-guest", "--output", folder, "--writable", folder, "--timeout",
                           "1200", "--", "sh", script)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.alone(os.path.join(folder, "alone.txt"), done.stdout)
            self.discovered(os.path.join(folder, "server.json"))
            parts = {}
            for name in ("whole", "broken", "down"):
                with open(os.path.join(folder, f"{name}0.json"), encoding="utf-8") as file:
                    parts[name] = json.load(file)
            exits = [line for line in done.stdout.splitlines() if " exit " in line]
        self.assertEqual(exits.count("whole exit 0"), 4)
        self.assertEqual((exits.count("broken exit 1"), exits.count("broken exit 0")), (1, 3))
        self.assertEqual((exits.count("down exit 1"), exits.count("down exit 0")), (1, 3))
        self.whole(parts["whole"])
        self.broken(parts["broken"])
        self.down(parts["down"])

    def discovered(self, path):
        with open(path, encoding="utf-8") as file:
            nics = {nic["name"]: nic for nic in json.load(file)["nics"]}
        for rail in range(2):
            self.assertEqual((nics[f"rxe{rail}"]["interface"], nics[f"rxe{rail}"]["state"]), (f"nic{rail}", "up"))
            self.assertIn(f"10.100.{rail}.1/24", nics[f"rxe{rail}"]["addresses"])

    def alone(self, path, output):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("alone exit 0\n", output)
        self.assertRegex(text, r"  rxe0  rdma_rxe\n    port 1  ACTIVE, Ethernet, .*, MTU 4096, on nic0 \(unknown, MTU 9000\)"
                               r"  <- rail 0\n")
        self.assertRegex(text, r"      GID RoCE v2 fe80::\S+ at index 0\n"
                               r"      GID RoCE v2 10\.100\.0\.1 at index 1  <- used: the best of 2\n")
        self.assertIn("verbs (rxe0:1, rxe1:1) between nodes\n", text)
        self.assertIn("  note     rxe0, rxe1: two soft-RoCE devices of one node do not reach each other", text)
        self.assertIn("\n0 errors, 0 warnings, ", text)

    def whole(self, told):
        """BCube(2,1): rail 0 connects 0-1 and 2-3, rail 1 connects 0-2 and 1-3."""
        self.assertEqual({(way["from"], way["to"], way["from_nic"], way["to_nic"]) for way in told["reach"]},
                         {(a, b, nic, nic) for nic, pairs in (("rxe0:1", ((0, 1), (2, 3))), ("rxe1:1", ((0, 2), (1, 3))))
                          for pair in pairs for a, b in (pair, pair[::-1])})
        for way in told["reach"]:
            self.assertTrue(way["ok"], way)
            self.assertGreater(way["round_trip_us"], 0)
        self.assertEqual([one for one in told["findings"] if one["level"] == "error"], [])

    def broken(self, told):
        errors = {one["where"]: one for one in told["findings"] if one["level"] == "error"}
        self.assertEqual(set(errors), {"rank 1 on node0, rxe1:1 (10.100.1.1)", "rank 2 on node0: rxe0:1"}, errors)
        lost = errors["rank 1 on node0, rxe1:1 (10.100.1.1)"]
        self.assertIn("reaches no other rank: ranks 0 and 3 tried", lost["text"])
        self.assertIn("HIPS_IB_HCA=rxe0:1 on all ranks of node0", lost["fix"])
        index = errors["rank 2 on node0: rxe0:1"]
        self.assertIn("no GID at HIPS_IB_GID_INDEX=7, but RoCE v2 fe80::", index["text"])
        self.assertIn("unset HIPS_IB_GID_INDEX", index["fix"])
        self.assertEqual({(way["from"], way["to"]): way["ok"] for way in told["reach"]},
                         {(0, 1): False, (1, 0): False, (0, 3): True, (3, 0): True, (1, 3): False, (3, 1): False})

    def down(self, told):
        errors = [one for one in told["findings"] if one["level"] == "error"]
        self.assertEqual([one["where"] for one in errors], ["rank 3 on node0: rxe1:1"], errors)
        self.assertIn("the port is DOWN (Disabled), but HIPS_IB_HCA names it", errors[0]["text"])
        self.assertIn("ip link set nic1 up", errors[0]["fix"])
        self.assertTrue(all(way["ok"] for way in told["reach"]))
        self.assertEqual(len(told["reach"]), 6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
