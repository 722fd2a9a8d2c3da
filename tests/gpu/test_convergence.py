"""Threads that exit, split or form groups before barriers and warp collectives, as in CUDA C++. Each kernel
runs on blocks in which some threads, whole warps or all threads return early, and is compared with a
thread-by-thread reference.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.errors import DeadlockError

pytest.importorskip("lz4")

BLOCK = 128
THREADS = 2 * BLOCK
X = np.random.default_rng(13).integers(0, 100, THREADS).astype(np.int32)
SIZES = (256, 201, 97, 1)  # threads that do not return at once


class Seen:
    """The threads around thread i if those from n on have exited."""

    def __init__(self, n: int) -> None:
        self.n = n

    def block(self, i: int) -> list[int]:
        first = i // BLOCK * BLOCK
        return list(range(first, min(first + BLOCK, self.n)))

    def warp(self, i: int, width: int = 32) -> list[int]:
        return [j for j in self.block(i) if j // width == i // width]

    def x(self, i: int) -> int:
        """What a thread reads if thread i writes x[i], and no other thread does."""
        return int(X[i]) if i < self.n else -5


Expected = Callable[[int, Seen], int]
KERNELS: dict[str, tuple[str, Expected]] = {}
RETURN = "if (i >= n) return; "


def kernel(body: str) -> Callable[[Expected], Expected]:
    """A kernel with this body, and the expected y[i] of each thread i < n; the others' y stays -9. The body
    has x, y, n, t (threadIdx.x), i, v (x[i]) and shared s[128], initially -5.
    """

    def add(expected: Expected) -> Expected:
        KERNELS[expected.__name__] = (body, expected)
        return expected

    return add


def bits(lanes: list[int]) -> int:
    return sum(1 << lane % 32 for lane in lanes)


@kernel(RETURN + "s[t] = v; __syncthreads(); y[i] = s[t ^ 1];")
def return_before_barrier(i: int, seen: Seen) -> int:
    return seen.x(i ^ 1)


@kernel("if (i >= n) { s[t] = -5; return; } s[t] = v; __syncthreads(); y[i] = s[t ^ 1] + 1;")
def return_after_a_store(i: int, seen: Seen) -> int:
    return seen.x(i ^ 1) + 1


@kernel('if (i >= n) asm volatile("exit;"); s[t] = v; __syncthreads(); y[i] = s[t ^ 1];')
def exit_before_barrier(i: int, seen: Seen) -> int:
    return seen.x(i ^ 1)


@kernel(
    RETURN + "int m = min(128, n - i + t); s[t] = v; __syncthreads();"
    "for (int d = 64; d; d >>= 1) { if (t < d && t + d < m) s[t] += s[t + d]; __syncthreads(); } y[i] = s[0];"
)
def sum_of_a_block(i: int, seen: Seen) -> int:
    return sum(int(X[j]) for j in seen.block(i))


@kernel(
    "int c = 0; if (i < n) for (int k = 0;; ++k) { if (k >= v % 20) { y[i] = c; return; }"
    " c += __syncthreads_count(v & 1); }"
)
def return_in_a_loop_with_barriers(i: int, seen: Seen) -> int:
    left = [[j for j in seen.block(i) if X[j] % 20 > k] for k in range(int(X[i]) % 20)]
    return sum(int(X[j]) & 1 for lanes in left for j in lanes)


@kernel(
    "int c = 0; while (i < n) { if (v-- <= 0) { y[i] = c; return; } __syncwarp();"
    " c += __popc(__ballot_sync(~0u, 1)); }"
)
def return_in_a_loop_with_collectives(i: int, seen: Seen) -> int:
    return sum(int(X[j] > k) for k in range(int(X[i])) for j in seen.warp(i))


@kernel(RETURN + "y[i] = in_function(v, s, t);")
def return_in_a_function(i: int, seen: Seen) -> int:
    return int(X[i]) if X[i] % 5 == 0 else (seen.x(i ^ 1) if seen.x(i ^ 1) % 5 else -5) * 2


@kernel(RETURN + "y[i] = in_inlined_function(v, s, t);")
def return_in_an_inlined_function(i: int, seen: Seen) -> int:
    return return_in_a_function(i, seen)


@kernel(
    RETURN + "s[t] = v; int m = (min(64, n - i + t % 64) + 31) / 32 * 32;"
    'asm volatile("bar.sync %0, %1;" :: "r"(t / 64 + 1), "r"(m) : "memory"); y[i] = s[t / 64 * 64];'
)
def named_barriers_for_a_number_of_threads(i: int, seen: Seen) -> int:
    return int(X[i // 64 * 64])


@kernel(
    "int w = t / 32, b = w / 2 + 1; if (w & 1) { if (t % 32 < 7) return;"
    ' asm volatile("bar.sync %0, 64;" :: "r"(b) : "memory"); if (i < n) y[i] = s[t - 32]; }'
    "else { s[t] = i < n ? v : -5; if (t % 32 > 20) return;"
    ' asm volatile("bar.arrive %0, 64;" :: "r"(b) : "memory"); }'
)
def arrivals_at_named_barriers(i: int, seen: Seen) -> int:
    return seen.x(i - 32) if i // 32 % 2 and i % 32 >= 7 else -9


@kernel(
    RETURN + "int a = __syncthreads_count(v & 1), b = __syncthreads_and(v < 97) != 0;"
    "y[i] = 4 * a + 2 * b + (__syncthreads_or(v == 97) != 0);"
)
def barriers_that_reduce(i: int, seen: Seen) -> int:
    x = X[seen.block(i)]
    return int(4 * (x & 1).sum() + 2 * (x < 97).all() + (x == 97).any())


@kernel("if (t / 32 % 2) return; s[t] = v; __syncthreads(); if (i < n) y[i] = s[t ^ 64];")
def warps_that_are_gone(i: int, seen: Seen) -> int:
    return int(X[i ^ 64]) if i // 32 % 2 == 0 else -9


@kernel(
    RETURN + "int m = min(32, n - i + t % 32); for (int d = 16; d; d >>= 1) {"
    " int o = __shfl_down_sync(~0u, v, d); if (t % 32 + d < m) v += o; } y[i] = __shfl_sync(~0u, v, 0);"
)
def shuffles(i: int, seen: Seen) -> int:
    return sum(int(X[j]) for j in seen.warp(i))


@kernel(
    RETURN + "y[i] = __popc(__ballot_sync(~0u, v & 1)) + 64 * (__all_sync(~0u, v < 97) != 0)"
    " + 128 * (__any_sync(~0u, v == 97) != 0) + 256 * __popc(__match_any_sync(~0u, v % 3))"
    " + (__popc(__activemask()) << 14);"
)
def votes(i: int, seen: Seen) -> int:
    x = X[seen.warp(i)]
    same = (x % 3 == X[i] % 3).sum()
    return int((x & 1).sum() + 64 * (x < 97).all() + 128 * (x == 97).any() + 256 * same + (len(x) << 14))


@kernel(
    "if (i >= n || v % 3) return; unsigned m = __activemask(); int leader = __ffs(m) - 1, at;"
    "if (t % 32 == leader) at = atomicAdd(&s[t / 32], __popc(m)); at = __shfl_sync(m, at, leader);"
    "__syncwarp(m); y[i] = 64 * at + __popc(m & ((1u << t % 32) - 1));"
)
def atomics_of_a_warp(i: int, seen: Seen) -> int:
    lanes = [j for j in seen.warp(i) if X[j] % 3 == 0]
    return -9 if X[i] % 3 else 64 * -5 + lanes.index(i)


@kernel(
    "volatile int* turn = s + 1; if (t == 0) *turn = 0; __syncthreads();" + RETURN + "while (true) {"
    " if (*turn == t) { y[i] = 2 * t; __threadfence_block(); *turn = t + 1; return; } __nanosleep(10); }"
)
def lanes_that_take_turns(i: int, seen: Seen) -> int:
    return 2 * (i % BLOCK)


@kernel(
    "if (t == 0) s[0] = s[1] = 0; __syncthreads();" + RETURN + "for (bool done = false; !done;)"
    " if (atomicCAS(s, 0, 1) == 0) { *(volatile int*)(s + 1) += v; __threadfence_block(); done = true;"
    " atomicExch(s, 0); } else __nanosleep(20);"
    "__syncthreads(); y[i] = s[1];"
)
def a_lock_between_lanes(i: int, seen: Seen) -> int:
    return sum(int(X[j]) for j in seen.block(i))


@kernel(
    RETURN + "if (t & 1) { s[t] = v; __syncwarp(); y[i] = s[t ^ 1]; }"
    "else { s[t] = 2 * v; __syncwarp(); y[i] = s[t ^ 1] + 1; }"
)
def syncwarp_in_both_arms(i: int, seen: Seen) -> int:
    return seen.x(i ^ 1) * 2 if i & 1 else seen.x(i ^ 1) + 1


@kernel(
    RETURN + "if (v % 3) y[i] = __popc(__ballot_sync(~0u, v & 1));"
    "else y[i] = 100 + __popc(__ballot_sync(~0u, !(v & 1)));"
)
def ballots_in_both_arms(i: int, seen: Seen) -> int:
    x = X[seen.warp(i)]
    return int(np.where(x % 3, x & 1, 1 - (x & 1)).sum()) + (0 if X[i] % 3 else 100)


@kernel(
    "int r; if (t % 32 < 16) { v += 1; r = __shfl_xor_sync(~0u, v, 16); }"
    "else { v *= 2; r = __shfl_xor_sync(~0u, v, 16) + 1; } if (i < n) y[i] = r;"
)
def shuffles_in_both_arms(i: int, seen: Seen) -> int:
    return int(X[i ^ 16]) * 2 if i % 32 < 16 else int(X[i ^ 16]) + 2


@kernel(
    RETURN + "switch (v % 4) { case 0: y[i] = __any_sync(~0u, v == 97); break;"
    " case 1: y[i] = 2 * __any_sync(~0u, v == 96); break; case 2: y[i] = in_vote(v == 95); break;"
    " default: y[i] = 3 * !__any_sync(~0u, !(v != 94)); }"
)
def votes_in_four_arms(i: int, seen: Seen) -> int:
    any_holds = any(X[j] == (97, 96, 95, 94)[int(X[j]) % 4] for j in seen.warp(i))
    return (any_holds, 2 * any_holds, any_holds, 3 * (not any_holds))[int(X[i]) % 4]


@kernel(
    RETURN + "if (v & 1) { s[t] = v; __syncthreads(); y[i] = s[t / 2]; }"
    "else { s[t] = -v; __syncthreads(); y[i] = s[t / 2] + 1; }"
)
def barriers_in_both_arms(i: int, seen: Seen) -> int:
    j = i // BLOCK * BLOCK + i % BLOCK // 2
    return int(X[j] if X[j] & 1 else -X[j]) + int(1 - (X[i] & 1))


@kernel(
    RETURN + "auto tile = cg::tiled_partition<8>(cg::this_thread_block());"
    "y[i] = tile.any(v == 97) + 2 * tile.all(v > 9) + 4 * tile.ballot(v & 1)"
    " + 1024 * __popc(tile.match_any(v % 3)) + 16384 * tile.shfl(v, 0);"
)
def tiles(i: int, seen: Seen) -> int:
    lanes = seen.warp(i, 8)
    x = X[lanes]
    all_above = len(lanes) == 8 and (x > 9).all()  # cooperative groups require all bits of the tile
    odd = sum(1 << j % 8 for j in lanes if X[j] & 1)
    same = int((x % 3 == X[i] % 3).sum())
    return int((x == 97).any() + 2 * all_above + 4 * odd + 1024 * same + 16384 * x[0])


@kernel(
    "auto tile = cg::tiled_partition<4>(cg::this_thread_block());"
    "int r = cg::reduce(tile, v, cg::plus<int>()) + 1000 * cg::reduce(tile, v, cg::greater<int>())"
    " + 1000000 * cg::inclusive_scan(tile, v); if (i < n) y[i] = r;"
)
def reductions_of_tiles(i: int, seen: Seen) -> int:
    x = X[i & ~3 : (i & ~3) + 4].astype(int)
    return int(x.sum() + 1000 * x.max() + 1000000 * x[: i % 4 + 1].sum())


@kernel(
    RETURN + "if (v & 1) { auto g = cg::coalesced_threads(); int first = g.shfl(v, 0); g.sync();"
    " y[i] = g.size() + 64 * g.thread_rank() + 4096 * first + 1000000 * cg::reduce(g, 1, cg::plus<int>()); }"
)
def coalesced_threads(i: int, seen: Seen) -> int:
    lanes = [j for j in seen.warp(i) if X[j] & 1]
    if i not in lanes:
        return -9
    return len(lanes) + 64 * lanes.index(i) + 4096 * int(X[lanes[0]]) + 1000000 * len(lanes)


@kernel(
    RETURN + "unsigned m = __match_any_sync(__activemask(), v % 5); int l = __ffs(m) - 1;"
    "y[i] = __shfl_sync(m, v, l) + 128 * (__any_sync(m, v > 80) != 0);"
    "y[i] += 256 * __popc(__ballot_sync(m, v & 1));"
)
def groups_of_equal_lanes(i: int, seen: Seen) -> int:
    x = X[[j for j in seen.warp(i) if X[j] % 5 == X[i] % 5]]
    return int(x[0] + 128 * (x > 80).any() + 256 * (x & 1).sum())


SOURCE = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__device__ __noinline__ int in_function(int v, int* s, int t) {
  if (v % 5 == 0) return v;
  s[t] = v; __syncthreads(); return s[t ^ 1] * 2;
}
__device__ __forceinline__ int in_inlined_function(int v, int* s, int t) {
  if (v % 5 == 0) return v;
  s[t] = v; __syncthreads(); return s[t ^ 1] * 2;
}
__device__ __noinline__ bool in_vote(bool p) { return __any_sync(~0u, p); }
""" + "".join(
    f"""extern "C" __global__ void {name}(const int* x, int* y, int n) {{
  __shared__ int s[{BLOCK}]; int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = x[i];
  s[t] = -5; __syncthreads();
  {body}
}}
"""
    for name, (body, _) in KERNELS.items()
)


@pytest.fixture(
    scope="module",
    params=[(g, f, c) for c in ("ptx", "sass") for g in ("qv100", "a100", "h100") for f in (True, False)],
    ids=str,
)
def module(request: pytest.FixtureRequest) -> Iterator[Any]:
    name, functional, code = request.param
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "qv100 is sm_70")
        yield simt.GPU(name, functional=functional, code=code, set={"sm.count": 2}).compile(SOURCE)


def launch(module: Any, name: str, n: int) -> np.ndarray:
    y = np.full(THREADS, -9, np.int32)
    module[name][THREADS // BLOCK, BLOCK](X, y, n)
    return y


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_only_threads_that_are_there_count(module: Any, name: str) -> None:
    for n in SIZES:
        expected = [KERNELS[name][1](i, Seen(n)) if i < n else -9 for i in range(THREADS)]
        assert launch(module, name, n).tolist() == expected, n


@pytest.mark.slow
def test_threads_of_a_cluster_that_are_gone() -> None:
    """A cluster's barrier counts neither exited threads nor exited CTAs."""
    source = """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int* y, int lanes, int gone) {
      __shared__ int s; int t = threadIdx.x;
      auto cluster = cg::this_cluster(); int rank = cluster.block_rank();
      if (t == 0) s = 10 * blockIdx.x;
      cluster.sync();
      if (rank == gone || t % 32 >= lanes) return;
      cluster.barrier_arrive(); cluster.barrier_wait();
      if (t % 2) cluster.sync(); else cluster.sync();
      int neighbour = (rank + 1) % 4 == gone ? (rank + 2) % 4 : (rank + 1) % 4;
      y[blockIdx.x * 64 + t] = *cluster.map_shared_rank(&s, neighbour);
      cluster.sync();
    }"""
    for functional in (True, False):
        module = simt.GPU("h100", functional=functional).compile(source)
        for lanes, gone in ((32, 4), (5, 4), (32, 2), (1, 1)):
            y = np.full((8, 64), -1, np.int32)
            module.k[8, 64](y, lanes, gone)
            for block in range(8):
                neighbours = [(block % 4 + d) % 4 for d in (1, 2) if (block % 4 + d) % 4 != gone]
                value = 10 * (block // 4 * 4 + neighbours[0])
                there = (np.arange(64) % 32 < lanes) & (block % 4 != gone)
                assert (y[block] == np.where(there, value, -1)).all(), (lanes, gone, block)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["sum_of_a_block", "return_in_a_loop_with_collectives", "barriers_in_both_arms"]
)
def test_a_trace_of_them_takes_the_same_time(name: str, tmp_path: Path) -> None:
    options = {"sm.count": 2, "l2.copies_fill": False}
    gpu = simt.GPU("a100", set=options)
    launch = gpu.compile(SOURCE)[name][THREADS // BLOCK, BLOCK]
    x, y = gpu.array(X), gpu.zeros(THREADS, np.int32)
    timed = launch(x, y, 201)
    with gpu.trace(tmp_path / "trace.simt"):
        launch(x, y, 201)
    replayed = simt.simulate(tmp_path / "trace.simt", "a100", set=options).launches[0]
    assert (replayed.cycles, replayed.warp_instructions) == (timed.cycles, timed.warp_instructions)


def test_a_deadlock_names_who_waits() -> None:
    """Threads that have not exited, and are never released."""
    source = """
    extern "C" __global__ void barriers(int* y) {
      if (threadIdx.x % 32 == 31) return;
      if (threadIdx.x < 40) asm volatile("bar.sync 1, 96;"); else asm volatile("bar.sync 2, 64;");
    }
    extern "C" __global__ void members(int* y) {
      if (threadIdx.x < 16) y[0] = __shfl_sync(~0u, 1, 0); else asm volatile("bar.sync 0;");
    }
    extern "C" __global__ void fine(int* y) { __syncthreads(); y[threadIdx.x] = 5; }"""
    for functional in (True, False):
        gpu = simt.GPU("qv100", code="ptx", functional=functional, set={"sm.count": 1})
        module = gpu.compile(source)
        y = gpu.zeros(64, np.int32)
        error = simt.ProgramFault if functional else DeadlockError
        with pytest.raises(error) as told:
            module.barriers[1, 64](y)
        if functional:
            assert told.value.kind == "divergent barrier" and told.value.thread == (0, 0, 0)
            assert "39 threads of warp 0 1 wait at `bar.sync 1, 96;`" in str(told.value)
            assert "23 threads of warp 1 wait at `bar.sync 2, 64;`, 2 have exited" in str(told.value)
        else:
            assert "8 of its lanes at a barrier: bar.sync 1, 96;; " in str(told.value)
            assert "23 of its lanes at a barrier: bar.sync 2, 64;; 1 of its lanes have exited" in str(
                told.value
            )
        with pytest.raises(
            error,
            match="16 threads of warp 0 wait at `shfl" if functional else "named by its member mask: shfl",
        ):
            module.members[1, 64](y)
        module.fine[1, 64](y)
        assert (y.numpy() == 5).all()


@pytest.mark.parametrize("functional", [True, False])
def test_a_warp_that_arrives_twice_at_a_barrier_counts_twice(functional: bool) -> None:
    """The first warp arrives twice at a barrier for three warps, before the second one has written."""
    source = """extern "C" __global__ void k(int *out) {
      __shared__ int box[32];
      const int lane = threadIdx.x % 32;
      if (threadIdx.x < 32) {
        asm volatile("bar.arrive 1, 96;" ::: "memory");
        asm volatile("bar.sync 1, 96;" ::: "memory");
        out[lane] = box[31 - lane];
      } else {
        box[lane] = 0;
        for (int k = 0; k < 20; ++k) atomicAdd(&box[lane], lane);
        asm volatile("bar.sync 1, 96;" ::: "memory");
      }
    }"""
    out = np.zeros(32, np.int32)
    simt.GPU("h100", functional=functional).compile(source).k[1, 64](out)
    assert (out == np.arange(31, -1, -1) * 20).all()
