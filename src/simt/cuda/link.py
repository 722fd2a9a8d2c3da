"""Links several PTX translation units into one, as cuLink and nvJitLink do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

from simt import _engine
from simt.errors import PtxError

from .device_runtime import SYSTEM, calls_in, refuse_launches
from .load import load
from .ptx_module import PtxModule, arch_number, runs_on

_RELOCATABLE = "--relocatable-device-code=true"  # keeps functions that only other units call
_QUIET = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_PREAMBLE = re.compile(r"^[ \t]*\.(?:version|target|address_size)\b[^\n]*", re.MULTILINE)
_VERSION = re.compile(r"^[ \t]*\.version[ \t]+(\d+)\.(\d+)", re.MULTILINE)
_FILE_NUMBER = re.compile(r"((?<![\w$%.])\.(?:file|loc)[ \t]+|\binlined_at[ \t]+)(\d+)")
_EXTERN_FUNCTION = re.compile(r"(?<![\w$%.])\.extern(\s+\.func\s*(?:\([^()]*\)\s*)?([A-Za-z_$%][\w$]*))")
_NAME = re.compile(r"(?<![\w$%.])([A-Za-z_$][\w$]*|%[\w$]+)")


def link(programs: Sequence[str | PathLike[str] | PtxModule], arch: str, **options: Any) -> PtxModule:
    """Links translation units into one module.

    Names that are neither `.visible`, `.weak`, `.common` nor `.extern` stay local to their unit. A `.visible`
    definition takes precedence over `.weak` ones, of which the first is used; of `.common` variables, the
    largest is used.

    Args:
        programs: PTX or CUDA C++, files or text, compiled programs with relocatable device code, or modules.
        arch: the device, such as "sm_90a".
        options: as in `load`.

    Raises:
        PtxError: a name is defined twice, or not at all; both files are named. Otherwise as `load`.
        DynamicParallelismError: a kernel launches kernels or graphs.
    """
    units = []
    for program in programs:
        if isinstance(program, PtxModule):
            units.append(_Unit(program))
            continue
        relocatable = {**options, "options": [*options.get("options", ()), _RELOCATABLE]}
        units += [
            _Unit(module) for module in load(program, arch, **relocatable) if module.has_code or module.text
        ]
    if not units:
        raise PtxError("nothing to link: expected at least one program")
    for unit in units:
        if not runs_on(unit.module.arch, arch):
            raise PtxError(f"{unit.module.name}: PTX for {unit.module.arch} does not run on {arch}")
        refuse_launches(unit.module.name, calls_in(unit.module.text))
    _resolve(units)
    taken = {name for unit in units for name in unit.names}
    defined = {s.name: s.linkage for u in reversed(units) for s in u.symbols if s.defined}
    texts, files = [], 0
    for number, unit in enumerate(units):
        own = {s.name for s in unit.symbols if s.linkage == "internal" and not s.entry}
        others = {name for other in units if other is not unit for name in other.names}
        texts.append(unit.text_with(_renamed(own & others, taken, number), files, defined))
        files += unit.files
    version = max(unit.version for unit in units)
    target = max((unit.module.arch for unit in units), key=arch_number)
    header = f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n"
    first = units[0].module
    return replace(
        first,
        text=header + "\n".join(texts),
        name=" + ".join(dict.fromkeys(unit.module.name for unit in units)),
        arch=target,
        source=first.source if len(units) == 1 else None,
        log="\n".join(unit.module.log for unit in units if unit.module.log),
        linked=len(units) > 1 or first.linked,
        names={name: ptx for unit in units for name, ptx in unit.module.names.items()},
    )


@dataclass(frozen=True)
class _Symbol:
    name: str
    linkage: str
    defined: bool
    entry: bool
    place: str
    """File and line."""


class _Unit:
    """A translation unit and what it declares."""

    def __init__(self, module: PtxModule) -> None:
        self.module = module
        dump = _engine.PtxModule(module.text.encode(), module.name).dump()
        self.files = max((number for number, _ in dump["files"]), default=0)
        self.symbols = [
            _Symbol(f["name"], f["linkage"], f["defined"], f["entry"], f"{module.name}:{f['line']}")
            for f in dump["functions"]
        ] + [
            _Symbol(v["name"], v["linkage"], v["linkage"] != "extern", False, f"{module.name}:{v['line']}")
            for v in dump["variables"]
            if not (v["space"] == "shared" and v["size"] == 0)  # dynamic shared memory
        ]
        self.aliases = {name for name, _ in dump["aliases"]}

    @cached_property
    def names(self) -> set[str]:
        return set(_NAME.findall(_QUIET.sub(" ", self.module.text)))

    @cached_property
    def version(self) -> tuple[int, int]:
        match = _VERSION.search(_QUIET.sub(" ", self.module.text))
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def text_with(self, renamed: dict[str, str], files: int, defined: dict[str, str]) -> str:
        """The text without its head, with names replaced, and source files numbered from `files`.

        defined: linkage of each name that some unit defines. Declarations of functions get it, since ptxas
        takes no `.extern` function that the same text defines.
        """

        def declared(m: re.Match[str]) -> str:
            linkage = defined.get(m[2], "extern")
            return f".{linkage if linkage in ('visible', 'weak') else 'extern'}{m[1]}"

        pieces, place = [], 0
        text = self.module.text
        for quiet in [*_QUIET.finditer(text), None]:
            stop = quiet.start() if quiet else len(text)
            code = _PREAMBLE.sub("", text[place:stop])
            code = _FILE_NUMBER.sub(lambda m: f"{m[1]}{int(m[2]) + files}", code)
            code = _EXTERN_FUNCTION.sub(declared, code)
            if renamed:
                code = _NAME.sub(lambda m: renamed.get(m[1], m[1]), code)
            pieces += [code, quiet[0] if quiet else ""]
            place = quiet.end() if quiet else stop
        return "".join(pieces)


def _renamed(names: set[str], taken: set[str], number: int) -> dict[str, str]:
    result = {}
    for name in sorted(names):
        new = f"{name}__{number}"
        while new in taken:
            new += "_"
        taken.add(new)
        result[name] = new
    return result


def _resolve(units: Sequence[_Unit]) -> None:
    """Checks that every name has one definition."""
    strong: dict[str, _Symbol] = {}
    defined = {name for unit in units for name in unit.aliases} | SYSTEM
    for symbol in (s for unit in units for s in unit.symbols if s.defined):
        defined.add(symbol.name)
        if symbol.linkage == "weak" or (symbol.linkage != "visible" and not symbol.entry):
            continue
        if symbol.name in strong:
            raise PtxError(
                f"`{symbol.name}` is defined twice: {strong[symbol.name].place} and {symbol.place}; "
                "expected one definition, or `.weak` ones"
            )
        strong[symbol.name] = symbol
    for unit in units:
        own = {s.name for s in unit.symbols if s.defined}
        public = {s.name for u in units for s in u.symbols if s.defined and s.linkage != "internal"}
        for symbol in unit.symbols:
            missing = symbol.name not in own | public | unit.aliases | defined & SYSTEM
            if not symbol.defined and missing and not symbol.name.startswith("cuda"):
                hidden = [s.place for u in units for s in u.symbols if s.name == symbol.name and s.defined]
                where = f"; {hidden[0]} has one that is not `.visible`" if hidden else ""
                others = ", ".join(u.module.name for u in units if u is not unit) or "no other file"
                raise PtxError(
                    f"{symbol.place}: `{symbol.name}` is not defined here nor in {others}{where}; "
                    "link the file that defines it"
                )
