"""Policies that are known by name alone: C++ files that `simt policy build` has kept.

Their folder is `$SIMT_POLICIES`, by default `$XDG_DATA_HOME/simt/policies` or `~/.local/share/simt/policies`.
It holds the sources; libraries are in the cache, and are compiled again for another version of simt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simt import _engine
from simt.cache import write_whole
from simt.policy.errors import PolicyError
from simt.policy.library import load


@dataclass(frozen=True)
class BuiltPolicy:
    """A policy that can be named. file: where it was built from. kept: the copy that is used."""

    kind: str
    name: str
    file: str
    kept: Path


def folder() -> Path:
    """Where the files are."""
    if own := os.environ.get("SIMT_POLICIES"):
        return Path(own)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "simt" / "policies"


def build(path: str | os.PathLike[str]) -> list[BuiltPolicy]:
    """Builds the policies of a C++ file, and keeps the file, so that their names can be used. A file of the
    same place that was built before is replaced.

    Raises PolicyError: the file cannot be read or compiled, registers nothing, or one of its names is taken.
    """
    file = Path(path).absolute()
    if file.suffix not in (".cpp", ".cc", ".cxx"):
        raise PolicyError(f"{path}: expected a C++ file; policies in Python need no building: {path}:Class")
    source = read(file)
    names = load(source, str(path))
    taken = {(each.kind, each.name): each for each in built() if each.file != str(file)}
    for kind, name in names:
        if name in _engine.policies()[kind]:
            raise PolicyError(f"{path}: {name}: simt has a {_words(kind)} of this name; choose another")
        if (kind, name) in taken:
            other = taken[kind, name].file
            raise PolicyError(
                f"{path}: {name}: a {_words(kind)} of this name was built from {other}; choose another, or "
                f"take that away with: simt policy remove {name}"
            )
    for each in {each.kept for each in built() if each.file == str(file)}:
        _forget(each)
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        kept = _free(place, file.name)
        write_whole(kept, source)
        facts = {"file": str(file), "policies": [list(each) for each in names]}
        write_whole(kept.with_name(kept.name + ".json"), json.dumps(facts, indent=2).encode())
    except OSError as error:
        raise PolicyError(f"{place}: cannot be written: {error.strerror}") from None
    return [BuiltPolicy(kind, name, str(file), kept) for kind, name in names]


def remove(name: str) -> list[BuiltPolicy]:
    """Forgets the file that has a policy of this name, and so all policies in it. Raises PolicyError."""
    files = {each.kept for each in built() if each.name == name}
    if not files:
        there = ", ".join(each.name for each in built()) or "none"
        raise PolicyError(f"no policy {name!r} has been built; there is {there}")
    gone = [each for each in built() if each.kept in files]
    for each in files:
        _forget(each)
    return gone


def built() -> list[BuiltPolicy]:
    """All of them, by name."""
    return sorted(_found(), key=lambda each: (each.name, each.kind))


def _found() -> Iterator[BuiltPolicy]:
    for facts in folder().glob("*.json"):
        try:
            table = json.loads(facts.read_text())
            policies = [(str(kind), str(name)) for kind, name in table["policies"]]
            file = str(table["file"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PolicyError(
                f"{facts}: not as `simt policy build` writes it ({error}); delete it, and build again"
            ) from None
        for kind, name in policies:
            yield BuiltPolicy(kind, name, file, facts.with_suffix(""))


def read(file: Path) -> bytes:
    """A file's contents. Raises PolicyError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise PolicyError(f"{file}: cannot be read: {error.strerror}") from None


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _free(place: Path, name: str) -> Path:
    """A name that no other file has."""
    stem, suffix = Path(name).stem, Path(name).suffix
    number = 1
    while (found := place / f"{stem}{f'-{number}' if number > 1 else ''}{suffix}").exists():
        number += 1
    return found


def _forget(kept: Path) -> None:
    kept.with_name(kept.name + ".json").unlink(missing_ok=True)
    kept.unlink(missing_ok=True)
