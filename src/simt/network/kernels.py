"""Triton kernels of a transformer's operators, one source for all GPUs.

All have a one-dimensional grid. Those with a loop take `cap`: the most steps that a CTA makes, so that a part
of a launch can be simulated. With `cap` at least the number of steps, their values are right.
"""

import triton
import triton.language as tl


@triton.jit
def embed(tokens, table, positions, y, length, H, BLOCK: tl.constexpr, POSITIONS: tl.constexpr):
    """A row of the table for each token; POSITIONS adds a learned row for its place in the sequence."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < H
    value = tl.load(table + tl.load(tokens + row).to(tl.int64) * H + at, mask=inside)
    if POSITIONS:
        value += tl.load(positions + (row % length) * H + at, mask=inside)
    tl.store(y + row.to(tl.int64) * H + at, value, mask=inside)


@triton.jit
def norm(
    x, delta, weight, bias, y, H, stride, eps, BLOCK: tl.constexpr, ADD: tl.constexpr, LAYER: tl.constexpr
):
    """x += delta, and its RMSNorm (LAYER: LayerNorm), of every row at `stride` rows."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < H
    source = ((row + 1) * stride - 1) * H + at
    value = tl.load(x + source, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        value += tl.load(delta + source, mask=inside, other=0.0).to(tl.float32)
        tl.store(x + source, value.to(x.dtype.element_ty), mask=inside)
    if LAYER:
        value = tl.where(inside, value - tl.sum(value, 0) / H, 0.0)
    value *= tl.rsqrt(tl.sum(value * value, 0) / H + eps)
    value *= tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    if LAYER:
        value += tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * H + at, value.to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["cap"])
def product(
    x,
    w,
    scales,
    bias,
    y,
    M,
    N,
    K,
    cap,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    WEIGHTS: tl.constexpr,
    BIAS: tl.constexpr,
    POINTERS: tl.constexpr,
):
    """y = x w^T (+ bias) for each expert: rows e M to (e + 1) M of x with rows e N to (e + 1) N of w.

    x, w, y: tensor descriptors; POINTERS: pointers, and K is a multiple of BK. WEIGHTS: "same" as x; "fp8"
    with a scale for each row; "int4": two for each byte, the halves of a block of BK, with a scale for each
    row and block. GROUP: tiles along M that neighbours share.
    """
    pid = tl.program_id(0)
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    expert = pid // (down * across)
    pid = pid % (down * across)
    first = pid // (GROUP * across) * GROUP
    size = min(down - first, GROUP)
    m = expert * M + (first + pid % (GROUP * across) % size) * BM
    column = pid % (GROUP * across) // size * BN
    n = expert * N + column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    HALF: tl.constexpr = BK // 2 if WEIGHTS == "int4" else BK
    if POINTERS:  # rows beyond the last show others, whose results are not stored
        row = (m - expert * M + tl.arange(0, BM)) % M + expert * M
        x_at = x + row.to(tl.int64)[:, None] * K + tl.arange(0, HALF)[None, :]
        w_row = ((column + tl.arange(0, BN)) % N + expert * N).to(tl.int64)
        w_at = w + w_row[:, None] * (K // (BK // HALF)) + tl.arange(0, HALF)[None, :]
    for k in range(0, min(tl.cdiv(K, BK), cap)):
        if WEIGHTS == "int4":
            if POINTERS:
                both = tl.load(w_at + k * HALF)
                x_low, x_high = tl.load(x_at + k * BK), tl.load(x_at + k * BK + HALF)
            else:
                both = w.load([n, k * HALF])
                x_low, x_high = x.load([m, k * BK]), x.load([m, k * BK + HALF])
            rows = n + tl.arange(0, BN)
            scale = tl.load(scales + rows * tl.cdiv(K, BK) + k, mask=column + tl.arange(0, BN) < N, other=0.0)
            low = ((both & 15).to(tl.float32) - 8.0) * scale[:, None]
            high = ((both >> 4).to(tl.float32) - 8.0) * scale[:, None]
            total = tl.dot(x_low, low.to(x_low.dtype).T, total)
            total = tl.dot(x_high, high.to(x_high.dtype).T, total)
        elif POINTERS:
            part = tl.load(x_at + k * BK)
            total = tl.dot(part, tl.load(w_at + k * BK).to(part.dtype).T, total)
        else:
            total = tl.dot(x.load([m, k * BK]), w.load([n, k * BK]).to(x.dtype).T, total)
    columns = column + tl.arange(0, BN)
    if WEIGHTS == "fp8":
        total *= tl.load(scales + expert * N + columns, mask=columns < N, other=0.0)[None, :]
    if BIAS:
        total += tl.load(bias + expert * N + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    if POINTERS:
        row = m + tl.arange(0, BM)
        inside = (row < (expert + 1) * M)[:, None] & (columns < N)[None, :]
        place = y + row.to(tl.int64)[:, None] * N + columns[None, :]
        tl.store(place, total.to(y.dtype.element_ty), mask=inside)
    else:
        y.store([m, column], total.to(y.dtype))


@triton.jit
def rotate(
    qkv,
    table,
    positions,
    slots,
    keys,
    values,
    HQ: tl.constexpr,
    HK: tl.constexpr,
    D: tl.constexpr,
    PQ: tl.constexpr,
    PK: tl.constexpr,
    ROTATE: tl.constexpr,
):
    """Rotates queries and keys of a token in place (ROTATE: RoPE), and writes keys and values to its place in
    the cache. table: D / 2 cosines and as many sines for each position. PQ, PK: powers of two that hold HQ
    and HK."""
    token = tl.program_id(0).to(tl.int64)
    row = qkv + token * (HQ + 2 * HK) * D
    slot = tl.load(slots + token).to(tl.int64) * HK * D
    at = tl.arange(0, D // 2)[None, :]
    k_head = tl.arange(0, PK)[:, None]
    inside = k_head < HK
    low = tl.load(row + (HQ + k_head) * D + at, mask=inside)
    high = tl.load(row + (HQ + k_head) * D + D // 2 + at, mask=inside)
    if ROTATE:
        angles = table + tl.load(positions + token) * D + at
        cosine, sine = tl.load(angles), tl.load(angles + D // 2)
        q_head = tl.arange(0, PQ)[:, None]
        place = row + q_head * D + at
        a = tl.load(place, mask=q_head < HQ).to(tl.float32)
        b = tl.load(place + D // 2, mask=q_head < HQ).to(tl.float32)
        tl.store(place, (a * cosine - b * sine).to(qkv.dtype.element_ty), mask=q_head < HQ)
        tl.store(place + D // 2, (b * cosine + a * sine).to(qkv.dtype.element_ty), mask=q_head < HQ)
        a, b = low.to(tl.float32), high.to(tl.float32)
        low, high = (a * cosine - b * sine).to(low.dtype), (b * cosine + a * sine).to(low.dtype)
        tl.store(row + (HQ + k_head) * D + at, low, mask=inside)
        tl.store(row + (HQ + k_head) * D + D // 2 + at, high, mask=inside)
    tl.store(keys + slot + k_head * D + at, low, mask=inside)
    tl.store(keys + slot + k_head * D + D // 2 + at, high, mask=inside)
    source = row + (HQ + HK + k_head) * D + at
    tl.store(values + slot + k_head * D + at, tl.load(source, mask=inside), mask=inside)
    tl.store(values + slot + k_head * D + D // 2 + at, tl.load(source + D // 2, mask=inside), mask=inside)


@triton.jit
def _step(q, k, v, total, most, below, scale, rows, columns, MASKED: tl.constexpr):
    """A block of keys and values in an online softmax, with powers of two."""
    score = tl.dot(q, k.T) * scale
    if MASKED:
        score = tl.where(columns[None, :] <= rows[:, None], score, -1.0e30)
    new = tl.maximum(most, tl.max(score, 1))
    weight = tl.math.exp2(score - new[:, None])
    factor = tl.math.exp2(most - new)
    total = tl.dot(weight.to(v.dtype), v, total * factor[:, None])
    return total, new, below * factor + tl.sum(weight, 1)


@triton.jit(do_not_specialize=["cap"])
def prefill_attention(
    qkv,
    kv,
    y,
    S,
    B,
    scale,
    cap,
    HQ: tl.constexpr,
    HK: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    POINTERS: tl.constexpr,
):
    """Causal attention of sequences of S tokens, a multiple of BM. qkv, kv: descriptors of the same rows with
    blocks of BM and BN; y: descriptor of the output; POINTERS: pointers to them. The last tiles, with the
    most keys, come first."""
    pid = tl.program_id(0)
    tile = S // BM - 1 - pid // (B * HQ)
    head, first = pid % HQ, pid // HQ % B * S
    WIDTH: tl.constexpr = (HQ + 2 * HK) * D
    at = tl.arange(0, D)
    tall, low = (first + tile * BM + tl.arange(0, BM)).to(tl.int64), (first + tl.arange(0, BN)).to(tl.int64)
    if POINTERS:
        q = tl.load(qkv + tall[:, None] * WIDTH + head * D + at[None, :])
    else:
        q = qkv.load([first + tile * BM, head * D])
    key, value = (HQ + head // (HQ // HK)) * D, (HQ + HK + head // (HQ // HK)) * D
    total = tl.zeros((BM, D), dtype=tl.float32)
    most = tl.full((BM,), -1.0e30, dtype=tl.float32)
    below = tl.zeros((BM,), dtype=tl.float32)
    rows = tile * BM + tl.arange(0, BM)
    key_at = kv + low[:, None] * WIDTH + key + at[None, :] if POINTERS else kv
    value_at = key_at + HK * D if POINTERS else kv
    for j in range(0, min(tile * BM // BN, cap)):
        if POINTERS:
            k, v = tl.load(key_at + j * (BN * WIDTH)), tl.load(value_at + j * (BN * WIDTH))
        else:
            k, v = kv.load([first + j * BN, key]), kv.load([first + j * BN, value])
        total, most, below = _step(q, k, v, total, most, below, scale, rows, rows, False)
    for j in range(tile * BM // BN, (tile + 1) * BM // BN):
        if POINTERS:
            k, v = tl.load(key_at + j * (BN * WIDTH)), tl.load(value_at + j * (BN * WIDTH))
        else:
            k, v = kv.load([first + j * BN, key]), kv.load([first + j * BN, value])
        columns = j * BN + tl.arange(0, BN)
        total, most, below = _step(q, k, v, total, most, below, scale, rows, columns, True)
    total /= below[:, None]
    if POINTERS:
        tl.store(y + tall[:, None] * (HQ * D) + head * D + at[None, :], total.to(y.dtype.element_ty))
    else:
        y.store([first + tile * BM, head * D], total.to(y.dtype))


@triton.jit(do_not_specialize=["cap"])
def decode_attention(
    qkv,
    keys,
    values,
    pages,
    parts,
    peaks,
    length,
    per_split,
    page_stride,
    scale,
    cap,
    HQ: tl.constexpr,
    HK: tl.constexpr,
    D: tl.constexpr,
    SPLITS: tl.constexpr,
    PAGE: tl.constexpr,
    BG: tl.constexpr,
    BN: tl.constexpr,
):
    """A token's attention to `length` cached ones of its sequence, a part of them for each CTA: per_split of
    them, a multiple of BN. pages: numbers of the pages of PAGE tokens of each sequence. parts, peaks: for
    `join`."""
    pid = tl.program_id(0)
    split, head, sequence = pid % SPLITS, pid // SPLITS % HK, pid // (SPLITS * HK)
    group = tl.arange(0, BG)
    at = tl.arange(0, D)
    inside = (group < HQ // HK)[:, None]
    q = tl.load(
        qkv
        + sequence.to(tl.int64) * (HQ + 2 * HK) * D
        + (head * (HQ // HK) + group)[:, None] * D
        + at[None, :],
        mask=inside,
        other=0.0,
    )
    total = tl.zeros((BG, D), dtype=tl.float32)
    most = tl.full((BG,), -1.0e30, dtype=tl.float32)
    below = tl.zeros((BG,), dtype=tl.float32)
    first = split * per_split
    for j in range(0, min(tl.cdiv(min(length - first, per_split), BN), cap)):
        token = first + j * BN + tl.arange(0, BN)
        page = tl.load(pages + sequence * page_stride + token // PAGE, mask=token < length, other=0)
        place = ((page.to(tl.int64) * PAGE + token % PAGE) * HK + head)[:, None] * D + at[None, :]
        k = tl.load(keys + place, mask=(token < length)[:, None], other=0.0)
        v = tl.load(values + place, mask=(token < length)[:, None], other=0.0)
        last = tl.zeros((BG,), dtype=tl.int32) + length - 1
        total, most, below = _step(q, k, v, total, most, below, scale, last, token, True)
    row = (sequence * HQ + head * (HQ // HK) + group) * SPLITS + split
    tl.store(parts + row[:, None] * D + at[None, :], total / below[:, None], mask=inside)
    tl.store(peaks + row, most + tl.math.log2(below), mask=group < HQ // HK)


@triton.jit
def join(parts, peaks, y, D: tl.constexpr, SPLITS: tl.constexpr, PS: tl.constexpr):
    """Joins the parts of `decode_attention`; a CTA for each head of a token. PS: a power of two from SPLITS
    on."""
    row = tl.program_id(0)
    split, at = tl.arange(0, PS), tl.arange(0, D)
    peak = tl.load(peaks + row * SPLITS + split, mask=split < SPLITS, other=-1.0e30)
    weight = tl.math.exp2(peak - tl.max(peak, 0))
    part = tl.load(
        parts + (row * SPLITS + split)[:, None] * D + at[None, :], mask=(split < SPLITS)[:, None], other=0.0
    )
    total = tl.sum(part * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(y + row * D + at, total.to(y.dtype.element_ty))


@triton.jit
def activate(x, y, columns, BLOCK: tl.constexpr, GATED: tl.constexpr):
    """GATED: silu(first half of the row) * second half; otherwise GELU by tanh."""
    blocks = tl.cdiv(columns, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    at = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    a = tl.load(x + row * columns * (2 if GATED else 1) + at, mask=inside).to(tl.float32)
    if GATED:
        b = tl.load(x + row * columns * 2 + columns + at, mask=inside).to(tl.float32)
        value = a / (1 + tl.exp(-a)) * b
    else:
        value = a / (1 + tl.exp(-1.5957691216057308 * (a + 0.044715 * a * a * a)))
    tl.store(y + row * columns + at, value.to(y.dtype.element_ty), mask=inside)


@triton.jit
def gather(x, indices, y, H, BLOCK: tl.constexpr):
    """Rows of x by index: tokens in the order of their experts."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    source = tl.load(indices + row).to(tl.int64)
    tl.store(y + row * H + at, tl.load(x + source * H + at, mask=at < H), mask=at < H)


@triton.jit
def mix(x, places, logits, y, H, E, TOP: tl.constexpr, BLOCK: tl.constexpr, PE: tl.constexpr):
    """A token's sum of its TOP experts' rows, weighted by the softmax of their logits. places: TOP rows of x
    for each token, of the experts with the highest logits in descending order."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    expert = tl.arange(0, PE)
    logit = tl.load(logits + token * E + expert, mask=expert < E, other=float("-inf")).to(tl.float32)
    peak = tl.max(logit, 0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    below = 0.0
    for i in tl.static_range(TOP):
        best = tl.max(logit, 0)
        weight = tl.exp(best - peak)
        chosen = tl.argmax(logit, 0)
        logit = tl.where(expert == chosen, float("-inf"), logit)
        source = tl.load(places + token * TOP + i).to(tl.int64)
        total += weight * tl.load(x + source * H + at, mask=at < H, other=0.0).to(tl.float32)
        below += weight
    tl.store(y + token * H + at, (total / below).to(y.dtype.element_ty), mask=at < H)


@triton.jit
def _meet(flags, RANKS: tl.constexpr, PR: tl.constexpr):
    """Tells the CTAs of the other GPUs with this number that this one is here, and waits for an answer of
    each, which takes as long as their own news. 0; flags are on the other GPUs, PR for each CTA."""
    at = tl.arange(0, PR)
    told = tl.atomic_add(flags + at, 0, mask=at < RANKS - 1, sem="acq_rel", scope="sys")
    return tl.max(told, 0)


@triton.jit
def all_reduce(
    x,
    others,
    sums,
    other_sums,
    flags,
    y,
    N,
    PART,
    RANKS: tl.constexpr,
    PR: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_SHOT: tl.constexpr,
):
    """y: the sum of x and of what the RANKS - 1 other GPUs have, N elements each, in `others`. ONE_SHOT: of
    all elements. Otherwise of this GPU's PART of them, which it leaves in `sums`; then it fetches the parts
    of the others, `other_sums`. This is the first GPU."""
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    own = N if ONE_SHOT else tl.minimum(PART, N)
    inside = (at < own) & (_meet(flags + block * (2 * PR), RANKS, PR) == 0)
    total = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    for rank in tl.static_range(RANKS - 1):
        place = others + tl.cast(rank, tl.int64) * N + at
        total += tl.load(place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)
    if not ONE_SHOT:
        tl.store(sums + at, total.to(y.dtype.element_ty), mask=inside)
        tl.debug_barrier()
        here = _meet(flags + block * (2 * PR) + PR, RANKS, PR) == 0
        for rank in tl.static_range(RANKS - 1):
            to = tl.cast(rank + 1, tl.int64) * PART + at
            inside = (at < PART) & (to < N) & here
            value = tl.load(other_sums + tl.cast(rank, tl.int64) * PART + at, mask=inside, other=0.0)
            tl.store(y + to, value, mask=inside)


@triton.jit
def all_gather(x, others, flags, y, PART, RANKS: tl.constexpr, PR: tl.constexpr, BLOCK: tl.constexpr):
    """y: PART elements of x, and then as many of each of the RANKS - 1 other GPUs."""
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = (at < PART) & (_meet(flags + block * PR, RANKS, PR) == 0)
    tl.store(y + at, tl.load(x + at, mask=inside, other=0.0), mask=inside)
    for rank in tl.static_range(RANKS - 1):
        value = tl.load(others + tl.cast(rank, tl.int64) * PART + at, mask=inside, other=0.0)
        tl.store(y + tl.cast(rank + 1, tl.int64) * PART + at, value, mask=inside)
