"""Fat binaries with machine code: which of their entries a GPU executes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import simt
from simt.cuda import CubinModule, PtxModule, compile_cuda, load_images, machine_code
from simt.cuda.ptxas import _assemblers, compiled_arch
from simt.errors import ImageError, SimtError
from simt.sass.disassembler import is_installed
from support.fatbins import CODE_KIND, PACKINGS, entry, fatbin

pytestmark = pytest.mark.skipif(
    not is_installed() or not _assemblers(),
    reason="pyelftools or ptxas is not installed: pip install 'simt[cuda,sass]'",
)
SOURCE = 'extern "C" __global__ void adds(int* x, int n) { x[threadIdx.x] += n; }'


def module(arch: str, kernel: str = "adds") -> PtxModule:
    return compile_cuda(SOURCE.replace("adds", kernel), name="k.cu", arch=arch)


def code(arch: str, packing: str = "none", kernel: str = "adds") -> bytes:
    number = int(arch.removeprefix("sm_").rstrip("a"))
    return entry(machine_code(module(arch, kernel), arch), number, packing, CODE_KIND)


def ptx(arch: str) -> bytes:
    return entry(module(arch).text, int(arch.removeprefix("sm_")))


def chosen(data: bytes, gpu: str, code: str) -> str:
    image = simt.GPU(gpu, code=code, functional=True).load(data, name="file").image
    return f"{'PTX' if isinstance(image, PtxModule) else 'code'} {image.arch}"


@pytest.mark.parametrize("packing", PACKINGS)
def test_machine_code_without_ptx_runs(packing: str, tmp_path: Path) -> None:
    path = tmp_path / "k.fatbin"
    path.write_bytes(fatbin(code("sm_80", packing), code("sm_90", packing)))
    x = np.arange(32, dtype=np.int32)
    simt.GPU("a100").load(path).adds[1, 32](x, 2)
    simt.GPU("h100").load(path.read_bytes()).adds[1, 32](x, 3)
    assert x.tolist() == [i + 5 for i in range(32)]


@pytest.mark.parametrize(
    ("gpu", "prefers", "takes"),
    [
        ("a100", "ptx", "PTX sm_80"),
        ("a100", "sass", "code sm_80"),
        ("rtx3070", "sass", "code sm_86"),
        ("h100", "sass", "code sm_90a"),
        ("h100", "ptx", "PTX sm_80"),
        ("rtx2060", "sass", "code sm_75"),
        ("rtx2060", "ptx", "code sm_75"),
    ],
)
def test_what_is_taken(gpu: str, prefers: str, takes: str) -> None:
    every = [code(arch) for arch in ("sm_75", "sm_80", "sm_86", "sm_90", "sm_90a")]
    assert chosen(fatbin(*every, ptx("sm_80")), gpu, prefers) == takes


def test_ptx_is_compiled_where_machine_code_is_of_others() -> None:
    data = fatbin(code("sm_90"), ptx("sm_75"))
    gpu = simt.GPU("a100", code="sass", functional=True)
    x = np.arange(32, dtype=np.int32)
    loaded = gpu.load(data)
    loaded.adds[1, 32](x, 2)
    assert isinstance(loaded.image, PtxModule) and loaded.native.is_machine_code
    assert x.tolist() == [i + 2 for i in range(32)]


def test_volta_executes_its_own_code_of_ptx_for_turing() -> None:
    """nvcc 13 makes neither code nor PTX for Volta."""
    if compiled_arch(module("sm_70"), "sm_70") != "sm_70":
        pytest.skip("no ptxas of CUDA 12 is installed: pip install 'simt[cuda]'")
    newer = module("sm_75").text.replace(".version 8.8", ".version 9.0", 1)
    data = fatbin(code("sm_75"), entry(newer, 75))
    assert ".version 9.0" in newer
    assert chosen(data, "qv100", "sass") == "code sm_70"
    assert chosen(data, "rtx2060", "sass") == "code sm_75"
    x = np.arange(32, dtype=np.int32)
    simt.GPU("qv100", code="sass", functional=True).load(data).adds[1, 32](x, 2)
    assert x.tolist() == [i + 2 for i in range(32)]


def test_volta_executes_turings_code_where_ptxas_refuses_the_ptx() -> None:
    """tanh.approx.f16 is of sm_75."""
    text = module("sm_75").text
    begin = text.index("{", text.index(".entry")) + 1
    newer = text[:begin] + " .reg .b16 %h; mov.b16 %h, 0; tanh.approx.f16 %h, %h;" + text[begin:]
    assert chosen(fatbin(code("sm_75"), entry(newer, 75)), "qv100", "sass") == "code sm_75"


def test_what_is_there_and_what_is_needed_are_named() -> None:
    with pytest.raises(ImageError) as refused:
        simt.GPU("rtx3070").load(fatbin(code("sm_90"), code("sm_75"), ptx("sm_90")), name="file")
    assert str(refused.value) == (
        "file: holds PTX for sm_90 and machine code for sm_75 and machine code for sm_90; needed for sm_86 "
        "is machine code for sm_80 to sm_86, or PTX for sm_86 or older (nvcc -gencode "
        "arch=compute_86,code=sm_86)"
    )


def test_units_with_kernels_of_their_own() -> None:
    data = fatbin(code("sm_80")) + bytes(8) + fatbin(code("sm_80", kernel="others"))
    with pytest.raises(ImageError, match="file: 2 modules with kernels, expected one"):
        simt.GPU("a100").load(b"\0" + data, name="file")
    images = load_images(b"\0" + data, "sm_80", name="file")
    assert [image.kernels for image in images] == [("adds",), ("others",)]
    assert all(isinstance(image, CubinModule) for image in images)


def test_the_command_shows_what_a_fatbin_holds(tmp_path: Path) -> None:
    from simt.cli.sass import app

    path = tmp_path / "k.fatbin"
    path.write_bytes(fatbin(code("sm_80"), code("sm_90")))
    shown = CliRunner().invoke(app, ["show", str(path), "--gpu", "h100"])
    assert shown.exit_code == 0 and shown.output.startswith("adds (sm_90, ")
    path.write_bytes(machine_code(module("sm_75"), "sm_75"))
    listed = CliRunner().invoke(app, ["list", str(path), "--gpu", "a100"])
    assert listed.exit_code == 0 and "sm_75" in listed.output


@settings(max_examples=25, deadline=None)
@example("none", [(41324, 0)], 0)  # an architecture of 0
@given(
    st.sampled_from(PACKINGS),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 1 << 16),
)
def test_damage_never_crashes(packing: str, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(fatbin(code("sm_80", packing)))
    header = struct.calcsize("<8sQ") + 64
    for place, value in changes:
        data[place % header if packing == "none" else place % len(data)] = value
    whole = bytes(data[: max(16, cut % len(data))]) if cut & 1 else bytes(data)
    try:
        load_images(whole, "sm_80", name="damaged")
    except SimtError as error:
        assert "damaged" in str(error)
