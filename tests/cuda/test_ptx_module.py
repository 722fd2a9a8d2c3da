"""Kernel names in PTX."""

import pytest

from simt.cuda import PtxModule
from simt.cuda.ptx_module import is_ptx, runs_on
from simt.errors import PtxError

_TEXT = """// compiled by hand; .entry comment
.version 8.0
.target sm_80, texmode_independent
.address_size 64
.file 1 "dir//with .entry string"
/* .entry hidden */
.visible .entry _Z5saxpyfPKfPfi(.param .f32 a, .param .u64 x,
  .param .u64 y, .param .u32 n) { ret; }
.weak .entry _ZN4deep5innerE3addEi(.param .u32 n) { ret; }
.entry plain { ret; }
.visible .entry _Z5twicei(.param .u32 n) { ret; }
.visible .entry _Z5twicef(.param .f32 n) { ret; }
.visible .entry _Z1tIfEvPT_(.param .u64 n) { ret; }
"""


def _module(**names: str) -> PtxModule:
    made = PtxModule.from_text(_TEXT.replace("_ZN4deep5innerE3addEi", "_ZN4deep5inner3addEi"), "file.ptx")
    return PtxModule(made.text, made.name, made.arch, names=names)


def test_kernels_in_order() -> None:
    module = _module()
    assert module.arch == "sm_80"
    assert module.kernels == (
        *("_Z5saxpyfPKfPfi", "_ZN4deep5inner3addEi", "plain", "_Z5twicei", "_Z5twicef", "_Z1tIfEvPT_"),
    )


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("saxpy", "_Z5saxpyfPKfPfi"),
        ("_Z5saxpyfPKfPfi", "_Z5saxpyfPKfPfi"),
        ("deep::inner::add", "_ZN4deep5inner3addEi"),
        ("plain", "plain"),
        ("add", "_ZN4deep5inner3addEi"),
        ("twice(float)", "_Z5twicef"),
        ("t<float>", "_Z1tIfEvPT_"),
        ("t", "_Z1tIfEvPT_"),
    ],
)
def test_kernel_by_name(asked: str, found: str) -> None:
    assert _module(**{"t<float>": "_Z1tIfEvPT_"}).kernel(asked) == found


def test_unknown_and_ambiguous_names() -> None:
    known = r"saxpy, deep::inner::add, plain, twice\(int\), twice\(float\), t"
    with pytest.raises(PtxError, match=rf"file.ptx: no kernel 'u'; there are: {known}"):
        _module().kernel("u")
    with pytest.raises(PtxError, match="'twice' is several kernels: _Z5twicei, _Z5twicef"):
        _module().kernel("twice")


def test_parameters() -> None:
    assert _module().parameters("_Z5saxpyfPKfPfi").count(".param") == 4
    assert _module().parameters("plain") == ""
    with pytest.raises(PtxError, match="no kernel 'pla'"):
        _module().parameters("pla")


@pytest.mark.parametrize(
    "text", ["", ".target sm_80", ".version 8.0", "__global__ void f() {}", "// .version 8.0"]
)
def test_no_ptx(text: str) -> None:
    with pytest.raises(PtxError, match="not PTX"):
        PtxModule.from_text(text, "x")
    assert not is_ptx(text) or text == ".version 8.0"


@pytest.mark.parametrize(
    ("made", "device", "runs"),
    [
        ("sm_70", "sm_70", True),
        ("sm_70", "sm_90", True),
        ("sm_80", "sm_75", False),
        ("sm_90a", "sm_90", True),
        ("sm_90", "sm_90a", True),
        ("sm_90a", "sm_100", False),
        ("sm_100f", "sm_103", True),
        ("sm_100f", "sm_120", False),
    ],
)
def test_which_device_runs_it(made: str, device: str, runs: bool) -> None:
    assert runs_on(made, device) is runs


@pytest.mark.parametrize("arch", ["sm_9", "compute_90", "sm_90b", "sm_90a ", "90"])
def test_names_of_architectures(arch: str) -> None:
    with pytest.raises(PtxError, match="is not of the form"):
        runs_on("sm_70", arch)
