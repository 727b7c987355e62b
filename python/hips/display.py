"""How topologies, plans and comparisons are shown in terminals and notebooks."""

import html

from . import _plans
from .errors import Error


def or_none(function):
    """What the function gives; None where there is nothing to be shown, so that a notebook falls back on text."""
    try:
        return function()
    except Error:
        return None


def count(number, one, many=None):
    """"1 cable", "2 cables"."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def nics(numbers):
    """"NIC 0", "NICs 0-3"."""
    if not numbers:
        return "no NIC"
    return f"NIC {numbers[0]}" if len(numbers) == 1 else f"NICs {numbers[0]}-{numbers[-1]}"


def size_text(size):
    """"64 MiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:g} {unit}"
        size /= 1024
    return f"{size:g} GiB"


def table_text(rows):
    """Rows of words in columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return "\n".join("  " + "  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows)


def topology_text(topology):
    rows = []
    for level in topology.levels:
        rate = "memory" if level.kind == "node" else f"{level.bandwidth_bytes_per_s * 8 / 1e9:g} Gbit/s"
        rows.append((level.name, f"radix {level.radix}", level.kind, nics(level.nics), rate))
    ranks = f", {topology.ranks_per_server} ranks each" if topology.ranks_per_server > 1 else ""
    first = (f"{topology.name}: {count(topology.num_servers, 'server')}, {count(topology.num_nics, 'NIC')} each{ranks}, "
             f"{count(topology.num_switches, 'switch', 'switches')}, {count(topology.num_cables, 'cable')}")
    return first + ("\n" + table_text(rows) if rows else "")


def report_text(report):
    size = f"{count(report.num_ranks, 'rank')}, {count(report.num_messages, 'message')}"
    first = f"proved: {size}" if report.proved else f"not proved: {size}, {count(report.num_errors, 'error')}"
    lines = [first]
    for finding in report.findings:
        lines.append(f"{'error' if finding.is_error else 'note'}: {finding.kind}: {finding.text}")
        lines += [f"    {line}" for line in finding.example]
    return "\n".join(lines)


def _table_html(head, rows):
    cells = "".join(f"<th>{html.escape(word)}</th>" for word in head)
    lines = [f"<tr>{cells}</tr>"]
    for row in rows:
        lines.append("<tr>" + "".join(f"<td>{word}</td>" for word in row) + "</tr>")
    return "<table>" + "".join(lines) + "</table>"


def plan_html(plan):
    cost = plan.cost()
    rows = []
    for number, (_, blocks, stages) in enumerate(plan.lanes):
        words = [f"{phase} level {level} {pattern}" for phase, level, pattern in stages]
        rows.append((str(number), f"{blocks} of {plan.num_blocks}", html.escape(", ".join(words))))
    return (f"<p><b>{html.escape(plan.description)}</b>, on {html.escape(plan.topology.name)}: {count(plan.num_ranks, 'rank')}, "
            f"{count(plan.num_steps, 'step')} in sequence; {size_text(cost.bytes)} in {_plans.duration_text(cost.seconds)}, "
            f"{cost.ratio:.3f} times the bound</p>" + _table_html(("lane", "blocks", "stages"), rows))


def comparison_html(comparison):
    best = comparison.best
    rows = []
    for plan in comparison.plans:
        times = []
        for cost in plan.sizes:
            text = _plans.duration_text(cost.seconds)
            times.append(f"<b>{text}</b>" if best.get(cost.bytes) == plan.name else text)
        times = times or [html.escape(plan.reason)] + [""] * (len(comparison.sizes) - 1)
        rows.append((html.escape(plan.name), str(plan.num_steps or ""), *times))
    return _table_html(("plan", "steps", *(size_text(size) for size in comparison.sizes)), rows)
