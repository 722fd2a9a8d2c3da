"""Checks for controllers, including user-written ones."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from simt.control.controller import Controller
from simt.errors import SimtError
from simt.methods import clone
from simt.methods.checks import check_parameters, expect
from simt.result import LaunchResult, Result

T = TypeVar("T")
_GPU: dict[str, Any] = {"gpu": "a100", "set": {"sm.count": 2, "sm.max_ctas": 4}}
_LAUNCHES = ((80, 8), (80, 8), (1, 8), (8, 30), (24, 3))  # blocks and rounds
_THREADS = 64
_PTX = """
.version 7.0
.target sm_70
.address_size 64
// Each thread goes over its own number in memory: rounds + (block & 3) times.
.visible .entry work(.param .u64 values, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %a<4>;
  ld.param.u64 %a1, [values];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mad.wide.u32 %a2, %r5, 4, %a1;
  and.b32 %r6, %r2, 3;
  add.u32 %r1, %r1, %r6;
again:
  ld.global.u32 %r7, [%a2];
  mad.lo.u32 %r7, %r7, 3, %r5;
  st.global.u32 [%a2], %r7;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}
"""


def check_controller(controller: Controller) -> None:
    """Checks what every controller must satisfy. Raises AssertionError with the violated condition.

    controller: with the parameters to be checked; it is cloned, not used.

    The parameters survive `clone` and are not changed by a run; invalid ones are refused with a SimtError
    when a run starts. The checks simulate a small program and a trace: decisions are repeatable, also for a
    clone, for any number of threads and any window, and in concurrent launches; the program's values equal
    those of a full simulation; results do not change until a launch is cut short; a launch that is cut short
    has a reason, and each counter has a total or a reason why it has none.
    """
    check_parameters(controller, lambda one: one.start())
    full, values = _program(None)
    used = clone(controller)
    before = repr(used)
    found, computed = _tried("a program", lambda: _program(used))
    expect(repr(used) == before, f"a run changes the parameters: {before} became {used!r}")
    _check_launches(found, full)
    expect(bool((computed == values).all()), "a program's values are not those of a full simulation")
    again, _ = _tried("a second run", lambda: _program(used))
    expect(
        _plain(again) == _plain(found),
        "a second run decides differently: `start` must discard the state of the first",
    )
    others: dict[str, dict[str, Any]] = {
        "a clone": {},
        "2 threads": {"threads": 2},
        "a window of 1 cycle": {"window": 1},
    }
    for what, options in others.items():
        other, computed = _tried(what, partial(_program, clone(controller), **options))
        expect(_plain(other) == _plain(found), f"{what}: results differ from the first run")
        expect(bool((computed == values).all()), f"{what}: values differ from the first run")
    _tried("launches at the same time", lambda: _program(clone(controller), streams=2))
    with tempfile.TemporaryDirectory(prefix="simt-check-") as folder:
        _check_launches(*_traces(Path(folder), controller))


def _tried(what: str, run: Callable[[], T]) -> T:
    try:
        return run()
    except SimtError as error:
        raise AssertionError(f"{what}: {error}") from error


def _program(
    controller: Controller | None, streams: int = 0, **options: Any
) -> tuple[Result, npt.NDArray[np.uint32]]:
    """Simulates five launches of one kernel. streams: number of streams to use; 0: one launch after
    another."""
    from simt.gpu import GPU

    gpu = GPU(**_GPU, controller=controller, **options)
    kernel, array = gpu.load(_PTX)["work"], gpu.zeros(80 * _THREADS, np.uint32)
    lanes: list[Any] = [gpu.stream() for _ in range(streams)] or [None]
    for i, (blocks, rounds) in enumerate(_LAUNCHES):
        kernel[blocks, _THREADS](array, rounds, stream=lanes[i % len(lanes)])
    return gpu.result(), array.numpy()


def _traces(folder: Path, controller: Controller) -> tuple[Result, Result]:
    """Simulates a trace with the controller and in full."""
    from simt.simulate import simulate
    from simt.trace.generate import generate

    path = generate(["gemm", "gather"], folder, sm=80, size=64, compression="none").parent
    sampled = _tried("a trace", lambda: simulate(path, **_GPU, controller=clone(controller)))
    return sampled, simulate(path, **_GPU)


def _check_launches(found: Result, full: Result) -> None:
    cut = False
    for launch, truth in zip(found.launches, full.launches, strict=True):
        sampled, what = launch.sampled, f"launch {launch.id} ({launch.name})"
        expect(sampled is not None, f"{what}: there is no record of what was simulated")
        assert sampled is not None
        cut = cut or sampled.decision != "full"
        if not cut:
            expect(
                replace(launch, sampled=None).to_json(detail=True) == truth.to_json(detail=True),
                f"{what}: simulated in full, but its counters differ from those without a controller",
            )
        if sampled.decision != "full":
            expect(bool(sampled.reason), f"{what}: {sampled.decision} without a reason")
            _check_totals(what, launch)


def _check_totals(what: str, launch: LaunchResult) -> None:
    assert launch.sampled is not None
    ctas = math.prod(launch.grid)
    found = launch.engine["ctas"]
    expect(found == ctas, f"{what}: {found} CTAs in the projection of a grid of {ctas}")
    for name, value in launch.engine.items():
        if math.isnan(value):
            expect(name in launch.sampled.unprojected, f"{what}: {name} has no total and no reason for it")
        else:
            expect(math.isfinite(value) and value >= 0, f"{what}: {name} is projected to {value}")


def _plain(result: Result) -> list[str]:
    """All launches as text, since NaN does not equal itself."""
    return [repr(launch.to_json(detail=True)) for launch in result.launches]
