"""Times real programs natively and under `hips run`, by turns; see tools/programs-report."""

import argparse
import dataclasses
import glob
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from report_file import page_of_docs, report_file

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "programs")
LIMIT_S = 300  # far beyond any of these runs


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    what: str
    command: tuple
    result: str  # regular expression: its groups have to agree between runs with the same number of ranks
    digits: int = 7  # of numbers that are compared
    one_node: bool = False  # does not start between these namespaces, natively either
    mpi: str = "Open MPI"  # that it was built with
    variables: tuple = ()  # of its environment: (name, value)
    most_ranks: int = 9

    def result_of(self, text):
        found = re.findall(self.result, text)
        if not found:
            return None
        return tuple(f"{float(one):.{self.digits}g}" for one in found[-3:])


def python(script, *arguments):
    return ("/usr/bin/python3", os.path.join(INPUTS, script), *arguments)


PROGRAMS = (
    Program("pw.x", "Quantum ESPRESSO 6.7, plane waves: a silicon crystal, 4x4x4 k-points", ("pw.x", "-i", os.path.join(INPUTS, "silicon.in")),
            r"!\s+total energy\s+=\s+(\S+) Ry"),
    Program("lmp-melt", "LAMMPS, molecular dynamics: a Lennard-Jones melt, its energy after each step",
            ("lmp", "-log", "none", "-in", os.path.join(INPUTS, "melt.in")), r"(?m)^\s+150\s+(\S+)"),
    Program("lmp-salt", "LAMMPS, molecular dynamics: ions, long-range forces by PPPM (FFTs over all ranks)",
            ("lmp", "-log", "none", "-in", os.path.join(INPUTS, "salt.in")), r"(?m)^\s+120\s+(\S+)", 5),
    Program("petsc-cg", "PETSc, linear solver: conjugate gradients on a Poisson problem", python("poisson.py", "cg"), r"norm (\S+)"),
    Program("petsc-pipecg", "PETSc, the pipelined variant, with MPI_Iallreduce", python("poisson.py", "pipecg"), r"norm (\S+)", 4),
    Program("nwchem", "NWChem, quantum chemistry: SCF energy of water", ("nwchem.openmpi", os.path.join(INPUTS, "water.nw")),
            r"Total SCF energy =\s+(\S+)", one_node=True),
    Program("mpi4py", "mpi4py and numpy, data analysis: k-means", python("clusters.py"), r"distance (\S+)"),
    Program("nwchem-mpich", "the same NWChem and input, built with MPICH", ("nwchem.mpich", os.path.join(INPUTS, "water.nw")),
            # In windows of MPI_Win_allocate this build computes wrong energies, natively, too; 4 ranks that spin take a minute on 2 cores.
            r"Total SCF energy =\s+(\S+)", one_node=True, mpi="MPICH", variables=(("ARMCI_USE_WIN_ALLOCATE", "0"),), most_ranks=2),
    Program("bagel", "BAGEL, quantum chemistry: CASSCF energy of water, built with MPICH", ("BAGEL", os.path.join(INPUTS, "water.json")),
            # MPICH's ranks spin: between servers that share cores every other run takes minutes, natively, too.
            r"(?m)^\s+\d+\s+0 \*\s+(\S+)", one_node=True, mpi="MPICH"),
)


# How a program is run; those under HiPS stand in columns of their own.
UNDER_HIPS = {"hips": "`hips run`", "named": "`hips run -t`"}


@dataclasses.dataclass(frozen=True)
class Setting:
    name: str  # "3x2-rail@200mbit"
    ranks: int
    topology: str = ""  # of the namespaces; "": one node
    rate: str = ""

    @property
    def nodes(self):
        return self.topology != ""

    @property
    def ways(self):
        return ("native", "hips", "named", "again") if self.nodes else ("native", "hips", "again")

    def text(self):
        where = f"{self.ranks} ranks on one node" if not self.nodes else f"{self.name.split('-')[0].replace('x', ' nodes x ')}, two NICs each"
        rate = f", {self.rate.replace('mbit', ' Mbit/s')}" if self.rate else ", rate not limited" if self.nodes else ""
        return where + rate


def settings():
    yield Setting("2", 2)
    yield Setting("4", 4)
    for nodes, per_node in ((2, 1), (3, 2), (9, 1)):
        for rate in ("", "200mbit"):
            suffix = f"/{per_node}" if per_node > 1 else ""
            name = f"{nodes}x{per_node}-rail" + (f"@{rate}" if rate else "")
            yield Setting(name, nodes * per_node, f"rail:{nodes},2{suffix}", rate)


def environment(variables=()):
    env = {name: value for name, value in os.environ.items() if not name.startswith("HIPS_")}
    folders = sorted(glob.glob("/usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages"))
    env["PYTHONPATH"] = ":".join(folders[-1:])
    env.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", **dict(variables))
    return env


def launch(setting, program, way, hips, report):
    """Seconds, output and exit status of one run."""
    options, under = ["mpirun.openmpi", "--oversubscribe", "-n", str(setting.ranks)], []
    # The lab names its topology to all that runs in it, which users of the default have not done.
    if setting.nodes:
        under = ["env", "-u", "HIPS_TOPO"]
    if program.mpi == "MPICH":
        options = ["mpiexec.hydra", "-n", str(setting.ranks)]
    elif setting.nodes:
        options += ["-x", "PYTHONPATH", "-x", "OMP_NUM_THREADS", "-x", "OPENBLAS_NUM_THREADS", "--mca", "mpi_yield_when_idle", "1"]
    if way in UNDER_HIPS:
        under += [hips, "run", *(["-t", setting.topology] if way == "named" else []), f"--report={report}"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        begin = time.monotonic()
        with subprocess.Popen([*options, *under, *program.command], cwd=folder, env=environment(program.variables), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
            try:
                text = running.communicate(timeout=LIMIT_S)[0]
            except subprocess.TimeoutExpired:
                # The launcher ends its ranks, which would share the cores with what follows.
                running.terminate()
                try:
                    text = running.communicate(timeout=20)[0]
                except subprocess.TimeoutExpired:
                    running.kill()
                    text = ""
                return LIMIT_S, f"it did not end in {LIMIT_S} s: {text}", 124
        return time.monotonic() - begin, text, running.returncode


def measure(setting, program, hips, rounds, say):
    """All ways once a round, native twice: what native runs show against themselves. A round counts if all of its runs ended well.
    Each round has an order of its own: the processor's speed drifts, and a fixed order can keep time with that."""
    found, results = {"errors": [], **{way: [] for way in setting.ways}}, {True: set(), False: set()}
    reports = {}
    folder = tempfile.mkdtemp()
    for _ in range(rounds):
        times = {}
        for way in random.sample(setting.ways, len(setting.ways)):
            report = os.path.join(folder, "report.json")
            times[way], text, status = launch(setting, program, way, hips, report)
            result = program.result_of(text)
            has_report = os.path.exists(report)
            if status != 0 or result is None or has_report != (way in UNDER_HIPS):
                without = "" if has_report or way not in UNDER_HIPS else ", without a report"
                found["errors"].append(f"{UNDER_HIPS.get(way, 'natively')}: exit status {status}{without}: {text[-400:]}")
                break
            results[way in UNDER_HIPS].add(result)
            if has_report:
                with open(report, encoding="utf-8") as file:
                    summary = json.load(file)
                os.unlink(report)
                reports[way] = {"share": summary["collectives_seconds"] / summary["run_seconds"], "taken": summary["hips_calls"],
                                "delegated": summary["delegated_calls"]}
        else:
            for way, seconds in times.items():
                found[way].append(seconds)
    if found["native"]:
        say(f"{program.name}: " + ", ".join(f"{way} {statistics.median(found[way]):.2f} s" for way in setting.ways))
    for error in found["errors"]:
        say(f"{program.name}: {error}")
    return {**found, "agree": results[True] <= results[False], "reports": reports}


def inside(arguments):
    """In a lab, on its first server: measures and prints JSON."""
    setting = next(one for one in settings() if one.name == arguments.inside)
    found = {}
    for program in chosen(arguments.programs, PROGRAMS):
        if (setting.nodes and program.one_node) or setting.ranks > program.most_ranks:
            continue
        found[program.name] = measure(setting, program, arguments.hips, arguments.rounds, lambda line: print(line, file=sys.stderr, flush=True))
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(found, file)


def chosen(names, of):
    if not names:
        return list(of)
    known = {one.name: one for one in of}
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        sys.exit(f"programs-report: \"{unknown[0]}\" is unknown; known: {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def run_setting(setting, arguments):
    output = os.path.join(tempfile.mkdtemp(), "times.json")
    command = ["/usr/bin/python3", os.path.abspath(__file__), "--hips", os.path.abspath(arguments.hips), "--inside", setting.name,
               "--rounds", str(arguments.rounds), "--output", output]
    if arguments.programs:
        command += ["--programs", arguments.programs]
    if setting.nodes:
        # A run that hangs is ended by launch(); the lab only has to outlive all of them.
        runs = len(setting.ways) * arguments.rounds * len(chosen(arguments.programs, PROGRAMS))
        lab = [arguments.hips, "lab", "run", "--namespaces", "-t", setting.topology, "--mpirun", "--timeout", str(runs * LIMIT_S)]
        if setting.rate:
            lab += ["--rate", setting.rate]
        command = [*lab, "--", *command]
    done = subprocess.run(command, check=False, env=environment())
    if done.returncode != 0 or not os.path.exists(output):
        sys.exit(f"programs-report: {setting.name}: exit status {done.returncode}")
    with open(output, encoding="utf-8") as file:
        return json.load(file)


def ratios_of(found, way):
    """HiPS to native, by round, sorted; the middle one is what is shown."""
    return sorted(h / ((a + b) / 2) for h, a, b in zip(found[way], found["native"], found["again"]))


def spread_of(found):
    native, again = statistics.median(found["native"]), statistics.median(found["again"])
    return max(native, again) / min(native, again)


def heading_of(setting):
    columns = ["Program", "native", "A/A"]
    for way in setting.ways[1:-1]:
        columns += [UNDER_HIPS[way], "share", "calls"]
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]


def row_of(program, found, setting):
    errors, rounds = found["errors"], len(found["native"])
    cells = [program.name]
    if rounds:
        cells += [f"{statistics.median(found['native'] + found['again']):.2f} s", f"{spread_of(found):.2f}"]
        for way in setting.ways[1:-1]:
            ratios, report = ratios_of(found, way), found["reports"][way]
            cells += [f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", f"{100 * report['share']:.0f} %",
                      f"{report['taken']} of {report['taken'] + report['delegated']}"]
    if not found["agree"]:
        cells[-1] += "; **results differ**"
    if errors:
        cells[-1] += f"; **{len(errors)} of {len(errors) + rounds} rounds failed**: {' '.join(errors[0].split())[:150]}"
    return "| " + " | ".join(cells) + " |"


def change_of(found, way):
    """-1 slower, 0 as natively, 1 faster: by more than 5 % and than native runs differ. Where HiPS executed nothing it made
    nothing faster."""
    ratio, spread = statistics.median(ratios_of(found, way)), spread_of(found)
    if ratio > max(1.05, spread):
        return -1
    return 1 if ratio < min(0.95, 1 / spread) and not is_untouched(found, way) else 0


def is_untouched(found, way):
    return found["reports"][way]["taken"] <= 1


PAGE = """# Real programs

Whether HiPS is worth it for a program depends on the share of its time that it spends in collectives. These are programs of Debian
packages, unchanged, natively ({versions}), under `hips run` and under `hips run -t TOPOLOGY`; {rounds}, each with one run
of every kind and a second native one, in random order. Times are those of the whole `mpirun`. `tools/programs-report` makes this
page again.

- **native**: the median of the native runs.
- **A/A**: one native run of each round against the other one, their medians; ratios within that are no difference.
- **hips run**, **hips run -t**: HiPS to native in the same round, the median; below 1 HiPS is faster. In brackets the least and the
  largest.
- **share**: of the program's time in collectives that HiPS could execute, under HiPS.
- **calls**: those that HiPS executed, of all such collectives on rank 0. The rest stayed with native MPI, mostly since HiPS would not
  have saved what its set-up takes, or since native MPI was faster in the trials.

{machine}

| Program | Is |
|---|---|
{programs}

{summary}
{tables}"""


def kept_runs(path):
    """{setting: {program: what measure() found}} of earlier runs."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        kept = json.load(file)
    rows = [(name, found) for name, of_setting in kept.items() for found in of_setting.values()]
    ways = {one.name: one.ways for one in settings()}
    if any(name not in ways or not {"errors", "agree", "reports", *ways[name]} <= set(found) for name, found in rows):
        sys.exit(f"programs-report: {path} is of another version of this script; name a new file")
    return kept


def together(earlier, later):
    """The rounds of both; counts and shares are those of the later one."""
    if earlier is None:
        return later
    rounds = {key: earlier[key] + value for key, value in later.items() if isinstance(value, list)}
    return {**rounds, "agree": earlier["agree"] and later["agree"], "reports": {**earlier["reports"], **later["reports"]}}


def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout.partition("-")[0] or "of an unknown version"


def page_of(kept):
    tables, slower, faster, rounds, untouched, wrong = [], [], [], set(), [], []
    for setting in (one for one in settings() if one.name in kept):
        ran = [(program, kept[setting.name][program.name]) for program in PROGRAMS if program.name in kept[setting.name]]
        tables.append("\n".join([f"## {setting.text()[0].upper()}{setting.text()[1:]}", "",
                                 *heading_of(setting), *(row_of(program, found, setting) for program, found in ran), ""]))
        for program, found in ran:
            line = f"{program.name} ({setting.text()})"
            if found["errors"] or not found["agree"]:
                wrong.append(line)
            if not found["native"]:
                continue
            rounds.add(len(found["native"]))
            for way in setting.ways[1:-1]:
                how = change_of(found, way)
                (slower if how < 0 else faster if how > 0 else []).append(line.replace(")", ", with -t)") if way == "named" else line)
                if is_untouched(found, way):
                    untouched.append(statistics.median(ratios_of(found, way)))
    summary = []
    if wrong:
        summary.append("Runs failed, or results differ: " + "; ".join(wrong) + ".\n")
    if faster:
        summary.append("Faster by more than 5 % and than A/A: " + "; ".join(faster) + ".\n")
    summary.append("Slower by more than 5 % and than A/A: " + "; ".join(slower) + ".\n" if slower else
                   "In no line that ran is HiPS slower than natively by more than 5 % and than A/A.\n")
    if untouched:
        summary.append(f"Where HiPS executed one call or none, ratios are {min(untouched):.2f} to {max(untouched):.2f}: so much is noise.\n")
    counts = sorted(rounds) or [0]
    versions = f"Open MPI {version_of('libopenmpi3')}, MPICH {version_of('libmpich12')}"
    return PAGE.format(versions=versions, rounds=f"{counts[0]} to {counts[-1]} rounds" if len(counts) > 1 else "one round" if counts[0] == 1 else f"{counts[0]} rounds",
                       machine=f"The machine has {os.cpu_count()} cores; namespaces share them, and so do ranks.",
                       programs="\n".join(f"| {one.name} | {one.what} |" for one in PROGRAMS
                                          if any(one.name in found for found in kept.values())),
                       summary="\n".join(summary), tables="\n".join(tables))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hips", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--programs", default="")
    parser.add_argument("--settings", default="")
    parser.add_argument("--output", type=report_file, default=page_of_docs("programs.md"))
    parser.add_argument("--keep", type=report_file, help="JSON file: what it holds counts, too, and the new runs are added to it")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.hips = os.path.abspath(arguments.hips)
    if arguments.inside:
        inside(arguments)
        return
    programs = chosen(arguments.programs, PROGRAMS)
    for program in programs:
        if not shutil.which(program.command[0]):
            sys.exit(f"programs-report: {program.command[0]} is missing; install the packages of the group \"programs\" of tools/packages.txt")
    kept, begin = kept_runs(arguments.keep), time.monotonic()
    wanted = chosen(arguments.settings, list(settings()))
    for number, setting in enumerate(wanted, 1):
        print(f"== {number} of {len(wanted)}: {setting.text()} ({time.monotonic() - begin:.0f} s so far)", flush=True)
        of_setting = kept.setdefault(setting.name, {})
        for name, found in run_setting(setting, arguments).items():
            of_setting[name] = together(of_setting.get(name), found)
        if arguments.keep:
            with open(arguments.keep + ".new", "w", encoding="utf-8") as file:
                json.dump(kept, file)
            os.replace(arguments.keep + ".new", arguments.keep)
    page = page_of(kept)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(page)
    print(page)
    runs = [found for of_setting in kept.values() for found in of_setting.values()]
    if any(found["errors"] or not found["agree"] for found in runs):
        sys.exit("programs-report: runs failed, or results differ; see the page")


if __name__ == "__main__":
    main()
