"""hips topo reads large files of every form, or says in one line what is wrong, in bounded memory.

usage: large_files_test.py <hips>

HIPS_TEST_FULL=1: files of 50 MB, which no reader accepts, and of nearly 16 MiB, which is the most that one reads; lines
of 10 MB, and of nearly 4 MiB, the most of one host of LLDP. Times and memory are printed; only a command that takes a
minute fails by its time.
"""
import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time
import unittest

HIPS = os.path.abspath(sys.argv.pop(1))
FULL = os.environ.get("HIPS_TEST_FULL") == "1"
MANY_LINES = [50_000_000, 16_700_000] if FULL else [5_000_000]  # bytes of a file
LONG_LINES = [10_000_000, 4_190_000] if FULL else [1_000_000]
MOST_MEMORY = 1 << 30  # bytes of address space
HANG_S = 60
LONGEST_MESSAGE = 2000

# Leaves of 32 servers below 4 spines; each form has the text of a number of leaves.
PER_LEAF, SPINES = 32, 4


def servers(leaf):
    return range(leaf * PER_LEAF, (leaf + 1) * PER_LEAF)


def cables(leaves):
    for leaf in range(leaves):
        for port, server in enumerate(servers(leaf)):
            yield f"n{server}", "eth0", f"leaf{leaf}", f"swp{port}"
        for spine in range(SPINES):
            yield f"leaf{leaf}", f"swp{PER_LEAF + spine}", f"spine{spine}", f"swp{leaf}"


def named(leaf):
    return ",".join(f"n{server}" for server in servers(leaf))


def names(leaves):
    return [f"n{server}" for leaf in range(leaves) for server in servers(leaf)]


def switches(leaves):
    return [f"leaf{leaf}" for leaf in range(leaves)] + [f"spine{spine}" for spine in range(SPINES)]


def slurm_conf(leaves):
    return "".join(f"SwitchName=leaf{leaf} Nodes={named(leaf)}\n" for leaf in range(leaves)) + \
        f"SwitchName=spine0 Switches=leaf[0-{leaves - 1}]\n"


def slurm_conf_line(leaves):
    return f"SwitchName=leaf0 Nodes={','.join(names(leaves))}\n"


def slurm_yaml(leaves):
    return "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n" + "".join(
        f"      - {{switch: leaf{leaf}, nodes: '{named(leaf)}'}}\n" for leaf in range(leaves)) + \
        f"      - {{switch: spine0, children: 'leaf[0-{leaves - 1}]'}}\n"


def slurm_yaml_line(leaves):
    return "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n" \
        f"      - {{switch: leaf0, nodes: '{','.join(names(leaves))}'}}\n"


def scontrol(leaves):
    return f"SwitchName=spine0 Level=1 LinkSpeed=1 Nodes=n[0-{leaves * PER_LEAF - 1}] Switches=leaf[0-{leaves - 1}]\n" + "".join(
        f"SwitchName=leaf{leaf} Level=0 LinkSpeed=1 Nodes=n[{servers(leaf)[0]}-{servers(leaf)[-1]}]\n" for leaf in range(leaves))


def scontrol_line(leaves):
    return f"SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes={','.join(names(leaves))}\n"


def blocks(leaves):
    """The ports of each device, as InfiniBand's tools list them."""
    ports = collections.defaultdict(list)
    for a, a_port, b, b_port in cables(leaves):
        ends = [(name, int(port[3:] or 0) + 1) for name, port in ((a, a_port), (b, b_port))]
        for (one, port), other in (ends, reversed(ends)):
            ports[one].append((port, *other))
    return ports


def ibnetdiscover(leaves):
    ports = blocks(leaves)
    guid = {name: f'{"H" if name[0] == "n" else "S"}-{number + 1:016x}' for number, name in enumerate(ports)}
    adapter = {name: f"{name} mlx5_0" if name[0] == "n" else name for name in ports}
    return "".join(
        (f'Ca\t1 "{guid[name]}"\t\t# "{adapter[name]}"\n' if name[0] == "n" else
         f'Switch\t{len(ends)} "{guid[name]}"\t\t# "{name}" base port 0 lid 1 lmc 0\n') +
        "".join(f'[{port}]\t"{guid[peer]}"[{peer_port}] \t\t# "{adapter[peer]}" lid 1 4xEDR\n' for port, peer, peer_port in ends) + "\n"
        for name, ends in ports.items())


def ibsim(leaves):
    return "".join(f'{"Hca" if name[0] == "n" else "Switch"} {len(ends)} "{name}"\n' +
                   "".join(f'[{port}] "{peer}"[{peer_port}]\n' for port, peer, peer_port in ends) + "\n"
                   for name, ends in blocks(leaves).items())


JSON = ('{{"eth{nic}": {{"via": "LLDP", "chassis": {{"leaf{leaf}": {{"capability": [{{"type": "Bridge", "enabled": true}}]}}}}, '
        '"port": {{"id": {{"type": "ifname", "value": "swp{port}"}}}}}}}}')
JSON0 = ('{{"name": "eth{nic}", "via": "LLDP", "chassis": [{{"name": [{{"value": "leaf{leaf}"}}], "capability": [{{"type": "Bridge", '
         '"enabled": true}}]}}], "port": [{{"id": [{{"type": "ifname", "value": "swp{port}"}}]}}]}}')


def lldp_hosts(form, head, tail):
    """One line for each host, as pdsh writes them."""
    def text(leaves):
        return "".join(f"n{server}: {head}{form.format(nic=0, leaf=leaf, port=port)}{tail}\n"
                       for leaf in range(leaves) for port, server in enumerate(servers(leaf)))
    return text


def lldp_line(form, head, tail):
    """One line with all NICs of one host."""
    def text(leaves):
        return head + ", ".join(form.format(nic=nic, leaf=nic, port=0) for nic in range(leaves * PER_LEAF)) + tail + "\n"
    return text


def keyvalue(leaves):
    return "".join(f"n{server}: lldp.eth0.via=LLDP\nn{server}: lldp.eth0.chassis.name=leaf{leaf}\n"
                   f"n{server}: lldp.eth0.chassis.Bridge.enabled=on\nn{server}: lldp.eth0.port.ifname=swp{port}\n"
                   for leaf in range(leaves) for port, server in enumerate(servers(leaf)))


def dot(separator):
    return lambda leaves: "graph net {" + separator + separator.join(
        f'"{a}":"{a_port}" -- "{b}":"{b_port}";' for a, a_port, b, b_port in cables(leaves)) + "\n}\n"


def containerlab(leaves):
    return "name: net\ntopology:\n  nodes:\n" + \
        "".join(f"    {name}: {{kind: linux}}\n" for name in names(leaves)) + \
        "".join(f"    {name}: {{kind: ceos}}\n" for name in switches(leaves)) + "  links:\n" + \
        "".join(f'    - endpoints: ["{a}:{a_port}", "{b}:{b_port}"]\n' for a, a_port, b, b_port in cables(leaves))


def containerlab_line(leaves):
    return "name: net\ntopology:\n  nodes: {" + ", ".join(f"{name}: {{kind: linux}}" for name in names(leaves)) + \
        ", leaf0: {kind: ceos}}\n  links:\n" + \
        "".join(f'    - endpoints: ["n{server}:eth0", "leaf0:swp{server}"]\n' for server in range(4))


def ns3(leaves):
    num_servers = leaves * PER_LEAF
    number = {name: index for index, name in enumerate(names(leaves) + switches(leaves))}
    links = [f"{number[a]} {number[b]} 100Gbps 1us 0\n" for a, _, b, _ in cables(leaves)]
    return f"{len(number)} {leaves + SPINES} {len(links)}\n" + \
        " ".join(str(number) for number in range(num_servers, len(number))) + "\n" + "".join(links)


def ns3_line(leaves):
    """Many switches; all but the first without cables."""
    num_switches = leaves * PER_LEAF
    return f"{num_switches + 4} {num_switches} 4\n" + " ".join(str(number + 4) for number in range(num_switches)) + "\n" + \
        "".join(f"{server} 4 100Gbps 1us 0\n" for server in range(4))


CLUSTER = ('<cluster id="c" prefix="n" radical="{radical}" suffix="" speed="1Gf" bw="12.5GBps" lat="1us" topology="FAT_TREE" '
           'topo_parameters="2;{leaf},{leaves};1,4;1,1">')


def simgrid(leaves):
    return '<?xml version="1.0"?>\n<platform version="4.1">\n' + \
        CLUSTER.format(radical="0-127", leaf=PER_LEAF, leaves=4) + "\n" + \
        "".join(f'  <prop id="rack{name}" value="4711"/>\n' for name in names(leaves)) + "</cluster>\n</platform>\n"


def simgrid_line(leaves):
    return '<?xml version="1.0"?>\n<platform version="4.1">\n' + \
        CLUSTER.format(radical=",".join(str(server) for server in range(leaves * PER_LEAF)), leaf=PER_LEAF, leaves=leaves) + \
        "</cluster>\n</platform>\n"


HEADER = "side_a_device,side_a_name,side_b_device,side_b_name,label\n"


def table(leaves):
    return HEADER + "".join(",".join(cable) + ",\n" for cable in cables(leaves))


def table_line(leaves):
    return HEADER + f'n0,eth0,leaf0,swp0,"{" ".join(names(leaves))}"\nn1,eth0,leaf0,swp1,\n'


def graph(separator):
    def text(leaves):
        listed = [f"{{server: n{server}, nic: 0, switch: leaf{leaf}}}" for leaf in range(leaves) for server in servers(leaf)]
        listed += [f"{{switches: [leaf{leaf}, spine{spine}]}}" for leaf in range(leaves) for spine in range(SPINES)]
        return f"hips-topology: 1\nshape: graph\nservers: {{count: {leaves * PER_LEAF}, names: 'n[0-{leaves * PER_LEAF - 1}]'}}\n" \
            f"switches: {{names: [{', '.join(switches(leaves))}]}}\ncables: [{separator}" + \
            f",{separator}".join(listed) + "]\n"
    return text


JSON_ENDS = ('{"lldp": {"interface": [', "]}}")
JSON0_ENDS = ('{"lldp": [{"interface": [', "]}]}")
# Of each form: its name for --from, a text of many lines, and one whose longest line has nearly all of it, or None if
# only a name can be long. The content tells the form, except where a name is long.
FORMS = {
    "topology.conf": ("slurm", slurm_conf, slurm_conf_line),
    "topology.yaml": ("slurm", slurm_yaml, slurm_yaml_line),
    "scontrol show topology": ("slurm", scontrol, scontrol_line),
    "ibnetdiscover": ("ibnetdiscover", ibnetdiscover, None),
    "a net file of ibsim": ("ibnetdiscover", ibsim, None),
    "lldpctl -f json": ("lldp", lldp_hosts(JSON, *JSON_ENDS), lldp_line(JSON, *JSON_ENDS)),
    "lldpctl -f json0": ("lldp", lldp_hosts(JSON0, *JSON0_ENDS), lldp_line(JSON0, *JSON0_ENDS)),
    "lldpctl -f keyvalue": ("lldp", keyvalue, None),
    "Graphviz": ("dot", dot("\n"), dot(" ")),
    "containerlab": ("containerlab", containerlab, containerlab_line),
    "ns-3": ("ns3", ns3, ns3_line),
    "SimGrid": ("simgrid", simgrid, simgrid_line),
    "a table": ("table", table, table_line),
    "a topology file of a graph": ("hips", graph("\n  "), graph(" ")),
}


def of_size(text, size):
    """About `size` bytes; nearly, and not more, in a full run. Numbers become longer, so more leaves are more bytes each."""
    leaves = 200
    for _ in range(2 if FULL else 1):
        leaves = leaves * size // len(text(leaves))
    return text(leaves)


def long_name(text, size):
    """Two leaves, the first name of the first of them as long as `size`."""
    for name in ("leaf0", "rackn0"):
        if name in text(2):
            return text(2).replace(name, "a" * size, 1)
    return text(2).replace("100Gbps", "1" * size, 1)


def write(path, form, kind, size):
    """The sizes of the file and of its longest line. In a process of its own, whose memory does not count for hips."""
    _, many, one = FORMS[form]
    content = {"many lines": lambda: of_size(many, size), "one line": lambda: of_size(one, size),
               "one name": lambda: long_name(many, size)}[kind]()
    with open(path, "w", encoding="ascii") as file:
        file.write(content)
    return len(content), max(map(len, content.splitlines()))


Run = collections.namedtuple("Run", "form kind size longest code out err seconds memory")


def topo(form, kind, size, writers):
    """hips topo of such a file, with the limit of memory."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HIPS_")}
    with tempfile.TemporaryDirectory(prefix="hips-large-") as folder, open(f"{folder}/out", "w+b") as out, \
            open(f"{folder}/err", "w+b") as err:
        sizes = writers.submit(write, f"{folder}/file", form, kind, size).result()
        start = time.monotonic()
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(["sh", "-c", f'ulimit -v {MOST_MEMORY >> 10}; exec "$@"', "sh", HIPS, "topo", "file",
                                    *(("--from", FORMS[form][0]) if kind == "one name" else ())], cwd=folder, env={**clean, "HOME": "/nowhere"}, stdout=out, stderr=err)
        pid = 0
        while pid == 0:
            time.sleep(0.005)
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid == 0 and time.monotonic() - start > HANG_S:
                process.kill()
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return Run(form, kind, *sizes, process.returncode, *texts, seconds, usage.ru_maxrss * 1024)


class LargeFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        at_once = 1 if FULL else os.cpu_count()  # the times of a full run are undisturbed
        cls.writers = concurrent.futures.ProcessPoolExecutor(at_once)
        cls.runners = concurrent.futures.ThreadPoolExecutor(at_once)

    @classmethod
    def tearDownClass(cls):
        cls.runners.shutdown()
        cls.writers.shutdown()

    def check(self, kind, size, forms):
        for run in self.runners.map(lambda form: topo(form, kind, size, self.writers), forms):
            with self.subTest(form=run.form, size=size):
                says = run.out if run.code == 0 else run.err
                print(f"{run.form + ', ' + kind:38} {run.size / 1e6:5.1f} MB {run.seconds:6.2f} s {run.memory >> 20:5d} MiB  "
                      f"exit {run.code}  {says.partition(chr(10))[0][:100]}", flush=True)
                self.assertGreaterEqual(run.size if kind == "many lines" else run.longest, 0.9 * size)
                self.assertLess(run.seconds, HANG_S, "hangs")
                for line in run.err.splitlines():
                    self.assertRegex(line[:200], r"\Ahips: ")
                    self.assertLess(len(line), LONGEST_MESSAGE)
                self.assertNotIn("memory", run.err)
                if run.code == 0:
                    self.assertIn("  servers ", run.out)
                else:
                    self.assertEqual((run.code, run.err.count("\n"), run.out), (2, 1, ""))

    def test_many_lines(self):
        for size in MANY_LINES:
            self.check("many lines", size, FORMS)

    def test_one_long_line(self):
        for size in LONG_LINES:
            self.check("one line", size, [form for form, (_, _, line) in FORMS.items() if line is not None])

    def test_one_long_name(self):
        for size in LONG_LINES:
            self.check("one name", size, FORMS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
