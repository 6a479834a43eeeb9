#!/usr/bin/python3 -B
"""fidelity.py [SET ...]: holds simulated times against measured ones. A set is a folder with a set.yaml (docs/fidelity.md).

In the environment: BUILD, the folder of kbgen (build); ROWS=FILE, the rows of the only set instead of its own. Without SET all
sets beside this file that have rows are run, and table.md and table.json are written there; of a named set the table is printed.

Exit status 0; 1 if a row could not be run, 2 for wrong input. How large an error is never fails anything.
"""
import csv
import json
import math
import os
import re
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    sys.exit("fidelity: python3-yaml is missing; .ci/setup bench installs it")

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(HERE, "..", "build"))
SECONDS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
KEYS = {"title": str, "topology": str, "kernels": list, "models": list, "bench": str, "rows": str, "measured": str, "clock_ghz": (int, float),
        "parameters": dict, "settings": dict, "sizes": dict, "fit": dict, "constants": str}
NEEDED = ("title", "topology", "bench", "measured")
CONSTANTS_MOST = 3


class Wrong(Exception):
    """Wrong input; the text says where."""


class Set:
    """A machine, a bench and rows, as set.yaml of a folder names them. Paths count from the folder."""

    def __init__(self, folder, rows=None):
        self.folder, self.name = os.path.abspath(folder), os.path.basename(os.path.abspath(folder))
        path = os.path.join(folder, "set.yaml")
        try:
            with open(path, encoding="utf-8") as file:
                self.keys = yaml.safe_load(file)
        except (OSError, yaml.YAMLError, UnicodeDecodeError) as why:
            raise Wrong(f"{path}: {why}") from None
        if not isinstance(self.keys, dict):
            raise Wrong(f"{path}: this is no mapping")
        for key, value in self.keys.items():
            if key not in KEYS:
                raise Wrong(f"{path}: unknown key {key!r}; there are {', '.join(KEYS)}")
            if not isinstance(value, KEYS[key]):
                raise Wrong(f"{path}: {key} has the wrong type")
        if missing := [key for key in NEEDED if key not in self.keys]:
            raise Wrong(f"{path}: {missing[0]} is missing")
        self.check_inner(path)
        if not rows and "rows" not in self.keys:
            raise Wrong(f"{path}: there are no rows; name some by ROWS=FILE")
        self.rows_path = os.path.abspath(rows or os.path.join(folder, self.keys["rows"]))
        self.rows, self.lines = self.read_rows()
        self.measured = [self.seconds_of(row, line) for row, line in zip(self.rows, self.lines)]
        self.sizes = self.read_sizes()

    def check_inner(self, path):
        """What is within a key."""
        for key in ("kernels", "models"):
            if any(not isinstance(file, str) for file in self.keys.get(key, [])):
                raise Wrong(f"{path}: {key} has the wrong type: a list of files")
        if any(not isinstance(name, str) for pair in self.keys.get("parameters", {}).items() for name in pair):
            raise Wrong(f"{path}: parameters has the wrong type: names of columns and of parameters")
        for cells in self.keys.get("settings", {}).values():
            if not isinstance(cells, dict) or any(not isinstance(numbers, dict) for numbers in cells.values()):
                raise Wrong(f"{path}: settings has the wrong type: column: {{ cell: {{ key: number }} }}")
        sizes = self.keys.get("sizes")
        if sizes is not None and not (isinstance(sizes.get("column"), str) and isinstance(sizes.get("bounds"), list)
                                      and all(isinstance(bound, (int, float)) for bound in sizes["bounds"]) and sizes["bounds"] == sorted(sizes["bounds"])):
            raise Wrong(f"{path}: sizes has the wrong type: {{ column: NAME, bounds: [numbers in rising order] }}")
        if len(self.keys.get("fit", {})) > CONSTANTS_MOST:
            raise Wrong(f"{path}: {len(self.keys['fit'])} constants are to be fitted; {CONSTANTS_MOST} at most")

    def fitted(self):
        """The constants that fit.py has found, by key of the topology: those of `fit`, or all of the file that `constants` names."""
        path = os.path.join(self.folder, self.keys.get("constants", "constants.json"))
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)["constants"]
            return {key: found[key] for key in (found if "constants" in self.keys else self.keys.get("fit", {}))}
        except FileNotFoundError as why:
            if "constants" not in self.keys:
                return {}
            raise Wrong(f"{path}: {why.strerror}") from None
        except (OSError, ValueError, KeyError, TypeError) as why:
            raise Wrong(f"{path}: {why!r}; fit.py makes it") from None

    def read_rows(self):
        """The rows, and the line of each."""
        rows, lines = [], []
        try:
            with open(self.rows_path, encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file, strict=True)
                header = reader.fieldnames or []
                for row in reader:
                    rows.append(row)
                    lines.append(reader.line_num)
        except (OSError, csv.Error, UnicodeDecodeError) as why:
            raise Wrong(f"{self.rows_path}: {why}") from None
        if twice := [column for column in header if header.count(column) > 1]:
            raise Wrong(f"{self.rows_path}:1: there are two columns {twice[0]!r}")
        if self.keys["measured"] not in header:
            raise Wrong(f"{self.rows_path}:1: there is no column {self.keys['measured']!r}")
        if not rows:
            raise Wrong(f"{self.rows_path}: there is no row")
        for row, line in zip(rows, lines):
            if None in row or None in row.values():
                raise Wrong(f"{self.rows_path}:{line}: the row has another number of cells than the header")
        return rows, lines

    def read_sizes(self):
        """The size of each row, if the set has groups of sizes."""
        if "sizes" not in self.keys:
            return []
        column, sizes = self.keys["sizes"]["column"], []
        for row, line in zip(self.rows, self.lines):
            try:
                sizes.append(float(row[column]))
            except KeyError:
                raise Wrong(f"{self.rows_path}:1: there is no column {column!r}") from None
            except ValueError:
                raise Wrong(f"{self.rows_path}:{line}: {column} must be a number, not {row[column]!r}") from None
        return sizes

    def seconds_of(self, row, line):
        """The measured time of a row; its unit is what the column's name ends with."""
        column = self.keys["measured"]
        unit = column.rsplit("_", 1)[-1]
        if unit in ("cycle", "cycles"):
            scale = 1e-9 / self.keys["clock_ghz"] if self.keys.get("clock_ghz", 0) > 0 else None
        else:
            scale = SECONDS.get(unit)
        if scale is None:
            raise Wrong(f"{self.rows_path}: {column} has no unit: its name ends with _ps ... _s, or with cycles of clock_ghz")
        try:
            seconds = float(row[column]) * scale
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            raise Wrong(f"{self.rows_path}:{line}: {column} must be a time above 0, not {row[column]!r}")
        return seconds

    def points(self, constants):
        """Each row as a point of a sweep: its cells are parameters of the bench, and choose numbers of the topology."""
        names, settings = self.keys.get("parameters", {}), self.keys.get("settings", {})
        for row in self.rows:
            point, numbers = {}, dict(constants)
            for column, cell in row.items():
                if column in settings:
                    numbers |= settings[column].get(cell, {})
                name = names.get(column, column)
                if column != self.keys["measured"] and name:
                    point[name] = int(cell) if cell.isdecimal() else cell
            yield point | ({"--set": numbers} if numbers else {})

    def size_groups(self):
        """Rows by size: pairs of a title and the numbers of the rows."""
        if not self.sizes:
            return []
        column, bounds = self.keys["sizes"]["column"], [*self.keys["sizes"]["bounds"], math.inf]
        groups, below = [], 0
        for bound in bounds:
            chosen = [i for i, size in enumerate(self.sizes) if below <= size < bound]
            title = f"{column} >= {below:g}" if bound == math.inf else f"{f'{below:g} <= ' if below else ''}{column} < {bound:g}"
            groups += [(title, chosen)] if chosen else []
            below = bound
        return groups


class Simulator:
    """The binary of a set's machine."""

    def __init__(self, one):
        self.set = one
        self.folder = tempfile.TemporaryDirectory(prefix="fidelity.")
        self.path = os.path.join(self.folder.name, one.name)
        words = [word for key, option in (("kernels", "-k"), ("models", "--impl")) for file in one.keys.get(key, [])
                 for word in (option, self.in_folder(file))]
        status, said = self.call(os.path.join(BUILD, "kbgen"), os.path.join(one.folder, one.keys["topology"]), "-o", self.path, *words)
        if status:
            raise Wrong(said)

    def in_folder(self, file):
        name, equals, path = file.rpartition("=")       # of a model, NAME=FILE
        return name + equals + os.path.join(self.set.folder, path)

    def call(self, *words):
        """Runs a program. Returns its exit status and what it says of what went wrong."""
        try:
            ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=os.path.dirname(self.set.rows_path),
                                   env={"KBGEN_CACHE": os.path.join(BUILD, "kbgen.cache")} | os.environ)
        except OSError as why:
            raise Wrong(f"{words[0]}: {why.strerror}; build it first") from None
        return ended.returncode, ended.stderr.strip() or f"{words[0]} ended with {ended.returncode}"

    def times(self, constants):
        """For each row the simulated time and the roofline, both in seconds; None for a row that could not be run."""
        points, answers = (os.path.join(self.folder.name, name) for name in ("points", "answers"))
        with open(points, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(point) + "\n" for point in self.set.points(constants))
        if os.path.exists(answers):
            os.remove(answers)
        status, said = self.call(self.path, "run", self.set.keys["bench"], "--data", "off", "--points", points, "--json", answers)
        if not os.path.exists(answers):
            raise Wrong(self.in_rows(said, points))
        with open(answers, encoding="utf-8") as file:
            times = [self.time_of(json.loads(line)) for line in file]
        if status:
            failed = [line for line, time in zip(self.set.lines, times) if not time]
            print(self.in_rows(said, points), *(f"{self.set.rows_path}:{line}: the row could not be run" for line in failed), sep="\n", file=sys.stderr)
        return times

    def in_rows(self, text, points):
        """A message about points as one about the rows that they were made of."""
        return re.sub(re.escape(points) + r":(\d+):\d+:", lambda at: f"{self.set.rows_path}:{self.set.lines[int(at[1]) - 1]}:", text)

    @staticmethod
    def time_of(answer):
        if answer["status"]:
            return None
        figures = answer["figures"]
        roofline = max((figures[name] for name in ("roofline_ps", "array_bound_ps", "memory_bound_ps") if name in figures), default=0)
        return figures["time_ps"] * 1e-12, roofline * 1e-12


def ranks(values):
    """The rank of each value; equal ones share the mean of theirs."""
    order, out = sorted(range(len(values)), key=values.__getitem__), [0.0] * len(values)
    first = 0
    while first < len(order):
        end = first
        while end < len(order) and values[order[end]] == values[order[first]]:
            end += 1
        for i in order[first:end]:
            out[i] = (first + end - 1) / 2
        first = end
    return out


def correlation(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / spread if spread else None


def errors(got, want):
    """Of times against measured ones: mean absolute error, geometric mean error, signed bias, rank correlation."""
    relative = [a / b - 1 for a, b in zip(got, want)]
    return {"rows": len(got), "mean_absolute": sum(map(abs, relative)) / len(got),
            "geometric_mean": math.exp(sum(abs(math.log(a / b)) for a, b in zip(got, want) if a > 0) / len(got)) - 1,
            "bias": sum(relative) / len(got), "worst": max(relative, key=abs), "rank": correlation(ranks(got), ranks(want))}


def measure(one):
    """All errors of a set."""
    constants, simulator = one.fitted(), Simulator(one)
    runs = {"public figures": simulator.times({})}
    if constants:
        runs[f"{len(constants)} fitted"] = simulator.times(constants)
    good = [i for i in range(len(one.rows)) if all(run[i] for run in runs.values())]
    if not good:
        raise Wrong(f"{one.folder}: no row could be run")
    columns = {"roofline": [time[1] if time else None for time in runs["public figures"]]} \
        | {title: [time and time[0] for time in run] for title, run in runs.items()}
    groups = [("all", good), *((title, [i for i in chosen if i in good]) for title, chosen in one.size_groups())]
    return {
        "set": one.name, "title": one.keys["title"], "constants": constants, "failed": len(one.rows) - len(good),
        "errors": [{"size": title, "of": column} | errors([times[i] for i in chosen], [one.measured[i] for i in chosen])
                   for title, chosen in groups if chosen for column, times in columns.items()],
        "times": [{"measured_ns": one.measured[i] * 1e9} | {column: times[i] and times[i] * 1e9 for column, times in columns.items()}
                  for i in range(len(one.rows))]}


def table(results):
    """The errors as Markdown."""
    lines = ["| set | size | rows | predicted by | mean absolute error | geometric mean | bias | worst | rank correlation |", "|---|---|---|---|---|---|---|---|---|"]
    for result in results:
        for row in result["errors"]:
            rank = "-" if row["rank"] is None else f"{row['rank']:.3f}"
            lines.append(f"| {result['title']} | {row['size']} | {row['rows']} | {row['of']} | {row['mean_absolute']:.1%} | {row['geometric_mean']:.1%} "
                         f"| {row['bias']:+.1%} | {row['worst']:+.1%} | {rank} |".replace("%", " %"))
    return "\n".join(lines) + "\n"


def replace(path, text):
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def main(words):
    rows = os.environ.get("ROWS")
    folders = words or sorted(os.path.join(HERE, name) for name in os.listdir(HERE) if os.path.exists(os.path.join(HERE, name, "rows.csv")))
    try:
        if rows and len(folders) != 1:
            raise Wrong("ROWS=FILE needs one SET=FOLDER, whose rows it replaces")
        results = [measure(Set(folder, rows)) for folder in folders]
    except Wrong as why:
        print(f"fidelity: {why}", file=sys.stderr)
        return 2
    if words:
        print(table(results), end="")
    else:
        replace(os.path.join(HERE, "table.md"), table(results))
        replace(os.path.join(HERE, "table.json"), json.dumps(results, indent=1) + "\n")
        print(table(results), end="")
    return 1 if any(result["failed"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
