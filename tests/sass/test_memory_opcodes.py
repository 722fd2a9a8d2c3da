"""Machine code that accesses memory: the same results as PTX, where no test of PTX covers the instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simt import _engine
from simt.cuda import machine_code
from simt.cuda.ptx_module import PtxModule
from simt.sass import Cubin
from simt.sass.program import load_program
from support.ptx import HEADER

COPIES = """
.visible .entry k(.param .b64 in, .param .b64 out, .param .b32 n)
{
  .reg .b64 %a, %o, %q, %r; .reg .b32 %x, %y, %n, %t; .reg .pred %p;
  .shared .align 16 .b8 s[4096];
  ld.param.b64 %a, [in]; ld.param.b64 %o, [out]; ld.param.b32 %n, [n];
  mov.u32 %t, %tid.x; mov.b32 %y, s; mad.lo.u32 %x, %t, 16, %y;
  mad.wide.u32 %a, %t, 16, %a; mad.wide.u32 %o, %t, 16, %o;
  setp.gt.u32 %p, %t, %n; and.b32 %y, %t, 7;
  cp.async.cg.shared.global [%x], [%a], 16, %p;
  cp.async.ca.shared.global [%x+2048], [%a+8], 8, %y;
  cp.async.commit_group; cp.async.wait_all; bar.sync 0;
  ld.shared.b64 %q, [%x]; ld.shared.b64 %r, [%x+2048];
  st.global.b64 [%o], %q; st.global.b64 [%o+8], %r;
  ret;
}
"""
WINDOWS = """
.visible .entry k(.param .b64 in, .param .b64 out, .param .b32 n)
{
  .reg .b64 %a, %o, %s, %v; .reg .b32 %t, %n, %w; .reg .f32 %f; .reg .pred %p;
  .shared .align 16 .b8 s[512];
  ld.param.b64 %a, [in]; ld.param.b64 %o, [out]; ld.param.b32 %n, [n];
  mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 16, %a; mad.wide.u32 %o, %t, 16, %o;
  mov.b32 %w, s; mad.lo.u32 %w, %t, 16, %w;
  mov.b64 %v, 5; st.shared.b64 [%w], %v; st.shared.b64 [%w+8], %v;
  mov.u64 %s, s; cvta.shared.u64 %s, %s; mad.wide.u32 %s, %t, 16, %s;
  setp.lt.u32 %p, %t, %n; selp.b64 %a, %a, %s, %p;
  cvt.u64.u32 %v, %t;
  atom.max.u64 %v, [%a], %v; st.global.b64 [%o], %v;
  ld.b64 %v, [%a]; st.global.b64 [%o+8], %v;
  ret;
}
"""


def run(text: str, target: str, code: str, n: int) -> np.ndarray:
    """What kernel `k` makes of some numbers."""
    memory = _engine.functional.DeviceMemory(1 << 26)
    text = HEADER.format(target=target) + text
    if code == "ptx":
        module: Any = _engine.functional.load(text, "test.ptx", memory)
    else:
        program = PtxModule.from_text(text, "test.ptx")
        cubin = Cubin.parse(machine_code(program, program.arch), "test.ptx")
        module = load_program(cubin, memory, {})
    data = np.random.default_rng(3).integers(0, 40, 64).astype(np.uint64)
    source, result = memory.allocate(512, "in"), memory.allocate(512, "out")
    memory.write(source, data.tobytes())
    facts = module.kernels["k"]
    arguments = bytearray(facts["parameter_bytes"])
    for (offset, size, *_), value in zip(facts["parameters"], (source, result, n), strict=True):
        arguments[offset : offset + size] = int(value).to_bytes(size, "little")
    launch = _engine.functional.Launch(module, facts["index"], (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, {})
    launch.run(bytes(arguments), 1, 1, lambda text: None)
    return np.frombuffer(memory.read(result, 512), np.uint64)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["80", "90"])
def test_copies_that_fill_with_zeros(target: str) -> None:
    assert run(COPIES, target, "sass", 20).tolist() == run(COPIES, target, "ptx", 20).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["75", "80", "90"])
def test_a_warp_whose_lanes_address_different_windows(target: str) -> None:
    assert run(WINDOWS, target, "sass", 11).tolist() == run(WINDOWS, target, "ptx", 11).tolist()
