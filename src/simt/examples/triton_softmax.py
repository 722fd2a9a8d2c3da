"""A Triton softmax: fused in one kernel against three passes. Needs `pip install 'simt[triton]'`."""

import numpy as np
import triton
import triton.language as tl

import simt


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=float("-inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + at, power / tl.sum(power, 0), mask=inside)


@triton.jit
def row_max(x, m, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=float("-inf"))
    tl.store(m + tl.program_id(0), tl.max(value, 0))


@triton.jit
def exponentials(x, m, y, s, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf"))
    power = tl.exp(value - tl.load(m + row))
    tl.store(y + row * columns + at, power, mask=at < columns)
    tl.store(s + row, tl.sum(power, 0))


@triton.jit
def divide(y, s, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(y + row * columns + at, mask=at < columns)
    tl.store(y + row * columns + at, value / tl.load(s + row), mask=at < columns)


def main(gpu: simt.GPU) -> None:
    rows, columns = 512, 1000
    host = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    power = np.exp(host - host.max(1, keepdims=True))
    expected = power / power.sum(1, keepdims=True)
    x, y, z = gpu.array(host), gpu.zeros((rows, columns)), gpu.zeros((rows, columns))
    m, s = gpu.empty(rows), gpu.empty(rows)
    fused = gpu.triton(softmax)[rows](x, y, columns, BLOCK=1024)
    print("largest error, fused:", float(abs(y.numpy() - expected).max()))
    passes = [
        gpu.triton(row_max)[rows](x, m, columns, BLOCK=1024),
        gpu.triton(exponentials)[rows](x, m, z, s, columns, BLOCK=1024),
        gpu.triton(divide)[rows](z, s, columns, BLOCK=1024),
    ]
    print("largest error, three passes:", float(abs(z.numpy() - expected).max()))
    if fused and all(passes):
        cycles = sum(p.cycles for p in passes if p)
        sectors = [
            sum(p.counters["lts__t_sectors.sum"] for p in launches)
            for launches in ([fused], [p for p in passes if p])
        ]
        print(
            f"three passes take {cycles / fused.cycles:.2f} times as long: "
            f"{cycles:,} against {fused.cycles:,} cycles,"
        )
        print(f"and move {sectors[1] / sectors[0]:.2f} times as many sectors through the L2.")
