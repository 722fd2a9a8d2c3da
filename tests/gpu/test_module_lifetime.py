"""Modules that are dropped while others, and queued launches, are in use."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import simt


def writes(value: int) -> str:
    return f""".version 7.0
.target sm_70
.address_size 64
.global .u32 v = {value};
.visible .entry k(.param .u64 p) {{ .reg .b64 a; .reg .b32 x; ld.param.u64 a, [p];
  ld.global.u32 x, [v]; st.global.u32 [a], x; ret; }}
"""


@pytest.mark.parametrize("functional", [True, False])
def test_the_next_module_replaces_no_other(functional: bool) -> None:
    gpu = simt.GPU("qv100", functional=functional, set={"sm.count": 1})
    out = gpu.zeros(1, np.uint32)
    modules = {n: gpu.load(writes(n)) for n in range(4)}
    kernels = {n: module.k for n, module in modules.items()}
    for gone in (0, 2):
        del modules[gone], kernels[gone]
        gc.collect()
        modules[gone + 10] = gpu.load(writes(gone + 10))
        kernels[gone + 10] = modules[gone + 10].k
        for n, kernel in kernels.items():
            kernel[1, 1](out)
            assert out.numpy().tolist() == [n]


def test_a_queued_launch_keeps_its_module() -> None:
    gpu = simt.GPU("qv100", set={"sm.count": 1})
    outs, stream = [gpu.zeros(1, np.uint32) for _ in range(3)], gpu.stream()
    for n, out in enumerate(outs):
        gpu.load(writes(n)).k[1, 1, 0, stream](out)
        gc.collect()  # nothing refers to the module any more but the launch
    stream.synchronize()
    assert [out.numpy()[0] for out in outs] == [0, 1, 2]
