"""Programs recognised by their content."""

from pathlib import Path

import pytest

from simt.cuda import load, toolkit
from simt.errors import PtxError
from support.fatbins import entry, fatbin, ptx

_needs_nvrtc = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")
_SOURCE = "__global__ void f(int *a) { a[0] = 1; }\n"


@_needs_nvrtc
def test_cuda_text_and_file(tmp_path: Path) -> None:
    (module,) = load(_SOURCE, "sm_80")
    assert (module.name, module.arch) == ("kernel.cu", "sm_80")
    (tmp_path / "value.h").write_text("#define VALUE 77\n")
    path = tmp_path / "mine.cu"
    path.write_text('#include "value.h"\n' + _SOURCE.replace("1;", "VALUE;"))
    (module,) = load(path, "sm_90a", options=["--use_fast_math"])
    assert ", 77;" in module.text
    assert (module.name, module.kernel("f")) == (str(path), "_Z1fPi")


@pytest.mark.parametrize("name", ["a.ptx", "a.cu", "a"])
def test_ptx_whatever_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("// a comment\n" + ptx("g"))
    for program in (tmp_path / name, str(tmp_path / name), ptx("g")):
        (module,) = load(program, "sm_90")
        assert (module.arch, module.kernels) == ("sm_80", ("g",))
    with pytest.raises(PtxError, match="PTX for sm_80 does not run on sm_75"):
        load(tmp_path / name, "sm_75")


def test_compiled_program(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(bytes(100) + fatbin(entry(ptx("g"), 80, "lz4")) * 2)
    assert [module.kernels for module in load(tmp_path / "program", "sm_80")] == [("g",), ("g",)]


def test_what_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(PtxError, match=r"none\.cu: cannot be read: No such file"):
        load(tmp_path / "none.cu", "sm_80")
    (tmp_path / "text.cubin").write_text("not a cubin\n")
    with pytest.raises(PtxError, match=r"text\.cubin: holds text, expected machine code or a fat binary"):
        load(tmp_path / "text.cubin", "sm_80")
    with pytest.raises(PtxError, match="cannot be read: Is a directory"):
        load(tmp_path, "sm_80")
    (tmp_path / "latin").write_bytes(b"__global__ void f() {} // \xe9")
    with pytest.raises(PtxError, match="neither text in UTF-8 nor a program: byte 26"):
        load(tmp_path / "latin", "sm_80")
