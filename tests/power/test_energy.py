"""Energy of launches and programs: by hand, and with executed kernels."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simt
from simt.errors import PowerError
from simt.isa.opcodes import energy_class
from simt.isa.table import builtin_tables
from simt.power import (
    COMPONENTS,
    EnergyValue,
    LaunchEnergy,
    OperatingPoint,
    ProgramEnergy,
    load_energies,
    power_over_time,
)
from simt.power.energies import SECTIONS
from simt.result import Result
from simt.result.launch import LaunchResult
from support.energies import energies
from support.fake_gpu import CTA_CYCLES, LATENCY, installed
from support.launches import MACHINE, launch

PICO = 1e-12
ADDS = re.compile("ADD|SUB|SAD|DIFF|IDP")
CYCLES = LATENCY + 4 * CTA_CYCLES
SECONDS = CYCLES / 1e9


def with_code(**rows: tuple[int, int, int, int]) -> LaunchResult:
    """A launch of these instructions: opcode = (issued, threads, reads, writes); `_` stands for a dot."""
    issued, threads, reads, writes = zip(*rows.values(), strict=True)
    pc = {
        "pc": [16 * i for i in range(len(rows))],
        "opcode": [name.replace("_", ".") for name in rows],
        "source_line": [1 + i // 2 for i in range(len(rows))],
        "issued": list(issued),
        "threads": list(threads),
        "reads": list(reads),
        "writes": list(writes),
        "stalled": {"selected": [1] * len(rows)},
        "sample_interval": 64,
    }
    return replace(launch(), pc=pc)


def test_instructions_by_hand() -> None:
    x = with_code(FFMA=(10, 300, 3, 1), IADD3=(5, 160, 2, 1), HMMA_16816_F32=(2, 64, 10, 4))
    e = energies(
        instructions__fp32_fma=20,
        instructions__int_add=10,
        tensor__fp16_fp32=1,
        front_end__issue=32,
        registers__read=0.5,
        registers__write=0.25,
    )
    values = dict(e.values)
    values["instructions.fp32_fma"] = replace(values["instructions.fp32_fma"], reads=3, writes=1)
    values["instructions.int_add"] = replace(values["instructions.int_add"], reads=1, writes=1)
    found = LaunchEnergy(x, replace(e, values=values))
    # FFMA as measured, but issued 10 times for 300 lanes: 20 pJ a lane, and an issue for 20 idle lanes more.
    ffma = 300 * 20 + 32 * (10 - 300 / 32)
    # IADD3 with one register more than was measured.
    add = 160 * 10 + 160 * 0.5
    tensor = 2 * 2048 * 1
    assert found.joules == pytest.approx((ffma + add + tensor) * PICO)
    assert found.classes["fp32_fma"] == pytest.approx(ffma * PICO)
    assert found.classes["tensor fp16_fp32"] == pytest.approx(tensor * PICO)
    assert found.components["front end"] == pytest.approx(17 * 32 * PICO)
    registers = 300 * (1.5 + 0.25) + 160 * (1 + 0.25) + 64 * (5 + 1)
    assert found.components["register file"] == pytest.approx(registers * PICO)
    assert found.components["FP32 units"] == pytest.approx(300 * (20 - 1 - 1.75) * PICO)
    assert found.components["tensor cores"] == pytest.approx((tensor - 2 * 32 - 64 * 6) * PICO)


def test_opcodes_of_ones_own_by_hand() -> None:
    """By the section [opcodes] of a file; without it they count as integer additions."""
    x = with_code(RTCORE_RAY=(2, 64, 2, 1), XMMA_16816_F32=(3, 96, 10, 4), FADD=(1, 32, 2, 1))
    e = energies(instructions__texture=30, instructions__int_add=7, instructions__fp32_mul=5, tensor__fp8=2)
    opcodes = {"RTCORE": "instructions.texture", "XMMA": "tensor.fp8", "FADD": "instructions.fp32_mul"}
    found = LaunchEnergy(x, replace(e, opcodes=opcodes))
    assert found.classes["texture"] == pytest.approx(64 * 30 * PICO)
    assert found.classes["tensor fp8"] == pytest.approx(3 * 2048 * 2 * PICO)
    assert found.classes["fp32_mul"] == pytest.approx(32 * 5 * PICO)
    assert found.joules == pytest.approx((64 * 30 + 3 * 2048 * 2 + 32 * 5) * PICO)
    assert LaunchEnergy(x, e).classes["int_add"] == pytest.approx(64 * 7 * PICO)


def test_a_tensor_instruction_takes_what_was_measured() -> None:
    """Volta's HMMA of executed programs names more registers than its multiply-adds can pay for."""
    x = with_code(HMMA_884_F32_F32=(2, 64, 8, 8))
    found = LaunchEnergy(
        x, energies(tensor__fp16_fp32=2, front_end__issue=64, registers__read=2, registers__write=2)
    )
    whole = 2 * 256 * 2
    assert found.joules == pytest.approx(whole * PICO)
    assert found.classes["tensor fp16_fp32"] == pytest.approx(whole * PICO)
    assert found.components["tensor cores"] == 0
    around = 2 * 64 + 64 * 32
    assert found.components["register file"] == pytest.approx(whole * 64 * 32 / around * PICO)


def test_memory_by_hand() -> None:
    l1 = {"global_read": {"hit": 100, "miss": 60}, "global_write": {"miss": 7}}
    l2 = {"global_read": {"hit": 50, "miss": 10}, "global_write": {"hit": 7}, "atomic": {"hit": 3}}
    x = replace(
        launch(shared_wavefronts=11, dram_reads=13, dram_writes=5, dram_activates=2), l1=l1, l2=l2, pc={}
    )
    prices = {
        "shared_pass": (1, 11),
        "l1_sector_read": (10, 160),
        "l1_sector_write": (100, 7),
        "l2_sector_read": (3, 60 + 3),
        "l2_sector_write": (5, 7 + 3),
        "network_sector": (7, 60 + 7 + 3),
        "dram_sector_read": (1000, 13),
        "dram_sector_write": (2000, 5),
        "dram_activate": (500, 2),
        # 8 channels, a refresh in 2,000 command cycles of 2 ns
        "dram_refresh": (1e6, 8 * SECONDS / 4e-6),
    }
    found = LaunchEnergy(x, energies(**{f"memory__{name}": price for name, (price, _) in prices.items()}))
    assert found.joules == pytest.approx(sum(price * n for price, n in prices.values()) * PICO)
    assert found.components["L2"] == pytest.approx((3 * 63 + 5 * 10) * PICO)


def test_static_power_by_hand() -> None:
    x = launch(sm_active_cycles=6000)  # of 4 SMs for CYCLES
    active = 6000e-9
    e = energies(power__board=10, power__chip_idle=5, power__sm_active=2, power__sm_idle=1)
    found = LaunchEnergy(replace(x, pc={}), e)
    assert found.components["board"] == pytest.approx(10 * SECONDS)
    assert found.components["active SMs"] == pytest.approx(2 * active)
    assert found.components["idle SMs"] == pytest.approx(4 * SECONDS - active)
    assert found.watts == pytest.approx(found.joules / SECONDS)
    assert found.energy_delay == pytest.approx(found.joules * SECONDS)
    clocks = sum(map(sum, x.stalls.values())) * 1e-9
    gated = LaunchEnergy(replace(x, pc={}), energies(power__sub_core_active=3))
    assert gated.joules == pytest.approx(3 * clocks)  # nothing for sub-cores without a warp


def test_concurrent_launches_share_constant_power_and_gaps_are_idle() -> None:
    one, two = launch(0, start=0), launch(1, start=1000)
    three = launch(2, start=10_000)
    with installed():
        provenance = simt.simulate("input").provenance
    e = energies(power__board=8, power__chip_idle=4, power__sm_idle=0.5)
    found = ProgramEnergy(Result((one, two, three), MACHINE, provenance), e)
    span = (three.end_cycle - one.start_cycle) * 1e-9
    assert found.seconds == pytest.approx(span)
    assert found.idle_seconds == pytest.approx((three.start_cycle - two.end_cycle) * 1e-9)
    assert found.components["board"] == pytest.approx(8 * span)
    assert found.components["chip"] == pytest.approx(4 * span)
    # Of each: 4 SMs for its share of the time, less the time that SMs were active.
    totals = replace(Result((one, two, three), MACHINE, provenance), energies=e).totals.counters
    assert totals["simt__power.avg"] == pytest.approx(
        (found.joules - 14 * found.idle_seconds) / (span - found.idle_seconds)
    )
    idle = sum(max(0.0, 4 * s * 1e-9 - 16e-6) for s in Result((one, two, three), MACHINE, provenance).shares)
    assert found.components["idle SMs"] == pytest.approx(0.5 * (idle + 4 * found.idle_seconds))


def test_uncertainties_of_one_source_add_and_of_several_do_not() -> None:
    x = with_code(FFMA=(10, 320, 0, 0), IADD3=(10, 320, 0, 0))
    e = energies(0.5, instructions__fp32_fma=30, instructions__int_add=40)
    apart = LaunchEnergy(x, e)
    assert apart.deviation == pytest.approx(0.5 * 320 * 50 * PICO)  # 3, 4, 5
    values = {key: replace(each, source="one paper") for key, each in e.values.items()}
    together = LaunchEnergy(x, replace(e, values=values))
    assert together.deviation == pytest.approx(0.5 * 320 * 70 * PICO)
    low, high = together.interval
    assert (low + high) / 2 == pytest.approx(together.joules)
    assert high - low == pytest.approx(2 * 1.96 * together.deviation)


def test_voltage_clock_and_temperature() -> None:
    e = energies(
        instructions__fp32_fma=10,
        memory__dram_sector_read=100,
        power__board=1,
        power__sm_active=4,
        power__sub_core_active=2,
    )
    half = OperatingPoint.of(e, 500_000).factors(e)
    assert half["instructions.fp32_fma"] == pytest.approx(0.64)
    assert half["power.sub_core_active"] == pytest.approx(0.5 * 0.64)
    assert half["power.sm_active"] == pytest.approx(0.5 * 0.8 + 0.5 * 0.5 * 0.64)
    assert half["memory.dram_sector_read"] == half["power.board"] == 1
    assert OperatingPoint.of(e, 750_000).voltage(e) == pytest.approx(0.9)
    assert OperatingPoint.of(e, 300_000).voltage(e) == 0.8
    hot = OperatingPoint.of(e, 1_000_000, 70).factors(e)
    assert hot["power.sm_active"] == pytest.approx(0.5 * 2 + 0.5)
    assert hot["instructions.fp32_fma"] == 1
    with pytest.raises(PowerError, match="151 degrees"):
        OperatingPoint.of(e, 1_000_000, 151)


def test_counts_that_are_not_known_are_named() -> None:
    x = replace(launch(), pc={})
    x = replace(x, engine={**x.engine, "dram_reads": math.nan})
    found = LaunchEnergy(x, energies(memory__dram_sector_read=5, memory__dram_sector_write=1))
    assert found.missing == ("memory.dram_sector_read",)
    assert found.joules == pytest.approx(400 * PICO)


@pytest.mark.parametrize(
    "opcode, key, multiply_adds",
    [
        ("IMAD.MOV.U32", "instructions.move", 0),
        ("IMAD.WIDE.U32", "instructions.int_mul_wide", 0),
        ("IMAD.IADD", "instructions.int_add", 0),
        ("LDG.E.128", "instructions.load_store", 0),
        ("UIADD3", "instructions.uniform", 0),
        ("HMMA.16816.F32.BF16", "tensor.bf16", 2048),
        ("HMMA.884.F32.F32", "tensor.fp16_fp32", 256),
        ("HMMA.884.F16.F16", "tensor.fp16", 512),
        ("HGMMA.64x256x16.F32", "tensor.fp16_fp32", 65536),
        ("IMMA.16832.S8.S8", "tensor.int8", 4096),
        ("IMMA.16864.S4.S4", "tensor.int4", 8192),
        ("DMMA.884", "tensor.fp64", 256),
        ("BMMA.168256.XOR.POPC", "tensor.binary", 32768),
        ("DFMA", "instructions.fp64_fma", 0),
        ("LDCU.64", "instructions.move", 0),
        ("WHATEVER", "instructions.int_add", 0),
    ],
)
def test_classes_of_opcodes(opcode: str, key: str, multiply_adds: int) -> None:
    assert energy_class(opcode) == (key, multiply_adds)


@pytest.mark.parametrize(
    "opcode, key", [("UTCHMMA", "fp16"), ("UTCIMMA", "int8"), ("UTCMXQMMA", "fp8"), ("UTCOMMA", "fp8")]
)
def test_types_of_tensor_memory_instructions(opcode: str, key: str) -> None:
    assert energy_class(opcode)[0] == f"tensor.{key}"


def test_every_opcode_of_the_tables_has_a_class() -> None:
    opcodes = {opcode for table in builtin_tables().values() for opcode in table.opcodes}
    assert len(opcodes) > 200
    found = {opcode: energy_class(opcode)[0].partition(".") for opcode in opcodes}
    assert all(key in SECTIONS[section] for section, _, key in found.values())
    # What is not known counts as an addition.
    assert [x for x, (*_, key) in found.items() if key == "int_add" and not ADDS.search(x)] == []


SOURCE = """
extern "C" __global__ void f(float* x, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  for (int k = 0; k < rounds; ++k)
    v = fmaf(v, 1.5f, 0.5f);
  x[i] = v;
}
"""


@pytest.fixture(scope="module")
def result() -> Result:
    gpu = simt.GPU("qv100", code="ptx", set={"sm.count": 4}, power=True, timeline=200)
    x = gpu.array(np.ones(4096, np.float32))
    kernel = gpu.compile(SOURCE)
    kernel["f"][16, 256](x, 100)
    kernel["f"][16, 256](x, 20)
    return gpu.result()


def test_parts_add_up(result: Result) -> None:
    e = result.energy
    assert e.joules == pytest.approx(sum(x.joules for x in e.launches) + e.idle_seconds * _idle(result))
    for x in e.launches:
        assert x.table()["joules"].sum() == pytest.approx(x.joules)
        assert x.instruction_table()["joules"].sum() == pytest.approx(x.joules)
        assert float(x.by_instruction.sum()) <= x.joules
        # The linear form that is fitted: counts times values.
        linear = sum(n * x.energies[key] for key, n in x.events.counts.items())
        assert linear == pytest.approx(x.joules)
        timed = power_over_time(x)
        assert timed is not None
        assert {name: j.sum() for name, j in timed.joules.items()} == pytest.approx(x.components)
        assert x.watts < timed.peak < 10 * x.watts
        assert float(timed.watts[0]) < timed.peak  # launch latency
        merged = power_over_time(x, 3)
        assert merged is not None and len(merged.end) <= 3
        assert sum(j.sum() for j in merged.joules.values()) == pytest.approx(x.joules)
    assert set(e.components) == set(COMPONENTS)


def _idle(result: Result) -> float:
    e = result.energy.energies
    return e["power.chip_idle"] + e["power.board"] + e["power.sm_idle"] * result.machine.sm_count


def test_fmas_cost_what_the_table_says(result: Result) -> None:
    long, short = result.energy.launches
    threads = 4096 * 80  # of fused multiply-adds that one has more than the other
    measured = load_energies("qv100")
    difference = long.classes["fp32_fma"] - short.classes["fp32_fma"]
    assert difference == pytest.approx(threads * measured["instructions.fp32_fma"])


def test_the_loop_takes_most(result: Result) -> None:
    lines = result.energy.launches[0].lines()
    assert lines.sort("dynamic")["text"][-1].strip().startswith("v = fmaf")


def test_a_result_keeps_its_energies(result: Result, tmp_path: Path) -> None:
    for place in (tmp_path / "out", tmp_path / "out.json"):
        loaded = Result.load(result.save(place))
        assert loaded.energies == result.energies
        assert loaded.energy.joules == result.energy.joules
        assert loaded.launches[0].counters["simt__energy.sum"] == result.energy.launches[0].joules
        assert loaded.launches[0].counters["simt__power.avg"] == pytest.approx(
            result.launches[0].energy.watts
        )
    assert loaded.to_polars("energy")["joules"].to_list() == [x.energy.joules for x in result.launches]
    power = loaded.to_polars("power").filter(launch_id=1)
    timed = power_over_time(result.launches[0].energy)
    assert timed is not None
    assert power["watts"].max() == pytest.approx(timed.peak)


def test_energy_of_a_run_without_power(result: Result, tmp_path: Path) -> None:
    plain = replace(result, energies=None, launches=tuple(replace(x, energies=None) for x in result.launches))
    assert plain.energy.joules == result.energy.joules
    assert plain.launches[0].counters["simt__energy.sum"] is None
    assert plain.to_polars("energy").is_empty()
    assert plain.energy_by("a100").joules != plain.energy.joules
    toy = replace(plain, machine=replace(plain.machine, name="toy"))
    with pytest.raises(PowerError, match=r"energies of 'toy' are not known.*a100"):
        toy.energy  # noqa: B018


def test_twins_have_the_energies_of_their_gpu() -> None:
    assert load_energies("qv100-accelsim") == load_energies("qv100")


def test_power_of_a_wrong_gpu_is_refused_before_the_run() -> None:
    with pytest.raises(PowerError, match="did you mean h100"):
        simt.GPU("h100", power="h10")
    with pytest.raises(PowerError, match="cannot be read"):
        simt.GPU("h100", power="nowhere.toml")


def test_energies_of_a_gpu_without_any() -> None:
    with pytest.raises(PowerError, match="'r9nano' are not known"):
        simt.GPU("r9nano", power=True)


def test_value_keeps_its_source() -> None:
    x = load_energies("qv100").values["instructions.fp32_fma"]
    assert isinstance(x, EnergyValue) and x.source and x.uncertainty > 0
