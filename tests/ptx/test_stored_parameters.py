"""Which pointer parameters a kernel may store through."""

from __future__ import annotations

import pytest

import simt
from simt import _engine
from support.ptx_dump import dump

REGISTERS = ".reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<8>;"
PARAMETERS = ".param .u64 a, .param .u32 n, .param .u64 b, .param .align 8 .b8 s[24], .param .u64 c"
# Words of 8 bytes: a 0, n 1, b 2, s 3 to 5, c 6.


def stored(text: str) -> list[int]:
    (kernel,) = dump(f".visible .entry k({PARAMETERS}) {{ {REGISTERS}\n{text}\n}}")["functions"]
    words: list[int] = kernel["stored_parameters"]
    return words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ld.param.u64 %rd1, [b]; st.global.u32 [%rd1+4], %r1;", [2]),
        ("ld.param.u64 %rd1, [b]; ld.global.u32 %r1, [%rd1];", []),
        # The stored value is not the address of the store.
        ("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [c]; st.global.u64 [%rd1], %rd2;", [0]),
        # Computed addresses: conversion, index, select.
        ("ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, %tid.x;"
         " mad.wide.u32 %rd3, %r1, 4, %rd2; st.global.u32 [%rd3], %r1;", [0]),
        ("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; setp.eq.u32 %p1, %r1, 0;"
         " selp.b64 %rd3, %rd1, %rd2, %p1; st.global.u32 [%rd3], %r1;", [0, 2]),
        # Used only in a comparison.
        ("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; setp.lt.u64 %p1, %rd1, %rd2;"
         " @%p1 st.global.u32 [%rd2], %r1;", [2]),
        # A loop moves the pointer on; the store stands before.
        ("ld.param.u64 %rd1, [c]; L: @%p1 st.global.u32 [%rd2], %r1; add.u64 %rd2, %rd1, 8; bra L;", [6]),
        # Members of structures, vectors.
        ("ld.param.u64 %rd1, [s+16]; st.u32 [%rd1], %r1;", [5]),
        ("ld.param.v2.u64 {%rd1, %rd2}, [s+8]; st.u32 [%rd2], %r1;", [5]),
        ("ld.param.v2.u64 {_, %rd2}, [s+8]; st.u32 [%rd2], %r1;", [5]),
        # Atomics read and write; other state spaces do not count; matrices and bulk copies do.
        ("ld.param.u64 %rd1, [a]; atom.global.add.u32 %r1, [%rd1], 1;", [0]),
        ("ld.param.u64 %rd1, [a]; red.global.add.u32 [%rd1], 1;", [0]),
        ("ld.param.u64 %rd1, [a]; atom.global.add.u64 %rd2, [%rd1], 1; st.u32 [%rd2], %r1;", [0]),
        ("ld.param.u32 %r1, [n]; st.shared.u32 [%r1], %r2;", []),
        ("ld.param.u64 %rd1, [b]; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1],"
         " {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %r1;", [2]),
        ("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];"
         " cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", [0]),
        ("ld.param.u64 %rd1, [a]; cp.async.ca.shared.global [%r1], [%rd1], 16;", []),
        # An address loaded from memory is not followed.
        ("ld.param.u64 %rd1, [a]; ld.global.u64 %rd2, [%rd1]; st.global.u32 [%rd2], %r1;", []),
    ],
)  # fmt: skip
def test_stores_are_followed_back_to_parameters(text: str, words: list[int]) -> None:
    assert stored(text) == words


def test_a_compiled_kernel() -> None:
    source = """__global__ void k(const float* x, int n, float* y, const float* w, float* z) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i] * w[i];
        else atomicAdd(z + i % 7, 1.0f);
    }"""
    ptx = simt.GPU("qv100").compile(source).ptx.text
    (kernel,) = _engine.PtxModule(ptx.encode(), "k.ptx").dump()["functions"]
    assert kernel["stored_parameters"] == [2, 4]
