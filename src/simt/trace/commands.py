"""Launch lists: `kernelslist` and `kernelslist.g`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simt.errors import TraceError
from simt.files import require_regular

_MAX_BYTES = 256 << 20


@dataclass(frozen=True)
class Copy:
    """A copy from the host to device memory: `bytes` bytes to device address `address`."""

    address: int
    bytes: int


@dataclass(frozen=True)
class KernelFile:
    """A launch whose instructions are in the file `path`."""

    path: Path


def read_launch_list(path: Path, outside: bool = False) -> tuple[list[Copy | KernelFile], list[str]]:
    """Returns the commands of a launch list in order, and warnings about skipped lines.

    outside: whether it may name files outside its folder.

    Raises TraceError with the line number if a command is malformed or a kernel's file is missing, and if
    there are only lines of other kinds.
    """
    try:
        require_regular(path)
        if path.stat().st_size > _MAX_BYTES:
            raise TraceError(f"{path}: larger than {_MAX_BYTES} bytes; this is not a launch list")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TraceError(f"{path}: cannot open this file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path}: this is not a text file; expected a launch list (kernelslist.g)"
        ) from error
    commands: list[Copy | KernelFile] = []
    passed_over: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("MemcpyHtoD"):
            commands.append(_copy(line, f"{path}: line {number}"))
        elif line.startswith("kernel"):
            file = path.parent / line
            if not file.is_file():
                raise TraceError(
                    f"{path}: line {number}: the kernel trace {line} does not exist; "
                    "delete the line to leave this launch out"
                )
            if not outside and not file.resolve().is_relative_to(path.parent.resolve()):
                raise TraceError(
                    f"{path}: line {number}: {line} is not in the list's folder; if you trust the list, "
                    "read it with --outside (outside=True)"
                )
            commands.append(KernelFile(file))
        elif line.isprintable():
            verb = line.split(",")[0].split()[0]
            passed_over[verb] = passed_over.get(verb, 0) + 1
        else:
            raise TraceError(f"{path}: line {number}: this is not a launch list (kernelslist.g)")
    passed_over.pop("MemcpyDtoH", None)  # it changes nothing on the device
    if passed_over and not commands:
        raise TraceError(
            f"{path}: this is not a launch list (kernelslist.g): found "
            f"{next(iter(passed_over))[:40]!r} and no launch; expected names of kernel traces "
            "(kernel-1.traceg) and copies (MemcpyHtoD,0x<address>,<bytes>)"
        )
    warnings = []
    for verb, count in passed_over.items():
        lines = "1 line" if count == 1 else f"{count} lines"
        warnings.append(f"{path.name}: {lines} with the unknown command {verb[:40]!r} skipped")
    return commands, warnings


def _copy(line: str, place: str) -> Copy:
    fields = line.split(",")
    try:
        if len(fields) != 3 or fields[0].strip() != "MemcpyHtoD":
            raise ValueError
        address, size = int(fields[1], 16), int(fields[2])
        if not (0 <= address < 1 << 64 and 0 <= size < 1 << 64):
            raise ValueError
    except ValueError:
        raise TraceError(f"{place}: found {line[:60]!r}, expected 'MemcpyHtoD,0x<address>,<bytes>'") from None
    return Copy(address, size)
