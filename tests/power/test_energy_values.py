"""The shipped energies and powers of GPUs: in a plausible order, and near what was published and measured."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from simt.power import Energies, available, load_energies
from simt.spec import load_spec

VALIDATION = Path(__file__).parents[2] / "validation" / "power"
LANES = 32

# The first of each pair takes more energy than the second, on any GPU.
ORDER = [
    ("instructions.fp64_fma", "instructions.fp64_add"),
    ("instructions.fp64_fma", "instructions.fp32_fma"),
    ("instructions.fp32_fma", "instructions.fp32_add"),
    ("instructions.fp32_fma", "tensor.fp16_fp32"),
    ("instructions.int_mul_wide", "instructions.int_mad"),
    ("instructions.int_mad", "instructions.int_add"),
    ("instructions.int_add", "instructions.nop"),
    ("tensor.fp64", "tensor.tf32"),
    ("tensor.tf32", "tensor.bf16"),
    ("tensor.bf16", "tensor.int8"),
    ("tensor.int8", "tensor.int4"),
    ("tensor.int4", "tensor.binary"),
    ("memory.shared_pass", "memory.constant_access"),
    ("memory.dram_sector_read", "memory.l1_sector_read"),
    ("memory.dram_refresh", "memory.dram_activate"),
    ("power.sm_active", "power.sm_idle"),
    ("power.sm_idle", "power.sub_core_active"),
]


def shipped(name: str) -> dict[str, float]:
    """Values by "section.key", in pJ and W."""
    energies = load_energies(name)
    found = {key: each.value for key, each in energies.values.items()}
    return found | {f"reference.{key}": each.value for key, each in energies.reference.items()}


def busy_watts(name: str) -> float:
    """Power while each SM has a warp in each sub-core, without their instructions."""
    values, sm = shipped(name), load_spec(name).sm
    each = values["power.sm_active"] + sm.sub_cores * values["power.sub_core_active"]
    return values["power.board"] + values["power.chip_idle"] + sm.count * each


def table(name: str) -> list[dict[str, str]]:
    lines = (VALIDATION / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_gpus_with_energies() -> None:
    assert set(available()) >= {"qv100", "titanx", "a100", "h100", "h200", "rtx2060", "rtx3070"}
    assert set(available()) >= {"b200", "b300", "rtx5090"}


@pytest.mark.parametrize("name", ["b200", "b300", "rtx5090"])
def test_energies_of_blackwell_are_marked_as_scaled(name: str) -> None:
    assert {each.origin for each in load_energies(name).values.values()} == {"scaled"}


@pytest.mark.parametrize(("name", "least", "most"), [("b200", 0.75, 1.34), ("b300", 0.75, 1.34)])
def test_tensor_products_at_the_peak_rate_take_about_the_tdp(name: str, least: float, most: float) -> None:
    """4,096 multiply-adds a cycle and SM (SemiAnalysis's rates of tcgen05.mma); an H100 has 1.33 of it."""
    values, spec = shipped(name), load_spec(name)
    rate = spec.sm.count * spec.clock.core_mhz * 1e6
    watts = busy_watts(name) + rate * 4096 * values["tensor.fp16_fp32"] * 1e-12
    assert least < watts / values["reference.tdp_w"] < most


def test_reads_of_a_b300_take_what_is_published() -> None:
    """720 W at 7.31 TB/s, idle 200 (ademeure/QuickRunCUDA): energies of all levels are beyond idle."""
    values = shipped("b300")
    levels = ("l1_sector_read", "l2_sector_read", "network_sector", "dram_sector_read")
    path = sum(values[f"memory.{key}"] for key in levels)
    assert path * 7.31e12 / 32 * 1e-12 == pytest.approx(720 - 200, rel=0.05)


@pytest.mark.parametrize("name", available())
def test_uncertainties(name: str) -> None:
    """Nothing is certain, and least what is scaled or recalled."""
    energies: Energies = load_energies(name)
    rows = {**energies.values, **energies.reference, **energies.scaling}
    for key, each in rows.items():
        least = 0.15 if each.origin == "scaled" else 0.05 if "recalled" in each.source else 0.005
        assert least <= each.uncertainty <= 2, key
        assert each.value > 0, key


@pytest.mark.parametrize("name", available())
def test_order_of_energies(name: str) -> None:
    values = shipped(name)
    for more, less in ORDER:
        assert values[more] > values[less], (more, less)
    l2 = values["memory.l2_sector_read"] + values["memory.network_sector"]
    assert values["memory.shared_pass"] < 4 * values["memory.l1_sector_read"]  # both 128 bytes
    assert values["memory.l1_sector_read"] < l2 < values["memory.dram_sector_read"]


@pytest.mark.parametrize("name", available())
def test_powers_fit_the_board(name: str) -> None:
    """Idle is near the published idle power; FP32 multiply-adds at full rate take less than the TDP."""
    values, spec = shipped(name), load_spec(name)
    idle = values["power.board"] + values["power.chip_idle"]
    assert idle == pytest.approx(values["reference.idle_w"], rel=0.2)
    fp32 = spec.sm.units.fp32
    lanes = spec.sm.count * fp32.count * LANES / fp32.initiation_interval
    busy = busy_watts(name) + lanes * spec.clock.core_mhz * values["instructions.fp32_fma"] * 1e-6
    assert 0.4 * values["reference.tdp_w"] < busy < values["reference.tdp_w"]


@pytest.mark.parametrize("name", available())
def test_voltage_is_known_at_the_reference_clock(name: str) -> None:
    energies = load_energies(name)
    voltages = dict(energies.voltages)
    assert voltages[energies.reference["core_mhz"].value] == energies.reference["voltage"].value


def test_values_are_near_the_published_ones() -> None:
    """Within three standard deviations, in logarithms; where two studies disagree, between them."""
    published: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in table("published-energies.csv"):
        published.setdefault((row["gpu"], row["event"]), []).append(row)
    assert len(published) > 20
    for (gpu, event), found in published.items():
        rows = [load_energies(gpu).values[key] for key in event.split("+")]
        value, uncertainty = sum(each.value for each in rows), max(each.uncertainty for each in rows)
        energies = [float(row["pj"]) for row in found]
        for energy in energies:
            assert abs(math.log(value / energy)) < 3 * math.log1p(uncertainty), (gpu, event, energy)
        if len({row["source"] for row in found}) > 1:
            assert min(energies) <= value <= max(energies), (gpu, event)


@pytest.mark.parametrize(("name", "board_watts"), [("qv100", 0), ("a100", -10), ("h200", 0)])
def test_power_of_measured_kernels(name: str, board_watts: float) -> None:
    """Kernels from memory-bound to compute-bound; board_watts: what the measured board takes more when idle.

    Their operands are not random, so they take less than the values say, by at most a fifth.
    """
    values = shipped(name)
    levels = ("l1_sector_read", "l2_sector_read", "network_sector", "dram_sector_read")
    path = sum(values[f"memory.{key}"] for key in levels)
    measured = [row for row in table("roofline.csv") if row["gpu"] == name]
    assert len(measured) >= 4
    for row in measured:
        lanes = 8 if row["type"] == "fp32" else 4
        sector = path + lanes * values["instructions.load_store"]
        watts = busy_watts(name) + board_watts + float(row["gb_per_s"]) / 32 * sector * 1e-3
        watts += float(row["gflops"]) / 2 * values[f"instructions.{row['type']}_fma"] * 1e-3
        assert 0.95 < watts / float(row["watts"]) < 1.2, row
