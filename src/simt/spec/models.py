"""GPU specifications: the models that check one, and `Spec`, the whole of it.

The models mirror `engine/timing/spec.hpp`: same sections, same fields. No field has a default: a
specification says everything about its GPU, and inherits (`extends = "..."`) what it does not want to repeat.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from simt.errors import SpecError

SECTOR_BYTES = 32
MOST_LINES = 1 << 25  # of all caches of a kind: 4 GiB of lines of 128 bytes

# Far beyond any GPU, and small enough that a slip of the finger does not ask for all of the host's memory.
UInt = Annotated[int, Field(ge=0, le=2**26, strict=True)]
Positive = Annotated[int, Field(ge=1, le=2**26, strict=True)]
Entries = Annotated[int, Field(ge=0, le=2**20, strict=True)]
SomeEntries = Annotated[int, Field(ge=1, le=2**20, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
DramCycles = Annotated[int, Field(ge=0, le=4096, strict=True)]
Megahertz = Annotated[float, Field(ge=1, le=100_000)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _wrong(field: str, message: str) -> PydanticCustomError:
    """An error about `field` of the model being checked (its path is completed by `simt.spec.files`)."""
    return PydanticCustomError("cross_field", "{message}", {"field": field, "message": message})


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _require_power_of_two(field: str, value: int) -> None:
    if not _power_of_two(value):
        raise _wrong(field, f"found {value}, expected a power of two")


class Clock(_Section):
    """Frequencies of the clock domains in MHz, exact to 1 kHz."""

    core_mhz: Megahertz
    """SM clock."""
    interconnect_mhz: Megahertz
    """Crossbar clock."""
    l2_mhz: Megahertz
    """L2 clock."""
    dram_mhz: Megahertz
    """DRAM command clock."""

    @model_validator(mode="after")
    def _whole_kilohertz(self) -> Clock:
        for field, mhz in self:
            if abs(mhz * 1000 - round(mhz * 1000)) > 1e-6:
                raise _wrong(field, f"found {mhz} MHz, expected whole kHz")
        return self


class Launch(_Section):
    """What a kernel launch and a CTA's start cost."""

    kernel_latency: UInt
    """Core cycles from launch to the first CTA."""
    cta_latency: UInt
    """Further core cycles before the first CTA, for each CTA of the grid."""
    dispatch_latency: Positive
    """Core cycles from a CTA's end to the start of the next one in its place."""
    max_concurrent_kernels: SomeEntries
    """Launches of different streams that run at the same time; 1: one after the other."""


class Cache(_Section):
    """Geometry and policies of one cache."""

    sets: UInt
    """Sets, a power of two; 0: there is no such cache."""
    line_bytes: Positive
    """Line size, a power of two; 128 where sectored."""
    ways: UInt
    """Associativity."""
    sectored: Flag
    """Lines are filled and written in sectors of 32 bytes."""
    replacement: Literal["lru", "fifo", "custom"]
    """Which line of a set is replaced."""
    write_policy: Literal[
        "read_only",
        "write_back",
        "write_through",
        "write_evict",
        "local_write_back_global_write_through",
    ]
    """What a write does to this level and the next."""
    allocation: Literal["on_miss", "on_fill", "streaming"]
    """When a read miss takes its line; streaming: on fill, with as many misses outstanding as lines."""
    write_allocation: Literal["none", "write_allocate", "fetch_on_write", "write_validate"]
    """What a write miss does; write_validate: takes the sector without reading it."""
    set_index: Literal["linear", "xor", "ipoly", "fermi"]
    """Hash from address to set."""
    mshr_entries: Entries
    """Misses outstanding: one entry a sector (a line where not sectored)."""
    mshr_merge: Entries
    """Requests that share one entry."""
    miss_queue: Entries
    """Requests waiting to leave towards the next level."""
    port_bytes: Positive
    """Width of the data port and of the fill port per cycle."""
    dirty_threshold: Annotated[int, Field(ge=0, le=100, strict=True)]
    """Percent of lines modified below which modified lines are not evicted."""

    @property
    def bytes(self) -> int:
        """Capacity."""
        return self.sets * self.line_bytes * self.ways

    @model_validator(mode="after")
    def _consistent(self) -> Cache:
        _require_power_of_two("line_bytes", self.line_bytes)
        if self.sectored and self.line_bytes != 4 * SECTOR_BYTES:
            raise _wrong(
                "line_bytes",
                f"found {self.line_bytes}, expected 128: a sectored line is four sectors of 32 bytes",
            )
        if self.line_bytes < SECTOR_BYTES:
            raise _wrong("line_bytes", f"found {self.line_bytes}, expected at least {SECTOR_BYTES}, a sector")
        if self.sets == 0:
            return self
        _require_power_of_two("sets", self.sets)
        for field in ("ways", "mshr_entries", "mshr_merge", "miss_queue"):
            if getattr(self, field) == 0:
                raise _wrong(field, "found 0, expected at least 1 in a cache that has sets")
        return self


class InstructionCache(_Section):
    """Instruction caches of an SM."""

    perfect: Flag
    """Every fetch hits; the rest is then unused."""
    l1: Cache
    """Cache shared by the SM's sub-cores."""
    l1_latency: UInt
    """Core cycles of an L1 hit beyond the fetch stage."""
    l1_shared_by: Annotated[int, Field(ge=1, le=64, strict=True)]
    """SMs that share one L1."""
    l0: Cache
    """Cache of each sub-core; sets = 0: none."""
    prefetch_lines: Entries
    """Depth of the stream buffer in lines; 0: none."""

    @model_validator(mode="after")
    def _consistent(self) -> InstructionCache:
        if self.perfect or self.l1_shared_by == 1:
            return self
        for field in ("l0", "l1"):
            if getattr(self, field).bytes == 0:
                raise _wrong(f"{field}.sets", "found 0, expected a cache where SMs share the L1")
        if self.l1.sectored:
            raise _wrong("l1.sectored", "found true, expected whole lines where SMs share the L1")
        if self.l1_latency == 0:
            raise _wrong("l1_latency", "found 0, expected at least 1 where SMs share the L1")
        return self


class FrontEnd(_Section):
    """Fetch and decode."""

    fetch_width: SomeEntries
    """Warps fetched and decoded per cycle and SM."""
    instruction_buffer: SomeEntries
    """Decoded instructions held per warp."""
    instruction_cache: InstructionCache


class Scheduler(_Section):
    """Warp scheduler of each sub-core."""

    policy: Literal["lrr", "gto", "oldest", "two_level", "cggty", "custom"]
    """lrr: loose round robin; gto: greedy then oldest; cggty: compiler-guided greedy then youngest."""
    active_warps: Entries
    """Two-level: size of the active set per scheduler."""
    issue_width: Annotated[int, Field(ge=1, le=8, strict=True)]
    """Instructions of one warp issued per cycle."""
    dual_issue_different_units: Flag
    """A second instruction in the same cycle must go to another unit."""

    @model_validator(mode="after")
    def _consistent(self) -> Scheduler:
        if self.policy == "two_level" and self.active_warps == 0:
            raise _wrong("active_warps", "found 0, expected at least 1 with the two_level policy")
        return self


class RegisterFile(_Section):
    """Registers and how operands are read."""

    registers: Positive
    """32-bit registers per SM."""
    allocation_unit: UInt
    """Registers are given to a warp in multiples of this; 0: four per thread."""
    model: Literal["operand_collector", "read_ports"]
    """How operands are read: collected from banks out of order, or in order through ports."""
    banks: SomeEntries
    """Register banks per SM."""
    collector_units: SomeEntries
    """Operand collector: units per SM."""
    port_throughput: SomeEntries
    """Operand collector: steps per cycle."""
    read_ports_per_bank: SomeEntries
    """Read ports: reads of one bank per cycle."""
    operand_cache: Flag
    """Read ports: each bank keeps the operands read last (register-file cache)."""
    write_back_width: SomeEntries
    """Results that the SM's units can write per cycle."""


class Unit(_Section):
    """One kind of execution unit."""

    count: Annotated[int, Field(ge=0, le=64, strict=True)]
    """Per SM; 0: the unit does not exist and another one does its work."""
    latency: Annotated[int, Field(ge=1, le=511, strict=True)]
    """Core cycles from execution to result."""
    initiation_interval: Annotated[int, Field(ge=1, le=4096, strict=True)]
    """Core cycles until it takes its next instruction."""


class Units(_Section):
    """Execution units of an SM."""

    int: Unit
    """Integer and everything that has no unit of its own."""
    fp32: Unit
    """Single precision; also does what `int` and `branch` do where they do not exist."""
    fp64: Unit
    """Double precision; without it `sfu` does its work."""
    sfu: Unit
    """Special functions."""
    tensor: Unit
    """Matrix multiply-accumulate."""
    branch: Unit
    """Control flow."""
    texture: Unit
    """Texture."""
    uniform: Unit
    """Uniform datapath."""
    memory: Unit
    """Issue to the load/store unit."""
    tma: Unit
    """Tensor memory accelerator and mbarriers."""

    @model_validator(mode="after")
    def _fallbacks_exist(self) -> Units:
        for field in ("fp32", "sfu", "memory"):
            if getattr(self, field).count == 0:
                raise _wrong(
                    f"{field}.count", "found 0, expected at least 1: other instructions fall back to it"
                )
        return self


class Sm(_Section):
    """Streaming multiprocessors."""

    count: Annotated[int, Field(ge=1, le=65535, strict=True)]
    """SMs of the GPU."""
    sub_cores: Annotated[int, Field(ge=1, le=16, strict=True)]
    """Warp schedulers per SM."""
    sub_core_model: Flag
    """Each scheduler has its own units, banks and collectors; false: all are shared (Kepler)."""
    warp_size: Literal[32, 64]
    """Lanes."""
    max_warps: Annotated[int, Field(ge=1, le=256, strict=True)]
    """Resident warps per SM."""
    max_ctas: Annotated[int, Field(ge=1, le=256, strict=True)]
    """Resident CTAs per SM."""
    barriers_per_cta: Annotated[int, Field(ge=1, le=64, strict=True)]
    """Named barriers."""
    front_end: FrontEnd
    scheduler: Scheduler
    register_file: RegisterFile
    units: Units

    @model_validator(mode="after")
    def _consistent(self) -> Sm:
        if self.max_warps < self.sub_cores:
            raise _wrong(
                "max_warps", f"found {self.max_warps}, expected at least sub_cores = {self.sub_cores}"
            )
        if self.sub_core_model:
            for field in ("banks", "collector_units"):
                value = getattr(self.register_file, field)
                if value % self.sub_cores:
                    raise _wrong(
                        f"register_file.{field}",
                        f"found {value}, expected a multiple of sub_cores = {self.sub_cores}",
                    )
        return self


class SharedMemory(_Section):
    """Shared memory of an SM."""

    bytes: Positive
    """Most that CTAs can use per SM."""
    reserved_per_cta: UInt
    """Bytes that the system takes for each CTA."""
    allocation_unit: Positive
    """A CTA's share is rounded up to this many bytes, a power of two."""
    banks: SomeEntries
    """Banks, 4 bytes wide; a power of two."""
    latency: Positive
    """Core cycles of a conflict-free 32-bit load in the shared-memory pipeline."""
    wide_accesses_take_wavefronts: Flag
    """64-bit and 128-bit accesses take 2 and 4 passes; false: only the first word counts (Accel-Sim)."""

    @model_validator(mode="after")
    def _consistent(self) -> SharedMemory:
        _require_power_of_two("allocation_unit", self.allocation_unit)
        _require_power_of_two("banks", self.banks)
        return self


class L1(_Section):
    """L1 data cache of an SM."""

    cache: Cache
    """Geometry; where adaptive, its ways are scaled to what is left of unified_bytes."""
    banks: Annotated[int, Field(ge=1, le=64, strict=True)]
    """Banks, one sector wide; a power of two."""
    latency: Positive
    """Core cycles from bank access to tag look-up."""
    unified_bytes: UInt
    """L1 and shared memory together; 0: they are separate."""
    adaptive: Flag
    """Shared memory is carved out of unified_bytes for each kernel."""
    carve_out_options: Annotated[tuple[UInt, ...], Field(strict=False)]
    """Bytes that shared memory can have, rising."""
    bypass_global: Flag
    """Global loads go straight to the L2."""
    bypass_sectors_per_cycle: SomeEntries
    """Sectors that bypass the L1 per core cycle."""
    flush_at_kernel_end: Flag
    """The L1 is invalidated at the end of each kernel."""
    invalidate_at_membar: Flag
    """A memory barrier of GPU scope invalidates the L1."""

    @model_validator(mode="after")
    def _consistent(self) -> L1:
        _require_power_of_two("banks", self.banks)
        if self.cache.bytes == 0:
            raise _wrong(
                "cache.sets", "found 0, expected an L1 (use bypass_global to send global loads to the L2)"
            )
        if not self.adaptive:
            return self
        options = self.carve_out_options
        if not options:
            raise _wrong("carve_out_options", "found none, expected at least one with adaptive = true")
        if list(options) != sorted(set(options)):
            raise _wrong("carve_out_options", f"found {list(options)}, expected rising sizes")
        if options[-1] > self.unified_bytes:
            raise _wrong(
                "carve_out_options",
                f"found {options[-1]} bytes, expected at most unified_bytes = {self.unified_bytes}",
            )
        if self.unified_bytes < self.cache.bytes or self.unified_bytes * self.cache.ways % self.cache.bytes:
            raise _wrong(
                "unified_bytes",
                f"found {self.unified_bytes}, expected whole ways of {self.cache.bytes // self.cache.ways} "
                f"bytes and at least the cache's {self.cache.bytes} bytes",
            )
        return self


class LoadStore(_Section):
    """Load/store unit of an SM."""

    coalescing_sub_warps: Annotated[int, Field(ge=1, le=32, strict=True)]
    """Parts of a warp whose accesses are coalesced separately."""
    sectored_coalescing: Flag
    """Accesses are coalesced to sectors; false: to segments of 128 bytes reduced to 64 and 32 (Kepler)."""
    reply_buffer: SomeEntries
    """Replies waiting at the load/store unit."""
    sub_core_queue: Entries
    """Memory instructions queued per sub-core; 0: one latch that the sub-cores share."""


class ConstantCache(_Section):
    """Constant caches of an SM."""

    perfect: Flag
    """Every constant access hits; l1 and miss_latency are then unused."""
    l1: Cache
    """One for loads, and one of each sub-core for operands; behind them is the L1 instruction cache."""
    latency: UInt
    """Core cycles of a load that hits."""
    miss_latency: UInt
    """Further core cycles of a load, or of an operand, whose line the L1 instruction cache has."""

    @model_validator(mode="after")
    def _consistent(self) -> ConstantCache:
        if self.perfect:
            return self
        if self.l1.bytes == 0:
            raise _wrong("l1.sets", "found 0, expected a cache with perfect = false")
        if self.l1.sectored:
            raise _wrong("l1.sectored", "found true, expected whole lines")
        for field in ("latency", "miss_latency"):
            if getattr(self, field) == 0:
                raise _wrong(field, "found 0, expected at least 1 with perfect = false")
        return self


class Interconnect(_Section):
    """Crossbar between SMs and L2 slices."""

    arbiter: Literal["round_robin", "islip"]
    """How an output chooses among inputs."""
    input_buffer: SomeEntries
    """Packets per input port."""
    output_buffer: SomeEntries
    """Packets per output port."""
    latency: UInt
    """Interconnect cycles of wire each way, beyond one per hop."""
    credit_latency: Positive
    """Core cycles until an SM learns that its input buffer has drained."""
    flit_bytes: UInt
    """Flit size: larger packets take several; 0: every packet is one flit."""
    look_ahead: Annotated[int, Field(ge=1, le=64, strict=True)]
    """Packets of an input's queue among which outputs choose; 1: the head alone, which may block others."""
    sm_port_sectors: Annotated[int, Field(ge=1, le=4, strict=True)]
    """Sectors that an SM takes, and hands over, in a cycle."""

    @model_validator(mode="after")
    def _consistent(self) -> Interconnect:
        if self.look_ahead > 1 and self.arbiter != "islip":
            raise _wrong("look_ahead", f"found {self.look_ahead}, expected 1 with the {self.arbiter} arbiter")
        return self


class AddressMap(_Section):
    """Where an address lives: channel, slice, DRAM bank, row and column."""

    channels: Annotated[int, Field(ge=1, le=1024, strict=True)]
    """Memory channels."""
    slices_per_channel: Annotated[int, Field(ge=1, le=64, strict=True)]
    """L2 slices per channel, a power of two."""
    hash: Literal["linear", "xor", "ipoly", "pae", "random", "ipoly_modulo", "ipoly_skewed", "custom"]
    """Hash from address to slice."""
    channel_bit: Annotated[int, Field(ge=5, le=20, strict=True)]
    """Lowest address bit of the channel number."""
    layout: Annotated[str, Field(pattern=r"^[RBC]+S+$")]
    """Bits of the address without the channel, most significant first: R row, B bank, C column, S byte."""

    @property
    def slices(self) -> int:
        """L2 slices of the GPU."""
        return self.channels * self.slices_per_channel

    @model_validator(mode="after")
    def _consistent(self) -> AddressMap:
        _require_power_of_two("slices_per_channel", self.slices_per_channel)
        if self.hash in ("xor", "ipoly") and not _power_of_two(self.channels):
            raise _wrong(
                "hash",
                f"{self.hash} needs a power of two of channels, found {self.channels}; "
                "use ipoly_skewed or linear",
            )
        if self.hash == "pae" and self.slices != 32:
            raise _wrong("hash", f"pae is defined for 32 slices, found {self.slices}")
        if 1 << self.layout.count("S") != SECTOR_BYTES:
            raise _wrong(
                "layout", f"found {self.layout.count('S')} letters S, expected 5: DRAM atoms have 32 bytes"
            )
        if len(self.layout) > 58:
            raise _wrong("layout", f"found {len(self.layout)} bits, expected at most 58")
        return self


class L2(_Section):
    """L2 slices."""

    slice: Cache
    """One slice."""
    latency: Positive
    """L2 cycles from arrival at the slice to the tag look-up."""
    request_queue: SomeEntries
    """Requests between interconnect and tags."""
    dram_queue: SomeEntries
    """Requests between slice and DRAM channel."""
    fill_queue: SomeEntries
    """Replies between DRAM channel and slice."""
    reply_queue: SomeEntries
    """Replies between slice and interconnect."""
    copies_fill: Flag
    """Host-to-device copies leave their data in the L2."""
    partitions: Annotated[int, Field(ge=1, le=16, strict=True)]
    """Parts of the L2 that are far from each other."""
    far_latency: UInt
    """Further L2 cycles to a sector whose home is in another partition."""

    @model_validator(mode="after")
    def _consistent(self) -> L2:
        if self.slice.bytes == 0:
            raise _wrong("slice.sets", "found 0, expected an L2")
        if not self.slice.sectored:
            raise _wrong("slice.sectored", "found false, expected true: requests reach the L2 as sectors")
        if self.partitions == 1 and self.far_latency:
            raise _wrong("far_latency", f"found {self.far_latency}, expected 0 with one partition")
        return self


class Dram(_Section):
    """DRAM channels. Timings are in DRAM command cycles; names are those of data sheets."""

    capacity_gib: Annotated[int, Field(ge=1, le=1024, strict=True)] = 64
    """Device memory in GiB."""
    simple: Flag
    """Fixed latency, one request per cycle and channel."""
    latency: UInt
    """L2 cycles through the controller before scheduling."""
    scheduler: Literal["fcfs", "fr_fcfs"]
    """First come first served, or row hits first."""
    scheduler_queue: SomeEntries
    """Requests that the scheduler sees."""
    return_queue: SomeEntries
    """Replies waiting for the L2."""
    write_queue: Flag
    """Writes wait in a queue of their own."""
    write_queue_size: SomeEntries
    """Entries of the write queue."""
    write_high: Positive
    """Writes waiting at which the channel turns to writes."""
    write_low: UInt
    """Writes left at which it turns back to reads."""
    bus_bytes: Positive
    """Data bus width of a channel."""
    burst_length: Positive
    """Transfers per access; bus_bytes * burst_length is an atom of 32 bytes."""
    data_command_ratio: Positive
    """Transfers per command cycle."""
    dual_bus: Flag
    """A row and a column command in the same cycle (HBM)."""
    banks: SomeEntries
    """Banks per channel, a power of two."""
    bank_groups: SomeEntries
    """Bank groups per channel, a power of two."""
    bank_group_low_bits: Flag
    """A bank's group is its number modulo the groups; false: its high bits."""
    bank_xor: Flag
    """The bank number is hashed with the row's low bits."""
    ccd: DramCycles
    """Column command to column command."""
    rrd: DramCycles
    """Activate to activate of another bank."""
    rcd: DramCycles
    """Activate to read."""
    ras: DramCycles
    """Activate to precharge."""
    rp: DramCycles
    """Precharge to activate."""
    rc: DramCycles
    """Activate to activate of the same bank."""
    cl: DramCycles
    """Read to first data."""
    wl: DramCycles
    """Write to first data."""
    cdlr: DramCycles
    """End of write data to read."""
    wr: DramCycles
    """End of write data to precharge."""
    ccdl: DramCycles
    """Column command to column command of the same bank group."""
    rtpl: DramCycles
    """Read to precharge of the same bank group."""
    faw: DramCycles
    """Activate to the fourth activate after it (tFAW); 0: no limit."""
    refi: UInt
    """Time in which every bank is refreshed once (tREFI); 0: no refresh."""
    rfc: DramCycles
    """Refresh to activate (tRFC, of one bank if `per_bank_refresh`)."""
    per_bank_refresh: Flag
    """Banks are refreshed in turn, `refi` over `banks` apart, while others work; false: all together."""

    @model_validator(mode="after")
    def _consistent(self) -> Dram:
        atom = self.bus_bytes * self.burst_length
        if atom != SECTOR_BYTES:
            raise _wrong("burst_length", f"bus_bytes * burst_length is {atom} bytes, expected 32: a sector")
        if self.burst_length % self.data_command_ratio:
            raise _wrong(
                "data_command_ratio",
                f"found {self.data_command_ratio}, expected a divisor of burst_length = {self.burst_length}",
            )
        _require_power_of_two("banks", self.banks)
        _require_power_of_two("bank_groups", self.bank_groups)
        if self.bank_groups > self.banks:
            raise _wrong("bank_groups", f"found {self.bank_groups}, expected at most banks = {self.banks}")
        if not self.write_low < self.write_high <= self.write_queue_size:
            raise _wrong(
                "write_high",
                f"found write_low = {self.write_low}, write_high = {self.write_high}, write_queue_size = "
                f"{self.write_queue_size}, expected write_low < write_high <= write_queue_size",
            )
        if self.rc < self.ras:
            raise _wrong("rc", f"found {self.rc}, expected at least ras = {self.ras}")
        if self.refi and self.refi <= max(self.rfc + self.rc, self.banks):
            raise _wrong(
                "refi",
                f"found {self.refi}, expected 0 or more than rfc + rc = {self.rfc + self.rc} "
                f"and than banks = {self.banks}",
            )
        if self.rcd <= self.wl:
            raise _wrong("rcd", f"found {self.rcd}, expected more than wl = {self.wl}")
        if self.cl + self.burst_length // self.data_command_ratio + 2 < self.wl:
            raise _wrong(
                "wl", f"found {self.wl}, expected at most a read's {self.cl} cycles, its burst and 2"
            )
        return self


class Spec(_Section):
    """One GPU. Frozen; equal specifications have equal hashes."""

    name: Annotated[str, Field(min_length=1)]
    """Name under which it was loaded."""
    description: str
    """What it describes, in a line."""
    sm_version: Annotated[int, Field(ge=20, le=999, strict=True)]
    """Compute capability: 70 for 7.0."""
    clock: Clock
    launch: Launch
    sm: Sm
    shared_memory: SharedMemory
    l1: L1
    load_store: LoadStore
    constant_cache: ConstantCache
    interconnect: Interconnect
    address_map: AddressMap
    l2: L2
    dram: Dram

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        if self.l1.adaptive and self.shared_memory.bytes > self.l1.carve_out_options[-1]:
            raise _wrong(
                "shared_memory.bytes",
                f"found {self.shared_memory.bytes}, expected at most the largest of l1.carve_out_options, "
                f"{self.l1.carve_out_options[-1]}",
            )
        banks = 1 << self.address_map.layout.count("B")
        if banks != self.dram.banks:
            raise _wrong(
                "address_map.layout",
                f"its letters B number {banks} banks, expected dram.banks = {self.dram.banks}",
            )
        if self.address_map.slices_per_channel > banks:
            raise _wrong(
                "address_map.slices_per_channel",
                f"found {self.address_map.slices_per_channel}, expected at most dram.banks = {banks}: "
                "the low bank bits choose the slice",
            )
        self._check_constants()
        self._check_size()
        if self.address_map.slices % self.l2.partitions:
            raise _wrong(
                "l2.partitions",
                f"found {self.l2.partitions}, expected a divisor of the {self.address_map.slices} slices",
            )
        return self

    def _check_size(self) -> None:
        """All caches are there from the start: too many lines are a slip of the finger."""
        instructions = self.sm.front_end.instruction_cache
        parts = {
            "l1.cache.sets": (self.l1.cache, self.sm.count),
            "sm.front_end.instruction_cache.l1.sets": (instructions.l1, self.sm.count),
            "sm.front_end.instruction_cache.l0.sets": (instructions.l0, self.sm.count * self.sm.sub_cores),
            "l2.slice.sets": (self.l2.slice, self.address_map.slices),
        }
        for path, (cache, copies) in parts.items():
            if (lines := cache.sets * cache.ways * copies) > MOST_LINES:
                raise _wrong(
                    path,
                    f"found {cache.sets} sets of {cache.ways} ways in {copies} caches, {lines:,} lines; "
                    f"expected at most {MOST_LINES:,}",
                )

    def _check_constants(self) -> None:
        if self.constant_cache.perfect:
            return
        if self.sm.register_file.model != "read_ports":
            raise _wrong(
                "constant_cache.perfect",
                "found false, expected true with sm.register_file.model = "
                f"{self.sm.register_file.model!r}: constant caches are simulated with read_ports only",
            )
        path = "sm.front_end.instruction_cache"
        behind = self.sm.front_end.instruction_cache
        if behind.l1_shared_by > 1:
            raise _wrong(
                "constant_cache.perfect",
                f"found false, expected true with {path}.l1_shared_by = {behind.l1_shared_by}: "
                "misses go to an SM's own L1 instruction cache",
            )
        line = self.constant_cache.l1.line_bytes
        if behind.l1.bytes == 0 or behind.l1.line_bytes < line:
            raise _wrong(
                f"{path}.l1.line_bytes",
                f"found {behind.l1.line_bytes} bytes in a cache of {behind.l1.bytes}, expected lines of at "
                f"least {line}, those of constant_cache.l1",
            )

    @property
    def sources(self) -> Mapping[str, str]:
        """Source of each value, by its path (`sm.units.fp32.latency`)."""
        return self._sources

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of all values that the engine sees, without the name: the same for equal machines."""
        values = self._engine_values()
        del values["name"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def values(self) -> dict[str, Any]:
        """The values as plain nested dicts, as in the TOML file."""
        return self.model_dump(mode="json")

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Each value with its path, in the order of the models."""

        def walk(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
            for key, value in table.items():
                if isinstance(value, dict):
                    yield from walk(f"{prefix}{key}.", value)
                else:
                    yield prefix + key, value

        return walk("", self.values())

    def differences(self, other: Spec) -> list[tuple[str, Any, Any]]:
        """Path, value here and value there of each field that differs, name and description aside."""
        pairs = zip(self.leaves(), other.leaves(), strict=True)
        return [
            (path, here, there)
            for (path, here), (_, there) in pairs
            if here != there and path not in ("name", "description")
        ]

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Bytes a core cycle that the data buses of all channels move at most."""
        each = self.dram.bus_bytes * self.dram.data_command_ratio
        return self.address_map.channels * each * self.clock.dram_mhz / self.clock.core_mhz

    @property
    def l2_lines(self) -> int:
        """Lines of the whole L2."""
        return self.l2.slice.sets * self.l2.slice.ways * self.address_map.slices

    def native(self, policy: Mapping[str, int] | None = None) -> dict[str, Any]:
        """The dict from which the engine makes its `simt::Spec`.

        Args:
            policy: addresses of compiled policy functions: `scheduler`, `l1_replacement`, `l2_replacement`,
                `slice_hash` (signatures: engine/timing/policy.hpp).

        Raises:
            SpecError: a policy is `custom` without a function, or a function is given for one that is not.
        """
        choices = {
            "scheduler": ("sm.scheduler.policy", self.sm.scheduler.policy),
            "l1_replacement": ("l1.cache.replacement", self.l1.cache.replacement),
            "l2_replacement": ("l2.slice.replacement", self.l2.slice.replacement),
            "slice_hash": ("address_map.hash", self.address_map.hash),
        }
        given = dict(policy or {})
        if unknown := sorted(set(given) - set(choices)):
            raise SpecError(
                f"{self.name}: there is no policy called {unknown[0]!r}; there are {', '.join(choices)}"
            )
        for key, (path, value) in choices.items():
            if value == "custom" and not given.get(key):
                raise SpecError(
                    f"{self.name}: {path} is custom but no function was given for policy {key!r}; "
                    "give one or choose a built-in policy"
                )
            if value != "custom" and given.get(key):
                raise SpecError(
                    f"{self.name}: a function was given for policy {key!r} but {path} is {value!r}; "
                    f"set {path}=custom to use it"
                )
        return {**self._engine_values(), "policy": {key: given.get(key, 0) for key in choices}}

    def _engine_values(self) -> dict[str, Any]:
        values = self.values()
        del values["description"]
        del values["dram"]["capacity_gib"]  # programs see it, timing does not
        values["clock"] = {
            f"{field.removesuffix('_mhz')}_khz": round(mhz * 1000) for field, mhz in values["clock"].items()
        }
        return values

    def __repr__(self) -> str:
        return (
            f"Spec({self.name!r}: {self.sm.count} SMs of compute capability {self.sm_version // 10}."
            f"{self.sm_version % 10} at {self.clock.core_mhz:g} MHz, hash {self.hash[:12]})"
        )

    __str__ = __repr__
