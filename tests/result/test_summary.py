"""The sentences that tell where the time goes: every class, at its threshold and just below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import simt
from simt.result import Result, sentences
from simt.result.summary import bottleneck
from support.fake_gpu import cache_table, installed
from support.launches import MACHINE, launch

# A launch of 4 CTAs has a body of 4000 core cycles: 2000 DRAM cycles on 8 channels, 4000 cycles of 16 L2
# slices, 16000 SM cycles of 4 schedulers. Without `changes`, nothing is close to a limit.
DRAM, L2, SM, ISSUE = 16_000, 64_000, 16_000, 64_000


def stalls(**shares: int) -> dict[str, list[int]]:
    return {"selected": [640] * 4} | {reason: [cycles] * 4 for reason, cycles in shares.items()}


def issuing(n: int) -> dict[str, Any]:
    return {"warp_instructions": n, "stalls": stalls(long_scoreboard=8000) | {"selected": [n // 4] * 4}}


def busiest(lookups: int) -> dict[str, Any]:
    return {"spread": {"l2_slice": {"lookups": [0] * 15 + [lookups], "hits": [0] * 16}}}


@pytest.mark.parametrize(
    ("changes", "kind", "figure"),
    [
        ({"launch_latency": 2250}, "launch latency", "2,250 of its 4,500 cycles"),
        ({"dram_bus_cycles": int(0.60 * DRAM)}, "DRAM bandwidth", "60%"),
        (
            {"dram_bus_cycles": int(0.59 * DRAM), "dram_pending_cycles": int(0.8 * DRAM)},
            "DRAM efficiency",
            "a row is opened every 10.0 sectors",
        ),
        ({"l2": cache_table(global_read={"hit": int(0.6 * L2)})}, "L2 bandwidth", "60%"),
        (busiest(2400) | {"sm_active_cycles": 1}, "one L2 slice", "in 60% of the time, all of them in 3%"),
        (
            {"sm_active_cycles": SM // 2 - 1},
            "idle SMs",
            "2.0 of 4 SMs have work on average; its grid has 4 CTAs",
        ),
        (
            {"shared_wavefronts": int(0.7 * SM), "shared_bank_conflicts": int(0.35 * SM)},
            "shared-memory bandwidth",
            "70% of the time, 50% of it for bank conflicts",
        ),
        (issuing(int(0.7 * ISSUE)), "issue rate", "70%"),
        ({"warp_instructions": int(0.7 * ISSUE)}, "unknown (shared SMs)", "counted for the launch that came"),
        ({"stalls": stalls(long_scoreboard=9000, wait=1000)}, "memory latency", "50% hits in the L1"),
        ({"stalls": stalls(wait=9000, barrier=1000)}, "arithmetic latency", "in 90% of the others"),
        ({"stalls": stalls(barrier=6000, wait=1000)}, "barriers", "other warps"),
        ({"stalls": stalls(no_instruction=6000)}, "instruction fetch", "100%"),
        ({"stalls": stalls(lg_throttle=6000)}, "memory pipeline", "pipeline of global and local memory"),
        ({"stalls": stalls(mio_throttle=6000)}, "shared-memory pipeline", "pipeline of shared memory"),
        ({"stalls": stalls(a_new_reason=6000)}, "a new reason", "a new reason"),
        ({"stalls": {}}, "nothing", "no scheduler cycle is lost"),
    ],
)
def test_classes(changes: dict[str, Any], kind: str, figure: str) -> None:
    found = bottleneck(launch(ctas=4, **changes))
    assert found.kind == kind
    assert figure in found.text


@pytest.mark.parametrize(
    "changes",
    [
        busiest(0) | {"launch_latency": 2249},
        {"dram_bus_cycles": int(0.59 * DRAM)},
        {"dram_bus_cycles": int(0.59 * DRAM), "dram_pending_cycles": int(0.79 * DRAM)},
        {"dram_bus_cycles": int(0.29 * DRAM), "dram_pending_cycles": int(0.9 * DRAM)},
        {"l2": cache_table(global_read={"hit": int(0.6 * L2) - 1})},
        busiest(2399),
        {"sm_active_cycles": SM // 2},
        {"shared_wavefronts": int(0.69 * SM)},
        issuing(int(0.69 * ISSUE)),
    ],
)
def test_just_below_the_threshold_it_is_latency(changes: dict[str, Any]) -> None:
    assert bottleneck(launch(ctas=4, **changes)).kind == "memory latency"


@pytest.mark.parametrize("instructions", [int(0.7 * ISSUE), int(1.1 * ISSUE)])
def test_schedulers_that_issue_one_or_two_instructions_a_cycle(instructions: int) -> None:
    changes = issuing(int(0.7 * ISSUE)) | {"warp_instructions": instructions}
    found = bottleneck(replace(launch(ctas=4, **changes), machine=replace(MACHINE, issue_width=2)))
    assert (found.kind, found.text) == ("issue rate", "the schedulers issue in 70% of their cycles")


@pytest.mark.parametrize(("opcode", "kind"), [("HMMA.884.F32", "tensor cores"), ("DFMA", "arithmetic units")])
def test_a_busy_unit_is_named_by_its_opcode(opcode: str, kind: str) -> None:
    pc = {
        "pc": [0, 16],
        "opcode": ["LDG.E", opcode],
        "source_line": [0, 0],
        "issued": [1, 1],
        "sample_interval": 16,
        "stalled": {"math_pipe_throttle": [1, 50], "selected": [9, 9]},
    }
    found = bottleneck(launch(ctas=4, stalls=stalls(math_pipe_throttle=6000, wait=100), pc=pc))
    assert found.kind == kind
    assert opcode in found.text


def result_of(*launches: simt.LaunchResult) -> Result:
    with installed():
        provenance = simt.simulate("input").provenance
    return Result(launches, MACHINE, provenance)


def test_sentences_weigh_launches_by_cycles() -> None:
    slow = launch(0, "slow", ctas=8, dram_bus_cycles=20_000)
    fast = launch(1, "fast", ctas=1, launch_latency=1200, start=8500)
    said = sentences(result_of(slow, fast))
    assert said[0] == (
        "Of 10,000 cycles, 85% in 1 launch bound by DRAM bandwidth, 15% in 1 launch bound by launch latency."
    )
    assert said[1].startswith("slow (launch 1) is bound by DRAM bandwidth: the DRAM bus moves data in 62% of")
    assert said[2] == (
        "Its warps wait longest at FFMA at 0x10 (line 13): 96% of their waiting, mostly long_scoreboard."
    )


def test_sentences_of_one_kind_one_launch_and_none() -> None:
    assert sentences(result_of(launch(0), launch(1, start=4500)))[0] == (
        "All 2 launches (9,000 cycles) are bound by memory latency."
    )
    single = sentences(result_of(launch(0, pc={})))
    assert single[-1] == "Launch latency is 11% of its time."
    assert sentences(result_of()) == []
