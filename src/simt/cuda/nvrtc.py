"""CUDA C++ to PTX with NVRTC, from its wheel: no GPU, driver or CUDA installation."""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from simt.cache import cache_directory, write_whole
from simt.errors import CompileError, ToolkitError

from .headers import NO_HOST, PRELUDE, STANDARD_LIBRARY, standard_headers
from .host_code import Source, has_host_code, instances, marking_macros
from .ptx_module import PtxModule, arch_number
from .toolkit import INSTALL, Toolkit, need_nvrtc

_CACHE_VERSION = 1
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")?', re.MULTILINE)
_ERROR = re.compile(r"^(.+?)\((\d+)\): (?:catastrophic )?error\b", re.MULTILINE)
_MISSING = re.compile(r"cannot open source file")
_NO_STD_MEMBER = 'namespace "std" has no member'
_MOST_ATTEMPTS = 40
"""Compilations of one source: each finds further host code by the errors in it."""
_NOWHERE = "/simt.nowhere"
"""Folder that NVRTC is told the source is in, lest it look for headers in the current one."""
_QUIET = "--diag-suppress=47"  # libcu++ defines INFINITY anew
_DEPRECATED = re.compile(r"^nvrtc: warning: Architectures prior to .* are deprecated.*\n?", re.MULTILINE)
_ADVICE = {
    "host functions are not allowed": "mark what kernels call with `__device__`, "
    "or pass options=['--device-as-default-execution-space']",
    "cannot open source file": "pass the folder of your own headers as include=[...]; "
    f"CUDA's own headers come with {INSTALL}",
}


def compile_cuda(
    source: str,
    *,
    name: str = "kernel.cu",
    arch: str = "sm_90",
    kernels: Sequence[str] = (),
    options: Sequence[str] = (),
    include: Sequence[str | PathLike[str]] = (),
    defines: Mapping[str, str | int] | None = None,
    debug_lines: bool = True,
    fmad: bool = True,
) -> PtxModule:
    """Compiles CUDA C++ (C++17 unless an option says otherwise) to PTX.

    Compilations with the same source, options and headers are read from the cache.

    Args:
        name: the source's name in messages and line information; `#include "..."` does not search there.
        arch: target; "sm_90a" has features specific to Hopper (wgmma, tensor maps), "sm_90" does not.
        kernels: C++ name expressions, such as "f<float>" or "&space::table", that are to be compiled and
            can then be asked for by that name.
        options: further options of NVRTC, such as "--use_fast_math".
        include: folders of headers.
        defines: macros and their values.
        debug_lines: keep the source line of each instruction.
        fmad: contract products and sums to fma, as with nvcc's `--fmad`.

    Raises:
        CompileError: the source does not compile; the message holds NVRTC's log.
        ToolkitError: NVRTC is not installed, or does not know the target.
    """
    settings = {
        "options": options,
        "include": include,
        "defines": defines,
        "debug_lines": debug_lines,
        "fmad": fmad,
    }
    toolkit = _toolkit_for(arch)
    if "\0" in source:
        raise CompileError(f"{name}: the source holds a NUL character at {source.index(chr(0))}")
    number, letter = arch_number(arch)
    folders = [Path(folder).resolve() for folder in include]
    arguments = [f"--gpu-architecture=compute_{number}{letter}", _QUIET, f"--pre-include={PRELUDE}"]
    arguments += [f"-I{folder}" for folder in (*folders, *toolkit.include)]
    if not any(option.startswith(("--std", "-std")) for option in options):
        arguments.append("--std=c++17")
    if debug_lines:
        arguments.append("--generate-line-info")
    if not fmad:
        arguments.append("--fmad=false")
    arguments += [f"-D{macro}={value}" for macro, value in (defines or {}).items()]
    arguments += options

    own = None if _brings_headers(options) else _own_headers(source, folders)
    place = None
    if own is not None:
        identity = [
            _CACHE_VERSION,
            toolkit.versions,
            source,
            name,
            arguments,
            list(kernels),
            own,
            standard_headers(),
        ]
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
        place = cache_directory("ptx") / f"{digest[:40]}.json"
        if (kept := _read(place)) is not None:
            text, log, names = kept
            return PtxModule(text, name, arch, source, log, names, settings)

    text, log, names = _compile_device_code(toolkit, source, name, arch, arguments, kernels, folders)
    if place is not None:
        write_whole(place, json.dumps([text, log, names]).encode())
    return PtxModule(text, name, arch, source, log, names, settings)


def _toolkit_for(arch: str) -> Toolkit:
    number, _ = arch_number(arch)
    tried = []
    for toolkit in need_nvrtc():
        library = _library(toolkit)
        if number in library.archs:
            return toolkit
        tried.append(f"NVRTC {library.version} knows {', '.join(f'sm_{known}' for known in library.archs)}")
    raise ToolkitError(f"no installed NVRTC compiles for {arch}: {'; '.join(tried)}")


_Compiled = tuple[str, str, dict[str, str]]


def _compile_device_code(
    toolkit: Toolkit,
    source: str,
    name: str,
    arch: str,
    arguments: Sequence[str],
    kernels: Sequence[str],
    folders: Sequence[Path],
) -> _Compiled:
    """Compiles a source as it is, or where that fails without its host code."""
    failure = None
    if not has_host_code(source):
        try:
            return _compile(toolkit, source, name, arch, arguments, kernels)
        except CompileError as error:
            failure = error
    headers = dict(_included(source, folders))
    marks = marking_macros([source, *(text for text, _ in headers.values())])
    files = {name: Source(source, marks)}
    files |= {str(path): Source(text, marks) for text, path in headers.values()}
    if failure is not None and all(file.device_text == file.text for file in files.values()):
        raise failure
    if not any(d.kind == "device" for file in files.values() for d in file.declarations):
        raise failure or CompileError(
            f"{name}: host code only: nothing is marked `__global__`, `__device__` or `__constant__`"
        )
    # What is not marked, or only for the host, is either used by kernels or never called.
    arguments = [*arguments, "--device-as-default-execution-space", f"--pre-include={NO_HOST}"]
    launched = [instance for instance in instances(files.values()) if instance not in kernels]
    for _ in range(_MOST_ATTEMPTS):
        own = {
            title: f'#line 1 "{path}"\n{files[str(path)].device_text}' for title, (_, path) in headers.items()
        }
        text = files[name].device_text
        try:
            return _compile(toolkit, text, name, arch, arguments, [*kernels, *launched], own)
        except CompileError as error:
            failure = error
        if _NO_STD_MEMBER in str(failure) and (more := f"--pre-include={STANDARD_LIBRARY}") not in arguments:
            arguments.append(more)
            continue
        places = [(match[1], int(match[2])) for match in _ERROR.finditer(str(failure))]
        missing = _MISSING.search(str(failure)) is not None
        foreign = {file for file, _ in places if file not in files}
        own_places = [place for place in (places[-1:] if missing else places) if place[0] in files]
        gone = [files[file].leave_out(line) for file, line in own_places]
        gone += [file.leave_out_header(path) for file in files.values() for path in foreign]
        if not any(gone) and not launched:
            break
        if not any(gone):
            launched = []  # they may depend on what only the host knows
    left = [what for file in files.values() for what in file.left_out]
    note = f"\n(left out as host code: {'; '.join(left)})" if left else ""
    raise CompileError(f"{failure}{note}")


def _included(source: str, folders: Sequence[Path]) -> Iterator[tuple[str, tuple[str, Path]]]:
    """The user's headers that a source includes, by the names it gives them: text and file."""
    todo: list[tuple[str, Path | None]] = [(source, None)]
    seen = set()
    while todo:
        text, file = todo.pop()
        for match in _INCLUDE.finditer(text):
            title = match[1] or match[2]
            for folder in [*([file.parent] if file else []), *folders] if title else []:
                path = folder / title
                if title not in seen and path.is_file():
                    seen.add(title)
                    content = path.read_text(encoding="utf-8", errors="replace")
                    yield title, (content, path)
                    todo.append((content, path))


def _compile(
    toolkit: Toolkit,
    source: str,
    name: str,
    arch: str,
    arguments: Sequence[str],
    kernels: Sequence[str],
    headers: Mapping[str, str] | None = None,
) -> _Compiled:
    library = _library(toolkit)
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    program = library.create(
        f'#line 1 "{quoted}"\n{source}', f"{_NOWHERE}/{name}", {**standard_headers(), **(headers or {})}
    )
    try:
        for kernel in kernels:
            library.check(library.dll.nvrtcAddNameExpression(program, kernel.encode()), name)
        status = library.dll.nvrtcCompileProgram(program, len(arguments), _strings(arguments))
        log = _DEPRECATED.sub("", library.text("ProgramLog", program)).replace(f"{_NOWHERE}/", "").strip()
        if status != 0:
            advice = "".join(f"\n({text})" for sign, text in _ADVICE.items() if sign in log)
            reason = log or library.error(status)
            raise CompileError(
                f"{name}: does not compile for {arch} with NVRTC {library.version}\n{reason}{advice}"
            )
        names = {kernel: library.lowered(program, kernel, name) for kernel in kernels}
        text = library.text("PTX", program)
    finally:
        library.dll.nvrtcDestroyProgram(ctypes.byref(program))
    # Line information has put the source into the current directory, where it need not be.
    return text.replace(f'"{Path.cwd()}/{quoted}"', f'"{quoted}"'), log, names


class _Library:
    """NVRTC's C interface (NVRTC User Guide, "User Interface")."""

    def __init__(self, path: Path) -> None:
        try:
            self.dll = ctypes.CDLL(str(path))
        except OSError as error:
            raise ToolkitError(f"{path}: cannot be loaded: {error}; {INSTALL} brings a whole NVRTC") from None
        self.dll.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.check(self.dll.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), str(path))
        self.check(self.dll.nvrtcGetNumSupportedArchs(ctypes.byref(count)), str(path))
        archs = (ctypes.c_int * count.value)()
        self.check(self.dll.nvrtcGetSupportedArchs(archs), str(path))
        self.version = f"{major.value}.{minor.value}"
        self.archs = tuple(archs)

    def error(self, status: int) -> str:
        return bytes(self.dll.nvrtcGetErrorString(status)).decode()

    def check(self, status: int, name: str) -> None:
        if status != 0:
            raise CompileError(f"{name}: NVRTC: {self.error(status)}")

    def create(self, source: str, name: str, headers: Mapping[str, str]) -> ctypes.c_void_p:
        program = ctypes.c_void_p()
        texts, titles = _strings(headers.values()), _strings(headers.keys())
        status = self.dll.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), len(headers), texts, titles
        )
        self.check(status, name)
        return program

    def text(self, what: str, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        self.check(getattr(self.dll, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
        buffer = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.dll, f"nvrtcGet{what}")(program, buffer), what)
        return buffer.value.decode(errors="replace")

    def lowered(self, program: ctypes.c_void_p, kernel: str, name: str) -> str:
        lowered = ctypes.c_char_p()
        self.check(self.dll.nvrtcGetLoweredName(program, kernel.encode(), ctypes.byref(lowered)), name)
        return (lowered.value or b"").decode()


@lru_cache(maxsize=4)
def _library(toolkit: Toolkit) -> _Library:
    if toolkit.nvrtc is None:
        raise ToolkitError(f"NVRTC is not installed: {INSTALL}")
    return _Library(toolkit.nvrtc)


def _strings(texts: Iterable[str]) -> Any:
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _brings_headers(options: Sequence[str]) -> bool:
    return any(option.startswith(("-I", "--include", "-include", "--pre-include")) for option in options)


def _own_headers(source: str, folders: Sequence[Path]) -> list[tuple[str, str]] | None:
    """The user's headers that a source may include, with digests; None if that cannot be told from the
    text, because a macro names one or the source asks which exist.

    Every file that an `#include` may mean counts, whatever conditions it stands under: a header too many
    costs a compilation, one too few would give stale code.
    """
    found: dict[Path, str] = {}
    todo: list[tuple[str, Path | None]] = [(source, None)]
    while todo:
        text, file = todo.pop()
        if "__has_include" in text:
            return None
        for match in _INCLUDE.finditer(text):
            target = match[1] or match[2]
            if target is None:
                return None
            for folder in [*([file.parent] if file else []), *folders]:
                path = folder / target
                if path not in found and path.is_file():
                    content = path.read_text(encoding="utf-8", errors="surrogateescape")
                    found[path] = hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()
                    todo.append((content, path))
    return sorted((str(path), digest) for path, digest in found.items())


def _read(place: Path) -> tuple[str, str, dict[str, str]] | None:
    """A kept compilation, None if there is none or where it is damaged."""
    try:
        text, log, names = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return (text, log, names) if isinstance(text, str) and isinstance(names, dict) else None
