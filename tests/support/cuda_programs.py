"""CUDA C++ programs made by chance, to compare what executes them: PTX with the machine code that ptxas makes
of it at each level of optimisation. Nothing in them is undefined, and all NaNs are made the same before their
bits are looked at.

    python tests/support/cuda_programs.py --minutes 60      # checks new programs for an hour
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simt.cuda import compile_cuda

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.ptx import Device

GRID, BLOCK, WORDS = 2, 64, 24
"""CTAs; threads of one; 32-bit words that each thread reads and writes."""
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_70", "sm_100", "sm_120")
LEVELS = ("-O0", "-O1", "-O2", "-O3")

_HEAD = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
typedef unsigned char u8; typedef signed char s8; typedef unsigned short u16; typedef short s16;
typedef unsigned u32; typedef int s32; typedef unsigned long long u64; typedef long long s64;
typedef float f32; typedef double f64; typedef __half f16; typedef __nv_bfloat16 bf16;
__constant__ u32 table[16] = {0, 1, 0x80000000, 0xffffffff, 0x7fffffff, 0x3f800000, 17, 99,
                              0xff, 0x8000, 0x7f800000, 0xbf800000, 0x40490fdb, 5, 0xdeadbeef, 31};
__device__ u32 bits(f32 x) { return x == x ? __float_as_uint(x) : 0x7fc00000u; }
__device__ u64 bits(f64 x) { return x == x ? __double_as_longlong(x) : 0x7ff8000000000000ull; }
__device__ u32 bits(f16 x) { return __hisnan(x) ? 0x7e00u : __half_as_ushort(x); }
__device__ u32 bits(bf16 x) { return __hisnan(x) ? 0x7fc0u : __bfloat16_as_ushort(x); }
template <class T> __device__ T number(T x) { return x == x ? x : T(1); }
__device__ __noinline__ u32 mixed(u32 a, u32 b, int n) {
  for (int i = 0; i < (n & 7); ++i) a = a * 1664525u + (b >> i);
  return a ^ b;
}
__device__ __noinline__ f64 blended(f64 a, f32 b, s32 n) {
  if (n & 1) return a + b;
  return n & 2 ? a * b : a - n;
}
__device__ __noinline__ u32 deep(u32 n, u32 x) { return n ? deep(n - 1, x * 3 + n) ^ x : x; }
__device__ __noinline__ u32 chosen_0(u32 a, u32 b, int n) { return a + (b << (n & 15)); }
__device__ __noinline__ u32 chosen_1(u32 a, u32 b, int n) {
  return (a & 3) == 1 ? mixed(a, b, n) : a / (b | 1) + deep(n & 3, b);
}
typedef u32 (*Function)(u32, u32, int);
__device__ Function functions[4] = {mixed, chosen_0, chosen_1, chosen_0};
__device__ u32 bits(__half2 x) { return bits(__low2half(x)) | bits(__high2half(x)) << 16; }
__device__ u32 bits(__nv_bfloat162 x) { return bits(__low2bfloat16(x)) | bits(__high2bfloat16(x)) << 16; }
__device__ __half2 halves(u32 x) { return *(__half2*)&x; }
__device__ __nv_bfloat162 brains(u32 x) { return *(__nv_bfloat162*)&x; }
#define ONE(name, text, to, d, of, s) \
  __device__ to name(of a) { to r; asm(text " %0, %1;" : "=" d(r) : s(a)); return r; }
#define TWO(name, text, type, s) \
  __device__ type name(type a, type b) { type r; asm(text " %0, %1, %2;" : "=" s(r) : s(a), s(b)); return r; }
#define THREE(name, text, type, s) \
  __device__ type name(type a, type b, type c) { \
    type r; asm(text " %0, %1, %2, %3;" : "=" s(r) : s(a), s(b), s(c)); return r; }
__device__ u32 insert(u32 a, u32 b, u32 c, u32 d) {
  u32 r; asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c), "r"(d)); return r; }
__device__ u64 insert_long(u64 a, u64 b, u32 c, u32 d) {
  u64 r; asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(r) : "l"(a), "l"(b), "r"(c), "r"(d)); return r; }
__device__ u64 extract_long(u64 a, u32 c, u32 d) {
  u64 r; asm("bfe.u64 %0, %1, %2, %3;" : "=l"(r) : "l"(a), "r"(c), "r"(d)); return r; }
__device__ s64 extract_signed_long(s64 a, u32 c, u32 d) {
  s64 r; asm("bfe.s64 %0, %1, %2, %3;" : "=l"(r) : "l"(a), "r"(c), "r"(d)); return r; }
__device__ u32 carried(u32 a, u32 b, u32 c) {
  u32 r, x;
  asm("{mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.cc.u32 %1, %2, %3, 0; addc.u32 %0, %0, %1;}"
      : "=&r"(r), "=&r"(x) : "r"(a), "r"(b), "r"(c));
  return r ^ x; }
__device__ u32 borrowed(u32 a, u32 b, u32 c) {
  u32 r, x;
  asm("{sub.cc.u32 %0, %2, %3; subc.cc.u32 %1, %4, %2; subc.u32 %0, %0, %1;}"
      : "=&r"(r), "=&r"(x) : "r"(a), "r"(b), "r"(c));
  return r ^ x; }
@OPERATIONS@
__device__ __noinline__ s64 ordered(s64 a, s32 b, s64* other) {
  *other = a < b ? a : b;
  return a < b ? b : a;
}
"""

_INTEGERS = ("s32", "u32", "s64", "u64", "s16", "u8")
_FLOATS = ("f32", "f64", "f16", "bf16")
_TYPES = _INTEGERS + _FLOATS
_BITS = {"u8": 8, "s16": 16, "s32": 32, "u32": 32, "s64": 64, "u64": 64}


# By type: operations of PTX that CUDA C++ has no name for, by number of operands. Video instructions have no
# second operation .min or .max: ptxas compares an intermediate result of 32 or 64 bits, PTX one of 33.
# There is no szext: ptxas 12.9 gives SGXT a wrong constant bank where its second operand is a constant.
# There is no abs.s32: from -O1 on, ptxas takes its result as not negative, though abs of -2^31 is itself.
# There is no sub.sat.s32, which saturates differences from negated numbers wrongly from -O1 on, and no cnot,
# whose saturation to a byte ptxas then computes from a register that nothing has written
# (tests/sass/test_opcode_semantics.py).
_OPERATIONS: dict[str, dict[int, tuple[str, ...]]] = {
    "u32": {
        1: ("bfind.u32", "bfind.shiftamt.u32", "cvt.sat.u8.u32", "cvt.u16.u32", "cvt.s8.s32"),
        2: ("mul24.hi.u32", "bmsk.clamp.b32", "bmsk.wrap.b32", "min.u32", "set.lt.u32.u32"),
        3: (
            "bfe.u32",
            "shf.l.clamp.b32",
            "shf.r.wrap.b32",
            "prmt.b32.f4e",
            "prmt.b32.b4e",
            "prmt.b32.rc8",
            "prmt.b32.ecl",
            "prmt.b32.ecr",
            "prmt.b32.rc16",
            "mad.hi.u32",
            "mad24.lo.u32",
            "dp4a.u32.s32",
            "vadd.u32.u32.s32.add",
            "vabsdiff.u32.u32.u32.add",
            "dp2a.hi.u32.u32",
            "slct.u32.s32",
        ),
    },
    "s32": {
        1: ("bfind.s32", "cvt.sat.s8.s32", "cvt.sat.u16.s32", "cvt.sat.s16.s32"),
        2: ("add.sat.s32", "mul24.lo.s32", "mul.hi.s32", "set.ge.s32.s32"),
        3: (
            "bfe.s32",
            "mad.hi.sat.s32",
            "mad24.hi.s32",
            "mad.hi.s32",
            "dp4a.s32.u32",
            "dp2a.lo.s32.u32",
            "mad24.hi.sat.s32",
            "vset.s32.s32.lt.add",
            "vshl.s32.s32.u32.clamp.add",
        ),
    },
    "u64": {2: ("mul.hi.u64", "min.u64"), 3: ("mad.hi.u64", "mad.lo.u64")},
    "s64": {2: ("max.s64", "mul.hi.s64"), 3: ("mad.hi.s64", "mad.lo.s64")},
    "f32": {
        1: (
            "rcp.approx.ftz.f32",
            "rsqrt.approx.ftz.f32",
            "ex2.approx.ftz.f32",
            "lg2.approx.ftz.f32",
            "tanh.approx.f32",
            "cvt.rpi.ftz.f32.f32",
            "cvt.rmi.sat.f32.f32",
            "abs.ftz.f32",
            "neg.ftz.f32",
        ),
        2: (
            "add.ftz.f32",
            "mul.rz.ftz.f32",
            "sub.sat.f32",
            "min.ftz.f32",
            "mul.ftz.sat.f32",
            "add.rm.f32",
            "max.ftz.f32",
            "copysign.f32",
            "set.gt.f32.f32",
            "set.equ.ftz.f32.f32",
        ),
        3: ("fma.rn.ftz.f32", "fma.rp.sat.f32", "fma.rz.ftz.sat.f32"),
    },
    "f64": {1: ("cvt.rpi.f64.f64", "abs.f64"), 2: ("add.rp.f64", "min.f64"), 3: ("fma.rm.f64",)},
}
_ATOMICS = ("Add", "Max", "Min", "Xor", "And", "Or", "Exch", "Inc", "Dec")
_WIDE_ATOMICS = ("Add", "Max", "Exch", "Xor")
_LETTERS = {"u32": "r", "s32": "r", "u64": "l", "s64": "l", "f32": "f", "f64": "d"}


def _name_of(operation: str) -> str:
    return "ptx_" + operation.replace(".", "_")


def _operations() -> str:
    lines = []
    for type_, by_count in _OPERATIONS.items():
        letter = f'"{_LETTERS[type_]}"'
        for count, texts in by_count.items():
            for text in texts:
                name = _name_of(text)
                if count == 1:
                    lines.append(f'ONE({name}, "{text}", {type_}, {letter}, {type_}, {letter})')
                else:
                    lines.append(f'{("TWO", "THREE")[count - 2]}({name}, "{text}", {type_}, {letter})')
    return "\n".join(lines)


class Mismatch(NamedTuple):
    arch: str
    level: str
    thread: int
    word: int
    wanted: int
    found: int

    def __str__(self) -> str:
        return (
            f"{self.arch} {self.level}: thread {self.thread}, word {self.word}: "
            f"PTX {self.wanted:#010x}, machine code {self.found:#010x}"
        )


class Program:
    """One program; `chance` makes its choices. Declares two variables of each type, and changes them."""

    def __init__(self, chance: random.Random, arch: str) -> None:
        self._chance = chance
        # Before sm_80, bf16 is converted only.
        self._computed = _TYPES if arch >= "sm_80" else _TYPES[:-1]
        self._rounds_to_zero = arch >= "sm_80"
        self._lacks = {"tanh.approx.f32"} if arch < "sm_75" else set[str]()
        self._loops = 0
        self._shares = True  # whether threads may change what others read
        names = [f"{type_}_{k}" for type_ in _TYPES for k in range(2)]
        lines = ["__shared__ u32 tile[64];", "__shared__ s32 sums[8];", "u32 stack[8];"]
        lines += ["__shared__ __align__(16) u8 wide[64 * 16];", "u8 bytes[16];"]
        lines += ["for (int k = 0; k < 16; ++k) bytes[k] = threadIdx.x * k;"]
        lines += ["const u32 t = threadIdx.x, lane = t & 31, me = blockIdx.x * blockDim.x + t;"]
        lines += [f"in += me * {WORDS}; out += me * {WORDS};"]
        lines += ["if (t < 8) sums[t] = t; tile[t] = in[t & 7];"]
        lines += ["for (int k = 0; k < 8; ++k) stack[k] = in[k] + k;", "__syncthreads();"]
        for k, name in enumerate(names):
            type_ = name.split("_")[0]
            word = f"in[{k % WORDS}]"
            if type_ in _INTEGERS:
                value = f"({type_})(((u64){word} << 21) ^ in[{(k + 5) % WORDS}])"
            elif type_ == "f64":
                value = f"(f64)__uint_as_float({word}) * 1.0000001"
            else:
                value = self._cast(type_, "f32", f"__uint_as_float({word})")
            lines.append(f"{type_} {name} = {value};")
        for _ in range(chance.randint(4, 14)):
            lines += self._statement(0, uniform=True)
        lines.append("__syncthreads();")
        self._shares = False
        if chance.random() < 0.3:
            lines += [f"if ({self._truth(2)}) {{", *self._block(0), f"out[0] = {self._value('u32', 2)};"]
            lines += ["return;", "}", *self._block(0)]
        lines += ["u64 hash = sums[t & 7] + tile[63 - t];"]
        for k, name in enumerate(names):
            whole = name if name.split("_")[0] in _INTEGERS else f"bits({name})"
            lines.append(f"out[{k}] = (u32)((u64){whole} ^ ((u64){whole} >> 32));")
        lines += [f"for (int k = 0; k < 8; ++k) hash = hash * 31 + stack[k]; out[{WORDS - 1}] = (u32)hash;"]
        body = "\n  ".join(lines)
        self.source = (
            _HEAD.replace("@OPERATIONS@", _operations())
            + f'extern "C" __global__ void k(u32* out, const u32* in, u32 n) {{\n  {body}\n}}\n'
        )

    def _cast(self, to: str, of: str, text: str) -> str:
        if to == of:
            return text
        if of in ("f16", "bf16"):
            text = f"__half2float({text})" if of == "f16" else f"__bfloat162float({text})"
            of = "f32"
        if to in ("f16", "bf16"):
            single = text if of == "f32" else f"(f32)({text})"
            # For sm_75, ptxas may leave out a rounding toward zero.
            direction = self._chance.choice(("rn", "rz")) if to == "f16" and self._rounds_to_zero else "rn"
            return f"__float2half_{direction}({single})" if to == "f16" else f"__float2bfloat16_rn({single})"
        if of in _FLOATS and to in _INTEGERS:  # all others are undefined in C++, but not in PTX
            long = "ll" if _BITS[to] == 64 else "int"
            unsigned = "u" if to.startswith("u") else ""
            name = "float" if of == "f32" else "double"
            return f"({to})__{name}2{unsigned}{long}_r{self._chance.choice('nzdu')}({text})"
        return f"({to})({text})"

    def _variable(self, type_: str) -> str:
        return f"{type_}_{self._chance.randrange(2)}"

    def _value(self, type_: str, depth: int) -> str:
        """An expression of this type."""
        chance = self._chance
        if depth <= 0 or chance.random() < 0.15:
            return self._leaf(type_)
        if chance.random() < 0.12:
            of = chance.choice(self._computed)
            return self._cast(type_, of, self._value(of, depth - 1))
        if chance.random() < 0.1:
            return f"({self._truth(depth - 1)} ? {self._value(type_, depth - 1)} : {self._leaf(type_)})"
        a, b, c = (self._value(type_, depth - 1 - k // 2) for k in range(3))
        return self._integer(type_, a, b, c) if type_ in _INTEGERS else self._float(type_, a, b, c)

    def _leaf(self, type_: str) -> str:
        chance = self._chance
        if chance.random() < 0.7:
            return self._variable(type_)
        if type_ in _INTEGERS:
            leaves = ["t", "lane", "me", "n", "blockIdx.x", "table[t & 15]", f"table[{chance.randrange(16)}]"]
            leaves += [f"stack[{self._index(8)}]", str(chance.randrange(-9, 99))]
            return f"({type_})({chance.choice(leaves)})"
        # Zeros come from memory: of a constant zero, ptxas takes it that |x| >= 0 even if x is no number.
        number = chance.choice(
            ("1.0f", "-1.5f", "3.0e38f", "1.0e-40f", "0.1f", "65504.0f", "__uint_as_float(")
        )
        if number.endswith("("):
            number += f"table[{chance.randrange(16)}])"
        return self._cast(type_, "f32", number)

    def _index(self, count: int) -> str:
        return f"({self._variable('u32')} & {count - 1})"

    def _integer(self, type_: str, a: str, b: str, c: str) -> str:
        # ptxas takes it that absolute values and negated ones do not overflow.
        chance, bits = self._chance, _BITS[type_]
        choices = [f"{a} {op} {b}" for op in ("+", "-", "*", "&", "|", "^")]
        choices += [
            f"{a} * {b} + {c}",
            f"{a} << ((u32)({b}) & {bits - 1})",
            f"{a} >> ((u32)({b}) & {bits - 1})",
        ]
        choices += [
            f"({a} & {b}) | (~{a} & {c})",
            f"({a} ^ {b}) & {c}",
            f"{a} + {b} + {c}",
            f"-({a} >> 1)",
            f"~({a})",
        ]
        choices += [f"({a} < {b} ? {a} : {b})", f"({a} > {b} ? {a} : {b})"]
        if type_ in ("u32", "u64"):
            choices += [f"{a} / ({b} | 1)", f"{a} % ({b} | 1)"]
        elif type_ in ("s32", "s64"):
            choices += [
                f"{a} / (({b} & 0x3ffff) | 1)",
                f"{a} % (({b} & 0x3ffff) | 1)",
                f"{a} / 7",
                f"{a} % 10",
            ]
        if type_ == "u32":
            choices += [f"__popc({a})", f"__clz({a})", f"__brev({a})", f"__ffs({a})", f"__umulhi({a}, {b})"]
            choices += [
                f"__byte_perm({a}, {b}, {c})",
                f"__funnelshift_l({a}, {b}, {c})",
                f"mixed({a}, {b}, lane)",
            ]
            choices += [f"__funnelshift_rc({a}, {b}, {c})", f"__vadd2({a}, {b})", f"__dp4a({a}, {b}, {c})"]
            choices += [f"__usad({a}, {b}, {c})", f"bits({self._variable(chance.choice(_FLOATS[:1]))})"]
            choices += [f"__vmaxs2({a}, {b})", f"__vabsdiffu4({a}, {b})", f"__vcmpgtu4({a}, {b})"]
        if type_ == "s32":
            choices += [
                f"abs({a} >> 1)",
                f"__mulhi({a}, {b})",
                f"__dp4a({a}, {b}, {c})",
                f"__sad({a}, {b}, {c})",
            ]
            choices += [f"max(min({a}, {b}), {c})", f"__dp2a_lo({a}, {b}, {c})", f"max({a} + {b}, {c})"]
        if type_ == "u64":
            choices += [
                f"__umul64hi({a}, {b})",
                f"__popcll({a})",
                f"__clzll({a})",
                f"(u64)(u32)({a}) * (u32)({b}) + {c}",
            ]
        if type_ == "s64":
            choices += [f"__mul64hi({a}, {b})", f"(s64)(s32)({a}) * (s32)({b}) + {c}", f"llabs({a} >> 1)"]
        if type_ == "u32":
            choices += [f"insert({a}, {b}, {c}, lane)", f"carried({a}, {b}, {c})", f"borrowed({a}, {b}, {c})"]
            choices += [f"functions[{a} & 3]({b}, {c}, lane)", f"deep({a} & 7, {b})"]
            choices += [self._pair(a, b, c)] * 3
        if type_ == "u64":
            choices += [f"insert_long({a}, {b}, lane, {c} & 255)", f"extract_long({a}, {b} & 255, lane)"]
        if type_ == "s64":
            choices.append(f"extract_signed_long({a}, {b} & 255, {c} & 255)")
        if type_ in _OPERATIONS and chance.random() < 0.25:
            choices = [self._operation(type_, a, b, c)]
        return f"({type_})({chance.choice(choices)})"

    def _operation(self, type_: str, *operands: str) -> str:
        """One of PTX without a name in CUDA C++."""
        count, texts = self._chance.choice(list(_OPERATIONS[type_].items()))
        chosen = self._chance.choice([text for text in texts if text not in self._lacks])
        return f"{_name_of(chosen)}({', '.join(operands[:count])})"

    def _pair(self, a: str, b: str, c: str) -> str:
        """Arithmetic of two halves or bfloat16s in a word."""
        chance = self._chance
        make = chance.choice(("halves", "brains")) if "bf16" in self._computed else "halves"
        x, y, z = (f"{make}({text})" for text in (a, b, c))
        choices = [f"__h{name}2_rn({x}, {y})" for name in ("add", "sub", "mul")]
        choices += [f"__hfma2({x}, {y}, {z})", f"__hmin2({x}, {y})", f"__hmax2({x}, {y})"]
        choices += [f"__hneg2({x})", f"__habs2({x})", f"__heq2({x}, {y})", f"__hgt2({x}, {y})"]
        choices += [f"__hltu2({x}, {y})", f"__hfma2_sat({x}, {y}, {z})"]
        if self._rounds_to_zero:
            choices += [f"__hfma2_relu({x}, {y}, {z})", f"__hmax2_nan({x}, {y})"]
        return f"bits({chance.choice(choices)})"

    def _float(self, type_: str, a: str, b: str, c: str) -> str:
        chance = self._chance
        if type_ in ("f16", "bf16"):
            # Without _rn, ptxas contracts them with each other and with conversions.
            choices = [f"__h{name}_rn({a}, {b})" for name in ("add", "sub", "mul")]
            choices.append(f"__hfma({a}, {b}, {c})")
            choices += [
                f"__hmin({a}, {b})",
                f"__hmax({a}, {b})",
                f"__hneg({a})",
                f"__habs({a})",
                f"__hmax_nan({a}, {b})",
            ]
            if type_ == "f16":
                choices += [
                    f"__hfma_sat({a}, {b}, {c})",
                    f"__hdiv({a}, {b})",
                    f"hrint({a})",
                ]
            return chance.choice(choices)
        mark = "f" if type_ == "f32" else ""
        letter = "f" if type_ == "f32" else "d"
        direction = "r" + chance.choice("nnnzdu")
        choices = [f"__{letter}add_{direction}({a}, {b})", f"__{letter}mul_{direction}({a}, {b})"]
        choices += [
            f"__{'fmaf' if mark else 'fma'}_{direction}({a}, {b}, {c})",
            f"__{letter}sub_rn({a}, {b})",
        ]
        choices += [f"fmin{mark}({a}, {b})", f"fmax{mark}({a}, {b})", f"fabs{mark}({a})", f"-({a})"]
        choices += [
            f"copysign{mark}({a}, number({b}))",
            f"rint{mark}({a})",
            f"floor{mark}({a})",
            f"trunc{mark}({a})",
        ]
        choices += [f"({a}) / ({b})", f"sqrt{mark}({a})", f"__{letter}div_{direction}({a}, {b})"]
        if chance.random() < 0.2:
            return self._operation(type_, a, b, c)
        if type_ == "f32":
            choices += [f"__frcp_rn({a})", f"__fsqrt_rz({a})", f"__saturatef({a})"]
        else:
            choices += [f"blended({a}, {self._variable('f32')}, {self._variable('s32')})"]
        return chance.choice(choices)

    def _truth(self, depth: int) -> str:
        chance = self._chance
        type_ = chance.choice(self._computed)
        a, b = self._value(type_, depth - 1), self._value(type_, depth - 1)
        test = f"({a} {chance.choice(('<', '<=', '==', '!=', '>', '>='))} {b})"
        if chance.random() < 0.3 and depth > 0:
            return f"({test} {chance.choice(('&&', '||', '^'))} {self._truth(depth - 1)})"
        return test

    def _assignment(self) -> str:
        type_ = self._chance.choice(self._computed)
        return f"{self._variable(type_)} = {self._value(type_, 3)};"

    def _statement(self, depth: int, uniform: bool) -> list[str]:
        """Lines of a statement. uniform: all threads of the CTA execute it."""
        chance = self._chance
        kind = chance.random()
        if depth >= 3 or kind < 0.45:
            return [self._assignment()]
        if kind < 0.6:
            lines = [f"if ({self._truth(2)}) {{", *self._block(depth)]
            if chance.random() < 0.5:
                lines += ["} else {", *self._block(depth)]
            return [*lines, "}"]
        if kind < 0.72:
            return self._loop(depth)
        if kind < 0.78:
            cases = [
                line
                for case in range(chance.choice((3, 6, 9)))
                for line in (f"case {case}:", *self._block(depth, 1), chance.choice(("break;", "break;", "")))
            ]
            return [
                f"switch ({self._variable('u32')} % 11) {{",
                *cases,
                f"default: {self._assignment()}",
                "}",
            ]
        if kind < 0.84:
            return [f"stack[{self._index(8)}] = {self._value('u32', 2)};"]
        if kind < 0.88 and self._shares:
            operation = chance.choice(("atomicAdd", "atomicMax", "atomicMin", "atomicXor"))
            # One kind of operation on each word, so that their order does not matter.
            word = ("atomicAdd", "atomicMax", "atomicMin", "atomicXor").index(operation)
            return [f"{operation}(&sums[{word}], {self._value('s32', 2)});"]
        if kind < 0.895:
            return [self._own_word()]
        if kind < 0.91:
            return [f"s64_0 = ordered({self._value('s64', 1)}, {self._variable('s32')}, &s64_1);"]
        if not uniform:
            return [self._assignment()]
        if kind < 0.93:
            return self._shared()
        if kind < 0.95:
            value = self._value("u32", 2)
            return [
                "__syncthreads();",
                f"tile[t] = {value};",
                "__syncthreads();",
                f"u32_1 ^= tile[{self._index(64)}];",
            ]
        return [self._exchange()]

    def _shared(self) -> list[str]:
        """Values of any type through shared memory, in one or several accesses of a thread."""
        type_ = self._chance.choice(("s64", "f64", "s16", "u8", "f32", "f16"))
        a, b = self._value(type_, 2), self._value(type_, 1)
        size = {"s64": 8, "f64": 8, "s16": 2, "u8": 1, "f32": 4, "f16": 2}[type_]
        both = f"{{ struct alignas({2 * size}) Both {{ {type_} x, y; }};"
        return [
            "__syncthreads();",
            f"{both} Both b; b.x = {a}; b.y = {b}; ((Both*)wide)[t] = b; __syncthreads();",
            f"b = ((Both*)wide)[{self._index(64)}]; {type_}_0 = b.y;",
            f"{type_}_1 = (({type_}*)wide)[2 * lane]; }}",
        ]

    def _own_word(self) -> str:
        """An access to memory that only this thread uses: atomic, or of several words."""
        chance = self._chance
        value = self._value("u32", 2)
        word, even = chance.randrange(WORDS - 1), 2 * chance.randrange(WORDS // 2 - 1)
        return chance.choice(
            (
                f"u32_0 += atomic{chance.choice(_ATOMICS)}(&out[{word}], {value});",
                f"u32_1 ^= atomicCAS(&out[{word}], u32_0, {value});",
                f"u64_0 += atomic{chance.choice(_WIDE_ATOMICS)}((u64*)(out + {even}), u64_1);",
                f"f32_0 = number(atomicAdd((f32*)out + {word}, number({self._value('f32', 2)})));",
                f"f64_0 = number(atomicAdd((f64*)(out + {even}), number({self._value('f64', 2)})));",
                f"{{ uint4 v = *(const uint4*)(in + {4 * chance.randrange(WORDS // 4)}); v.y += {value};"
                f" *(uint4*)(out + {4 * chance.randrange(WORDS // 4 - 1)}) = v; u32_0 ^= v.w; }}",
                f"{{ uint2 v = *(const uint2*)(out + {even}); u64_1 += v.x; s32_0 ^= v.y; }}",
                f"((u8*)out)[{chance.randrange(4 * WORDS)}] = {value}; s16_0 = ((const s16*)out)[{even}];",
                f"bytes[u32_1 & 15] = {value}; s32_1 += bytes[{self._variable('u8')} & 15];",
            )
        )

    def _exchange(self) -> str:
        chance = self._chance
        value = self._value(chance.choice(("u32", "s32")), 2)
        choices = [f"u32_0 = __ballot_sync(~0u, {self._truth(1)});"]
        choices += [f"u32_0 = __shfl_sync(~0u, {value}, {self._variable('u32')});"]
        choices += [
            f"u32_1 = __shfl_{way}_sync(~0u, {value}, {chance.randrange(32)});"
            for way in ("up", "down", "xor")
        ]
        choices += [f"s32_0 += __any_sync(~0u, {self._truth(1)}) + 2 * __all_sync(~0u, {self._truth(1)});"]
        choices += [
            f"u32_0 = __match_any_sync(~0u, {value} & 3);",
            "f64_0 = __shfl_xor_sync(~0u, f64_0, 5);",
            f"s64_1 = __shfl_down_sync(~0u, {self._value('s64', 1)}, {chance.randrange(9)}, 8);",
            f"{{ int all; u32_1 += __match_all_sync(~0u, {value} & 1, &all); s32_1 += all; }}",
        ]
        # Lanes that diverged exchange values among themselves.
        inner = [
            f"u32_0 = __shfl_sync(m, {value}, __ffs(m) - 1);",
            f"s32_0 ^= __ballot_sync(m, {self._truth(1)});",
            "u32_1 = __match_any_sync(m, u32_0 & 7);",
            f"{{ {self._assignment()} __syncwarp(m); {self._assignment()} }}",
        ]
        if self._rounds_to_zero:
            reductions = ("add", "min", "max") if chance.random() < 0.5 else ("and", "or", "xor")
            inner.append(f"u32_1 = __reduce_{chance.choice(reductions)}_sync(m, u32_0);")
        sides = f"{chance.choice(inner)} }} else {{ m = ~m; {chance.choice(inner)}"
        choices += [
            f"{{ bool c = {self._truth(1)}; u32 m = __ballot_sync(~0u, c); if (c) {{ {sides} }} }}"
        ] * 4
        return chance.choice(choices)

    def _block(self, depth: int, most: int = 3) -> list[str]:
        return [
            line
            for _ in range(self._chance.randint(1, most))
            for line in self._statement(depth + 1, uniform=False)
        ]

    def _loop(self, depth: int) -> list[str]:
        chance = self._chance
        self._loops += 1
        index = f"i{self._loops}"
        most = chance.choice((f"({self._variable('u32')} & 7)", "5", "(n & 3) + 1", "(lane & 3)"))
        lines = [f"for (u32 {index} = 0; {index} < {most}; ++{index}) {{", *self._block(depth)]
        if chance.random() < 0.3:
            lines += [f"if ({self._truth(1)}) {chance.choice(('break;', 'continue;'))}", self._assignment()]
        if chance.random() < 0.3:
            lines.append(f"u32_0 += {index};")
        return [*lines, "}"]


def _inputs() -> np.ndarray:
    chance = np.random.default_rng(7)
    words = chance.integers(0, 2**32, GRID * BLOCK * WORDS, np.uint32)
    edges = np.array(
        [0, 1, 0x80000000, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x3F800000, 0x1, 0x42F00000], np.uint32
    )
    at = chance.random(len(words)) < 0.2
    words[at] = chance.choice(edges, at.sum())
    small = chance.random(len(words)) < 0.3
    words[small] = (chance.normal(0, 30, small.sum()).astype(np.float32)).view(np.uint32)
    return words


def mismatch(program: Program, arch: str, levels: tuple[str, ...] = LEVELS) -> Mismatch | None:
    """The first difference between PTX and machine code, or None."""
    text = compile_cuda(program.source, arch=arch, fmad=False).text

    def run(code: str, *options: str) -> np.ndarray:
        out = np.zeros(GRID * BLOCK * WORDS, np.uint32)
        device = Device(text, code=code, options=options)
        device.run("k", out, _inputs(), 3, grid=(GRID, 1, 1), block=(BLOCK, 1, 1))
        return out

    wanted = run("ptx")
    for level in levels:
        found = run("sass", level)
        if not np.array_equal(wanted, found):
            at = int(np.flatnonzero(wanted != found)[0])
            return Mismatch(arch, level, at // WORDS, at % WORDS, int(wanted[at]), int(found[at]))
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--keep-going", action="store_true")
    arguments = parser.parse_args()
    end, seed, bad = time.monotonic() + 60 * arguments.minutes, arguments.seed, 0
    used = os.times()
    while time.monotonic() < end:
        arch = ARCHS[seed % len(ARCHS)]
        program = Program(random.Random(seed), arch)
        try:
            found = mismatch(program, arch)
        except Exception as error:  # whatever it is, the program's number tells how to get it again
            found = f"{arch}: {type(error).__name__}: {error}"
        if found:
            bad += 1
            print(f"program {seed}: {found}", flush=True)
            if not arguments.keep_going:
                return 1
        seed += 1
    seconds = sum(os.times()[:4]) - sum(used[:4])
    print(
        f"programs {arguments.seed} to {seed - 1} at {len(LEVELS)} levels, {bad} with a difference, "
        f"{seconds / 60:.1f} minutes of processor time"
    )
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
