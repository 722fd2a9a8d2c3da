"""Readable kernel names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.names import short_name

ANONYMOUS = "_GLOBAL__N__1f0cba6e_4_a_cu_12345678_1234567"


@pytest.mark.parametrize(
    ("mangled", "short"),
    [
        ("_Z4gemmPK6__halfS1_Pfi", "gemm"),
        ("_Z7stencilPKfPfi", "stencil"),
        ("_ZN7cutlass6KernelI4GemmEEvT_", "cutlass::Kernel"),
        (f"_ZN{len(ANONYMOUS)}{ANONYMOUS}15softmax_forwardEPf", "(anonymous)::softmax_forward"),
        ("_ZNK3foo3barEv", "foo::bar"),
        ("_Z12reduceKernelIfLi256EEvPT_", "reduceKernel"),
        ("vecadd", "vecadd"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("_Z99short", "_Z99short"),
        ("_ZSt4swap", "_ZSt4swap"),
        ("", ""),
    ],
)
def test_short_name(mangled: str, short: str) -> None:
    assert short_name(mangled) == short


@given(st.text(max_size=30))
def test_any_text_has_a_short_name(text: str) -> None:
    assert short_name("_Z" + text)
