"""CUDA C++ through NVRTC."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from simt.cache import cache_directory
from simt.cuda import compile_cuda, nvrtc, toolkit
from simt.errors import CompileError, PtxError, ToolkitError

pytestmark = [
    pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed"),
    pytest.mark.usefixtures("empty_cache"),
]

_FAMILIES = {
    "cuda_fp16.h": (
        "sm_70",
        "void f(__half2 *a) { a[0] = __hfma2(a[1], a[2], a[3]); }",
        "fma.rn.f16x2",
    ),
    "cuda_bf16.h": (
        "sm_90",
        "void f(__nv_bfloat16 *a) { a[0] = __hfma(a[1], a[2], a[3]); }",
        "fma.rn.bf16",
    ),
    "cuda_fp8.h": (
        "sm_90",
        "void f(float2 *a, __nv_fp8x2_e4m3 *b) { *b = __nv_fp8x2_e4m3(*a); }",
        "cvt.rn.satfinite.e4m3x2.f32",
    ),
    "mma.h": (
        "sm_70",
        """void f(half *a, float *c) {
             using namespace nvcuda::wmma;
             fragment<matrix_a, 16, 16, 16, half, row_major> x;
             fragment<matrix_b, 16, 16, 16, half, col_major> y;
             fragment<accumulator, 16, 16, 16, float> z;
             fill_fragment(z, 0.f);
             load_matrix_sync(x, a, 16);
             load_matrix_sync(y, a, 16);
             mma_sync(z, x, y, z);
             store_matrix_sync(c, z, 16, mem_row_major);
           }""",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
    ),
    "cooperative_groups.h": (
        "sm_90",
        "void f() { cooperative_groups::this_cluster().sync(); }",
        "barrier.cluster.arrive",
    ),
    "cooperative_groups/reduce.h": (
        "sm_80",
        """void f(int *a) {
             namespace cg = cooperative_groups;
             auto warp = cg::tiled_partition<32>(cg::this_thread_block());
             a[0] = cg::reduce(warp, a[threadIdx.x], cg::plus<int>());
           }""",
        "redux.sync.add.s32",
    ),
    "cub/block/block_reduce.cuh": (
        "sm_80",
        """void f(float *a) {
             using Reduce = cub::BlockReduce<float, 128>;
             __shared__ typename Reduce::TempStorage space;
             a[0] = Reduce(space).Sum(a[threadIdx.x]);
           }""",
        "shfl.sync.down.b32",
    ),
    "cuda/atomic": (
        "sm_80",
        "void f(int *a) { cuda::atomic_ref<int, cuda::thread_scope_device>(*a).store(1, "
        "cuda::memory_order_release); }",
        "st.release.gpu.b32",
    ),
    "cuda/barrier": (
        "sm_80",
        """void f() {
             __shared__ cuda::barrier<cuda::thread_scope_block> b;
             if (threadIdx.x == 0) init(&b, blockDim.x);
             __syncthreads();
             b.arrive_and_wait();
           }""",
        "mbarrier.arrive",
    ),
    "cuda_pipeline.h": (
        "sm_80",
        """void f(int4 *a) {
             __shared__ int4 s;
             __pipeline_memcpy_async(&s, a, 16);
             __pipeline_commit();
             __pipeline_wait_prior(0);
             a[1] = s;
           }""",
        "cp.async.cg.shared.global",
    ),
    "cuda_runtime.h": (
        "sm_70",
        "void f(cudaTextureObject_t t, float *a) { a[0] = tex2D<float>(t, .5f, .5f); }",
        "tex.2d.v4.f32.f32",
    ),
    "algorithm": ("sm_70", "void f(float *a) { a[0] = std::max(a[1], a[2]); }", "setp.lt.f32"),
    "cmath": ("sm_70", "void f(float *a) { a[0] = std::sqrt(a[1]) * float(M_PI); }", "sqrt.rn.f32"),
    "cstdint": ("sm_70", "void f(std::uint64_t *a) { a[0] += UINT32_MAX; }", "add.s64"),
    "type_traits": ("sm_70", "void f(std::enable_if_t<true, int> *a) { a[0] = 1; }", "st.global"),
    "stdio.h": ("sm_70", 'void f(int n) { printf("%d", n); }', "vprintf"),
    "assert.h": ("sm_70", "void f(int n) { assert(n); }", "__assertfail"),
}


@pytest.mark.slow
@pytest.mark.parametrize("header", _FAMILIES)
def test_headers(header: str) -> None:
    arch, function, expected = _FAMILIES[header]
    module = compile_cuda(f'#include <{header}>\nextern "C" __global__ {function}\n', arch=arch)
    assert module.kernels == ("f",)
    assert expected in module.text


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"])
def test_targets(arch: str) -> None:
    source = "#if __CUDA_ARCH__ != NUMBER\n#error wrong\n#endif\n__global__ void f() {}"
    module = compile_cuda(source, arch=arch, defines={"NUMBER": int(arch[3:5]) * 10})
    assert f"\n.target {arch}\n" in module.text
    assert (module.arch, module.log) == (arch, "")


def test_what_nvcc_declares_without_being_asked() -> None:
    module = compile_cuda("__global__ void f(float *a, uint32_t n) { a[n] = a[n] < INFINITY ? NAN : 1; }")
    assert module.kernel("f") == "_Z1fPfj"


def test_line_information() -> None:
    source = "__global__ void f(int *a)\n{\n  a[0] = 7;\n}\n"
    module = compile_cuda(source, name="dir/mine.cu")
    assert '.file\t1 "dir/mine.cu"' in module.text
    assert ".loc\t1 3 3" in module.text
    assert module.source == source
    assert ".loc" not in compile_cuda(source, debug_lines=False).text


def test_name_expressions() -> None:
    source = """
    namespace n {
    template <typename T, int N> __global__ void f(T *a) { a[N] = T(N); }
    __constant__ int table[4];
    }"""
    module = compile_cuda(source, kernels=["n::f<float, 2>", "n::f<double, (1 + 2)>", "&n::table"])
    assert module.kernel("n::f<float, 2>") == "_ZN1n1fIfLi2EEEvPT_"
    assert module.kernel("n::f<double, (1 + 2)>") == "_ZN1n1fIdLi3EEEvPT_"
    assert module.names["&n::table"] == "_ZN1n5tableE"
    assert set(module.kernels) == {"_ZN1n1fIfLi2EEEvPT_", "_ZN1n1fIdLi3EEEvPT_"}
    with pytest.raises(PtxError, match=r"no kernel 'n::f<int, 2>'; there are: n::f<float, 2>"):
        module.kernel("n::f<int, 2>")


def test_errors_show_the_log_with_source_lines() -> None:
    with pytest.raises(CompileError) as caught:
        compile_cuda("__global__ void f(float *a)\n{\n  a[0] = missing;\n}\n", name="bad.cu")
    message = str(caught.value)
    assert message.startswith("bad.cu: does not compile for sm_90 with NVRTC ")
    assert 'bad.cu(3): error: identifier "missing" is undefined\n    a[0] = missing;\n' in message


@pytest.mark.parametrize(
    ("source", "arguments", "expected"),
    [
        ("int main() {}", {}, "contains only host code: nothing is marked `__global__`"),
        ('#include "none.h"', {}, "pass the folder of your own headers as include="),
        ("", {"options": ["--bogus"]}, "unrecognized option --bogus"),
        ("", {"kernels": ["f<int>"]}, 'identifier "f" is undefined'),
        ("int a;\0int b;", {}, "the source holds a NUL character at 6"),
    ],
)
def test_what_is_refused(source: str, arguments: dict[str, list[str]], expected: str) -> None:
    with pytest.raises(CompileError, match=r"^kernel\.cu") as caught:
        compile_cuda(source, **arguments)  # type: ignore[arg-type]
    assert expected in str(caught.value)


def test_warnings_are_kept() -> None:
    module = compile_cuda("__global__ void f() {\n  int unused;\n}")
    assert 'kernel.cu(2): warning #177-D: variable "unused"' in module.log


def test_unknown_targets() -> None:
    with pytest.raises(
        ToolkitError, match=r"no installed NVRTC compiles for sm_30: NVRTC \d+\.\d+ knows sm_"
    ):
        compile_cuda("", arch="sm_30")
    with pytest.raises(PtxError, match="is not of the form"):
        compile_cuda("", arch="hopper")


def test_options() -> None:
    source = "__global__ void f(float *a) { a[0] = a[1] / a[2]; }"
    assert "div.rn.f32" in compile_cuda(source).text
    assert "div.approx.ftz.f32" in compile_cuda(source, options=["--use_fast_math"]).text
    assert compile_cuda("#if __cplusplus < 202002L\n#error\n#endif", options=["--std=c++20"]).kernels == ()


def test_no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "_find", lambda _: ())
    monkeypatch.setattr(toolkit, "_find_outside_pip", lambda: None)
    with pytest.raises(ToolkitError, match=r"is not installed: pip install 'simt\[cuda\]'"):
        compile_cuda("")


def test_nvrtc_of_conda_or_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "lib" / "libnvrtc.so.12.9.86"
    library.parent.mkdir()
    library.touch()
    soname = library.with_name("libnvrtc.so.12")
    soname.symlink_to(library)
    headers = {"cudart": "/cuda/include", "nvcc": "/cuda/include", "cccl": None}
    monkeypatch.setattr(toolkit, "_find", lambda _: ())
    monkeypatch.setattr(
        "cuda.pathfinder.load_nvidia_dynamic_lib", lambda name: SimpleNamespace(abs_path=str(soname))
    )
    monkeypatch.setattr("cuda.pathfinder.find_nvidia_header_directory", headers.get)
    toolkit._find_outside_pip.cache_clear()
    found = toolkit.need_nvrtc()
    toolkit._find_outside_pip.cache_clear()
    assert (found.major, found.nvrtc, found.include) == (12, library, (Path("/cuda/include"),))
    assert str(library) in found.versions[0]


def test_nvrtc_through_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    found = toolkit.need_nvrtc()
    with pytest.raises(ToolkitError, match=r"this process already uses NVRTC \d+\.\d+, not /"):
        nvrtc._Nvrtc(replace(found, versions=("nvrtc 11.8.89",)))
    with pytest.raises(ToolkitError, match=r"cannot be loaded: .* pip install"):
        nvrtc._Nvrtc(replace(found, nvrtc=Path("/nowhere/libnvrtc.so.12")))
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(ToolkitError, match=r"needs cuda-bindings, which is not installed: pip install"):
        nvrtc._Nvrtc(found)


class TestCache:
    """Compiled programs are read back from the cache, and nothing else."""

    SOURCE = '#include "mine.h"\n__global__ void f(int *a) { a[0] = MINE; }'

    @pytest.fixture
    def compilations(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """A list that grows with every real compilation."""
        calls: list[str] = []
        real = nvrtc._compile

        def compiling(*arguments: object) -> object:
            calls.append("compiled")
            return real(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(nvrtc, "_compile", compiling)
        return calls

    def test_second_time(self, compilations: list[str]) -> None:
        source = "template <int N> __global__ void f(int *a) { int unused; a[0] = N; }"
        first = compile_cuda(source, kernels=["f<3>"])
        second = compile_cuda(source, kernels=["f<3>"])
        assert first == second
        assert first.log and first.names == {"f<3>": "_Z1fILi3EEvPi"}
        assert len(compilations) == 1

    def test_what_makes_a_difference(self, compilations: list[str]) -> None:
        source = "__global__ void f() {}"
        compile_cuda(source)
        compile_cuda(source + "\n")
        compile_cuda(source, arch="sm_80")
        compile_cuda(source, defines={"A": 1})
        compile_cuda(source, options=["--use_fast_math"])
        compile_cuda(source, name="other.cu")
        compile_cuda(source, debug_lines=False)
        compile_cuda(source, kernels=["f"])
        assert len(compilations) == 8

    def test_changed_header(self, tmp_path: Path, compilations: list[str]) -> None:
        """Including one included by a header, and a new one that hides another of the same name."""
        first, second = tmp_path / "first", tmp_path / "second"
        first.mkdir()
        second.mkdir()
        (second / "mine.h").write_text('#include "value.h"\n')
        (second / "value.h").write_text("#define MINE 41\n")

        def compiled() -> str:
            return compile_cuda(self.SOURCE, include=[first, second]).text

        assert ", 41;" in compiled()
        assert ", 41;" in compiled()
        (second / "value.h").write_text("#define MINE 42\n")
        assert ", 42;" in compiled()
        (first / "mine.h").write_text("#define MINE 43\n")
        assert ", 43;" in compiled()
        assert len(compilations) == 3

    def test_headers_that_include_each_other(self, tmp_path: Path, compilations: list[str]) -> None:
        """Using paths that would grow without limit."""
        for here, there in (("one", "two"), ("two", "one")):
            (tmp_path / here).mkdir()
            text = f'#pragma once\n#include "../{there}/{there}.h"\n#define {here.upper()} 21\n'
            (tmp_path / here / f"{here}.h").write_text(text)
        source = '#include "one/one.h"\n__global__ void f(int *a) { a[0] = ONE + TWO; }'
        for _ in range(2):
            assert ", 42;" in compile_cuda(source, include=[tmp_path]).text
        (tmp_path / "two" / "two.h").write_text("#define TWO 22\n")
        assert ", 43;" in compile_cuda(source, include=[tmp_path]).text
        assert len(compilations) == 2

    def test_headers_that_cannot_be_told(self, tmp_path: Path, compilations: list[str]) -> None:
        (tmp_path / "mine.h").write_text("#define MINE 41\n")
        sources = [self.SOURCE.replace('"mine.h"', "WHICH"), f"#if __has_include(<x>)\n#endif\n{self.SOURCE}"]
        for source in sources:
            for _ in range(2):
                compile_cuda(source, include=[tmp_path], defines={"WHICH": '"mine.h"'})
        for _ in range(2):
            compile_cuda(self.SOURCE, options=[f"-I{tmp_path}"])
        assert len(compilations) == 6

    @pytest.mark.parametrize("damage", [b"", b"[1]", b"{}", b'["", "", 3]', b"\xff\x00"])
    def test_damaged_files_are_made_again(self, damage: bytes, compilations: list[str]) -> None:
        module = compile_cuda("__global__ void f() {}")
        (kept,) = cache_directory("ptx").glob("*.json")
        kept.write_bytes(damage)
        assert compile_cuda("__global__ void f() {}") == module
        assert len(compilations) == 2
        assert [path.name for path in cache_directory("ptx").iterdir()] == [kept.name]

    def test_errors_are_not_kept(self, compilations: list[str]) -> None:
        for _ in range(2):
            with pytest.raises(CompileError):
                compile_cuda("nonsense")
        assert len(compilations) == 2


def test_layout_of_cuda_13(tmp_path: Path) -> None:
    """One folder for all components; CUDA 12 takes precedence if present."""
    root = tmp_path / "nvidia"
    for file in ("cu13/lib/libnvrtc.so.13", "cu13/bin/ptxas", "cu13/include/cccl/x", "cuda_nvcc/bin/ptxas"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    twelve, thirteen = toolkit._find((str(tmp_path / "nowhere"), str(tmp_path)))
    assert (twelve.major, twelve.nvrtc, twelve.ptxas) == (12, None, root / "cuda_nvcc/bin/ptxas")
    assert (thirteen.major, thirteen.nvrtc) == (13, root / "cu13/lib/libnvrtc.so.13")
    assert thirteen.include == (root / "cu13/include", root / "cu13/include/cccl")
