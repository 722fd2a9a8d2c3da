"""Reading, inheriting, overriding and writing specification files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt.errors import SpecError
from simt.spec import Spec, available, describe, load_spec, to_toml, write_toml
from simt.spec.files import NOT_GIVEN


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_inherits_what_it_does_not_say(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
extends = "qv100-accelsim"
description = "half of it"
[sm]
count = { value = 40, source = "measured" }
[sm.units]
source = "guessed"
fp32 = { latency = 3, initiation_interval = { value = 1, source = "seen" } }
""",
    )
    spec, parent = load_spec(path), load_spec("qv100-accelsim")
    assert spec.name == "mine"
    assert spec.description == "half of it"
    assert spec.differences(parent) == [
        ("sm.count", 40, 80),
        ("sm.units.fp32.latency", 3, 2),
        ("sm.units.fp32.initiation_interval", 1, 2),
    ]
    assert spec.sources["sm.count"] == "measured"
    assert spec.sources["sm.units.fp32.latency"] == "guessed"
    assert spec.sources["sm.units.fp32.initiation_interval"] == "seen"
    assert (
        spec.sources["sm.units.fp32.count"] == f"as qv100-accelsim: {parent.sources['sm.units.fp32.count']}"
    )


def test_an_inherited_source_names_where_the_value_was_said(tmp_path: Path) -> None:
    write(tmp_path, 'extends = "qv100"\n[sm]\nsource = "mine"\ncount = 40', "a.toml")
    path = write(tmp_path, 'extends = "a.toml"', "b.toml")
    sources = load_spec(path).sources
    assert sources["sm.count"] == "as a: mine"
    assert sources["l1.latency"].startswith("as qv100: [R]")
    assert sources["dram.cl"].startswith("as qv100-accelsim: SM7_QV100")


def test_a_value_without_a_source_has_none(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path, 'extends = "qv100"\n[sm]\ncount = 40'))
    assert spec.sm.count == 40
    assert "sm.count" not in spec.sources


@pytest.mark.parametrize("name", available())
def test_writing_and_reading_gives_the_same(name: str, tmp_path: Path) -> None:
    spec = load_spec(name)
    write_toml(spec, tmp_path / f"{name}.toml")
    again = load_spec(str(tmp_path / f"{name}.toml"))
    assert again.values() == spec.values()
    assert again.sources == spec.sources
    assert again.hash == spec.hash


def test_text_of_any_kind_survives_writing(tmp_path: Path) -> None:
    awkward = 'a "quoted" \\ back\nslash\tand ünïcode \x7f'
    spec = load_spec("qv100", {"description": awkward})
    assert load_spec(write(tmp_path, to_toml(spec))).description == awkward


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sm = [", "not valid TOML"),
        ('extends = "nothing"', "there is no GPU called 'nothing'"),
        ('extends = "nothing.toml"', "nothing.toml: cannot be read: No such file"),
        ("extends = 3", "expected the name of a GPU"),
        ('extends = "mine.toml"', "extend each other"),
        ("", "sm: missing"),
        ('extends = "qv100"\n[sm]\ncounts = 4', "sm.counts: unknown field; did you mean sm.count"),
        ('extends = "qv100"\n[smm]\ncount = 4', "smm: unknown field"),
        ('extends = "qv100"\n[sm.units]\nfp32 = 4', "sm.units.fp32: found 4, expected a section"),
        ('extends = "qv100"\n[sm.count]\nmore = 4', "sm.count: found a section, expected a value"),
        ('extends = "qv100"\n[sm]\ncount = { value = 4, why = "x" }', "found 'why' beside value"),
        ('extends = "qv100"\n[sm]\nsource = 4\ncount = 3', "sm.source: found 4, expected text"),
        (
            'extends = "qv100"\n[sm]\ncount = { value = 4, source = 5 }',
            "sm.count.source: found 5, expected text",
        ),
        (
            'extends = "qv100"\n[sm.units.fp32]\nlatency = 0',
            "sm.units.fp32.latency: found 0, expected 1 to 480 core cycles",
        ),
    ],
)
def test_errors_name_file_and_field(text: str, reason: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SpecError) as error:
        load_spec(path)
    assert str(path) in str(error.value)
    assert reason in str(error.value)


def test_unreadable_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="No such file"):
        load_spec(tmp_path / "absent.toml")
    with pytest.raises(SpecError, match="Is a directory"):
        load_spec(str(tmp_path) + "/")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not a text file"):
        load_spec(tmp_path / "binary.toml")


def test_an_unknown_gpu_names_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean rtx3070"):
        load_spec("rtx307")


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "taken.toml").mkdir()
    with pytest.raises(SpecError, match=r"taken\.toml: cannot be written"):
        write_toml(load_spec("qv100"), tmp_path / "taken.toml")
    assert [file.name for file in tmp_path.iterdir()] == ["taken.toml"]
    with pytest.raises(SpecError, match="cannot be written"):
        write_toml(load_spec("qv100"), tmp_path / "absent" / "x.toml")


def test_overrides_as_text_and_as_values_are_the_same() -> None:
    text = [
        "sm.count=40",
        "clock.core_mhz = 1000.5",
        "dram.simple=true",
        "sm.scheduler.policy=gto",
        "l1.carve_out_options=[0, 98304]",
        "address_map.layout=RRRRRRRBBBBBCCCCCCSSSSS",
    ]
    typed = {
        "sm.count": 40,
        "clock.core_mhz": 1000.5,
        "dram.simple": True,
        "sm.scheduler.policy": "gto",
        "l1.carve_out_options": [0, 98304],
        "address_map.layout": "RRRRRRRBBBBBCCCCCCSSSSS",
    }
    first, second = load_spec("qv100", text), load_spec("qv100", typed)
    assert first.values() == second.values()
    assert dict(first.leaves())["clock.core_mhz"] == 1000.5
    assert {path for path, _, _ in first.differences(load_spec("qv100"))} == set(typed)
    assert first.sources["sm.count"] == "override given by the user"
    assert load_spec(load_spec("qv100"), text).hash == first.hash


def test_a_specification_without_overrides_is_itself() -> None:
    spec = load_spec("qv100")
    assert load_spec(spec) is spec
    assert isinstance(spec, Spec)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("sm.cout=4", "did you mean sm.count"),
        ("latency=4", "did you mean"),
        ("sm.units.fp32=4", "it is a section with the fields sm.units.fp32.count"),
        ("xyzzy=1", "simt gpus show"),
        ("sm.count", "expected path=value"),
        ("=4", "expected path=value"),
        ("sm.count=", "cannot read the value"),
        ("sm.count=4 5", "cannot read the value"),
        ("sm.count=forty", "cannot read the value"),
        ("sm.count=4\nother = 5", "cannot read the value"),
        ("sm.count=4.0", "sm.count: found 4.0, expected a valid integer"),
        ("dram.simple=1", "dram.simple: found 1, expected a valid boolean"),
        ("sm.warp_size=31", "sm.warp_size: found 31, expected 32 or 64"),
    ],
)
def test_bad_overrides_are_explained(override: str, reason: str) -> None:
    with pytest.raises(SpecError) as error:
        load_spec("qv100", [override])
    assert reason in str(error.value)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.integers(-1, 2**33), max_size=5),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(describe())), anything)
def test_any_value_is_taken_or_refused(path: str, value: object) -> None:
    try:
        spec = load_spec("qv100", {path: value})
    except SpecError as error:
        assert str(error).startswith("qv100: ")
    else:
        assert load_spec(spec).hash == spec.hash


@pytest.mark.parametrize(
    ("product", "shipped"),
    [
        ("v100", "qv100"),
        ("V100-SXM2-32GB", "qv100"),
        ("Tesla V100-SXM2-16GB", "qv100"),
        ("a100-80gb", "a100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("titan-v", "titanv"),
        ("h100-sxm", "h100"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx2080ti"),
        ("NVIDIA RTX A6000", "a6000"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA L4", "l4"),
        ("GeForce RTX 3080 10GB", "rtx3080"),
        ("NVIDIA GeForce GTX 1650", "gtx1650"),
        ("GeForce GTX 1650 GDDR6", "gtx1650-gddr6"),
        ("h100-sxm5", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("TITAN V", "titanv"),
        ("AMD Instinct MI100", "mi100"),
    ],
)
def test_products_are_known_by_their_names(product: str, shipped: str) -> None:
    assert load_spec(product).hash == load_spec(shipped).hash
    assert load_spec(product).name == shipped


@pytest.mark.parametrize(
    "product", ["NVIDIA A10G", "rtx2060 super", "RTX 3080 Ti", "rtx3080-12gb", "h100-nvl"]
)
def test_other_products_are_no_shipped_gpu(product: str) -> None:
    with pytest.raises(SpecError, match="there is no GPU called") as error:
        load_spec(product)
    assert "did you mean" in str(error.value)


@pytest.mark.parametrize(
    ("text", "number"),
    [("64KiB", 1 << 16), ("64 KB", 1 << 16), ("64k", 1 << 16), ("65536", 1 << 16)],
)
def test_sizes_with_units(text: str, number: int) -> None:
    """Of fields that count bytes, alone and in lists; elsewhere they are refused with the field's range."""
    spec = load_spec("h100", {"shared_memory.bytes": text})
    assert spec.shared_memory.bytes == number
    options = load_spec("h100", [f"l1.carve_out_options=[0, {text}, 228KiB]"]).l1.carve_out_options
    assert list(options) == [0, number, 228 << 10]


def test_sizes_in_files(tmp_path: Path) -> None:
    """In the field's own unit, which may be KiB or GiB."""
    file = tmp_path / "gpu.toml"
    file.write_text(
        'extends = "h100"\nname = "big"\nl1.carve_out_options = [0, "64KB", "0.125 MiB", 233472]\n'
        'shared_memory.reserved_per_cta = "1 KiB"\nl2.persisting_kib = "5.5MB"\ndram.capacity_gib = "94GB"\n'
    )
    spec = load_spec(file)
    assert spec.l1.carve_out_options == (0, 64 << 10, 128 << 10, 228 << 10)
    assert spec.shared_memory.reserved_per_cta == 1024
    assert (spec.l2.persisting_kib, spec.dram.capacity_gib) == (5632, 94)
    assert load_spec("h100", ["l2.persisting_kib=5.5MB"]).l2.persisting_kib == 5632


@pytest.mark.parametrize("text", ["64XB", "0.3KB", "64", "-1KB", "KB", "1KB 2KB", "1e3KB"])
def test_sizes_in_files_that_are_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "gpu.toml"
    file.write_text(f'extends = "h100"\nname = "big"\nl1.unified_bytes = "{text}"\n')
    with pytest.raises(
        SpecError, match=rf"l1\.unified_bytes: found '{text}', expected .*or a size such as 64KiB"
    ):
        load_spec(file)
    file.write_text('extends = "h100"\nname = "big"\nsm.count = "64KB"\n')
    with pytest.raises(SpecError, match=r"sm\.count: found '64KB', expected a valid integer"):
        load_spec(file)


def test_sizes_that_are_none() -> None:
    with pytest.raises(
        SpecError, match=r"cannot read the value '64XB', expected 0 to .* bytes, or a size such as 64KiB"
    ):
        load_spec("h100", ["l1.unified_bytes=64XB"])
    with pytest.raises(SpecError, match=r"sm\.count: cannot read the value '64KB', expected 1 to"):
        load_spec("h100", ["sm.count=64KB"])


def test_what_must_change_with_the_unified_memory_is_one_error() -> None:
    """Taking the error's advice suffices, at any size."""
    for size in ("64KiB", "128KiB", "192KiB"):
        with pytest.raises(SpecError) as error:
            load_spec("h100", [f"l1.unified_bytes={size}"])
        (line,) = str(error.value).splitlines()
        advice = re.findall(r"([a-z0-9_.]+) = (\[[^\]]*\]|\d+)", line)
        assert len(advice) >= 2
        spec = load_spec("h100", {"l1.unified_bytes": size, **dict(advice)})
        assert spec.l1.unified_bytes == int(size.removesuffix("KiB")) << 10
    with pytest.raises(
        SpecError, match=r"l1.unified_bytes: found 1000, expected whole ways of \d+ bytes, such as"
    ):
        load_spec("h100", ["l1.unified_bytes=1000"])


def test_a_complete_file_of_before_a_field_was_added_loads(tmp_path: Path) -> None:
    spec = load_spec("qv100-accelsim")
    absent = dict(spec.absent_values())
    assert absent["l2.write_interval"] == 1 and absent["launch.cold_caches"] is False
    values = {path: value for path, value in spec.leaves() if path not in absent and path != "name"}
    table: dict[str, Any] = {}
    for path, value in values.items():
        *sections, name = path.split(".")
        inner = table
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = value
    assert "peer_link" not in table  # all of its fields may be absent
    file = tmp_path / "old.toml"
    file.write_text(toml(table))
    old = load_spec(file)
    assert old.sources["peer_link.bandwidth"] == NOT_GIVEN
    assert {path: value for path, value in old.leaves() if path in absent} == absent
    neutral = load_spec("qv100-accelsim", absent)
    assert old.hash == neutral.hash != load_spec("qv100-accelsim", {**absent, "l2.write_interval": 2}).hash
    del table["l1"]["latency"]
    file.write_text(toml(table))
    with pytest.raises(SpecError, match=r"old\.toml: l1\.latency: missing"):
        load_spec(file)


def toml(table: dict[str, Any], prefix: str = "") -> str:
    own = "".join(f"{k} = {json.dumps(v)}\n" for k, v in table.items() if not isinstance(v, dict))
    inner = (f"[{prefix}{k}]\n{toml(v, f'{prefix}{k}.')}" for k, v in table.items() if isinstance(v, dict))
    return own + "".join(inner)
