"""What kernels may access of an allocation: what CUDA's allocators round it up to, or exactly its bytes."""

from __future__ import annotations

import numpy as np
import pytest

import simt
from simt.errors import LaunchError, ProgramFault

SOURCE = """.version 7.0
.target sm_70
.address_size 64
.visible .entry vector(.param .u64 from, .param .u64 to) {
  .reg .b64 %f, %t; .reg .f32 %v<4>;
  ld.param.u64 %f, [from]; ld.param.u64 %t, [to];
  ld.global.v4.f32 {%v0, %v1, %v2, %v3}, [%f]; st.global.v4.f32 [%t], {%v0, %v1, %v2, %v3}; ret; }
"""
GRANULE = 512


def read(address: int, **options: object) -> bytes:
    """16 bytes at an offset in an allocation of 28 bytes of ones."""
    gpu = simt.GPU("qv100", functional=True, **options)  # type: ignore[arg-type]
    to, memory = gpu.memory.allocate(16), gpu.memory.allocate(28)  # the latter at the end
    gpu.memory.write(memory, np.ones(7, np.float32).tobytes())
    gpu.load(SOURCE).vector[1, 1](memory + address, to)
    return gpu.memory.read(to, 16)


def test_a_vector_that_begins_in_an_allocation_and_ends_behind_it() -> None:
    assert np.frombuffer(read(16), np.float32).tolist() == [1, 1, 1, 0]


def test_the_granule_ends_at_512_bytes() -> None:
    assert read(GRANULE - 16) == bytes(16)
    with pytest.raises(ProgramFault, match=r"484 bytes behind the end of `raw memory` \(28 bytes"):
        read(GRANULE)


@pytest.mark.parametrize(("offset", "is_within"), [(0, True), (16, False), (GRANULE - 16, False)])
def test_exact_bounds(offset: int, is_within: bool) -> None:
    if is_within:
        read(offset, exact_bounds=True)
        return
    with pytest.raises(ProgramFault, match="access of 16 bytes"):
        read(offset, exact_bounds=True)


def test_what_is_left_of_a_granule_is_zero_for_its_next_owner() -> None:
    gpu = simt.GPU("qv100", functional=True)
    first = gpu.memory.allocate(28)
    source = gpu.memory.allocate(16)
    gpu.memory.write(source, bytes(range(1, 17)))
    kernel = gpu.load(SOURCE).vector
    kernel[1, 1](source, first + GRANULE - 16)
    gpu.memory.free(first)
    again = gpu.memory.allocate(28)
    assert again == first
    to = gpu.memory.allocate(16)
    kernel[1, 1](again + GRANULE - 16, to)
    assert gpu.memory.read(to, 16) == bytes(16)


def test_the_host_keeps_to_what_was_allocated() -> None:
    gpu = simt.GPU("qv100", functional=True)
    address = gpu.memory.allocate(28)
    with pytest.raises(LaunchError, match="cannot be read"):
        gpu.memory.read(address, 29)
