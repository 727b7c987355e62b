"""LLDP in a lab of namespaces: a real lldpd for each server and each switch. What lldpctl prints there is the topology
again, in each of its formats, and hips topo discover asks it by itself.

lldp_test.py HIPS
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import lab

HIPS = os.path.abspath(sys.argv.pop(1))
LIMIT_S = 90
FORMATS = ("json", "json0", "keyvalue")
# A daemon has its socket in /run. Nobody answers for names in a lab; waiting for that takes 5 s.
DAEMON = r"""
set -e
mount -t tmpfs none /run
mkdir /run/lldpd
mount --bind /dev/null /etc/resolv.conf
printf 'configure lldp tx-interval 1\nresume\n' >/run/lldpd.conf
"""
# A switch is a bridge of the lab's own namespace. Its daemon listens at its ports and has a host name of its own, so that it is
# a chassis of its own.
SWITCH = DAEMON + 'echo "$2" >/proc/sys/kernel/hostname\nexec lldpd -d -O /run/lldpd.conf -I "$1"\n'
# A server says that it is up, hears its switches, writes what lldpctl prints when the test has heard everything, too, and drafts.
SERVER = DAEMON + r"""
lldpd -d -O /run/lldpd.conf -I 'nic*' 2>/dev/null &
echo up
until [ "$(lldpctl -f keyvalue 2>/dev/null | grep -c 'chassis.name=switch')" -ge "$NICS" ]; do sleep 0.1; done
name=$(cat /proc/sys/kernel/hostname)
for format in json json0 keyvalue; do lldpctl -f $format >"$FOLDER/$format/$name.$format"; done
"$HIPS" topo discover -o "$FOLDER/draft.yaml"
echo drafted
until [ -e "$FOLDER/end" ]; do sleep 0.1; done
"""


def read(path):
    """The JSON of hips topo for a file or folder, and its notes."""
    done = subprocess.run([HIPS, "topo", path, "--json"], env=lab.environment(), text=True, capture_output=True, timeout=LIMIT_S,
                          check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class LabWithLldp:
    """A lab whose servers and switches run lldpd."""

    def __init__(self, topology, nics, folder):
        self.nics, self.folder, self.daemons, self.ports = nics, folder, {}, {}
        for name in FORMATS:
            os.mkdir(os.path.join(folder, name))
        environment = lab.environment(HIPS=HIPS, FOLDER=folder, NICS=str(nics))
        passed = [word for name in ("HIPS", "FOLDER", "NICS") for word in ("-x", name)]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            lab.command(HIPS, "--namespaces", "-q", "-t", topology, "--without-topology", "--timeout", str(LIMIT_S), *passed, "--",
                        "sh", "-c", SERVER), env=environment, text=True, stdout=subprocess.PIPE, stderr=self.errors)

    def __enter__(self):
        return self

    def expect(self, line, count):
        for _ in range(count):
            if (told := self.process.stdout.readline()) != line + "\n":
                self.errors.seek(0)
                raise AssertionError(f"expected {line!r}, got {told!r}: {self.errors.read()}")

    def start_switches(self):
        enter = lab.enter_network(lab.descendants(self.process.pid)[0])
        links = json.loads(subprocess.run([*enter, "ip", "-json", "link"], capture_output=True, text=True, check=True).stdout)
        for link in links:
            if link.get("master", "mgmt") != "mgmt":
                self.ports.setdefault(link["master"].replace("b", "switch"), []).append(link["ifname"])
        for name, ports in self.ports.items():
            self.daemons[name] = subprocess.Popen([*enter, "unshare", "--mount", "--uts", "sh", "-c", SWITCH, "sh", ",".join(ports), name],
                                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def ask(self, switch, output):
        """What lldpctl prints at a switch; nothing before its daemon listens."""
        pid = self.daemons[switch].pid
        return subprocess.run([*lab.enter_network(pid), "--mount", "lldpctl", "-f", output], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False).stdout

    def write_switches(self):
        deadline = time.monotonic() + LIMIT_S
        for switch, ports in self.ports.items():
            while self.ask(switch, "keyvalue").count(".chassis.name=") < len(ports):
                if time.monotonic() > deadline:
                    raise AssertionError(f"{switch} has not heard all of {ports}: {self.ask(switch, 'keyvalue')}")
                time.sleep(0.05)
            for name in FORMATS:
                with open(os.path.join(self.folder, name, f"{switch}.{name}"), "w", encoding="utf-8") as file:
                    file.write(self.ask(switch, name))

    def __exit__(self, *_):
        self.process.kill()
        for daemon in self.daemons.values():
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait(timeout=LIMIT_S)
        self.process.communicate(timeout=LIMIT_S)
        self.errors.close()


def without_folder(told):
    return {**told, "notes": [note.split(": ", 1)[1] for note in told["notes"]]}


class Lldp(unittest.TestCase):
    maxDiff = None

    def check(self, topology, servers, nics, drafted, switches):
        with tempfile.TemporaryDirectory() as folder:
            with LabWithLldp(topology, nics, folder) as running:
                running.expect("up", servers)
                running.start_switches()
                self.assertGreaterEqual(len(running.ports), switches)
                running.write_switches()
                running.expect("drafted", servers)
            told = [read(os.path.join(folder, name)) for name in FORMATS]
            self.assertEqual(told[0]["spec"], f"{topology}@10Gb")
            self.assertEqual(sorted(told[0]["nodes"]), sorted(f"node{server}" for server in range(servers)))
            for other in told[1:]:
                self.assertEqual(without_folder(other), without_folder(told[0]))
            with open(os.path.join(folder, "draft.yaml"), encoding="utf-8") as file:
                draft = file.read()
            self.assertRegex(draft, rf'shape: "{drafted}"  # told by LLDP: the switches of {servers * nics} NICs\n')
            names = ", ".join(sorted(f"switch{number}" for number in range(switches)))
            self.assertRegex(draft, rf"\n  count: \d+  #.* told by LLDP: {names}\n")
            self.assertEqual(read(os.path.join(folder, "draft.yaml"))["servers"], servers)
            return draft

    def test_rails_are_told(self):
        self.check("rail:9,2", 9, 2, "rail:9,2", 2)

    def test_a_bcube_is_told(self):
        self.check("bcube:3,1", 9, 2, "bcube:3,1", 6)

    def test_leaves_are_told_and_the_spine_is_guessed(self):
        draft = self.check("leafspine:3,3", 9, 1, "leafspine:3,3", 3)
        self.assertIn("# guessed: as many spines as a leaf has servers", draft)


if __name__ == "__main__":
    lab.skip_unless_possible("namespaces")
    unittest.main(verbosity=2)
