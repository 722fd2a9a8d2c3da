"""`launches` and `capture_range` choose what is timed; the rest is executed and warms the L2."""

import numpy as np
import pytest

import simt
from simt.errors import LaunchError, SelectionError

PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry {name}(.param .u64 p) {{
  .reg .b64 %a<3>; .reg .b32 %r<3>;
  ld.param.u64 %a0, [p];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %a1, %r0, 4;
  add.u64 %a0, %a0, %a1;
  ld.global.u32 %r1, [%a0];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%a0], %r1;
  exit;
}}
"""


def launched(*names: str, inside: tuple[int, ...] = (), **options):
    """The GPU after launches of these kernels in order, on the same memory; those in `inside` in a range."""
    gpu = simt.GPU("qv100", **options)
    kernels = {name: gpu.load(PTX.format(name=name))[name] for name in dict.fromkeys(names)}
    data = gpu.zeros(32, np.uint32)
    for number, name in enumerate(names, 1):
        if number in inside:
            with gpu.range("decode"):
                kernels[name][1, 32](data)
        else:
            kernels[name][1, 32](data)
    assert (data.get() == len(names)).all()
    return gpu


@pytest.mark.parametrize("options", [{}, {"plan": {3}}, {"launches": "3"}])
@pytest.mark.parametrize("flushed", [False, True])
def test_memsets_between_launches_that_are_left_out_empty_the_l2(
    flushed: bool, options: dict[str, object]
) -> None:
    """A memset of more than the L2 holds, between launches 1 and 2 of 3 on the same memory, or before 3."""
    gpu = simt.GPU("qv100", **options)
    kernel = gpu.load(PTX.format(name="k"))["k"]
    data, large = gpu.zeros(32, np.uint32), gpu.empty(32 << 20, np.uint8)
    kernel[1, 32](data)
    large.fill(0)
    kernel[1, 32](data)
    if flushed:
        large.fill(0)
    kernel[1, 32](data)
    found = gpu.result().launches[-1]
    assert found.id == 3
    reads = "lts__t_sectors_srcunit_tex_op_read_lookup_"
    sectors = (found.counters[f"{reads}hit.sum"], found.counters[f"{reads}miss.sum"])
    assert sectors == ((0, 4) if flushed else (4, 0))


@pytest.mark.parametrize(
    ("selection", "timed"),
    [("2-3", [2, 3]), ("name~gem", [2, 4]), ("3,name~gemm", [2, 3, 4]), ("/^b/", [3]), ("*", [1, 2, 3, 4])],
)
def test_selected_launches_are_timed(selection: str, timed: list[int]) -> None:
    result = launched("a", "my_gemm", "b", "my_gemm", launches=selection).result()
    assert [launch.id for launch in result.launches] == timed
    assert not result.warnings
    assert f"launches({selection})" in result.provenance.method


def test_what_is_left_out_warms_the_l2() -> None:
    cold = launched("a", launches="1").result().launches[0]
    warm = launched("a", "a", launches="2").result().launches[0]
    assert warm.cycles < cold.cycles


def test_ranges_and_both() -> None:
    names = ("a", "b", "a", "b")
    within = launched(*names, inside=(2, 3), capture_range="decode").result()
    assert [launch.id for launch in within.launches] == [2, 3]
    both = launched(*names, inside=(2, 3), capture_range="decode", launches="b").result()
    assert [launch.id for launch in both.launches] == [2]


def test_ranges_nest() -> None:
    gpu = simt.GPU("qv100", capture_range="x")
    kernel = gpu.load(PTX.format(name="k"))["k"]
    data = gpu.zeros(32, np.uint32)
    with gpu.range("x"):
        with gpu.range("x"):
            pass
        kernel[1, 32](data)
    gpu.close_range("x")
    kernel[1, 32](data)
    assert [launch.id for launch in gpu.result().launches] == [1]


def test_what_matches_nothing_is_a_warning() -> None:
    part = launched("a", "b", launches="1,7-9").result()
    assert part.warnings == ("launches: '7-9' matches none of the program's 2 launches",)
    none = launched("a", capture_range="decode").result()
    assert none.warnings == ("range 'decode': none of the program's 1 launches is within it",)


@pytest.mark.parametrize("wrong", ["5-3", "", "name~", "/(/"])
def test_malformed_selections(wrong: str) -> None:
    with pytest.raises(SelectionError, match=r"^launches: "):
        simt.GPU("qv100", launches=wrong)


@pytest.mark.parametrize("wrong", ["name~", "/(/"])
def test_malformed_ranges(wrong: str) -> None:
    with pytest.raises(SelectionError, match=r"^capture_range: "):
        simt.GPU("qv100", capture_range=wrong)


@pytest.mark.parametrize("pattern", ["dec*", "name~code", "/^d.*e$/", "nvtx"])
def test_patterns_of_ranges(pattern: str) -> None:
    result = launched("a", "b", "a", inside=(2,), capture_range=pattern).result()
    assert [launch.id for launch in result.launches] == [2]


def test_what_does_not_go_together() -> None:
    with pytest.raises(SelectionError, match="plan"):
        simt.GPU("qv100", plan=[1], launches="1")
    with pytest.raises(SelectionError, match="empty"):
        simt.GPU("qv100", capture_range=" ")
    with pytest.raises(LaunchError, match="functional"):
        simt.GPU("qv100", functional=True, launches="1")
