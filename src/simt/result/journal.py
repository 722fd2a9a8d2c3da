"""The journal of a run: its finished launches, written as they finish, so that nothing that happens later
loses them.

One JSON object a line: first what the run is (machine, energies, provenance, positions of the launches it
wants), then a launch each, and where the run came to save its Result all that the Result has beside its
launches. A line that was cut short, as a killed process or a full disk leaves it, is the end of the journal.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simt.errors import ResultError
from simt.files import is_regular, replacing
from simt.result.launch import LaunchResult, Machine
from simt.result.result import SCHEMA as RESULT_SCHEMA
from simt.result.result import Provenance, Result
from simt.result.transfer import to_columns

if TYPE_CHECKING:
    from simt.power import Energies

SCHEMA = "simt.journal/1"
UNFINISHED = "unfinished"
_FIELDS = tuple(f.name for f in fields(LaunchResult) if f.name not in ("machine", "energies"))
_SYNC_SECONDS, _SYNC_SHARE = 1.0, 0.02


def journal_of(output: Path) -> Path:
    """Where the journal of a run with this output lies: in its directory, or beside its .json file."""
    return (
        output.with_name(output.name + ".journal") if output.suffix == ".json" else output / "result.journal"
    )


@dataclass(frozen=True)
class Saved:
    """What an earlier run left.

    digests: by the launch's position what it was launched with, for programs (see `Session`).
    """

    result: Result
    digests: dict[int, str] = field(default_factory=dict)


class Journal:
    """Appends launches to the journal of an output. It appears with the first one."""

    def __init__(
        self,
        output: Path,
        machine: Machine,
        provenance: Provenance,
        wanted: Iterable[int] | None,
        warnings: Iterable[str] = (),
        energies: Energies | None = None,
    ) -> None:
        self.path = journal_of(output)
        self._head = {
            "schema": SCHEMA,
            "machine": asdict(machine),
            "provenance": asdict(provenance),
            "wanted": None if wanted is None else sorted(wanted),
            "warnings": list(warnings),
            "energies": None if energies is None else energies.to_json(),
        }
        self._file: Any = None
        self._written = 0
        self._synced = -1e9
        self._sync_cost = 0.0

    def begin(self, launches: Iterable[tuple[LaunchResult, str]] = ()) -> None:
        """Starts afresh with these launches and their digests; what was there is replaced at once.

        Raises ResultError if that cannot be written.
        """
        self.close()
        lines = [_line(self._head), *(_launch_line(launch, digest) for launch, digest in launches)]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as temporary, temporary.open("wb") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise self._refused(error, len(lines) - 1) from error
        self._written = len(lines) - 1

    def add(self, launch: LaunchResult, digest: str = "") -> None:
        """Appends a finished launch. Raises ResultError if it cannot be written; those before are kept."""
        if self._file is None:
            self.begin()
        self._append(_launch_line(launch, digest))
        self._written += 1
        # Writes survive the death of the process; only a crash of the machine would require a sync.
        now = time.monotonic()
        if now - self._synced > max(_SYNC_SECONDS, self._sync_cost / _SYNC_SHARE):
            self._sync(now)

    def end(self, result: Result) -> None:
        """Appends all that the Result has beside its launches. Raises ResultError."""
        if self._file is None:
            self.begin((launch, "") for launch in result.launches)
        rest = {
            "status": result.status,
            "unfinished": result.unfinished,
            "warnings": result.warnings,
            "provenance": asdict(result.provenance),
            "sampling": result.sampling,
            **({"transfers": to_columns(result.transfers)} if result.transfers else {}),
        }
        self._append(_line({"end": rest}))
        self._sync(time.monotonic())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """When the Result is saved."""
        self.close()
        self.path.unlink(missing_ok=True)
        for left in self.path.parent.glob(f".{self.path.name}.*"):  # of a run that was killed
            left.unlink(missing_ok=True)

    def _append(self, line: bytes) -> None:
        before = self._file.tell()
        try:
            written = self._file.write(line)
            if written != len(line):  # the disk is full: the next byte will fail
                self._file.write(line[written:])
        except OSError as error:
            # A partial line would hide the lines that another run appends.
            os.ftruncate(self._file.fileno(), before)
            raise self._refused(error, self._written) from error

    def _sync(self, now: float) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._refused(error, self._written) from error
        self._synced = time.monotonic()
        self._sync_cost = self._synced - now

    def _refused(self, error: OSError, kept: int) -> ResultError:
        return ResultError(
            f"{self.path}: cannot write a finished launch: {error.strerror}; "
            f"{kept} {'launch is' if kept == 1 else 'launches are'} saved there. "
            "Free some space, and continue with --resume"
        )


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=array.tolist) + b"\n"


def _launch_line(launch: LaunchResult, digest: str) -> bytes:
    return _line({"launch": {name: getattr(launch, name) for name in _FIELDS}, "digest": digest})


def read_saved(output: Path) -> Saved | None:
    """What an earlier run with this output left: a journal, a Result, or None. Raises ResultError."""
    if is_regular(journal := journal_of(output)):
        return read_journal(journal)
    exists = (output / "result.json").exists() if output.is_dir() else output.exists()
    return Saved(Result.load(output)) if exists else None


def read_journal(path: Path) -> Saved:
    """Reads a journal up to its end. Raises ResultError if it is none."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # a line without a newline is truncated
    except OSError as error:
        raise ResultError(f"{path}: cannot read: {error.strerror}") from error
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            break
        if not isinstance(value, dict):
            break
        found.append(value)
    try:
        return _saved(found)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ResultError(f"{path}: not the journal of a run: {error!r}") from error
    except ResultError as error:
        raise ResultError(f"{path}: {error}") from error


def _saved(found: list[dict[str, Any]]) -> Saved:
    if not found or found[0].get("schema") != SCHEMA:
        raise ResultError(f"not the journal of a run: expected {SCHEMA!r} in its first line")
    head = found[0]
    launches: dict[int, Any] = {}
    digests: dict[int, str] = {}
    end: dict[str, Any] = {}
    for value in found[1:]:
        if "end" in value:
            end = value["end"]
            continue
        end = {}  # another run continued
        launch, digest = value["launch"], value["digest"]
        launches[int(launch["index"])] = launch
        digests[int(launch["index"])] = str(digest)
    ordered = [launches[index] for index in sorted(launches)]
    wanted = head["wanted"]
    if not end:
        left = [] if wanted is None else [index for index in wanted if index not in launches]
        count = f"after {len(ordered)}" if wanted is None else f"{len(left)} of {len(wanted)}"
        why = f"{UNFINISHED}: {count} launches, the run ended without saving its Result"
        notes = [*head["warnings"], *(text for launch in ordered for text in launch["warnings"]), why]
        end = {
            "status": "interrupted" if left or wanted is None else "complete",
            "unfinished": left,
            "warnings": list(dict.fromkeys(notes)),
            "provenance": head["provenance"],
            "sampling": None,
        }
    whole = {
        "schema": RESULT_SCHEMA,
        "launches": ordered,
        "machine": head["machine"],
        "energies": head.get("energies"),
        **end,
    }
    return Saved(Result.from_json(whole), digests)
