"""The device attributes of CUDA's driver API, derived from a specification."""

from __future__ import annotations

import uuid
from enum import IntEnum

from simt import _engine
from simt.spec import Spec


class Attribute(IntEnum):
    """Numbers of `CUdevice_attribute` (CUDA driver API)."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_BLOCK_DIM_X = 2
    MAX_BLOCK_DIM_Y = 3
    MAX_BLOCK_DIM_Z = 4
    MAX_GRID_DIM_X = 5
    MAX_GRID_DIM_Y = 6
    MAX_GRID_DIM_Z = 7
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    TOTAL_CONSTANT_MEMORY = 9
    WARP_SIZE = 10
    MAX_PITCH = 11
    MAX_REGISTERS_PER_BLOCK = 12
    CLOCK_RATE = 13
    TEXTURE_ALIGNMENT = 14
    GPU_OVERLAP = 15
    MULTIPROCESSOR_COUNT = 16
    CAN_MAP_HOST_MEMORY = 19
    MAXIMUM_TEXTURE1D_WIDTH = 21
    MAXIMUM_TEXTURE2D_WIDTH = 22
    MAXIMUM_TEXTURE2D_HEIGHT = 23
    MAXIMUM_TEXTURE3D_WIDTH = 24
    MAXIMUM_TEXTURE3D_HEIGHT = 25
    MAXIMUM_TEXTURE3D_DEPTH = 26
    MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27
    MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28
    MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29
    SURFACE_ALIGNMENT = 30
    CONCURRENT_KERNELS = 31
    PCI_BUS_ID = 33
    MEMORY_CLOCK_RATE = 36
    GLOBAL_MEMORY_BUS_WIDTH = 37
    L2_CACHE_SIZE = 38
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    ASYNC_ENGINE_COUNT = 40
    UNIFIED_ADDRESSING = 41
    MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43
    TEXTURE_PITCH_ALIGNMENT = 51
    MAXIMUM_TEXTURECUBEMAP_WIDTH = 52
    MAXIMUM_SURFACE1D_WIDTH = 55
    MAXIMUM_SURFACE2D_WIDTH = 56
    MAXIMUM_SURFACE2D_HEIGHT = 57
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69
    MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71
    MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    STREAM_PRIORITIES_SUPPORTED = 78
    GLOBAL_L1_CACHE_SUPPORTED = 79
    LOCAL_L1_CACHE_SUPPORTED = 80
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82
    MANAGED_MEMORY = 83
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87
    CONCURRENT_MANAGED_ACCESS = 89
    COMPUTE_PREEMPTION_SUPPORTED = 90
    COOPERATIVE_LAUNCH = 95
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    HOST_REGISTER_SUPPORTED = 99
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106
    MAX_PERSISTING_L2_CACHE_SIZE = 108
    MAX_ACCESS_POLICY_WINDOW_SIZE = 109
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    MEMORY_POOLS_SUPPORTED = 115
    CLUSTER_LAUNCH = 120
    TENSOR_MAP_ACCESS_SUPPORTED = 127
    UNIFIED_FUNCTION_POINTERS = 129
    HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142
    HOST_MEMORY_POOLS_SUPPORTED = 144


_TEXTURE_WIDTH, _TEXTURE_DEPTH, _LAYERS = 131072, 16384, 2048
_ACCESS_WINDOW = 128 << 20
"""Largest access policy window, in bytes, as read on an H200 (134,217,728)."""
_MOST_STATIC_SHARED = 48 << 10
"""Bytes of shared memory per CTA available without opting in (CUDA programming guide)."""


def device_attributes(spec: Spec, ordinal: int) -> dict[int, int]:
    """The attributes of the device with this ordinal; attributes not listed are 0.

    Limits that do not depend on the GPU are from CUDA's programming guide ("Technical Specifications per
    Compute Capability").
    """
    sm, threads = spec.sm, spec.sm.max_warps * spec.sm.warp_size
    shared = spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta
    modern = spec.sm_version >= 90
    of = Attribute
    texture: dict[int, int] = {
        **dict.fromkeys((of.MAXIMUM_TEXTURE1D_WIDTH, of.MAXIMUM_TEXTURE2D_WIDTH), _TEXTURE_WIDTH),
        of.MAXIMUM_TEXTURE2D_HEIGHT: _TEXTURE_WIDTH // 2,
        **dict.fromkeys(
            (of.MAXIMUM_TEXTURE3D_WIDTH, of.MAXIMUM_TEXTURE3D_HEIGHT, of.MAXIMUM_TEXTURE3D_DEPTH),
            _TEXTURE_DEPTH,
        ),
        **dict.fromkeys(
            (
                of.MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
                of.MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
                of.MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
                of.MAXIMUM_TEXTURECUBEMAP_WIDTH,
                of.MAXIMUM_SURFACE1D_WIDTH,
            ),
            _TEXTURE_WIDTH // 4,
        ),
        of.MAXIMUM_TEXTURE2D_LAYERED_LAYERS: _LAYERS,
        of.MAXIMUM_TEXTURE1D_LAYERED_LAYERS: _LAYERS,
        of.MAXIMUM_SURFACE2D_WIDTH: _TEXTURE_WIDTH,
        of.MAXIMUM_SURFACE2D_HEIGHT: _TEXTURE_WIDTH // 2,
        of.MAXIMUM_TEXTURE1D_LINEAR_WIDTH: 1 << 28,
        of.MAXIMUM_TEXTURE2D_LINEAR_WIDTH: _TEXTURE_WIDTH,
        of.MAXIMUM_TEXTURE2D_LINEAR_HEIGHT: 65000,
        of.MAXIMUM_TEXTURE2D_LINEAR_PITCH: 2097120,
        of.TEXTURE_ALIGNMENT: _engine.functional.DeviceMemory.alignment,
        of.SURFACE_ALIGNMENT: _engine.functional.DeviceMemory.alignment,
        of.TEXTURE_PITCH_ALIGNMENT: 32,
    }
    present: dict[int, int] = dict.fromkeys(
        (
            of.GPU_OVERLAP,
            of.CAN_MAP_HOST_MEMORY,
            of.CONCURRENT_KERNELS,
            of.UNIFIED_ADDRESSING,
            of.STREAM_PRIORITIES_SUPPORTED,
            of.GLOBAL_L1_CACHE_SUPPORTED,
            of.LOCAL_L1_CACHE_SUPPORTED,
            of.MANAGED_MEMORY,
            of.CONCURRENT_MANAGED_ACCESS,
            of.COMPUTE_PREEMPTION_SUPPORTED,
            of.COOPERATIVE_LAUNCH,
            of.HOST_REGISTER_SUPPORTED,
            of.MEMORY_POOLS_SUPPORTED,
            of.HOST_NUMA_MEMORY_POOLS_SUPPORTED,
            of.HOST_MEMORY_POOLS_SUPPORTED,
            of.VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
            of.UNIFIED_FUNCTION_POINTERS,
        ),
        1,
    )
    clocks: dict[int, int] = {
        of.CLOCK_RATE: round(spec.clock.core_mhz * 1000),
        of.MEMORY_CLOCK_RATE: round(spec.clock.dram_mhz * 1000),
    }
    ratio = sm.units.fp64.initiation_interval / sm.units.fp32.initiation_interval
    return {
        **texture,
        **present,
        **clocks,
        of.MAX_THREADS_PER_BLOCK: min(1024, threads),
        of.MAX_BLOCK_DIM_X: min(1024, threads),
        of.MAX_BLOCK_DIM_Y: min(1024, threads),
        of.MAX_BLOCK_DIM_Z: 64,
        of.MAX_GRID_DIM_X: (1 << 31) - 1,
        of.MAX_GRID_DIM_Y: 65535,
        of.MAX_GRID_DIM_Z: 65535,
        of.MAX_SHARED_MEMORY_PER_BLOCK: min(_MOST_STATIC_SHARED, shared),
        of.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: shared,
        of.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: spec.shared_memory.bytes,
        of.RESERVED_SHARED_MEMORY_PER_BLOCK: spec.shared_memory.reserved_per_cta,
        of.TOTAL_CONSTANT_MEMORY: 64 << 10,
        of.WARP_SIZE: sm.warp_size,
        of.MAX_PITCH: (1 << 31) - 1,
        of.MAX_REGISTERS_PER_BLOCK: min(65536, sm.register_file.registers),
        of.MAX_REGISTERS_PER_MULTIPROCESSOR: sm.register_file.registers,
        of.MULTIPROCESSOR_COUNT: sm.count,
        of.PCI_BUS_ID: ordinal + 1,
        of.GLOBAL_MEMORY_BUS_WIDTH: spec.address_map.channels * spec.dram.bus_bytes * 8,
        of.L2_CACHE_SIZE: spec.l2_lines * spec.l2.slice.line_bytes,
        of.MAX_PERSISTING_L2_CACHE_SIZE: spec.most_persisting_l2,
        of.MAX_ACCESS_POLICY_WINDOW_SIZE: _ACCESS_WINDOW if spec.most_persisting_l2 else 0,
        of.MAX_THREADS_PER_MULTIPROCESSOR: threads,
        of.ASYNC_ENGINE_COUNT: 2,
        of.COMPUTE_CAPABILITY_MAJOR: spec.sm_version // 10,
        of.COMPUTE_CAPABILITY_MINOR: spec.sm_version % 10,
        of.SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: max(1, round(ratio)),
        of.MAX_BLOCKS_PER_MULTIPROCESSOR: sm.max_ctas,
        of.CLUSTER_LAUNCH: int(modern),
        of.TENSOR_MAP_ACCESS_SUPPORTED: int(modern),
    }


def device_uuid(spec: Spec, ordinal: int) -> bytes:
    """16 bytes that identify a device, the same in every run."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"simt {spec.name} {spec.hash} {ordinal}").bytes
