"""Microbenchmarks recover the specification that they run on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simt.errors import SimtError
from simt.validate.device import SOURCES, SimulatedDevice
from simt.validate.microbenchmark import GROUPS, choose, microbenchmarks, run_microbenchmarks, to_json

EVERY = microbenchmarks()


def test_there_are_enough_and_each_says_what_it_determines() -> None:
    assert len(EVERY) >= 80
    assert {b.group for b in EVERY.values()} <= set(GROUPS)
    for b in EVERY.values():
        assert b.summary.endswith(".") and b.determines and b.unit


def test_every_source_says_what_it_is() -> None:
    for path in SOURCES.glob("*.cu"):
        assert path.read_text().startswith("// "), path


# Values that no GPU has, so that a match by chance would show. GPU, benchmark, changes.
CHANGES: list[tuple[str, str, dict[str, object]]] = [
    ("qv100", "fma_latency", {"sm.units.fp32.latency": 7}),
    ("qv100", "double_fma_latency", {"sm.units.fp64.latency": 13}),
    ("qv100", "mad_latency", {"sm.units.int.latency": 9}),
    ("qv100", "rsqrt_latency", {"sm.units.sfu.latency": 31}),
    ("qv100", "add_throughput", {"sm.units.int.initiation_interval": 4}),
    ("qv100", "fma_add_throughput", {"sm.units.int.count": 0}),
    ("h100", "fma_add_throughput", {"sm.units.int.initiation_interval": 4}),
    ("qv100", "double_fma_throughput", {"sm.units.fp64.initiation_interval": 16}),
    ("qv100", "constant_latency", {"constant_cache.latency": 37}),
    ("qv100", "constant_l1_size", {"constant_cache.l1.ways": 7}),
    ("h100", "constant_l1_size", {"constant_cache.l1.sets": 16}),
    ("qv100", "constant_line", {"constant_cache.l1.line_bytes": 128}),
    ("qv100", "constant_ways", {"constant_cache.l1.ways": 3}),
    ("qv100", "constant_l2_latency", {"constant_cache.miss_latency": 51}),
    ("qv100", "constant_l2_size", {"sm.front_end.instruction_cache.l1.ways": 5}),
    ("qv100", "constant_l3_latency", {"l2.latency": 99}),
    ("a100", "constant_operand_size", {"constant_cache.l1.ways": 6}),
    ("qv100", "constant_operand_latency", {"constant_cache.miss_latency": 51}),
    ("qv100", "register_banks", {"sm.register_file.banks": 16}),
    ("h100", "register_banks", {"sm.register_file.banks": 4}),
    ("qv100", "instruction_l0_size", {"sm.front_end.instruction_cache.l0_lines": 40}),
    ("qv100", "instruction_l1_latency", {"sm.front_end.instruction_cache.l1_latency": 71}),
    ("h100", "instruction_l1_latency", {"sm.front_end.instruction_cache.l1_latency": 21}),
    ("qv100", "instruction_prefetch", {"sm.front_end.instruction_cache.prefetch_lines": 3}),
    ("qv100", "instruction_l1_size", {"sm.front_end.instruction_cache.l1.ways": 9}),
    ("qv100", "instruction_l1_shared", {"sm.front_end.instruction_cache.l1.ways": 9}),
    (
        "qv100",
        "instruction_line",
        {"sm.front_end.instruction_cache.l1.line_bytes": 256},
    ),
    ("qv100", "shared_latency", {"shared_memory.latency": 41}),
    ("qv100", "shared_banks", {"shared_memory.banks": 16}),
    ("qv100", "shared_bytes_per_sm", {"shared_memory.bytes": 81920}),
    ("a100", "shared_reserved_per_cta", {"shared_memory.reserved_per_cta": 2048}),
    ("qv100", "warps_per_sm", {"sm.max_warps": 48}),
    ("qv100", "ctas_per_sm", {"sm.max_ctas": 24}),
    ("qv100", "sm_count", {"sm.count": 13}),
    ("qv100", "core_clock", {"clock.core_mhz": 1000.0}),
    ("qv100", "dispatch_latency", {"launch.dispatch_latency": 57}),
    ("a100", "dispatch_latency", {"launch.dispatch_latency": 7}),
    ("qv100", "warp_start_interval", {"launch.warp_start_interval": 13}),
    ("h100", "warp_start_interval", {"launch.warp_start_interval": 3}),
    ("qv100", "launch_latency", {"launch.kernel_latency": 777}),
    ("h100", "launch_latency", {"launch.kernel_latency": 300, "launch.cta_latency": 40}),
    ("qv100", "l1_latency", {"l1.latency": 51}),
    ("qv100", "l1_size", {"l1.unified_bytes": 114688}),
    (
        "qv100",
        "l1_size_carved",
        {"l1.carve_out_options": [0, 65536, 81920, 98304], "l1.unified_bytes": 114688},
    ),
    ("qv100", "l1_line", {"l1.cache.sectored": False, "l1.cache.line_bytes": 256, "l1.cache.sets": 2}),
    ("qv100", "l1_bandwidth_128", {"l1.banks": 2}),
    ("qv100", "l1_banks", {"l1.banks": 2}),
    ("qv100", "l1_merges", {"l1.cache.mshr_merge": 5}),
    (
        "qv100",
        "l1_store_keeps",
        {"l1.cache.write_policy": "write_evict", "l1.cache.write_allocation": "none"},
    ),
    ("qv100", "l1_store_allocates", {"l1.cache.write_allocation": "none"}),
    ("qv100", "l1_store_word_allocates", {"l1.cache.write_allocation": "fetch_on_write"}),
    ("qv100", "l2_latency", {"l2.latency": 99}),
    ("qv100", "l2_latency", {"interconnect.latency": 11}),
    ("qv100", "l2_size", {"l2.slice.sets": 16, "l2.slice.ways": 12, "l2.slice.replacement": "lru"}),
    ("qv100", "l2_slices", {"address_map.slices_per_channel": 1, "l2.slice.sets": 64}),
    (
        "qv100",
        "l2_ways",
        {
            "address_map.channels": 4,
            "l2.slice.sets": 16,
            "l2.slice.ways": 12,
            "l2.slice.replacement": "lru",
        },
    ),
    ("a100", "l1_bypass_bandwidth", {"interconnect.sm_port_sectors": 1}),
    ("qv100", "l1_bypass_bandwidth", {"clock.interconnect_mhz": 920.0}),
    ("qv100", "l2_slice_bandwidth", {"clock.l2_mhz": 1000.0}),
    ("qv100", "l2_interleave", {"address_map.channel_bit": 7}),
    (
        "qv100",
        "l2_store_allocates",
        {"l2.slice.write_policy": "write_through", "l2.slice.write_allocation": "none"},
    ),
    ("a100", "l2_store_allocates", {"l2.slice.write_allocation": "none"}),
    ("qv100", "l2_write_back", {"l2.slice.write_policy": "write_through"}),
    ("qv100", "l2_store_fetches", {"l2.slice.write_allocation": "fetch_on_write"}),
    ("qv100", "l2_copies_fill", {"l2.copies_fill": False}),
    ("h100", "l2_far_latency", {"l2.far_latency": 111}),
    ("qv100", "memory_latency", {"dram.latency": 301}),
    ("qv100", "row_hit_latency", {"dram.cl": 31}),
    ("qv100", "row_open_latency", {"dram.rcd": 20}),
    ("qv100", "row_miss_latency", {"dram.rcd": 20, "dram.rp": 24}),
    ("qv100", "row_miss_latency", {"dram.rcd": 20, "dram.rp": 24, "dram.refi": 0}),
    ("a100", "row_miss_latency", {"dram.rcd": 30}),
    ("qv100", "row_bytes", {"address_map.layout": "RRRRRRRRRRRRRBBBBCCCBCCSSSSS"}),
    ("a100", "row_bytes", {"address_map.layout": "RRRRRRRRRRRRRRRRRBBBCCBCCSSSSS"}),
    ("qv100", "row_sector_interval", {"dram.ccdl": 5}),
    ("a100", "row_sector_interval", {"dram.ccdl": 7}),
    ("h100", "wgmma_f16", {"sm.units.tensor.initiation_interval": 6}),
    ("h100", "wgmma_tf32", {"sm.units.tensor.initiation_interval": 6}),
    ("h100", "wgmma_int8", {"sm.units.tensor.initiation_interval": 6}),
]


ALL_SMS = (
    "sm_count",
    "l2_size",
    "l1_merges",
    "l2_slices",
    "l2_slice_bandwidth",
    "l2_interleave",
    "l2_write_back",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpu", "name", "changes"), CHANGES, ids=[f"{n}-{'-'.join(c)}" for _, n, c in CHANGES]
)
def test_a_changed_value_is_recovered(gpu: str, name: str, changes: dict[str, object]) -> None:
    # Fewer SMs give the same result sooner.
    few: dict[str, object] = {} if name in ALL_SMS else {"sm.count": 8}
    device = SimulatedDevice(gpu, {**few, **changes})
    (found,) = run_microbenchmarks(device, [name], spec=device.spec)
    assert found.value is not None and found.expected is not None, found.note
    plain = EVERY[name].expected(SimulatedDevice(gpu).spec)
    assert found.expected != plain
    # A chain has a few cycles at its begin and end, amortised over many operations.
    assert abs(found.value - found.expected) <= max(0.25, EVERY[name].tolerance * found.expected)


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["a100", "h100", "rtx2060"])
def test_latencies_of_other_gpus(gpu: str) -> None:
    device = SimulatedDevice(gpu)
    names = ["fma_latency", "add_latency", "shared_latency", "l1_latency", "coalescing", "l1_sector"]
    for found in run_microbenchmarks(device, names, spec=device.spec):
        assert found.value == pytest.approx(found.expected, abs=0.25), found.name


@pytest.mark.slow
def test_what_goes_past_the_l1_does_so_before_volta() -> None:
    """PTX for Pascal has no ld.relaxed."""
    device = SimulatedDevice("titanx")
    names = ["l2_sector", "l2_latency", "l2_interleave", "registers_per_sm"]
    for found in run_microbenchmarks(device, names, spec=device.spec):
        assert found.value == pytest.approx(found.expected, rel=0.03), found.name


@pytest.mark.slow
def test_many_sms_that_read_what_lies_far_come_to_an_end() -> None:
    """Slices of both partitions request the same sectors from each other while their queues are full of
    waiting reads: requests between slices must be able to pass these.
    """
    (found,) = run_microbenchmarks(SimulatedDevice("a100"), ["l2_bandwidth_1k"])
    assert found.value is not None and found.value > 1000


@pytest.mark.slow
def test_device_memory_is_as_far_as_published() -> None:
    """[R] gpu-benches on a V100: 425 to 434 cycles through both caches, 28 of them in the L1."""
    (found,) = run_microbenchmarks(SimulatedDevice("qv100"), ["memory_latency"])
    assert 395 <= found.value <= 440


def test_what_a_gpu_lacks_is_said() -> None:
    (found,) = run_microbenchmarks(SimulatedDevice("qv100"), ["mma_latency"])
    assert found.value is None
    assert found.note == "needs compute capability 8.0"


def test_records() -> None:
    device = SimulatedDevice("qv100")
    data = json.loads(to_json(run_microbenchmarks(device, ["fma_latency"], spec=device.spec), device))
    assert data["simulated"] is True
    (record,) = data["benchmarks"]
    assert record["name"] == "fma_latency"
    assert record["determines"] == "sm.units.fp32.latency"
    assert (record["value"], record["unit"]) == (4.0, "cycle")


def test_choosing() -> None:
    assert {b.group for b in choose(["shared", "fma_latency"])} == {"shared", "core"}
    assert len(choose(None)) == len(EVERY)
    with pytest.raises(SimtError, match="no microbenchmark or group 'nothing'"):
        choose(["nothing"])


@pytest.mark.slow
def test_results_do_not_depend_on_threads() -> None:
    names = ["fma_throughput", "l1_bandwidth_64"]
    one, two = (
        [m.value for m in run_microbenchmarks(SimulatedDevice("qv100", threads=n), names)] for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
