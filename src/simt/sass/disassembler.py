"""Instructions of a cubin, decoded by NVIDIA's nvdisasm, which a wheel brings; kept in the cache by
content."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from simt._engine import is_library
from simt.cache import cache_directory, used, write_whole
from simt.errors import SassError, ToolkitError
from simt.extras import install
from simt.sass.control import Control
from simt.sass.cubin import INSTRUCTION_BYTES, Cubin

_CACHE_VERSION = 5
# Turing's instructions are Volta's and more, in the same encoding, which nvdisasm of CUDA 13 does not decode
# under Volta's name. That it reads them rightly is shown by what they compute: tests/sass/test_volta.py.
_VOLTA, _TURING = ("sm_70", "sm_72"), "sm_75"
_TIME_LIMIT = 300  # seconds
_LINE = re.compile(r'^\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_SECTION = re.compile(r"^\s*\.section\s+\.text\.(?P<name>[^,\s]+)")
_LINES_IN_JSON = (13, 5)  # from this release on, where the code has any
_ADDRESS = re.compile(r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s")


@dataclass(frozen=True)
class Instruction:
    """address: in the kernel's code. predicate: such as "@!P0", or empty. operands: as text, in order. low,
    high: its 128 bits. file, line: of its source; "" and 0 if that is not known.
    """

    address: int
    predicate: str
    opcode: str
    operands: tuple[str, ...]
    low: int
    high: int
    file: str = ""
    line: int = 0

    @cached_property
    def control(self) -> Control:
        return Control.of(self.high)

    @property
    def text(self) -> str:
        """As nvdisasm writes it."""
        operands = " " + ", ".join(self.operands) if self.operands else ""
        return f"{self.predicate + ' ' if self.predicate else ''}{self.opcode}{operands}"


def disassemble(cubin: Cubin) -> dict[str, list[Instruction]]:
    """The instructions of each kernel, its functions included; those of an assembled program as they were
    given.

    Raises ToolkitError if nvdisasm is not installed, SassError if it does not know the architecture or
    refuses the file.
    """
    if cubin.listing is not None:
        return {kernel: list(code) for kernel, code in cubin.listing.items()}
    tool, name, data = _readable(cubin)
    identity = b"%d %s " % (_CACHE_VERSION, _version(tool).encode()) + cubin.data
    place = cache_directory("sass") / f"{hashlib.sha256(identity).hexdigest()[:40]}.json"
    kept = _read(place)
    if kept is None:
        kept = _decoded(tool, name, data)
        write_whole(place, json.dumps(kept).encode())
    else:
        used(place)
    try:
        return {kernel.name: list(_instructions(kept[kernel.name], kernel.words)) for kernel in cubin.kernels}
    except (KeyError, ValueError) as error:
        raise SassError(f"{cubin.name}: nvdisasm's output does not fit the code: {error!r}") from None


def _instructions(rows: list[list[Any]], words: list[tuple[int, int]]) -> Iterator[Instruction]:
    for i, ((predicate, opcode, operands, file, line), (low, high)) in enumerate(
        zip(rows, words, strict=True)
    ):
        yield Instruction(i * INSTRUCTION_BYTES, predicate, opcode, tuple(operands), low, high, file, line)


def _decoded(tool: Path, name: str, data: bytes) -> dict[str, list[list[Any]]]:
    with tempfile.TemporaryDirectory(prefix="simt-") as folder:
        file = Path(folder) / "code.cubin"
        file.write_bytes(data)
        wanted = ["-g"] if b".debug_line" in data else []
        text = _run(tool, name, "-json", *wanted, str(file))
        try:
            _, sections, *tables = json.loads(text)
            lines: dict[tuple[str, int], tuple[str, int]] = {}
            if tables:
                lines = _lines_of_json(sections, tables[0])
            inlined = any(is_library(source) for source, _ in set(lines.values()))
            if inlined or (wanted and _release(tool) < _LINES_IN_JSON):
                lines = _lines(_run(tool, name, "-gi", "-c", str(file)))
            return {
                section["function-name"]: [
                    [
                        each.get("predicate", ""),
                        each["opcode"],
                        split_operands(each.get("operands", ""), each["opcode"]),
                        *lines.get((section["function-name"], i * INSTRUCTION_BYTES), ("", 0)),
                    ]
                    for i, each in enumerate(section["sass-instructions"])
                ]
                for section in sections
            }
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise SassError(f"{name}: nvdisasm's output cannot be read: {error!r}") from None


def split_operands(text: str, opcode: str = "") -> list[str]:
    """Splits at the commas outside brackets; sm_80 has none between the addresses of LDGSTS, and none, or one
    in the wrong place, between the register of a load and its descriptor (R3desc[UR4], R3desc,[UR4]). Some
    R2P lack the PR that all are printed with."""
    found, depth, start = [], 0, 0
    if opcode == "R2P" and text.startswith("R"):
        text = f"PR, {text}"
    text = re.sub(r"^(\[[^]]*\])\[", r"\1, [", text)
    text = re.sub(r"(?<=[\dZT])(g?desc),?\[", r", \1[", text)
    text = re.sub(r"^(g?desc),\[", r"\1[", text)
    text = re.sub(r"^(U?R(?:\d+|Z)(?:\.\w+)*)\[", r"\1, [", text)
    for i, c in enumerate(text):
        if c in "[{(":
            depth += 1
        elif c in "]})":
            depth -= 1
        elif c == "," and not depth:
            found.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*found, last] if last else found


def _lines_of_json(sections: list[Any], table: Any) -> dict[tuple[str, int], tuple[str, int]]:
    """File and line by kernel and address, from nvdisasm's JSON."""
    folders = table["directories"]
    files = [str(Path(folders[each["dir-idx"]]) / each["file"]) for each in table["files"]]
    found = {}
    for section in sections:
        place = ("", 0)
        for i, each in enumerate(section["sass-instructions"]):
            if "source-line" in each:
                place = (files[each["source-file-id"]], each["source-line"])
            found[section["function-name"], i * INSTRUCTION_BYTES] = place
    return found


def _lines(text: str) -> dict[tuple[str, int], tuple[str, int]]:
    """File and line by kernel and address, from the comments of `nvdisasm -gi`: the innermost place that is
    not of a library, if there is one.
    """
    found = {}
    kernel, places = "", [("", 0)]
    above = False  # whether the row before was a place, too
    for row in text.split("\n"):
        if match := _SECTION.match(row):
            kernel, places = match["name"].strip('"'), [("", 0)]
        elif match := _LINE.match(row):
            places = [*(places if above else ()), (match["file"], int(match["line"]))]
        elif match := _ADDRESS.match(row):
            own = (place for place in places if not is_library(place[0]))
            found[kernel, int(match["address"], 16)] = next(own, places[0])
        above = _LINE.match(row) is not None
    return found


def _run(tool: Path, name: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [tool, *arguments], capture_output=True, text=True, errors="replace", timeout=_TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        raise SassError(f"{name}: nvdisasm did not end in {_TIME_LIMIT} s") from None
    if done.returncode < 0:
        raise SassError(f"{name}: nvdisasm crashed ({signal.Signals(-done.returncode).name})")
    if done.returncode != 0:
        raise SassError(f"{name}: nvdisasm refuses it: {done.stderr.strip() or done.stdout.strip()[:400]}")
    return done.stdout


def is_installed() -> bool:
    """Whether there is an nvdisasm."""
    return bool(_tools(tuple(sys.path)))


def _readable(cubin: Cubin) -> tuple[Path, str, bytes]:
    """An nvdisasm that knows the architecture, the file's name for messages, and what it is to be given."""
    tools = _tools(tuple(sys.path))
    if not tools:
        raise ToolkitError(f"nvdisasm, which decodes machine code, is not installed: {install('cuda')}")
    for tool in tools:
        if cubin.arch in _architectures(tool):
            return tool, cubin.name, cubin.data
        if cubin.arch in _VOLTA and _TURING in _architectures(tool):
            read_as = f"{cubin.name} ({cubin.arch}, read as {_TURING})"
            return tool, read_as, cubin.relabelled(int(_TURING[3:]))
    raise SassError(
        f"{cubin.name}: machine code for {cubin.arch}, which the installed nvdisasm does not know; "
        "wheels of CUDA 13 know sm_75 and later, which includes what sm_70 and sm_72 have"
    )


@lru_cache(maxsize=4)
def _tools(search_path: tuple[str, ...]) -> tuple[Path, ...]:
    """From NVIDIA's wheels, then Triton's."""
    folders = ("nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin")
    found = [Path(entry or ".") / folder / "nvdisasm" for folder in folders for entry in search_path]
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin is not None:
        found.append(Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "nvdisasm")
    return tuple(path for path in dict.fromkeys(found) if path.is_file())


@lru_cache(maxsize=8)
def _version(tool: Path) -> str:
    return _run(tool, str(tool), "--version")


def _release(tool: Path) -> tuple[int, ...]:
    found = re.search(r"release (\d+)\.(\d+)", _version(tool))
    return tuple(map(int, found.groups())) if found else (0, 0)


@lru_cache(maxsize=8)
def _architectures(tool: Path) -> frozenset[str]:
    names = re.findall(r"'SM(\d+[af]?)'", _run(tool, str(tool), "--help"))
    return frozenset(f"sm_{name}" for name in names)


def _read(place: Path) -> dict[str, list[list[Any]]] | None:
    """What is cached; None if there is nothing, or it is damaged."""
    try:
        found = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
