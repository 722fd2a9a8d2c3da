"""Several translation units as one module."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simt
from simt.cuda import link, toolkit
from simt.errors import PtxError
from simt.sass.disassembler import is_installed

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
MAIN = (
    HEAD
    + """.file 1 "main.cu"
.extern .func (.param .b32 r) twice(.param .b32 a);
.extern .global .u32 factor;
.extern .shared .align 4 .b8 dynamic[];
.weak .global .u32 shift = 100;
.common .global .u32 room[2];
.global .u32 hidden = 7;
.visible .entry k(.param .u64 out) {
  .reg .b64 %o; .reg .b32 %r<6>;
  ld.param.u64 %o, [out];
  { .param .b32 x; .param .b32 y; st.param.b32 [x], 5; call (y), twice, (x); ld.param.b32 %r0, [y]; }
  ld.global.u32 %r1, [factor]; ld.global.u32 %r2, [shift]; ld.global.u32 %r3, [hidden];
  st.global.u32 [room+12], 9; ld.global.u32 %r4, [room+12];
  .loc 1 3 1
  st.global.u32 [%o], %r0; st.global.u32 [%o+4], %r1; st.global.u32 [%o+8], %r2; st.global.u32 [%o+12], %r3;
  st.global.u32 [%o+16], %r4;
  ret;
}
"""
)
LIBRARY = (
    HEAD.replace("8.0", "8.3").replace("sm_80", "sm_75")
    + """.file 1 "library.cu"
.global .u32 hidden = 1000;
.visible .global .u32 factor = 3;
.visible .global .u32 shift = 8;
.common .global .u32 room[4];
.weak .func (.param .b32 r) twice(.param .b32 a) {
  .reg .b32 %r<3>;
  .loc 1 1 1
  ld.param.b32 %r0, [a]; ld.global.u32 %r1, [hidden]; mad.lo.u32 %r0, %r0, 2, %r1; st.param.b32 [r], %r0; ret;
}
.weak .func unused() { ret; }
"""
)
OTHER = HEAD + ".weak .func (.param .b32 r) twice(.param .b32 a) { st.param.b32 [r], 0; ret; }\n"


def run(module: simt.gpu.Module) -> list[int]:
    out = np.zeros(5, np.uint32)
    module.k[1, 1](out)
    return out.tolist()


def test_names_find_their_definitions(tmp_path: Path) -> None:
    (tmp_path / "main.ptx").write_text(MAIN)
    gpu = simt.GPU("a100", functional=True)
    # A strong definition takes precedence over a weak one, the first of several weak ones is used, and the
    # largest common one; each file keeps its own `hidden`.
    for programs in ([tmp_path / "main.ptx", LIBRARY, OTHER], [LIBRARY, OTHER, str(tmp_path / "main.ptx")]):
        module = gpu.link(programs)
        assert run(module) == [1010, 3, 8, 7, 9]
        assert module.kernels == ("k",)
    module = link([tmp_path / "main.ptx", LIBRARY], "sm_80")
    assert (module.arch, module.text.split("\n")[0]) == ("sm_80", ".version 8.3")
    assert '.file 2 "library.cu"' in module.text
    assert ".loc 2 1 1" in module.text
    assert run(gpu.link([module])) == [1010, 3, 8, 7, 9]


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        ([MAIN, OTHER], r"kernel\.ptx:6: `factor` is not defined here nor in kernel\.ptx; link the file"),
        ([MAIN], "`twice` is not defined here nor in no other file|`factor` is not defined"),
        ([LIBRARY, LIBRARY], r"`factor` is defined twice: kernel\.ptx:6 and kernel\.ptx:6"),
        ([MAIN, LIBRARY, MAIN], r"`k` is defined twice: kernel\.ptx:11 and kernel\.ptx:11"),
        (
            [MAIN, LIBRARY.replace(".visible .global .u32 f", ".global .u32 f")],
            "has one that is not `.visible`",
        ),
        ([], "nothing to link"),
    ],
)
def test_names_without_or_with_two_definitions(programs: list[str], message: str) -> None:
    with pytest.raises(PtxError, match=message):
        link(programs, "sm_80")


@pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")
def test_cuda_files_and_ptx(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(
        'extern __device__ float scale(float); __device__ int count; extern "C" __global__ void k(float* x)'
        " { x[threadIdx.x] = scale(x[threadIdx.x]); atomicAdd(&count, 1); }\nint main() { k<<<1, 32>>>(0); }"
    )
    (tmp_path / "b.cu").write_text(
        "extern __device__ int count; __device__ float scale(float x) { return x * 3 + count * 0; }"
    )
    module = simt.GPU("a100", functional=True).link([tmp_path / "a.cu", tmp_path / "b.cu"])
    x = np.arange(32, dtype=np.float32)
    module.k[1, 32](x)
    assert (x == 3 * np.arange(32)).all()
    assert module.variable("count", np.int32).numpy()[0] == 32


@pytest.mark.skipif(not is_installed(), reason="nvdisasm is not installed")
def test_ptxas_takes_linked_programs() -> None:
    """The caller comes first, and declares the function with other names of parameters."""
    caller = (
        HEAD
        + """
    .extern .func (.param .b32 r) twice(.param .b32 x);
    .visible .entry k(.param .b64 out) { .reg .b64 %a; .reg .b32 %v; ld.param.b64 %a, [out];
    { .param .b32 p; .param .b32 q; st.param.b32 [p], 21; call (q), twice, (p); ld.param.b32 %v, [q]; }
    st.global.b32 [%a], %v; ret; }
    """
    )
    callee = (
        HEAD
        + """
    .visible .func (.param .b32 result) twice(.param .b32 given) { .reg .b32 %x; ld.param.b32 %x, [given];
    add.u32 %x, %x, %x; st.param.b32 [result], %x; ret; }
    """
    )
    out = np.zeros(1, np.uint32)
    simt.GPU("a100", functional=True, code="sass").link([caller, callee]).k[1, 1](out)
    assert out[0] == 42
