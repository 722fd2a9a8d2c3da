"""The finished launches of one run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from simt.errors import ResultError
from simt.files import LineFile, require_folder, require_output
from simt.result import LaunchResult, Machine, Provenance, Result
from simt.result.journal import (
    UNFINISHED,
    Saved,
    first_line,
    journal_of,
    last_line,
    launch_line,
    read_saved,
)
from simt.result.store import LaunchStore
from simt.result.transfer import Transfer
from simt.result.unmodelled import Unmodelled

if TYPE_CHECKING:
    from simt.power import Energies

_SAME = (
    ("kernels", "another selection of kernels"),
    ("input_hash", "another input"),
    ("spec_hash", "another GPU specification"),
    ("version", "another version of simt"),
    ("method", "another method"),
    ("timeline", "another timeline interval"),
)


def require_place(output: Path) -> None:
    """Raises ResultError if a Result cannot be saved at this output; to be called before the run."""
    if output.suffix == ".json":
        require_output(output, ResultError)
    else:
        require_folder(output, ResultError)


def to_resume(output: Path | None, resume: bool) -> Saved | None:
    """The earlier run to continue. Raises ResultError if saving would overwrite an unfinished run."""
    if output is None:
        if resume:
            raise ResultError("--resume needs --output, the Result to continue")
        return None
    require_place(output)
    found = read_saved(output)
    if resume or found is None:
        return found
    if found.result.status != "complete":
        raise ResultError(
            f"{output}: holds an unfinished Result; add --resume to continue it, or choose another output"
        )
    return None


class Record:
    """The finished launches of one run: in memory, in a journal until their Result is saved, and as a Result.

    wanted: positions of the launches to run; None if not known in advance. Then launches of an earlier run
        are taken over one by one (`take_over`), otherwise all at once.
    output: where the Result, and until then the journal, are saved; None for nowhere.
    before: what an earlier run saved; its launches are not simulated again.
    energies: of a run with `power`. special_opcodes: those that the GPU's special units execute.

    Raises ResultError if `before` is from a different run, or the journal cannot be written.
    """

    def __init__(
        self,
        machine: Machine,
        provenance: Provenance,
        *,
        wanted: Iterable[int] | None = None,
        output: Path | None = None,
        before: Saved | None = None,
        energies: Energies | None = None,
        special_opcodes: frozenset[str] = frozenset(),
    ) -> None:
        self.machine = machine
        self.energies = energies
        self.launches = LaunchStore(machine, energies)
        """By position, in the order in which they finished."""
        self.last_cycle = 0
        """In which the last of them ended."""
        self._wanted = None if wanted is None else frozenset(wanted)
        self._provenance = provenance
        self._before = before
        self._kept: dict[int, LaunchResult] = {}
        self._digests: dict[int, str] = {}
        self._taken = 0
        self._start = time.monotonic()
        self._output = output
        self._notes: list[str] = []
        self._transfers: list[Transfer] = []
        self._warned: dict[str, None] = {}  # warnings of the launches, in order
        self._unmodelled = Unmodelled(special_opcodes, executed=provenance.code != "trace")
        if before is not None:
            self._notes = [
                text
                for text in before.result.warnings
                if not text.startswith(UNFINISHED) and not Unmodelled.wrote(text)
            ]
            self._check(before.result.provenance)
            self._kept = {x.index: replace(x, energies=energies) for x in before.result.launches}
            self._digests = dict(before.digests)
        self.first_cycle = max((x.end_cycle for x in self._kept.values()), default=0)
        """In which the run begins: that in which the launches of an earlier one end."""
        self._journal = None if output is None else LineFile(journal_of(output))
        if self._kept:
            self._begin_journal([(x, self._digests.get(x.index, "")) for x in self._kept.values()])
        if self._wanted is not None:
            for index in list(self._kept):
                self.take_over(index)

    def _check(self, old: Provenance) -> None:
        for name, what in _SAME:
            if name == "input_hash" and self._wanted is None:
                continue  # `take_over` compares launch by launch
            found, now = getattr(old, name), getattr(self._provenance, name)
            if found != now:
                raise ResultError(
                    f"cannot resume: the saved Result is of {what} "
                    f"({found!r}, now {now!r}); start afresh with another output"
                )

    def kept(self, index: int, digest: str, name: str) -> bool:
        """Whether an earlier run has finished this launch. Raises ResultError if that was a different launch.

        digest: of its arguments.
        """
        launch = self._kept.get(index)
        if launch is None:
            return False
        known = self._digests.get(index)  # none if only a Result was saved
        if launch.name != name or (known and known != digest):
            raise ResultError(
                f"cannot resume: launch {launch.id} was {launch.name!r} and is {name!r} now, "
                f"with {'the same' if launch.name != name else 'other'} arguments, sizes or code: "
                "the program does not behave the same again; start afresh with another output"
            )
        return True

    def take_over(self, index: int) -> LaunchResult:
        """Makes a launch that an earlier run has finished part of this run."""
        launch = self._kept.pop(index)
        self._keep(launch)
        self._taken += 1
        return launch

    def _keep(self, launch: LaunchResult) -> None:
        self.launches.add(launch)
        self.last_cycle = max(self.last_cycle, launch.end_cycle)
        self._warned.update(dict.fromkeys(launch.warnings))
        self._unmodelled.add(launch)

    def add(self, launch: LaunchResult, digest: str = "") -> None:
        """Adds a launch, and writes it to the journal.

        digest: of its arguments, if the input's hash does not cover them. Raises ResultError if it cannot be
        written.
        """
        if self._journal is not None:
            if not self._journal.is_open:  # the first, or the first since the Result was saved
                self._begin_journal([(x, "") for x in self.launches.in_order()])
            with self._written():
                self._journal.append(launch_line(launch, digest))
        self._keep(launch)

    def _begin_journal(self, launches: Sequence[tuple[LaunchResult, str]]) -> None:
        """launches: with the digests of their arguments."""
        if self._journal is None:
            return
        provenance, notes = self._provenance, list(self._notes)
        if self._before is not None and (kept := len(self._before.result.launches)):
            provenance = replace(provenance, resumed_after=kept)
            notes.append(_resumed_text(kept))
        head = first_line(self.machine, provenance, self._wanted, notes, self.energies)
        with self._written():
            self._journal.begin([head, *(launch_line(launch, digest) for launch, digest in launches)])

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Raises ResultError where the journal cannot be written."""
        try:
            yield
        except OSError as error:
            assert self._journal is not None
            kept = len(self.launches) + len(self._kept)
            raise ResultError(
                f"{self._journal.path}: cannot write a finished launch: {error.strerror}; "
                f"{kept} {'launch is' if kept == 1 else 'launches are'} saved there. "
                "Free some space, and continue with --resume"
            ) from error

    def add_transfer(self, transfer: Transfer) -> None:
        self._transfers.append(transfer)

    def result(
        self,
        status: str,
        *,
        why: str = "",
        warnings: Iterable[str] = (),
        input: str,
        input_hash: str,
    ) -> Result:
        """The launches finished so far, in the order of the input; `status` says why some may be missing.

        why: the same, as text for messages. warnings: of the input. input, input_hash: as known now.
        """
        launches = self.launches.in_order()
        warned, unmodelled = [*self._warned], self._unmodelled
        if status != "complete" and self._kept:
            launches = tuple(sorted([*self._kept.values(), *launches], key=lambda launch: launch.index))
            warned += [text for launch in self._kept.values() for text in launch.warnings]
            unmodelled = deepcopy(unmodelled)
            for launch in self._kept.values():
                unmodelled.add(launch)
        finished = {*self.launches, *(self._kept if status != "complete" else ())}
        left = tuple(sorted(self._wanted - finished)) if self._wanted is not None else ()
        before = None if self._before is None else self._before.result
        resumed = bool(self._taken) and (len(self.launches) > self._taken or bool(left))
        notes = [*self._notes, *([_resumed_text(self._taken)] if resumed else [])]
        if status == "complete" and self._kept:
            notes.append(
                f"{len(self._kept)} launches of the resumed run did not occur again; they are left out"
            )
        notes += [*warnings, *unmodelled.warnings(), *warned]
        if self._wanted is not None and not left:
            status = "complete"
        if status != "complete":
            count = f"{len(left)} of {len(left) + len(launches)}" if left else f"after {len(launches)}"
            notes.append(f"{UNFINISHED}: {count} launches, {why or status}")
        wall = time.monotonic() - self._start + (before.provenance.wall_seconds if before else 0.0)
        after = self._taken if resumed else before.provenance.resumed_after if before else 0
        provenance = replace(
            self._provenance,
            input=input,
            input_hash=input_hash,
            wall_seconds=round(wall, 3),
            resumed_after=after,
        )
        return Result(
            launches=launches,
            machine=self.machine,
            provenance=provenance,
            warnings=tuple(dict.fromkeys(notes)),
            status=status,
            unfinished=left,
            transfers=tuple(self._transfers),
            energies=self.energies,
        )

    def save(self, result: Result) -> None:
        """Saves the Result at the output. Removes the journal when the run is complete.

        Raises ResultError; what has finished is then still in the journal.
        """
        if self._output is None or self._journal is None:
            return
        if result.launches:
            if not self._journal.is_open:
                self._begin_journal([(launch, "") for launch in result.launches])
            with self._written():
                self._journal.append(last_line(result))
                self._journal.sync()
        result.save(self._output)
        if result.status == "complete":
            self._journal.remove()


def _resumed_text(launches: int) -> str:
    return (
        f"resumed after {launches} launches: the caches hold what copies left there, "
        f"not what those "
        f"launches would have left, so cycles of the later launches may differ from a run in one go"
    )
