"""Execution units that a specification defines, and PTX instructions that a user defines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simt
from simt.errors import InstructionError, OpcodeTableError, SpecError
from simt.isa import instruction, load_table
from simt.spec import Spec, load_spec
from simt.trace.generate import Warp
from support.tiny import cycles, write_kernel

RAY = """
extends = "{base}"
[sm.special_units.ray]
count = {count}
latency = {latency}
initiation_interval = {interval}
opcodes = ["rtcore", "MUFU.SQRT"]
"""


def ray(folder: Path, base: str = "qv100", count: int = 4, latency: int = 30, interval: int = 8) -> str:
    file = folder / f"{base}-{count}-{latency}-{interval}.toml"
    file.write_text(RAY.format(base=base, count=count, latency=latency, interval=interval))
    return str(file)


def chain(folder: Path, opcode: str, length: int, dependent: bool = True, warps: int = 1) -> Path:
    warp = Warp()
    for k in range(length):
        warp.op(opcode, 8 if dependent else 8 + k, (8 if dependent else 2,))
    return write_kernel(folder, [[warp] * warps])


@pytest.mark.parametrize("base", ["qv100", "qv100-accelsim"])
@pytest.mark.parametrize("opcode", ["RTCORE", "RTCORE.NEAR", "MUFU.SQRT"])
def test_each_link_of_a_chain_takes_the_units_latency(tmp_path: Path, base: str, opcode: str) -> None:
    trace = chain(tmp_path / "trace", opcode, 20)
    shorter, longer = (cycles(trace, ray(tmp_path, base, latency=latency)) for latency in (30, 31))
    assert longer - shorter == 20


@pytest.mark.parametrize("base", ["qv100", "qv100-accelsim"])
def test_a_unit_takes_an_instruction_each_interval(tmp_path: Path, base: str) -> None:
    trace = chain(tmp_path / "trace", "RTCORE", 20, dependent=False)
    shorter, longer = (cycles(trace, ray(tmp_path, base, interval=interval)) for interval in (8, 9))
    assert longer - shorter == 19


def test_one_unit_is_shared_by_the_sub_cores(tmp_path: Path) -> None:
    trace = chain(tmp_path / "trace", "RTCORE", 20, dependent=False, warps=4)
    each, shared = (cycles(trace, ray(tmp_path, count=count)) for count in (4, 1))
    assert shared - each == pytest.approx(3 * 20 * 8, abs=16)


def test_other_opcodes_keep_their_unit(tmp_path: Path) -> None:
    for opcode in ("MUFU.RCP", "MUFU", "RTCOREX"):
        trace = chain(tmp_path / opcode, opcode, 20)
        assert cycles(trace, ray(tmp_path)) == cycles(trace, "qv100")


def test_the_longer_name_decides(tmp_path: Path) -> None:
    trace = chain(tmp_path / "trace", "MUFU.SQRT", 20)
    file = Path(ray(tmp_path))
    both = file.read_text() + (
        '[sm.special_units.all]\ncount = 4\nlatency = 99\ninitiation_interval = 1\nopcodes = ["MUFU"]\n'
    )
    (tmp_path / "both.toml").write_text(both)
    assert cycles(trace, str(tmp_path / "both.toml")) == cycles(trace, str(file))


def test_the_result_does_not_call_the_opcode_unknown(tmp_path: Path) -> None:
    trace = chain(tmp_path / "trace", "RTCORE", 3)
    assert not simt.simulate(trace, gpu=ray(tmp_path)).warnings
    assert any("RTCORE" in text for text in simt.simulate(trace, gpu="qv100").warnings)


def test_a_unit_is_part_of_the_specification(tmp_path: Path) -> None:
    spec, plain = load_spec(ray(tmp_path)), load_spec("qv100")
    assert spec.sm.special_units["ray"].opcodes == ("RTCORE", "MUFU.SQRT")
    assert spec.hash != plain.hash
    assert ("sm.special_units.ray.latency", 30, None) in spec.differences(plain)
    slower = load_spec(spec, ["sm.special_units.ray.latency=60"])
    assert slower.sm.special_units["ray"].latency == 60
    (tmp_path / "whole.toml").write_text(simt.spec.to_toml(slower))
    assert load_spec(tmp_path / "whole.toml").hash == slower.hash
    assert isinstance(slower, Spec) and load_spec(slower) == slower


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sm.special_units.ray.latency=0", "special_units.ray.latency: found 0, expected 1 to 480"),
        ("sm.special_units.ray.count=0", "special_units.ray.count: found 0, expected at least 1"),
        ("sm.special_units.ray.opcodes=[]", "found none, expected what the unit executes"),
        ('sm.special_units.ray.opcodes=["A B"]', "special_units.ray.opcodes"),
        ('sm.special_units.ray.opcodes=["A", "A"]', "found A, which sm.special_units.ray has too"),
        ("sm.special_units.beam.latency=3", "override sm.special_units.beam.latency: unknown field"),
        ("sm.special_units.ray.speed=3", "override sm.special_units.ray.speed: unknown field"),
    ],
)
def test_bad_units_are_refused(tmp_path: Path, setting: str, message: str) -> None:
    with pytest.raises(SpecError) as found:
        load_spec(ray(tmp_path), [setting])
    assert message in str(found.value)


def test_there_are_at_most_eight(tmp_path: Path) -> None:
    def file(count: int) -> Path:
        lines = ['extends = "a100"']  # which has none of its own
        for k in range(count):
            lines.append(
                f"[sm.special_units.u{k}]\ncount = 4\nlatency = 4\ninitiation_interval = 1\n"
                f"opcodes = ['X{k}']"
            )
        path = tmp_path / f"{count}.toml"
        path.write_text("\n".join(lines))
        return path

    trace = chain(tmp_path / "trace", "X7", 5)
    assert cycles(trace, str(file(8))) > 0
    with pytest.raises(SpecError, match="found 9 units, expected at most 8"):
        load_spec(file(9))


def test_an_opcode_table_says_where_units_are_defined(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text('extends = "volta"\n[classes]\nray = { unit = "ray" }\n[opcodes]\nray = ["RTCORE"]\n')
    with pytest.raises(OpcodeTableError, match=r"\[sm\.special_units\.ray\], which lists its opcodes"):
        load_table(table)


# --- PTX instructions ---------------------------------------------------------------------------------------

PTX = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry mix(.param .u64 out, .param .u64 in) {{
  .reg .pred %p<2>; .reg .{type} %v<4>; .reg .u32 %r<3>; .reg .u64 %d<4>;
  ld.param.u64 %d0, [out];
  ld.param.u64 %d1, [in];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d2, %r0, {size};
  add.u64 %d1, %d1, %d2;
  add.u64 %d0, %d0, %d2;
  ld.global.{type} %v0, [%d1];
  ld.global.{type} %v2, [%d0];
  setp.lt.u32 %p0, %r0, 20;
  @%p0 {instruction} %v2, %v0, {second};
  st.global.{type} [%d0], %v2;
  ret;
}}
"""


def mixed(type: str, instruction: str, second: str, values: np.ndarray, gpu: str = "qv100") -> np.ndarray:
    out = np.zeros_like(values)
    device = simt.GPU(gpu)
    text = PTX.format(type=type, size=values.itemsize, instruction=instruction, second=second)
    device.load(text).mix[1, 32](out, values)
    return out


@pytest.fixture
def defined() -> None:
    pytest.importorskip("numba")

    @instruction("testlerp.f32", "f32(f32, f32)")
    def lerp(a: float, b: float) -> float:
        return a + 0.5 * (b - a)

    @instruction("testmix.sat", "u64(u64, u64)")
    def mix(a: int, b: int) -> int:
        return a ^ (b << np.uint64(40))

    @instruction("testbad.f32", "f32(f32, f32)")
    def bad(a: float, b: float) -> float:
        if a == 3:
            raise ValueError("three")
        return b


@pytest.mark.usefixtures("defined")
def test_the_function_gives_the_active_lanes_their_value() -> None:
    values = np.arange(32, dtype=np.float32)
    out = mixed("f32", "testlerp.f32", "0f41000000", values)
    expected = np.where(np.arange(32) < 20, values + np.float32(0.5) * (8 - values), 0)
    np.testing.assert_array_equal(out, expected)
    words = np.arange(32, dtype=np.uint64) << np.uint64(33)
    out = mixed("u64", "testmix.sat", "5", words)
    np.testing.assert_array_equal(out[:20], words[:20] ^ np.uint64(5 << 40))
    assert not out[20:].any()


@pytest.mark.usefixtures("defined")
def test_it_runs_on_its_unit(tmp_path: Path) -> None:
    file = tmp_path / "gpu.toml"
    file.write_text(RAY.format(base="qv100", count=4, latency=30, interval=8).replace("rtcore", "testlerp"))
    values = np.arange(32, dtype=np.float32)
    times = []
    for latency in (30, 70):
        gpu = simt.GPU(load_spec(file, [f"sm.special_units.ray.latency={latency}"]))
        text = PTX.format(type="f32", size=4, instruction="testlerp.f32", second="0f41000000")
        gpu.load(text).mix[1, 32](np.zeros_like(values), values)
        result = gpu.result()
        assert not any("TESTLERP" in text and "no opcode table" in text for text in result.warnings)
        times.append(result.launches[0].cycles)
    assert times[1] - times[0] == 40


@pytest.mark.usefixtures("defined")
def test_an_exception_in_it_ends_the_program() -> None:
    with pytest.raises(simt.ProgramFault, match=r"the function of testbad\.f32 raised an exception") as found:
        mixed("f32", "testbad.f32", "0f41000000", np.arange(32, dtype=np.float32))
    assert "testbad.f32" in str(found.value)


@pytest.mark.usefixtures("defined")
def test_its_operands_must_have_its_types() -> None:
    with pytest.raises(simt.SimtError, match=r"testlerp\.f32"):
        mixed("f64", "testlerp.f32", "0d3FF0000000000000", np.arange(32, dtype=np.float64))
    with pytest.raises(simt.SimtError, match="this instruction is not supported"):
        mixed("f32", "testlerp.f64", "0f41000000", np.arange(32, dtype=np.float32))


@pytest.mark.parametrize(
    ("mnemonic", "types", "message"),
    [
        ("add.f32", "f32(f32)", "PTX has an instruction add"),
        ("Lerp", "f32(f32)", "expected a name in small letters"),
        ("lerp2", "f16(f32)", "its types are 'f16\\(f32\\)'"),
        ("lerp2", "f32()", "its types are"),
        ("lerp2", "f32(f32, f32)", "its function has 1 parameters, expected 2"),
        ("lerp2", "f32(f32)", "Numba cannot compile its function"),
    ],
)
def test_bad_instructions_are_refused(mnemonic: str, types: str, message: str) -> None:
    pytest.importorskip("numba")
    with pytest.raises(InstructionError, match=message):

        @instruction(mnemonic, types)
        def value(a: float) -> float:
            return a.nothing if mnemonic == "lerp2" else a  # type: ignore[attr-defined]
