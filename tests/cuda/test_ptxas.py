"""Registers, shared memory and spills from ptxas."""

import pytest

from simt.cache import cache_directory
from simt.cuda import PtxModule, compile_cuda, ptxas, resources
from simt.errors import CompileError, PtxError

pytestmark = [
    pytest.mark.skipif(not ptxas._assemblers(), reason="no ptxas is installed"),
    pytest.mark.usefixtures("empty_cache"),
]

_LIVE = 40


def _hold(limit: str = "") -> PtxModule:
    """A kernel that keeps `_LIVE` loaded values live at once: all are loaded before a barrier and stored
    after it.
    """
    loads = "\n".join(f"ld.volatile.global.f32 %f{i}, [%rd1+{4 * i}];" for i in range(_LIVE))
    stores = "\n".join(f"st.volatile.global.f32 [%rd1+{4 * i}], %f{_LIVE - 1 - i};" for i in range(_LIVE))
    return PtxModule.from_text(
        f""".version 7.0
.target sm_70
.address_size 64
.visible .entry hold(.param .u64 p)
{limit}
{{
  .reg .f32 %f<{_LIVE}>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 space[100];
  ld.param.u64 %rd1, [p];
  {loads}
  bar.sync 0;
  {stores}
  st.shared.f32 [space], %f0;
  ret;
}}
""",
        "hold.ptx",
    )


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
def test_held_values_take_registers(arch: str) -> None:
    """40 values and a two-register address, plus a few registers that the compiler needs."""
    found = resources(_hold(), arch)
    assert found is not None
    hold = found["hold"]
    assert _LIVE + 2 <= hold.registers <= _LIVE + 16
    assert hold.shared_bytes == 100
    assert hold.barriers == 1
    assert (hold.frame_bytes, hold.spill_store_bytes, hold.spill_load_bytes) == (0, 0, 0)


def test_spills() -> None:
    """With at most 32 registers, at least 40 + 2 - 32 values are spilled."""
    found = resources(_hold(".maxnreg 32"), "sm_80")
    assert found is not None
    hold = found["hold"]
    assert hold.registers <= 32
    assert min(hold.spill_store_bytes, hold.spill_load_bytes, hold.frame_bytes) >= 4 * (_LIVE + 2 - 32)


def test_local_memory_and_several_kernels() -> None:
    """An array indexed at run time is in local memory, including one in a called function."""
    source = """
    template <int N> __device__ int scatter(int *p) {
      int a[N] = {};
      for (int i = 0; i < N; ++i) a[p[i] % N] += i;
      return a[p[N] % N];
    }
    __device__ __noinline__ int deep(int *p) { return scatter<32>(p); }
    extern "C" __global__ void calls(int *p) { p[0] = deep(p); }
    extern "C" __global__ void local(int *p) { p[0] = scatter<64>(p); }
    extern "C" __global__ void empty() {}
    """
    found = resources(compile_cuda(source, arch="sm_80"), "sm_86")
    assert found is not None
    assert set(found) == {"calls", "local", "empty"}
    assert found["local"].frame_bytes == 256
    assert found["calls"].stack_bytes >= 128
    assert found["empty"].stack_bytes == found["empty"].shared_bytes == 0


def test_kept_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = ptxas._assemble
    monkeypatch.setattr(ptxas, "_assemble", lambda *arguments: calls.append(1) or real(*arguments))
    first = resources(_hold(), "sm_80")
    assert resources(_hold(), "sm_80") == first
    assert len(calls) == 1
    resources(_hold(), "sm_90")
    (kept, _) = sorted(cache_directory("ptxas").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    assert len(calls) == 2
    for damage in (b"", b"[]", b'{"hold": {"registers": 3}}', b'{"hold": 4}'):
        kept.write_bytes(damage)
        assert resources(_hold(), "sm_80") == first
    assert len(calls) == 6


def test_wrong_ptx_shows_the_log() -> None:
    bad = PtxModule.from_text(_hold().text.replace("bar.sync 0;", "bar.nonsense 0;"), "bad.ptx")
    with pytest.raises(CompileError, match=r"(?s)bad\.ptx: ptxas refuses the PTX\n.*bad\.ptx, line \d+"):
        resources(bad, "sm_80")


def test_wrong_device() -> None:
    module = compile_cuda("__global__ void f() {}", arch="sm_90a")
    assert resources(module, "sm_90") is not None
    with pytest.raises(PtxError, match="PTX for sm_90a does not run on sm_80"):
        resources(module, "sm_80")


def test_newer_ptx_than_any_assembler() -> None:
    text = _hold().text.replace(".version 7.0", ".version 99.0")
    assert resources(PtxModule.from_text(text, "new.ptx"), "sm_80") is None


def test_no_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "_assemblers", lambda: ())
    assert resources(_hold(), "sm_80") is None
