"""Samplers apart from textures (texmode_independent) in machine code of each architecture."""

from __future__ import annotations

import numpy as np
import pytest

import simt
from simt.errors import SassError
from simt.sass.disassembler import is_installed

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)

PROGRAM = """.version 8.0
.target sm_75, texmode_independent
.address_size 64
.global .texref image;
.global .texref other;
.global .samplerref near = {{ addr_mode_0 = clamp_to_border, filter_mode = nearest }};
.global .samplerref mean = {{ addr_mode_0 = wrap, filter_mode = linear }};
.visible .entry k(.param .b64 x, .param .b64 t)
{{
  .reg .b64 %x, %t; .reg .b32 %r; .reg .f32 %u, %f<4>;
  ld.param.b64 %x, [x]; ld.param.b64 %t, [t];
  mov.u32 %r, %tid.x; mad.wide.u32 %x, %r, 4, %x; ld.global.f32 %u, [%x];
  tex.1d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [{texture}, {sampler}, {{%u}}];
  st.global.f32 [%x], %f0;
  ret;
}}
"""
GPUS = [("rtx2060-accelsim", 75), ("a100", 80), ("a100", 86), ("a100", 89), ("h100", 90)]


@pytest.mark.parametrize(("gpu", "sm"), GPUS)
@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_named_samplers(code: str, gpu: str, sm: int) -> None:
    simulated = simt.GPU(gpu, functional=True, code=code, set={"sm_version": sm})
    texels = {"image": np.array([0, 10, 20, 30], np.float32), "other": np.array([5, 6, 7, 8], np.float32)}
    expected = {
        ("image", "near"): [0, 10, 30, 0],
        ("image", "mean"): [15, 5, 25, 15],
        ("other", "near"): [5, 6, 8, 0],
        ("other", "mean"): [6.5, 5.5, 7.5, 6.5],
    }
    for (texture, sampler), values in expected.items():
        module = simulated.load(PROGRAM.format(texture=texture, sampler=sampler))
        module.bind_texture(texture, simulated.texture(texels[texture], normalized=True))
        x = np.array([0, 0.25, 0.75, 1], np.float32)
        module.k[1, 4](x, 0)
        assert x.tolist() == values


@pytest.mark.parametrize(("gpu", "sm"), GPUS[:4])
def test_parts_of_handles_in_a_word_are_refused(gpu: str, sm: int) -> None:
    simulated = simt.GPU(gpu, functional=True, code="sass", set={"sm_version": sm})
    with pytest.raises(SassError, match=r"TEX.*: a sampler of its own that is not named with the texture"):
        simulated.load(PROGRAM.format(texture="%t", sampler="mean"))
