"""PTX instructions of one's own: a mnemonic, its types, and a Python function for its value."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from simt import _engine
from simt.errors import InstructionError
from simt.extras import install

_MNEMONIC = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_:]*)*\Z")
_SIGNATURE = re.compile(r"\s*(\w+)\s*\(([\w\s,]*)\)\s*\Z")
_TYPES = {
    "b32": "uint32", "u32": "uint32", "s32": "int32", "f32": "float32",
    "b64": "uint64", "u64": "uint64", "s64": "int64", "f64": "float64",
}  # fmt: skip
_MOST_SOURCES = 3
_LANES = 32
_KEPT: dict[str, list[Any]] = {}
"""Compiled functions by mnemonic, which translated programs may call at any time."""


def uses_own_instructions(ptx: str) -> bool:
    """Whether PTX names an instruction that was defined so, which ptxas does not know."""
    return any(re.search(rf"(?<![\w.%$]){re.escape(mnemonic)}\s", ptx) for mnemonic in _KEPT)


def instruction(mnemonic: str, types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates the function that gives the value of a PTX instruction that PTX does not have.

        @simt.isa.instruction("lerp.f32", "f32(f32, f32, f32)")
        def lerp(a, b, t):
            return a + t * (b - a)

    mnemonic: with all its modifiers; modules that this process loads afterwards may use it, also from `asm`
        in CUDA C++. types: of the result, and of one to three sources, in PTX's names: b32, u32, s32, f32,
        and the same of 64 bits. The function is compiled by Numba, and called for each active lane.

    For timing it is one machine instruction with the mnemonic in capitals, `LERP.F32`: an integer
    instruction, unless the specification has a special unit with this opcode (`[sm.special_units.NAME]`).

    Raises InstructionError: PTX has the mnemonic, types are unknown, or Numba cannot compile the function.
    """
    result, sources = _signature(mnemonic, types)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        found = len(inspect.signature(function).parameters)
        if found != len(sources):
            raise InstructionError(
                f"instruction {mnemonic}: its function has {found} parameters, expected {len(sources)}, "
                f"as in {types!r}"
            )
        compiled = _compiled(mnemonic, function, result, sources)
        try:
            _engine.add_own_instruction(mnemonic, mnemonic.upper(), [result, *sources], compiled.address)
        except ValueError as error:
            raise InstructionError(f"instruction {mnemonic}: {error}") from None
        _KEPT.setdefault(mnemonic, []).append(compiled)
        return function

    return decorate


def _signature(mnemonic: str, types: str) -> tuple[str, list[str]]:
    if not _MNEMONIC.match(mnemonic):
        raise InstructionError(
            f"instruction {mnemonic!r}: expected a name in small letters with modifiers, such as 'lerp.f32'"
        )
    match = _SIGNATURE.match(types)
    names = [] if match is None else [match[1], *(name.strip() for name in match[2].split(","))]
    if not 2 <= len(names) <= 1 + _MOST_SOURCES or not set(names) <= _TYPES.keys():
        raise InstructionError(
            f"instruction {mnemonic}: its types are {types!r}, expected the result and one to "
            f"{_MOST_SOURCES} sources, such as 'f32(f32, f32)', of {', '.join(_TYPES)}"
        )
    return names[0], names[1:]


def _compiled(mnemonic: str, function: Callable[..., Any], result: str, sources: list[str]) -> Any:
    """What the engine calls: the function for each lane of a mask."""
    try:
        import numba
    except ImportError as error:
        raise InstructionError(
            f"instruction {mnemonic}: it needs Numba; install it with: {install('policies')}"
        ) from error
    value = numba.njit(function)
    pointers = [numba.types.CPointer(getattr(numba.types, _TYPES[name])) for name in (result, *sources)]
    unused = [numba.types.voidptr] * (_MOST_SOURCES - len(sources))
    signature = numba.types.int32(*pointers, *unused, numba.types.uint32)
    try:
        return numba.cfunc(signature)(_ADAPTERS[len(sources)](value))
    except numba.core.errors.NumbaError as error:
        reason = str(error).strip().splitlines()
        raise InstructionError(
            f"instruction {mnemonic}: Numba cannot compile its function: {reason[0] if reason else error}"
        ) from error


def _of_one(value: Any) -> Callable[..., int]:
    def run(d: Any, a: Any, _b: Any, _c: Any, mask: Any) -> int:
        try:
            for lane in range(_LANES):
                if mask >> lane & 1:
                    d[lane] = value(a[lane])
        except Exception:
            return 1
        return 0

    return run


def _of_two(value: Any) -> Callable[..., int]:
    def run(d: Any, a: Any, b: Any, _c: Any, mask: Any) -> int:
        try:
            for lane in range(_LANES):
                if mask >> lane & 1:
                    d[lane] = value(a[lane], b[lane])
        except Exception:
            return 1
        return 0

    return run


def _of_three(value: Any) -> Callable[..., int]:
    def run(d: Any, a: Any, b: Any, c: Any, mask: Any) -> int:
        try:
            for lane in range(_LANES):
                if mask >> lane & 1:
                    d[lane] = value(a[lane], b[lane], c[lane])
        except Exception:
            return 1
        return 0

    return run


_ADAPTERS = {1: _of_one, 2: _of_two, 3: _of_three}
