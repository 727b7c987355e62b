from typing import Any

class Level:
    name: str
    radix: int
    kind: str
    nics: list[int]
    bandwidth_bytes_per_s: float
    latency_ns: float

class Hop:
    source: int
    target: int
    source_nic: int
    target_nic: int
    level: int

class Topology:
    spec: str
    name: str
    num_ranks: int
    num_servers: int
    ranks_per_server: int
    num_nics: int
    num_switches: int
    num_cables: int
    servers_relay: bool
    levels: list[Level]
    server_names: list[str]
    def __init__(self, spec: str) -> None: ...
    def address(self, rank: int) -> str: ...
    def neighbours(self, rank: int) -> list[Hop]: ...
    def route(self, source: int, target: int) -> list[Hop]: ...
    def bound(self, bytes: int) -> float: ...
    def svg(self) -> str: ...
    def yaml(self, all_cables: bool) -> str: ...
    def equals(self, other: Topology) -> bool: ...

class Cost:
    seconds: float
    latency_seconds: float
    bandwidth_seconds: float
    barrier_seconds: float
    bound_seconds: float
    ratio: float
    num_steps: int
    bytes: int
    busiest: str
    busiest_bytes: int

class Finding:
    is_error: bool
    kind: str
    text: str
    example: list[str]
    rank: int
    step: int

class Report:
    proved: bool
    findings: list[Finding]
    num_errors: int
    num_ranks: int
    num_blocks: int
    num_steps: int
    num_messages: int

class Plan:
    topology: Topology
    algorithm: str
    description: str
    num_ranks: int
    num_steps: int
    num_blocks: int
    neighbours_only: bool
    lanes: list[tuple[int, int, list[tuple[str, int, str]]]]
    selected: str
    @staticmethod
    def make(topology: Topology, algorithm: str, pattern: str, leaders: int, rings: int, bytes: int) -> Plan: ...
    @staticmethod
    def read(path: str, topology: Topology | None) -> Plan: ...
    def program(self, rank: int) -> list[dict[str, Any]]: ...
    def text(self, rank: int | None, bytes: int) -> str: ...
    def cost(self, bytes: int) -> Cost: ...
    def check(self, count: int | None, credits: int, segments: int, collective: str, root: int) -> Report: ...
    def json(self) -> str: ...
    def html(self, bytes: int) -> str: ...

class SizeCost:
    bytes: int
    seconds: float
    latency_seconds: float
    bandwidth_seconds: float
    of_bound: float

class PlanCost:
    name: str
    is_baseline: bool
    description: str
    reason: str
    num_steps: int
    num_hops: int
    num_messages: int
    fan_in: int
    relays: bool
    sizes: list[SizeCost]

class Comparison:
    topology: str
    plans: list[PlanCost]
    sizes: list[int]
    best: list[int]
    def text(self) -> str: ...

def compare(topology: Topology, sizes: str, algorithms: str, baseline: bool) -> Comparison: ...
def duration_text(seconds: float) -> str: ...
def algorithms() -> dict[str, tuple[str, str]]: ...
