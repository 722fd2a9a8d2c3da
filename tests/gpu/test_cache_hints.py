"""Eviction priorities, cache policies, access windows and the persisting part of the L2: what is kept while a
stream passes by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simt
from simt.cuda import toolkit
from simt.errors import LaunchError

pytestmark = pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")

SOURCE = r"""
#define LOOP(n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
extern "C" __global__ void plain(const float* x, float* sink, int n) {
  float sum = 0;
  LOOP(n) sum += x[i];
  if (sum == 1e30f) *sink = sum;
}
template <int policy> __device__ void policed(const float* x, float* sink, int n) {
  float sum = 0, v;
  unsigned long long p;
  if (policy == 0) asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p));
  if (policy == 1) asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
  if (policy == 2) asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
  LOOP(n) {
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(x + i), "l"(p));
    sum += v;
  }
  if (sum == 1e30f) *sink = sum;
}
extern "C" __global__ void last(const float* x, float* sink, int n) { policed<0>(x, sink, n); }
extern "C" __global__ void first(const float* x, float* sink, int n) { policed<1>(x, sink, n); }
extern "C" __global__ void normal(const float* x, float* sink, int n) { policed<2>(x, sink, n); }
extern "C" __global__ void streaming(const float* x, float* sink, int n) {
  float sum = 0;
  LOOP(n) sum += __ldcs(x + i);
  if (sum == 1e30f) *sink = sum;
}
extern "C" __global__ void ahead(const float* x, float* sink, int n) {
  float sum = 0, v;
  LOOP(n) {
    asm volatile("prefetch.global.L2 [%0];" :: "l"(x + i));
    asm volatile("ld.global.L2::128B.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
    sum += v;
  }
  if (sum == 1e30f) *sink = sum;
}
"""
# An L2 of 1.25 MiB, past which a stream of 4 MiB goes; 128 KiB are to stay.
L2 = {"sm.count": 8, "l2.slice.sets": 4, "l2.copies_fill": False}
HOT, COLD = 1 << 15, 1 << 20


class Machine:
    def __init__(self, code: str = "ptx", **changes: Any) -> None:
        self.gpu = simt.GPU("a100", set={**L2, **changes}, code=code)  # type: ignore[arg-type]
        self.kernels = self.gpu.compile(SOURCE)
        self.hot, self.cold = self.gpu.empty(HOT, np.float32), self.gpu.empty(COLD, np.float32)
        self.sink = self.gpu.empty(1, np.float32)

    def read(self, kernel: str, hot: bool, stream: Any = None) -> float:
        """Runs a kernel; returns the share of its sectors that came from DRAM."""
        array, n = (self.hot, HOT) if hot else (self.cold, COLD)
        launch = getattr(self.kernels, kernel)[16, 256](array, self.sink, n, stream=stream)
        self.gpu.synchronize()
        launch = launch or self.gpu.launches[-1]
        return float(launch.counters["dram__sectors_read.sum"] or 0) / (n / 8)

    def kept(self, hot: str, cold: str, stream: Any = None) -> float:
        """The share of the hot array that is still in the L2 after a stream."""
        self.read(hot, True, stream)
        self.read(cold, False, stream)
        return 1 - self.read(hot, True, stream)


def test_a_stream_evicts_what_has_no_hint() -> None:
    assert Machine().kept("plain", "plain") < 0.1


@pytest.mark.parametrize("code", ["ptx", "sass"])
@pytest.mark.parametrize(
    ("hot", "cold"), [("last", "plain"), ("plain", "first"), ("plain", "streaming"), ("last", "first")]
)
def test_hints_keep_what_they_say(hot: str, cold: str, code: str) -> None:
    assert Machine(code).kept(hot, cold) > 0.9


def test_evict_normal_ends_the_persistence_of_a_line() -> None:
    machine = Machine(**{"l2.partitions": 1, "l2.far_latency": 0})
    machine.read("last", True)
    machine.read("normal", True)
    machine.read("plain", False)
    assert machine.read("plain", True) > 0.9


def test_a_gpu_without_priorities_says_so_once() -> None:
    machine = Machine(**{"l2.persisting_kib": 0})
    assert machine.kept("last", "streaming") < 0.1
    machine.read("streaming", False)
    (warning,) = [w for w in machine.gpu.result().warnings if "hints" in w]
    assert ".EF" in warning


def test_hints_without_a_model_are_named() -> None:
    machine = Machine()
    machine.read("ahead", True)
    (warning,) = machine.gpu.result().warnings
    assert ".LTC128B" in warning and "CCTL.E.PF2" in warning


class TestWindows:
    def test_persisting_accesses_stay_in_what_is_set_aside(self) -> None:
        machine = Machine()
        machine.gpu.set_persisting_l2(512 << 10)
        stream = machine.gpu.stream()
        stream.set_access_window(machine.hot)
        assert machine.kept("plain", "plain", stream) > 0.9

    def test_without_a_set_aside_they_are_normal_and_a_warning_says_so(self) -> None:
        machine = Machine()
        stream = machine.gpu.stream()
        stream.set_access_window(machine.hot)
        assert machine.kept("plain", "plain", stream) < 0.1
        (warning,) = machine.gpu.result().warnings
        assert "set aside" in warning

    def test_a_streaming_window_spares_the_rest(self) -> None:
        machine = Machine()
        stream = machine.gpu.stream()
        stream.set_access_window(machine.cold, hit="streaming")
        assert machine.kept("plain", "plain", stream) > 0.9

    def test_the_hit_ratio_says_how_much_stays(self) -> None:
        machine = Machine()
        machine.gpu.set_persisting_l2(512 << 10)
        stream = machine.gpu.stream()
        stream.set_access_window(machine.hot, 0.5, miss="normal")
        assert 0.4 < machine.kept("plain", "plain", stream) < 0.6

    def test_a_reset_ends_it(self) -> None:
        machine = Machine()
        machine.gpu.set_persisting_l2(512 << 10)
        stream = machine.gpu.stream()
        stream.set_access_window(machine.hot)
        machine.read("plain", True, stream)
        stream.set_access_window(None)
        machine.gpu.reset_persisting_l2()
        machine.read("plain", False, stream)
        assert machine.read("plain", True, stream) > 0.9

    def test_an_oversized_window_gains_nothing_until_its_ratio_fits(self) -> None:
        """As measured on an H200 (docs/model/l2.md): a window of more than is set aside is as none."""

        def from_dram(ratio: float | None) -> float:
            machine = Machine()
            machine.gpu.set_persisting_l2(1 << 20)
            stream = machine.gpu.stream()
            if ratio is not None:
                stream.set_access_window(machine.cold, ratio)
            machine.read("plain", False, stream)
            return machine.read("plain", False, stream)

        none, whole, tuned = from_dram(None), from_dram(1.0), from_dram(0.1)
        assert whole > 0.97 * none
        assert tuned < 0.95 * none

    @pytest.mark.parametrize(
        ("arguments", "match"),
        [
            ({"hit_ratio": 1.5}, "0 to 1"),
            ({"hit": "sticky"}, "'persisting'"),
            ({"miss": "persisting"}, "'streaming'"),
        ],
    )
    def test_what_it_cannot_be(self, arguments: dict[str, Any], match: str) -> None:
        machine = Machine()
        with pytest.raises(LaunchError, match=match):
            machine.gpu.stream().set_access_window(machine.hot, **arguments)

    def test_no_more_than_the_gpu_can_is_set_aside(self) -> None:
        gpu = simt.GPU("a100")
        gpu.set_persisting_l2(26_214_400)  # persistingL2CacheMaxSize of an A100
        with pytest.raises(LaunchError, match="26,214,400"):
            gpu.set_persisting_l2(26_214_401)
