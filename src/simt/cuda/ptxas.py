"""What ptxas makes of PTX, if a wheel provides it: machine code, and the resources that a kernel needs."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from simt.cache import cache_directory, used, write_whole
from simt.errors import CompileError, PtxError, ToolkitError
from simt.isa.instruction import uses_own_instructions

from .cubin_module import code_arch, successor_of
from .device_runtime import with_device_runtime
from .ptx_module import PtxModule, arch_number, runs_on
from .toolkit import INSTALL, toolkits

_CACHE_VERSION = 1
_TIME_LIMIT = 600  # seconds
_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PTX_VERSION = re.compile(r"^\s*\.version\s+(\d+\.\d+)", re.MULTILINE)
_NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes cumulative stack size"),
    "frame_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
}


@dataclass(frozen=True)
class Resources:
    """Resources of a kernel according to ptxas; bytes of shared memory are those known at compile time."""

    registers: int
    """Per thread."""
    barriers: int
    shared_bytes: int
    """Per CTA, static."""
    frame_bytes: int
    """Local memory per thread, of the kernel itself."""
    stack_bytes: int
    """Local memory per thread, with the functions that it calls; 0 where ptxas does not say so."""
    spill_store_bytes: int
    spill_load_bytes: int


def resources(module: PtxModule, arch: str) -> dict[str, Resources] | None:
    """Resources of each kernel of a module on a device; None if no ptxas is installed that can read the
    module, or where it is linked.

    Raises:
        CompileError: ptxas refuses the module; the message holds its log.
        PtxError: the module is not for this device.
    """
    assembler = _assembler_for(module, arch)
    if assembler is None or module.linked or uses_own_instructions(module.text):
        return None
    # PTX with "a" or "f" is assembled for what it is made for: sm_90a code has no meaning as sm_90.
    target = module.arch if arch_number(module.arch)[1] else arch
    identity = json.dumps([_CACHE_VERSION, _version(assembler), target, module.text])
    place = cache_directory("ptxas") / f"{hashlib.sha256(identity.encode()).hexdigest()[:40]}.json"
    kept = _read(place)
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="simt-") as folder:
            kept = _parse(_assemble(assembler, module, target, Path(folder) / "out"))
        write_whole(place, json.dumps({name: asdict(value) for name, value in kept.items()}).encode())
    return kept


def machine_code(module: PtxModule, arch: str, *options: str) -> bytes:
    """The cubin that ptxas makes of a module for a device; kept in the cache.

    options: of ptxas, such as "-O1".

    Raises:
        CompileError: ptxas refuses the module; the message holds its log.
        PtxError: the module is not for this device.
        ToolkitError: no ptxas is installed that can read the module.
    """
    assembler = _assembler_for(module, arch)
    if assembler is None:
        known = ", ".join(_version(path) for path in _assemblers()) or "none"
        match = _PTX_VERSION.search(module.text)
        raise ToolkitError(
            f"{module.name}: no installed ptxas makes machine code for {arch} of PTX "
            f"{match[1] if match else 'without a version'} ({known} found): {INSTALL}, or `pip install "
            "nvidia-cuda-nvcc` for the newest, or put a CUDA toolkit's bin on the PATH"
        )
    target = module.arch if arch_number(module.arch)[1] else arch
    identity = json.dumps([_CACHE_VERSION, _version(assembler), target, options, module.text])
    place = cache_directory("ptxas") / f"{hashlib.sha256(identity.encode()).hexdigest()[:40]}.cubin"
    with suppress(OSError):
        kept = place.read_bytes()
        used(place)
        return kept
    with tempfile.TemporaryDirectory(prefix="simt-") as folder:
        output = Path(folder) / "out.cubin"
        _assemble(assembler, module, target, output, ("--generate-line-info", *options))
        data = output.read_bytes()
    write_whole(place, data)
    return data


def compiled_arch(module: PtxModule, device: str) -> str:
    """The architecture of the machine code that a device executes of a module: `code_arch`; where no ptxas is
    installed that makes it of this module, its successor.
    """
    arch = code_arch(device)
    later = successor_of(arch)
    return arch if later is None or _assembler_for(module, arch) is not None else later


def can_assemble(arch: str) -> bool:
    """Whether a ptxas is installed that makes machine code for a device, such as "sm_80"."""
    return any(_knows(path, arch) for path in _assemblers())


def _knows(path: Path, arch: str) -> bool:
    """CUDA 13 ended Volta."""
    return _numbers(_version(path))[0] < 13 or arch_number(arch)[0] >= 75


def _assembler_for(module: PtxModule, arch: str) -> Path | None:
    if not runs_on(module.arch, arch):
        raise PtxError(f"{module.name}: PTX for {module.arch} does not run on {arch}")
    match = _PTX_VERSION.search(module.text)
    needed = _numbers(match[1]) if match else (0, 0)
    for path in _assemblers():
        major, minor = _numbers(_version(path))
        # CUDA 12.x reads PTX 8.x, CUDA 13.x reads PTX 9.x (PTX ISA, release history).
        if (major - 4, minor) >= needed and _knows(path, arch):
            return path
    return None


@lru_cache(maxsize=1)
def _assemblers() -> tuple[Path, ...]:
    """NVIDIA's wheels, then Triton's, which contains its own, then those of toolkits on the PATH."""
    found = [toolkit.ptxas for toolkit in toolkits() if toolkit.ptxas is not None]
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
        found += [folder / name for name in ("ptxas", "ptxas-blackwell") if (folder / name).is_file()]
    for program in ("ptxas", "nvcc"):
        if place := shutil.which(program):
            found.append(Path(place).resolve().with_name("ptxas"))
    return tuple(path for path in dict.fromkeys(found) if _version(path))


@lru_cache(maxsize=8)
def _version(path: Path) -> str:
    """The version, such as "12.9.86"; empty if the program does not run on this machine."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_TIME_LIMIT, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    match = re.search(r"\bV(\d+\.\d+\.\d+)", done.stdout)
    return match[1] if match else ""


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _assemble(
    assembler: Path, module: PtxModule, target: str, output: Path, options: Sequence[str] = ()
) -> str:
    """Writes the cubin and returns the log."""
    source = output.with_suffix(".ptx")
    # With --generate-line-info, ptxas 12.9 may crash where the last line does not end.
    source.write_text(with_device_runtime(module.text) + "\n", encoding="utf-8")
    command: list[str | Path] = [assembler, "--verbose", f"--gpu-name={target}", *options]
    command += [source, "--output-file", output]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise CompileError(f"{module.name}: ptxas did not end in {_TIME_LIMIT} s") from None
    log = done.stdout + done.stderr
    if done.returncode != 0:
        raise CompileError(
            f"{module.name}: ptxas refuses the PTX\n{log.replace(str(source), module.name).strip()}"
        )
    return log


def _parse(log: str) -> dict[str, Resources]:
    pieces = _ENTRY.split(log)
    found = {}
    for name, text in zip(pieces[1::3], pieces[3::3], strict=True):
        matches = {key: pattern.search(text) for key, pattern in _NUMBERS.items()}
        found[name] = Resources(**{key: int(match[1]) if match else 0 for key, match in matches.items()})
    return found


def _read(place: Path) -> dict[str, Resources] | None:
    """Cached numbers; None if there are none or they are damaged."""
    try:
        return {name: Resources(**value) for name, value in json.loads(place.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None
