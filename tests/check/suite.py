"""The pairs of kernels of `simt check`: one with a planted fault, and its mended twin.

A pair is a file below `pairs/`. CUDA C++ and PTX are compiled twice, with and without FAULT, and begin with a
comment; files of Python (Triton, Numba) have a docstring in its place, and a function `run(gpu, fault)` that
returns pairs of values and NumPy's.

    /* What the fault is.
    gpu: h100

    x, sums = integers(512), zeros(4)
    module.reduce[4, 128](x, sums)
    same(sums, x.reshape(4, 128).sum(1))
    */

Behind the sentence come facts: `gpu`, the GPU to run on; `weak`, why checks do not look for it unless asked;
`slow`, why it takes long; `ptx`, why its twin is not run in machine code; `missed`, what the checker cannot
see of the fault; `one_order`, what changes with the order of warps. After an empty line is the
host's part in Python: it launches kernels, and `same` compares the twin's values with NumPy's. It knows
`gpu`, `gpus(n)` (another GPU), `module`, `fault` (whether this is the faulty one) and the names of `HOST`.

Comments mark the lines that a finding may name, with one or more kinds: `fault: KIND` where the fault is,
`other: KIND` at the other access, which may be named in its place, and `also: KIND` for what follows from it.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

import simt
from simt.cuda import compile_cuda

PAIRS = Path(__file__).parent / "pairs"
KINDS = (
    *("race-shared", "race-global", "race-cluster", "race-local", "race-async", "race-launch", "race-weak"),
    *("uninitialised-shared", "uninitialised-global", "uninitialised-local", "uninitialised-cluster"),
    *("barrier-divergent", "barrier-different", "barrier-count", "mask", "mbarrier", "async-unwaited"),
    *("cluster-exit", "cooperative-residency", "deadlock"),
    *("out-of-bounds", "misaligned", "use-after-free", "double-free", "wrong-gpu", "read-only-write"),
    *("host-pointer", "leak-device", "leak-heap"),
)

ELSEWHERE = -1
"""The line of what is in other files only."""
_FACTS = ("gpu", "weak", "slow", "ptx", "missed", "one_order")
_MARK = re.compile(r"(?://|#) (fault|other|also): ([a-z|-]+)")
_DIRECTIVE = re.compile(r"#(ifdef FAULT|ifndef FAULT|else|endif)\b")


@dataclass(frozen=True)
class Mark:
    """A line that a finding may name."""

    line: int
    role: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class Place:
    """What the tests compare of a finding: its kind, and the lines that it names in the pair's file."""

    kind: str
    lines: frozenset[int]


def integers(shape: Any, low: int = -99, high: int = 100) -> np.ndarray:
    """Numbers by chance, the same in each run."""
    return np.random.default_rng(46).integers(low, high, shape).astype(np.int32)


def halves(shape: Any) -> np.ndarray:
    """Whole numbers as f16, whose products are exact."""
    return integers(shape, -8, 9).astype(np.float16)


def zeros(shape: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.zeros(shape, dtype)


HOST: dict[str, Any] = {"np": np, "integers": integers, "halves": halves, "zeros": zeros}


class Pair:
    """One file of the suite."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(PAIRS).with_suffix(""))
        self.text = path.read_text()
        begin, end = ('"""', '"""') if path.suffix == ".py" else ("/* ", "*/")
        head, _, _ = self.text.partition(begin)[2].partition(end)
        about, _, self.host = head.partition("\n\n")
        found = re.findall(rf"^({'|'.join(_FACTS)}): (.*)", about, re.M)
        self.facts = dict(found)
        self.gpu = self.facts.get("gpu", "a100")

    @cached_property
    def marks(self) -> list[Mark]:
        return [
            Mark(number, role, frozenset(kinds.split("|")))
            for number, line in enumerate(self.text.splitlines(), 1)
            for role, kinds in _MARK.findall(line)
        ]

    @property
    def kinds(self) -> frozenset[str]:
        """What the fault may be called."""
        return frozenset().union(*(mark.kinds for mark in self.marks if mark.role == "fault"))

    def place(self, finding: Any) -> Place:
        """What the tests compare of a `simt.check.Finding`."""
        named = [x for x in (finding, finding.first, finding.second) if x is not None and x.file]
        own = {x.line for x in named if Path(x.file).name == self.path.name and x.line}
        lines = own or {ELSEWHERE for _ in named}  # one of the two may be in a header of a library
        return Place(finding.kind, frozenset(lines))

    def allows(self, place: Place) -> bool:
        """Whether all lines of a finding are marked with its kind. One of the host's part may name none."""
        marked = {mark.line for mark in self.marks if place.kind in mark.kinds}
        return place.lines <= marked and bool(place.lines or min(marked, default=0) <= self.host_end)

    def names_the_fault(self, place: Place) -> bool:
        return place.kind in self.kinds and self.allows(place)

    @cached_property
    def host_end(self) -> int:
        """The last line of the host's part."""
        return self.text[: self.text.index(self.host) + len(self.host)].count("\n")

    def __repr__(self) -> str:
        return self.name

    def source(self, fault: bool) -> str:
        """The text of a PTX file for one of the two; others are left as empty lines."""
        lines, keep = [], [True]
        for line in self.text.splitlines():
            directive = _DIRECTIVE.match(line)
            if directive is None:
                lines.append(line if all(keep) else "")
                continue
            what = directive.group(1)
            if what == "else":
                keep[-1] = not keep[-1]
            elif what == "endif":
                keep.pop()
            else:
                keep.append(fault == (what == "ifdef FAULT"))
            lines.append("")
        return "\n".join(lines) + "\n"

    def load(self, gpu: simt.GPU, fault: bool, reversed_warps: bool = False) -> Any:
        """The module of one of the two; None if the file is Python.

        reversed_warps: the last warp of a CTA has the role of the first; of CUDA C++ only.
        """
        if self.path.suffix == ".py":
            return None
        if self.path.suffix == ".ptx":
            return gpu.load(self.source(fault).encode(), name=self.path.name)
        options = ["-DFAULT"] * fault + ["--pre-include=order.cuh"] * reversed_warps
        return gpu.load(
            compile_cuda(self.text, name=str(self.path), arch=gpu.arch, include=[str(PAIRS)], options=options)
        )

    @cached_property
    def _code(self) -> CodeType:
        first = self.text[: self.text.index(self.host)].count("\n")
        return compile("\n" * first + self.host, str(self.path), "exec")

    def run(self, make: Callable[[], simt.GPU], fault: bool, reversed_warps: bool = False) -> simt.GPU:
        """Runs one of the two; the GPU is in the state at its end.

        make: a GPU, called anew for each that the program uses. Raises what the program raises.
        """
        gpu = make()
        others: dict[int, simt.GPU] = {}

        def same(got: Any, expected: Any) -> None:
            if not fault:
                got = got if isinstance(got, np.ndarray) else got.numpy()
                np.testing.assert_array_equal(got, expected)

        if self.path.suffix == ".py":
            spec = importlib.util.spec_from_file_location(f"pair_{self.path.stem}", self.path)
            assert spec is not None and spec.loader is not None
            program = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(program)
            for got, expected in program.run(gpu, fault):
                same(got, expected)
            return gpu
        known = {
            **HOST,
            "gpu": gpu,
            "gpus": lambda n: others.setdefault(n, make()),
            "module": self.load(gpu, fault, reversed_warps),
            "fault": fault,
            "same": same,
        }
        exec(self._code, known)  # the file is a test
        gpu.synchronize()
        return gpu


def pairs() -> Iterator[Pair]:
    """All of them, in the order of their names."""
    for path in sorted(PAIRS.rglob("*")):
        if path.suffix in (".cu", ".ptx", ".py"):
            yield Pair(path)
