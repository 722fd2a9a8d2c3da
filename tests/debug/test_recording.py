"""Recordings: what is kept, limits, damage; another version of simt in its own Python environment."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simt
from simt.debug import Recording, compare, record
from simt.errors import DebugError, SimtError
from support.debug_programs import AXPY, HEADER, axpy, gpu_with
from support.fake_cuda import replacing

SOURCES = Path(simt.__file__).parent


def test_what_a_recording_holds(tmp_path: Path) -> None:
    recording = record(axpy(launches=2), tmp_path / "r")
    assert len(recording) == 2
    (first, after_first), (second, _) = recording
    assert (first.kernel, first.grid, first.block) == ("axpy", (8, 1, 1), (128, 1, 1))
    assert first.ptx == AXPY
    x, _ = (np.frombuffer(a.content or b"", np.float32) for a in first.before)
    np.testing.assert_array_equal(x, np.random.default_rng(1).random((2, 1000), np.float32)[0])
    assert [a.shape for a in first.before] == [(1000,), (1000,)]
    assert after_first.after == second.before
    # x is kept once: three versions of y and one of x.
    assert len(list((tmp_path / "r" / "data").iterdir())) == 4
    assert not [p for p in tmp_path.iterdir() if p.name != "r"], "no temporary files are left"


def test_digests_find_launch_and_allocation(tmp_path: Path) -> None:
    record(axpy(launches=3), tmp_path / "r", contents=False)
    assert not list((tmp_path / "r" / "data").iterdir())
    assert compare(axpy(launches=3), tmp_path / "r").same
    difference = compare(axpy(AXPY.replace("fma.rn", "fma.rz"), launches=3), tmp_path / "r").difference
    assert difference is not None
    assert (difference.launch, difference.memory[0].parameter) == (1, 2)
    assert difference.memory[0].ours is None
    assert "digests only" in difference.note


def test_contents_of_some_launches(tmp_path: Path) -> None:
    recording = record(axpy(launches=3), tmp_path / "r", launches="2-")
    kept = [[a.content is not None for a in launch.before] for launch, _ in recording]
    # Launch 2 begins with the memory that launch 1 leaves.
    assert kept == [[True, False], [True, True], [True, True]]


def test_too_large(tmp_path: Path) -> None:
    with pytest.raises(DebugError, match=r"launch 1 \(`axpy`\) makes the recording larger than 100 bytes"):
        record(axpy(), tmp_path / "r", max_bytes=100)
    assert list(tmp_path.iterdir()) == []
    record(axpy(), tmp_path / "r")
    with pytest.raises(DebugError, match="exists already"):
        record(axpy(), tmp_path / "r")


def test_another_program(tmp_path: Path) -> None:
    record(axpy(n=1000, launches=2), tmp_path / "r")
    for program, kind, words in (
        (axpy(n=200, launches=2), "launch", "its grid is (2, 1, 1) in ours, (8, 1, 1) in the reference"),
        (axpy(n=1001, launches=2), "inputs", "its initial memory already differs"),
        (axpy(n=1000, rounds=2, launches=2), "inputs", "its parameters differ"),
        (axpy(n=1000, launches=3), "missing", "only our program makes this launch"),
        (axpy(n=1000, launches=1), "missing", "only the reference makes this launch"),
    ):
        difference = compare(program, tmp_path / "r").difference
        assert difference is not None
        assert (difference.kind, words in difference.message) == (kind, True), difference.message


def test_a_fault_is_recorded(tmp_path: Path) -> None:
    outside = AXPY.replace("st.global.f32 [%rd5], %f3", "st.global.f32 [%rd3], %f3")
    recording = record(axpy(outside), tmp_path / "r")
    assert "illegal address" in recording.launch(1)[1].fault.lower()
    assert compare(axpy(outside), recording).same
    difference = compare(axpy(), recording).difference
    assert difference is not None
    assert difference.kind == "fault"


def test_what_a_gpu_makes_of_it_goes_on_into_the_next_launch(tmp_path: Path) -> None:
    wrong = replacing(r"fma\.rn", "fma.rp")
    recording = record(axpy(launches=2), tmp_path / "r", executor=gpu_with(wrong))
    x, y = np.random.default_rng(1).random((2, 1000), np.float32)
    for k in range(2):
        exact = np.float64(np.float32(1.1 + k)) * x + y
        near = exact.astype(np.float32)
        y = np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)
    found = recording.launch(2)[1].after[1].content
    np.testing.assert_array_equal(np.frombuffer(found or b"", np.float32), y)
    difference = compare(axpy(launches=2), recording).difference
    assert difference is not None
    assert difference.instruction is None
    assert "the recording holds memory only" in difference.note


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "r"
    record(axpy(n=40, launches=1), path)
    return path


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_recordings(
    recorded: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    copy = tmp_path_factory.mktemp("damaged") / "r"
    shutil.copytree(recorded, copy)
    files = sorted(p for p in copy.rglob("*") if p.is_file())
    victim = data.draw(st.sampled_from(files))
    content = bytearray(victim.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    victim.write_bytes(bytes(content))
    try:
        result = compare(axpy(n=40, launches=1), copy)
    except SimtError as error:
        assert str(copy) in str(error) or "kernel.ptx" in str(error)
    else:
        assert result.launches <= 2


def test_damage_is_named(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "r"
    shutil.copytree(recorded, copy)
    blob = next((copy / "data").iterdir())
    blob.write_bytes(blob.read_bytes()[:-3])
    with pytest.raises(DebugError, match=f"{blob.name}: "):
        list(Recording(copy))
    whole = json.loads((copy / "recording.json").read_text())
    whole["launches"][0]["grid"] = [1, 2]
    (copy / "recording.json").write_text(json.dumps(whole))
    with pytest.raises(DebugError, match=r"recording\.json: not a recording: launches\.0\.grid"):
        Recording(copy)
    with pytest.raises(DebugError, match=r"recording\.json: cannot be read"):
        Recording(tmp_path)


# --- another version of simt ----------------------------------------------------------------------------

PROGRAM = f"""
import numpy as np

PTX = '''{AXPY}'''

def main(gpu):
    module = gpu.load(PTX)
    x, y = (gpu.array(v) for v in np.random.default_rng(1).random((2, 1000), np.float32))
    for a in (1.0, 1.1):
        module.axpy[8, 128](x, y, a, 1000, 1)
"""
# An engine that rounds fma upwards, combined with a copy of this version's Python code.
BROKEN = """
import simt._engine as _engine
_load = _engine.functional.load
_engine.functional.load = lambda text, *rest: _load(text.replace("fma.rn", "fma.rp"), *rest)
"""


def other_python(folder: Path, broken: bool) -> Path:
    """A Python environment with another version of simt: a copy of this one, optionally with a bug."""
    copy = folder / "other" / "simt"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    version = copy / "version.py"
    version.write_text(version.read_text() + '\n__version__ = "0.0.1"\n')
    if broken:
        init = copy / "gpu" / "__init__.py"
        init.write_text(init.read_text() + BROKEN)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{copy.parent}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the other Python is a shell script")
def test_another_version_of_simt(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    result = compare(tmp_path / "program.py", other_python(tmp_path, broken=True))
    assert result.reference.startswith("simt 0.0.1 of ")
    difference = result.difference
    assert difference is not None
    # 1.0 * x + y is not always exact either, but the sum of two is often.
    assert difference.instruction is not None
    assert difference.instruction.instruction == "fma.rn.f32 %f3, %f1, %f2, %f3"
    assert difference.instruction.ulps == 1
    assert all(i.ours == i.reference for i in difference.instruction.inputs)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the other Python is a shell script")
def test_a_good_version_of_simt_and_none(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    assert compare(tmp_path / "program.py", other_python(tmp_path, broken=False)).same
    with pytest.raises(DebugError, match="another Python runs programs in files"):
        compare(axpy(), tmp_path / "python")
    nothing = tmp_path / "no-python"
    nothing.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    nothing.chmod(0o755)
    with pytest.raises(DebugError, match="its simt ended with status 3: no such module"):
        compare(tmp_path / "program.py", nothing)


def test_variables_are_restored_for_the_search(tmp_path: Path) -> None:
    """A launch that modifies its input is rerun repeatedly, each time from the same initial state."""
    text = (
        HEADER
        + """.global .u32 calls = 7;
.visible .entry count(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [calls]; add.u32 %r2, %r1, 1; st.global.u32 [calls], %r2;
  mul.lo.u32 %r3, %r2, 3; st.global.u32 [%rd1], %r3;
  ret;
}
"""
    )

    def program(ptx: str) -> object:
        def run(gpu: simt.GPU) -> None:
            module, out = gpu.load(ptx), gpu.zeros(1, np.uint32)
            for _ in range(3):
                module.count[1, 1](out)

        return run

    slip = text.replace("mul.lo.u32 %r3, %r2, 3;", "shl.b32 %r3, %r2, 1;")
    record(program(slip), tmp_path / "r")  # type: ignore[arg-type]
    difference = compare(program(text), tmp_path / "r").difference  # type: ignore[arg-type]
    assert difference is not None
    found = difference.instruction
    assert found is not None
    assert (found.instruction, found.reference_instruction) == (
        "mul.lo.u32 %r3, %r2, 3",
        "shl.b32 %r3, %r2, 1",
    )
    assert found.ours is not None and found.reference is not None
    assert (found.ours.text, found.reference.text) == ("24", "16")


def test_recorded_registers(tmp_path: Path) -> None:
    """A GPU's registers, recorded there, identify the instruction here."""
    wrong = replacing(r"fma\.rn", "fma.rp")
    record(axpy(rounds=50), tmp_path / "r", executor=gpu_with(wrong), registers="1", block=(3, 0, 0))
    live = compare(axpy(rounds=50), gpu_with(wrong), block=(3, 0, 0)).difference
    logged = compare(axpy(rounds=50), tmp_path / "r").difference
    assert live is not None and live.instruction is not None
    assert logged is not None and logged.instruction is not None
    assert logged.instruction.block == (3, 0, 0)
    for field in ("thread", "instruction", "register", "count", "ours", "reference", "inputs"):
        assert getattr(logged.instruction, field) == getattr(live.instruction, field)


def test_recorded_registers_of_another_block(tmp_path: Path) -> None:
    once = replacing(r"(fma\.rn\.f32 (%f3), .*?;)", r"\1 setp.eq.u32 %p0, %r5, 300; @%p0 add.f32 \2, \2, \2;")
    record(axpy(), tmp_path / "r", executor=gpu_with(once), registers="*", block=(0, 0, 0))
    difference = compare(axpy(), tmp_path / "r").difference
    assert difference is not None
    assert difference.instruction is None
    assert "or in another block than (0, 0, 0)" in difference.note
    with pytest.raises(DebugError, match=r"has no block \(9, 0, 0\)"):
        record(axpy(), tmp_path / "s", registers="1", block=(9, 0, 0))


def test_recorded_registers_that_are_damaged(tmp_path: Path) -> None:
    record(axpy(), tmp_path / "r", executor=gpu_with(replacing(r"fma\.rn", "fma.rp")), registers="1")
    file = tmp_path / "r" / "registers" / "1.npz"
    with np.load(file) as found:
        arrays = dict(found)
    for change, words in (
        ({"code": np.array("other")}, "belong to other code"),
        ({"points": arrays["points"] + np.uint32(1000)}, "no such instruction"),
        ({"counts": arrays["counts"][:5]}, "does not match its launch"),
        ({"block": np.array([0, 0, 1])}, "does not match its launch"),
        ({"values": arrays["values"].astype(object)}, "cannot be read"),
    ):
        np.savez(file, **{**arrays, **change})  # type: ignore[arg-type]
        with pytest.raises(DebugError, match=words):
            compare(axpy(), tmp_path / "r")
