"""Policies written in Python: warp schedulers, cache replacement, L2 slice hashes.

A policy is a plain function that Numba compiles to machine code (`pip install 'simt[policies]'`). The engine
calls it in place of a built-in policy:

    @simt.policy.scheduler
    def oldest(ready, age, last, cycle):
        best = -1
        for w in range(len(ready)):
            if ready[w] and (best < 0 or age[w] < age[best]):
                best = w
        return best

    simt.simulate(path, policies={"scheduler": oldest})

The signatures are as follows. Arrays are NumPy-like and must not be written to.

- `scheduler(ready, age, last, cycle)` returns the warp to issue, or -1 for none. `ready[w]` is 1 if warp w of
  the scheduler can issue now; `age[w]` is its order of launch (smaller is older); `last` is the warp that
  issued last, or -1.
- `replacement(evictable, last_access, allocated)` returns the way to evict. The arrays have one entry per way
  of the set: 1 if it may be evicted, the time of its last access, and the time of its allocation.
- `slice_hash(address, slices)` returns the L2 slice, 0 to slices - 1, of a byte address.

A return value that is out of range, or that names a warp or way that is not eligible, counts as none.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simt.errors import SimtError
from simt.extras import install

SETTINGS = {
    "scheduler": ("sm.scheduler.policy", "scheduler"),
    "l1_replacement": ("l1.cache.replacement", "replacement"),
    "l2_replacement": ("l2.slice.replacement", "replacement"),
    "slice_hash": ("address_map.hash", "slice_hash"),
}
"""Where each policy goes: its key, the setting that must be `custom` for it, and the kind of function."""


class PolicyError(SimtError):
    """A policy cannot be compiled or used."""


@dataclass(frozen=True)
class Policy:
    """A compiled policy function. Keep a reference to it while the engine runs."""

    kind: str
    name: str
    address: int
    identity: str
    """SHA-256 of the function's source: the same policy has the same identity everywhere."""
    _compiled: Any = field(repr=False, compare=False)


def scheduler(function: Callable[..., int]) -> Policy:
    """Compiles a warp scheduler. Raises PolicyError."""
    return _compile("scheduler", function)


def replacement(function: Callable[..., int]) -> Policy:
    """Compiles a cache replacement policy. Raises PolicyError."""
    return _compile("replacement", function)


def slice_hash(function: Callable[..., int]) -> Policy:
    """Compiles an L2 slice hash. Raises PolicyError."""
    return _compile("slice_hash", function)


def overrides(policies: Mapping[str, Policy]) -> dict[str, Any]:
    """The settings with which a specification uses the policies. Raises PolicyError."""
    settings: dict[str, Any] = {}
    for key, policy in policies.items():
        if key not in SETTINGS:
            raise PolicyError(f"policies: there is no {key!r}, expected one of {', '.join(SETTINGS)}")
        path, kind = SETTINGS[key]
        if not isinstance(policy, Policy):
            raise PolicyError(
                f"policies[{key!r}]: found {policy!r}, expected a function decorated with @simt.policy.{kind}"
            )
        if policy.kind != kind:
            raise PolicyError(f"policies[{key!r}]: {policy.name} is a {policy.kind}, expected a {kind}")
        settings[path] = "custom"
    return settings


_PARAMETERS = {"scheduler": 4, "replacement": 3, "slice_hash": 2}


def _compile(kind: str, function: Callable[..., int]) -> Policy:
    name = getattr(function, "__name__", repr(function))
    try:
        import numba as imported
    except ImportError as error:
        raise PolicyError(
            f"policy {name}: Python policies need Numba; install it with: {install('policies')}"
        ) from error
    count = len(inspect.signature(function).parameters)
    if count != _PARAMETERS[kind]:
        raise PolicyError(
            f"policy {name}: found {count} parameters, expected {_PARAMETERS[kind]} (see help(simt.policy))"
        )
    numba: Any = imported
    carray, cfunc, types = numba.carray, numba.cfunc, numba.types
    inner = numba.njit(inline="always")(function)
    flags, times = types.CPointer(types.uint8), types.CPointer(types.uint64)
    i32, u64 = types.int32, types.uint64
    try:
        if kind == "scheduler":

            @cfunc(i32(flags, times, i32, i32, u64))  # type: ignore[untyped-decorator]
            def compiled(ready: Any, age: Any, count: Any, last: Any, cycle: Any) -> Any:
                return inner(carray(ready, (count,)), carray(age, (count,)), last, cycle)

        elif kind == "replacement":

            @cfunc(i32(flags, times, times, i32))  # type: ignore[untyped-decorator]
            def compiled(evictable: Any, last_access: Any, allocated: Any, count: Any) -> Any:
                shape = (count,)
                return inner(carray(evictable, shape), carray(last_access, shape), carray(allocated, shape))

        else:

            @cfunc(i32(u64, i32))  # type: ignore[untyped-decorator]
            def compiled(address: Any, slices: Any) -> Any:
                return inner(address, slices)

    except numba.core.errors.NumbaError as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "unknown reason")
        raise PolicyError(f"policy {name}: Numba cannot compile it: {reason}") from error
    return Policy(kind, name, int(compiled.address), _identity(function), compiled)


def _identity(function: Callable[..., int]) -> str:
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):  # typed at a prompt: no source to read
        code = function.__code__
        text = repr((code.co_code, code.co_consts, code.co_names))
    return hashlib.sha256(text.encode()).hexdigest()
