"""Checkpoints that a script makes within a launch: values, and timing against launches that begin there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.cuda import toolkit
from simt.errors import CheckpointError

TEMPLATE = """.version 7.0
.target sm_70
.address_size 64
.visible .entry work(.param .u64 x, .param .u32 first)
{{
  .reg .b32 %i, %t, %n, %v, %f, %k; .reg .b64 %x, %d;
  {before}
  ld.param.u64 %x, [x]; ld.param.u32 %f, [first];
  mov.u32 %i, %ctaid.x; add.u32 %i, %i, %f; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x;
  mad.lo.u32 %i, %i, %n, %t; mul.wide.u32 %d, %i, 4; add.u64 %x, %x, %d;
  ld.global.u32 %v, [%x]; mad.lo.u32 %v, %v, %v, %i; st.global.u32 [%x], %v;
  ret;
}}
"""
"""x[i] = x[i] * x[i] + i, after instructions that compute nothing for it, which a barrier keeps apart."""
CTAS, THREADS = 40, 128
BEFORE = 16
OPTIONS = {"sm.count": 4, "sm.front_end.instruction_cache.perfect": True}
"""Fewer CTAs at once than there are; instructions always at hand, because the references have fewer."""


def ptx(before: int = 0) -> str:
    """With this many instructions before those that matter."""
    moves = "\n".join(f"mov.u32 %k, {i};" for i in range(before - 1))
    return TEMPLATE.format(before=f"{moves} bar.sync 0;" if before else "")


def array_of(gpu: simt.GPU) -> Any:
    x = gpu.empty(CTAS * THREADS, np.uint32)
    gpu.memory.native.write(x.address, np.arange(x.size, dtype=np.uint32).tobytes())  # not through the L2
    return x


def counters(launch: Any) -> Any:
    """All that the Result has of it, but for what follows from the size of the grid alone."""
    found = launch.to_json(detail=True)
    found["counters"] = {k: v for k, v in found["counters"].items() if not k.startswith("launch__")}
    return {key: value for key, value in found.items() if key != "grid"}


EXPECTED = [(i * i + i) % 2**32 for i in range(CTAS * THREADS)]


@pytest.mark.parametrize(
    "point", [{}, {"cta": 9}, {"cta": 3, "instruction": 7, "ctas": 5}, {"instruction": 20}]
)
@pytest.mark.parametrize("functional", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_continued_launch_makes_the_same_values(
    point: dict[str, int], functional: bool, tmp_path: Path
) -> None:
    """In the script that made the checkpoint, and resumed from it, with and without timing, elsewhere."""
    gpu = simt.GPU("qv100", set=OPTIONS, functional=functional, code="ptx")
    module, x = gpu.load(ptx(BEFORE)), array_of(gpu)
    y = x.copy()
    with gpu.checkpoint_at(tmp_path / "one", {"x": x, "y": y, "module": module}, launch=2, **point):
        for array in (x, y):
            module.work[CTAS, THREADS](array, 0)
    assert x.tolist() == y.tolist() == EXPECTED
    for name, again_functional in (("qv100", True), ("qv100", False), ("h100", False)):
        again = simt.GPU.from_checkpoint(tmp_path / "one", name, functional=again_functional)
        arrays = [again.objects[n] for n in "xy"]
        assert arrays[0].tolist() == EXPECTED != arrays[1].tolist()
        if point:
            with pytest.raises(CheckpointError, match="launch 2, `work`, was interrupted"):
                again.objects["module"].work[1, 32](arrays[0], 0)
            launch = again.continue_launch()
        else:
            launch = again.objects["module"].work[CTAS, THREADS](arrays[1], 0)
        assert (launch is None) == again_functional and (launch is None or launch.id == 2)
        assert arrays[1].tolist() == EXPECTED
        with pytest.raises(CheckpointError, match="no launch to continue"):
            again.continue_launch()


def resumed(path: Path, source: str, **point: int) -> Any:
    gpu = simt.GPU("qv100", set=OPTIONS, functional=True, code="ptx")
    module, x = gpu.load(source), array_of(gpu)
    with gpu.checkpoint_at(path, {"x": x}, launch=1, **point):
        module.work[CTAS, THREADS](x, 0)
    again = simt.GPU.from_checkpoint(path)
    launch = again.continue_launch()
    assert again.objects["x"].tolist() == EXPECTED
    return launch


def reference(source: str, ctas: int, first: int) -> Any:
    gpu = simt.GPU("qv100", set=OPTIONS, code="ptx")
    module, x = gpu.load(source), array_of(gpu)
    return module.work[ctas, THREADS](x, first)


@pytest.mark.parametrize("cta", [1, 11, 39])
def test_the_rest_of_a_launch_takes_as_long_as_a_launch_of_it(cta: int, tmp_path: Path) -> None:
    """The reference is a launch of the remaining CTAs alone, which are told their distance from the first."""
    launch = resumed(tmp_path / "one", ptx(), cta=cta)
    assert counters(launch) == counters(reference(ptx(), CTAS - cta, cta))


def test_ctas_that_have_begun_take_as_long_as_ones_without_what_is_done(tmp_path: Path) -> None:
    """The reference is a kernel that lacks the instructions that were executed, whose results it ignores."""
    launch = resumed(tmp_path / "one", ptx(BEFORE), instruction=BEFORE, ctas=CTAS)
    expected = reference(ptx(), CTAS, 0)
    assert launch.cycles == expected.cycles and launch.l2 == expected.l2


@pytest.mark.skipif(not toolkit.toolkits(), reason="NVRTC's wheel is not installed")
@pytest.mark.parametrize("named", [True, False])
def test_a_template_in_a_stream_with_an_annotation(named: bool, tmp_path: Path) -> None:
    """named: the template's module is an object of the checkpoint, which keeps its instances."""
    gpu = simt.GPU("qv100", set=OPTIONS, functional=True, code="ptx")
    module = gpu.compile(
        "__device__ int n; template <class T> __global__ void add(T* x)"
        "{ atomicAdd(&n, 1); x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }"
    )
    x, stream = gpu.zeros(512), gpu.stream()
    objects = {"x": x, "module": module} if named else {"x": x}
    with gpu.checkpoint_at(tmp_path / "one", objects, launch=1, cta=3), gpu.annotate("addition"), stream:
        module["add<float>"][8, 64](x)
    again = simt.GPU.from_checkpoint(tmp_path / "one")
    assert again.objects["x"].tolist() == [1.0] * 192 + [0.0] * 320
    assert again.continue_launch() is None
    again.synchronize()
    (launch,) = again.launches
    assert (launch.annotation, launch.stream) == ("addition", stream.number)
    assert again.objects["x"].tolist() == [1.0] * 512
    if named:
        instance = again.objects["module"].instances["add<float>"]
        assert instance.variable("n", np.int32).item() == 512


def test_refusals(tmp_path: Path) -> None:
    gpu = simt.GPU("qv100", functional=True)
    module, x = gpu.load(ptx()), array_of(gpu)
    path = tmp_path / "no"
    for point, message in (
        ({"launch": 0}, "'launch=0, cta=0, instruction=0', expected launch=N"),
        ({"launch": 1, "ctas": 3}, "expected launch=N"),
        ({"launch": 1, "cta": 2}, "has 2 CTAs, so none is number 2"),
        ({"launch": 4}, "the block ended after 3 launches, before launch 4"),
        ({"launch": 2}, "3 launches have been made"),
    ):
        with pytest.raises(CheckpointError, match=message), gpu.checkpoint_at(path, **point):
            module.work[2, 32](x, 0)
        if "cta" in point:
            module.work[1, 32](x, 0)
            module.work[1, 32](x, 0)
        assert list(tmp_path.iterdir()) == []
    with gpu.checkpoint_at(path, launch=4):
        with (
            pytest.raises(CheckpointError, match="another checkpoint"),
            gpu.checkpoint_at(tmp_path / "other", launch=4),
        ):
            pass
        module.work[1, 32](x, 0)
    assert list(tmp_path.iterdir()) == [path]


def test_machine_code_is_continued_as_machine_code(tmp_path: Path) -> None:
    gpu = simt.GPU("a100", functional=True, code="sass")
    module, x = gpu.load(ptx()), array_of(gpu)
    with gpu.checkpoint_at(tmp_path / "one", {"x": x}, launch=1, cta=3, instruction=5):
        module.work[CTAS, THREADS](x, 0)
    again = simt.GPU.from_checkpoint(tmp_path / "one")
    again.continue_launch()
    assert again.code == "sass" and again.objects["x"].tolist() == EXPECTED
    for name, options, found in (("h100", {}, "machine code for sm_90a"), ("a100", {"code": "ptx"}, "PTX")):
        with pytest.raises(
            CheckpointError,
            match=f"one: within a launch of machine code for sm_80, and {name} executes {found} here",
        ):
            simt.GPU.from_checkpoint(tmp_path / "one", name, **options)
