"""HiPS over RDMA: the tests that need a device in one guest, jobs over the wires of several, with and without loss."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "lab"))
import lab  # pylint: disable=wrong-import-position

# guests_test.py HIPS EXACT_RANKS GRADIENTS|"" TEST... [-- what unittest takes]
end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
HIPS, EXACT_RANKS, GRADIENTS, *TESTS = (path and os.path.abspath(path) for path in sys.argv[1:end])
del sys.argv[1:end + 1]

# What RoCE v2 puts before the payload of a packet and behind it: Ethernet, IPv4, UDP, base header, checksum.
PACKET_BYTES = 14 + 20 + 8 + 12 + 4
RETRANSMISSIONS = ("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err", "send_rnr_err")


SEED = int(os.environ.get("HIPS_SEED") or random.randrange(10**9))
print(f"HIPS_SEED={SEED}", flush=True)


def some_of(*choices):
    """One that the seed chooses, as guests are slow; all with HIPS_TEST_FULL=1."""
    return choices if os.environ.get("HIPS_TEST_FULL") else [choices[SEED % len(choices)]]


PASSED_ON = ("HIPS_SEED", "HIPS_TEST_FULL", "HIPS_TEST_SAMPLE", "GTEST_FILTER", "ASAN_OPTIONS", "UBSAN_OPTIONS")


class OneGuest(unittest.TestCase):
    def test_everything_that_needs_a_device(self):
        # Two devices that do not reach each other, so that the tests can be wrong about them.
        all_of_them = 'for test; do "$test" || failed="$failed ${test##*/}"; done; echo "failed:$failed"'
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        pass_on = [word for name, value in kept.items() for word in ("-x", f"{name}={value}")]
        # The lab itself may be sanitized, too; from inside its namespaces it cannot be looked at for leaks.
        kept["ASAN_OPTIONS"] = "detect_leaks=0"
        done = lab.run(HIPS, "-t", "rail:1,2", "--one-guest", "--timeout", "0", *pass_on, "--", "sh", "-c", all_of_them,
                       "sh", *TESTS, timeout=None, **kept)
        print(done.stdout, done.stderr, flush=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("failed:", done.stdout.splitlines())


@unittest.skipUnless(os.environ.get("HIPS_TEST_FULL") and GRADIENTS, "a minute: HIPS_TEST_FULL=1 runs it")
class NineGuests(unittest.TestCase):
    def test_an_unmodified_mpi_program_is_exact_under_mpirun_across_the_guests(self):
        done = lab.run(HIPS, "-t", "bcube:3,1", "--mpirun", "--timeout", "1200", "-x", "OMPI_ALLOW_RUN_AS_ROOT=1", "-x",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "--", "mpirun", "-n", "9", HIPS, "run", "-t", "bcube:3,1",
                       GRADIENTS, "lenet5", "--steps", "1", timeout=1500, HIPS_MPI_REPORT="1", HIPS_GUARD="off")
        print(done.stdout, done.stderr, flush=True)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"RESULT network=lenet5 ranks=9 .* wrong=0\b")
        self.assertRegex(done.stderr, r"MPI_COMM_WORLD, 9 ranks: .* on BCube\(3,1\); verbs; not emulated")


class Guests(unittest.TestCase):
    """One boot for each wiring: every algorithm, then again while each NIC drops a part of what it sends."""

    ALGORITHMS = ["hips/mesh", "hips/ring", "hips/ps:1", "flat-ring"]
    EXACT = f"{EXACT_RANKS} 0,1,5,1009,70001 {' '.join(ALGORITHMS)}"
    EXACT_WITH_AND_WITHOUT_LOSS = f"""
        set -e
        {EXACT}
        for nic in /sys/class/net/nic*; do tc qdisc replace dev ${{nic##*/}} root netem limit 10000 loss 1%; done
        echo lossy
        {EXACT}
        for nic in /sys/class/net/nic*; do tc -s qdisc show dev ${{nic##*/}}; done
        """
    SERVER_3_LOSES_POWER = f"""
        for nic in /sys/class/net/nic*; do tc qdisc del dev ${{nic##*/}} root; done
        export HIPS_DEAD_AFTER=6s HIPS_IB_TIMEOUT=18
        out=$(mktemp)
        {EXACT_RANKS} $(seq -s , 50000 60000) hips >"$out" &
        if [ $HIPS_RANK = 3 ]; then
          sleep 6; date +"off at %s.%N"
          # At once, without shutting devices down: a loss of power asks no driver first.
          sleep 1; echo b >/proc/sysrq-trigger; sleep 1000
        fi
        wait $! || {{ date +"%s.%N"; cat "$out"; exit 1; }} | {{ read -r when; sed "s/^/at $when /"; }}
        """

    def on_four_servers(self, topology, *phases):
        """How the lab ended, and what each rank has printed."""
        with tempfile.TemporaryDirectory(prefix="hips-guests-") as folder:
            script = os.path.join(folder, "rank.sh")
            with open(script, "w", encoding="utf-8") as file:
                file.writelines(textwrap.dedent(phase) for phase in phases)
            done = lab.run(HIPS, "-t", topology, "--output", folder, "--timeout", "1200", "--", "sh", script,
                           timeout=1500, HIPS_IB_TIMEOUT="14")
            texts = []
            for rank in range(4):
                with open(os.path.join(folder, f"rank{rank}.out"), encoding="utf-8") as file:
                    texts.append(file.read())
        print(done.stderr, texts[0], flush=True)
        return done, texts

    def assert_exact(self, texts):
        for text in texts:
            lines = [line for line in text.splitlines() if line.startswith("exact ")]
            # Equal results on all ranks, and nothing but verbs carried them.
            self.assertEqual([line.split(": ")[0] for line in lines],
                             [line.split(": ")[0] for line in texts[0].splitlines() if line.startswith("exact ")])
            self.assertEqual(len(lines), 2 * len(self.ALGORITHMS))
            for line in lines:
                self.assertIn("verbs", line)
                self.assertNotIn("shm", line)

    def assert_named_on_all_others(self, texts):
        """By its silence on the control plane or, if that is quicker, by the device's retries."""
        off = float(re.search(r"^off at ([0-9.]+)$", texts[3], re.MULTILINE).group(1)) + 1
        for text in texts[:3]:
            when, words = re.fullmatch(r"at ([0-9.]+) failed: ([^\n]*)", text.splitlines()[-1]).groups()
            print(f"{float(when) - off:.1f} s later: {words}", flush=True)
            self.assertRegex(words, r"^rank 3 (\(pid \d+ on node3\) died|is lost: verbs: .* lost the connection to pid \d+ on node3 )")

    def test_bcube_and_a_server_that_loses_power(self):
        done, texts = self.on_four_servers("bcube:2,1", self.EXACT_WITH_AND_WITHOUT_LOSS, self.SERVER_3_LOSES_POWER)
        self.assert_exact(texts)
        self.assertIn("hips lab: rank 3 was lost: server 3 went down\n", done.stderr, texts)
        self.assert_named_on_all_others(texts)

    def test_torus_and_two_leaf_switches(self):
        for topology in some_of("torus:2x2", "leafspine:2,2"):
            with self.subTest(topology=topology):
                done, texts = self.on_four_servers(topology, self.EXACT_WITH_AND_WITHOUT_LOSS)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assert_exact(texts)

    def counted(self, topology, *command):
        """What NICs and devices counted while every server ran the command, without a packet sent twice."""
        for _ in range(4):
            with tempfile.TemporaryDirectory(prefix="hips-guests-") as folder:
                counters = os.path.join(folder, "counters.json")
                done = lab.run(HIPS, "-t", topology, "--counters", counters, "--timeout", "1200", "--", *command,
                               HIPS_IB_TIMEOUT="22")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                with open(counters, encoding="utf-8") as file:
                    servers = json.load(file)["servers"]
            again = sum(device[name] for server in servers for device in server["devices"].values()
                        for name in RETRANSMISSIONS)
            if again == 0:
                return servers
            print(f"{again} packets were sent again: the host was busy", flush=True)
        self.fail("packets were sent again in each of four runs")

    def test_what_the_wires_carry_is_what_the_plan_says(self):
        elements, calls = 1 << 20, 2  # a check is two calls
        for topology, algorithm in some_of(("bcube:2,1", "hips"), ("rail:4,2", "flat-ring")):
            with self.subTest(topology=topology, algorithm=algorithm):
                servers = self.counted(topology, EXACT_RANKS, str(elements), algorithm)
                plan = json.loads(subprocess.run(
                    [HIPS, "plan", "-t", topology, "--algorithm", algorithm, "--bytes", str(4 * elements), "--json"],
                    capture_output=True, text=True, check=True).stdout)
                for server in servers:
                    for nic in server["nics"]:
                        self.check_nic(f"{topology} {algorithm} server {server['server']}", nic,
                                       server["devices"][nic["device"]], calls, plan["notes"])

    def check_nic(self, name, nic, device, calls, notes):
        for way, packets, planned in (("sent", "sent_pkts", "nic_out_bytes"), ("received", "rcvd_pkts", "nic_in_bytes")):
            planned = calls * notes[planned][nic["nic"]]
            on_wire = nic[f"{way}_bytes"]
            carried = on_wire - PACKET_BYTES * device[packets]
            print(f"{name} NIC {nic['nic']} {way}: plan {planned}, wire {on_wire} bytes in {device[packets]} packets, "
                  f"without their headers {carried}", flush=True)
            # Beside the data: addresses and immediates (20 bytes a packet at most), a header of 64 bytes for each
            # segment, and meeting.
            self.assertGreaterEqual(carried, planned)
            self.assertLessEqual(carried, planned * 1.01 + 16384)


if __name__ == "__main__":
    lab.skip_unless_possible()
    unittest.main(verbosity=2)
