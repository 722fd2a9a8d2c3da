"""Constraints on a specification, and the errors they cause."""

import pytest

from simt._engine import tensor_multiply_adds, tensor_work
from simt.errors import SpecError
from simt.spec import Spec, available, load_spec, peaks

NAMES = ["titan", "titanx", "qv100", "rtx2060", "rtx3070", "a100", "h100", "h200"]
# Of silicon, with nothing of Accel-Sim's.
VARIANTS = ["b200", "b300", "titanv", "a100-pcie", "a100-40gb", "a100-pcie-40gb", "h100-pcie", "rtx5090"]
VARIANTS += ["gtx1650", "gtx1650-gddr6", "t4", "rtx2080ti"]
VARIANTS += ["rtx3060", "rtx3060ti", "rtx3080", "rtx3090", "a10", "a6000"]
VARIANTS += ["rtx4070", "rtx4090", "l4", "l40s"]
WIDE = ["r9nano", "mi100"]


def test_every_nvidia_gpu_is_shipped_twice() -> None:
    assert available() == sorted(NAMES + [f"{name}-accelsim" for name in NAMES] + VARIANTS + WIDE)


@pytest.mark.parametrize("name", available())
def test_every_value_of_every_shipped_gpu_has_one_source(name: str) -> None:
    spec = load_spec(name)
    values = {path for path, _ in spec.leaves()} - {"name", "description"}
    assert set(spec.sources) == values
    assert all(len(source.strip()) > 6 for source in spec.sources.values())
    assert spec.description


@pytest.mark.parametrize("name", NAMES)
def test_the_two_kinds_differ_in_mechanism(name: str) -> None:
    silicon, accelsim = load_spec(name), load_spec(f"{name}-accelsim")
    assert accelsim.sm.register_file.model == "operand_collector"
    assert accelsim.sm.register_file.allocation_unit == 0
    assert accelsim.shared_memory.reserved_per_cta == 0
    assert not accelsim.shared_memory.wide_accesses_take_wavefronts
    # Stock configurations with BookSim include its router pipeline; the others use the built-in crossbar.
    assert accelsim.interconnect.latency == (5 if name in ("titan", "titanx", "h100", "h200") else 0)
    assert accelsim.launch.dispatch_latency == 7
    assert silicon.shared_memory.wide_accesses_take_wavefronts
    assert silicon.sm.register_file.allocation_unit == 256
    assert silicon.sm_version == accelsim.sm_version


@pytest.mark.parametrize(
    ("name", "gigabytes_per_second", "l2_mebibytes"),
    [
        ("titan", 288.4, 1.5),
        ("gtx1650", 128, 1),
        ("gtx1650-gddr6", 192, 1),
        ("t4", 320, 4),
        ("rtx2080ti", 616, 5.5),
        ("rtx3060", 360, 2.25),
        ("rtx3060ti", 448, 3),
        ("rtx3080", 760, 5),
        ("rtx3090", 936, 6),
        ("a6000", 768, 6),
        ("a10", 600, 6),
        ("rtx4070", 504, 36),
        ("l4", 300, 48),
        ("a100-40gb", 1555, 40),
        ("a100-pcie-40gb", 1555, 40),
        ("titanx", 480, 3),
        ("qv100", 898, 6),
        ("rtx2060", 336, 3),
        ("rtx3070", 448, 4),
        ("a100", 2039, 40),
        ("h100", 3352, 50),
        ("h200", 4800, 60),
        ("titanv", 652.8, 4.5),
        ("a100-pcie", 1935, 40),
        ("h100-pcie", 2039, 50),
        ("rtx4090", 1008, 72),
        ("l40s", 864, 96),
        ("rtx5090", 1792, 96),
        ("r9nano", 512, 2),
        ("mi100", 1229, 8),
    ],
)
def test_peak_bandwidth_and_l2_size_are_those_published(
    name: str, gigabytes_per_second: float, l2_mebibytes: float
) -> None:
    spec = load_spec(name)
    bytes_per_clock = spec.address_map.channels * spec.dram.bus_bytes * spec.dram.data_command_ratio
    assert bytes_per_clock * spec.clock.dram_mhz / 1000 == pytest.approx(gigabytes_per_second, rel=0.001)
    assert spec.l2.slice.bytes * spec.address_map.slices == l2_mebibytes * 2**20
    assert peaks(spec).memory_gbs == pytest.approx(gigabytes_per_second, rel=0.001)
    assert peaks(spec).l2_bytes == l2_mebibytes * 2**20


@pytest.mark.parametrize(
    ("name", "fp32", "tensor", "bits", "gib", "capability"),
    [
        ("qv100", 14.1, 113, 4096, 32, 70),
        ("gtx1650", 2.98, 5.97, 128, 4, 75),
        ("gtx1650-gddr6", 2.85, 5.7, 128, 4, 75),
        ("rtx2060", 6.45, 25.8, 192, 6, 75),
        ("t4", 8.1, 65, 256, 16, 75),
        ("rtx2080ti", 13.4, 53.8, 352, 11, 75),
        ("a100-40gb", 19.5, 312, 5120, 40, 80),
        ("a100-pcie-40gb", 19.5, 312, 5120, 40, 80),
        ("rtx3060", 12.7, 25.4, 192, 12, 86),
        ("rtx3060ti", 16.2, 32.4, 256, 8, 86),
        ("rtx3070", 20.3, 40.6, 256, 8, 86),
        ("rtx3080", 29.8, 59.5, 320, 10, 86),
        ("rtx3090", 35.6, 71, 384, 24, 86),
        ("a6000", 38.7, 154.8, 384, 48, 86),
        ("a10", 31.2, 125, 384, 24, 86),
        ("rtx4070", 29.15, 58.3, 192, 12, 89),
        ("l4", 30.3, 121, 192, 24, 89),
        ("rtx4090", 82.6, 165.2, 384, 24, 89),
        ("h100", 66.9, 1070, 5120, 80, 90),
    ],
)
def test_peaks_of_arithmetic_and_memory_are_the_data_sheets(
    name: str, fp32: float, tensor: float, bits: int, gib: int, capability: int
) -> None:
    spec, has = load_spec(name), peaks(load_spec(name))
    assert has.fp32_tflops == pytest.approx(fp32, rel=0.006)
    assert has.tensor_tflops == pytest.approx(tensor, rel=0.006)
    assert has.memory_bus_bits == bits
    assert spec.dram.capacity_gib == gib
    assert spec.sm_version == capability


def test_l2_peak_and_cores_without_tensor_units() -> None:
    assert peaks(load_spec("qv100")).l2_gbs == pytest.approx(64 * 32 * 1.38)
    assert peaks(load_spec("titanx")).tensor_tflops == 0


GENERATIONS = {
    "turing": ["rtx2060", "t4", "rtx2080ti", "gtx1650", "gtx1650-gddr6"],
    "ga10x": ["rtx3070", "rtx3060", "rtx3060ti", "rtx3080", "rtx3090", "a6000", "a10"],
    "ada": ["rtx4090", "rtx4070", "l4", "l40s"],
}
# What a card has of its own.
OF_A_CARD = (
    "clock.core_mhz", "clock.interconnect_mhz", "clock.l2_mhz", "clock.dram_mhz", "sm.count",
    "address_map.channels", "address_map.hash", "l2.slice.sets", "l2.slice.ways", "dram.latency",
    "dram.capacity_gib",
)  # fmt: skip


@pytest.mark.parametrize(("name", "generation"), [(n, g) for g, names in GENERATIONS.items() for n in names])
def test_a_card_has_its_own_values_and_its_generation_s(name: str, generation: str) -> None:
    """No card has a value of another one."""
    spec = load_spec(name)
    assert not [path for path in OF_A_CARD if spec.sources[path].startswith("as ")]
    assert spec.sources["sm.units.fp32.latency"].startswith(("as turing: ", "as ga10x: "))
    others = {name for names in GENERATIONS.values() for name in names}
    assert not [s for s in spec.sources.values() if s.startswith(tuple(f"as {other}: " for other in others))]
    first = load_spec(GENERATIONS[generation][0])
    kept = ("sm.", "l1.", "shared_memory.", "load_store.", "constant_cache.")
    differing = {path for path, _, _ in spec.differences(first) if path.startswith(kept)}
    assert differing <= {
        "sm.count",
        "sm.units.tensor.initiation_interval",
        "sm.half_rate_fp32_accumulation",
    }


@pytest.mark.parametrize(
    ("name", "base"), [("titanv", "qv100"), ("a100-pcie", "a100"), ("h100-pcie", "h100")]
)
def test_variants_have_the_same_sm(name: str, base: str) -> None:
    differences = {path for path, _, _ in load_spec(name).differences(load_spec(base))}
    kept = ("sm.", "l1.", "shared_memory.", "load_store.", "constant_cache.")
    assert {path for path in differences if path.startswith(kept)} <= {"sm.count"}
    assert ("sm.count" in differences) == (name == "h100-pcie")


@pytest.mark.parametrize(
    ("name", "fma_per_clock", "hmma_fma"),
    [("qv100", 512, 256), ("a100", 1024, 2048), ("h100", 2048, 2048)],
)
def test_tensor_interval_follows_from_the_peak_rate(name: str, fma_per_clock: int, hmma_fma: int) -> None:
    spec = load_spec(name)
    assert spec.sm.units.tensor.initiation_interval == hmma_fma // (fma_per_clock // spec.sm.sub_cores)


@pytest.mark.parametrize(
    ("name", "halved", "accumulation", "tflops"),
    [
        ("rtx2080ti", True, "F16", 107.6),
        ("rtx2080ti", True, "F32", 53.8),
        ("rtx3090", True, "F16", 142),
        ("rtx3090", True, "F32", 71),
        ("rtx4090", True, "F16", 330.3),
        ("rtx4090", True, "F32", 165.2),
        ("rtx5090", True, "F16", 419),
        ("rtx5090", True, "F32", 209.5),
        ("a6000", False, "F16", 154.8),
        ("a6000", False, "F32", 154.8),
    ],
)
def test_published_peaks_of_tensor_products(
    name: str, halved: bool, accumulation: str, tflops: float
) -> None:
    """Dense products of FP16, NVIDIA's white papers of Turing, GA102, AD102 and RTX Blackwell."""
    spec = load_spec(name)
    assert spec.sm.half_rate_fp32_accumulation == halved
    opcode = f"HMMA.16816.{accumulation}"
    interval = spec.sm.units.tensor.initiation_interval * tensor_work(opcode, halved)
    units = spec.sm.count * spec.sm.units.tensor.count
    peak = 2 * tensor_multiply_adds(opcode) * units / interval * spec.clock.core_mhz * 1e-6
    assert peak == pytest.approx(tflops, rel=0.02)


@pytest.mark.parametrize(("name", "units"), [("r9nano", 64), ("mi100", 120)])
def test_machines_of_photon(name: str, units: int) -> None:
    """Table 1 of Photon, and four SIMDs of 16 lanes that take 4 cycles per warp."""
    spec = load_spec(name)
    assert (spec.clock.core_mhz, spec.sm.count, spec.sm.warp_size) == (1000, units, 64)
    assert (spec.l1.cache.bytes, spec.l1.cache.ways) == (16 * 1024, 4)
    instructions = spec.sm.front_end.instruction_cache.l1
    assert (instructions.bytes, instructions.ways) == (32 * 1024, 4)
    assert (spec.constant_cache.l1.bytes, spec.constant_cache.l1.ways) == (16 * 1024, 4)
    assert spec.l2.slice.ways == 16
    assert (spec.sm.sub_cores, spec.sm.max_warps // spec.sm.sub_cores) == (4, 10)
    fp32 = spec.sm.units.fp32
    assert spec.sm.warp_size * fp32.count // fp32.initiation_interval == 64


def test_a_specification_is_frozen() -> None:
    spec = load_spec("qv100")
    with pytest.raises(ValueError, match="frozen"):
        spec.sm.units.fp32.latency = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("sm.units.fp32.latency", 0, "found 0, expected 1 to 480 core cycles"),
        ("sm.units.fp32.latency", 481, "1 to 480"),
        ("sm.units.fp32.latency", 4.5, "expected a valid integer"),
        ("sm.units.fp32.latency", True, "expected a valid integer"),
        ("sm.units.fp32.count", 0, "fall back"),
        (
            "sm.scheduler.policy",
            "fastest",
            "found 'fastest', expected one of cggty, gto, lrr, oldest",
        ),
        ("sm.scheduler.policy", "oldes", "did you mean oldest?"),
        ("sm.scheduler.policy", "two_level", "sm.scheduler.active_warps"),
        ("sm.warp_size", 16, "expected 32 or 64"),
        ("sm.max_warps", 3, "at least sub_cores"),
        ("sm.register_file.banks", 15, "multiple of sub_cores"),
        ("sm.register_file.collector_units", 9, "multiple of sub_cores"),
        ("clock.core_mhz", 1380.00001, "whole kHz"),
        ("clock.core_mhz", 0, "1 to 100000 MHz"),
        ("l1.cache.line_bytes", 64, "128"),
        ("l1.cache.line_bytes", 100, "power of two"),
        ("l1.cache.sets", 5, "power of two"),
        ("l1.cache.sets", 0, "bypass_global"),
        ("l1.cache.ways", 0, "at least 1"),
        ("l1.cache.mshr_entries", 0, "at least 1"),
        ("l1.cache.dirty_threshold", 101, "0 to 100 percent"),
        ("l1.banks", 3, "power of two"),
        ("l1.carve_out_options", [], "at least one"),
        ("l1.carve_out_options", [0, 8192, 8192, 98304], "ascending"),
        ("l1.carve_out_options", [0, 131073], "at most unified_bytes"),
        ("l1.unified_bytes", 98304 + 1, "whole ways"),
        ("shared_memory.bytes", 98305, "largest of l1.carve_out_options"),
        ("shared_memory.banks", 24, "power of two"),
        ("shared_memory.allocation_unit", 100, "power of two"),
        ("address_map.channels", 12, "power of two of channels"),
        ("address_map.slices_per_channel", 3, "power of two"),
        ("address_map.layout", "RRRRBBBCCCCSSSS", "expected"),
        ("address_map.hash", "pae", "32 slices"),
        ("address_map.layout", "RRRRBBBBCCXSSSSS", "expected letters R, B and C, then letters S"),
        ("address_map.layout", "RRRRBBBBCCCCSSSS", "expected 5"),
        ("address_map.layout", "RRRRBBBCCCCSSSSS", "expected dram.banks = 32"),
        ("l2.far_latency", 1, "one partition"),
        ("l2.partitions", 3, "divisor"),
        ("l2.slice.sectored", False, "sectors"),
        ("dram.burst_length", 4, "64 bytes, expected 32"),
        ("dram.data_command_ratio", 4, "divisor"),
        ("dram.banks", 12, "power of two"),
        ("dram.bank_groups", 64, "at most banks"),
        ("dram.write_low", 56, "write_low < write_high"),
        ("dram.write_high", 65, "write_queue_size"),
        ("dram.rc", 27, "at least ras"),
        ("dram.refi", 180, "more than rfc + rc = 180"),
        ("dram.wl", 12, "more than wl"),
        # Values that the engine cannot hold.
        ("sm.max_warps", 65, "1 to 64 warps"),
        ("sm.max_ctas", 65, "1 to 64 CTAs"),
        ("sm.sub_cores", 16, "1 to 8"),
        ("sm.front_end.instruction_buffer", 4, "1 to 3 instructions"),
        ("sm.register_file.banks", 128, "1 to 64"),
        ("sm.register_file.collector_units", 64, "1 to 32"),
        ("sm.register_file.allocation_unit", 2**26, "0 to 65536 registers"),
        ("sm.sub_core_model", False, "only operand collectors can be shared"),
        ("launch.max_concurrent_kernels", 129, "1 to 128 launches"),
        ("shared_memory.banks", 128, "a power of two, 1 to 64"),
        ("load_store.coalescing_sub_warps", 3, "a power of two, 1 to 32"),
        ("constant_cache.latency", 481, "0 to 480 core cycles"),
        ("constant_cache.l1.line_bytes", 8192, "32 to 4096 bytes"),
        ("constant_cache.l1.sets", 2**20, "expected at most 33,554,432"),
        ("l1.cache.write_policy", "read_only", "expected one of local_write_back_global_write_through"),
        ("l1.cache.miss_queue", 1, "2 to 1048576 requests"),
        ("l1.unified_bytes", 2**26, "expected at most 33,554,432"),
        ("address_map.slices_per_channel", 64, "a power of two, 1 to 32"),
        ("address_map.layout", 33 * "R" + "BBBBSSSSS", "at most 31"),
        ("sm.front_end.instruction_cache.l1.sets", 0, "found 0, expected a cache with perfect = false"),
        ("l2.request_queue", 3, "4 to 1048576 requests"),
        ("dram.banks", 128, "a power of two, 1 to 64"),
        ("dram.banks", 0, "a power of two, 1 to 64"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_path(path: str, value: object, reason: str) -> None:
    with pytest.raises(SpecError) as error:
        load_spec("qv100", {path: value})
    message = str(error.value)
    assert message.startswith("qv100: ")
    assert reason in message
    # A check across fields may name the other field of the same section.
    assert path.rsplit(".", 1)[0] in message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sm.units.fp32.latency", 1),
        ("sm.units.fp32.latency", 480),
        ("sm.units.int.count", 0),
        ("sm.max_warps", 4),
        ("l1.cache.dirty_threshold", 100),
        ("l1.carve_out_options", [131072]),
        ("shared_memory.bytes", 98304),
        ("address_map.slices_per_channel", 16),
        ("dram.write_low", 55),
        ("dram.write_high", 64),
        ("dram.rc", 28),
        ("dram.refi", 181),
        ("dram.refi", 0),
        ("dram.wl", 11),
        ("clock.dram_mhz", 3500.5),
    ],
)
def test_the_last_value_that_makes_sense_is_taken(path: str, value: object) -> None:
    leaves = dict(load_spec("qv100", {path: value}).leaves())
    assert leaves[path] == value


def test_all_errors_are_told_at_once() -> None:
    with pytest.raises(SpecError) as error:
        load_spec("qv100", {"sm.count": 0, "dram.banks": 3})
    assert "sm.count" in str(error.value)
    assert "dram.banks" in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "expected"), [("dirty_threshold", 50, "0"), ("mshr_entries", 7, "at least 8")]
)
def test_what_would_deadlock_l2_partitions_is_refused(field: str, value: int, expected: str) -> None:
    message = f"h100: l2.slice.{field}: found {value}, expected {expected} with several partitions"
    with pytest.raises(SpecError, match=message):
        load_spec("h100", {f"l2.slice.{field}": value})


def test_hash_follows_the_machine_and_not_its_name() -> None:
    spec = load_spec("qv100")
    assert spec.hash == load_spec("qv100").hash
    assert load_spec("qv100", {"name": "other", "description": "x"}).hash == spec.hash
    assert load_spec("qv100", {"dram.cl": 13}).hash != spec.hash
    hashes = {load_spec(name).hash for name in available()}
    assert len(hashes) == len(available())


def test_hash_is_the_same_in_every_version() -> None:
    values = load_spec("qv100-accelsim").values()
    assert Spec.model_validate(values).hash == load_spec("qv100-accelsim").hash
