"""Input x Spec -> Result."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simt.errors import Interrupted, LimitReached, ResultError, SelectionError, SimtError, SimulationError
from simt.policy import Policy
from simt.result import Result
from simt.run.interruption import Limits, deferred_stop, number_of
from simt.run.planned import planned, positions
from simt.run.progress import Progress
from simt.run.record import Facts
from simt.run.session import QueuedLaunch, Session
from simt.selection import Selection, canonical, select

if TYPE_CHECKING:
    from simt.control import Controller
    from simt.power import Power
    from simt.sampling import Plan
    from simt.spec import Spec
    from simt.trace import Kernel, Trace

LOOK_AHEAD = 4
_FILLING = 16  # warp instructions for each line of the L2, which fill it


def simulate(
    path: str | os.PathLike[str],
    gpu: str | os.PathLike[str] | Spec = "qv100",
    *,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    kernels: Selection = None,
    threads: int = 1,
    max_cycles: int | None = None,
    timeline: int | None = None,
    window: int | None = None,
    timeout: float | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: Result | bool = False,
    policies: Mapping[str, Policy] | None = None,
    controller: Controller | str | None = None,
    plan: Plan | Collection[int] | None = None,
    launches: Selection = None,
    power: Power = False,
    clock: float | None = None,
    verify: float = 0.0,
    seed: int = 0,
    outside: bool = False,
) -> Result:
    """Simulates the launches of a trace on a GPU and returns their counters.

    path: a `kernelslist.g`, a directory that contains one, a kernel trace, or a `.simt` store.
    gpu: name of a specification (listed by `simt gpus`), path of a TOML file, or a specification.
    set: values that override the specification, by their path in it: `{"sm.count": 40}` or `["sm.count=40"]`.
    kernels: the launches to simulate, such as `"3-7,12"`, `"*gemm*"` or `"/conv\\d/"` (see docs/cli.md); all
        copies to the GPU are still made.
    threads: host threads, at most as many as there are cores. Counters do not depend on it.
    max_cycles: stop after about this many core cycles; the Result has the launches finished by then.
    timeout: likewise, stop after about this many seconds.
    timeline: interval of the timeline in core cycles; None for no timeline.
    window: cycles that SMs simulate independently; None for the maximum. Counters do not depend on it.
    progress: True for a progress bar on the terminal (otherwise a line every 30 seconds), or a function that
        is called a few times a second.
    output: where the Result is saved, as by `Result.save`. Launches are written there as they finish, so they
        are kept whatever happens next: `Result.load` reads them.
    resume: True to continue the interrupted run with this output, or a Result of the same input and
        specification. Its launches are kept, not simulated again; caches start afresh.
    policies: Python functions in place of built-in policies: scheduler, l1_replacement, l2_replacement,
        slice_hash (see simt.policy).
    controller: decides during each launch how much of it is simulated (see simt.control), or its name as
        after `--sample`; None: all.
    plan: simulate only its launches; `Result.sampling` then has estimated totals of the whole program with
        their errors. Its launches are the trace's kernels, counted from 0, or all kernels of the trace, in
        order. Or the positions of launches, from 0. What the launches left out before them access is put
        into the L2.
    launches: time only these, as `kernels`, of those that `kernels` chooses; what the launches left out
        before them access is put into the L2.
    power: True for the energy of each launch in the Result, by the energies of this GPU; or the name of the
        GPU whose energies to use, a TOML file, or `simt.power.Energies` (see docs/power).
    clock: core clock in MHz in place of the specification's; interconnect and L2 follow if they have the
    same. verify: share of the launches cut short by the controller, chosen at random by `seed`, that are also
        simulated in full: `Result.sampling` has the observed errors.
    outside: whether a launch list may name files outside its folder.

    Raises SimtError on bad input and if `output` holds an unfinished run that is not to be resumed;
    SimulationError if the simulation cannot continue (DeadlockError if the simulated machine is deadlocked);
    and Interrupted (a KeyboardInterrupt) on Ctrl-C. The last two carry the Result with the launches that had
    finished.
    """
    from simt.trace import open_trace

    if verify and controller is None:
        raise SimtError("verify needs a controller, whose projections it checks")
    session = Session(
        gpu,
        set=set,
        policies=policies,
        threads=threads,
        window=window,
        timeline=timeline,
        max_cycles=max_cycles,
        timeout=timeout,
        progress=progress,
        output=output,
        resume=resume,
        controller=controller,
        plan=plan,
        launches=launches,
        power=power,
        clock=clock,
    )
    trace = open_trace(path, outside) if outside else open_trace(path)
    every = trace.kernels
    chosen = select(every, kernels)
    if launches is not None:
        if plan is not None:
            raise SelectionError("a plan chooses what is timed: leave out launches")
        wanted_launches = frozenset(select(every, launches))
        chosen = [index for index in chosen if index in wanted_launches]
        if not chosen:
            raise SelectionError(
                f"launches {canonical(launches)!r} and kernels {canonical(kernels)!r} share none"
            )
    if isinstance(plan, Collection):
        chosen = positions(plan, chosen)
        plan = None
    elif plan is not None:
        chosen = planned(plan, [kernel.name for kernel in every], chosen)
    with session.reporter.showing() as report:
        _read([every[index] for index in chosen], report, session.limits)
    session.begin(
        os.fspath(path),
        _input_hash(trace, chosen),
        wanted=chosen,
        kernels=canonical(kernels),
        warnings=lambda: trace.warnings,
    )
    pending = [index for index in chosen if index not in session.launches]
    # Where launches run one after the other, a bound on those that are queued saves memory and changes
    # nothing: each starts when the one before it ends, whenever it was queued.
    streams = len({every[index].stream for index in pending})
    one_by_one = session.native_spec["launch"]["max_concurrent_kernels"] == 1 or streams <= 1
    try:
        session.run(
            _launches(session, trace, pending),
            launches=len(pending),
            instructions=sum(every[index].counts["instructions"] for index in pending),
            ahead=LOOK_AHEAD if one_by_one else None,
        )
        with deferred_stop():
            result = session.result()
            session.save(result)
    except LimitReached as stop:
        result = stop.result
        session.save(result)
    except KeyboardInterrupt as stop:
        found = stop.result if isinstance(stop, Interrupted) else session.result("interrupted")
        session.save(found)
        raise Interrupted(found, number_of(stop)) from None
    except ResultError:  # a finished launch could not be saved
        raise
    except SimtError as error:  # a deadlock, a damaged trace, a launch that no SM can hold
        found = error.result if isinstance(error, SimulationError) else session.result("failed")
        if found.launches:
            session.save(found)
        if isinstance(error, SimulationError):
            raise
        raise SimulationError(str(error), found) from error
    if controller is None and plan is None:
        return result
    from simt.control.accuracy import choose, verification, with_accuracy

    verified = None
    try:
        if verify and (wanted := choose(result, verify, seed)):
            full = simulate(
                path,
                gpu,
                set=set,
                kernels=wanted,
                threads=threads,
                window=window,
                progress=progress,
                policies=policies,
                outside=outside,
                timeout=session.limits.timeout_left,
            )
            if full.status == "timeout":
                result = replace(result, status=full.status)
            verified = verification(result, full, verify, seed)
    except KeyboardInterrupt as stop:
        raise Interrupted(result, number_of(stop)) from None
    result = with_accuracy(result, plan, verified)
    session.save(result)
    return result


def _read(kernels: list[Kernel], report: Callable[[Progress], None], limits: Limits) -> None:
    """Converts what is not in a trace store yet. Raises SimtError where the time is over before."""
    start = time.monotonic()
    for i, kernel in enumerate(kernels):
        size = max(1, kernel.path.stat().st_size)

        def advance(position: int, i: int = i, size: int = size, kernel: Kernel = kernel) -> None:
            if limits.late():
                raise SimtError(
                    f"{kernel.path}: {limits.text('timeout')} and this trace is not read yet; "
                    f"{i} of {len(kernels)} are, and are kept in the cache"
                )
            fraction = (i + min(1.0, position / size)) / len(kernels)
            report(Progress("reading", fraction, time.monotonic() - start, i, len(kernels)))

        kernel.stored(advance)


def _input_hash(trace: Trace, chosen: list[int]) -> str:
    """SHA-256 over the copies and the chosen launches, in order."""
    from simt.trace import Copy

    digest, index, wanted = hashlib.sha256(), 0, frozenset(chosen)
    for command in trace.commands:
        if isinstance(command, Copy):
            digest.update(f"copy {command.address} {command.bytes}\n".encode())
            continue
        if index in wanted:
            digest.update(f"kernel {command.digest}\n".encode())
        index += 1
    return digest.hexdigest()


def _launches(session: Session, trace: Trace, pending: list[int]) -> Iterator[QueuedLaunch]:
    """The pending launches, in order; copies before a launch are made when it is asked for."""
    from simt.trace import Copy

    every, wanted, index = trace.kernels, frozenset(pending), 0
    followed = _followed(session, every, pending) if session.planned else {}
    ids = [every[i].id for i in pending]
    # The engine calls launches by their id, as its messages do, unless the input gives two the same one.
    numbers = dict(zip(pending, ids if len(frozenset(ids)) == len(ids) else pending, strict=True))
    for command in trace.commands:
        if isinstance(command, Copy):
            session.copy_from_host(command.address, command.bytes)
            continue
        if index in wanted:
            kernel = every[index]
            facts = Facts(
                index=index,
                id=kernel.id,
                name=kernel.name,
                grid=kernel.grid,
                block=kernel.block,
                shared_bytes=kernel.shared_bytes,
                registers=kernel.registers,
                sm_version=kernel.sm_version,
            )
            instructions = kernel.counts["instructions"]
            yield QueuedLaunch(facts, command.source(), numbers[index], warp_instructions=instructions)
        elif index in followed:
            session.follow(command.source(), followed[index])
        index += 1


def _followed(session: Session, every: Sequence[Kernel], pending: Collection[int]) -> dict[int, int]:
    """Launches that a plan leaves out, and whose addresses fill the L2 for the next one that it simulates:
    index -> first CTA. Of a long stretch only its end matters: enough instructions to fill the L2 even if few
    of them access memory."""
    found: dict[int, int] = {}
    wanted = frozenset(pending)
    for index in pending:
        left = _FILLING * session.spec.l2_lines
        for before in range(index - 1, -1, -1):
            if before in wanted or left <= 0:
                break
            instructions, ctas = every[before].counts["instructions"], every[before].counts["ctas"]
            found[before] = max(0, ctas - math.ceil(ctas * left / max(1, instructions)))
            left -= instructions
    return found
