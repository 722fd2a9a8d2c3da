"""The finished launches of one run, in memory and on disk."""

from __future__ import annotations

import time
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import ResultError
from simt.files import require_folder, require_output
from simt.result import LaunchResult, Machine, Provenance, Result, timeline
from simt.result.journal import UNFINISHED, Journal, Saved, read_saved
from simt.result.listing import shared
from simt.result.store import LaunchStore
from simt.result.transfer import Transfer
from simt.result.unmodelled import Unmodelled

from .projected_clock import ProjectedClock

if TYPE_CHECKING:
    from simt.control.launch import LaunchControl
    from simt.power import Energies
    from simt.run.session import QueuedTransfer

_SAME = (
    ("kernels", "another selection of kernels"),
    ("input_hash", "another input"),
    ("spec_hash", "another GPU specification"),
    ("version", "another version of simt"),
    ("method", "another method"),
    ("timeline", "another timeline interval"),
)


@dataclass(frozen=True)
class Facts:
    """What the engine does not know about a launch."""

    index: int
    id: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    registers: int
    sm_version: int
    annotation: str = ""


def launch_result(
    raw: dict[str, Any],
    facts: Facts,
    machine: Machine,
    cycle_offset: int = 0,
    energies: Energies | None = None,
) -> LaunchResult:
    """A finished launch, from the engine's record. cycle_offset: added to its cycles."""
    return LaunchResult(
        **asdict(facts),
        stream=raw["stream"],
        start_cycle=raw["start_cycle"] + cycle_offset,
        end_cycle=raw["end_cycle"] + cycle_offset,
        launch_latency=raw["launch_latency"],
        clock_khz=raw["clock_khz"],
        occupancy_limit_ctas=raw["occupancy_limit_ctas"],
        occupancy_limited_by=raw["occupancy_limited_by"],
        l1_bytes=raw["l1_bytes"],
        shared_carve_out_bytes=raw["shared_carve_out_bytes"],
        engine=raw["counters"],
        l1=raw["l1"],
        l2=raw["l2"],
        stalls=raw["stalls"],
        warp_stalls=raw["warp_stalls"],
        pc=shared(raw["pc"]),
        timeline=timeline.from_engine(raw["timeline"], cycle_offset),
        spread=raw["spread"],
        warnings=tuple(raw["warnings"]),
        machine=machine,
        energies=energies,
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
    """The finished launches of one run: in order, with their cycles, in the journal, and as a Result.

    wanted: positions of the launches to run; None if not known in advance. Then launches of an earlier run
        are taken over one by one (`take_over`), otherwise all at once.
    output: where the Result, and until then the journal, are saved; None for nowhere.
    before: what an earlier run saved; its launches are not simulated again.
    energies: of a run with `power`.

    Raises ResultError if `before` is from a different run.
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
    ) -> None:
        self.machine = machine
        self._energies = energies
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
        self._offset = 0
        self._clock = ProjectedClock()
        self._start = time.monotonic()
        self._output = output
        self._notes: list[str] = []
        self._transfers: list[Transfer] = []
        self._warned: dict[str, None] = {}  # warnings of the launches, in order
        self._unmodelled = Unmodelled()
        if before is not None:
            self._notes = [
                text
                for text in before.result.warnings
                if not text.startswith(UNFINISHED) and not Unmodelled.wrote(text)
            ]
            self._check(before.result.provenance)
            self._kept = {x.index: replace(x, energies=energies) for x in before.result.launches}
            self._digests = dict(before.digests)
            self._offset = max((x.end_cycle for x in self._kept.values()), default=0)
        if self._wanted is not None:
            for index in list(self._kept):
                self.take_over(index)
        self._journal = None
        if output is not None:
            notes = list(self._notes)
            if before is not None and before.result.launches:
                provenance = replace(provenance, resumed_after=len(before.result.launches))
                notes.append(_resumed_text(len(before.result.launches)))
            self._journal = Journal(output, machine, provenance, self._wanted, notes, energies)
            if before is not None and before.result.launches:
                self._journal.begin((x, self._digests.get(x.index, "")) for x in before.result.launches)

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

    def add(
        self, raw: dict[str, Any], facts: Facts, control: LaunchControl | None = None, digest: str = ""
    ) -> LaunchResult:
        """Adds a launch that the engine has finished, and writes it to the journal.

        digest: of its arguments, if the input's hash does not cover them. Raises ResultError if it cannot be
        written.
        """
        offset = self.cycle(raw["start_cycle"]) - raw["start_cycle"]
        launch = launch_result(raw, facts, self.machine, offset, self._energies)
        if control is not None:
            launch = control.finish(raw, launch)
            self._clock.ended(raw["sampled"]["released_cycle"], launch.end_cycle - self._offset)
        if self._journal is not None:
            self._journal.add(launch, digest)
        self._keep(launch)
        return launch

    def add_transfer(self, done: QueuedTransfer) -> None:
        """Adds a transfer that the engine has finished, if it occupied a link."""
        if done.link != "none" and done.start_cycle is not None and done.end_cycle is not None:
            self._transfers.append(
                Transfer(done.link, done.stream, done.traffic, done.start_cycle, done.end_cycle)
            )

    def cycle(self, engine_cycle: int) -> int:
        """The cycle of the run that corresponds to a cycle of the engine."""
        return engine_cycle + self._offset + self._clock.offset(engine_cycle)

    def new_engine(self, cycle: int) -> None:
        """The engine restarts at cycle 0; the previous one had reached `cycle`."""
        self._offset += cycle
        self._clock = ProjectedClock()

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
            energies=self._energies,
        )

    def save(self, result: Result) -> None:
        """Saves the Result at the output. Removes the journal when the run is complete.

        Raises ResultError; what has finished is then still in the journal.
        """
        if self._output is None or self._journal is None:
            return
        if result.launches:
            self._journal.end(result)
        result.save(self._output)
        if result.status == "complete":
            self._journal.remove()


def _resumed_text(launches: int) -> str:
    return (
        f"resumed after {launches} launches: the caches hold what copies left there, "
        f"not what those "
        f"launches would have left, so cycles of the later launches may differ from a run in one go"
    )
