"""The shared memory that the system has behind a CTA's own, of programs that ask where it is."""

from __future__ import annotations

import numpy as np
import pytest

from support.ptx import Device, ptx_only

TEXT = """
.shared .align 4 .b32 own[52];
.visible .entry k(.param .b64 out)
{{
  .reg .b32 %r<4>; .reg .b64 %a;
  ld.param.b64 %a, [out];
  mov.u32 %r1, %total_smem_size; mov.u32 %r2, %aggr_smem_size;
  mov.u32 %r3, own; st.shared.b32 [%r3], %r1;
  {asks}
  st.global.v2.b32 [%a], {{%r1, %r2}}; st.global.b32 [%a+8], %r3;
  ret;
}}"""


@ptx_only("the constants of machine code are in tests/sass/test_launch_constants.py")
@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        ("mov.u32 %r3, 0;", (208, 208, 0)),
        ("mov.u32 %r3, %reserved_smem_offset_begin;", (256, 1280, 256)),
        ("mov.u32 %r3, %reserved_smem_offset_end;", (256, 1280, 1280)),
    ],
)
def test_its_place_and_size(asks: str, expected: tuple[int, int, int]) -> None:
    out = np.zeros(4, np.uint32)
    Device(TEXT.format(asks=asks)).run("k", out)
    assert tuple(out[:3]) == expected
