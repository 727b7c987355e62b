"""hips lab run --namespaces: servers are namespaces of this kernel, wired as the topology says; exec and link from outside."""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import lab

LEAVING = os.path.abspath(sys.argv.pop(3))
PERF = os.path.abspath(sys.argv.pop(2))
HIPS = os.path.abspath(sys.argv.pop(1))
LIMIT_S = 240


def run(*arguments, **extra):
    return lab.run(HIPS, "--namespaces", *arguments, timeout=LIMIT_S, **extra)


def other(*arguments):
    """A command of `hips lab` beside a running lab."""
    return subprocess.run([HIPS, "lab", *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)


class RunningLab:
    """A lab that waits until it is left."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        self.process = subprocess.Popen(
            lab.command(HIPS, "--namespaces", *self.arguments, "--", "sh", "-c", "echo up; exec sleep 1000"),
            env=lab.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self.process.stdout.readline() != "up\n":
            self.__exit__()
            raise AssertionError("the lab did not come up")
        self.sandbox = lab.descendants(self.process.pid)[0]
        return self

    def of(self, command, *words):
        return other(command, "--lab", str(self.sandbox), *words)

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate(timeout=LIMIT_S)


class Servers(unittest.TestCase):
    def test_each_has_a_name_addresses_and_processes_of_its_own_and_reaches_all_others(self):
        for topology, servers, nics in (("bcube:2,1", 4, 2), ("rail:3,2", 3, 2), ("fattree:4", 16, 1), ("torus:3x3", 9, 4)):
            with self.subTest(topology=topology):
                names = " ".join(f"node{server}-nic{nic}" for server in range(servers) for nic in range(nics))
                done = run("-t", topology, "--tag", "--", "sh", "-c",
                           f"cat /proc/sys/kernel/hostname; echo has $(ls /sys/class/net); ls /proc | grep -c '^[0-9]';"
                           f"for name in {names}; do {HIPS} lab rsh $name cat /proc/sys/kernel/hostname; done | uniq | xargs")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(f"hips lab: {topology} on {servers} namespaces: booted in ", done.stderr)
                lines = done.stdout.splitlines()
                interfaces = " ".join(["lo", "mgmt0", *(f"nic{nic}" for nic in range(nics))])
                everybody = " ".join(f"node{server}" for server in range(servers))
                for server in range(servers):
                    self.assertIn(f"[{server}] node{server}", lines)
                    self.assertIn(f"[{server}] has {interfaces}", lines)
                    self.assertIn(f"[{server}] {everybody}", lines)

    def test_ranks_get_what_hips_needs_and_the_topology_unless_it_is_not_wanted(self):
        script = 'echo "$HIPS_RANK of $HIPS_SIZE at $HIPS_ROOT, $HIPS_TOPO."'
        done = run("-q", "-t", "rail:2,2", "--ranks-per-server", "2", "--", "sh", "-c", script)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         [f"{rank} of 4 at 10.99.0.1:18500, rail:2,2/2." for rank in range(4)], done.stderr)
        done = run("-q", "-t", "rail:2,2", "--without-topology", "--", "sh", "-c", script)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"{rank} of 2 at 10.99.0.1:18500, ." for rank in range(2)])

    def test_programs_get_their_arguments_and_write_as_they_are(self):
        words = ["[1,2,3]", "[]", '["a","b"]', "-x", "--", "--help", "two words"]
        done = run("-q", "-t", "switch:1", "--", "printf", "<%s>", *words)
        self.assertEqual(done.stdout, "".join(f"<{word}>" for word in words), done.stderr)
        with RunningLab("-t", "switch:2") as lab_of_two:
            done = lab_of_two.of("exec", "node1", "--", "printf", "<%s>", *words)
            self.assertEqual(done.stdout, "".join(f"<{word}>" for word in words), done.stderr)
        done = run("-q", "-t", "switch:2", "--", "printf", "no end of a line")
        self.assertEqual(done.stdout, 2 * "no end of a line\n", done.stderr)

    def test_variables_that_are_not_set_are_not_inherited_either(self):
        done = run("-q", "-t", "switch:1", "--without-topology", "--mpirun", "--", "sh", "-c", "env | grep -E '^HIPS_(TOPO|RANK|SIZE|ROOT)='",
                   HIPS_TOPO="rail:9,2", HIPS_RANK="3", HIPS_SIZE="4", HIPS_ROOT="here:1")
        self.assertEqual(done.stdout, "")

    def test_output_that_cannot_be_written_is_an_error_beside_the_ranks_own(self):
        for code, expected in ((0, 1), (5, 5)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(lab.command(HIPS, "--namespaces", "-q", "-t", "switch:1", "--", "sh", "-c", f"echo hello; exit {code}"),
                                      env=lab.environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, expected, done.stderr)
            self.assertIn("hips lab: the standard output cannot be written: output is lost", done.stderr)

    def test_mpirun_starts_ranks_on_all_servers(self):
        done = run("-q", "-t", "bcube:2,1", "--ranks-per-server", "2", "--mpirun", "--", "mpirun", "-n", "8", "sh", "-c",
                   "echo $OMPI_COMM_WORLD_RANK on $(cat /proc/sys/kernel/hostname)")
        self.assertEqual(sorted(done.stdout.splitlines()), [f"{rank} on node{rank // 2}" for rank in range(8)], done.stderr)

    def test_rates_are_kept_in_both_directions_and_bytes_are_counted(self):
        # 4 MB at 80 Mbit/s take 0.4 s, however fast the machine is.
        receive = "import socket; s = socket.create_server(('', 5000)); c = s.accept()[0]; n = 1\nwhile n: n = len(c.recv(1 << 20))"
        send = ("import socket, time; begin = time.time()\nwhile True:\n"
                "  try: s = socket.create_connection(('node0-nic1', 5000)); break\n  except OSError: time.sleep(.01)\n"
                "begin = time.time(); s.sendall(bytes(4000000)); s.shutdown(1); s.recv(1); print('took', time.time() - begin)")
        with tempfile.TemporaryDirectory() as folder:
            counters = os.path.join(folder, "counters.json")
            done = run("-q", "-t", "rail:2,2", "--rate", "80mbit", "--counters", counters, "--", "sh", "-c",
                       f'if [ $HIPS_RANK = 0 ]; then python3 -c "{receive}"; else python3 -c "{send}"; fi; '
                       "tc qdisc show | grep -c 'tbf.*rate 80Mbit'")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(counters, encoding="utf-8") as file:
                servers = json.load(file)["servers"]
        self.assertGreater(float(re.search(r"took (\S+)", done.stdout)[1]), 0.35)
        self.assertEqual(done.stdout.splitlines().count("2"), 2)
        self.assertEqual([server["up"] for server in servers], [True, True])
        self.assertGreater(servers[1]["nics"][1]["sent_bytes"], 4e6)
        self.assertGreater(servers[0]["nics"][1]["received_bytes"], 4e6)
        self.assertLess(servers[1]["nics"][0]["sent_bytes"], 1e5)

    def test_what_queues_drop_is_counted_and_the_path_of_a_user_is_enough(self):
        # tc and ip are in folders that are not in it.
        send = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "for _ in range(500): s.sendto(bytes(8000), ('node0-nic1', 5000))")
        with tempfile.TemporaryDirectory() as folder:
            counters = os.path.join(folder, "counters.json")
            done = run("-q", "-t", "rail:2,2", "--rate", "8mbit", "--queue", "64K", "--counters", counters, "--", "sh", "-c",
                       f'[ $HIPS_RANK = 0 ] || python3 -c "{send}"', PATH="/usr/bin:/bin")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(counters, encoding="utf-8") as file:
                servers = json.load(file)["servers"]
        self.assertGreater(servers[1]["nics"][1]["dropped_packets"], 100)
        self.assertEqual(servers[1]["nics"][0]["dropped_packets"], 0)
        self.assertNotIn("device", servers[1]["nics"][0])


class WithoutTopology(unittest.TestCase):
    def test_the_NICs_that_join_all_servers_carry_the_data_and_the_management_network_none(self):
        for topology, ranks, shown in (("rail:3,2", 1, "rail:3,2"), ("rail:2,2", 2, "rail:2,2/2"), ("bcube:2,1", 1, "bcube:2,1"),
                                       ("torus:3x3", 1, "torus:3x3"), ("switch:3", 1, "switch:3")):
            with self.subTest(topology=topology, ranks=ranks), tempfile.TemporaryDirectory() as folder:
                counters = os.path.join(folder, "counters.json")
                # What is measured of slow NICs, and so the plan, depends little on what else the machine does.
                done = run("-q", "-t", topology, "--rate", "500mbit", "--ranks-per-server", str(ranks), "--without-topology",
                           "--counters", counters, "-x", "HIPS_LOG=comm:info", "--", PERF, "-b", "4M", "-e", "4M", "-n", "3")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(f"HIPS_TOPO={shown} names it", done.stdout + done.stderr)
                self.assertRegex(done.stdout + done.stderr, r"measured between the nodes: \S+ us for a hop, \S+ us for a message, \S+ Gb/s")
                with open(counters, encoding="utf-8") as file:
                    for server in json.load(file)["servers"]:
                        sent = [nic["sent_bytes"] for nic in server["nics"]]
                        # Shares are equal, and each of the calls sends at least the vector.
                        self.assertGreater(min(sent), 0.7 * max(sent))
                        self.assertGreater(sum(sent), 4 * (4 << 20))

    def test_each_rank_writes_its_trace_of_the_program_and_not_of_what_is_measured_first(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("-q", "-t", "switch:2", "--ranks-per-server", "2", "--without-topology", "-x", "HIPS_TRACE=" + folder, "--", PERF, "-b", "4K",
                       "-e", "4K", "-n", "3")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(sorted(os.listdir(folder)), [f"trace-{rank}.json" for rank in range(4)])
            for rank in range(4):
                with open(os.path.join(folder, f"trace-{rank}.json"), encoding="utf-8") as file:
                    events = json.load(file)
                events = events["traceEvents"] if isinstance(events, dict) else events
                operations = [event for event in events if event.get("cat") == "operation"]
                self.assertEqual({event["pid"] for event in operations}, {rank})
                # Those of the team that measures would name its ranks, 0 and 1, not 0 and 2.
                self.assertTrue({event["args"]["peer"] for event in events if event.get("cat") == "wire"} <= {rank ^ 2})

    def test_the_selection_of_a_job_shows_what_was_measured_beside_the_defaults(self):
        done = run("-t", "rail:3,2", "--rate", "200mbit", "--without-topology", "--", HIPS, "info", "select", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        selection = json.loads(done.stdout)
        self.assertEqual(selection["topology"], "rail:3,2")
        self.assertEqual(selection["default"]["nic_bytes_per_s"], 12.5e9)
        self.assertEqual(selection["default"]["message_seconds"], 2e-6)
        self.assertGreater(selection["measured"]["message_seconds"] + selection["measured"]["hop_seconds"], 0)
        self.assertLess(selection["measured"]["nic_bytes_per_s"], 12.5e9 / 2)
        last = selection["sizes"][-1]
        self.assertEqual(last["bytes"], 1 << 30)
        self.assertGreater(last["measured"]["seconds"], 2 * last["default"]["seconds"])

    def test_the_measured_rate_is_not_that_of_bytes_that_pass_at_once_after_a_pause(self):
        # What limits the rate lets 256 KiB pass, which is half of what a call has for each NIC. On a busy machine calls pause, too.
        measured = []
        for _ in range(5):
            done = run("-t", "switch:9", "--rate", "200mbit", "--without-topology", "--", HIPS, "info", "select", "--json")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            measured.append(json.loads(done.stdout)["measured"]["nic_bytes_per_s"])
            if measured[-1] < 1.2 * 25e6:
                return
        self.fail(f"25e6 bytes/s were measured as {measured}")

    def test_the_selection_of_a_job_on_one_node_is_the_models(self):
        done = run("-t", "switch:1", "--ranks-per-server", "2", "--without-topology", "--", HIPS, "info", "select", "-t", "switch:2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("nothing was measured"), 1)
        self.assertEqual(done.stdout.count("if no algorithm or pattern is named"), 1)


class SlowNetwork(unittest.TestCase):
    def test_what_a_rank_sent_before_it_left_arrives_however_long_that_takes(self):
        done = run("-q", "-t", "switch:3", "--rate", "5mbit", "--", LEAVING)
        self.assertEqual((done.returncode, done.stdout), (0, "3\n"), done.stderr)


class DeadNic(unittest.TestCase):
    def test_a_link_that_goes_down_within_calls_ends_them_on_all_ranks_with_an_error_that_names_the_connection(self):
        # In a BCube servers forward for others, so that a path out of the other NIC may be cut, too.
        for topology, nic in (("rail:3,2", "nic1"), ("bcube:2,1", "nic[01]")):
            with self.subTest(topology=topology):
                running = subprocess.Popen(lab.command(HIPS, "--namespaces", "-q", "-t", topology, "--rate", "100mbit", "--", "sh", "-c",
                                                       f"[ $HIPS_RANK != 0 ] || echo up; exec {PERF} -b 8M -e 8M -n 10000"),
                                           env=lab.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                try:
                    self.assertEqual(running.stdout.readline(), "up\n")
                    time.sleep(2)  # into the calls; before them it is an error, too
                    cut = other("link", "--lab", str(lab.descendants(running.pid)[0]), "node1:nic1", "down")
                    self.assertEqual(cut.returncode, 0, cut.stderr)
                    errors = running.communicate(timeout=LIMIT_S)[1]
                finally:
                    running.kill()
                self.assertNotEqual(running.returncode, 0)
                lost = [line for line in errors.splitlines() if line.startswith("hips-allreduce-perf: rank ")]
                self.assertGreater(len(lost), 1, errors)
                for line in lost:
                    self.assertRegex(line, rf"is lost: tcp: {nic}: .*(acknowledged nothing|Connection timed out)")


class FromOutside(unittest.TestCase):
    def test_commands_run_in_a_server_and_cables_are_cut_slowed_and_healed(self):
        with RunningLab("-t", "rail:2,2", "--rate", "100mbit") as running:
            def link_of(nic):
                return running.of("exec", "node1", "--", "cat", f"/sys/class/net/{nic}/operstate").stdout.strip()

            def expect_links(*states):
                # The kernel shows a change of the link somewhat later, on a busy machine up to a second.
                deadline = time.monotonic() + LIMIT_S
                while (link_of("nic0"), link_of("nic1")) != states and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.assertEqual((link_of("nic0"), link_of("nic1")), states)

            done = running.of("exec", "node1", "--", "sh", "-c", "cat /proc/sys/kernel/hostname; pwd; exit 7")
            self.assertEqual((done.returncode, done.stdout), (7, f"node1\n{os.getcwd()}\n"), done.stderr)
            expect_links("up", "up")
            self.assertEqual(running.of("link", "node1:nic1", "down").returncode, 0)
            expect_links("up", "down")
            self.assertEqual(running.of("link", "node1:nic1", "up").returncode, 0)
            expect_links("up", "up")
            for rate, shown in (("50mbit", ["100Mbit", "50Mbit"]), ("unlimited", ["100Mbit"])):
                done = running.of("link", "node1:nic1", rate)
                self.assertEqual(done.returncode, 0, done.stderr)
                for where in ([*lab.enter_network(running.sandbox), "tc", "qdisc", "show"],
                              [HIPS, "lab", "exec", "--lab", str(running.sandbox), "node1", "--", "tc", "qdisc", "show"]):
                    text = subprocess.run(where, capture_output=True, text=True, check=True).stdout
                    self.assertEqual(sorted(set(re.findall(r"tbf.*rate (\S+)", text))), shown, text)
            # Expect: mistakes are told, and change nothing.
            for words, message in ((("exec", "node2", "--", "true"), 'lab: "node2" is no server of the lab; it has node0 to node1'),
                                   (("exec", "node1"), "no program; type: hips lab exec node4 -- COMMAND"),
                                   (("link", "node1:nic2", "down"), "lab: node1 has no nic2"),
                                   (("link", "node1", "down"), 'lab: "node1" is no NIC; write node1:nic0'),
                                   (("link", "node1:nic0", "broken"), 'lab: "broken" is no state of a cable')):
                with self.subTest(words=words):
                    done = running.of(*words)
                    self.assertIn(done.returncode, (1, 2))
                    self.assertIn(message, done.stderr)

    def test_a_command_handles_the_signals_of_its_terminal(self):
        script = "trap 'sleep 0.2; echo handled; exit 5' INT; echo ready; while :; do sleep 0.05; done"
        with RunningLab("-t", "switch:1") as running:
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(HIPS, [HIPS, "lab", "exec", "--lab", str(running.sandbox), "node0", "--", "sh", "-c", script])
            text, sent = "", False
            try:
                while "handled" not in text:
                    text += os.read(terminal, 1000).decode()
                    if "ready" in text and not sent:
                        sent = os.write(terminal, b"\x03") == 1
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            finally:
                os.close(terminal)
            self.assertEqual(code, 5, text)

    def test_a_killed_command_leaves_nothing_behind_in_the_server(self):
        script = "(sleep 98765 & sleep 98765) & sleep 98765 & echo up; wait"
        with RunningLab("-t", "switch:1") as running:
            def num_left():
                return int(running.of("exec", "node0", "--", "pgrep", "-c", "-x", "sleep").stdout)

            own = num_left()  # the lab's own command
            for signal_number in (signal.SIGTERM, signal.SIGKILL):
                with subprocess.Popen([HIPS, "lab", "exec", "--lab", str(running.sandbox), "node0", "--", "sh", "-c", script],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as command:
                    self.assertEqual(command.stdout.readline(), "up\n")
                    self.assertGreater(num_left(), own)
                    os.kill(command.pid, signal_number)
                deadline = time.monotonic() + LIMIT_S
                while num_left() > own and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.assertEqual(num_left(), own)

    def test_a_failed_rank_and_a_killed_server_are_named(self):
        with subprocess.Popen(
                lab.command(HIPS, "--namespaces", "-q", "-t", "switch:2", "--", "sh", "-c",
                            "echo up; [ $HIPS_RANK = 1 ] && exec sleep 1000; exit 3"),
                env=lab.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                up = [process.stdout.readline() for _ in range(2)]
                servers = [pid for pid in lab.descendants(process.pid) if lab.command_line_of(pid)[-2:] == ["--server", "1"]]
                os.kill(servers[0], signal.SIGKILL)
                _, err = process.communicate(timeout=LIMIT_S)
            finally:
                process.kill()
        self.assertEqual(up, ["up\n", "up\n"])
        self.assertEqual(process.returncode, 3, err)
        self.assertEqual(err.splitlines(), ["hips lab: rank 0 exited with code 3",
                                            "hips lab: rank 1 was lost: server 1 went down"])

    def test_a_lab_is_found_by_its_number_where_several_run(self):
        with RunningLab("-t", "switch:1") as one, RunningLab("-t", "switch:1") as two:
            done = other("exec", "node0", "--", "true")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("several labs run here; choose one: --lab ", done.stderr)
            for running in (one, two):
                self.assertIn(str(running.sandbox), done.stderr)
                self.assertEqual(running.of("exec", "node0", "--", "true").returncode, 0)
                # The number that the shell knows.
                self.assertEqual(other("exec", "--lab", str(running.process.pid), "node0", "--", "true").returncode, 0)


class Cleanup(unittest.TestCase):
    def ended_by(self, signal_number, inner=False):
        with RunningLab("-t", "bcube:2,1") as running:
            pids = lab.descendants(running.process.pid)
            own = set(lab.interfaces(*lab.enter_network(running.sandbox))) - {"lo"}
            self.assertLessEqual({"s0n0", "s3n1", "b0", "mgmt"}, own)
            self.assertGreaterEqual(len(pids), 9)
            os.kill(running.sandbox if inner else running.process.pid, signal_number)
            running.process.wait(timeout=LIMIT_S)
            deadline = time.monotonic() + LIMIT_S
            while lab.alive(pids) and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertEqual(lab.alive(pids), [])
            self.assertEqual(own & set(lab.interfaces()), set())
            return running.process.returncode

    def test_a_lab_that_ends_in_any_way_leaves_nothing(self):
        self.assertEqual(self.ended_by(signal.SIGINT), 128 + signal.SIGINT)
        self.assertEqual(self.ended_by(signal.SIGKILL), -signal.SIGKILL)
        self.assertEqual(self.ended_by(signal.SIGKILL, inner=True), 1)


class Mistakes(unittest.TestCase):
    def test_each_gives_one_line_that_says_what_would_be_right(self):
        for arguments, message in (
                (["-t", "switch:2", "--one-guest", "--", "true"], "leave one out"),
                (["-t", "switch:2", "--accel", "tcg", "--", "true"], "leave one out"),
                (["-t", "switch:2", "--cpus", "2", "--", "true"], "--cpus is for guests; leave one out"),
                (["-t", "switch:2", "--delay", "soon", "--", "true"], "write --delay 2ms"),
                (["-t", "switch:2", "--rate", "4mbit", "--queue", "0", "--", "true"], "write --queue 4M"),
                (["-t", "switch:2"], "type: hips lab run -t bcube:2,1 -- COMMAND")):
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, r"\Ahips: [^\n]*\n\Z")
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    lab.skip_unless_possible("namespaces")
    unittest.main(verbosity=2)
