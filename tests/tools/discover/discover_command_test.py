"""hips topo discover alone, with a file of hwloc, as ranks, under mpirun, and in network namespaces that are wired as a
BCube.

discover_command_test.py HIPS [MPIRUN] [TEST...]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import ranks  # noqa: E402

HIPS = os.path.abspath(sys.argv.pop(1))
MPIRUN = sys.argv.pop(1) if len(sys.argv) > 1 and "mpirun" in sys.argv[1] else None
XML = os.path.join(os.path.dirname(os.path.abspath(__file__)), "two_sockets.xml")


def read(draft):
    """The JSON of hips topo for a draft, after checking that hips can plan for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "draft.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(draft)
        plan = subprocess.run([HIPS, "plan", "-t", path, "--bytes", "64K"], env=ranks.environment(), text=True,
                              capture_output=True, timeout=240, check=False)
        assert plan.returncode == 0, draft + plan.stderr
        done = subprocess.run([HIPS, "topo", "-t", path, "--json"], env=ranks.environment(), text=True,
                              capture_output=True, timeout=240, check=True)
        return json.loads(done.stdout)


def run(*arguments, **extra):
    return subprocess.run([HIPS, "topo", "discover", *arguments], env=ranks.environment(**extra), text=True,
                          capture_output=True, timeout=240, check=False)


class Alone(unittest.TestCase):
    def test_this_server_is_printed_in_every_format(self):
        text = run().stdout
        for section in ("\nNICs\n", "NUMA 0 "):
            self.assertIn(section, text)
        told = json.loads(run("--format", "json").stdout)
        self.assertGreater(told["cpus"], 0)
        for nic in told["nics"]:
            self.assertEqual(nic["to_nics"][nic["name"]], "X")
        draft = run("--format", "yaml", HIPS_TRANSPORT="tcp")
        self.assertEqual(read(draft.stdout)["servers"], 1, draft.stderr)

    def test_a_file_of_topologies_gets_the_draft_also_of_one_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "draft.yaml")
            one_rank = {"HIPS_RANK": "0", "HIPS_SIZE": "1", "HIPS_ROOT": "127.0.0.1:18599"}
            for arguments, environment in (([], {}), ([], one_rank), (["--hwloc", XML], {})):
                done = run("-o", path, *arguments, HIPS_TRANSPORT="tcp", **environment)
                self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(read(file.read())["servers"], 1)
            self.assertEqual(run("-o", path, "--format", "text").returncode, 0)
            with open(path, encoding="utf-8") as file:
                self.assertIn("\nNICs\n", file.read())

    def test_another_server_is_read_from_an_hwloc_file(self):
        text = run("--hwloc", XML).stdout
        self.assertTrue(text.startswith("node7: 2 packages, 2 NUMA nodes, 8 cores, 16 CPUs\n"), text)
        self.assertRegex(text, r"\n  mlx5_0  X +PIX +PXB +PHB +PHB +NODE +SYS +NODE +SYS\n")
        draft = run("--hwloc", XML, "--format", "yaml").stdout
        self.assertEqual(read(draft)["spec"], "rail:1,6")

    def test_a_malformed_file_and_wrong_usage_exit_with_2_and_one_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file, open(XML, encoding="utf-8") as whole:
            file.write(whole.read()[:5000])
            file.flush()
            done = run("--hwloc", file.name)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Ahips: --hwloc: \S+ is malformed or truncated XML; [^\n]*lstopo[^\n]*\n\Z")
        done = run("--hwloc", "/no/such.xml")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r'\Ahips: --hwloc: "/no/such.xml" cannot be read: [^\n]*\n\Z')
        self.assertEqual(run("--format", "svg").returncode, 2)


class OneNode(unittest.TestCase):
    def test_ranks_of_one_node_are_one_server(self):
        done = ranks.run_ranks(3, [HIPS, "topo", "discover"])
        self.assertEqual([one.returncode for one in done], [0, 0, 0], [one.stderr for one in done])
        self.assertEqual([one.stdout for one in done[1:]], ["", ""])
        told = read(done[0].stdout)
        self.assertEqual((told["servers"], told["ranks_per_server"]), (1, 3))
        self.assertIn("# guessed: one server was seen", done[0].stdout)

    def test_an_invalid_variable_of_one_rank_is_an_error_of_all(self):
        done = ranks.run_ranks(2, [HIPS, "topo", "discover"], HIPS_TRANSPORT="tcp", HIPS_SOCKET_IFNAME="=none9")
        self.assertEqual([one.returncode for one in done], [2, 1])
        self.assertRegex(done[0].stderr, r'\Ahips: HIPS_SOCKET_IFNAME="=none9" matches no interface; [^\n]*\n\Z')


class Mpirun(unittest.TestCase):
    @unittest.skipUnless(MPIRUN, "needs mpirun and a build with PMIx")
    def test_under_mpirun_rank_0_writes_the_file_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "draft.yaml")
            done = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", HIPS, "topo", "discover", "-o", path],
                                  text=True, env=ranks.environment(), capture_output=True, timeout=240, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(read(file.read())["ranks_per_server"], 2)


# Each server is a network namespace. A NIC is connected to a bridge in the surrounding namespace.
SERVER = r"""
set -e
mount -t sysfs none /sys
mount --bind /dev/null /etc/resolv.conf  # there is no name server; waiting for one takes 5 s
echo "$2" >/proc/sys/kernel/hostname
read -r _
shift 2
while [ $# -gt 0 ]; do
  ip address add "$2" dev "$1"
  ip link set "$1" up
  shift 2
done
ip link set lo up
[ -z "$GATEWAY" ] || ip route add default via "$GATEWAY"
read -r _
exec "$HIPS" topo discover --format "$FORMAT"
"""


def sandboxed(command):
    """The command in new namespaces, in which it has all permissions."""
    return [*([] if os.geteuid() == 0 else ["unshare", "-Ur"]), "unshare", "--net", "--mount", *command]


def has_namespaces():
    if not shutil.which("unshare") or not shutil.which("ip"):
        return False
    script = "mount -t sysfs none /sys && ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2"
    return subprocess.run(sandboxed(["sh", "-c", script]), capture_output=True, check=False).returncode == 0


class Fabric:
    """Servers with NICs on bridges. Needs all permissions for `ip`."""

    def __init__(self, servers, down=(), routers=None, output="yaml"):
        """`servers`: for each server a list of (bridge, address). `down`: (server, NIC) with disconnected cables.
        `routers`: the address of the router on each bridge. `output`: --format."""
        self.processes = []
        for bridge in sorted({bridge for nics in servers for bridge, _ in nics}):
            self.ip("link", "add", bridge, "type", "bridge")
            self.ip("link", "set", bridge, "up")
            if routers:
                self.ip("address", "add", routers[bridge] + "/24", "dev", bridge)
        if routers:
            with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="utf-8") as file:
                file.write("1")
        for number, nics in enumerate(servers):
            words = [word for nic, (_, address) in enumerate(nics) for word in (f"nic{nic}", address)]
            env = ranks.environment(HIPS=HIPS, FORMAT=output, HIPS_RANK=str(number), HIPS_SIZE=str(len(servers)),
                                    GATEWAY=routers[nics[0][0]] if routers else "",
                                    HIPS_ROOT=servers[0][-1][1].split("/")[0] + ":18500")
            process = subprocess.Popen(
                ["unshare", "--net", "--uts", "--mount", "sh", "-c", SERVER, "sh", "x", f"node{number}", *words],
                env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.processes.append(process)
            while os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
                pass
            for nic, (bridge, _) in enumerate(nics):
                port = f"s{number}n{nic}"
                self.ip("link", "add", port, "type", "veth", "peer", "name", f"nic{nic}", "netns", str(process.pid))
                if (number, nic) not in down:
                    self.ip("link", "set", port, "master", bridge)
                self.ip("link", "set", port, "up")
            process.stdin.write("\n")
            process.stdin.flush()

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, timeout=240)

    def run(self):
        for process in self.processes:
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate(timeout=240) for process in self.processes]
        assert all(process.returncode == 0 for process in self.processes), told
        return told[0][0]


def bcube(management):
    return [[("lower%d" % (server // 2), f"10.0.{server // 2}.{server + 1}/24"),
             ("upper%d" % (server % 2), f"10.1.{server % 2}.{server + 1}/24"),
             ("front", f"{management}.{server + 1}/24")] for server in range(4)]


@unittest.skipUnless(has_namespaces(), "needs network namespaces and bridges")
class Namespaces(unittest.TestCase):
    def run_fabric(self, name):
        done = subprocess.run(sandboxed([sys.executable, os.path.abspath(__file__), HIPS, "--fabric", name]),
                              text=True, capture_output=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_servers_wired_as_a_bcube_are_recognised(self):
        text = self.run_fabric("bcube")
        told = read(text)
        self.assertEqual(told["spec"], "bcube:2,1@10Gb", text)
        self.assertEqual(told["nodes"], ["node0", "node1", "node2", "node3"])
        self.assertRegex(text, r'shape: "bcube:2,1"  # seen: 10 pairs of NICs reach each other\n')
        self.assertIn("# Note: left out: 192.168.7.0/24, which joins all servers", text)

    def test_subnets_connected_by_a_router_are_a_leaf_spine(self):
        told = json.loads(self.run_fabric("routed"))
        self.assertEqual((told["shape"], told["fits"]), ("leafspine:2,2", True))
        self.assertEqual({(way["a"], way["b"]): way["hops"] for way in told["ways"] if way["reached"]},
                         {(0, 1): 1, (2, 3): 1, (0, 2): 2, (0, 3): 2, (1, 2): 2, (1, 3): 2})

    def test_a_disconnected_cable_is_down_in_the_draft(self):
        text = self.run_fabric("rack")
        self.assertRegex(text, r'shape: "rail:3,2"  # seen: 4 pairs of NICs reach each other\n')
        self.assertRegex(text, r"server: node1, nic: 0, rate: 10Gb, state: down}  # seen: it reaches no NIC")
        self.assertEqual(read(text)["servers"], 3)


FABRICS = {
    "bcube": lambda: Fabric(bcube("192.168.7")),
    "routed": lambda: Fabric([[("leaf%d" % (i // 2), f"10.0.{i // 2}.{i + 1}/24")] for i in range(4)],
                             routers={"leaf0": "10.0.0.254", "leaf1": "10.0.1.254"}, output="json"),
    "rack": lambda: Fabric([[("rail0", f"10.0.0.{i + 1}/24"), ("rail1", f"10.0.1.{i + 1}/24")] for i in range(3)],
                           down=[(1, 0)]),
}

if __name__ == "__main__":
    if "--fabric" in sys.argv:
        subprocess.run(["mount", "-t", "sysfs", "none", "/sys"], check=True, timeout=240)
        print(FABRICS[sys.argv[-1]]().run(), end="")
    else:
        unittest.main(verbosity=2)
