"""CUDA C++ to PTX with NVRTC through cuda-bindings: no GPU, driver or CUDA installation."""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from simt.cache import cache_directory, write_whole
from simt.errors import CompileError, ToolkitError

from .headers import NO_HOST, PRELUDE, STANDARD_LIBRARY, standard_headers
from .host_code import HostSource, has_host_code, instances, marking_macros
from .includes import Headers, find_headers, raw
from .ptx_module import PtxModule, arch_number
from .toolkit import INSTALL, Toolkit, need_nvrtc

_CACHE_VERSION = 1
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
    number, letter = arch_number(arch)
    toolkit = need_nvrtc()
    if "\0" in source:
        raise CompileError(f"{name}: the source holds a NUL character at {source.index(chr(0))}")
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

    headers = find_headers(source, folders)
    place = None
    if headers.complete and not _brings_headers(options):
        identity = [
            _CACHE_VERSION,
            toolkit.versions,
            source,
            name,
            arguments,
            list(kernels),
            headers.digests,
            standard_headers(),
        ]
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
        place = cache_directory("ptx") / f"{digest[:40]}.json"
        if (kept := _read(place)) is not None:
            text, log, names = kept
            return PtxModule(text, name, arch, source, log, names, settings)

    nvrtc = _nvrtc(toolkit)
    if number not in nvrtc.archs:
        known = ", ".join(f"sm_{other}" for other in nvrtc.archs)
        raise ToolkitError(f"no installed NVRTC compiles for {arch}: NVRTC {nvrtc.version} knows {known}")
    text, log, names = _compile_device_code(nvrtc, source, name, arch, arguments, kernels, headers)
    if place is not None:
        write_whole(place, json.dumps([text, log, names]).encode())
    return PtxModule(text, name, arch, source, log, names, settings)


_Compiled = tuple[str, str, dict[str, str]]


def _compile_device_code(
    nvrtc: _Nvrtc,
    source: str,
    name: str,
    arch: str,
    arguments: Sequence[str],
    kernels: Sequence[str],
    headers: Headers,
) -> _Compiled:
    """Compiles a source unchanged or, if that fails, without its host code."""
    failure = None
    if not has_host_code(source):
        try:
            return _compile(nvrtc, source, name, arch, arguments, kernels)
        except CompileError as error:
            failure = error
    texts = {
        str(path): raw(headers.texts[path]).decode("utf-8", "replace") for path in headers.named.values()
    }
    marks = marking_macros([source, *texts.values()])
    files = {file: HostSource(text, marks) for file, text in [(name, source), *texts.items()]}
    if failure is not None and all(file.device_text == file.text for file in files.values()):
        raise failure
    if not any(d.kind == "device" for file in files.values() for d in file.declarations):
        raise failure or CompileError(
            f"{name}: contains only host code: nothing is marked `__global__`, `__device__` or `__constant__`"
        )
    # What is not marked, or only for the host, is either used by kernels or never called.
    arguments = [*arguments, "--device-as-default-execution-space", f"--pre-include={NO_HOST}"]
    launched = [instance for instance in instances(files.values()) if instance not in kernels]
    for _ in range(_MOST_ATTEMPTS):
        own = {
            title: f'#line 1 "{path}"\n{files[str(path)].device_text}'
            for title, path in headers.named.items()
        }
        text = files[name].device_text
        try:
            return _compile(nvrtc, text, name, arch, arguments, [*kernels, *launched], own)
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


def _compile(
    nvrtc: _Nvrtc,
    source: str,
    name: str,
    arch: str,
    arguments: Sequence[str],
    kernels: Sequence[str],
    headers: Mapping[str, str] | None = None,
) -> _Compiled:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    given = {**standard_headers(), **(headers or {})}
    program = nvrtc.call(
        name,
        "nvrtcCreateProgram",
        f'#line 1 "{quoted}"\n{source}'.encode(),
        f"{_NOWHERE}/{name}".encode(),
        len(given),
        [text.encode() for text in given.values()],
        [raw(title) for title in given],
    )
    try:
        for kernel in kernels:
            nvrtc.call(name, "nvrtcAddNameExpression", program, kernel.encode())
        failure = None
        try:
            encoded = [argument.encode() for argument in arguments]
            nvrtc.call(name, "nvrtcCompileProgram", program, len(encoded), encoded)
        except CompileError as error:
            failure = error
        log = nvrtc.text(name, "ProgramLog", program)
        log = _DEPRECATED.sub("", log).replace(f"{_NOWHERE}/", "").strip()
        if failure is not None:
            advice = "".join(f"\n({text})" for sign, text in _ADVICE.items() if sign in log)
            raise CompileError(
                f"{name}: does not compile for {arch} with NVRTC {nvrtc.version}\n{log or failure}{advice}"
            )
        lowered = [nvrtc.call(name, "nvrtcGetLoweredName", program, kernel.encode()) for kernel in kernels]
        text = nvrtc.text(name, "PTX", program)
    finally:
        nvrtc.call(name, "nvrtcDestroyProgram", program)
    names = {kernel: mangled.decode() for kernel, mangled in zip(kernels, lowered, strict=True)}
    # Line information has put the source into the current directory, where it need not be.
    return text.replace(f'"{Path.cwd()}/{quoted}"', f'"{quoted}"'), log, names


class _Nvrtc:
    """NVRTC's functions through cuda-bindings, which keep the first NVRTC that a process uses."""

    def __init__(self, toolkit: Toolkit) -> None:
        try:
            # The bindings use a library that is already loaded; otherwise they would prefer CUDA 13's.
            ctypes.CDLL(str(toolkit.nvrtc), ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise ToolkitError(
                f"{toolkit.nvrtc}: cannot be loaded: {error}; {INSTALL} brings a whole NVRTC"
            ) from None
        try:
            from cuda.bindings import nvrtc
        except ModuleNotFoundError:
            raise ToolkitError(f"NVRTC needs cuda-bindings, which is not installed: {INSTALL}") from None
        self._bindings: Any = nvrtc
        self.version = "{}.{}".format(*self.call("NVRTC", "nvrtcVersion"))
        self.archs = tuple(self.call("NVRTC", "nvrtcGetSupportedArchs"))
        wheels = [version for version in toolkit.versions if version.startswith("nvrtc ")]
        if not all(version.startswith(f"nvrtc {self.version}.") for version in wheels):
            raise ToolkitError(
                f"this process already uses NVRTC {self.version}, not {toolkit.nvrtc}: "
                "compile with simt before another package loads its own"
            )

    def call(self, name: str, function: str, *arguments: Any) -> Any:
        """Calls a function and returns what follows the status: one value or a list. name: the program, for
        messages. Raises CompileError unless it succeeds."""
        status, *values = getattr(self._bindings, function)(*arguments)
        if status:
            _, text = self._bindings.nvrtcGetErrorString(status)
            raise CompileError(f"{name}: NVRTC: {text.decode()}")
        return values[0] if len(values) == 1 else values

    def text(self, name: str, what: str, program: Any) -> str:
        buffer = bytearray(self.call(name, f"nvrtcGet{what}Size", program))
        self.call(name, f"nvrtcGet{what}", program, buffer)
        return buffer.partition(b"\0")[0].decode(errors="replace")


_nvrtc = lru_cache(maxsize=1)(_Nvrtc)


def _brings_headers(options: Sequence[str]) -> bool:
    return any(option.startswith(("-I", "--include", "-include", "--pre-include")) for option in options)


def _read(place: Path) -> tuple[str, str, dict[str, str]] | None:
    """A cached compilation; None if there is none or it is damaged."""
    try:
        text, log, names = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return None
    return (text, log, names) if isinstance(text, str) and isinstance(names, dict) else None
