"""Topologies, plans, proofs and costs, as objects. Nothing here needs other ranks, or a network."""

from __future__ import annotations

from typing import Any

from . import _plans, display

__all__ = ["Topology", "Plan", "Comparison", "compare", "algorithms"]


def _bytes(size: int | str) -> int:
    """A size as a number: 65536, "64K", "4M" and "1G" (powers of 1024)."""
    if isinstance(size, str):
        factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(size[-1:].upper(), 1)
        digits = size[:-1] if factor > 1 else size
        if not digits.isdecimal():
            raise ValueError(f"hips: invalid size \"{size}\"; write 4096, 64K, 4M or 1G")
        return int(digits) * factor
    return int(size)


def _as_topology(value: Topology | str) -> Topology:
    return value if isinstance(value, Topology) else Topology(value)


class Topology:
    """Servers, NICs, switches and cables, from a spec or a topology file.

    >>> topology = Topology("bcube:3,1")
    >>> topology.num_servers, topology.num_nics, topology.num_switches
    (9, 2, 6)
    >>> topology.address(5)
    '<12>'
    >>> [(hop.source, hop.target, hop.source_nic) for hop in topology.route(0, 5)]
    [(0, 2, 0), (2, 5, 1)]
    >>> print(topology)
    BCube(3,1): 9 servers, 2 NICs each, 6 switches, 18 cables
      level 0  radix 3  switch  NIC 0  100 Gbit/s
      level 1  radix 3  switch  NIC 1  100 Gbit/s

    Notebooks show it as a picture. The spec is that of HIPS_TOPO: "torus:4x4", "rail:8,2@25Gb", "cluster.yaml", ...

    Cost    does not grow with the fabric: a million servers are a few levels; svg() and yaml(all_cables=True) list cables.
    Errors  ArgumentError names the spec, or file and line, and what would be right.
    """

    def __init__(self, spec: str | Any):
        self._native = spec if isinstance(spec, _plans.Topology) else _plans.Topology(str(spec))

    spec = property(lambda self: self._native.spec, doc="Canonical: Topology(spec) is this topology.")
    name = property(lambda self: self._native.name, doc='For messages: "BCube(3,1)".')
    num_ranks = property(lambda self: self._native.num_ranks)
    num_servers = property(lambda self: self._native.num_servers)
    ranks_per_server = property(lambda self: self._native.ranks_per_server)
    num_nics = property(lambda self: self._native.num_nics, doc="Of each server.")
    num_switches = property(lambda self: self._native.num_switches)
    num_cables = property(lambda self: self._native.num_cables)
    servers_relay = property(lambda self: self._native.servers_relay, doc="Whether servers forward messages of others.")
    server_names = property(lambda self: self._native.server_names, doc="By server; empty if a spec, or a file without names.")
    levels = property(lambda self: self._native.levels,
                      doc="The digits of a server's address: name, radix, kind, nics, bandwidth_bytes_per_s (of a NIC), latency_ns.")

    def address(self, rank: int) -> str:
        """The address of a rank, highest level first."""
        return self._native.address(rank)

    def neighbours(self, rank: int) -> list[_plans.Hop]:
        """The hops to ranks that differ in one digit: source, target, source_nic, target_nic, level of each."""
        return self._native.neighbours(rank)

    def route(self, source: int, target: int) -> list[_plans.Hop]:
        """The hops from one rank to another; empty for the same rank."""
        return self._native.route(source, target)

    def bound(self, size: int | str = "64M") -> float:
        """No allreduce of `size` bytes takes less time than this, in seconds."""
        return self._native.bound(_bytes(size))

    def plan(self, algorithm: str = "", pattern: str = "", *, leaders: int = 0, rings: int = 0, size: int | str = "64M") -> Plan:
        """The plan of that name; without a name the one that a call of `size` bytes gets between nodes.

        >>> Topology("bcube:3,1").plan().description
        'HiPS, 2 lanes, ring on both levels'
        """
        return Plan(_plans.Plan.make(self._native, algorithm, pattern, leaders, rings, _bytes(size)))

    def compare(self, sizes: str = "1K:1G", algorithms: str = "all", baseline: bool = False) -> Comparison:
        """The predicted time of every algorithm, as `hips compare`."""
        return compare(self, sizes, algorithms, baseline)

    def svg(self) -> str:
        """The picture, for light and dark pages. Error: more than 2,000 servers and switches."""
        return self._native.svg()

    def yaml(self, all_cables: bool = False) -> str:
        """A topology file; with a line for each cable, or only for those that differ from their level."""
        return self._native.yaml(all_cables)

    def __eq__(self, other):
        return isinstance(other, Topology) and self._native.equals(other._native)

    def __hash__(self):
        return hash(self.spec)

    def __repr__(self):
        return f"hips.Topology({self.spec!r})"

    def __str__(self):
        return display.topology_text(self)

    def _repr_svg_(self):
        return display.or_none(self.svg)


class Plan:
    """The steps of each rank for an allreduce on a topology.

    >>> plan = Topology("bcube:3,1").plan("hips", "ring")
    >>> plan.num_ranks, plan.num_steps, plan.neighbours_only
    (9, 8, True)
    >>> bool(plan.check())
    True
    >>> round(plan.cost("64M").ratio, 3)
    1.0
    >>> plan.program(0)[0]["op"], plan.program(0)[0]["peer"]
    ('send', 1)

    Notebooks show its lanes and its cost. `html()` is a page with an animation.
    """

    def __init__(self, native):
        self._native = native

    @classmethod
    def read(cls, path: Any, topology: Topology | str | None = None) -> Plan:
        """A stored plan: JSON, as json() writes it, or XML of MSCCL. Without a topology: that of the file's notes, or one switch."""
        return cls(_plans.Plan.read(str(path), None if topology is None else _as_topology(topology)._native))

    topology = property(lambda self: Topology(self._native.topology))
    algorithm = property(lambda self: self._native.algorithm)
    description = property(lambda self: self._native.description)
    selected = property(lambda self: self._native.selected, doc="Its name in the choice by size; \"\" if the plan was named.")
    num_ranks = property(lambda self: self._native.num_ranks)
    num_steps = property(lambda self: self._native.num_steps, doc="The longest chain of messages, one after the other.")
    num_blocks = property(lambda self: self._native.num_blocks)
    neighbours_only = property(lambda self: self._native.neighbours_only, doc="Whether every message is one hop.")
    lanes = property(lambda self: self._native.lanes, doc="(first block, blocks, [(phase, level, pattern) of each stage]) of each lane.")

    def program(self, rank: int) -> list[dict[str, Any]]:
        """The steps of a rank, as dictionaries with the keys of docs/plan.schema.json."""
        return self._native.program(rank)

    def text(self, rank: int | None = None, size: int | str = "64M") -> str:
        """What all ranks have in common or, for a rank, what it does, a line for each message and reduction."""
        return self._native.text(rank, _bytes(size))

    def cost(self, size: int | str = "64M") -> _plans.Cost:
        """The predicted cost for a vector of float32: seconds, latency_seconds, bandwidth_seconds, bound_seconds, ratio (of the
        bandwidth term to the bound), num_steps, busiest (a link), busiest_bytes."""
        return self._native.cost(_bytes(size))

    def check(self, size: int | str | None = None, *, credits: int = 1, segments: int = 1, collective: str = "allreduce",
              root: int = 0) -> Report:
        """Proves that the plan ends and reduces every input exactly once: a Report that is true if it is proved, with `findings`.

        size  of the vector, which decides what blocks are empty; None: none is. Cost: some seconds for 1,024 servers.
        """
        count = None if size is None else _bytes(size) // 4
        return Report(self._native.check(count, credits, segments, collective, root))

    def json(self) -> str:
        """The plan for HIPS_PLAN_FILE and `hips check`."""
        return self._native.json()

    def html(self, size: int | str = "64M") -> str:
        """A page for any browser, with an animation of the sums that each rank holds."""
        return self._native.html(_bytes(size))

    def __repr__(self):
        return f"<hips.Plan: {self.description}, on {self.topology.name}>"

    def __str__(self):
        return self.text()

    def _repr_html_(self):
        return display.plan_html(self)


class Report:
    """What the checker found of a plan: true if it is proved. `findings` have kind, text, is_error, example, rank and step."""

    def __init__(self, native):
        self._native = native

    proved = property(lambda self: self._native.proved)
    findings = property(lambda self: self._native.findings)
    num_errors = property(lambda self: self._native.num_errors)
    num_ranks = property(lambda self: self._native.num_ranks)
    num_messages = property(lambda self: self._native.num_messages)

    def __bool__(self):
        return self.proved

    def __repr__(self):
        return f"<hips.Report: {self}>"

    def __str__(self):
        return display.report_text(self)


class Comparison:
    """The predicted times of a topology's plans, for each size. Print it, or show it in a notebook.

    >>> comparison = Topology("bcube:3,1").compare("256K,64M")
    >>> comparison.best[256 << 10], comparison.best[64 << 20]
    ('hips', 'hips:ring')
    >>> comparison.seconds("flat-ring")[256 << 10] > comparison.seconds("hips")[256 << 10]
    True
    """

    def __init__(self, native):
        self._native = native

    plans = property(lambda self: self._native.plans, doc="name, description, num_steps, num_messages, fan_in, sizes, ... of each plan.")
    sizes = property(lambda self: self._native.sizes, doc="In bytes.")

    @property
    def best(self) -> dict[int, str]:
        """The name of the fastest plan for each size."""
        plans = self.plans
        return {size: plans[best].name for size, best in zip(self.sizes, self._native.best) if best < len(plans)}

    def seconds(self, name: str) -> dict[int, float]:
        """The predicted time of a plan for each size; empty if it has none."""
        for plan in self.plans:
            if plan.name == name:
                return {cost.bytes: cost.seconds for cost in plan.sizes}
        raise KeyError(name)

    def __str__(self):
        return self._native.text()

    def __repr__(self):
        return f"<hips.Comparison: {len(self.plans)} plans on {self._native.topology}>"

    def _repr_html_(self):
        return display.comparison_html(self)


def compare(topology: Topology | str, sizes: str = "1K:1G", algorithms: str = "all", baseline: bool = False) -> Comparison:
    """The predicted time of every algorithm on a topology, as `hips compare`.

    sizes       "4K,64M", or a range whose sizes are four times the one before: "1K:1G"
    algorithms  "all", or names with commas: "hips,flat-ring,hips:ring"
    baseline    add flat algorithms on one switch, with one NIC and with all
    """
    return Comparison(_plans.compare(_as_topology(topology)._native, str(sizes), algorithms, baseline))


def algorithms() -> dict[str, tuple[str, str]]:
    """What plans can be named: {name: (description, cost)}."""
    return _plans.algorithms()
