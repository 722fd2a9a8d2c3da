"""Reads Nsight's own report files by running Nsight's tools if they are installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from simt.errors import ProfileError
from simt.profile.profile import Profile
from simt.profile.source import ProfileSource

_COMPUTE_MAGIC = b"NVR\0"
_SYSTEMS, _COMPUTE = (".nsys-rep", ".qdrep"), (".ncu-rep", ".nsight-cuprof-report")


def is_report(source: ProfileSource) -> bool:
    """Whether a file is a report: those of Nsight Compute begin with a magic number, those of Nsight Systems
    have a known suffix.
    """
    if source.head.startswith(_COMPUTE_MAGIC):
        return True
    return b"\0" in source.head and source.path.suffix in (*_SYSTEMS, *_COMPUTE)


def read_report(source: ProfileSource, read: Callable[[Path], Profile]) -> Profile:
    """Exports a report and passes the export to `read`.

    Raises ProfileError with the command to run if the tool is not installed, and with its output if it fails.
    """
    compute = source.head.startswith(_COMPUTE_MAGIC) or source.path.suffix in _COMPUTE
    with tempfile.TemporaryDirectory(prefix="simt-profile-") as folder:
        if compute:
            target = Path(folder) / "report.csv"
            command = ["ncu", "--import", source.name, "--page", "raw", "--csv", "--print-units", "base"]
            advice = f"ncu --import {source.name} --page raw --csv --print-units base > profile.csv"
            target.write_bytes(_run(command, source, "Nsight Compute", advice))
        else:
            target = Path(folder) / "report.sqlite"
            command = ["nsys", "export", "--type", "sqlite", "--output", str(target), source.name]
            advice = f"nsys export --type sqlite --output profile.sqlite {source.name}"
            _run(command, source, "Nsight Systems", advice)
            if not target.is_file():
                raise ProfileError(f"{source.name}: nsys exported nothing; try: {advice}")
        return read(target)


def _run(command: Sequence[str], source: ProfileSource, tool: str, advice: str) -> bytes:
    program = shutil.which(command[0])
    if program is None:
        raise ProfileError(
            f"{source.name}: a report that only {tool} can read, but `{command[0]}` is not installed here. "
            f"On a machine that has it, run: {advice}; then use the exported file"
        )
    done = subprocess.run([program, *command[1:]], capture_output=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise ProfileError(f"{source.name}: {command[0]} failed: {said[-500:]}")
    return done.stdout
