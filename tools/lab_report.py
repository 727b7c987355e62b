"""Times allreduce on shaped links of the lab and writes the tables into docs/roce.md; tools/lab-report builds and calls
it.

Each topology is one boot, so that the rows of a table, and the rate of the link that they are held against, come from the
same machine state. What the devices sent again is counted for each row: where it is not 0, the row says so.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from report_file import page_of_docs, page_with_tables

# The rows of each topology: name, algorithm (None: HiPS chooses the plan), environment.
MESH = {"HIPS_PATTERN": "mesh"}
TABLES = {
    "bcube:3,1": [
        ("HiPS", None, {}),
        ("HiPS, meshes", "hips", MESH),
        ("flat ring, one NIC", "flat-ring", {"HIPS_RINGS": "1"}),
        ("flat ring, K NICs", "flat-ring", {"HIPS_RINGS": "2"}),
    ],
    "rail:9,2": [
        ("HiPS", None, {}),
        ("flat ring, K NICs", "flat-ring", {}),
        ("flat mesh", "flat-mesh", {}),
        ("flat PS, one leader", "flat-ps", {"HIPS_LEADERS": "1"}),
    ],
    "switch:9": [
        ("HiPS", None, {}),
        ("flat ring", "flat-ring", {}),
        ("flat mesh", "flat-mesh", {}),
        ("flat PS, one leader", "flat-ps", {"HIPS_LEADERS": "1"}),
    ],
}
SENT_AGAIN = ("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "retry_exceeded_err", "send_rnr_err")
# Long enough that what the buckets let through at once is below 1 % of it.
MESSAGES = 200
BEGIN, END = "<!-- lab-report: begin -->", "<!-- lab-report: end -->"
DEFAULT_RATE = 12.5e9  # bytes/s; what a spec without a rate means

RANK = """
count() { cat /sys/class/infiniband/*/ports/1/hw_counters/{%(counters)s} | { n=0; while read -r i; do n=$((n + i)); done; echo $n; }; }
case $HIPS_RANK in
  0) ib_write_bw -d rxe0 -x 1 -s 65536 -n %(messages)d -t 8 -u 22 >/dev/null 2>&1 ;;
  1) until ib_write_bw -d rxe0 -x 1 -s 65536 -n %(messages)d -t 8 -u 22 node0 >/tmp/write_bw 2>&1; do sleep 0.5; done
     echo "LINK $(grep -E '^ *65536 ' /tmp/write_bw)" ;;
esac
%(jobs)s
"""
# A packet waits for seconds in the bucket of a slow link: with the usual time-outs it would be sent again and again.
LONG_RETRIES = {"HIPS_IB_TIMEOUT": "22"}
JOB = """
before=$(count)
%(environment)s %(perf)s %(algorithm)s -b %(bytes)d -e %(bytes)d -n %(iterations)d -w %(warmups)d -a 3 >/tmp/perf 2>&1 || {
  cat /tmp/perf >&2; exit 1; }
[ $HIPS_RANK != 0 ] || grep -E '^ +%(bytes)d ' /tmp/perf | sed 's/^/ROW %(row)d /'
echo "AGAIN %(row)d $(($(count) - before))"
"""


def run_table(arguments, topology, rows):
    """MB/s that ib_write_bw shows, and for each row: seconds, wrong elements, packets that were sent again."""
    jobs = ""
    for row, (_, algorithm, environment) in enumerate(rows):
        slow = algorithm == "flat-ps"  # minutes for each call; it has no warm-up that matters at that length
        jobs += JOB % {"row": row, "algorithm": f"--algorithm {algorithm}" if algorithm else "",
                       "perf": arguments.perf, "bytes": arguments.bytes,
                       "iterations": 1 if slow else arguments.iterations, "warmups": 0 if slow else 1,
                       "environment": " ".join(f"{name}={value}" for name, value in {**LONG_RETRIES, **environment}.items())}
    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as script:
        script.write(RANK % {"messages": MESSAGES, "jobs": jobs, "counters": ",".join(SENT_AGAIN)})
        script.flush()
        command = [arguments.hips, "lab", "run", "-t", topology, "--rate", arguments.rate, "--timeout", "3600", "--",
                   "bash", script.name]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        sys.exit(f"lab-report: the lab of {topology} failed:\n{done.stdout}")
    return parse(done.stdout, len(rows))


def parse(text, num_rows):
    link = re.search(r"^LINK +65536 +\d+ +[\d.]+ +([\d.]+)", text, re.MULTILINE)
    if not link:
        sys.exit(f"lab-report: ib_write_bw printed no line for 65536 bytes:\n{text}")
    results = []
    for row in range(num_rows):
        # size count type redop root | time algbw busbw #wrong, out of place and then in place
        columns = re.search(rf"^ROW {row} +(.*)$", text, re.MULTILINE).group(1).split()
        again = sum(int(n) for n in re.findall(rf"^AGAIN {row} (\d+)$", text, re.MULTILINE))
        results.append({"seconds": min(float(columns[5]), float(columns[9])) / 1e6,
                        "wrong": int(columns[8]) + int(columns[12]), "again": again})
    return float(link.group(1)) * 2**20, results


def bound_and_prediction(arguments, topology, algorithm, environment):
    """Seconds at 12.5e9 bytes/s of every NIC: the least that any plan takes, and what this one takes."""
    options = []
    if "HIPS_RINGS" in environment:
        options = ["--rings", environment["HIPS_RINGS"]]
    if "HIPS_PATTERN" in environment:
        options = ["--pattern", environment["HIPS_PATTERN"]]
    if "HIPS_LEADERS" in environment:
        options = ["--leaders", environment["HIPS_LEADERS"]]
    text = subprocess.run([arguments.hips, "plan", "-t", topology, "--algorithm", algorithm or "hips", "--bytes",
                           str(arguments.bytes), "--json", *options], text=True, capture_output=True, check=True).stdout
    notes = json.loads(text)["notes"]
    return notes["bound_seconds"], notes["bandwidth_seconds"]


def table(arguments, topology, rows):
    rate, results = run_table(arguments, topology, rows)
    lines = [f"### {topology}", "",
             f"`ib_write_bw -s 65536` on a link: {rate / 1e6:.4f} MB/s. {arguments.bytes} bytes of float32.", "",
             "| plan | time | predicted from the link | of the bound | result | packets sent again |",
             "|---|---|---|---|---|---|"]
    for (name, algorithm, environment), result in zip(rows, results):
        bound, predicted = (seconds * DEFAULT_RATE / rate
                            for seconds in bound_and_prediction(arguments, topology, algorithm, environment))
        lines.append(f"| {name} | {result['seconds']:.2f} s | {predicted:.2f} s | {100 * bound / result['seconds']:.1f} % "
                     f"| {'exact' if result['wrong'] == 0 else str(result['wrong']) + ' wrong'} | {result['again']} |")
    print("\n".join(lines), flush=True)
    return "\n".join(lines)


def size(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f'"{text}" is no size; write 4M')
    return int(match.group(1)) * 1024 ** " KMG".index(match.group(2) or " ")


def main():
    parser = argparse.ArgumentParser(prog="lab-report", description=__doc__)
    parser.add_argument("--hips", required=True, type=os.path.abspath)
    parser.add_argument("--perf", required=True, type=os.path.abspath)
    parser.add_argument("--bytes", type=size, default=size("4M"), help="of the vector (4M)")
    parser.add_argument("--rate", default="4mbit", help="of every NIC in each direction (4mbit)")
    parser.add_argument("--iterations", type=int, default=2, help="timed calls, out of place and in place each (2)")
    parser.add_argument("--topology", choices=list(TABLES), action="append", help="only these; repeatable")
    parser.add_argument("--output", type=page_with_tables, default=page_of_docs("roce.md"), help="the file whose tables are replaced (docs/roce.md)")
    arguments = parser.parse_args()
    with open(arguments.output, encoding="utf-8") as file:
        text = file.read()
    if BEGIN not in text or END not in text:
        sys.exit(f"lab-report: {arguments.output} has no lines {BEGIN} and {END} between which the tables go")
    head = (f"`tools/lab-report --rate {arguments.rate}` measured this: nine guests, every NIC shaped to {arguments.rate} in "
            "each direction; each table is one boot. The time is the mean over calls of the slowest rank, the better of out "
            "of place and in place.")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    tables = []
    for topology in arguments.topology or TABLES:
        tables.append(table(arguments, topology, TABLES[topology]))
        # After each: a boot that fails later does not take the others with it.
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write("\n\n".join([before + BEGIN, head, *tables, END + after]))


if __name__ == "__main__":
    main()
