"""Valid PTX programs by number, for fuzzing what is executed: nothing in them is undefined, so that every
run of one has the same values, timed or not.

    python tests/support/ptx_programs.py 20       # checks new programs for 20 minutes
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

import simt
from simt.cuda import PtxModule
from simt.options import Code

GRID, BLOCK = 3, 96
_GPUS = {"sm_75": "rtx2060", "sm_80": "a100", "sm_90": "h100", "sm_100": "b200", "sm_120": "rtx5090"}
_HEAD = """.version 8.3
.target sm_80
.address_size 64
.global .align 8 .u32 sums[16];
.const .align 4 .u32 table[8] = {1, 3, 0x7fffffff, -1, 1 << 20, 17, 0, 99};
.func (.reg .u32 r, .reg .pred q) helper(.reg .u32 a, .reg .u32 b, .reg .pred p) {
  .reg .u32 t;
  @p add.u32 t, a, b;
  @!p sub.u32 t, a, b;
  setp.gt.u32 q, t, b;
  @q bra DONE;
  xor.b32 t, t, 0x55;
DONE: mov.u32 r, t;
  ret;
}
"""
_ENTRY = """.visible .entry k{seed}(.param .u64 out, .param .u64 in) {{
  .reg .u32 %r<8>; .reg .u64 %d<6>; .reg .f32 %f<6>; .reg .f64 %e<4>; .reg .b16 %h<4>; .reg .pred %p<4>;
  .reg .v2 .u32 %v<2>; .reg .u32 %t, %lane, %n, %w<4>; .reg .u64 %out, %in, %own;
  .shared .align 8 .b8 tile[1536]; .local .align 8 .b8 spill[32];
  ld.param.u64 %out, [out]; ld.param.u64 %in, [in];
  mov.u32 %t, %tid.x; mov.u32 %lane, %laneid; mov.u32 %w0, %ctaid.x; mad.lo.u32 %n, %w0, 96, %t;
  mul.wide.u32 %own, %n, 64; add.u64 %out, %out, %own; add.u64 %in, %in, %own;
  mul.lo.u32 %w1, %t, 16; mov.u32 %w2, tile; add.u32 %w1, %w1, %w2;
"""


class Program:
    """The PTX text of the kernel with this number. calls: functions with predicates among their results, of
    which ptxas (12.9 and 13.0) makes wrong code.
    """

    def __init__(self, seed: int, *, calls: bool = True) -> None:
        self._random = random.Random(seed)
        self._calls = calls
        self._labels = 0
        lines = [f"  ld.global.u32 %r{k}, [%in+{4 * k}];" for k in range(8)]
        lines += [f"  ld.global.u64 %d{k}, [%in+{8 * k}];" for k in range(6)]
        lines += [f"  cvt.rn.f32.s32 %f{k}, %r{k};" for k in range(6)]
        lines += [f"  cvt.rn.f64.s32 %e{k}, %r{k + 2};" for k in range(4)]
        lines += [f"  cvt.u16.u32 %h{k}, %r{k};" for k in range(4)]
        lines += [f"  setp.lt.s32 %p{k}, %r{k}, %r{k + 1};" for k in range(4)]
        lines += [f"  mov.u32 %v{k}.{c}, %r{2 * k + (c == 'y')};" for k in range(2) for c in "xy"]
        lines += ["  st.shared.v2.u32 [%w1], %v0; st.shared.v2.u32 [%w1+8], {1, 2};"]
        lines += [f"  st.local.u64 [spill+{8 * k}], %d{k};" for k in range(4)]
        lines += self._statements(self._random.randint(6, 30), 0)
        self.text = _ENTRY.format(seed=seed) + "\n".join([*lines, *self._results()]) + "\n  ret;\n}\n"

    def _results(self) -> list[str]:
        lines = [f"  selp.u32 %w0, {1 << k}, 0, %p{k}; xor.b32 %r0, %r0, %w0;" for k in range(4)]
        lines += [f"  cvt.u32.u16 %w0, %h{k}; mad.lo.u32 %r1, %w0, {k + 7}, %r1;" for k in range(4)]
        lines += [f"  mov.b32 %w0, %f{k}; mad.lo.u32 %r2, %w0, {2 * k + 3}, %r2;" for k in range(6)]
        lines += [f"  mov.b64 %own, %e{k}; xor.b64 %d{k}, %d{k}, %own;" for k in range(4)]
        lines += ["  add.u32 %r3, %r3, %v0.x; xor.b32 %r3, %r3, %v1.y;"]
        lines += [f"  st.global.u32 [%out+{4 * k}], %r{k};" for k in range(4)]
        return [*lines, *(f"  st.global.u64 [%out+{16 + 8 * k}], %d{k};" for k in range(6))]

    def _statements(self, count: int, depth: int) -> list[str]:
        return [line for _ in range(count) for line in self._statement(depth)]

    def _statement(self, depth: int) -> list[str]:
        r = self._random
        kinds = [self._integer] * 5 + [self._floating] * 4 + [self._wide, self._carry, self._predicate]
        kinds += [self._memory] * 2 + [self._bits] * 2 + [self._half, self._vector, self._convert]
        if depth < 3:
            kinds += [lambda: self._branch(depth), lambda: self._loop(depth), lambda: self._call()]
        if depth == 0:
            kinds += [self._collective] * 2 + [self._barrier]
        return r.choice(kinds)()

    def _guard(self) -> str:
        return self._random.choice(["", "", "", f"@{self._p()} ", f"@!{self._p()} "])

    def _r(self) -> str:
        return f"%r{self._random.randrange(8)}"

    def _d(self) -> str:
        return f"%d{self._random.randrange(6)}"

    def _f(self) -> str:
        return f"%f{self._random.randrange(6)}"

    def _e(self) -> str:
        return f"%e{self._random.randrange(4)}"

    def _p(self) -> str:
        return f"%p{self._random.randrange(4)}"

    def _u(self) -> str:
        """A 32-bit operand to read."""
        constant = self._random.choice(["7", "-5", "0x80000000", "(1 << 5) | 3", "WARP_SZ", "0b101U"])
        return self._random.choice([self._r(), self._r(), self._r(), "%lane", "%v0.x", "%v1.y", constant])

    def _label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def _integer(self) -> list[str]:
        names = (
            "add.u32 sub.s32 mul.lo.u32 mul.hi.s32 min.u32 max.s32 and.b32 or.b32 xor.b32 div.u32 rem.s32 "
        )
        op = self._random.choice((names + "shl.b32 shr.u32 shr.s32 add.sat.s32 mul24.lo.s32").split())
        if self._random.random() < 0.3:
            op = self._random.choice(
                ["mad.lo.u32", "mad.hi.s32", "sad.u32", "dp4a.u32.u32", "shf.l.wrap.b32"]
            )
            return [f"  {self._guard()}{op} {self._r()}, {self._u()}, {self._u()}, {self._u()};"]
        return [f"  {self._guard()}{op} {self._r()}, {self._u()}, {self._u()};"]

    def _bits(self) -> list[str]:
        r, u = self._r, self._u
        return [
            self._random.choice(
                [
                    f"  {self._guard()}lop3.b32 {r()}, {u()}, {u()}, {u()}, {self._random.randrange(256)};",
                    f"  {self._guard()}prmt.b32 {r()}, {u()}, {u()}, {self._random.randrange(65536)};",
                    f"  bfe.{self._random.choice(['u32', 's32'])} {r()}, {r()}, "
                    f"{self._random.randrange(40)}, 9;",
                    f"  bfi.b32 {r()}, {u()}, {u()}, {self._random.randrange(32)}, 5;",
                    f"  popc.b32 {r()}, {u()};",
                    f"  clz.b32 {r()}, {u()};",
                    f"  brev.b32 {r()}, {u()};",
                    f"  not.b32 {r()}, {u()};",
                ]
            )
        ]

    def _wide(self) -> list[str]:
        op = self._random.choice(
            ["add.u64", "sub.s64", "mul.lo.u64", "and.b64", "xor.b64", "min.s64", "div.u64"]
        )
        if self._random.random() < 0.4:
            return [
                f"  {self._guard()}mad.wide.{self._random.choice('us')}32 {self._d()}, {self._u()}, "
                f"9, {self._d()};"
            ]
        return [f"  {self._guard()}{op} {self._d()}, {self._d()}, {self._d()};"]

    def _carry(self) -> list[str]:
        names = [self._random.choice(["add.cc", "sub.cc"])]
        names += self._random.choices(
            ["addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc"], k=self._random.randint(0, 2)
        )
        names.append(self._random.choice(["addc", "subc"]))
        wide = self._random.random() < 0.3
        source, type_ = (self._d, "u64") if wide else (self._r, "u32")
        lines = []
        for name in names:
            operands = [source() for _ in range(4 if name.startswith("mad") else 3)]
            lines.append(f"  {name}.{type_} {', '.join(operands)};")
        return lines

    def _floating(self) -> list[str]:
        source, type_ = self._random.choice([(self._f, "f32"), (self._f, "f32"), (self._e, "f64")])
        op = self._random.choice(
            ["mul", "mul", "add", "sub", "add.rn", "fma.rn", "neg", "mov", "min", "abs", "div.rn"]
        )
        count = {"fma.rn": 3, "neg": 1, "mov": 1, "abs": 1}.get(op, 2)
        if type_ == "f32" and op in ("mul", "add", "sub", "fma.rn"):
            op += self._random.choice(["", "", ".ftz", ".sat"])
        return [f"  {self._guard()}{op}.{type_} {', '.join(source() for _ in range(count + 1))};"]

    def _half(self) -> list[str]:
        h = [f"%h{self._random.randrange(4)}" for _ in range(3)]
        op = self._random.choice(["mul.f16", "add.f16", "sub.f16", "add.u16", "mul.lo.s16", "xor.b16"])
        return [f"  {self._guard()}{op} {', '.join(h)};"]

    def _convert(self) -> list[str]:
        return [
            self._random.choice(
                [
                    f"  cvt.rzi.s32.f32 {self._r()}, {self._f()};",
                    f"  cvt.rn.f32.u32 {self._f()}, {self._r()};",
                    f"  cvt.rn.f32.f64 {self._f()}, {self._e()};",
                    f"  cvt.f64.f32 {self._e()}, {self._f()};",
                    f"  cvt.u64.u32 {self._d()}, {self._r()};",
                    f"  cvt.s32.s8 {self._r()}, {self._r()};",
                    f"  cvt.u32.u64 {self._r()}, {self._d()};",
                ]
            )
        ]

    def _predicate(self) -> list[str]:
        comparison = self._random.choice(["lt.s32", "ge.u32", "eq.s32", "ne.u32", "gt.s32"])
        return self._random.choice(
            [
                [f"  setp.{comparison} {self._p()}, {self._r()}, {self._u()};"],
                [f"  setp.lt.f32 {self._p()}, {self._f()}, {self._f()};"],
                [f"  setp.{comparison.replace('.', '.and.')} {self._p()}, {self._r()}, 3, !{self._p()};"],
                [f"  xor.pred {self._p()}, {self._p()}, {self._p()};"],
                [f"  selp.u32 {self._r()}, {self._u()}, {self._u()}, {self._p()};"],
                [f"  selp.f32 {self._f()}, {self._f()}, {self._f()}, {self._p()};"],
            ]
        )

    def _memory(self) -> list[str]:
        offset = 4 * self._random.randrange(4)
        index = f"  and.b32 %w0, {self._r()}, 7; mul.lo.u32 %w0, %w0, 4; cvt.u64.u32 %own, %w0;"
        return self._random.choice(
            [
                [f"  {self._guard()}st.shared.u32 [%w1+{offset}], {self._u()};"],
                [f"  ld.shared.u32 {self._r()}, [%w1+{offset}];"],
                [
                    f"  cvt.u64.u32 %own, %w1; cvta.shared.u64 %own, %own; ld.u32 {self._r()}, "
                    f"[%own+{offset}];"
                ],
                [f"  {self._guard()}st.local.u32 [spill+{2 * offset}], {self._r()};"],
                [
                    f"  ld.local.u64 {self._d()}, [spill+{8 * (offset // 8)}];",
                    f"  ld.u32 {self._r()}, [spill+{offset}];",
                ],
                [f"  ld.global.nc.u32 {self._r()}, [%in+{offset}];"],
                [f"  ld.global.v2.u32 %v{self._random.randrange(2)}, [%in+{8 * self._random.randrange(4)}];"],
                [index, "  mov.u64 %out, %out;", f"  ld.const.u32 {self._r()}, [table+{offset}];"],
                [f"  {self._guard()}red.global.add.u32 [sums+{offset}], {self._u()};"],
                [f"  ld.global.s8 {self._r()}, [%in+{self._random.randrange(32)}];"],
            ]
        )

    def _vector(self) -> list[str]:
        a, b = self._random.randrange(2), self._random.randrange(2)
        return self._random.choice(
            [
                [f"  mov.v2.u32 %v{a}, {{%v{b}.y, {self._r()}}};"],
                [f"  mov.b64 {self._d()}, %v{a};"],
                [f"  mov.b64 %v{a}, {self._d()};"],
                [f"  mov.u32 %v{a}.x, {self._u()};"],
                [f"  st.shared.v2.u32 [%w1+{8 * b}], %v{a};"],
            ]
        )

    def _branch(self, depth: int) -> list[str]:
        other, end = self._label(), self._label()
        return [
            f"  @{self._random.choice(['', '!'])}{self._p()} bra {other};",
            *self._statements(self._random.randint(1, 4), depth + 1),
            f"  bra {end};",
            f"{other}:",
            *self._statements(self._random.randint(0, 4), depth + 1),
            f"{end}:",
        ]

    def _loop(self, depth: int) -> list[str]:
        top = self._label()
        counter = f"%c{self._labels}"
        bound = self._random.choice(["3", f"%b{self._labels}"])
        head = [f"  {{ .reg .u32 {counter}, %b{self._labels}; .reg .pred %q;", f"  mov.u32 {counter}, 0;"]
        head += [f"  and.b32 %b{self._labels}, {self._r()}, 3;", f"{top}:"]
        body = self._statements(self._random.randint(1, 4), depth + 1)
        return [
            *head,
            *body,
            f"  add.u32 {counter}, {counter}, 1; setp.lt.u32 %q, {counter}, {bound};",
            f"  @%q bra {top}; }}",
        ]

    def _call(self) -> list[str]:
        if not self._calls:
            return [f"  xor.b32 {self._r()}, {self._r()}, {self._r()};"]
        return [f"  call ({self._r()}, {self._p()}), helper, ({self._r()}, {self._r()}, {self._p()});"]

    def _collective(self) -> list[str]:
        mode = self._random.choice(["up", "down", "bfly", "idx"])
        clamp = 0 if mode == "up" else 31
        return self._random.choice(
            [
                [
                    f"  shfl.sync.{mode}.b32 {self._r()}|{self._p()}, {self._r()}, "
                    f"{self._random.randrange(32)}, {clamp}, -1;"
                ],
                [f"  vote.sync.ballot.b32 {self._r()}, {self._p()}, -1;"],
                [f"  vote.sync.any.pred {self._p()}, {self._p()}, -1;"],
                [f"  redux.sync.add.u32 {self._r()}, {self._r()}, -1;"],
                [f"  match.any.sync.b32 {self._r()}, {self._r()}, -1;"],
            ]
        )

    def _barrier(self) -> list[str]:
        """Every thread writes its own words; after a barrier it may read its neighbour's."""
        return [
            "  bar.sync 0;",
            "  xor.b32 %w0, %t, 1; mul.lo.u32 %w0, %w0, 16; add.u32 %w0, %w0, %w2;",
            f"  ld.shared.u32 {self._r()}, [%w0+{4 * self._random.randrange(4)}];",
            "  bar.sync 0;",
        ]


@lru_cache(maxsize=4)
def _module(seeds: Sequence[int], calls: bool) -> PtxModule:
    kernels = [Program(seed, calls=calls).text for seed in seeds]
    return PtxModule.from_text(_HEAD + "".join(kernels), "programs.ptx")


def values(
    seed: int,
    functional: bool,
    threads: int = 1,
    *,
    code: Code = "ptx",
    arch: str = "sm_80",
    calls: bool = True,
    among: Sequence[int] = (),
) -> bytes:
    """The memory contents left by the program with this number. among: numbers of all kernels of its module,
    which nvdisasm, that needs a third of a second to start, decodes in one call.
    """
    name = _GPUS[arch]
    few = {"sm.count": 4}
    gpu = simt.GPU(name, functional=functional, threads=threads, set=few, memory=1 << 26, code=code)
    module = gpu.load(_module(among or (seed,), calls))
    inputs = np.random.default_rng(seed).integers(0, 2**32, GRID * BLOCK * 16, dtype=np.uint32)
    out = np.zeros(GRID * BLOCK * 16, np.uint32)
    module[f"k{seed}"][GRID, BLOCK](out, inputs)
    return out.tobytes() + module.variable("sums", np.uint32).numpy().tobytes()


def check(seed: int) -> None:
    """Raises AssertionError, or the program's exception, if its values vary between runs."""
    expected = values(seed, functional=True)
    assert values(seed, functional=True, threads=2) == expected, f"program {seed}: two threads"
    assert values(seed, functional=False) == expected, f"program {seed}: timed"


if __name__ == "__main__":
    end = time.monotonic() + 60 * float(sys.argv[1])
    seed = first = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 40)
    while time.monotonic() < end:
        if (seed - first) % 100 == 0:
            print(seed, flush=True)
        check(seed)
        seed += 1
    print(f"{seed - first} programs")
