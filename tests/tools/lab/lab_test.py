"""hips lab: guests come up as the topology says, run programs as ranks, and leave nothing behind."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import lab

HIPS = os.path.abspath(sys.argv.pop(1))
# Where the host has soft-RoCE itself, one guest would not be booted.
GUEST = "tcg"

# A client finds its server when that listens; the lab's --timeout ends one that never does.
WRITE_BW = """
write_bw() {  # write_bw DEVICE [SERVER]
  report=$(mktemp)
  until ib_write_bw -d "$1" -x 1 -s 65536 -n 20 ${2:-} >"$report" 2>&1; do sleep 0.3; done
  grep -E '^ *65536 +20 ' "$report" >/dev/null && echo "wrote over $1"
}
"""


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hips-lab-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def script(self, text):
        path = os.path.join(self.folder, "rank.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("cd /root\n" + WRITE_BW + textwrap.dedent(text))
        return path

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()


class OneGuest(Base):
    def test_ranks_share_working_devices_and_the_lab_gathers_what_they_leave(self):
        # Four ranks in one guest. 0 and 1 use a device, 2 prints a lot, 3 kills itself.
        script = self.script("""
            echo "rank $HIPS_RANK/$HIPS_SIZE $HIPS_TOPO $HIPS_IB_HCA $HIPS_ROOT $HIPS_SEED $FRUIT $(pwd)"
            case $HIPS_RANK in
              0) ibv_devinfo; cat; test -c /dev/ptmx && echo terminals; write_bw rxe0 ;;
              1) write_bw rxe0 localhost; exit 0 ;;
              2) seq 100000; echo no newline | tr -d '\\n'; echo bad news >&2; echo kept >"$0.kept" ;;
              3) echo lost >/var/tmp/lost; kill -9 $$ ;;
            esac
            """)
        done = lab.run(HIPS, "-t", "bcube:2,1", "--one-guest", "--accel", GUEST, "-x", "FRUIT=a pear", "--output", self.folder,
                       "--writable", self.folder, "--counters", os.path.join(self.folder, "counters.json"),
                       "--timeout", "1200", "--", "sh", script, HIPS_SEED="5")
        # Expect: the exit code of rank 3, the only one that failed, as a shell has it.
        self.assertEqual(done.returncode, 137, done.stderr)
        self.assertIn("hips lab: rank 3 was killed by signal 9 (Killed)\n", done.stderr)
        self.assertIn("hips lab: bcube:2,1 on 1 guest with ", done.stderr)
        for rank in range(4):
            self.assertIn(f"rank {rank}/4 bcube:2,1 rxe0:1,rxe1:1 127.0.0.1:18500 5 a pear /root\n",
                          self.read(f"rank{rank}.out"))
        self.assertRegex(self.read("rank0.out"), r"(?s)hca_id:\s+rxe0.*PORT_ACTIVE.*active_mtu:\s+4096"
                                                 r".*hca_id:\s+rxe1.*terminals\nwrote over rxe0")
        self.assertIn("wrote over rxe0\n", self.read("rank1.out"))
        # Whole lines only on the lab's own output, every byte in the file.
        self.assertTrue(self.read("rank2.out").endswith("\n99999\n100000\nno newline"))
        self.assertLess({"99999", "no newline"}, set(done.stdout.splitlines()))
        self.assertEqual(self.read("rank2.err"), "bad news\n")
        self.assertIn("bad news\n", done.stderr)
        # What guests write stays there, except in folders that were named.
        self.assertEqual(self.read("rank.sh.kept"), "kept\n")
        self.assertFalse(os.path.exists("/var/tmp/lost"))
        devices = json.loads(self.read("counters.json"))["servers"][0]["devices"]
        self.assertGreater(devices["rxe0"]["rcvd_pkts"], 20)
        self.assertEqual(devices["rxe1"]["rcvd_pkts"], 0)

    def test_a_host_with_soft_roce_needs_no_guest(self):
        # A guest is such a host: a lab in it uses the guest's own kernel, in a network namespace.
        rank = self.script("""
            echo "rank $HIPS_RANK/$HIPS_SIZE"
            if [ $HIPS_RANK = 0 ]; then write_bw ${HIPS_IB_HCA%:1}; else write_bw ${HIPS_IB_HCA%:1} localhost; fi
            """)
        with open(os.path.join(self.folder, "host.sh"), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(f"""
                {HIPS} lab run -t switch:2 --one-guest --timeout 100 -- sh {rank} 2>&1
                echo "exit $?"
                {HIPS} lab run -t switch:1 --one-guest --accel host --timeout 1 -- sleep 1000 2>&1
                echo "exit $?"
                echo "left: $(ls /sys/class/infiniband) $(ls /sys/class/net)"
                """))
        done = lab.run(HIPS, "-t", "switch:1", "--one-guest", "--accel", GUEST, "--timeout", "1200", "--", "sh",
                       file.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("hips lab: switch:2 on this host's own devices", done.stdout)
        for line in ("rank 0/2", "rank 1/2"):
            self.assertIn(line, done.stdout.splitlines())
        self.assertEqual(len(re.findall(r"^wrote over lab\d+x0$", done.stdout, re.MULTILINE)), 2, done.stdout)
        # A command that does not end is ended, and the devices of the lab are gone with it.
        self.assertEqual(re.findall(r"^exit (\d+)$", done.stdout, re.MULTILINE), ["0", "124"])
        self.assertIn("hips lab: rank 0 did not end in 1 s\n", done.stdout)
        self.assertRegex(done.stdout, r"\bleft: rxe0 lo\s+nic0\n")


class FourGuests(Base):
    """BCube(2,1): rail 0 joins servers 0-1 and 2-3, rail 1 joins 0-2 and 1-3."""

    def neighbours(self):
        text = subprocess.run([HIPS, "topo", "-t", "bcube:2,1", "--json", "-v"], capture_output=True, text=True,
                              check=True).stdout
        return {(server["server"], nic["nic"]): {(other["server"], other["nic"]) for other in nic["neighbours"]}
                for server in json.loads(text)["server_list"] for nic in server["nics"]}

    def test_every_rail_reaches_its_neighbours_and_both_directions_are_shaped(self):
        neighbours = self.neighbours()
        # Who asks on which rail for whose address. One that should answer has a minute, however busy the machine is;
        # of one that should not we wait for two questions.
        for server in range(4):
            with open(os.path.join(self.folder, f"ask{server}"), "w", encoding="utf-8") as file:
                for rail in range(2):
                    for other in neighbours:
                        if other[0] != server:
                            limit = "-w 60" if other in neighbours[server, rail] else "-c 2 -w 3"
                            file.write(f"nic{rail} node{other[0]}-nic{other[1]} {limit}\n")
        script = self.script("""
            folder=${0%/*}
            echo "rank $HIPS_RANK/$HIPS_SIZE on $(cat /proc/sys/kernel/hostname) $HIPS_IB_HCA $HIPS_ROOT"
            while read -r nic name limit; do
              ip=$(sed -n "s/ $name\\$//p" /etc/hosts)
              busybox arping -q -f -I $nic $limit $ip && echo "$nic reaches $name" &
            done <"$folder/ask$HIPS_RANK"
            wait
            case $HIPS_RANK in
              0) write_bw rxe0; write_bw rxe1 ;;
              1) write_bw rxe0 node0 ;;
              2) write_bw rxe1 node0 ;;
            esac
            tc qdisc show dev nic0
            tc qdisc show dev nic1
            touch "$folder/ready$HIPS_RANK"
            until [ -e "$folder/go" ]; do sleep 0.2; done
            case $HIPS_RANK in
              1) exit 7 ;;
              3) echo o >/proc/sysrq-trigger; sleep 1000 ;;
            esac
            """)
        counters = os.path.join(self.folder, "counters.json")
        with subprocess.Popen(
                lab.command(HIPS, "-t", "bcube:2,1", "--rate", "40mbit", "--loss", "0.1%", "--output", self.folder,
                            "--writable", self.folder, "--counters", counters, "--timeout", "1200", "--", "sh", script),
                env=lab.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            # Once all ranks are ready: the lab's side of each NIC has a token bucket, too.
            while running.poll() is None and not all(os.path.exists(f"{self.folder}/ready{i}") for i in range(4)):
                time.sleep(0.2)
            shaped = set()
            if running.poll() is None:
                sandbox = lab.descendants(running.pid)[0]
                text = subprocess.run(["nsenter", "--target", str(sandbox), "--net", "tc", "qdisc", "show"],
                                      capture_output=True, text=True, check=True).stdout
                shaped = set(re.findall(r"qdisc tbf \S+ dev (\S+) root .*rate 40Mbit", text))
            # Then rank 1 fails and guest 3 is switched off; the others end well.
            with open(os.path.join(self.folder, "go"), "w", encoding="utf-8"):
                pass
            out, err = running.communicate(timeout=1500)
        self.assertEqual(running.returncode, 7, out + err)
        self.assertEqual(shaped, {f"s{server}n{rail}" for server in range(4) for rail in range(2)})
        self.assertIn("hips lab: rank 1 exited with code 7\n", err)
        self.assertIn("hips lab: rank 3 was lost: server 3 went down\n", err)
        for server in range(4):
            text = self.read(f"rank{server}.out")
            self.assertIn(f"rank {server}/4 on node{server} rxe0:1,rxe1:1 10.99.0.1:18500\n", text)
            reached = re.findall(r"^nic(\d) reaches node(\d)-nic(\d)$", text, re.MULTILINE)
            self.assertEqual({(int(rail), (int(other), int(nic))) for rail, other, nic in reached},
                             {(rail, other) for rail in range(2) for other in neighbours[server, rail]})
            self.assertEqual(len(re.findall(r"qdisc netem .*loss 0.1%", text)), 2)
            self.assertEqual(len(re.findall(r"qdisc tbf .*rate 40Mbit", text)), 2)
        # Server 1 wrote 20 * 64 KiB to server 0 over rail 0, server 2 over rail 1; nobody wrote to server 3.
        servers = json.loads(self.read("counters.json"))["servers"]
        nics = [server["nics"] for server in servers]
        written = 20 * 65536
        for sender, receiver in ((nics[1][0], nics[0][0]), (nics[2][1], nics[0][1])):
            self.assertGreater(sender["sent_bytes"], written)
            self.assertGreater(receiver["received_bytes"], written)
        for idle in (nics[1][1], nics[2][0], *nics[3]):
            self.assertLess(idle["sent_bytes"] + idle["received_bytes"], written / 10)
        self.assertGreater(servers[1]["devices"]["rxe0"]["sent_pkts"], 20)
        self.assertEqual([server["up"] for server in servers], [True, True, True, False])


class SwitchTree(Base):
    def test_mpirun_in_one_guest_starts_ranks_in_all_and_trunks_carry_what_they_send(self):
        # fattree:2 has two servers with five switches in a row between them.
        script = self.script("""
            echo "rank $OMPI_COMM_WORLD_RANK on $(cat /proc/sys/kernel/hostname) $HIPS_TOPO $HIPS_IB_HCA $HIPS_RANK."
            if [ $OMPI_COMM_WORLD_RANK = 0 ]; then write_bw rxe0; else write_bw rxe0 node0; exit 5; fi
            """)
        counters = os.path.join(self.folder, "counters.json")
        done = lab.run(HIPS, "-t", "fattree:2", "--mpirun", "--counters", counters, "--timeout", "1200", "--",
                       "mpirun", "-n", "2", "sh", script)
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        for rank in range(2):
            self.assertIn(f"rank {rank} on node{rank} fattree:2 rxe0:1 .", lines)
        self.assertEqual(lines.count("wrote over rxe0"), 2)
        trunks = json.loads(self.read("counters.json"))["trunks"]
        self.assertEqual(len(trunks), 8)
        written = 20 * 65536
        self.assertEqual(sum(trunk["bytes"] > written for trunk in trunks), 4)
        self.assertIn({"from": "pod 1 edge 0", "to": "pod 1 aggregation 0"},
                      [{key: trunk[key] for key in ("from", "to")} for trunk in trunks if trunk["bytes"] > written])


class Cleanup(Base):
    """Of guests; namespaces_test.py ends labs in all other ways."""

    def test_a_lab_that_is_killed_while_guests_boot_leaves_nothing(self):
        with subprocess.Popen(lab.command(HIPS, "-t", "switch:2", "--", "true"),
                              env=lab.environment(TMPDIR=self.folder), text=True, cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            pids = []
            while running.poll() is None and [lab.name_of(pid) for pid in pids].count("qemu-system-x86") < 2:
                time.sleep(0.05)
                pids = lab.descendants(running.pid)
            self.assertIsNone(running.poll(), "it did not come to booting")
            own = set(lab.interfaces("nsenter", "--target", str(pids[0]), "--net")) - {"lo"}
            self.assertLessEqual({"s0n0", "s1n0", "b0"}, own)
            os.kill(running.pid, signal.SIGKILL)
            running.communicate(timeout=300)
        # The kernel ends them; a moment may pass until it has.
        while lab.alive(pids):
            time.sleep(0.05)
        self.assertEqual(own & set(lab.interfaces()), set())
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(running.returncode, -signal.SIGKILL)


class Mistakes(unittest.TestCase):
    def test_each_gives_one_line_that_says_what_would_be_right(self):
        for arguments, message in (
                (["-t", "bcube:2"], "bcube:2"),
                (["-t", "switch:300", "--", "true"], "300 servers"),
                (["-t", "switch:2"], "type: hips lab run -t bcube:2,1 -- COMMAND"),
                (["-t", "switch:2", "--rate", "fast", "--", "true"], "write --rate 4mbit"),
                (["-t", "switch:2", "--loss", "all", "--", "true"], "write --loss 1%"),
                (["-t", "switch:2", "--one-guest", "--rate", "4mbit", "--", "true"], "leave --one-guest out"),
                (["-t", "switch:2/2", "--ranks-per-server", "3", "--", "true"], "leave one out"),
                (["-t", "switch:2", "--writable", "/no/such", "--", "true"], '"/no/such" is no folder'),
                (["-t", "switch:2", "-x", "=1", "--", "true"], "write -x NAME=VALUE")):
            with self.subTest(arguments=arguments):
                done = lab.run(HIPS, *arguments, timeout=300)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, r"\Ahips: [^\n]*\n\Z")
                self.assertIn(message, done.stderr)

    def test_a_missing_emulator_is_named_with_the_command_that_installs_it(self):
        done = lab.run(HIPS, "-t", "switch:2", "--", "true", PATH="/nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr,
                         "hips: lab: qemu-system-x86_64 is missing: apt-get install qemu-system-x86\n")

    def test_without_the_package_of_the_kernel_the_image_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as tools:
            # Everything that the script needs, but no busybox.
            for tool in ("sh", "rdma", "qemu-system-x86_64"):
                os.symlink(subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout.strip(),
                           os.path.join(tools, tool))
            done = lab.run(HIPS, "-t", "switch:2", "--", "true", PATH=tools, XDG_CACHE_HOME=cache)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(done.stderr.endswith("hips: lab: busybox is missing: apt-get install busybox-static\n"),
                            done.stderr)
            # Expect: no half image that a later run would take for a whole one.
            self.assertEqual(os.listdir(os.path.join(cache, "hips", "lab")), ["lock"])

    def test_a_host_that_is_no_guest(self):
        done = subprocess.run([HIPS, "lab", "rsh", "no-such-host.invalid", "true"], capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 255)
        self.assertIn('"no-such-host.invalid" is no guest of this lab', done.stderr)


if __name__ == "__main__":
    lab.skip_unless_possible()
    unittest.main(verbosity=2)
