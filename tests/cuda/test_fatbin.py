"""Extraction of PTX from nvcc's output."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simt.cuda.fatbin import ptx_in, read_fatbins
from simt.cuda.ptx_module import PtxModule
from simt.errors import PtxError
from support.fatbins import CODE_KIND, PACKINGS, cubin, entry, fatbin, ptx


@pytest.mark.parametrize("packing", PACKINGS)
def test_text_comes_back(packing: str, tmp_path: Path) -> None:
    text = ptx("f") + "// padding\n" * 1000
    path = tmp_path / "a.fatbin"
    path.write_bytes(fatbin(entry(text, 80, packing)))
    (module,) = read_fatbins(path, "sm_80")
    assert (module.text, module.arch, module.kernels) == (text, "sm_80", ("f",))
    assert str(path) in module.name


def test_units_are_kept_apart() -> None:
    """Two files with a kernel of the same name, in a program with other bytes around and between them."""
    first, second = (fatbin(entry(ptx("same") + f"// {file}", 80, "zstd")) for file in "ab")
    modules = ptx_in(b"\x7fELF" + bytes(77) + first + b"text" * 5 + second, "program", "sm_86")
    assert [module.kernels for module in modules] == [("same",), ("same",)]
    assert [module.text[-1] for module in modules] == ["a", "b"]
    assert len({module.name for module in modules}) == 2


@pytest.mark.parametrize(
    ("device", "chosen"),
    [("sm_70", "sm_70"), ("sm_75", "sm_70"), ("sm_89", "sm_80"), ("sm_90", "sm_90a"), ("sm_100", "sm_80")],
)
def test_newest_that_runs_is_chosen(device: str, chosen: str) -> None:
    """sm_90a runs only on compute capability 9.0, the others on every later one."""
    entries = [entry(ptx("f", arch), int(arch[3:5])) for arch in ("sm_80", "sm_90a", "sm_70")]
    (module,) = ptx_in(fatbin(*entries), "p", device)
    assert module.arch == chosen
    assert [module.arch for module in ptx_in(fatbin(*entries), "p")] == ["sm_80", "sm_90a", "sm_70"]


def test_units_without_device_code_are_left_out() -> None:
    empty = ".version 8.0\n.target sm_80\n.address_size 64\n"
    modules = ptx_in(fatbin(entry(empty, 80)) + fatbin(entry(ptx("f"), 80)), "p", "sm_80")
    assert [module.kernels for module in modules] == [("f",)]


def test_only_machine_code() -> None:
    with pytest.raises(PtxError, match=r"^p: holds no PTX; compile it with -gencode"):
        ptx_in(fatbin(entry(b"\x7fELF" + bytes(60), 80, kind=CODE_KIND)), "p", "sm_80")


def test_only_ptx_for_newer_devices() -> None:
    with pytest.raises(PtxError, match="holds PTX for sm_80, sm_90, none that runs on sm_75"):
        ptx_in(fatbin(entry(ptx("f"), 80), entry(ptx("f", "sm_90a"), 90)), "p", "sm_75")


def test_no_fat_binary() -> None:
    with pytest.raises(PtxError, match="holds no PTX"):
        ptx_in(b"\x7fELF" + bytes(200), "p", "sm_80")


def test_missing_and_empty_file(tmp_path: Path) -> None:
    with pytest.raises(PtxError, match="cannot be read: No such file"):
        read_fatbins(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(PtxError, match="is empty"):
        read_fatbins(tmp_path / "empty")


def test_debug_text_of_a_cubin() -> None:
    (module,) = ptx_in(cubin("\n\n" + ptx("f")), "c.cubin", "sm_80")
    assert module.kernels == ("f",)
    with pytest.raises(PtxError, match="none that runs on sm_70"):
        ptx_in(cubin(ptx("f")), "c.cubin", "sm_70")
    with pytest.raises(PtxError, match="holds no PTX"):
        ptx_in(cubin(ptx("f"), section=b".text.f"), "c.cubin", "sm_80")


def test_debug_texts_of_a_cubin_that_nvjitlink_made() -> None:
    linked = cubin(ptx("f"), ptx("g"), section=b".nv_debug_ptx_txt.789144363")
    assert [module.kernels for module in ptx_in(linked, "c.cubin", "sm_80")] == [("f",), ("g",)]


def test_damage_is_named() -> None:
    good = fatbin(entry(ptx("f"), 80, "lz4"))
    with pytest.raises(PtxError, match=r"the fat binary at 0 ends at \d+, the file at \d+"):
        ptx_in(good[:-1], "p")
    with pytest.raises(PtxError, match="the entry at 16 has a header of 63 bytes"):
        ptx_in(good[:20] + b"\x3f" + good[21:], "p")
    with pytest.raises(PtxError, match="the PTX at 16 would have"):
        ptx_in(good[:78] + b"\xff" + good[79:], "p")


_VALID = [
    fatbin(*(entry(ptx(f"k{arch}", f"sm_{arch}") * 3, arch, packing) for arch in (70, 90))) * 2
    for packing in PACKINGS
] + [cubin(ptx("f"))]


def test_a_target_of_no_known_form_is_refused_with_the_name() -> None:
    with pytest.raises(PtxError, match=r"unit: its target is sm_9000"):
        PtxModule.from_text(".version 8.0\n.target sm_9000\n", "unit")


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(_VALID),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6),
    st.integers(0, 2000),
)
def test_damage_never_crashes(valid: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(valid)
    for place, value in changes:
        data[place % len(data)] = value
    if cut < len(data):
        del data[cut:]
    try:
        modules = ptx_in(bytes(data), "damaged", "sm_90")
    except PtxError as error:
        assert str(error).startswith("damaged")
    else:
        assert modules


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["size", "speed", "balance", "none"])
def test_what_nvcc_makes(mode: str, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    source = tmp_path / "a.cu"
    source.write_text('extern "C" __global__ void f(int *p) { p[threadIdx.x] = 1; }\n')
    made = tmp_path / "a.fatbin"
    target = "--generate-code=arch=compute_80,code=[sm_80,compute_80]"
    subprocess.run([nvcc, "-fatbin", target, f"--compress-mode={mode}", source, "-o", made], check=True)
    (module,) = read_fatbins(made, "sm_90")
    assert (module.arch, module.kernels) == ("sm_80", ("f",))
