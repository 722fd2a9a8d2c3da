"""Cards derived from others of their generation and from data sheets: `simt.spec.derive`, `simt gpus new`."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simt.cli.gpus import app
from simt.errors import SpecError
from simt.spec import DataSheet, derive, load_spec, peaks
from simt.spec.derive import dram_timings_at

MB, GB = 1 << 20, 1 << 30
# Card, the card that it is like, and its data sheet.
SIBLINGS = """
rtx2080ti rtx2060 sms=68 core_mhz=1545 memory_gbs=616 l2_bytes=5.5MB memory_bytes=11GB fp32_tflops=13.4
t4 rtx2060 sms=40 core_mhz=1590 memory_gbs=320 memory_mhz=5001 memory_bytes=16GB tensor_tflops=65
rtx3060ti rtx3070 sms=38 core_mhz=1665 l2_bytes=3MB fp32_tflops=16.2
rtx3060 rtx3070 sms=28 core_mhz=1777 l2_bytes=2.25MB memory_bus_bits=192 memory_gbs=360 memory_bytes=12GB
rtx3080 rtx3070 sms=68 core_mhz=1710 memory_bus_bits=320 memory_gbs=760 memory_bytes=10GB fp32_tflops=29.8
rtx3090 rtx3070 sms=82 core_mhz=1695 memory_bus_bits=384 memory_mhz=9750 memory_bytes=24GB fp32_tflops=35.6
a6000 rtx3070 sms=84 core_mhz=1800 memory_bus_bits=384 memory_gbs=768 memory_bytes=48GB tensor_tflops=154.8
a10 rtx3070 sms=72 core_mhz=1695 memory_bus_bits=384 memory_gbs=600 memory_bytes=24GB tensor_tflops=125
l4 l40s sms=58 core_mhz=2040 memory_bus_bits=192 memory_gbs=300 memory_bytes=24GB fp32_tflops=30.3
rtx4070 rtx4090 sms=46 core_mhz=2475 memory_gbs=504 memory_bytes=12GB fp32_tflops=29.15
a100-40gb a100 memory_gbs=1555 memory_mhz=1215 memory_bytes=40GB
a100-pcie a100 memory_gbs=1935 memory_mhz=1512
titanv qv100 core_mhz=1455 memory_gbs=652.8 memory_mhz=850 l2_bytes=4.5MB memory_bytes=12GB
h200 h100 memory_bus_bits=6144 memory_gbs=4800 memory_bytes=141GB
"""
# What a data sheet does not give.
ELSEWHERE = {
    "l4": {"peer_link.latency"},
    "a100-pcie": {"peer_link.bandwidth"},
    # qv100 has timings of a clock of 850 MHz, which is the titanv's.
    "titanv": {"peer_link.bandwidth", "peer_link.latency", "dram.ras", "dram.rc"},
    # Read of or measured on an H200, but tREFI, which is 3.9 us there and here.
    "h200": {"l2.persisting_kib", "dram.latency", "dram.refi"},
}


@pytest.mark.parametrize("row", SIBLINGS.strip().splitlines(), ids=lambda row: row.split()[0])
def test_a_shipped_card_follows_from_its_sibling(row: str) -> None:
    card, like, *figures = row.split()
    sheet = DataSheet.read(dict(each.split("=", 1) for each in figures))
    found = derive(like, sheet)
    differing = {path for path, _, _ in found.spec.differences(load_spec(card))}
    assert differing == ELSEWHERE.get(card, set())
    slices = {"l2.slice.sets", "l2.slice.ways"} & {each.path for each in found.values}
    assert len(found.warnings) == bool(slices)  # of slices of another size, which is the titanv's


def test_what_follows_is_computed_by_hand() -> None:
    """RTX 2080 Ti from an RTX 2060 with another memory clock: 22 channels of 16 bits at 12 instead of 14.002
    Gbit/s a pin."""
    sheet = DataSheet(
        sms=68, core_mhz=1344, memory_bus_bits=352, memory_mhz=6000, l2_bytes=22 * MB, memory_bytes=11 * GB
    )
    base, found = load_spec("rtx2060"), derive("rtx2060", sheet, "mine")
    spec = found.spec
    assert spec.name == "mine"
    assert (spec.clock.core_mhz, spec.clock.l2_mhz, spec.clock.interconnect_mhz) == (1344, 1344, 1344)
    assert spec.clock.dram_mhz == 3000
    assert (spec.address_map.channels, spec.address_map.hash) == (22, "ipoly_skewed")
    assert (spec.dram.cl, spec.dram.ras, spec.dram.refi) == (41, 91, 5700)  # 48, 106 and 6651 x 3000 / 3500.5
    assert (spec.dram.ccd, spec.dram.ccdl) == (base.dram.ccd, base.dram.ccdl)  # bursts, not times
    assert spec.dram.latency == 77  # 96 x 1344 / 1680
    assert (spec.l2.slice.sets, spec.l2.slice.ways) == (256, 16)  # 44 slices of 512 KB
    assert spec.l1 == base.l1 and spec.sm.units == base.sm.units
    assert peaks(spec).memory_gbs == pytest.approx(528)
    by_path = {each.path: each for each in found.values}
    assert by_path["sm.count"].source == "given: 68 SMs"
    assert by_path["dram.cl"].source == "derived from rtx2060: the same nanoseconds"
    assert spec.sources["dram.cl"] == by_path["dram.cl"].source
    assert spec.sources["l1.latency"].startswith("as rtx2060: ")
    (warning,) = found.warnings
    assert "22 MB of L2 in 44 slices are 512 KB each, those of rtx2060 have 128 KB" in warning


def test_what_does_not_follow_is_named() -> None:
    kept = derive("rtx2060", DataSheet(sms=68)).kept
    assert kept["dram.capacity_gib"] == "6 GiB, as rtx2060"
    assert kept["dram.latency"] == "96 cycles of the L2, as rtx2060"
    assert "58.49 TFLOPS" in kept["sm.units.tensor.initiation_interval"]
    all_given = DataSheet(sms=68, core_mhz=1545, memory_bytes=11 * GB, tensor_tflops=53.8)
    assert not {"dram.latency", "dram.capacity_gib"} & derive("rtx2060", all_given).kept.keys()
    assert "sm.units.tensor.initiation_interval" not in derive("titan", DataSheet(sms=12)).kept


def test_two_of_bandwidth_bus_and_clock_give_the_third() -> None:
    for sheet in (
        {"memory_gbs": 760, "memory_bus_bits": 320},
        {"memory_gbs": 760, "memory_mhz": 9500},
        {"memory_bus_bits": 320, "memory_mhz": 9500},
    ):
        spec = derive("rtx3070", DataSheet(**sheet)).spec  # type: ignore[arg-type]
        assert (spec.address_map.channels, spec.clock.dram_mhz) == (20, 4750)


def test_channels_of_a_power_of_two_have_the_hash_of_one() -> None:
    assert derive("rtx2060", DataSheet(memory_bus_bits=256)).spec.address_map.hash == "ipoly"
    assert derive("rtx3070", DataSheet(memory_bus_bits=192)).spec.address_map.hash == "ipoly_skewed"
    assert derive("titan", DataSheet(memory_bus_bits=256)).spec.address_map.hash == "linear"


def test_timings_of_nearly_the_same_clock_stay() -> None:
    spec = load_spec("rtx2060")
    assert dram_timings_at(spec, 3500) == {}
    assert dram_timings_at(spec, 7001)["dram.rrd"] == 28
    assert dram_timings_at(load_spec("titan"), 3004)["dram.faw"] == 0  # no such limit at any clock


def test_figures_that_disagree_are_warned_of() -> None:
    sheet = DataSheet(sms=68, memory_gbs=616, memory_bus_bits=352, memory_mhz=6000, fp32_tflops=20)
    memory, fp32 = derive("rtx2060", sheet).warnings
    assert memory == "bandwidth of memory: the data sheet says 616 GB/s, these values make 528 (-14.3 %)"
    assert fp32 == "FP32: the data sheet says 20 TFLOPS, these values make 14.62 (-26.9 %)"
    (tensor,) = derive("rtx2060", DataSheet(tensor_tflops=60)).warnings  # an interval of 13.8 is none
    assert tensor.startswith("dense FP16 products: the data sheet says 60 TFLOPS, these values make 58.98")
    assert not derive("rtx2060", DataSheet(sms=30, fp32_tflops=6.5)).warnings  # a rounded figure


@pytest.mark.parametrize(
    ("like", "sheet", "message"),
    [
        ("rtx2060", {}, "nothing is given in which it differs from rtx2060"),
        ("rtx2060", {"fp32_tflops": 6.5}, "nothing is given"),
        ("rtx2061", {"sms": 3}, "did you mean rtx2060"),
        ("rtx3070", {"memory_gbs": 760}, "it takes 434.2 bits, expected a multiple of 32; give the width"),
        ("a100", {"memory_gbs": 1555}, "it takes 3,904.6 bits, expected a multiple of 1024"),
        ("rtx3070", {"memory_bus_bits": 200}, "bus of 200 bits: expected a multiple of 32"),
        ("h100", {"memory_bus_bits": 5632}, "bus of 5632 bits: expected a multiple of 1024"),
        ("rtx3070", {"l2_bytes": 4 * MB + 1}, "L2 of 4 MB: 16 channels of 2 slices cannot"),
        ("rtx3070", {"l2_bytes": 67 * MB}, "expected such as 4 MB or"),
        ("titan", {"tensor_tflops": 5}, "titan has none"),
        ("rtx3070", {"sms": 70000}, "sm.count: found 70000, expected 1 to 65535"),
        ("rtx3070", {"sms": 0}, "sms: found 0, expected a whole number of more than 0"),
        ("rtx3070", {"sms": 1.5}, "sms: found 1.5, expected a whole number"),
        ("rtx3070", {"core_mhz": float("nan")}, "core_mhz: found nan, expected a number"),
        ("rtx3070", {"core_mhz": True}, "core_mhz: found True, expected a number"),
    ],
)
def test_refusals(like: str, sheet: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as error:
        derive(like, DataSheet(**sheet))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("memory_gbs", "616GB/s", 616),
        ("memory_gbs", "2.039 TB/s", 2039),
        ("memory_gbs", "616", 616),
        ("core_mhz", "1,545 MHz", 1545),
        ("core_mhz", "1.5GHz", 1500),
        ("memory_mhz", "14Gbit/s", 7000),
        ("memory_mhz", "19 Gbps", 9500),
        ("memory_mhz", "7001", 7001),
        ("memory_bus_bits", "384-bit", 384),
        ("l2_bytes", "5.5MB", 5767168),
        ("l2_bytes", "5632 KiB", 5767168),
        ("memory_bytes", "11GB", 11 * GB),
        ("sms", "68", 68),
        ("fp32_tflops", "13.4 TFLOPS", 13.4),
    ],
)
def test_figures_as_text(field: str, text: str, value: float) -> None:
    assert getattr(
        DataSheet.read({field: text, "l2_bytes" if field != "l2_bytes" else "sms": None}), field
    ) == (pytest.approx(value))


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("memory_gbs", "616GiB"), ("memory_gbs", "-3"), ("memory_gbs", "0"), ("memory_gbs", "GB/s"),
        ("l2_bytes", "5"), ("l2_bytes", "5.5 MHz"), ("sms", "68.5"), ("core_mhz", "1e999"), ("core_mhz", ""),
    ],
)  # fmt: skip
def test_figures_that_are_none(field: str, text: str) -> None:
    with pytest.raises(SpecError, match=r"--flag: found .*, expected a number of more than 0.*such as"):
        DataSheet.read({field: text}, {field: "--flag"})


def new(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["new", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_writes_a_file_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = new(
        "--like", "rtx2060", "--sms", "68", "--bandwidth", "616GB/s", "--l2", "5.5MB", "--clock", "1545"
    )
    spec = load_spec("my-gpu.toml")
    differing = {path for path, _, _ in spec.differences(load_spec("rtx2080ti"))}
    assert differing == {"dram.capacity_gib"}  # which was not given
    assert spec.sources["address_map.channels"] == "given: 616 GB/s: 352 bits in channels of 16"
    assert spec.sources["l1.latency"].startswith("as turing: ")
    lines = text.splitlines()
    assert lines[1].split() == ["sm.count", "30", "68", "given:", "68", "SMs"]
    assert any("5.5 MB of L2 (44 slices" in line for line in lines)
    assert any(line.startswith("dram.capacity_gib") and "6 GiB, as rtx2060" in line for line in lines)
    assert lines[-1].startswith("wrote my-gpu.toml: Spec('my-gpu': 68 SMs")


def test_the_command_s_file_can_be_in_a_folder_and_like_another_file(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    first, second = tmp_path / "cards" / "first.toml", tmp_path / "second.toml"
    new("--like", "V100", "--clock", "1530", "-o", str(first))
    new("--like", str(first), "--sms", "40", "-o", str(second))
    spec = load_spec(second)
    assert (spec.sm.count, spec.clock.core_mhz) == (40, 1530)
    assert 'extends = "qv100"' in first.read_text()
    assert 'extends = "cards/first.toml"' in second.read_text()
    assert spec.sources["clock.core_mhz"] == "as first: given: core clock 1,530 MHz"


def test_the_command_replaces_no_file_and_leaves_none(tmp_path: Path) -> None:
    there, other = tmp_path / "there.toml", tmp_path / "other.toml"
    there.write_text("mine")
    with pytest.raises(SpecError, match="exists; name another file"):
        new("--like", "rtx2060", "--sms", "68", "-o", str(there))
    assert there.read_text() == "mine"
    with pytest.raises(SpecError, match=r"--l2: found '5', expected .* KB, KiB"):
        new("--like", "rtx2060", "--l2", "5", "-o", str(other))
    with pytest.raises(SpecError, match="cannot have equal parts"):
        new("--like", "rtx2060", "--l2", "67MB", "-o", str(other))
    assert not other.exists()
