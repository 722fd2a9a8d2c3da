"""Policies written in C++: a file is compiled against simt's headers into a library that the engine loads."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from simt import _engine
from simt.cache import cache_directory, used, write_whole
from simt.policy.errors import PolicyError

_INSTALLED = Path(__file__).parents[1] / "include"
HEADERS = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3] / "engine"
"""Where the headers of the policies' interfaces are."""
_FIRST = "timing/policies/policy_library.hpp"
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MOST_BYTES = 1 << 20


def load(source: bytes, file: str) -> dict[tuple[str, str], str]:
    """Registers the policies of a C++ file in the engine: the names that specifications of this process have
    for them, by kind and name.

    source: the file's contents. file: its name, for messages. It is compiled if the cache does not have it.

    Raises PolicyError: there is no compiler, the file does not compile or registers nothing.
    """
    suffix = hashlib.sha256(source).hexdigest()[:12]
    place = _built(source, file)
    try:
        found = _engine.load_policies(str(place), interface(), suffix)
    except _engine.PolicyFault as error:
        raise PolicyError(f"{file}: {error}") from None
    if not found:
        raise PolicyError(
            f"{file}: it registers no policy; expected, for example, "
            "`const Registered<SchedulerPolicy> registered_mine{...}` (docs/policies.md)"
        )
    if wrong := [name for _, name in found if not _NAME.fullmatch(name)]:
        raise PolicyError(f"{file}: found the name {wrong[0]!r}, expected letters, digits and underscores")
    return {(kind, name): f"{name}@{suffix}" for kind, name in found}


@functools.cache
def headers() -> tuple[str, ...]:
    """The headers that a policy is compiled with, sorted."""
    found: set[str] = set()
    left = [_FIRST]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += _INCLUDE.findall((HEADERS / one).read_text())
    return tuple(sorted(found))


@functools.cache
def interface() -> str:
    """Hash of the headers: policies built with others are not loaded."""
    digest = hashlib.sha256()
    for each in headers():
        digest.update(f"{each}\n".encode() + (HEADERS / each).read_bytes())
    return digest.hexdigest()


def compiler() -> str:
    """The C++ compiler: `$CXX`, or the first of c++, g++ and clang++. Raises PolicyError if there is none."""
    named = os.environ.get("CXX", "").split(" ")
    for each in named if named != [""] else ["c++", "g++", "clang++"]:
        if found := shutil.which(each):
            return found
    asked = f"$CXX = {os.environ['CXX']}" if named != [""] else "c++, g++ or clang++"
    raise PolicyError(
        f"policies in C++ need a compiler for C++20, found none ({asked}); install one, for example with: "
        "apt install g++"
    )


def _built(source: bytes, file: str) -> Path:
    """The library of a file, compiled if the cache does not have it."""
    flags = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fvisibility-inlines-hidden"]
    flags += ["-Wall", "-Wextra"]
    if platform.machine() in ("x86_64", "AMD64"):
        flags += ["-mpopcnt", "-msse4.2"]
    identity = [source.hex(), interface(), *flags]
    cached = cache_directory("policies")
    place = cached / f"{hashlib.sha256(repr(identity).encode()).hexdigest()[:40]}.so"
    if place.is_file():
        used(place)
        return place
    if len(source) > _MOST_BYTES:
        raise PolicyError(f"{file}: larger than {_MOST_BYTES:,} bytes; this is not a policy")
    with tempfile.TemporaryDirectory(prefix="simt-") as folder:
        library = Path(folder) / "policy.so"
        command = [compiler(), *flags, f"-I{HEADERS}", f'-DSIMT_POLICY_INTERFACE="{interface()}"']
        command += ["-include", _FIRST, "-x", "c++", "-", "-o", str(library)]
        # From an empty folder: a header beside the file would not be part of the policy's identity.
        lines = f'#line 1 "{file}"\n'.encode()
        done = subprocess.run(command, input=lines + source, cwd=folder, capture_output=True)
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0:
            raise PolicyError(f"{file}: {Path(command[0]).name} cannot compile it:\n{said}")
        write_whole(place, library.read_bytes())
    return place
