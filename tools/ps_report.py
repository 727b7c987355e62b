"""Times tables of rows and writes their tables into docs/parameter-server.md; tools/ps-report builds and calls it."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from report_file import page_of_docs, page_with_tables

# Where the tables of rows begin and end in the page, and the one of models.
ROWS = ("<!-- ps-report: begin -->", "<!-- ps-report: end -->")
MODELS = ("<!-- ps-report: models begin -->", "<!-- ps-report: models end -->")
# Where two ranks are: heading, environment, flags of the lab between whose servers they are, if so, and of hips-ps-perf.
GUESTS = "soft-RoCE in guests"
PLACES = [("shared memory", {"HIPS_TOPO": "switch:2"}, None, []), ("TCP on loopback", {"HIPS_TOPO": "switch:2", "HIPS_TRANSPORT": "tcp"}, None, []),
          ("TCP between namespaces", {}, ["--namespaces"], []), (GUESTS, {}, [], ["-n", "5000", "-i", "50"])]
# What the page shows of hips-ps-perf's lines: operation, rows, floats of a row, keys, outstanding calls.
LINES = [("pull", "local", 1, 1, 1), ("push", "local", 1, 1, 1), ("pull", "local", 1, 100, 1), ("push", "local", 1, 100, 1), ("pull", "remote", 1, 1, 1),
         ("push", "remote", 1, 1, 1), ("pull", "remote", 1, 1, 64), ("push", "remote", 1, 1, 64), ("pull", "remote", 1, 100, 1), ("pull", "remote", 64, 100, 1),
         ("push", "remote", 64, 100, 1), ("pull", "remote", 64, 100, 64), ("localize", "remote", 1, 1, 1), ("localize", "remote", 1, 100, 1),
         ("intent", "remote", 1, 1, 1), ("intent", "remote", 1, 100, 1)]
NODES = (1, 2, 4)
# Steps with frequent keys: nodes, rate of each NIC, floats of a row.
STEP_PLACES = [(nodes, rate, floats) for nodes in (2, 4) for rate in ("", "100mbit") for floats in (1, 64)]
# Models of 250,000 floats: nodes with a shard, nodes with a worker, rate of each NIC.
MODEL_NODES = [(4, 16, "100mbit"), (2, 8, "200mbit"), (1, 4, "1gbit")]


def run(command, **environment):
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ps-report: {' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def times_of(arguments, environment, lab, flags):
    """The figures of hips-ps-perf by line, and the time of a ping-pong in microseconds."""
    perf = os.path.abspath(os.path.join(arguments.build, "tools/hips-ps-perf/hips-ps-perf"))
    with tempfile.TemporaryDirectory() as folder:
        file_name = os.path.join(folder, "times.json")
        command = [perf, "-r", str(arguments.rounds), "-J", file_name, *flags]
        if lab is None:
            command = ["mpirun", "-n", "2", *command]
        else:
            command = [os.path.join(arguments.build, "tools/hips/hips"), "lab", "run", *lab, "-q", "--writable", folder, "-t", "switch:2", "--", *command]
        run(command, **environment)
        with open(file_name, encoding="utf-8") as file:
            result = json.load(file)
    lines = {(one["operation"], one["rows"], one["row_length"], one["keys"], one["outstanding"]): one for one in result["lines"]}
    return lines, result["ping_pong_us"]


def words_of(line):
    operation, rows, floats, keys, outstanding = line
    what = operation if operation == "localize" else "intent until local" if operation == "intent" else f"{rows} {operation}"
    return (f"{what}, {'one key' if keys == 1 else f'{keys} keys'}" + (f" of {floats} floats" if floats > 1 else "") +
            (f", {outstanding} calls outstanding" if outstanding > 1 else ""))


def figure_of(line, one, ping_pong):
    us = f"{one['us_per_call']:.2f}" if one["us_per_call"] < 10 else f"{one['us_per_call']:.0f}"
    if line[2] > 1:
        return f"{us} us, {one['mb_per_s']:,.0f} MB/s"
    if line[3] > 1 or line[4] > 1:
        return f"{us} us, {one['keys_per_s'] / 1e6:.2f} M keys/s"
    return f"{us} us" + (f", {one['us_per_call'] / ping_pong:.2f} ping-pongs" if line[1] != "local" else "")


def table_of_times(arguments):
    columns = [times_of(arguments, environment, lab, flags) for _, environment, lab, flags in PLACES]
    rows = ["| One float a row, unless told | " + " | ".join(name for name, *_ in PLACES) + " |", "|---" * (len(PLACES) + 1) + "|",
            "| blocking TCP ping-pong of 8 bytes in the same run | " + " | ".join(f"{ping_pong:.0f} us" for _, ping_pong in columns) + " |"]
    for line in LINES:
        rows.append(f"| {words_of(line)} | " + " | ".join(figure_of(line, lines[line], ping_pong) for lines, ping_pong in columns) + " |")
    return "\n".join(rows) + f"\n\n{GUESTS[0].upper()}{GUESTS[1:]}: processors and NICs are emulated, so these times say nothing of a real NIC; ratios to the ping-pong do.\n"


def epochs_of(arguments, nodes, *flags, loopback=False):
    """Seconds of an epoch, and the errors after each. Nodes are namespaces, or ranks that know each other by loopback."""
    program = os.path.abspath(os.path.join(arguments.build, "examples/matrix_factorization"))
    if loopback:
        text = run(["mpirun", "--oversubscribe", "-n", str(nodes), program, *flags], HIPS_TOPO=f"switch:{nodes}", HIPS_TRANSPORT="tcp",
                   HIPS_ROOT="127.0.0.1:18500")
    else:
        text = run([os.path.join(arguments.build, "tools/hips/hips"), "lab", "run", "--namespaces", "-q", "-t", f"switch:{nodes}", "--", program, *flags])
    found = re.findall(r"mean square error ([\d.]+), ([\d.]+) s", text)
    return statistics.median(float(seconds) for _, seconds in found), [float(error) for error, _ in found]


def text_of_factorization(arguments):
    times = {nodes: [] for nodes in NODES}
    errors = {}
    twice = {loopback: {"moves": [], "stays": []} for loopback in (False, True)}
    for _ in range(arguments.rounds):
        for nodes in NODES:
            seconds, errors[nodes] = epochs_of(arguments, nodes)
            times[nodes].append(seconds)
        for loopback, seconds in twice.items():
            seconds["moves"].append(times[2][-1] if not loopback else epochs_of(arguments, 2, loopback=True)[0])
            seconds["stays"].append(epochs_of(arguments, 2, "--classic", loopback=loopback)[0])
    farthest = max(abs(one / other - 1) for nodes in NODES for one, other in zip(errors[nodes], errors[1]))
    equal = "is the same to the last bit" if farthest == 0 else f"differs by at most {100 * farthest:.2f} % from that of one node"
    medians = {nodes: statistics.median(times[nodes]) for nodes in NODES}
    shown = ", ".join(f"{nodes} node{'s' if nodes > 1 else ''} {medians[nodes]:.3f}" for nodes in NODES)
    moves, stays = ({loopback: statistics.median(seconds[way]) for loopback, seconds in twice.items()} for way in ("moves", "stays"))
    return (f"Matrix factorization (the example: 10,000 x 2,000, 200,000 entries, 32 factors, double), seconds per epoch over TCP between namespaces, one rank a node,\n"
            f"all on the same {os.cpu_count()} cores: {shown}; without localize two nodes take {stays[False]:.2f}, {stays[False] / moves[False]:.0f} times as long. On loopback, whose round trips\n"
            f"are shorter, these two take {moves[True]:.3f} and {stays[True]:.2f}, {stays[True] / moves[True]:.0f} times as long.\n"
            f"The error after each epoch {equal}.")


# Popular columns: what the page calls the ways of the example.
SLOW = "--popular-moved"  # which takes a minute, so once
POPULAR = {"--popular": "intents, moved or replicated", "--popular-copied": "a replica on each node all the time", SLOW: "moved only"}


def text_of_popular_columns(arguments):
    """Popular columns are on one node by default, and with each way on several."""
    alone, errors_alone = epochs_of(arguments, 1, "--popular")
    rows = ["| Seconds per epoch | " + " | ".join(POPULAR.values()) + " |", "|---" * (len(POPULAR) + 1) + "|"]
    farthest = 0
    for nodes in NODES[1:]:
        times = {way: [] for way in POPULAR}
        for number in range(arguments.rounds):
            for way in POPULAR:
                if number > 0 and way == SLOW:
                    continue
                seconds, errors = epochs_of(arguments, nodes, way)
                times[way].append(seconds)
                farthest = max(farthest, *(abs(one / other - 1) for one, other in zip(errors, errors_alone)))
        rows.append(f"| {nodes} nodes | " + " | ".join(f"{statistics.median(times[way]):.3f}" for way in POPULAR) + " |")
    return (f"The same with popular columns, drawn by Zipf's law (`--popular`), each worker's entries in any order; one node takes {alone:.3f}:\n\n"
            + "\n".join(rows) + f"\n\nThe error after each epoch differs by at most {100 * farthest:.2f} % from that of one node.")


def table_of_steps(arguments):
    ways = ["unmoved", "localized", "intents", "replicas"]
    perf = os.path.join(arguments.build, "tools/hips-ps-perf/hips-ps-perf")
    rows = ["| 100 keys a step, us | " + " | ".join(ways) + " |", "|---" * (len(ways) + 1) + "|"]
    for nodes, rate, floats in STEP_PLACES:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            run([os.path.join(arguments.build, "tools/hips/hips"), "lab", "run", "--namespaces", "-q", "-t", f"switch:{nodes}", *(["--rate", rate] if rate else []),
                 "--", perf, "--zipf", "1", "-l", str(floats), "-r", str(arguments.rounds), "-J", file.name])
            us = {line["rows"]: line["us_per_call"] for line in json.load(file)["lines"]}
        rows.append(f"| {nodes} nodes, {rate[:-4] + ' Mbit/s' if rate else 'no limit'}, rows of {floats} float{'s' if floats > 1 else ''} | "
                    + " | ".join(f"{us[way]:,.0f}" for way in ways) + " |")
    return ("Steps of all ranks that pull and push keys by Zipf's law (`--zipf 1`) and end a clock, in namespaces on the same cores, staleness 1. A step computes\n"
            "nothing, so nothing hides messages: where the network is fast it is best to leave rows where they are, and moving them pays where the rate limits.\n\n" + "\n".join(rows))


def table_of_models(arguments):
    perf = os.path.join(arguments.build, "tools/hips-ps-perf/hips-ps-perf")
    rows = ["| One MB of model, in namespaces | scheduled | all sent at once | |", "|---|---|---|---|"]
    for shards, workers, rate in MODEL_NODES:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            run([os.path.join(arguments.build, "tools/hips/hips"), "lab", "run", "--namespaces", "-q", "-t", f"switch:{shards + workers}", "--rate", rate,
                 "--", perf, "--model", "250000", "--shards", str(shards), "--workers", str(workers), "--seconds", "4", "-r", str(arguments.rounds),
                 "-J", file.name])
            per_s = {line["rows"]: line["keys_per_s"] for line in json.load(file)["lines"]}
        rows.append(f"| {workers} workers, {shards} shard{'s' if shards > 1 else ''}, {rate[:-4]} {rate[-4].upper()}bit/s | {per_s['scheduled']:.0f} updates/s | "
                    f"{per_s['at-once']:.0f} updates/s | {per_s['scheduled'] / per_s['at-once']:.2f} times as many |")
    return "\n".join(rows)


def put(page, markers, text):
    head, rest = page.split(markers[0])
    return f"{head}{markers[0]}\n\n{text}\n\n{markers[1]}{rest.split(markers[1])[1]}"


def main():
    parser = argparse.ArgumentParser(prog="tools/ps-report", description=__doc__)
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=page_with_tables, default=page_of_docs("parameter-server.md"), help="a page with lines that say where the report begins and ends")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit(f"ps-report: --rounds {arguments.rounds}: expected 1 or more")
    with open(arguments.output, encoding="utf-8") as file:
        page = file.read()
    for begin, end in (ROWS, MODELS):
        if page.count(begin) != 1 or page.count(end) != 1:
            sys.exit(f"ps-report: {arguments.output} has no lines {begin} and {end} between which tables go")
    report = (f"`tools/ps-report` measured this: two ranks as two nodes on {os.cpu_count()} cores; medians of {arguments.rounds} rounds.\n\n"
              f"{table_of_times(arguments)}\n\n{text_of_factorization(arguments)}\n\n{text_of_popular_columns(arguments)}\n\n{table_of_steps(arguments)}")
    models = table_of_models(arguments)
    page = put(put(page, ROWS, report), MODELS, models)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(page)
    print(f"{report}\n\n{models}")


if __name__ == "__main__":
    main()
