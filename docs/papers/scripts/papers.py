"""What the scripts of the papers share: parts that are measured, kept as Parquet, and shown on a page.

    python pka.py                    measures every part, and writes the page
    python pka.py table-4 figure-5   only these parts
    python pka.py --page             writes the page from the Parquet that is there
    python pka.py --minutes 3        begins no piece of a part after that much time of the processor

A part's rows are in docs/papers/data/PAPER/PART.parquet, with the date, the commit, the machine and the
processor's time in the file's metadata. The page says them, and names the file's digest; so do the plots, in
their own metadata. Pieces of a part that was interrupted, or had too little time, are kept in build/papers/
until it is finished or what measures it has changed, and a part that is measured again goes on from them.

Time is the processor's, of this process and those that it started: other work on the machine changes it
little, as it does not the wall clock's.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import polars as pl
from matplotlib.figure import Figure

from simt.files import replacing, write_text
from simt.plots import SAME
from simt.validate.whole_programs import engine_hash

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ROOT / "docs" / "papers"
WORK = ROOT / "build" / "papers"
Rows = list[dict[str, Any]]


class NotMeasured(Exception):
    """A piece could not be measured: why."""


@dataclass(frozen=True)
class Part:
    """Something that is measured, and what it shows.

    name: of its Parquet file, and on the command line.
    title: of its section.
    measure: makes the rows. show: the section's text in Markdown, from the rows; it may draw plots.
    minutes: of the processor; after these, no further piece is begun, and the page names those that are
        missing.
    """

    name: str
    title: str
    measure: Callable[[Steps], pl.DataFrame]
    show: Callable[[Section, pl.DataFrame], str]
    minutes: float = 5.0


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    there: what it is. here: what simt gives in its place, with links to pages. part: whose section has it;
    None:
    there is no section, and `here` says where it is found, or why it cannot be had.
    """

    name: str
    there: str
    here: str
    part: str | None = None


@dataclass(frozen=True)
class Paper:
    """A paper and its page."""

    name: str
    title: str
    about: str
    items: Sequence[Item]
    parts: Sequence[Part]
    closing: str = ""

    def data(self, part: str) -> Path:
        return PAPERS / "data" / self.name / f"{part}.parquet"

    def frame(self, part: str) -> pl.DataFrame:
        """The rows of a part that has been measured."""
        return pl.read_parquet(self.data(part))


@dataclass
class Steps:
    """The pieces of a part that is being measured; those finished before an interruption are read.

    until: no piece is begun after this `spent()`. before: processor seconds of the pieces that were read.
    """

    paper: Paper
    part: str
    until: float
    before: float = 0.0
    missing: list[str] = field(default_factory=list)
    _done: dict[str, Rows] = field(default_factory=dict)

    @property
    def _file(self) -> Path:
        return WORK / self.paper.name / f"{self.part}.jsonl"

    @property
    def _stamp(self) -> str:
        """Tells what the rows depend on: the engine, and how they are measured."""
        measured = next(part.measure for part in self.paper.parts if part.name == self.part)
        return f"{engine_hash()} {hashlib.sha256(inspect.getsource(measured).encode()).hexdigest()[:16]}"

    def begin(self) -> None:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        if lines and json.loads(lines[0]) == self._stamp:
            pieces = [json.loads(line) for line in lines[1:]]
            self._done = {key: rows for key, rows, _ in pieces}
            self.before = sum(seconds for _, _, seconds in pieces)
        else:
            write_text(self._file, json.dumps(self._stamp) + "\n")

    def rows(self, key: str, make: Callable[[], Rows]) -> Rows:
        """The rows of one piece, made now unless they are there; none if it cannot be, or if there is no
        time."""
        if key not in self._done:
            if spent() > self.until:
                self.missing.append(key)
                return []
            start = spent()
            try:
                self._done[key] = make()
            except NotMeasured as error:
                self.missing.append(f"{key} ({error})")
                print(f"  {self.part}: {key}: {error}", flush=True)
                return []
            seconds = round(spent() - start, 1)
            with self._file.open("a") as file:
                file.write(json.dumps([key, self._done[key], seconds]) + "\n")
            print(f"  {self.part}: {key}: {seconds} s", flush=True)
        return self._done[key]

    def end(self) -> None:
        if not self.missing:
            self._file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Section:
    """A part while its section is written."""

    paper: Paper
    part: str
    digest: str
    draw: bool

    def plot(self, name: str, about: str, figure: Callable[[], Figure]) -> str:
        """A link to a plot, which is drawn anew unless only the text is wanted."""
        path = PAPERS / "images" / f"{self.paper.name}-{name}.png"
        if self.draw:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary, matplotlib.rc_context(SAME):
                figure().savefig(temporary, format="png", dpi=110, metadata={"Source": self.digest})
        return f"![{about}](images/{path.name})\n"


def measure(paper: Paper, part: Part, minutes: float) -> None:
    """Measures a part and writes its Parquet."""
    load, start, at = os.getloadavg()[0], spent(), commit()
    steps = Steps(paper, part.name, start + 60 * minutes)
    steps.begin()
    frame = part.measure(steps)
    path = paper.data(part.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": at,
        "machine": f"{machine()}, load of the machine before {load:.1f}",
        "minutes": f"{(steps.before + spent() - start) / 60:.1f}",
        "missing": ", ".join(steps.missing),
    }
    with replacing(path) as temporary:
        frame.write_parquet(temporary, metadata=about)
    steps.end()


def spent() -> float:
    """Processor seconds of this process, and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def commit() -> str:
    """The commit of the checkout; with "+" if what is measured has changed since."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    changed = git("status", "--porcelain", "--", "src", "engine", "libcuda", "docs/papers/scripts")
    return git("rev-parse", "--short=8", "HEAD").strip() + ("+" if changed.strip() else "")


def machine() -> str:
    """Processor and number of cores."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def page(paper: Paper, draw: bool = True) -> str:
    """The text of a paper's page, from the Parquet of its parts. draw: plots are drawn, too."""
    script = f"docs/papers/scripts/{paper.name.replace('-', '_')}.py"
    titles = {part.name: part.title for part in paper.parts}
    lines = [f"# {paper.title}", "", f"<!-- Written by {script}: change that, not this. -->", ""]
    lines += [
        paper.about.strip(),
        "",
        f"    make papers PAPERS={paper.name}",
        "",
        "## Tables and figures",
        "",
    ]
    lines += ["| paper | what it is | here | made by |", "|---|---|---|---|"]
    for item in paper.items:
        made = f"[{titles[item.part]}](#{item.part}); `{Path(script).name} {item.part}`" if item.part else ""
        lines.append(f"| {item.name} | {item.there} | {item.here} | {made} |")
    for part in paper.parts:
        path = paper.data(part.name)
        lines += ["", f"## {part.title} {{ #{part.name} }}", ""]
        if not path.exists():
            lines.append(f"Not measured: `python {script} {part.name}` does it.")
            continue
        about, mark = pl.read_parquet_metadata(path), digest(path)
        lines += [part.show(Section(paper, part.name, mark, draw), pl.read_parquet(path)).strip(), ""]
        if about["missing"]:
            lines += [f"Not measured within the time for this part: {about['missing']}.", ""]
        lines.append(
            f"*`{path.relative_to(PAPERS)}` ({mark}): {about['date']}, commit {about['commit']}, "
            f"{about['machine']}; {about['minutes']} minutes of the processor.*"
        )
    if paper.closing:
        lines += ["", paper.closing.strip()]
    return "\n".join(lines) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def percent(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{100 * value:.{digits}f} %"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} x" if value >= 100 else f"{value:.1f} x"


def main(paper: Paper) -> None:
    parser = argparse.ArgumentParser(
        description=f"{paper.title}: measures, and writes docs/papers/{paper.name}.md"
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(part.name for part in paper.parts))
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--minutes", type=float, help="for each part, in place of its own")
    options = parser.parse_args()
    names = [part.name for part in paper.parts]
    if unknown := [name for name in options.parts if name not in names]:
        sys.exit(f"{paper.name} has no part {unknown[0]!r}, but {', '.join(names)}")
    for part in paper.parts:
        if not options.page and (not options.parts or part.name in options.parts):
            print(f"{paper.name}: {part.name}", flush=True)
            measure(paper, part, part.minutes if options.minutes is None else options.minutes)
    write_text(PAPERS / f"{paper.name}.md", page(paper))
    readme = PAPERS / "README.md"
    write_text(readme, with_costs(readme.read_text()))


_COSTS = re.compile(r"(?<=<!-- Minutes, by papers.py. -->\n).*?(?=\n<!-- End. -->)", re.DOTALL)


def with_costs(text: str) -> str:
    """The overview with its table of what each part took."""
    lines, total = [], 0.0
    for file in sorted((PAPERS / "data").glob("*/*.parquet")):
        minutes = float(pl.read_parquet_metadata(file)["minutes"])
        total += minutes
        lines.append([f"[{file.parent.name}]({file.parent.name}.md)", f"`{file.stem}`", f"{minutes:.1f}"])
    return _COSTS.sub(table(["paper", "part", "minutes"], [*lines, ["all", "", f"{total:.0f}"]]), text)
