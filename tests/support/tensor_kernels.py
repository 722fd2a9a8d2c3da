"""Triton kernels for tensor cores. Import only if Triton is installed."""

import triton
import triton.language as tl


@triton.jit
def product(
    a, b, c, K, sam, sak, sbk, sbn, sc,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """KIND: 1 for integers, 2 and 3 for bf16 and e4m3 given as integers."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    a += rows[:, None] * sam + steps[None, :] * sak
    b += steps[:, None] * sbk + columns[None, :] * sbn
    total = tl.zeros((BM, BN), dtype=tl.int32 if KIND == 1 else tl.float32)
    for _ in range(0, K, BK):
        x, y = tl.load(a), tl.load(b)
        if KIND == 2:
            x, y = x.to(tl.bfloat16, bitcast=True), y.to(tl.bfloat16, bitcast=True)
        elif KIND == 3:
            x, y = x.to(tl.float8e4nv, bitcast=True), y.to(tl.float8e4nv, bitcast=True)
        total = tl.dot(x, y, total, out_dtype=tl.int32 if KIND == 1 else tl.float32)
        a += BK * sak
        b += BK * sbk
    tl.store(c + rows[:, None] * sc + columns[None, :], total)
