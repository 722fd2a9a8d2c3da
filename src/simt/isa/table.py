"""Opcode tables: those of the engine's rows, and TOML files. docs/opcode-tables.md describes the format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from simt import _engine
from simt._engine import MemorySpace, Operation, Unit
from simt.errors import OpcodeTableError
from simt.files import parse_toml, require_regular
from simt.isa.opcodes import opcode_rows

__all__ = ["MemorySpace", "OpcodeTable", "Operation", "Unit", "builtin_tables", "load_table", "table_for"]

_OPCODE = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_MAX_INHERITANCE = 16


@dataclass(frozen=True)
class OpcodeClass:
    """The effect of all opcodes of a class on the machine."""

    unit: Unit
    operation: Operation
    space: MemorySpace
    half_precision: bool


@dataclass(frozen=True)
class OpcodeTable:
    """The opcodes of one architecture.

    opcodes: class of each opcode (its first token: `LDG` for `LDG.E.128`), inherited ones included.
    sm_versions: compute capabilities, times ten, that use this table.
    stand_ins: opcodes whose class stands in for what they do, which is not modelled.
    native: the table as the engine takes it; opcodes of all built-in tables stand in for unknown ones.
    """

    name: str
    sm_versions: tuple[int, ...]
    opcodes: dict[str, OpcodeClass]
    stand_ins: frozenset[str]
    native: _engine.OpcodeTable

    def with_arithmetic(self, opcodes: Iterable[str]) -> OpcodeTable:
        """The table, with those of these opcodes that it lacks as arithmetic: a GPU's special units' own."""
        lacking = sorted(set(opcodes) - self.opcodes.keys())
        if not lacking:
            return self
        more = dict.fromkeys(lacking, _builtin_classes()["integer"])
        return _finish(_Parsed(self.name, self.sm_versions, {}, self.opcodes | more, self.stand_ins))

    def __repr__(self) -> str:
        return f"OpcodeTable({self.name!r}, {len(self.opcodes)} opcodes, sm {list(self.sm_versions)})"


@dataclass(frozen=True)
class _Parsed:
    """A table before the related opcodes of other architectures are added."""

    name: str
    sm_versions: tuple[int, ...]
    classes: dict[str, OpcodeClass]
    opcodes: dict[str, OpcodeClass]
    stand_ins: frozenset[str]


_Enum = TypeVar("_Enum", Unit, Operation, MemorySpace)


def _member(kind: type[_Enum], name: object, path: Path, where: str) -> _Enum:
    members = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", m.name).lower().rstrip("_"): m for m in kind}
    if not isinstance(name, str) or name not in members:
        if kind is Unit and isinstance(name, str):
            raise OpcodeTableError(
                f"{path}: {where} is {name!r}, expected one of {', '.join(sorted(members))}; a unit of your "
                f"own is a section of the GPU's specification, [sm.special_units.{name}], which lists its "
                f"opcodes"
            )
        raise OpcodeTableError(f"{path}: {where} is {name!r}, expected one of {', '.join(sorted(members))}")
    return members[name]


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        require_regular(path)
        return parse_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OpcodeTableError(f"{path}: cannot read this opcode table: {error.strerror}") from error
    except ValueError as error:
        raise OpcodeTableError(f"{path}: not a TOML file: {error}") from error


def _parse_classes(data: object, path: Path) -> dict[str, OpcodeClass]:
    if not isinstance(data, dict):
        raise OpcodeTableError(f"{path}: [classes] must be a table of class names")
    classes = {}
    for name, fields in data.items():
        if not isinstance(fields, dict):
            raise OpcodeTableError(f"{path}: class {name} must be a table with at least `unit`")
        unknown = sorted(set(fields) - {"unit", "operation", "space", "half_precision"})
        if unknown:
            raise OpcodeTableError(
                f"{path}: class {name} has unknown field {unknown[0]!r}, "
                "expected unit, operation, space, half_precision"
            )
        half = fields.get("half_precision", False)
        if not isinstance(half, bool):
            raise OpcodeTableError(
                f"{path}: classes.{name}.half_precision is {half!r}, expected true or false"
            )
        classes[name] = OpcodeClass(
            _member(Unit, fields.get("unit"), path, f"classes.{name}.unit"),
            _member(Operation, fields.get("operation", "arithmetic"), path, f"classes.{name}.operation"),
            _member(MemorySpace, fields.get("space", "none"), path, f"classes.{name}.space"),
            half,
        )
    return classes


@lru_cache(maxsize=1)
def _builtin_classes() -> dict[str, OpcodeClass]:
    return {name: OpcodeClass(*what) for name, what in _engine.opcode_classes().items()}


def _parse(path: Path, depth: int = 0) -> _Parsed:
    if depth > _MAX_INHERITANCE:
        raise OpcodeTableError(f"{path}: `extends` is circular")
    data = _read_toml(path)
    unknown = sorted(set(data) - {"extends", "sm_versions", "stand_ins", "classes", "opcodes"})
    if unknown:
        raise OpcodeTableError(
            f"{path}: unknown key {unknown[0]!r}, expected extends, sm_versions, stand_ins, classes, opcodes"
        )
    base = data.get("extends")
    if base is None:
        classes, opcodes = dict(_builtin_classes()), {}
        inherited: frozenset[str] = frozenset()
    else:
        parent = _base(base, path, depth)
        classes, opcodes = dict(parent.classes), dict(parent.opcodes)
        inherited = parent.stand_ins
    classes.update(_parse_classes(data.get("classes", {}), path))
    versions = data.get("sm_versions", [])
    if not isinstance(versions, list) or not all(isinstance(v, int) and v > 0 for v in versions):
        raise OpcodeTableError(f"{path}: sm_versions is {versions!r}, expected a list such as [80, 86]")
    lists = data.get("opcodes", {})
    if not isinstance(lists, dict):
        raise OpcodeTableError(f"{path}: [opcodes] must map class names to lists of opcodes")
    own: dict[str, str] = {}
    for class_name, names in lists.items():
        if class_name not in classes:
            raise OpcodeTableError(
                f"{path}: opcodes.{class_name} is not a class, expected one of {', '.join(sorted(classes))}"
            )
        if not isinstance(names, list):
            raise OpcodeTableError(f"{path}: opcodes.{class_name} must be a list of opcodes")
        for name in names:
            if not isinstance(name, str) or not _OPCODE.match(name):
                raise OpcodeTableError(
                    f"{path}: opcodes.{class_name} has {name!r}, expected an opcode such as 'LDG'"
                )
            if name in own:
                raise OpcodeTableError(f"{path}: opcode {name} is listed under {own[name]} and {class_name}")
            own[name] = class_name
            opcodes[name] = classes[class_name]
    stand_ins = data.get("stand_ins", [])
    if not isinstance(stand_ins, list) or not all(isinstance(x, str) and x in own for x in stand_ins):
        raise OpcodeTableError(
            f"{path}: stand_ins is {stand_ins!r}, expected a list of opcodes that this file's [opcodes] has"
        )
    return _Parsed(
        path.stem, tuple(versions), classes, opcodes, (inherited - own.keys()) | frozenset(stand_ins)
    )


def _base(base: object, path: Path, depth: int) -> _Parsed:
    if not isinstance(base, str):
        raise OpcodeTableError(f"{path}: extends is {base!r}, expected the name of a table or a file")
    if base.endswith(".toml"):
        return _parse(path.parent / base, depth + 1)
    builtin = _builtins()
    if base not in builtin:
        known = ", ".join(sorted(builtin))
        raise OpcodeTableError(f"{path}: extends is {base!r}, expected one of {known}, or a .toml file")
    return builtin[base]


@lru_cache(maxsize=1)
def _builtins() -> dict[str, _Parsed]:
    """The tables of the engine's rows, oldest architecture first."""
    classes = _builtin_classes()
    tables = {}
    for place, (name, versions) in enumerate(_engine.opcode_generations()):
        present = [(row, row.classes[place]) for row in opcode_rows().values() if row.classes[place]]
        tables[name] = _Parsed(
            name,
            tuple(versions),
            classes,
            {row.name: classes[of] for row, of in present},
            frozenset(row.name for row, _ in present if row.stand_in),
        )
    return tables


def _finish(parsed: _Parsed) -> OpcodeTable:
    native = _engine.OpcodeTable(parsed.name)
    for name, c in parsed.opcodes.items():
        native.add(name, c.unit, c.operation, c.space, c.half_precision)
    for other in reversed(
        _builtins().values()
    ):  # if there are several, the newest architecture's class is used
        for name, c in other.opcodes.items():
            native.add_related(name, c.unit, c.operation, c.space, c.half_precision)
    return OpcodeTable(parsed.name, parsed.sm_versions, dict(parsed.opcodes), parsed.stand_ins, native)


@lru_cache(maxsize=1)
def builtin_tables() -> dict[str, OpcodeTable]:
    """The tables that come with simt, by name, oldest architecture first."""
    return {name: _finish(parsed) for name, parsed in _builtins().items()}


def load_table(path: str | Path) -> OpcodeTable:
    """Reads an opcode table from a TOML file, or the built-in one of that name (`"ampere"`).

    Raises OpcodeTableError naming the file and the key that is wrong.
    """
    if isinstance(path, str) and path in builtin_tables():
        return builtin_tables()[path]
    return _finish(_parse(Path(path)))


@cache
def table_for(sm_version: int) -> tuple[OpcodeTable, str | None]:
    """The table of an SM version (70, 80, ...), and a warning if there is none and the nearest is used."""
    tables = builtin_tables()
    versions = {v: table for table in tables.values() for v in table.sm_versions}
    if sm_version in versions:
        return versions[sm_version], None
    if sm_version <= 0:
        newest = versions[max(versions)]
        return (
            newest,
            f"the trace does not name its SM version; its opcodes are read with the {newest.name} table",
        )
    nearest = min(versions, key=lambda v: (abs(v - sm_version), v))
    table = versions[nearest]
    return table, f"no opcode table for sm_{sm_version}; the nearest, {table.name} (sm_{nearest}), is used"
