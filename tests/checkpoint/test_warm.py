"""What a checkpoint keeps of the L2: the resumed launches find what the uninterrupted ones found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simt
from simt.errors import CheckpointError

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry shift(.param .u64 from, .param .u64 to, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %i, %t, %n, %v; .reg .b64 %from, %to, %d;
  ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;
  setp.ge.u32 %p, %i, %n; @%p bra DONE;
  mul.wide.u32 %d, %i, 4; add.u64 %from, %from, %d; add.u64 %to, %to, %d;
  ld.global.u32 %v, [%from+64]; add.u32 %v, %v, 1; st.global.u32 [%to], %v;
DONE:
  ret;
}
"""
N = 60_000
OPTIONS = {"sm.count": 8, "sm.front_end.instruction_cache.perfect": True}
"""Few SMs; no instructions in the L2, for their own caches begin empty."""


@simt.policy.replacement
def any_way(evictable, last_access, allocated):  # type: ignore[no-untyped-def]
    for way in range(len(evictable)):
        if evictable[way]:
            return way
    return -1


def program(gpu: simt.GPU) -> tuple[Any, Any, Any]:
    return gpu.load(PTX), gpu.array(np.arange(N + 16, dtype=np.uint32)), gpu.zeros(N + 16, np.uint32)


def step(module: Any, x: Any, y: Any) -> Any:
    return module.shift[-(-N // 256), 256](x, y, N)


@pytest.mark.parametrize("name", ["qv100", pytest.param("h100", marks=pytest.mark.slow)])
def test_a_resumed_launch_finds_what_the_uninterrupted_one_found(name: str, tmp_path: Path) -> None:
    """Every outcome of every kind of access; modified lines and copies between partitions included."""
    gpu = simt.GPU(name, set=OPTIONS)
    module, x, y = program(gpu)
    step(module, x, y)
    objects = {"x": x, "y": y, "module": module}
    for which in ("warm", "cold"):
        gpu.checkpoint(tmp_path / which, objects, warm=which == "warm")
    expected = step(module, y, x)

    def resumed(which: str, **options: Any) -> Any:
        again = simt.GPU.from_checkpoint(tmp_path / which, **options)
        launch = step(*(again.objects[name] for name in ("module", "y", "x")))
        assert again.objects["x"].tolist() == x.tolist() and launch.id == expected.id
        return launch

    warm, cold = resumed("warm"), resumed("cold")
    assert warm.l2 == expected.l2 != cold.l2
    assert abs(warm.cycles - expected.cycles) < abs(cold.cycles - expected.cycles) / 4
    assert resumed("warm").to_json(detail=True) == warm.to_json(detail=True)
    assert resumed("warm", warm=False).to_json(detail=True) == cold.to_json(detail=True)
    simt.GPU.from_checkpoint(tmp_path / "warm").checkpoint(tmp_path / "copy", warm=True)
    assert (tmp_path / "copy" / "l2.zst").read_bytes() == (tmp_path / "warm" / "l2.zst").read_bytes()


def test_launches_that_a_plan_leaves_out_are_in_the_l2(tmp_path: Path) -> None:
    """The third launch writes what the resumed one reads."""

    def resumed(plan: set[int]) -> Any:
        gpu = simt.GPU("qv100", set=OPTIONS, plan=plan)
        module, x, y = program(gpu)
        z = gpu.zeros(N + 16, np.uint32)
        step(module, x, y)
        step(module, x, y)
        step(module, y, z)
        path = tmp_path / "-".join(map(str, plan))
        gpu.checkpoint(path, {"module": module, "from": z, "to": x}, warm=True)
        again = simt.GPU.from_checkpoint(path)
        return step(*(again.objects[name] for name in ("module", "from", "to"))).l2

    assert resumed({2}) == resumed({2, 3})
    gpu = simt.GPU("qv100", set=OPTIONS, plan={2})
    step(*program(gpu))
    with pytest.raises(CheckpointError, match="no launch before the checkpoint was timed"):
        gpu.checkpoint(tmp_path / "no", warm=True)


def test_refusals(tmp_path: Path) -> None:
    functional = simt.GPU("qv100", functional=True)
    with pytest.raises(CheckpointError, match="this GPU computes values only"):
        functional.checkpoint(tmp_path / "no", warm=True)
    own = simt.GPU("qv100", set=OPTIONS, policies={"l2_replacement": any_way})
    with pytest.raises(CheckpointError, match=r"l2\.slice\.replacement is a policy of your own"):
        own.checkpoint(tmp_path / "no", warm=True)
    gpu = simt.GPU("qv100", set=OPTIONS)
    step(*program(gpu))
    gpu.checkpoint(tmp_path / "warm", warm=True)
    for options, message in (
        ({"gpu": "h100"}, r"does not fit h100: l2\.slice\.\w+ is .*, was .*; resume with warm=False"),
        ({"set": {"l2.slice.ways": 8}}, r"l2\.slice\.ways is 8, was 24"),
        ({"set": {"address_map.hash": "linear"}}, r"address_map\.hash is 'linear'"),
    ):
        with pytest.raises(CheckpointError, match=message):
            simt.GPU.from_checkpoint(tmp_path / "warm", **options)
    simt.GPU.from_checkpoint(tmp_path / "warm", "h100", warm=False)
    simt.GPU.from_checkpoint(tmp_path / "warm", "h100", functional=True)  # has no L2
