"""Lines of source, PTX and machine code: their counts add up to the launch's, and their texts are the
program's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simt.gpu import GPU
from simt.result import LaunchResult, Result
from simt.result.listing import instructions, source_lines

SOURCE = """extern "C" __global__ void walk(const int* next, int* out, int steps) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < steps; ++i)
    at = next[at];
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
"""


@pytest.fixture(scope="module")
def result() -> Result:
    gpu = GPU("a100", code="ptx", set={"sm.count": 4})
    n = 4 * 8 * 256
    following = np.random.default_rng(1).permutation(n).astype(np.int32)
    out = np.zeros(n, np.int32)
    gpu.compile(SOURCE, name="walk.cu").walk[n // 256, 256](following, out, 20)
    return gpu.result()


@pytest.fixture(scope="module")
def launch(result: Result) -> LaunchResult:
    return result.launches[0]


def test_lines_add_up_to_the_launch(launch: LaunchResult) -> None:
    for lines in (source_lines(launch), instructions(launch)):
        assert sum(line.issued for line in lines) == launch.warp_instructions
        assert sum(line.threads for line in lines) == launch.thread_instructions
        assert sum(line.waiting for line in lines) == sum(map(sum, launch.pc["stalled"].values()))
    # One sample per `sample_interval` cycles: in the long run equivalent to counting every cycle.
    looks = {reason: sum(row) for reason, row in launch.pc["stalled"].items()}
    waits = {r: n for r, n in launch.warp_stalls.items() if r in ("long_scoreboard", "wait", "imc_miss")}
    found = launch.pc["sample_interval"] * sum(looks[reason] for reason in waits)
    assert found == pytest.approx(sum(waits.values()), rel=0.05)


def test_the_line_that_waits_is_the_one_that_loads(launch: LaunchResult) -> None:
    lines = source_lines(launch)
    hottest = max(lines, key=lambda line: line.waiting)
    assert hottest.place == ("walk.cu", 4) and hottest.text == "    at = next[at];"
    assert max(hottest.stalled, key=lambda r: hottest.stalled[r]) == "long_scoreboard"
    loads = [i for i, opcode in enumerate(launch.pc["opcode"]) if opcode.startswith("LDG")]
    assert loads and all(launch.pc["ptx"][i].startswith("ld.global") for i in loads)
    assert all(launch.pc["text"][i].startswith(launch.pc["opcode"][i]) for i in range(len(launch.pc["pc"])))


def test_work_of_sms_and_slices_adds_up(launch: LaunchResult) -> None:
    sms, slices = launch.spread["sm"], launch.spread["l2_slice"]
    assert len(sms["warp_instructions"]) == 4 and min(sms["warp_instructions"]) > 0
    assert sum(sms["warp_instructions"]) == launch.warp_instructions
    assert sum(sms["active_cycles"]) == launch.engine["sm_active_cycles"]
    assert sum(sms["active_warp_cycles"]) == launch.engine["active_warp_cycles"]
    assert sum(slices["lookups"]) == launch.counters["lts__t_sectors.sum"]
    assert sum(slices["hits"]) == sum(row["hit"] for row in launch.l2.values())


def test_launches_of_a_kernel_hold_their_texts_once() -> None:
    gpu = GPU("a100", set={"sm.count": 1})
    out = np.zeros(32, np.int32)
    kernel = gpu.compile(SOURCE).walk
    first, second = (kernel[1, 32](out, out, 1) for _ in range(2))
    assert first is not None and second is not None
    for name in ("text", "ptx", "source_text", "opcode"):
        assert first.pc[name] is second.pc[name]


def test_lines_survive_saving(result: Result, tmp_path: Path) -> None:
    for place in ("out", "out.json"):
        again = Result.load(result.save(tmp_path / place))
        assert again == result
        assert source_lines(again.launches[0]) == source_lines(result.launches[0])


def test_a_launch_tells_of_itself(launch: LaunchResult) -> None:
    text = repr(launch)
    assert text.startswith(f"LaunchResult(1: walk[32x1x1, 256x1x1]: {launch.cycles:,} cycles, IPC ")
    assert "of waiting is long_scoreboard" in text and len(text) < 200


@pytest.mark.slow
def test_looks_find_what_counting_every_cycle_finds() -> None:
    gpu = GPU("a100", code="ptx", set={"sm.count": 4})
    x = np.ones(64 * 1024, np.float32)
    source = """extern "C" __global__ void f(float* x) {
      __shared__ float s[256];
      float v = x[blockIdx.x * 256 + threadIdx.x];
      for (int i = 0; i < 40; ++i) {
        s[threadIdx.x] = v;
        __syncthreads();
        v += __sinf(s[threadIdx.x ^ i]) + s[(32 * threadIdx.x) & 255];
        __syncthreads();
      }
      x[blockIdx.x * 256 + threadIdx.x] = v;
    }"""
    found = gpu.compile(source).f[256, 256](x)
    assert found is not None
    looks = {reason: sum(row) * found.pc["sample_interval"] for reason, row in found.pc["stalled"].items()}
    total = sum(found.warp_stalls.values())
    for reason, cycles in found.warp_stalls.items():
        if reason not in ("selected", "not_selected", "no_instruction", "drain"):  # see sm_activity.cpp
            assert looks[reason] / total == pytest.approx(cycles / total, abs=0.02), reason
    assert found.warp_stalls["lg_throttle"] + found.warp_stalls["mio_throttle"] > 0.1 * total


def test_an_address_does_not_wait_for_what_took_the_place_of_its_index() -> None:
    """`%index` is dead after the product, and its place is a loaded value's. The addition that makes the
    store's address absorbs the product, and waits for nothing: the first use of the values does.
    """
    gpu = GPU("a100", code="ptx", set={"sm.count": 1})
    module = gpu.load("""
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z) {
  .reg .pred %p;
  .reg .b32 %index, %a<4>, %b<4>;
  .reg .b64 %x, %y, %z, %offset;
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.u64 %z, [z];
  mov.u32 %index, %tid.x;
  setp.lt.s32 %p, %index, 64;
  mul.wide.s32 %offset, %index, 16;
  add.s64 %x, %x, %offset;
  add.s64 %y, %y, %offset;
  mov.u32 %a0, 0; mov.u32 %a1, 0; mov.u32 %a2, 0; mov.u32 %a3, 0;
  @%p ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%x];
  mov.u32 %b0, 0; mov.u32 %b1, 0; mov.u32 %b2, 0; mov.u32 %b3, 0;
  @%p ld.global.v4.b32 {%b0, %b1, %b2, %b3}, [%y];
  @!%p bra $end;
  add.s64 %z, %z, %offset;
  add.s32 %a0, %a0, %b0;
  add.s32 %a1, %a1, %b1;
  add.s32 %a2, %a2, %b2;
  add.s32 %a3, %a3, %b3;
  st.global.v4.b32 [%z], {%a0, %a1, %a2, %a3};
$end:
  ret;
}
""")
    z = gpu.zeros(4 * 32, "int32")
    launch = module.add[1, 32](gpu.ones(4 * 32, "int32"), gpu.ones(4 * 32, "int32"), z)
    assert (z.numpy() == 2).all()
    lines = instructions(launch)
    after = [line.text.split()[0] for line in lines][-8:]
    assert after == ["BRA", "IMAD.WIDE", *["IADD3"] * 4, "STG.E.128", "EXIT"]
    waits = [line.stalled.get("long_scoreboard", 0) > 0 for line in lines][-8:]
    assert waits == [False, False, True, *[False] * 5]


INLINED = """.version 7.1
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u64 %rd<2>;
  .reg .u32 %r<5>;
  .loc 1 9 1
  ld.param.u64 %rd1, [p];
  .loc 1 20 3
  .loc 3 5 2, function_name $name, inlined_at 1 20 3
  ld.global.u32 %r1, [%rd1];
  .loc 2 7 1, function_name $name, inlined_at 3 5 2
  ld.global.u32 %r2, [%rd1+4];
  .loc 4 8 1, function_name $name, inlined_at 2 7 1
  ld.global.u32 %r3, [%rd1+8];
  .loc 1 30 3
  .loc 2 7 1, function_name $name, inlined_at 1 30 3
  ld.global.u32 %r4, [%rd1+12];
  .loc 2 6 1
  st.global.u32 [%rd1], %r1;
  ret;
}
.file 1 "/home/me/kernel.cu"
.file 2 "/x/site-packages/nvidia/cu13/bin/../include/atomic.hpp"
.file 3 "/home/me/mine.cuh"
.file 4 "/usr/local/cuda-13.0/targets/x86_64-linux/include/inner.hpp"
.section .debug_str
{
$name:
.b8 102, 0
}
"""


def test_library_code_is_at_the_line_that_calls_it() -> None:
    """The nearest call that is not of a library: also through two of them; code of a header of one's own, and
    library code that nothing calls, stay where they are.
    """
    gpu = GPU("a100", code="ptx", set={"sm.count": 1})
    gpu.load(INLINED).k[1, 32](np.zeros(4, np.int32))
    (launch,) = gpu.launches
    named = zip(launch.pc["ptx"], launch.pc["source_file"], launch.pc["source_line"], strict=True)
    places = {text.split(";")[0]: (file, line) for text, file, line in named if "global" in text}
    assert list(places.values()) == [
        ("/home/me/mine.cuh", 5),
        ("/home/me/mine.cuh", 5),
        ("/home/me/mine.cuh", 5),
        ("/home/me/kernel.cu", 30),
        ("/x/site-packages/nvidia/cu13/bin/../include/atomic.hpp", 6),
    ]
