"""A file of each form that describes the wiring of four servers n0 to n3, for tests that start jobs with them."""
import collections
import os

Form = collections.namedtuple("Form", "name format file text")

LINKS = [("n0", "eth0", "leaf0", "1"), ("n1", "eth0", "leaf0", "2"), ("n2", "eth0", "leaf1", "1"), ("n3", "eth0", "leaf1", "2"),
         ("leaf0", "7", "spine0", "1"), ("leaf1", "7", "spine0", "2")]


def _blocks():
    """The cables of each device, as ibsim's net files and ibnetdiscover list them."""
    ends = collections.defaultdict(list)
    for a, a_port, b, b_port in LINKS:
        one, other = (a, a_port.replace("eth0", "1")), (b, b_port)
        ends[a].append((one[1], other))
        ends[b].append((other[1], one))
    return ends


def _ibsim():
    return "".join(f'{"Hca 1" if name[0] == "n" else "Switch 8"} "{name}"\n' +
                   "".join(f'[{port}] "{peer}"[{peer_port}]\n' for port, (peer, peer_port) in ports) + "\n"
                   for name, ports in _blocks().items())


def _ibnetdiscover():
    ends = _blocks()
    guid = {name: f'{"H" if name[0] == "n" else "S"}-{number + 1:016x}' for number, name in enumerate(ends)}
    text = ""
    for name, ports in ends.items():
        what = f'Ca\t1 "{guid[name]}"\t\t# "{name} mlx5_0"' if name[0] == "n" else \
            f'Switch\t8 "{guid[name]}"\t\t# "{name}" base port 0 lid 1 lmc 0'
        text += f"{what}\n" + "".join(
            f'[{port}]\t"{guid[peer]}"[{peer_port}] \t\t# "{peer}{" mlx5_0" if peer[0] == "n" else ""}" lid 1 4xEDR\n'
            for port, (peer, peer_port) in ports) + "\n"
    return text


def _lldp():
    return "".join(f'n{node}: {{"lldp": {{"interface": [{{"eth0": {{"via": "LLDP", "chassis": {{"leaf": {{"capability": '
                   f'{{"type": "Bridge", "enabled": true}}}}}}, "port": {{"id": {{"type": "ifname", "value": "swp{node}"}}}}}}}}]}}}}\n'
                   for node in range(4))


SLURM = "SwitchName=leaf0 Nodes=n[0-1]\nSwitchName=leaf1 Nodes=n[2-3]\nSwitchName=spine Switches=leaf[0-1]\n"
SHOWN = ("SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=leaf[0-1]\n"
         "SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n")
SLURM_YAML = ("- topology: t\n  cluster_default: true\n  tree:\n    switches:\n      - {switch: leaf0, nodes: 'n[0-1]'}\n"
              "      - {switch: leaf1, nodes: 'n[2-3]'}\n      - {switch: spine, children: 'leaf[0-1]'}\n")
FAMILY = "hips-topology: 1\nshape: leafspine:2,2,1\nservers: {names: 'n[0-3]'}\nlinks: [{server: n3, nic: 0, rate: 10Gb}]\n"
GRAPH = """hips-topology: 1
shape: graph
servers: {count: 4, names: [n0, n1, n2, n3]}
switches: {names: [leaf0, leaf1, core]}
cables:
  - {server: n0, nic: 0, switch: leaf0}
  - {server: n1, nic: 0, switch: leaf0}
  - {server: n2, nic: 0, switch: leaf1}
  - {server: n3, nic: 0, switch: core, rate: 25Gb}
  - {switches: [leaf0, core], rate: 200Gb}
  - {switches: [leaf1, core]}
"""
SIMGRID = ('<?xml version="1.0"?>\n<platform version="4.1">\n<cluster id="c" prefix="n" radical="0-3" suffix="" speed="1Gf" '
           'bw="12.5GBps" lat="1us" topology="FAT_TREE" topo_parameters="2;2,2;1,1;1,1"/>\n</platform>\n')
# Servers 0 to 3, switches 4 to 6.
NS3 = "7 3 6\n4 5 6\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n4 6 100Gbps 1us 0\n5 6 100Gbps 1us 0\n"

FORMS = [
    Form("a topology file of a family", "hips", "family.yaml", FAMILY),
    Form("a topology file of a graph", "hips", "graph.yaml", GRAPH),
    Form("topology.conf", "slurm", "topology.conf", SLURM),
    Form("scontrol show topology", "slurm", "shown.txt", SHOWN),
    Form("topology.yaml", "slurm", "topology.yaml", SLURM_YAML),
    Form("ibnetdiscover", "ibnetdiscover", "fabric.ib", _ibnetdiscover()),
    Form("a net file of ibsim", "ibnetdiscover", "net", _ibsim()),
    Form("lldpctl by pdsh", "lldp", "lldp.txt", _lldp()),
    Form("containerlab", "containerlab", "net.clab.yml", "name: net\ntopology:\n  nodes:\n" + "".join(
        f"    {name}: {{kind: {'linux' if name[0] == 'n' else 'ceos'}}}\n"
        for name in ("n0", "n1", "n2", "n3", "leaf0", "leaf1", "spine0")) + "  links:\n" + "".join(
            f'    - endpoints: ["{a}:e{a_port}", "{b}:e{b_port}"]\n' for a, a_port, b, b_port in LINKS)),
    Form("Graphviz", "dot", "net.dot", "graph net {\n" + "".join(
        f'  "{a}":"{a_port}" -- "{b}":"{b_port}";\n' for a, a_port, b, b_port in LINKS) + "}\n"),
    Form("ns-3", "ns3", "edges.txt", NS3),
    Form("SimGrid", "simgrid", "platform.xml", SIMGRID),
    Form("a table", "table", "cables.csv", "side_a_device,side_a_name,side_b_device,side_b_name\n" + "".join(
        ",".join(link) + "\n" for link in LINKS)),
]


def write(form, folder):
    """The path of a file of this form in the folder."""
    path = os.path.join(folder, form.file)
    with open(path, "w", encoding="ascii") as file:
        file.write(form.text)
    return path
