"""Triton kernels of common kinds. Import only if Triton is installed."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + offsets, mask=offsets < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + offsets, powers / tl.sum(powers, axis=0), mask=offsets < columns)


@triton.jit
def matmul(a, b, c, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    a += rows[:, None] * sa + steps[None, :]
    b += steps[:, None] * sb + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(a), tl.load(b), total)
        a += BK
        b += BK * sb
    tl.store(c + rows[:, None] * sc + columns[None, :], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Flash attention, forward, causal; each CTA computes BM rows."""
    start = tl.program_id(0) * BM
    base = tl.program_id(1) * length * D
    rows = start + tl.arange(0, BM)
    depth = tl.arange(0, D)
    columns = tl.arange(0, BN)
    queries = tl.load(q + base + rows[:, None] * D + depth[None, :])
    highest = tl.full([BM], -float("inf"), tl.float32)
    norm = tl.zeros([BM], tl.float32)
    total = tl.zeros([BM, D], tl.float32)
    for first in range(0, start + BM, BN):
        keys = tl.load(k + base + (first + columns)[None, :] * D + depth[:, None])
        scores = tl.dot(queries, keys) * scale
        scores = tl.where(rows[:, None] >= (first + columns)[None, :], scores, -float("inf"))
        now = tl.maximum(highest, tl.max(scores, 1))
        powers = tl.exp2(scores - now[:, None])
        fade = tl.exp2(highest - now)
        norm = norm * fade + tl.sum(powers, 1)
        values = tl.load(v + base + (first + columns)[:, None] * D + depth[None, :])
        total = tl.dot(powers.to(tl.float16), values, total * fade[:, None])
        highest = now
    tl.store(out + base + rows[:, None] * D + depth[None, :], (total / norm[:, None]).to(tl.float16))


@triton.jit
def copy_tile(source, target, BM: tl.constexpr, BN: tl.constexpr):
    """Between tensor descriptors."""
    where = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(where, source.load(where))


@triton.jit
def matmul_by_maps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Descriptors created by the kernel itself, in scratch memory."""
    top, left = tl.program_id(0) * BM, tl.program_id(1) * BN
    first = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    second = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    third = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        total = tl.dot(first.load([top, step]), second.load([step, left]), total)
    third.store([top, left], total.to(tl.float16))


@triton.jit(do_not_specialize=["free"], do_not_specialize_on_alignment=["unaligned"])
def kinds(pointer, free, unaligned, wide: tl.int64, real: tl.float32, pair, plain, CHOICE: tl.constexpr = 3):
    tl.store(pointer, (free + unaligned + wide + pair[0] + plain + CHOICE).to(tl.float32) + real)


@triton.jit
def wrong(x):
    tl.store(x, no_such_name)  # noqa: F821


@triton.jit
def layer_norm(out, x, gain, shift, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    apart = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, axis=0) / columns + epsilon)
    result = apart * scale * tl.load(gain + offsets, mask=inside) + tl.load(shift + offsets, mask=inside)
    tl.store(out + row * columns + offsets, result, mask=inside)


@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `matmul_by_maps`; a CTA computes one tile after the other."""
    first = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    second = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    third = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True):
        top, left = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(0, K, BK):
            total = tl.dot(first.load([top, step]), second.load([step, left]), total)
        third.store([top, left], total.to(tl.float16))


@triton.jit
def attention_by_maps(
    q,
    k,
    v,
    out,
    scale,
    length,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    SPECIAL: tl.constexpr = False,
):
    """Flash attention, forward, of one head; descriptors created by the kernel. SPECIAL: with warps for
    copies, for products and for the softmax.
    """
    queries = tl.make_tensor_descriptor(q, [length, D], [D, 1], [BM, D])
    keys = tl.make_tensor_descriptor(k, [length, D], [D, 1], [BN, D])
    values = tl.make_tensor_descriptor(v, [length, D], [D, 1], [BN, D])
    results = tl.make_tensor_descriptor(out, [length, D], [D, 1], [BM, D])
    start = tl.program_id(0) * BM
    rows = queries.load([start, 0])
    highest = tl.full([BM], -float("inf"), tl.float32)
    norm = tl.zeros([BM], tl.float32)
    total = tl.zeros([BM, D], tl.float32)
    for first in tl.range(0, length, BN, warp_specialize=SPECIAL):
        scores = tl.dot(rows, keys.load([first, 0]).T)
        now = tl.maximum(highest, tl.max(scores, 1) * scale)
        powers = tl.exp2(scores * scale - now[:, None])
        fade = tl.exp2(highest - now)
        norm = norm * fade + tl.sum(powers, 1)
        total = tl.dot(powers.to(tl.float16), values.load([first, 0]), total * fade[:, None])
        highest = now
    results.store([start, 0], (total / norm[:, None]).to(tl.float16))


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=4)],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, named, **kwargs: configs[named["n"] > 1000 :]},
)
@triton.heuristics({"EVEN": lambda named: named["n"] % named["BLOCK"] == 0})
@triton.jit
def tuned_twice(x, out, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, i < n, other=0) + EVEN, i < n)


@gluon.jit
def gluon_copy(x, out, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out + i, gl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def scaled_product(a, b, sa, sb, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """e4m3 by e2m1, in blocks of 32; the second is padded to bytes in shared memory."""
    rows, columns, groups = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK // 32)
    first = tl.make_tensor_descriptor(a, [BM, K], [K, 1], [BM, BK])
    second = tl.make_tensor_descriptor(b, [BN, K // 2], [K // 2, 1], [BN, BK // 2])
    total = tl.zeros([BM, BN], tl.float32)
    for k in range(0, K, BK):
        scales = tl.load(sa + rows[:, None] * (K // 32) + k // 32 + groups[None, :])
        others = tl.load(sb + columns[:, None] * (K // 32) + k // 32 + groups[None, :])
        x, y = first.load([0, k]), second.load([0, k // 2])
        total = tl.dot_scaled(x, scales, "e4m3", y.T, others, "e2m1", total)
    tl.store(out + rows[:, None] * BN + columns[None, :], total)
