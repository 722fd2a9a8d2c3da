"""The order of dependence that ARCHITECTURE.md states holds for every include and import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE, PACKAGE = ROOT / "engine", ROOT / "src" / "simt"
_TABLE = re.compile(r"^\| (engine|package) \| contents \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_DECLARED = re.compile(r"^[A-Za-z][\w:<>,&* ]*[ &*](\w+)\([^;{}]*\)(?: const)?;", re.MULTILINE)
"""A function outside classes."""
_BESIDE_WHAT_THEY_FIND = {
    *("ptx_table", "find_ptx", "ptx_rows_of", "is_executable"),
    *("opcode_rows", "find_opcode", "opcode_row"),
    "core_traits",
}
"""They find rows of tables, or the traits of a core model, for the rooms above."""
_TOP = {"__init__", "__main__"}
"""Of the package: what offers all of it."""


def order(kind: str) -> list[str]:
    """The entries of a table, in their order."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = next(rows for found, rows in _TABLE.findall(text) if found == kind)
    return [
        name.rstrip("/") for row in rows.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    ]


def imported(node: ast.AST, depth: int) -> Iterator[str]:
    """Modules outside its directory that a module `depth` levels below simt imports when it is loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level in (0, depth):
            module = ".".join(filter(None, ("simt" if child.level else "", child.module)))
            yield from (f"{module}.{alias.name}" for alias in child.names)
        yield from imported(child, depth)


def room(path: str, rooms: list[str]) -> str:
    """The entry that holds a file of the engine: the longest."""
    return max((r for r in rooms if path.startswith(f"{r}/")), key=len, default="")


def test_includes_follow_the_order() -> None:
    rooms, wrong, seen = order("engine"), [], set()
    for path in sorted(ENGINE.rglob("*.?pp")):
        own = room(path.relative_to(ENGINE).as_posix(), rooms)
        assert own, f"{path}: its directory is not in ARCHITECTURE.md"
        seen.add(own)
        for header in _INCLUDE.findall(path.read_text()):
            of = room(header, rooms) if "/" in header else own
            assert of, f"{path}: {header}"
            if rooms.index(of) > rooms.index(own):
                wrong.append(f"{path.relative_to(ENGINE)} includes {header}")
    assert not wrong, "\n".join(wrong)
    assert seen == set(rooms)


def test_a_function_is_defined_in_the_room_of_its_header() -> None:
    """Or else a room would use what is below it, without including it."""
    sources: dict[str, str] = {}
    for path in sorted(ENGINE.rglob("*.cpp")):
        folder = path.parent.relative_to(ENGINE).as_posix()
        sources[folder] = sources.get(folder, "") + path.read_text()
    elsewhere, seen = [], 0
    for path in sorted(ENGINE.rglob("*.hpp")):
        folder = path.parent.relative_to(ENGINE).as_posix()
        for name in _DECLARED.findall(path.read_text()):
            defined = re.compile(rf"^[A-Za-z][^;{{}}()]*\b{name}\([^;{{}}]*\)[^;{{}}]*\{{", re.MULTILINE)
            found = [other for other, text in sources.items() if defined.search(text)]
            seen += 1
            if found and folder not in found and name not in _BESIDE_WHAT_THEY_FIND:
                elsewhere.append(f"{path.relative_to(ENGINE)} declares {name}, which {found} defines")
    assert not elsewhere, "\n".join(elsewhere)
    assert seen > 150


def test_imports_follow_the_order() -> None:
    modules, wrong, seen = order("package"), [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        own = path.relative_to(PACKAGE).parts[0]
        if own.removesuffix(".py") in _TOP or own == "_engine":
            continue
        assert own in modules, f"{path}: not in ARCHITECTURE.md"
        seen.add(own)
        for name in imported(ast.parse(path.read_text()), len(path.relative_to(PACKAGE).parts)):
            parts = name.split(".")
            if parts[0] != "simt" or len(parts) == 1 or parts[1] == "_engine":
                continue
            of = parts[1] if (PACKAGE / parts[1]).is_dir() else f"{parts[1]}.py"
            if of not in modules:  # of the package itself, such as its version
                of = "version.py" if parts[1] == "__version__" else of
                assert own in ("examples", "cli"), f"{path}: {name}"
                continue
            if modules.index(of) > modules.index(own):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong, "\n".join(wrong)
    assert seen == set(modules)
