"""Readable kernel names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simt.names import kernel_labels, named_by, names_of, short_name

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
        ("_ZSt4swap", "std::swap"),
        ("_ZN7cutlass6Kern", "_ZN7cutlass6Kern"),  # cut off
        ("_Z1fIiEDTcl1gcvT__EEEv", "f"),  # decltype (g((int)())) f<int>()
        ("_ZN1AIXgtLi3ELi2EEE1fEPFviE", "A::f"),  # A<(3)>(2)>::f(void (*)(int))
        ("", ""),
    ],
)
def test_short_name(mangled: str, short: str) -> None:
    assert short_name(mangled) == short


def test_names_of_a_kernel() -> None:
    assert names_of("_ZN1a1fIiLi3EEEvPT_i") == (
        "_ZN1a1fIiLi3EEEvPT_i",
        "a::f<int, 3>(int*, int)",
        "a::f<int, 3>",
        "a::f",
        "f",
    )
    assert names_of("_ZN1AIXgtLi3ELi2EEE1fEPFviE")[2:] == ("A::f", "A::f", "f")
    assert set(names_of("gemm")) == {"gemm"}


def test_the_most_specific_name_counts() -> None:
    """`f` is that of the global namespace, where there is one; otherwise each one."""
    kernels = ["_ZN1a1fEv", "_Z1fv", "_ZN1b1fEv", "_Z1gIiEvT_", "_Z1gIfEvT_"]
    assert named_by("f", kernels) == ["_Z1fv"]
    assert named_by("f", [kernels[0], kernels[2]]) == ["_ZN1a1fEv", "_ZN1b1fEv"]
    assert named_by("g", kernels) == kernels[3:]
    assert named_by("g<int>", kernels) == [kernels[3]]
    assert named_by("h", kernels) == []


@pytest.mark.slow
@given(st.text(max_size=30))
def test_any_text_has_a_short_name(text: str) -> None:
    assert short_name("_Z" + text)


def test_kernels_that_look_alike_are_told_apart() -> None:
    gemm = "void cutlass::Kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::Shape<128, {}, 32> > >(Params)"
    labels = {
        "_Z12reduceKernelIfLi256EEvPT_": "reduceKernel<float, 256>",
        "_Z12reduceKernelIfLi512EEvPT_": "reduceKernel<float, 512>",
        "_Z1fi": "f(int)",
        "_Z1ff": "f(float)",
        "vecadd": "vecadd",
    }
    assert kernel_labels(labels, 32) == labels
    only = kernel_labels([gemm.format(64), gemm.format(32)], 32)
    assert list(only.values()) == ["cutlass::Kernel<…64…>", "cutlass::Kernel<…32…>"]
    assert kernel_labels(["_Z12reduceKernelIfLi256EEvPT_"]) == {
        "_Z12reduceKernelIfLi256EEvPT_": "reduceKernel"
    }


@pytest.mark.slow
@given(st.lists(st.text(max_size=30) | st.text("ab<>()_ZIi1", max_size=40)), st.integers(20, 60))
def test_labels_are_short_and_different(names: list[str], width: int) -> None:
    labels = kernel_labels(names, width)
    assert labels.keys() == set(names)
    assert len(set(labels.values())) == len(set(names))
    assert all(len(label) <= width for label in labels.values())
