"""Systematic sampling along the grid: what is left out warms the L2, and what it estimates and states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

import simt
from simt.control import GO_ON, Controller, Decision, Interval, LaunchView, Projection, Skip, Systematic
from simt.control.checks import check_controller
from simt.errors import ControlError, ParameterError
from simt.result import LaunchResult, Result
from simt.simulate import simulate
from simt.trace.writer import Warp
from support.ptx import CODE
from support.signals import view
from support.tiny import GLOBAL, dependent, write_kernel

SMALL = {"sm.count": 2, "sm.max_ctas": 4}
WAVE = 8
PTX = """
.version 7.0
.target sm_70
.address_size 64
// Each thread reads one number, works on it `rounds` times, and writes it.
.visible .entry work(.param .u64 from, .param .u64 to, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %a<4>;
  ld.param.u64 %a1, [from];
  ld.param.u64 %a2, [to];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mad.wide.u32 %a1, %r5, 4, %a1;
  mad.wide.u32 %a2, %r5, 4, %a2;
  ld.global.u32 %r6, [%a1];
again:
  mad.lo.u32 %r6, %r6, 3, %r5;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra again;
  st.global.u32 [%a2], %r6;
  ret;
}
// As a counter that each CTA takes a number from.
.visible .entry ticket(.param .u64 counter, .param .u64 to)
{
  .reg .b32 %r<4>;
  .reg .b64 %a<4>;
  ld.param.u64 %a1, [counter];
  ld.param.u64 %a2, [to];
  atom.global.add.u32 %r1, [%a1], 1;
  mul.wide.u32 %a3, %r1, 4;
  add.u64 %a2, %a2, %a3;
  st.global.u32 [%a2], %r1;
  ret;
}
// Each thread counts up what it finds in shared and local memory, which nobody has written, and waits at a
// barrier that the even threads leave out.
.visible .entry unwritten(.param .u64 to)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %a<4>;
  .shared .align 4 .b8 shared[1024];
  .local .align 4 .b8 own[16];
  ld.param.u64 %a2, [to];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r3, %r2, %r3, %r1;
  mul.wide.u32 %a3, %r3, 4;
  add.u64 %a2, %a2, %a3;
  mov.u32 %r4, shared;
  shl.b32 %r5, %r1, 2;
  add.u32 %r4, %r4, %r5;
  ld.shared.u32 %r6, [%r4];
  ld.local.u32 %r7, [own];
  add.u32 %r6, %r6, %r7;
  add.u32 %r6, %r6, 7;
  st.shared.u32 [%r4], %r6;
  st.local.u32 [own], %r6;
  and.b32 %r5, %r1, 1;
  setp.eq.u32 %p1, %r5, 0;
  @%p1 bra done;
  bar.arrive 3, 512;
done:
  st.global.u32 [%a2], %r6;
  ret;
}
"""


class LeavesOut(Controller):
    """Leaves out CTAs once, after the first interval."""

    method = "leaves-out"
    interval = 50

    def __init__(self, ctas: int = 1) -> None:
        self.ctas = ctas
        self.seen: list[Interval] = []

    def observe(self, interval: Interval) -> Decision:
        self.seen.append(interval)
        return Skip(self.ctas, "a test") if len(self.seen) == 1 else GO_ON

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        return Projection(now.end, dict(now.counters))


def load(address: int, store: bool = False, times: int = 1) -> Warp:
    """A warp that reads, or writes, 32 words from there, and from where these end, and so on."""
    warp = Warp()
    for line in range(address, address + 128 * times, 128):
        lanes = [line + 4 * i for i in range(32)]
        if store:
            warp.memory("STG.E", lanes, 4, None, (2, 9))
        else:
            warp.memory("LDG.E", lanes, 4, 4, (2,))
    return warp


def only_launch(result: Result) -> LaunchResult:
    (launch,) = result.launches
    return launch


def hits(launch: LaunchResult) -> int:
    return launch.l2["global_read"]["hit"]


@pytest.mark.parametrize("store", [False, True])
def test_ctas_left_out_put_their_data_into_the_l2(tmp_path: Path, store: bool) -> None:
    """One SM that holds one CTA: the third CTA reads what the second has read or written, whether that one is
    simulated or left out; the fourth reads what nobody has touched."""
    one = {"sm.count": 1, "sm.max_ctas": 1, "l1.bypass_global": True}
    ctas = [[dependent(200)], [load(GLOBAL, store)], [load(GLOBAL)], [load(GLOBAL + 4096)]]
    folder = write_kernel(tmp_path / "t", ctas, sm=80)
    full = only_launch(simulate(folder, "a100", set=one))
    found = only_launch(simulate(folder, "a100", set=one, controller=LeavesOut()))
    assert found.sampled is not None and found.sampled.ctas == 3
    assert hits(full) == hits(found) == 4


def test_only_sectors_that_were_accessed_are_in_the_l2(tmp_path: Path) -> None:
    """The CTA left out reads the second and the last sector of a line, the next one reads all four."""
    one = {"sm.count": 1, "sm.max_ctas": 1, "l1.bypass_global": True}
    parts = Warp()
    parts.memory("LDG.E", [GLOBAL + (32 if i < 16 else 96) + i % 8 * 4 for i in range(32)], 4, 4, (2,))
    folder = write_kernel(tmp_path / "t", [[dependent(200)], [parts], [load(GLOBAL)]], sm=80)
    full = only_launch(simulate(folder, "a100", set=one))
    found = only_launch(simulate(folder, "a100", set=one, controller=LeavesOut()))
    assert hits(full) == hits(found) == 2


@pytest.mark.parametrize("lanes", [32, 64])
def test_observations_tell_what_was_left_out(tmp_path: Path, lanes: int) -> None:
    ctas = [[dependent(200)], [load(GLOBAL)] * 2, [load(GLOBAL, store=True)], [dependent(100)]]
    folder = write_kernel(tmp_path / "t", ctas, sm=80)
    controller = LeavesOut(2)
    gpu = "a100" if lanes == 32 else "mi100"
    simulate(folder, gpu, set={"sm.count": 1, "sm.max_ctas": 1}, controller=controller)
    before, after = controller.seen[0], controller.seen[-1]
    assert (before.skipped_ctas, before.skipped_warp_instructions) == (0, 0)
    # Three warps, or a pair and one, of a memory access and EXIT; four sectors are read, and those written
    # stay in the L2.
    assert (after.skipped_ctas, after.skipped_warp_instructions) == (2, 6 if lanes == 32 else 4)
    assert after.skipped_thread_instructions == 6 * 32
    assert after.skipped_dram_sectors == 4


def test_copies_in_another_part_of_the_l2_write_back_what_they_replace(tmp_path: Path) -> None:
    """One CTA writes 64 lines, 16 read 256 lines each, three times what this L2 holds. Every second one
    is placed where half of the lines are copies. In the end all that was read was read once, and all that was
    written was written back."""
    small = {"sm.count": 1, "sm.max_ctas": 1, "l2.slice.sets": 1}
    reads = [[load(GLOBAL + 128 * 256 * cta, times=256)] for cta in range(1, 17)]
    writes = [load(GLOBAL, store=True, times=64)]
    folder = write_kernel(tmp_path / "t", [[dependent(200)], writes, *reads, [dependent(100)]], sm=80)
    controller = LeavesOut(17)
    simulate(folder, "a100", set=small, controller=controller)
    assert controller.seen[-1].skipped_dram_sectors == 4 * (16 * 256 + 64)


def run(controller: Any, ctas: int = 20 * WAVE, rounds: int = 40, **options: Any) -> tuple[LaunchResult, Any]:
    gpu = simt.GPU("a100", set=SMALL, controller=controller, code=CODE, **options)
    threads = 256
    given = gpu.array(np.arange(ctas * threads, dtype=np.uint32))
    taken = gpu.zeros(ctas * threads, np.uint32)
    gpu.load(PTX)["work"][ctas, threads](given, taken, rounds)
    return only_launch(gpu.result()), taken.numpy()


def test_even_launches_are_estimated_within_the_interval() -> None:
    halves = []
    for rounds in (120, 140, 240):
        full, values = run(None, ctas=72 * WAVE, rounds=rounds)
        found, computed = run("systematic", ctas=72 * WAVE, rounds=rounds)
        sampled = found.sampled
        assert sampled is not None and sampled.decision == "skip"
        assert sampled.ctas <= full.engine["ctas"] * 0.3
        assert (sampled.total_ctas - sampled.ctas) % WAVE == 0
        half = sampled.half_widths["cycles"]
        halves.append(half)
        assert abs(found.cycles / full.cycles - 1) <= half
        assert f"± {half:.2%}" in sampled.reason
        assert (computed == values).all()
        assert found.warp_instructions == full.warp_instructions
        for name in ("global_load_requests", "global_store_sectors", "dram_reads"):
            allowed = sampled.half_widths[name] * found.engine[name] + 1
            assert abs(found.engine[name] - full.engine[name]) <= allowed, name
    assert all(half > 0 for half in halves) and mean(halves) < 0.05


def test_ctas_left_out_find_nothing_of_each_other() -> None:
    """They are executed in the memory of finished ones."""
    values = []
    for controller in (None, "systematic"):
        gpu = simt.GPU("a100", set=SMALL, controller=controller)
        out = gpu.zeros(20 * WAVE * 256, np.uint32)
        gpu.load(PTX)["unwritten"][20 * WAVE, 256](out)
        values.append(out.numpy())
    sampled = only_launch(gpu.result()).sampled
    assert sampled is not None and sampled.decision == "skip"
    assert (values[0] == 7).all() and (values[1] == 7).all()


def test_observed_counters_are_a_mapping() -> None:
    controller = LeavesOut()
    run(controller, ctas=WAVE)
    first, second = controller.seen[:2]
    assert len(second.counters) == len(dict(second.counters)) == len(second.difference)
    grown = {name: n - first.counters[name] for name, n in second.counters.items()}
    assert grown == dict(second.difference) and any(grown.values())
    assert "no such counter" not in second.counters


@pytest.mark.parametrize("options", [{"threads": 2}, {"window": 1}])
def test_host_threads_and_windows_change_nothing(options: dict[str, int]) -> None:
    one, _ = run("systematic")
    other, _ = run("systematic", **options)
    assert one == other


def test_a_trace_gives_what_its_program_gives(tmp_path: Path) -> None:
    """Streams of a trace are skipped, with the same footprints."""
    write_kernel(tmp_path / "t", [[dependent(300)] * 8] * (20 * WAVE), sm=80)
    full = only_launch(simulate(tmp_path / "t", "a100", set=SMALL))
    found = only_launch(simulate(tmp_path / "t", "a100", set=SMALL, controller="systematic"))
    assert found.sampled is not None and found.sampled.decision == "skip"
    assert abs(found.cycles / full.cycles - 1) <= found.sampled.half_widths["cycles"]
    assert found.warp_instructions == full.warp_instructions
    # All its waves are the same, but eight CTAs say less than hundreds: three windows, two waves before the
    # first and half of one before the others, and the end.
    assert found.sampled.reason.startswith("3 windows")
    assert found.sampled.ctas <= 7 * WAVE


@pytest.mark.parametrize("gpu", ["mi100", "r9nano"])
def test_on_warps_of_64_lanes(gpu: str) -> None:
    how: dict[str, Any] = {"set": {"sm.count": 2, "sm.max_ctas": 4}}
    cycles = []
    for controller in (None, "systematic"):
        device = simt.GPU(gpu, controller=controller, code=CODE, **how)
        given, taken = (device.zeros(160 * 256, np.uint32) for _ in range(2))
        device.load(PTX)["work"][160, 256](given, taken, 40)
        launch = only_launch(device.result())
        cycles.append(launch.cycles)
    assert launch.sampled is not None and launch.sampled.decision == "skip"
    # These CTAs drift apart over ten waves, which no window sees: beyond the interval, 1.8 %.
    assert abs(cycles[1] / cycles[0] - 1) < 0.04


def test_short_launches_are_simulated_in_full_and_say_so() -> None:
    full, _ = run(None, ctas=4 * WAVE - 1)
    found, _ = run("systematic", ctas=4 * WAVE - 1)
    assert found.sampled is not None and found.sampled.decision == "full"
    assert "3.88 waves" in found.sampled.reason
    assert found.cycles == full.cycles


def test_clusters_are_simulated_in_full_and_say_so() -> None:
    controller = Systematic().start()
    controller.begin(view(ctas=1000, wave=10, cluster_size=2))
    assert controller.awaited_cta is None
    assert "clusters" in controller.why_full


def test_ctas_that_influence_each_other_are_all_simulated() -> None:
    gpu = simt.GPU("a100", set=SMALL, controller="systematic", code=CODE)
    counter, numbers = gpu.zeros(1, np.uint32), gpu.zeros(32 * 20 * WAVE, np.uint32)
    gpu.load(PTX)["ticket"][20 * WAVE, 32](counter, numbers)
    sampled = only_launch(gpu.result()).sampled
    assert sampled is not None and sampled.decision == "full"
    assert "influence each other" in sampled.reason


def test_what_is_asked_for_decides_how_much_is_left_out() -> None:
    """Nothing is left out for an error below the allowance for what windows do not show."""
    strict, _ = run(Systematic(error=0.0001))
    assert strict.sampled is not None and strict.sampled.decision == "full"
    assert "at the error asked for" in strict.sampled.reason


@pytest.mark.parametrize(
    "settings", [{"error": 0}, {"confidence": 1}, {"windows": 0}, {"bias": -1}], ids=lambda s: next(iter(s))
)
def test_parameters_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(settings))):
        Systematic(**settings).start()


@pytest.mark.slow
def test_it_is_a_sound_controller() -> None:
    check_controller(Systematic(error=0.2))


@pytest.mark.parametrize("name", ["photon", "photon:warp", "pkp", "systematic"])
def test_controllers_by_name_are_those_of_the_command_line(name: str) -> None:
    launch, _ = run(name, ctas=WAVE)
    assert launch.sampled is not None
    assert launch.sampled.method.startswith(name.partition(":")[0])


@pytest.mark.parametrize("make", [lambda name: simt.GPU("a100", controller=name), lambda name: run(name)])
def test_an_unknown_name_is_refused_at_once(make: Callable[[str], object]) -> None:
    with pytest.raises(ControlError, match="systematic"):
        make("systematik")
