"""The format of a run's journal: its finished launches, written as they finish (`simt.run.record`), so that
nothing that happens later loses them.

One JSON object a line: first what the run is (machine, energies, provenance, positions of the launches it
wants), then a launch each, and where the run came to save its Result all that the Result has beside its
launches. A line that was cut short, as a killed process or a full disk leaves it, is the end of the journal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simt.errors import ResultError
from simt.files import is_regular
from simt.result.launch import LaunchResult, Machine
from simt.result.result import SCHEMA as RESULT_SCHEMA
from simt.result.result import Provenance, Result
from simt.result.transfer import to_columns

if TYPE_CHECKING:
    from simt.power import Energies

SCHEMA = "simt.journal/1"
UNFINISHED = "unfinished"
_FIELDS = tuple(f.name for f in fields(LaunchResult) if f.name not in ("machine", "energies"))


def journal_of(output: Path) -> Path:
    """Where the journal of a run with this output lies: in its directory, or beside its .json file."""
    return (
        output.with_name(output.name + ".journal") if output.suffix == ".json" else output / "result.journal"
    )


@dataclass(frozen=True)
class Saved:
    """What an earlier run left.

    digests: by the launch's position what it was launched with, for programs (see `QueuedLaunch`).
    """

    result: Result
    digests: dict[int, str] = field(default_factory=dict)


def first_line(
    machine: Machine,
    provenance: Provenance,
    wanted: Iterable[int] | None,
    warnings: Iterable[str],
    energies: Energies | None,
) -> bytes:
    """What the run is. wanted: positions of the launches; None if not known in advance."""
    return _line(
        {
            "schema": SCHEMA,
            "machine": asdict(machine),
            "provenance": asdict(provenance),
            "wanted": None if wanted is None else sorted(wanted),
            "warnings": list(warnings),
            "energies": None if energies is None else energies.to_json(),
        }
    )


def launch_line(launch: LaunchResult, digest: str) -> bytes:
    return _line({"launch": {name: getattr(launch, name) for name in _FIELDS}, "digest": digest})


def last_line(result: Result) -> bytes:
    """All that the Result has beside its launches."""
    rest = {
        "status": result.status,
        "unfinished": result.unfinished,
        "warnings": result.warnings,
        "provenance": asdict(result.provenance),
        "sampling": result.sampling,
        **({"transfers": to_columns(result.transfers)} if result.transfers else {}),
    }
    return _line({"end": rest})


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=array.tolist) + b"\n"


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
