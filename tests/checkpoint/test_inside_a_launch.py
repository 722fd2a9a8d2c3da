"""Launches interrupted within: resumed values equal those of a whole launch, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simt import GPU
from simt.errors import LaunchError
from simt.gpu.arguments import Arguments
from simt.gpu.module import Launcher

PTX = """.version 7.0
.target sm_70
.address_size 64
.func (.reg .u32 %out) twice(.reg .u32 %in, .reg .u32 %depth)
{
  .reg .pred %p; .reg .b32 %half, %next;
  add.u32 %out, %in, %in;
  setp.eq.u32 %p, %depth, 0; @%p ret;
  sub.u32 %next, %depth, 1;
  call (%half), twice, (%in, %next);
  add.u32 %out, %out, %half;
  ret;
}
.visible .entry mixed(.param .u64 x, .param .u32 rounds)
{
  .shared .align 4 .b8 tile[4096]; .local .align 4 .b8 own[64];
  .reg .pred %p, %q; .reg .b32 %t, %c, %n, %i, %v, %k, %r, %a, %b, %s; .reg .b64 %x, %d;
  ld.param.u64 %x, [x]; ld.param.u32 %r, [rounds];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %c, %n, %t;
  mul.wide.u32 %d, %i, 4; add.u64 %x, %x, %d; ld.global.u32 %v, [%x];
  mov.u32 %s, tile; shl.b32 %a, %t, 2; add.u32 %a, %a, %s;
  xor.b32 %b, %t, 31; shl.b32 %b, %b, 2; add.u32 %b, %b, %s;
  mov.u32 %k, 0;
ROUND:
  st.shared.u32 [%a], %v; bar.sync 0;
  ld.shared.u32 %v, [%b]; mad.lo.u32 %v, %v, 1664525, %i; bar.sync 0;
  and.b32 %n, %k, 15; shl.b32 %n, %n, 2; cvt.u64.u32 %d, %n;
  { .reg .b64 %o; mov.u64 %o, own; add.u64 %o, %o, %d; st.local.u32 [%o], %v; }
  and.b32 %n, %v, 3; setp.eq.u32 %p, %n, 0; @!%p bra OTHER;
  call (%v), twice, (%v, %n); bra MEET;
OTHER:
  setp.eq.u32 %q, %n, 1; @%q bra ODD;
  add.u32 %v, %v, 7; bra MEET;
ODD:
  and.b32 %n, %t, 7; call (%v), twice, (%v, %n);
MEET:
  setp.ge.u32 %p, %t, 64; @%p bra SKIP;
  bar.sync 1, 64; add.u32 %v, %v, 1;
SKIP:
  bar.red.popc.u32 %n, 2, 1; add.u32 %v, %v, %n;
  shfl.sync.bfly.b32 %n, %v, 5, 31, -1; xor.b32 %v, %v, %n;
  { .reg .b64 %o; mov.u64 %o, own; ld.local.u32 %n, [%o]; add.u32 %v, %v, %n; }
  add.u32 %k, %k, 1; setp.lt.u32 %p, %k, %r; @%p bra ROUND;
  st.global.u32 [%x], %v;
  and.b32 %n, %t, 1; setp.eq.u32 %p, %n, 0; @%p exit;
  bar.sync 0; add.u32 %v, %v, 1; st.global.u32 [%x], %v;
  ret;
}
"""
"""Barriers of whole CTAs and of parts, divergence, recursion, shared and local memory, threads that exit."""


def launcher_of(gpu: GPU, ctas: int, threads: int, rounds: int) -> tuple[Any, Launcher, bytes]:
    kernel = gpu.load(PTX).mixed
    x = gpu.array(np.arange(ctas * threads, dtype=np.uint32))
    return x, kernel[ctas, threads], Arguments(gpu, "mixed", kernel.parameters, (x, rounds)).block


def whole(ctas: int, threads: int, rounds: int) -> list[int]:
    gpu = GPU("qv100", functional=True)
    x, launcher, parameters = launcher_of(gpu, ctas, threads, rounds)
    gpu.run_values(launcher, parameters, 1)
    found: list[int] = x.tolist()
    return found


def continued(launcher: Launcher, first: int, state: bytes) -> Launcher:
    return Launcher(
        launcher.kernel,
        launcher.grid,
        launcher.block,
        launcher.shared,
        None,
        launcher.cluster,
        False,
        first,
        state,
    )


@pytest.mark.slow
@given(
    st.integers(1, 6),
    st.sampled_from([64, 96, 160]),
    st.integers(1, 5),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 400),
    st.booleans(),
)
@example(4, 96, 3, 1, 2, 1, True)
@settings(deadline=None, max_examples=120)
def test_interrupted_launches_equal_whole_ones(
    ctas: int, threads: int, rounds: int, cta: int, partial: int, instructions: int, timed: bool
) -> None:
    cta = min(cta, ctas)
    partial = min(partial, ctas - cta)
    first = GPU("qv100", functional=True)
    x, launcher, parameters = launcher_of(first, ctas, threads, rounds)
    state = first.run_values(launcher, parameters, 1, until=(cta, partial, instructions))
    second = GPU("qv100", functional=not timed)  # in another process, memory would be restored
    y, again, parameters = launcher_of(second, ctas, threads, rounds)
    assert y.address == x.address
    second.memory.native.write(y.address, first.memory.read(x.address, x.nbytes))
    again = continued(again, cta, state)
    if timed and cta < ctas:
        launch = again(y, rounds)
        assert launch is not None and launch.cycles > 0
    else:
        second.run_values(again, parameters, 1)
    assert y.tolist() == whole(ctas, threads, rounds)


def test_a_state_is_that_of_its_launch() -> None:
    gpu = GPU("qv100", functional=True)
    _, launcher, parameters = launcher_of(gpu, 4, 96, 3)
    state = gpu.run_values(launcher, parameters, 1, until=(1, 2, 50))
    other, *_ = launcher_of(gpu, 5, 96, 3)[1:]
    with pytest.raises(LaunchError, match="of another program or launch"):
        gpu.run_values(continued(other, 1, state), parameters, 1)
    for bad in (state[:-1], state + b"\0", state[:10], state[:104] + b"\xff" * 60 + state[164:]):
        with pytest.raises(LaunchError, match=r"malformed|another"):
            gpu.run_values(continued(launcher, 1, bad), parameters, 1)
