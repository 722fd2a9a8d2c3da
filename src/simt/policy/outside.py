"""What specifications call policies that are not part of simt: `my.py:Class`, `my.cpp:name`, or a name."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from simt.policy.errors import PolicyError

if TYPE_CHECKING:
    from simt.policy.python import Policy

_CPP = (".cpp", ".cc", ".cxx")


def resolve(kind: str, text: str) -> str | None:
    """The name in specifications of this process of the policy that a text names: `name@` and part of its
    source's hash, so that equal specifications have equal policies. None if no policy is called so.

    kind: as the engine calls it.

    Raises PolicyError: a file cannot be read or compiled, or has no policy of this kind and name.
    """
    place, colon, name = text.rpartition(":")
    if not colon:
        return _by_name(kind, text)
    if place.endswith(_CPP):
        from simt.policy.store import read

        return _of_library(kind, name, read(Path(place)), place)
    return _of_python(kind, name, place).registered


def located(text: str, folder: Path) -> str:
    """The text with the path of a file in it absolute; relative ones start from this folder."""
    place, colon, name = text.rpartition(":")
    return f"{(folder / place).absolute()}:{name}" if colon and place.endswith((*_CPP, ".py")) else text


def _by_name(kind: str, text: str) -> str | None:
    from simt.policy.store import built, read

    name, _, suffix = text.partition("@")
    for each in built():
        if (each.kind, each.name) == (kind, name):
            found = _of_library(kind, name, read(each.kept), each.file)
            if not suffix or found == text:
                return found
    if suffix:
        raise PolicyError(f"its file is not loaded: name that, such as my.py:{name} or my.cpp:{name}")
    return None


def _of_library(kind: str, name: str, source: bytes, file: str) -> str:
    from simt.policy.library import load

    names = load(source, file)
    if (kind, name) not in names:
        there = ", ".join(f"{each} ({a_kind})" for a_kind, each in names)
        raise PolicyError(f"{file} has no {kind} {name}; it has {there}")
    return names[kind, name]


def _of_python(kind: str, name: str, place: str) -> Policy:
    from simt.policy import python

    compilers: dict[str, Callable[[Any], Policy]] = {
        "scheduler": python.scheduler,
        "replacement": python.replacement,
        "slice_hash": python.slice_hash,
    }
    if kind not in compilers:
        raise PolicyError(f"a {kind} cannot be written in Python, only in C++: my.cpp:{name}")
    module = _module_of(place)
    found = getattr(module, name, None)
    if found is None:
        raise PolicyError(f"{place} has no {name}")
    if not isinstance(found, python.Policy):
        if not callable(found):
            raise PolicyError(f"{place}: {name} is {found!r}, expected a function or a class")
        found = compilers[kind](found)
    if found.kind != kind:
        raise PolicyError(f"{place}: {name} is a {found.kind}, expected a {kind}")
    return found


def _module_of(place: str) -> ModuleType:
    """Of a file, or of `package.module` on Python's path or in the current folder."""
    if not place.endswith(".py"):
        here = os.getcwd()
        sys.path.insert(0, here)
        try:
            return import_module(place)
        except ImportError as error:
            raise PolicyError(
                f"{place}: no such module: {error}; a file is named with its ending, .py or .cpp"
            ) from None
        finally:
            sys.path.remove(here)
    from simt.policy.store import read

    file = Path(place).absolute()
    source = read(file)
    name = f"simt_policy_{hashlib.sha256(str(file).encode() + source).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # where inspect finds sources of classes
    try:
        # Not by importlib, which takes a file that was edited within a second for the one before.
        exec(compile(source, str(file), "exec", dont_inherit=True), vars(module))
    except PolicyError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise PolicyError(f"{place}: cannot be run: {type(error).__name__}: {error}") from error
    return module
