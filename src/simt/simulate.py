"""Input x Spec -> Result."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from simt.errors import Interrupted, LimitReached, ResultError, SelectionError, SimtError, SimulationError
from simt.options import TraceOptions, keywords_of
from simt.progress import Progress
from simt.result import Result
from simt.run.facts import Facts
from simt.run.interruption import Limits, deferred_stop, number_of
from simt.run.planned import numbered, planned
from simt.run.session import QueuedLaunch, Session
from simt.selection import canonical, select

if TYPE_CHECKING:
    from simt.trace import Trace, TraceKernel

LOOK_AHEAD = 4
_FILLING = 16  # warp instructions for each line of the L2, which fill it


@keywords_of(TraceOptions)
def simulate(path: str | os.PathLike[str], options: TraceOptions) -> Result:
    """Simulates the launches of a trace on a GPU and returns their counters.

    path: a `kernelslist.g`, a directory that contains one, a kernel trace, or a `.simt` store.
    {options}

    Launches have the numbers that the trace gives them; those of a plan are counted from 1, among the trace's
    kernels or, where the plan has as many, among all of its launches.

    Raises SimtError on bad input and if `output` holds an unfinished run that is not to be resumed;
    SimulationError if the simulation cannot continue (DeadlockError if the simulated machine is deadlocked);
    and Interrupted (a KeyboardInterrupt) on Ctrl-C. The last two carry the Result with the launches that had
    finished.
    """
    from simt.trace import open_trace

    session = Session(options.gpu, options)
    trace = open_trace(path, options.outside) if options.outside else open_trace(path)
    plan = options.plan
    every = trace.kernels
    chosen = select(every, options.kernels)
    if options.launches is not None:
        if plan is not None:
            raise SelectionError("a plan chooses what is timed: leave out launches")
        wanted_launches = frozenset(select(every, options.launches, "launches"))
        chosen = [index for index in chosen if index in wanted_launches]
        if not chosen:
            launches, kernels = canonical(options.launches), canonical(options.kernels)
            raise SelectionError(f"launches {launches!r} and kernels {kernels!r} share none")
    if isinstance(plan, Collection):
        chosen = numbered(plan, chosen)
        plan = None
    elif plan is not None:
        chosen = planned(plan, [kernel.name for kernel in every], chosen)
    with session.reporter.showing() as report:
        _read([every[index] for index in chosen], report, session.limits)
    session.begin(
        os.fspath(path),
        _input_hash(trace, chosen),
        wanted=chosen,
        kernels=canonical(options.kernels),
        warnings=lambda: trace.warnings,
    )
    pending = [index for index in chosen if index not in session.record.launches]
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
            session.record.save(result)
    except LimitReached as stop:
        result = stop.result
        session.record.save(result)
    except KeyboardInterrupt as stop:
        found = stop.result if isinstance(stop, Interrupted) else session.result("interrupted")
        session.record.save(found)
        raise Interrupted(found, number_of(stop)) from None
    except ResultError:  # a finished launch could not be saved
        raise
    except SimtError as error:  # a deadlock, a damaged trace, a launch that no SM can hold
        found = error.result if isinstance(error, SimulationError) else session.result("failed")
        if found.launches:
            session.record.save(found)
        if isinstance(error, SimulationError):
            raise
        raise SimulationError(str(error), found) from error
    if options.controller is None and plan is None:
        return result
    from simt.control.accuracy import choose, verification, with_accuracy

    verified = None
    try:
        if options.verify and (wanted := choose(result, options.verify, options.seed)):
            again = options.in_full()
            full = simulate(
                path, **replace(again, kernels=wanted, timeout=session.limits.timeout_left).keywords()
            )
            if full.status == "timeout":
                result = replace(result, status=full.status)
            verified = verification(result, full, options.verify, options.seed)
    except KeyboardInterrupt as stop:
        raise Interrupted(result, number_of(stop)) from None
    result = with_accuracy(result, plan, verified)
    session.record.save(result)
    return result


def _read(kernels: list[TraceKernel], report: Callable[[Progress], None], limits: Limits) -> None:
    """Converts what is not in a trace store yet. Raises SimtError where the time is over before."""
    start = time.monotonic()
    for i, kernel in enumerate(kernels):
        size = max(1, kernel.path.stat().st_size)

        def advance(position: int, i: int = i, size: int = size, kernel: TraceKernel = kernel) -> None:
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
    special = session.spec.special_opcodes
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
            yield QueuedLaunch(
                facts, command.source(special=special), numbers[index], warp_instructions=instructions
            )
        elif index in followed:
            session.follow(command.source(special=special), followed[index])
        index += 1


def _followed(session: Session, every: Sequence[TraceKernel], pending: Collection[int]) -> dict[int, int]:
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
