"""Parses the output of perftest 4.5, or of a program with the same layout."""
import json
import re

RULE = "-" * 87
# Header line -> names of its columns, as in the JSON of perftest.
COLUMNS = {
    "#bytes #iterations BW peak[U] BW average[U] MsgRate[Mpps]":
        ("MsgSize", "n_iterations", "BW_peak", "BW_average", "MsgRate"),
    "#bytes #iterations t_min[U] t_max[U] t_typical[U] t_avg[U] t_stdev[U] 99% percentile[U] 99.9% percentile[U]":
        ("MsgSize", "n_iterations", "t_min", "t_max", "t_typical", "t_avg", "t_stdev", "percentile_99",
         "percentile_99.9"),
    "#bytes #iterations t_avg[U] tps average": ("MsgSize", "n_iterations", "t_avg", "tps_average"),
}
UNITS = re.compile(r"\[(MB/sec|MiB/sec|Gb/sec|usec|cycles)\]")


class Report:
    """title; banner: name -> value; local, remote: addresses; unit; rows: column -> number."""

    def __init__(self):
        self.title, self.unit = "", ""
        self.banner, self.local, self.remote, self.rows = {}, [], [], []


def read_report(text):
    """Parses the output of one end into a Report. Raises ValueError on a line that perftest does not print."""
    report, columns, part = Report(), None, 0
    for line in text.splitlines():
        words = " ".join(line.split())
        header = UNITS.sub("[U]", words)
        if line == RULE:
            part += 1
        elif part == 0 and (not line or line.startswith("*")):
            continue
        elif part == 1 and line.startswith(" " * 20):
            report.title = words
        elif part == 1:
            for field in re.split(r"\t\t", line):
                name, value = field.split(":", 1)
                report.banner[name.strip()] = value.strip()
        elif part == 2:
            side, what, value = re.fullmatch(r"(?: (local|remote) address| (GID)): ?(.+)", line).groups()
            if what is None:
                ends = report.local if side == "local" else report.remote
                names = iter(value.split())
                ends.append(dict(zip(names, names)))
            else:
                ends[-1]["GID"] = value
        elif header in COLUMNS:
            columns, report.unit = COLUMNS[header], UNITS.search(words).group(1)
        elif columns and len(words.split()) == len(columns):
            report.rows.append(dict(zip(columns, map(float, words.split()))))
        else:
            raise ValueError(f"unexpected line in perftest output: {line!r}")
    return report


def read_json(text):
    """Parses a file of --out_json: {"test_info": ..., "results": ...}. Perftest 4.5 writes keys and words unquoted."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    quoted = re.sub(r'^([\w.]+) ?: (?=.)', r'"\1": ', text, flags=re.MULTILINE)
    quoted = re.sub(r': ([^"{\s][^,]*),$', lambda m: f": {number_or_word(m.group(1))},", quoted, flags=re.MULTILINE)
    return json.loads(re.sub(r",(\s*})", r"\1", quoted))


def number_or_word(text):
    return text if re.fullmatch(r"-?\d+(\.\d+)?", text) else json.dumps(text)
