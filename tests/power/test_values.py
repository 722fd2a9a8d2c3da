"""The shipped energies and powers of GPUs: complete, with sources, and in a plausible order."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import simt.spec
from simt.spec import load_spec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(simt.spec.__file__).parent / "gpus" / "power"
NAMES = sorted(file.stem for file in FOLDER.glob("*.toml"))
SECTIONS = ["reference", "instructions", "tensor", "front_end", "registers", "memory", "power", "scaling"]
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


def load(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def values(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Values by "section.key", with the source of the section where they have none."""
    return {
        f"{section}.{key}": {"source": table[section].get("source"), **row}
        for section in SECTIONS
        for key, row in table[section].items()
        if key != "source"
    }


def table_of(name: str) -> list[dict[str, str]]:
    lines = (VALIDATION / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_v100_has_energies() -> None:
    assert "qv100" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_values_are_complete(name: str) -> None:
    table = load(name)
    assert table.keys() == {"description", *SECTIONS}
    rows = values(table)
    assert rows.keys() == values(load("qv100")).keys()
    for key, row in rows.items():
        assert row["source"].strip(), key
        assert row["origin"] in ("published", "scaled", "fitted"), key
        assert 0 < row["uncertainty"] <= 2, key
        if key != "scaling.voltages":
            assert row["value"] > 0, key


@pytest.mark.parametrize("name", NAMES)
def test_what_scales_or_is_recalled_is_less_certain(name: str) -> None:
    for key, row in values(load(name)).items():
        least = 0.15 if row["origin"] == "scaled" else 0.05 if "recalled" in row["source"] else 0
        assert row["uncertainty"] >= least, key


@pytest.mark.parametrize("name", NAMES)
def test_order_of_energies(name: str) -> None:
    rows = values(load(name))
    for more, less in ORDER:
        assert rows[more]["value"] > rows[less]["value"], (more, less)
    l2 = rows["memory.l2_sector_read"]["value"] + rows["memory.network_sector"]["value"]
    assert rows["memory.shared_pass"]["value"] < 4 * rows["memory.l1_sector_read"]["value"]  # 128 bytes
    assert rows["memory.l1_sector_read"]["value"] < l2 < rows["memory.dram_sector_read"]["value"]


@pytest.mark.parametrize("name", NAMES)
def test_issue_and_registers_leave_energy_for_the_unit(name: str) -> None:
    rows = values(load(name))
    read, write = rows["registers.read"]["value"], rows["registers.write"]["value"]
    for key, row in rows.items():
        if key.startswith("instructions."):
            around = rows["front_end.issue"]["value"] / LANES + row["reads"] * read + row["writes"] * write
            assert row["value"] > around, key


@pytest.mark.parametrize("name", NAMES)
def test_powers_fit_the_board(name: str) -> None:
    """Idle is near the published idle power; FP32 multiply-adds at full rate take less than the TDP."""
    rows = {key: row["value"] for key, row in values(load(name)).items()}
    idle = rows["power.board"] + rows["power.chip_idle"]
    assert idle == pytest.approx(rows["reference.idle_w"], rel=0.2)
    spec = load_spec(name)
    busy = idle + spec.sm.count * (
        rows["power.sm_active"] + spec.sm.sub_cores * rows["power.sub_core_active"]
    )
    fp32 = spec.sm.units.fp32
    lanes = spec.sm.count * fp32.count * LANES / fp32.initiation_interval
    busy += lanes * spec.clock.core_mhz * 1e6 * rows["instructions.fp32_fma"] * 1e-12
    assert 0.4 * rows["reference.tdp_w"] < busy < rows["reference.tdp_w"]


@pytest.mark.parametrize("name", NAMES)
def test_voltages_ascend(name: str) -> None:
    table = load(name)
    points = table["scaling"]["voltages"]["value"]
    clocks, volts = zip(*points, strict=True)
    assert list(clocks) == sorted(set(clocks))
    assert list(volts) == sorted(volts)
    assert clocks[0] < table["reference"]["core_mhz"]["value"] <= clocks[-1]


def test_values_are_near_the_published_ones() -> None:
    """Within three standard deviations, in logarithms; where two studies disagree, between them."""
    published: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in table_of("published-energies.csv"):
        published.setdefault((row["gpu"], row["event"]), []).append(row)
    assert len(published) > 20
    for (gpu, event), found in published.items():
        rows = [values(load(gpu))[key] for key in event.split("+")]
        value, uncertainty = sum(row["value"] for row in rows), max(row["uncertainty"] for row in rows)
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
    rows = {key: row["value"] for key, row in values(load(name)).items()}
    spec = load_spec(name)
    always = rows["power.board"] + rows["power.chip_idle"] + board_watts
    always += spec.sm.count * (rows["power.sm_active"] + spec.sm.sub_cores * rows["power.sub_core_active"])
    levels = ("l1_sector_read", "l2_sector_read", "network_sector", "dram_sector_read")
    path = sum(rows[f"memory.{key}"] for key in levels)
    measured = [row for row in table_of("roofline.csv") if row["gpu"] == name]
    assert len(measured) >= 4
    for row in measured:
        lanes = 8 if row["type"] == "fp32" else 4
        sector = path + lanes * rows["instructions.load_store"]
        watts = always + float(row["gb_per_s"]) / 32 * sector * 1e-3
        watts += float(row["gflops"]) / 2 * rows[f"instructions.{row['type']}_fma"] * 1e-3
        assert 0.95 < watts / float(row["watts"]) < 1.2, row
