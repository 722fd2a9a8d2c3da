"""Constant caches: hits and misses to the cycle, capacity, and stalls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.cuda import PtxModule
from simt.errors import SpecError
from simt.spec import load_spec
from simt.trace import open_trace
from simt.trace.writer import Warp
from support.tiny import GLOBAL, cycles, distance, run, write_kernel

HIT, MISS, LINE, LINES, WAYS, SETS = 26, 79, 64, 32, 4, 8
"""Of qv100: cycles of a load that hits, further ones of a miss, the cache's lines (2 KB)."""
# The only misses are those of constants.
FETCHED = {"sm.front_end.instruction_cache.perfect": True}
INTERVAL = 2  # of the port that the sub-cores share
PIPE = 8  # cycles for which a load takes the pipe of its sub-core


def load(w: Warp, *addresses: int) -> None:
    """A load that needs the last one's result, with one address for all lanes or one per lane."""
    lanes = [addresses[i % len(addresses)] for i in range(32)]
    w.memory("LDC", lanes, 4, 8, (8,))


def record_of(folder: Path, warps: Sequence[Warp], overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    place = write_kernel(folder / str(len(list(folder.iterdir()))), [list(warps)])
    return run(place, "qv100", {**FETCHED, **(overrides or {})})[0]


def lasts(folder: Path, addresses: Sequence[int], overrides: dict[str, Any] | None = None) -> int:
    """Cycles of a warp that loads from one address after another."""
    warp = Warp()
    for address in addresses:
        load(warp, address)
    record = record_of(folder, [warp], overrides)
    return int(record["end_cycle"] - record["start_cycle"] - record["launch_latency"])


@pytest.mark.parametrize("latency", [HIT, 41])
def test_a_load_that_hits_takes_the_latency(latency: int, tmp_path: Path) -> None:
    found = distance(tmp_path, lambda w, i: load(w, GLOBAL), "qv100", {"constant_cache.latency": latency})
    assert found == latency


@pytest.mark.parametrize("miss", [1, MISS])
def test_a_miss_takes_longer_by_what_the_l1_instruction_cache_is_away(miss: int, tmp_path: Path) -> None:
    """The second half of a 128-byte line is present once the first has arrived from the L2."""
    setting = {"constant_cache.miss_latency": miss}
    first = lasts(tmp_path, [GLOBAL, GLOBAL], setting)
    assert lasts(tmp_path, [GLOBAL, GLOBAL + LINE - 4], setting) == first
    assert lasts(tmp_path, [GLOBAL, GLOBAL + LINE], setting) == first + miss


@pytest.mark.parametrize("lines", [1, LINES - 1, LINES])
def test_what_fits_is_found_again(lines: int, tmp_path: Path) -> None:
    walk = [GLOBAL + LINE * i for i in range(lines)]
    assert lasts(tmp_path, walk * 3) - lasts(tmp_path, walk * 2) == lines * HIT


@pytest.mark.parametrize("beyond", [1, 2, SETS])
def test_a_line_too_many_is_missed_by_its_set(beyond: int, tmp_path: Path) -> None:
    """Each further line puts five lines into a set of four ways; with oldest-first eviction all miss."""
    lines = LINES + beyond
    walk = [GLOBAL + LINE * i for i in range(lines)]
    expected = lines * HIT + beyond * (WAYS + 1) * MISS
    assert lasts(tmp_path, walk * 3) - lasts(tmp_path, walk * 2) == expected


def test_levels_are_counted(tmp_path: Path) -> None:
    warp = Warp()
    for address in (GLOBAL, GLOBAL, GLOBAL + LINE, GLOBAL + 2 * LINE, GLOBAL + 2 * LINE + 4):
        load(warp, address)
    record = record_of(tmp_path, [warp])
    counters = record["counters"]
    assert (counters["constant_cache_hits"], counters["constant_cache_misses"]) == (2, 3)
    assert (counters["constant_l1_hits"], counters["constant_l1_misses"]) == (1, 2)
    assert sum(record["l2"]["constant_read"].values()) == 2 * 128 // 32


@pytest.mark.parametrize("different", [1, 2, 5, 16, 32])
def test_lanes_with_other_addresses_take_turns(different: int, tmp_path: Path) -> None:
    addresses = [GLOBAL + 4 * i for i in range(different)]
    found = distance(tmp_path, lambda w, i: load(w, *addresses), "qv100", FETCHED)
    # A dependent load waits for the last lane's value.
    assert found == HIT + INTERVAL * (different - 1)


@pytest.mark.parametrize("interval", [1, 2, 5])
@pytest.mark.parametrize("warps", [1, 2, 4, 7])
def test_all_warps_of_an_sm_share_one_port(interval: int, warps: int, tmp_path: Path) -> None:
    """Independent loads, also of one address: the port takes one address after another, of any sub-core."""

    def cycles_of(different: int, count: int) -> int:
        warp = Warp()
        for i in range(count):
            warp.memory("LDC", [GLOBAL + 4 * (lane % different) for lane in range(32)], 4, 16 + i % 32, (8,))
        record = record_of(tmp_path, [warp] * warps, {"constant_cache.access_interval": interval})
        return int(record["end_cycle"])

    for different in (1, 8):
        last = (cycles_of(different, 96) - cycles_of(different, 64)) / 32
        alone = PIPE * -(-warps // 4)  # a sub-core's own pipe
        assert last == pytest.approx(max(alone, interval * different * warps), rel=0.05)


@pytest.mark.parametrize(("opcode", "width"), [("LDC", 4), ("LDC.64", 8)])
@pytest.mark.parametrize("gpu", ["qv100", "titanv"])
def test_a_volta_sub_core_loads_a_constant_in_eight_cycles(
    gpu: str, opcode: str, width: int, tmp_path: Path
) -> None:
    """As ptxas has it, of any width, while special functions and integers go on in their own pipes."""

    def loads(w: Warp, i: int) -> None:
        w.memory(opcode, [GLOBAL] * 32, width, 16 + 2 * (i % 16), (8,))

    def loads_and_work(w: Warp, i: int) -> None:
        loads(w, i)
        w.op("MUFU.SIN", 64 + i % 16, (9,))
        w.op("IADD3", 96 + i % 16, (9, 9, 9))

    for append in (loads, loads_and_work):
        assert distance(tmp_path, append, gpu, FETCHED) == pytest.approx(PIPE, rel=0.01)
    # On GPUs without this pipe they are integer instructions.
    assert distance(tmp_path, loads, "a100", FETCHED) == pytest.approx(2, rel=0.01)


def test_a_load_waits_for_the_last_of_its_lines(tmp_path: Path) -> None:
    """Lanes in two lines, one of which is present, wait as long as for the missing line alone."""
    near, far = GLOBAL, GLOBAL + LINE

    def of(addresses: Sequence[int]) -> int:
        warp = Warp()
        load(warp, near)
        load(warp, *addresses)
        record = record_of(tmp_path, [warp])
        return int(record["end_cycle"])

    assert of([near, far]) == of([far]) == of([near]) + MISS


def test_loads_without_addresses_hit(tmp_path: Path) -> None:
    """As recorded in real traces."""
    found = distance(tmp_path, lambda w, i: w.op("LDC", 8, (8,)), "qv100")
    assert found == HIT
    warp = Warp()
    warp.op("LDC", 8, (8,))
    counters = record_of(tmp_path, [warp])["counters"]
    assert all(value == 0 for name, value in counters.items() if name.startswith("constant_"))


def test_perfect_caches_know_no_addresses(tmp_path: Path) -> None:
    perfect = {"constant_cache.perfect": True}
    many = [GLOBAL + 4096 * i for i in range(32)]
    assert distance(tmp_path, lambda w, i: load(w, *many), "qv100", perfect) == HIT
    assert lasts(tmp_path, many, perfect) == lasts(tmp_path, [GLOBAL] * 32, perfect)
    warp = Warp()
    load(warp, *many)
    with_addresses = write_kernel(tmp_path / "with", [[warp]])
    warp = Warp()
    warp.op("LDC", 8, (8,))
    without = write_kernel(tmp_path / "without", [[warp]])
    for gpu in ("qv100-accelsim", "titan-accelsim"):
        assert cycles(with_addresses, gpu) == cycles(without, gpu)


@pytest.mark.parametrize("limit", ["mshr_entries", "mshr_merge", "miss_queue"])
def test_a_full_cache_is_asked_again(limit: str, tmp_path: Path) -> None:
    """Each lookup counts once, and every load completes."""
    warps = []
    for w in range(16):
        warp = Warp()
        for i in range(4):
            load(warp, *(GLOBAL + 192 * (i + 5 * w + lane) for lane in range(32)))
        warps.append(warp)
    smallest = 2 if limit == "miss_queue" else 1
    # A constant cache's misses leave at once.
    fields = (
        (f"{BEHIND}_{limit}",)
        if limit == "miss_queue"
        else (f"constant_cache.l1.{limit}", f"{BEHIND}.{limit}")
    )
    records = [
        record_of(
            tmp_path,
            warps,
            # With real memory, a different order of requests can be faster because of DRAM rows.
            {"dram.simple": True, **dict.fromkeys(fields, value)},
        )
        for value in (smallest, 64)
    ]
    for record in records:
        counters = record["counters"]
        assert counters["constant_cache_hits"] + counters["constant_cache_misses"] == 16 * 4 * 32
    assert records[0]["end_cycle"] > records[1]["end_cycle"]


BEHIND = "sm.front_end.instruction_cache.l1"

STORE = """.version 8.7
.target sm_70
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], 5;
  st.global.u32 [%rd2+4], %r1;
  ret;
}
"""


def execute(ptx: str, name: str, *arguments: Any, **settings: Any) -> Any:
    gpu = simt.GPU("qv100", code="ptx", set={**FETCHED, **settings})
    out = gpu.zeros(64, np.uint32)
    return gpu.load(PtxModule.from_text(ptx, f"{name}.ptx"))[name][1, 32](out, *arguments)


@pytest.mark.parametrize("miss", [1, 2, MISS])
def test_an_operand_that_is_missing_delays_issue(miss: int) -> None:
    """The first store reads its address from the constant bank: it, and everything after it, issues that much
    later.
    """
    perfect = execute(STORE, "store", np.uint32(3), **{"constant_cache.perfect": True})
    real = execute(STORE, "store", np.uint32(3), **{"constant_cache.miss_latency": miss})
    # The scheduler issues nothing for four cycles, even if the operand arrives earlier.
    assert real.cycles - perfect.cycles == max(miss, 4)
    assert real.counters["simt__constant_cache_misses.sum"] == 1
    assert real.counters["simt__constant_cache_hits.sum"] >= 2  # the same instruction, and the other one


def test_operands_in_another_line_miss_again() -> None:
    """c[0x0][0x160], where parameters begin, is in the middle of a line, which holds 32 bytes of them."""
    for count, misses in ((4, 1), (5, 2), (12, 2), (13, 3)):
        parameters = ", ".join(f".param .u64 p{i}" for i in range(count))
        loads = " ".join(f"ld.param.u64 %rd{i}, [p{i}];" for i in range(count))
        sums = " ".join(f"add.s64 %rd40, %rd40, %rd{i};" for i in range(1, count))
        ptx = f""".version 8.7
.target sm_70
.address_size 64
.visible .entry sum({parameters}) {{
  .reg .b64 %rd<48>;
  {loads} mov.u64 %rd40, 0; {sums}
  st.global.u64 [%rd0], %rd40; ret;
}}
"""
        done = execute(ptx, "sum", *[np.uint64(i) for i in range(1, count)])
        assert done.counters["simt__constant_cache_misses.sum"] == misses, count


PROGRAM = """
__constant__ int table[2048];
extern "C" __global__ void gather(const int* in, int* out, int n, int scale) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  int sum = 0;
  for (int k = 0; k < 6; ++k)
    sum += scale * table[(in[i] * (k + 3)) & 2047] + table[(blockIdx.x * 37 + k) & 2047];
  if (i < n) out[i] = sum;
}
"""


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A trace of a program that reads constants at uniform and divergent addresses, and its execution."""
    gpu = simt.GPU("a100", code="ptx", set={"l2.copies_fill": False, "sm.count": 6})
    module = gpu.compile(PROGRAM)
    n = 128 * 40
    data = gpu.array(np.random.default_rng(3).integers(0, 2048, n, np.int32))
    out = gpu.zeros(n, np.int32)
    launch = module.gather[40, 128]
    timed = launch(data, out, np.int32(n), np.int32(2))
    path = tmp_path_factory.mktemp("constants") / "gather.simt"
    with gpu.trace(path):
        launch(data, out, np.int32(n), np.int32(2))
    return path, timed


SIX = {"l2.copies_fill": False, "sm.count": 6}


def test_a_trace_knows_its_constants(gathered: tuple[Path, Any]) -> None:
    path, timed = gathered
    (record,) = run(path, "a100", SIX)
    assert record["end_cycle"] - record["start_cycle"] == timed.cycles
    counters = record["counters"]
    assert counters["constant_cache_misses"] == timed.counters["simt__constant_cache_misses.sum"] > 1000
    assert counters["constant_l1_misses"] == timed.counters["simt__constant_l1_misses.sum"] > 0
    (kernel,) = (c for c in open_trace(path).commands if hasattr(c, "source"))
    operands = {s["constant_operand"] for s in kernel.source().instructions()}
    assert operands >= {None, 0x160, 0x168, 0x170, 0x174}


@pytest.mark.slow
def test_threads_and_windows_change_nothing(gathered: tuple[Path, Any]) -> None:
    reference = run(gathered[0], "a100", SIX)
    for how in ({"threads": 2}, {"threads": 4, "window": 3}, {"window": 1}):
        assert run(gathered[0], "a100", SIX, **how) == reference, how
    assert run(gathered[0], "a100", SIX, slices=lambda i: 1 + 97 * (i % 5)) == reference


def test_who_waits_for_an_operand_is_in_a_state_of_its_own(gathered: tuple[Path, Any]) -> None:
    (record,) = run(gathered[0], "a100", SIX)
    (perfect,) = run(gathered[0], "a100", {**SIX, "constant_cache.perfect": True})
    assert record["warp_stalls"]["imc_miss"] > 0 == perfect["warp_stalls"]["imc_miss"]
    # Loads of constants are of the memory pipeline's kind that shared memory is.
    assert record["warp_stalls"]["short_scoreboard"] > 0 == perfect["warp_stalls"]["short_scoreboard"]


@pytest.mark.parametrize(
    ("gpu", "changes", "reason"),
    [
        ("qv100", {"constant_cache.l1.sets": 0}, "expected a cache with perfect = false"),
        ("qv100", {"constant_cache.l1.sectored": True}, "unknown field"),
        ("qv100", {"constant_cache.latency": 0}, "at least 1"),
        ("qv100", {"constant_cache.miss_latency": 0}, "at least 1"),
        ("qv100", {"constant_cache.l1.line_bytes": 256}, "lines of at least 256"),
        ("titan", {"constant_cache.perfect": False, "constant_cache.miss_latency": 9,
                   "constant_cache.latency": 9}, "read_ports only"),
        ("r9nano", {"constant_cache.perfect": False, "constant_cache.miss_latency": 9}, "l1_shared_by"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(gpu: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        load_spec(gpu, changes)


CHASE = """
__constant__ unsigned table[32];
extern "C" __global__ void chase(unsigned different, unsigned* out) {
  unsigned at = threadIdx.x % different;
  #pragma unroll 1
  for (int i = 0; i < COUNT; ++i) at = table[at];
  out[threadIdx.x] = at;
}
"""


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_executed_programs_know_the_addresses_of_each_lane(code: Any) -> None:
    """A chain of loads, in which each lane finds its own index again."""

    def step(different: int) -> float:
        cycles = []
        for count in (32, 96):
            gpu = simt.GPU("a100", code=code, set={**FETCHED, "sm.count": 1})
            module = gpu.compile(CHASE.replace("COUNT", str(count)))
            module.variable("table", np.uint32).set(np.arange(32, dtype=np.uint32))
            out = gpu.zeros(32, np.uint32)
            done = module.chase[1, 32](np.uint32(different), out)
            assert np.array_equal(np.asarray(out), np.arange(32) % different)
            cycles.append(done.cycles)
        return (cycles[1] - cycles[0]) / 64

    one = step(1)
    for different in (2, 8, 32):
        assert step(different) - one == pytest.approx(INTERVAL * (different - 1), abs=0.5)
