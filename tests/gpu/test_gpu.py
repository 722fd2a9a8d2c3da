"""The GPU as users see it: arrays, arguments, modules, variables, errors that say what to do."""

from __future__ import annotations

import array
import ctypes

import numpy as np
import pytest

import simt
from simt.cuda import PtxModule
from simt.errors import LaunchError, PtxError

PTX = (
    ".version 8.7\n.target sm_70\n.address_size 64\n"
    + """
.const .align 4 .f32 factor = 0f40000000;
.global .align 4 .u32 counter;
.visible .entry scale(.param .u64 x, .param .f32 a, .param .u32 n)
{
  .reg .pred %p; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [x]; ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1; @%p bra DONE;
  mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
  ld.const.f32 %f2, [factor]; mul.f32 %f1, %f1, %f2;
  ld.global.f32 %f3, [%rd3]; mul.f32 %f4, %f3, %f1; st.global.f32 [%rd3], %f4;
  red.global.add.u32 [counter], 1;
DONE:
  ret;
}
.visible .entry types(.param .u64 out, .param .u8 b, .param .u16 h, .param .f64 d, .param .align 8 .b8 s[16])
{
  .reg .b16 %h<3>; .reg .b32 %r<3>; .reg .f64 %d; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out]; ld.param.u8 %h1, [b]; ld.param.u16 %h2, [h]; ld.param.f64 %d, [d];
  ld.param.u64 %rd2, [s+8];
  st.global.u8 [%rd1], %h1; st.global.u16 [%rd1+2], %h2;
  st.global.f64 [%rd1+8], %d; st.global.u64 [%rd1+16], %rd2;
  ret;
}
"""
)


@pytest.fixture
def gpu() -> simt.GPU:
    return simt.GPU("qv100", functional=True)


@pytest.fixture
def module(gpu: simt.GPU) -> object:
    return gpu.load(PtxModule.from_text(PTX, "scale.ptx"))


def test_host_arrays_go_in_and_out(module: object) -> None:
    x = np.arange(100, dtype=np.float32)
    module.scale[2, 64](x, 1.5, 90)  # type: ignore[attr-defined]
    expected = np.arange(100, dtype=np.float32)
    expected[:90] *= 3
    assert (x == expected).all()
    # Any buffer works, including a view that is not contiguous.
    buffer = array.array("f", range(8))
    module.scale[1, 32](buffer, 0.5, 8)  # type: ignore[attr-defined]
    assert buffer.tolist() == list(range(8))
    wide = np.ones((8, 3), np.float32)
    module.scale[1, 32](wide[:, 1], 2, 8)  # type: ignore[attr-defined]
    assert (wide == [1, 4, 1]).all()


def test_variables_are_arrays(gpu: simt.GPU, module: object) -> None:
    x = gpu.array(np.ones(64, np.float32))
    module.variable("factor", np.float32).set(5)  # type: ignore[attr-defined]
    module.scale[1, 64](x, 1, 64)  # type: ignore[attr-defined]
    assert (x.numpy() == 5).all()
    assert module.variable("counter", np.uint32).numpy()[0] == 64  # type: ignore[attr-defined]
    with pytest.raises(LaunchError, match=r"no variable 'nothing'; there are: .*factor"):
        module.variable("nothing")  # type: ignore[attr-defined]


def test_scalars_take_the_width_of_their_parameter(module: object) -> None:
    out = np.zeros(24, np.uint8)
    record = np.array([(7, 1 << 40)], np.dtype([("a", "u8"), ("b", "u8")]))[0]
    module.types[1, 1](out, -1, np.uint16(65535), 2.5, record)  # type: ignore[attr-defined]
    assert out[0] == 255
    assert out[2:4].view(np.uint16)[0] == 65535
    assert out[8:16].view(np.float64)[0] == 2.5
    assert out[16:24].view(np.uint64)[0] == 1 << 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1,), "takes 3 arguments, 1 were given"),
        ((np.zeros(1, np.float32), 1.0, 1 << 33), "argument 3: expected a 32-bit integer, found int"),
        ((np.zeros(1, np.float32), "a", 1), "argument 2: expected a 32-bit float, found str"),
        ((np.zeros(1, np.float32), 1.0, 2.5), "argument 3: expected a 32-bit integer, found float 2.5"),
        ((np.zeros(1, np.float32), 1.0, np.zeros(1)), "argument 3: expected a 32-bit integer"),
        ((object(), 1.0, 1), "argument 1: expected a 64-bit integer or a pointer, found object"),
    ],
)
def test_arguments_that_do_not_fit(module: object, arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        module.scale[1, 32](*arguments)  # type: ignore[attr-defined]


def test_launch_configurations_that_make_no_sense(module: object) -> None:
    scale = module.scale  # type: ignore[attr-defined]
    x = np.zeros(1, np.float32)
    for configuration, words in (
        ((0, 32), "the grid is 0"),
        ((1, (1, 2, 3, 4)), "the block is"),
        ((1, 1.5), "the block is 1.5"),
    ):
        with pytest.raises(LaunchError, match=words):
            scale[configuration]
    with pytest.raises(LaunchError, match="kernel\\[grid, block\\]"):
        scale[1]
    with pytest.raises(LaunchError, match="needs a grid and a block"):
        scale(x, 1.0, 1)
    with pytest.raises(LaunchError, match="a block of 2048 threads; this GPU allows 1024"):
        scale[1, 2048](x, 1.0, 1)
    with pytest.raises(LaunchError, match="shared memory"):
        scale[1, 32, 200_000](x, 1.0, 1)
    with pytest.raises(AttributeError, match="no kernel 'nothing'"):
        module.nothing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(PtxError, match="no kernel 'nothing'"):
        module["nothing"]  # type: ignore[index]


def test_what_cannot_be_executed_is_refused_when_it_is_loaded(gpu: simt.GPU) -> None:
    text = PTX.replace("mul.f32 %f4, %f3, %f1;", "mul.rn.strange.f32 %f4, %f3, %f1;")
    with pytest.raises(
        PtxError, match=r"strange.ptx:\d+: .*mul\.rn\.strange\.f32.*`\.strange` is not supported"
    ):
        gpu.load(PtxModule.from_text(text, "strange.ptx"))


def test_device_memory_is_bounded_and_given_back() -> None:
    gpu = simt.GPU("qv100", functional=True, memory=1 << 20)
    with pytest.raises(LaunchError, match="no room for 2,000,000 bytes"):
        gpu.empty(2_000_000, np.uint8)
    for _ in range(50):
        gpu.empty(500_000, np.uint8)
    assert gpu.memory.used == 0
    kept = gpu.array(np.arange(10))
    assert (kept.numpy() == np.arange(10)).all()
    kept.free()
    assert gpu.memory.used == 0


def test_ctypes_and_structures(gpu: simt.GPU, module: object) -> None:
    values = (ctypes.c_float * 4)(1, 2, 3, 4)
    module.scale[1, 32](values, 1, 4)  # type: ignore[attr-defined]
    assert list(values) == [2, 4, 6, 8]
