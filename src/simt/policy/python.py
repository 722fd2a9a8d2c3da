"""Policies written in Python: functions, and classes that keep state.

`scheduler`, `replacement` and `slice_hash` compile them with Numba and register them in the engine; all three
are decorators. What a policy sees, and what it returns, is in their docstrings.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from simt import _engine
from simt.extras import install
from simt.policy.errors import PolicyError

SETTINGS = {
    "scheduler": ("sm.scheduler.policy", "scheduler"),
    "l1_replacement": ("l1.cache.replacement", "replacement"),
    "l2_replacement": ("l2.slice.replacement", "replacement"),
    "slice_hash": ("address_map.hash", "slice_hash"),
}
"""Where each policy given to `simulate` goes: its key, the setting that names it, and its kind."""


def _numbered(name: str, of: Any) -> Any:
    """An enum of the engine, as Numba can compile it."""
    return IntEnum(name, {each.name: each.value for each in of})


Unit = _numbered("Unit", _engine.Unit)
"""Execution units, for comparison with a warp's `unit`: `Unit.Memory`, `Unit.Tensor`, `Unit.Fp32` ..."""
Operation = _numbered("Operation", _engine.Operation)
"""What instructions do, for comparison with a warp's `operation`: `Operation.Load`, `Operation.Exit` ..."""
Space = _numbered("Space", _engine.MemorySpace)
"""What they access, for comparison with a warp's `space`: `Space.Global`, `Space.Shared` ..."""


@dataclass(frozen=True)
class Policy:
    """A compiled policy.

    kind: scheduler, replacement or slice_hash. name: of the function or class.
    identity: SHA-256 of its source and of all that it refers to: the same policy has the same one everywhere.
    registered: its name in specifications of this process.
    """

    kind: str
    name: str
    identity: str
    registered: str
    _compiled: Any = field(repr=False, compare=False)


def scheduler(policy: Callable[..., int] | type) -> Policy:
    """Compiles a warp scheduler: a function, or a class whose objects keep state.

    A function `policy(ready, age, last, cycle)` returns the warp to issue, or -1 for none. `ready[w]` is 1 if
    warp w of the scheduler can issue now; `age[w]` is its order of launch (smaller is older); `last` is the
    warp that issued last.

    A class is instantiated for each scheduler of each SM. Its attributes are numbers and NumPy arrays of
    fixed size; their values in the class are those at the start. `self.sm` and `self.scheduler` are the
    numbers of the SM and of the scheduler in it. Methods, of which only the first is necessary:

    - `choose(self, warps, last, cycle)` returns the warp to issue, or -1 for none. `warps[w]` has `ready`,
      `age`, `resident` (there is a warp), `waits_memory` (for a value from global or local memory) and
      `waits_other` (for a barrier, a fence, copies, the end of its sleep, or it has ended); and of ready
      warps `pc`, `unit`, `operation` and `space` of the next instruction (compare them with `Unit`,
      `Operation`, `Space`), `issued` (instructions so far), `cta` (place of its CTA on the SM) and
      `index_in_cta`, which other warps have as when they were last ready. It is called in each cycle in
      which a warp can issue.
    - `l1_accessed(self, warp, address, pc, hit, write, cycle)`: an access of one of its warps has looked up
      a sector in the SM's L1. `hit` is 1 also where the data is on its way.
    - `l1_evicted(self, warp, line, cycle)`: the line at this address, which an access of this warp had
      brought into the L1, has been replaced.

    A scheduler that issues no warp for 65,536 cycles in which one could is taken for stuck, which a deadlock
    report says. Raises PolicyError.
    """
    return _compiled("scheduler", policy)


def replacement(policy: Callable[..., int] | type) -> Policy:
    """Compiles a cache replacement policy: a function, or a class whose objects keep state.

    A function `policy(evictable, last_access, allocated)` returns the way to evict, or -1 for none. The
    arrays have one entry per way of the set: 1 if it may be evicted, the time of its last access, and that of
    its allocation.

    A class is instantiated for each cache (of an SM, or L2 slice). Its attributes are numbers and NumPy
    arrays of fixed size; those of a class `Line` in it are numbers that each line of the cache has. Their
    values in the classes are those at the start. `self.sets` and `self.ways` are those of the cache.
    `lines[way]` has the attributes of a line of the set, and `last_access` and `allocated`. Methods, of which
    only the first is necessary:

    - `victim(self, lines, evictable, set)` returns the way to evict, or -1 for none. It should change
      nothing, for the access may still be refused.
    - `allocated(self, lines, set, way, address, pc, write, time)`: the way now holds this line address. `pc`
      is that of the instruction in an L1, and 0 elsewhere.
    - `used(self, lines, set, way, address, pc, write, time)`: an access uses the way. In a cache that
      allocates on misses, that includes the access for which it was allocated.

    Raises PolicyError.
    """
    return _compiled("replacement", policy)


def slice_hash(policy: Callable[..., int]) -> Policy:
    """Compiles an L2 slice hash: a function `policy(address, slices)` that returns the L2 slice, 0 to
    slices - 1, of a byte address. Raises PolicyError."""
    return _compiled("slice_hash", policy)


def overrides(policies: Mapping[str, Policy]) -> dict[str, Any]:
    """The settings with which a specification uses the policies. Raises PolicyError."""
    settings: dict[str, Any] = {}
    for key, policy in policies.items():
        if key not in SETTINGS:
            raise PolicyError(f"policies: there is no {key!r}, expected one of {', '.join(SETTINGS)}")
        path, kind = SETTINGS[key]
        if not isinstance(policy, Policy):
            raise PolicyError(
                f"policies[{key!r}]: found {policy!r}, expected a policy decorated with @simt.policy.{kind}"
            )
        if policy.kind != kind:
            raise PolicyError(f"policies[{key!r}]: {policy.name} is a {policy.kind}, expected a {kind}")
        settings[path] = policy.registered
    return settings


# --- compiling ----------------------------------------------------------------------------------------------

# Parameters of functions, and of the methods of classes; the first method is necessary.
_PARAMETERS = {"scheduler": 4, "replacement": 3, "slice_hash": 2}
_METHODS = {
    "scheduler": {"choose": 4, "l1_accessed": 7, "l1_evicted": 4},
    "replacement": {"victim": 4, "allocated": 8, "used": 8},
}
# What the engine adds to the state: engine/timing/policies/compiled_policies.hpp.
_OWN_STATE = {"scheduler": ("sm", "scheduler"), "replacement": ("sets", "ways")}
_OWN_LINE = ("last_access", "allocated")
_WARP = np.dtype(
    [
        *((name, np.int64) for name in ("age", "pc", "issued")),
        *(
            (name, np.uint8)
            for name in ("unit", "operation", "space", "ready", "resident", "waits_memory", "waits_other")
        ),
        *((name, np.uint16) for name in ("cta", "index_in_cta")),
    ],
    align=True,
)
_RAISED = -2


def _compiled(kind: str, given: Callable[..., int] | type) -> Policy:
    name = getattr(given, "__name__", repr(given))
    numba = _numba(name)
    methods = _methods(kind, name, given)
    identity = _identity(given)
    registered = f"{name}@{identity[:12]}"
    if registered in _engine.policies(outside=True)[kind]:
        return Policy(kind, name, identity, registered, None)
    try:
        compiled = _register(numba, kind, name, given, methods, registered)
    except PolicyError:
        raise
    except numba.core.errors.NumbaError as error:
        raise PolicyError(f"policy {name}: Numba cannot compile it: {_reason(error)}") from error
    except Exception as error:  # of Numba's own: a KeyError for an attribute that there is not
        said = f"{type(error).__name__}: {error}"
        raise PolicyError(f"policy {name}: Numba cannot compile it: {said}") from error
    _KEPT[registered] = compiled
    return Policy(kind, name, identity, registered, compiled)


_KEPT: dict[str, Any] = {}
"""The machine code of registered policies, which the engine may call at any time."""


def _numba(name: str) -> Any:
    try:
        import numba
    except ImportError as error:
        raise PolicyError(
            f"policy {name}: Python policies need Numba; install it with: {install('policies')}"
        ) from error
    return numba


def _methods(kind: str, name: str, given: Any) -> dict[str, Callable[..., Any]]:
    """The functions to compile, by name; a function's own is "". Raises PolicyError."""
    if not inspect.isclass(given):
        _check_parameters(name, given, _PARAMETERS[kind])
        return {"": given}
    if kind not in _METHODS:
        raise PolicyError(f"policy {name}: found a class, expected a function for a {kind}")
    expected = _METHODS[kind]
    found: dict[str, Callable[..., Any]] = {
        key: value for key, value in _attributes(given) if isinstance(value, FunctionType)
    }
    if unknown := sorted(found.keys() - expected):
        raise PolicyError(
            f"policy {name}: found a method {unknown[0]}, expected {', '.join(expected)} "
            "(helpers are functions decorated with numba.njit)"
        )
    if (first := next(iter(expected))) not in found:
        raise PolicyError(f"policy {name}: found no method {first}, which a {kind} needs")
    for key, function in found.items():
        _check_parameters(f"{name}.{key}", function, expected[key])
    return found


def _check_parameters(name: str, function: Callable[..., Any], expected: int) -> None:
    count = len(inspect.signature(function).parameters)
    if count != expected:
        raise PolicyError(
            f"policy {name}: found {count} parameters, expected {expected} (see help(simt.policy))"
        )


def _attributes(given: type) -> Iterator[tuple[str, Any]]:
    """Of a class and its bases, but for what every class has."""
    found: dict[str, Any] = {}
    for base in reversed(given.__mro__[:-1]):
        found |= vars(base)
    return ((key, value) for key, value in found.items() if not key.startswith("__"))


def _record(name: str, given: Any, own: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """One record of a class's attributes with their values, behind those that the engine sets."""
    values: dict[str, np.ndarray[Any, Any]] = {key: np.zeros((), kind) for key, kind in own.items()}
    for key, value in _attributes(given) if inspect.isclass(given) else ():
        if isinstance(value, FunctionType) or inspect.isclass(value):
            continue
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or key in own:
            raise PolicyError(
                f"policy {name}: its attribute {key} is {value!r}, expected a number or a NumPy array of "
                f"numbers that is not called {', '.join(own)}"
            )
        # Numba has no arrays of truth values inside records.
        values[key] = array.astype(np.uint8) if array.dtype.kind == "b" else array
    kind = np.dtype([(key, each.dtype, each.shape) for key, each in values.items()], align=True)
    record = np.zeros((), kind)
    for key, each in values.items():
        record[key] = each
    return record


class _Compiled:
    """The functions of a policy, compiled by Numba."""

    def __init__(self, numba: Any, methods: Mapping[str, Callable[..., Any]]) -> None:
        # Indices out of bounds raise an exception: they would overwrite the engine's memory.
        self.functions: dict[str, Any] = {
            key: numba.njit(each, boundscheck=True) for key, each in methods.items()
        }
        self.kept: list[Any] = [self.functions]
        """What must live as long as the process."""
        self._numba = numba

    def address_of(self, key: str, signature: Any, adapter: Callable[..., Any]) -> int:
        """Of what calls a function as the engine does; 0 if the policy has none of this name."""
        found = self.functions
        if key not in found and not (key in ("choose", "victim") and "" in found):
            return 0
        function = self._numba.cfunc(signature)(adapter)
        self.kept.append(function)
        return int(function.address)


def _register(
    numba: Any, kind: str, name: str, given: Any, methods: Mapping[str, Callable[..., Any]], registered: str
) -> list[Any]:
    """Compiles the functions, and registers the policy. Returns what must live as long as the process."""
    compiled = _Compiled(numba, methods)
    text = " ".join((inspect.getdoc(given) or "").partition("\n\n")[0].split())
    if kind == "slice_hash":
        _register_hash(numba, compiled, registered, text)
        return compiled.kept
    state = _record(name, given, dict.fromkeys(_OWN_STATE[kind], np.int32))
    if kind == "scheduler":
        _register_scheduler(numba, compiled, registered, text, state)
    else:
        line = _record(name, getattr(given, "Line", None), dict.fromkeys(_OWN_LINE, np.int64))
        _register_replacement(numba, compiled, registered, text, state, line)
    return compiled.kept


def _register_hash(numba: Any, compiled: _Compiled, registered: str, text: str) -> None:
    i32, i64 = numba.types.int32, numba.types.int64
    hash_of = compiled.functions[""]

    def hashed(address: Any, slices: Any) -> Any:
        try:
            return hash_of(address, slices)
        except Exception:
            return _RAISED

    _engine.add_slice_hash(registered, text, compiled.address_of("", i32(i64, i32), hashed))


def _register_scheduler(
    numba: Any, compiled: _Compiled, registered: str, text: str, state: np.ndarray[Any, Any]
) -> None:
    types, carray = numba.types, numba.carray
    i32, i64 = types.int32, types.int64
    self_ = types.CPointer(numba.from_dtype(state.dtype))
    choose: Any = compiled.functions.get("choose")
    ready_only: Any = compiled.functions.get("")
    accessed: Any = compiled.functions.get("l1_accessed")
    evicted: Any = compiled.functions.get("l1_evicted")

    def choosing(self: Any, warps: Any, count: Any, last: Any, cycle: Any) -> Any:
        try:
            return choose(carray(self, 1)[0], carray(warps, (count,)), last, cycle)
        except Exception:
            return _RAISED

    def by_function(self: Any, warps: Any, count: Any, last: Any, cycle: Any) -> Any:
        try:
            rows = carray(warps, (count,))
            return ready_only(rows.ready, rows.age, last, cycle)
        except Exception:
            return _RAISED

    def accessing(self: Any, warp: Any, address: Any, pc: Any, hit: Any, write: Any, cycle: Any) -> Any:
        try:
            accessed(carray(self, 1)[0], warp, address, pc, hit, write, cycle)
        except Exception:
            return _RAISED
        return 0

    def evicting(self: Any, warp: Any, line: Any, cycle: Any) -> Any:
        try:
            evicted(carray(self, 1)[0], warp, line, cycle)
        except Exception:
            return _RAISED
        return 0

    rows = types.CPointer(numba.from_dtype(_WARP))
    _engine.add_scheduler(
        registered,
        text,
        state.tobytes(),
        choose is not None,
        compiled.address_of("choose", i32(self_, rows, i32, i32, i64), choosing if choose else by_function),
        compiled.address_of("l1_accessed", i32(self_, i32, i64, i64, i32, i32, i64), accessing),
        compiled.address_of("l1_evicted", i32(self_, i32, i64, i64), evicting),
    )


def _register_replacement(
    numba: Any,
    compiled: _Compiled,
    registered: str,
    text: str,
    state: np.ndarray[Any, Any],
    line: np.ndarray[Any, Any],
) -> None:
    types, carray = numba.types, numba.carray
    i32, i64 = types.int32, types.int64
    self_ = types.CPointer(numba.from_dtype(state.dtype))
    lines_ = types.CPointer(numba.from_dtype(line.dtype))
    victim: Any = compiled.functions.get("victim")
    by_times: Any = compiled.functions.get("")

    def evict(self: Any, lines: Any, evictable: Any, ways: Any, set: Any) -> Any:
        try:
            return victim(carray(self, 1)[0], carray(lines, (ways,)), carray(evictable, (ways,)), set)
        except Exception:
            return _RAISED

    def evict_by_function(self: Any, lines: Any, evictable: Any, ways: Any, set: Any) -> Any:
        try:
            rows = carray(lines, (ways,))
            return by_times(carray(evictable, (ways,)), rows.last_access, rows.allocated)
        except Exception:
            return _RAISED

    def event(of: Any) -> Callable[..., Any]:
        def told(
            self: Any, lines: Any, ways: Any, set: Any, way: Any, address: Any, pc: Any, write: Any, time: Any
        ) -> Any:
            try:
                of(carray(self, 1)[0], carray(lines, (ways,)), set, way, address, pc, write, time)
            except Exception:
                return _RAISED
            return 0

        return told

    of_event = i32(self_, lines_, i32, i32, i32, i64, i64, i32, i64)
    _engine.add_replacement(
        registered,
        text,
        state.tobytes(),
        line.tobytes(),
        compiled.address_of(
            "victim",
            i32(self_, lines_, types.CPointer(types.uint8), i32, i32),
            evict if victim else evict_by_function,
        ),
        compiled.address_of("allocated", of_event, event(compiled.functions.get("allocated"))),
        compiled.address_of("used", of_event, event(compiled.functions.get("used"))),
    )


_STAGES = ("Failed in", "During:", "File ", "- ", "^", "<source", "There are")


def _reason(error: Exception) -> str:
    """What Numba says is wrong, without its colours: the lines before and between the names of its stages."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(_STAGES)]
    return "; ".join(said[:3]) or "; ".join(lines[:2]) or "unknown reason"


# --- identity -----------------------------------------------------------------------------------------------


def _identity(given: Callable[..., int] | type) -> str:
    """SHA-256 of the source, and of the values of all global and enclosing variables that it refers to."""
    return hashlib.sha256("\n".join(_described(given, set())).encode()).hexdigest()


def _described(value: Any, seen: set[int]) -> Iterator[str]:
    value = getattr(value, "py_func", value)  # of what numba.njit made
    if id(value) in seen:
        return
    seen.add(id(value))
    if inspect.isclass(value):
        yield f"class {value.__name__}"
        for key, each in _attributes(value):
            yield key
            yield from _described(each, seen)
    elif isinstance(value, FunctionType):
        yield _source_of(value)
        scope = inspect.getclosurevars(value)
        for key, each in sorted({**scope.globals, **scope.nonlocals}.items()):
            yield key
            yield from _described(each, seen)
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__} {getattr(value, '__version__', '')}"
    elif isinstance(value, np.ndarray | np.generic):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, int | float | complex | str | bytes | tuple | type(None)):
        yield repr(value)
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}"


def _source_of(function: FunctionType) -> str:
    try:
        return inspect.cleandoc(inspect.getsource(function))
    except (OSError, TypeError):  # typed at a prompt: no source to read
        code = function.__code__
        return repr((code.co_code, code.co_consts, code.co_names))
