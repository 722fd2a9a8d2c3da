"""Executed launches under the timing engine: values, independence of threads and windows, traces of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simt
from simt.cuda import PtxModule
from simt.options import Code
from simt.result import perfetto

pytest.importorskip("lz4")
PTX = ".version 8.7\n.target sm_70\n.address_size 64\n"

# A ticket lock, a flag between CTAs, and a counter that allocates places: all depend on the order of time.
ORDERED = (
    PTX
    + """
.visible .entry places(.param .u64 counter, .param .u64 out)
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [counter]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  atom.global.add.u32 %r5, [%rd1], 1;
  mul.wide.u32 %rd3, %r5, 4; add.u64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r4;
  ret;
}
.visible .entry handover(.param .u64 flag, .param .u64 data, .param .u64 out)
{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [data]; ld.param.u64 %rd3, [out];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mul.wide.u32 %rd4, %r2, 4;
  setp.ne.u32 %p, %r1, 0;
  @%p bra CONSUMER;
  add.u64 %rd5, %rd2, %rd4; mad.lo.u32 %r3, %r2, 3, 7; st.global.u32 [%rd5], %r3;
  bar.sync 0;
  setp.ne.u32 %p, %r2, 0;
  @%p bra DONE;
  membar.gl; st.volatile.global.u32 [%rd1], 1;
  bra DONE;
CONSUMER:
  ld.volatile.global.u32 %r4, [%rd1];
  setp.eq.u32 %p, %r4, 0;
  @%p bra CONSUMER;
  membar.gl;
  add.u64 %rd5, %rd2, %rd4; ld.global.u32 %r5, [%rd5];
  mov.u32 %r6, %ntid.x; mad.lo.u32 %r6, %r1, %r6, %r2; mul.wide.u32 %rd6, %r6, 4; add.u64 %rd7, %rd3, %rd6;
  st.global.u32 [%rd7], %r5;
DONE:
  ret;
}
.visible .entry own_reduction(.param .u64 cells, .param .u64 out)
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [cells]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  red.global.add.u32 [%rd4], 5;
  ld.global.u32 %r5, [%rd4];
  st.global.u32 [%rd5], %r5;
  ret;
}
.visible .entry lock(.param .u64 mutex, .param .u64 sum)
{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [mutex]; ld.param.u64 %rd2, [sum];
TRY:
  atom.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra TRY;
  membar.gl;
  ld.volatile.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd2], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%rd1], 0;
  ret;
}
"""
)


def device(threads: int = 1, window: int | None = None, **options: object) -> tuple[simt.GPU, object]:
    gpu = simt.GPU("qv100", threads=threads, window=window, set={"sm.count": 8}, **options)  # type: ignore[arg-type]
    return gpu, gpu.load(PtxModule.from_text(ORDERED, "ordered.ptx"))


def run(
    kernel: str, threads: int = 1, window: int | None = None, **options: object
) -> tuple[np.ndarray, object]:
    _, module = device(threads, window, **options)
    n = 12 * 64
    out, cell, data = np.zeros(n, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    launch = module[kernel]  # type: ignore[index]
    match kernel:
        case "places":
            result = launch[12, 64](cell, out)
        case "handover":
            result = launch[12, 64](cell, data, out)
        case "own_reduction":
            result = launch[12, 64](np.arange(n, dtype=np.uint32), out)
        case _:
            result = launch[3, 40](cell, out)
    return out, result


def check(kernel: str, out: np.ndarray) -> None:
    n = len(out)
    match kernel:
        case "places":
            assert sorted(out) == list(range(n))
        case "handover":
            assert (out[:64] == 0).all()
            assert (out[64:].reshape(-1, 64) == 3 * np.arange(64) + 7).all()
        case "own_reduction":
            assert (out == np.arange(n) + 5).all()
        case _:
            assert out[0] == 3 * 40


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["places", "handover", "own_reduction", "lock"])
def test_accesses_in_the_order_of_time(kernel: str) -> None:
    """Correct values, and the same values and counters for any number of threads and any window."""
    first, counted = run(kernel)
    check(kernel, first)
    for threads, window in ((1, 1), (2, 3), (2, None)):
        again, recounted = run(kernel, threads, window)
        assert (again == first).all()
        assert recounted == counted
        assert recounted.engine == counted.engine  # type: ignore[attr-defined]
    functional, _ = run(kernel, functional=True)
    check(kernel, functional)


def test_lanes_of_a_warp_pass_a_lock_on() -> None:
    """The record behind a taken branch is there while the one behind it is not."""
    _, module = device()
    out, cell = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    module["lock"][1, 2](cell, out)  # type: ignore[index]
    assert out[0] == 2


STENCIL = (
    PTX
    + """
.visible .entry stencil(.param .u64 in, .param .u64 out, .param .u32 n)
{
  .reg .pred %p<3>; .reg .f32 %f<8>; .reg .b32 %r<10>; .reg .b64 %rd<8>;
  .shared .align 4 .b8 tile[520];
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd3, %r5, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  mov.u32 %r6, tile; shl.b32 %r7, %r4, 2; add.u32 %r6, %r6, %r7;
  ld.global.f32 %f1, [%rd4]; st.shared.f32 [%r6+4], %f1;
  bar.sync 0;
  setp.eq.u32 %p1, %r4, 0; @%p1 bra EDGE;
  setp.eq.u32 %p2, %r4, 127; @%p2 bra EDGE;
  ld.shared.f32 %f2, [%r6]; ld.shared.f32 %f3, [%r6+8];
  add.f32 %f4, %f2, %f3; add.f32 %f5, %f4, %f1; st.global.f32 [%rd5], %f5;
  ret;
EDGE:
  st.global.f32 [%rd5], %f1;
  ret;
}
"""
)


# Text does not contain constant operands, so traces are compared in launches without misses of these.
TRACES: dict[str, dict[str, object]] = {"trace.simt": {}, "text": {"constant_cache.perfect": True}}


@pytest.mark.parametrize("spec", ["qv100", "qv100-accelsim", "h100"])
def test_a_recorded_trace_takes_the_same_time(spec: str, tmp_path: Path) -> None:
    """Executed launches can be recorded, as a store and as text; replayed, the same instructions take the
    same cycles. Copies to the GPU are not in the trace, so the executed launch is also timed with cold
    caches.
    """
    n = 128 * 40
    data = np.random.default_rng(1).random(n, np.float32)
    expected = data.reshape(-1, 128).copy()
    expected[:, 1:-1] = (expected[:, :-2] + expected[:, 2:]) + expected[:, 1:-1]
    for name, options in TRACES.items():
        path, options = tmp_path / name, {"l2.copies_fill": False, **options}
        gpu = simt.GPU(spec, code="ptx", set=options)
        kernel = gpu.load(PtxModule.from_text(STENCIL, "stencil.ptx")).stencil
        source, out = gpu.array(data), gpu.empty(n)
        timed = kernel[40, 128](source, out, n)
        assert (out.numpy() == expected.reshape(-1)).all()
        out.set(0)
        with gpu.trace(path):
            assert kernel[40, 128](source, out, n) is None
        assert (out.numpy() == expected.reshape(-1)).all()
        replayed = simt.simulate(path, spec, set=options).launches[0]
        assert replayed.warp_instructions == timed.warp_instructions
        # Text does not contain predicates, so a trace does not wait for them.
        allowed = 0 if path.suffix == ".simt" else 0.01 * timed.cycles
        assert abs(replayed.cycles - timed.cycles) <= allowed


def test_streams_overlap_and_wait_for_events() -> None:
    gpu = simt.GPU("qv100")
    kernel = gpu.load(PtxModule.from_text(STENCIL, "stencil.ptx")).stencil
    data = gpu.array(np.ones(128 * 8, np.float32))
    a, b, c = (gpu.empty(128 * 8) for _ in range(3))
    one, two = gpu.stream(), gpu.stream()
    assert kernel[8, 128, 0, one](data, a, 1024) is None
    kernel[8, 128, 0, two](data, b, 1024)
    two.wait(one.record())
    kernel[8, 128, 0, two](a, c, 1024)
    gpu.synchronize()
    first, second, third = gpu.launches
    assert second.start_cycle < first.end_cycle  # concurrently
    assert third.start_cycle >= max(first.end_cycle, second.end_cycle)
    assert (c.numpy().reshape(-1, 128)[:, 2] == 9).all()


VECTORS = """
extern "C" __global__ void bodies(const float4* position, float4* force, int n) {
  __shared__ float4 tile[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float4 own = position[i];
  float x = 0, y = 0, z = 0;
  for (int first = 0; first < n; first += 64) {
    tile[threadIdx.x] = position[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 64; ++j) {
      const float4 other = tile[j];
      const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      const float s = other.w * inverse * inverse * inverse;
      x += dx * s, y += dy * s, z += dz * s;
    }
    __syncthreads();
  }
  force[i] = make_float4(x, y, z, own.w);
}
extern "C" __global__ void transposed(const float4* in, float2* out, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float4 v = in[i];
  if (i % 3) { out[2 * i] = make_float2(v.w, v.y); out[2 * i + 1] = make_float2(v.x, v.z); }
}
extern "C" __global__ void streamed(const float* in, float* out, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += in[(i + 64 * k) % (4 * n)];
  out[i] = sum;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["qv100", "h100"])
@pytest.mark.parametrize("kernel", ["bodies", "transposed", "streamed"])
def test_traces_of_vector_accesses_take_the_same_time(spec: str, kernel: str, tmp_path: Path) -> None:
    n = 512
    for name, options in TRACES.items():
        path, options = tmp_path / name, {"l2.copies_fill": False, "sm.count": 4, **options}
        gpu = simt.GPU(spec, set=options)
        launch = gpu.compile(VECTORS)[kernel][n // 64, 64]
        source, out = gpu.array(np.random.default_rng(1).random(4 * n, np.float32)), gpu.empty(4 * n)
        timed = launch(source, out, n)
        with gpu.trace(path):
            launch(source, out, n)
        replayed = simt.simulate(path, spec, set=options).launches[0]
        assert replayed.warp_instructions == timed.warp_instructions
        # Text does not contain predicates, so a trace does not wait for them.
        allowed = 0 if path.suffix == ".simt" else 0.01 * timed.cycles
        assert abs(replayed.cycles - timed.cycles) <= allowed


COPIES = """.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .b64 in, .param .b64 out) {
  .shared .align 16 .b8 tile[8192];
  .reg .b64 %a, %b; .reg .b32 %t, %s, %k, %n; .reg .b32 %v<4>; .reg .pred %p;
  mov.u32 %t, %tid.x; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; mov.u32 %k, 0;
  ld.param.b64 %a, [in]; mad.wide.u32 %a, %t, 16, %a;
LOOP:  // the last two of eight copies, and of the sixth those of odd threads, read nothing
  setp.lt.u32 %p, %k, 6; selp.b32 %n, 16, 0, %p; setp.eq.u32 %p, %k, 5; and.b32 %v0, %t, 1;
  shl.b32 %v0, %v0, 4; @%p sub.u32 %n, %n, %v0;
  cp.async.cg.shared.global [%s], [%a], 16, %n; cp.async.commit_group; cp.async.wait_group 0;
  add.u64 %a, %a, 4096; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 8; @%p bra LOOP;
  ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s];
  ld.param.b64 %b, [out]; mad.wide.u32 %b, %t, 16, %b; st.global.v4.b32 [%b], {%v0, %v1, %v2, %v3};
  ret;
}
"""


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_traces_have_no_copies_that_read_nothing(code: Code, tmp_path: Path) -> None:
    """`cp.async` with a source of no bytes reads nothing; when recorded, it read address 0."""
    options = {"l2.copies_fill": False, "sm.count": 1}
    gpu = simt.GPU("a100", set=options, code=code)
    kernel = gpu.load(PtxModule.from_text(COPIES, "copies.ptx")).k[1, 256]
    source, out = gpu.array(np.ones(8 * 1024, np.float32)), gpu.array(np.ones(1024, np.float32))
    timed = kernel(source, out)
    assert not out.numpy().any()
    with gpu.trace(tmp_path / "trace.simt"):
        kernel(source, out)
    replayed = simt.simulate(tmp_path / "trace.simt", "a100", set=options).launches[0]
    assert timed.engine["global_load_sectors"] == 8 * 16 * 5 + 8 * 16
    assert replayed.engine["global_load_sectors"] == timed.engine["global_load_sectors"]
    assert replayed.cycles == timed.cycles


def test_annotations(tmp_path: Path) -> None:
    """The innermost one counts, also after an exception; they are saved with the Result and its trace."""
    gpu = simt.GPU("qv100", set={"sm.count": 1})
    module = gpu.load(PTX + ".visible .entry first() { ret; } .visible .entry second() { ret; }")
    module.first[1, 32]()
    with gpu.annotate("outer"):
        module.first[1, 32]()
        with pytest.raises(ZeroDivisionError), gpu.annotate("inner"):
            module.second[2, 32]()
            _ = 1 / 0
        module.second[3, 32]()
        module.first[1, 32]()
    result = gpu.result()
    assert [x.annotation for x in result.launches] == ["", "outer", "inner", "outer", "outer"]
    result.save(tmp_path / "r")
    table = simt.Result.load(tmp_path / "r").operators()
    assert table["operator"].to_list() == ["", "outer", "inner"]
    assert table["launches"].to_list() == [1, 3, 1]
    cycles = [launch.cycles for launch in result.launches]
    assert table["cycles"].to_list() == [cycles[0], cycles[1] + cycles[3] + cycles[4], cycles[2]]
    slices = [e for e in perfetto.events(result)["traceEvents"] if e.get("cat") == "operator"]
    assert [(e["name"], e["args"]["launches"]) for e in slices] == [("outer", 1), ("inner", 1), ("outer", 2)]
    assert slices[2]["args"]["cycles"] == cycles[3] + cycles[4]


READ_ALL = """
.visible .entry read(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  ld.global.cg.u32 %r2, [%rd4]; st.global.u32 [%rd5], %r2;
  ret;
}
"""


@pytest.mark.parametrize("plan", [None, {2}])
def test_cold_caches_hold_nothing_of_copies_and_earlier_launches(plan: set[int] | None) -> None:
    """Neither data nor code: the second launch takes as long as the first, also if the first is not timed."""

    def cycles(cold: bool, plan: set[int] | None) -> tuple[list[int], list[float]]:
        gpu = simt.GPU("qv100", set={"launch.cold_caches": cold, "sm.count": 2}, plan=plan)
        kernel = gpu.load(PtxModule.from_text(PTX + READ_ALL, "read.ptx")).read
        data, out = gpu.array(np.arange(1024, dtype=np.int32)), gpu.empty(1024, np.int32)
        for _ in range(2):
            kernel[1, 1024](data, out)
        assert np.array_equal(np.asarray(out), np.arange(1024))
        launches = gpu.result().launches
        return [each.cycles for each in launches], [
            float(each.counters["dram__sectors_read.sum"] or 0) for each in launches
        ]

    first = cycles(True, {1})
    warm, (warm_sectors, *_) = cycles(False, {2})
    cold, sectors = cycles(True, plan)
    assert cold == [pytest.approx(first[0][0], rel=0.02)] * len(cold)  # DRAM rows may be open
    assert set(sectors) == {128}
    assert warm_sectors == 0
    assert warm[0] < 0.9 * cold[0]
