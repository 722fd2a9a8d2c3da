"""Instructions of the host that simt's main work takes, against those of an earlier commit.

python benchmarks/bench.py [--record] [BENCHMARK ...]

callgrind counts them, with misses of a core's caches (32 kB of first-level data cache, 1 MB of last-level
cache): unlike times, they do not depend on what else the machine does. history.csv has those of earlier
commits. A benchmark fails if it takes 3 % more instructions than in its latest row of the same compiler,
C library and Python. Without valgrind, or without such a row, nothing is compared, and the output says so.
--record appends the figures to history.csv, for the commit that is checked out.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HISTORY = Path(__file__).with_name("history.csv")
FIELDS = ("commit", "toolchain", "benchmark", "instructions", "l1_misses", "ll_misses")
MOST = 1.03
"""Times the instructions of the earlier commit; counts of one build repeat within 0.2 %."""
CALLGRIND = (
    "valgrind", "--tool=callgrind", "--cache-sim=yes", "--D1=32768,8,64", "--LL=1048576,16,64",
    "--callgrind-out-file=counts", "--instr-atstart=no",
)  # fmt: skip
MARKS = """
#include <valgrind/callgrind.h>
extern "C" void begin() { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
extern "C" void end(const char* name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
"""Only what is between the two is counted. CALLGRIND_DUMP_STATS_AT writes `name` into the file."""


@dataclass(frozen=True)
class Counts:
    """What callgrind counted; misses of the first-level data cache and of the last level."""

    instructions: int
    l1_misses: int
    ll_misses: int


def compiler() -> str:
    return os.environ.get("CXX", "c++")


def toolchain() -> str:
    """What decides the counts, beside the sources."""
    command = [compiler(), "-dumpfullversion", "-dumpversion"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    libc = "-".join(platform.libc_ver())
    return f"{Path(compiler()).name}-{version} {libc} python-{platform.python_version()} {platform.machine()}"


def read_counts(file: Path) -> Counts:
    """The totals of a file that callgrind wrote."""
    text = file.read_text()
    events = re.findall(r"^events: (.+)$", text, re.MULTILINE)[-1].split()
    totals = re.findall(r"^(?:totals|summary): (.+)$", text, re.MULTILINE)[-1].split()
    of = dict(zip(events, map(int, totals), strict=False))  # zeros at the end are left out
    return Counts(
        of.get("Ir", 0),
        sum(of.get(e, 0) for e in ("D1mr", "D1mw")),
        sum(of.get(e, 0) for e in ("ILmr", "DLmr", "DLmw")),
    )


def count(names: list[str]) -> dict[str, Counts]:
    """Counts of the benchmarks, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks.so"
        command = [compiler(), "-shared", "-fPIC", "-x", "c++", "-", "-o", str(marks)]
        subprocess.run(command, input=MARKS, text=True, check=True)
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        counted = {}
        for name in names:
            command = [sys.executable, __file__, "--work", str(marks), name]
            for counter in ((), CALLGRIND):  # the first writes compiled Python, traces and caches
                done = subprocess.run(
                    [*counter, *command], cwd=folder, env=environment, capture_output=True, text=True
                )
                if done.returncode:
                    sys.exit(f"{name} failed:\n{done.stdout}{done.stderr}")
            counted[name] = read_counts(Path(folder) / "counts.1")
    return counted


def work(marks: str, name: str) -> None:
    """In the counted process: runs a case, whose set-up is not counted."""
    from cases import CASES

    mark = ctypes.CDLL(marks)
    case = CASES[name]()
    next(case)
    mark.begin()
    next(case, None)
    mark.end(name.encode())


def latest(rows: list[dict[str, str]], tools: str) -> dict[str, int]:
    """Instructions of each benchmark in its latest row of a toolchain."""
    return {row["benchmark"]: int(row["instructions"]) for row in rows if row["toolchain"] == tools}


def compare(counted: dict[str, Counts], before: dict[str, int]) -> list[str]:
    """Prints a line for each benchmark, in millions; returns those that take too many instructions."""
    slower = []
    print(f"{'benchmark':28} {'instructions':>14} {'before':>9}  {'change':>7} {'L1 misses':>10} {'LL':>8}")
    for name, counts in counted.items():
        then = before.get(name)
        change = f"{100 * (counts.instructions / then - 1):+6.2f}%" if then else "      -"
        print(
            f"{name:28} {counts.instructions / 1e6:14.1f} {then / 1e6 if then else 0:9.1f}  {change:>7} "
            f"{counts.l1_misses / 1e6:10.2f} {counts.ll_misses / 1e6:8.2f}"
        )
        if then and counts.instructions > MOST * then:
            slower.append(name)
    return slower


def main() -> int:
    from cases import CASES

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK")
    arguments = parser.parse_args()
    unknown = set(arguments.benchmarks) - set(CASES)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: expected any of {', '.join(CASES)}")
    if shutil.which("valgrind") is None:
        print("benchmarks: skipped: valgrind, which counts instructions, is not on the PATH")
        return 0
    tools = toolchain()
    with HISTORY.open() as file:
        rows = list(csv.DictReader(file))
    counted = count(arguments.benchmarks or list(CASES))
    before = latest(rows, tools)
    if not before:
        print(f"benchmarks: nothing to compare with: {HISTORY.name} has no row of {tools}")
    slower = compare(counted, before)
    if arguments.record:
        commit = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"],
            cwd=HISTORY.parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        with HISTORY.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            for name, c in counted.items():
                writer.writerow([commit, tools, name, c.instructions, c.l1_misses, c.ll_misses])
    for name in slower:
        print(
            f"{name}: more than {100 * (MOST - 1):.0f}% more instructions than in {HISTORY.name}",
            file=sys.stderr,
        )
    return 1 if slower else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
    else:
        sys.exit(main())
