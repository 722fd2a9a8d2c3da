"""Types of the dicts that `simt._engine` takes and returns, for type checkers and readers.

The engine's C++ makes and reads the dicts (engine/bindings); `tests/engine/test_interface.py` compares what
it gives with these types. Nothing here is needed at run time.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from typing_extensions import NotRequired

from simt._engine import LaunchCode, MemorySpace, OpcodeTable, Operation, Unit

Dim3 = tuple[int, int, int]
CacheLookups = dict[str, dict[str, int]]
"""Sectors, by kind of access and outcome."""
Registers = list[tuple[int, int, int]]
"""Index, file (0: R, 1: UR, 2: P, 3: UP) and number of consecutive 32-bit registers."""

# --- the timing engine --------------------------------------------------------------------------------------


class EngineProgress(TypedDict):
    """How far the engine has come. running: numbers of the launches under way."""

    cycle: int
    warp_instructions: int
    ctas_done: int
    ctas_total: int
    launches_done: int
    running: list[int]


class RawSampling(TypedDict):
    """What became of a launch under a controller.

    decisions: cycle, kind and reason of each. detailed_cycle: up to which everything was simulated.
    released_cycle: from which on other launches have the GPU. executed: warp and thread instructions of the
    part that was executed without timing, if it was counted.
    """

    decisions: list[tuple[int, Literal["stop", "skip", "predict"], str]]
    predicted_ctas: int
    skipped_ctas: int
    stopped: bool
    detailed_cycle: int
    released_cycle: int
    executed: tuple[int, int] | None


class RawInstructions(TypedDict):
    """Columns with a row per static instruction that was executed, or at which a warp waited.

    reads, writes: 32-bit general registers of a lane. stalled: samples by reason, every `sample_interval`
    cycles.
    """

    pc: list[int]
    opcode: list[str]
    source_line: list[int]
    text: list[str]
    reads: list[int]
    writes: list[int]
    issued: list[int]
    threads: list[int]
    stalled: dict[str, list[int]]
    sample_interval: int
    ptx: NotRequired[list[str]]
    source_file: NotRequired[list[str]]
    source_text: NotRequired[list[str]]


class RawTimeline(TypedDict):
    """Columns with a row per interval. cycle: its end. stalls, warp_stalls: by reason. dram_*: a row per
    interval, of a number per channel. dram_banks, instructions: columns of 32-bit numbers, see
    `simt.result.timeline.ROWS`.
    """

    interval: int
    cycle: list[int]
    warp_instructions: list[int]
    thread_instructions: list[int]
    active_warps: list[int]
    ctas: list[int]
    ctas_finished: list[int]
    finished_instructions: list[int]
    l1_accesses: list[int]
    l1_hits: list[int]
    l2_accesses: list[int]
    l2_hits: list[int]
    stalls: dict[str, list[int]]
    warp_stalls: dict[str, list[int]]
    dram_reads: list[list[int]]
    dram_writes: list[list[int]]
    dram_bus_cycles: list[list[int]]
    dram_pending_cycles: list[list[int]]
    dram_banks: dict[str, bytes]
    instructions: dict[str, bytes]


class RawAccess(TypedDict):
    """One access of a finding. what: empty if there is none. line: 0 if it is not known."""

    what: str
    file: str
    line: int
    inner: str
    position: str
    instruction: str
    thread: Dim3
    block: Dim3
    address: int
    space: str
    object: str
    kernel: str


class RawFinding(TypedDict):
    """What the checker has found. detail: what is wrong, where the kind does not tell."""

    check: str
    kind: str
    kernel: str
    detail: str
    first: RawAccess
    second: RawAccess
    count: int


class RawLaunch(TypedDict):
    """A launch that the engine has finished. `code.parts(numbers)` makes the RawLaunchParts."""

    id: int
    stream: int
    start_cycle: int
    end_cycle: int
    launch_latency: int
    occupancy_limit_ctas: int
    occupancy_limited_by: str
    l1_bytes: int
    shared_carve_out_bytes: int
    clock_khz: int
    code: LaunchCode
    numbers: bytes
    timeline: RawTimeline | None  # None without intervals
    warnings: list[str]
    sampled: RawSampling | None


class RawLaunchParts(TypedDict):
    """What most finished launches are never asked for. stalls: scheduler cycles by reason and scheduler."""

    engine: dict[str, int]
    l1: CacheLookups
    l2: CacheLookups
    stalls: dict[str, list[int]]
    warp_stalls: dict[str, int]
    pc: RawInstructions
    spread: dict[str, dict[str, list[int]]]


class ControlAnswer(TypedDict):
    """A controller's decision. kind: 1 stop, 2 skip, 3 predict; the rest is that of `Skip` and `Predict`."""

    kind: Literal[1, 2, 3]
    reason: str
    ctas: NotRequired[int]
    recent: NotRequired[float]
    warp_cycles: NotRequired[float]
    block_cycles: NotRequired[list[float]]
    launch_cycles: NotRequired[float]
    executes: NotRequired[bool]
    keeps_l2: NotRequired[bool]
    residents: NotRequired[bool]
    sm_scale: NotRequired[list[float]]
    sm_warps: NotRequired[list[float]]
    fastest: NotRequired[float]
    in_turn: NotRequired[bool]


class DecodedInstruction(TypedDict):
    """A static instruction of a launch, as the timing model sees it. constant_operand: its place among the
    sources of one that reads constant memory.
    """

    pc: int
    opcode: str
    source_line: int
    immediate: int
    immediate2: int
    unit: Unit
    operation: Operation
    space: MemorySpace
    access_bytes: int
    half_precision: bool
    bypass_l1: bool
    constant_operand: int | None
    destinations: Registers
    sources: Registers


# --- specifications -----------------------------------------------------------------------------------------


class SpecField(TypedDict):
    """A field of a section. of: the enum, kind of policy or section, for such a type. least, most,
    power_of_two: of a number. absent: the value, 0 or 1 of a flag, where a specification does not give it.
    """

    name: str
    unit: str
    meaning: str
    type: Literal[
        "enum", "flag", "frequency", "integer", "integers", "opcodes", "policy", "section", "sections", "text"
    ]
    of: NotRequired[str]
    least: NotRequired[int]
    most: NotRequired[int]
    power_of_two: NotRequired[bool]
    absent: NotRequired[int]


class SpecSection(TypedDict):
    name: str
    meaning: str
    fields: list[SpecField]


class SpecSchema(TypedDict):
    """sections: each after those that it contains. enums: the meaning of each name, by enum."""

    sections: list[SpecSection]
    enums: dict[str, dict[str, str]]


class PolicyFacts(TypedDict):
    """A registered policy. The limits are those of its kind: 0 or False is none."""

    meaning: str
    source: str
    most_sets: NotRequired[int]
    power_of_two_channels: NotRequired[bool]
    exact_slices: NotRequired[int]
    most_slices: NotRequired[int]


# --- programs -----------------------------------------------------------------------------------------------


class MachineFacts(TypedDict):
    """What the executing machine is like; what is not given has a default (engine/machine/grid.hpp)."""

    sm_version: NotRequired[int]
    exact_tensor_arithmetic: NotRequired[int]
    sm_count: NotRequired[int]
    core_khz: NotRequired[int]
    warps_per_sm: NotRequired[int]
    threads_per_cta: NotRequired[int]
    shared_bytes_per_cta: NotRequired[int]
    resident_ctas: NotRequired[int]
    stack_limit: NotRequired[int]


class LoadedKernel(TypedDict):
    """A kernel of a loaded module. parameters: offset, size and PTX's type of each. stored_parameters: 8-byte
    words of the parameters through which it may write.
    """

    index: int
    name: str
    parameters: list[tuple[int, int, str]]
    parameter_bytes: int
    shared_bytes: int
    stack_bytes: int
    registers: int
    max_live: int
    max_threads: list[int]
    required_threads: list[int]
    cluster: list[int]
    order_sensitive: bool
    stored_parameters: list[int]


class CodeSection(TypedDict):
    """A kernel or function of machine code; see `simt.sass.cubin.CubinKernel`.

    lines: predicate, opcode, operands, low and high word, file and line of each instruction. functions: name
    and first byte. parameters: offset, size, PTX's type. constants: contents of the banks, and the address of
    what is in memory, else 0.
    """

    name: str
    is_kernel: bool
    lines: list[tuple[str, str, list[str], int, int, int, int]]
    functions: list[tuple[str, int]]
    registers: int
    shared_bytes: int
    reserved_shared: int
    allocation_mbarrier: int
    allocation_parity: int
    stack_bytes: int
    calls: bool
    parameters: list[tuple[int, int, str]]
    parameter_base: int
    max_threads: Dim3
    required_threads: Dim3
    cluster: Dim3
    constants: dict[int, tuple[bytes, int]]


class LoadableCode(TypedDict):
    """A module of machine code, bound to its addresses."""

    name: str
    sm: int
    opcodes: OpcodeTable
    independent_samplers: bool
    files: list[str]
    sections: list[CodeSection]
    system_functions: list[str]


class TextureFields(TypedDict):
    """What a texture, a sampler or a surface is: those from `levels` on of texels in memory, those from
    `filter` on of how they are sampled. levels: address, bytes from row to row and from layer to layer,
    width, height, layers or depth.
    """

    levels: NotRequired[list[tuple[int, int, int, int, int, int]]]
    geometry: NotRequired[str]
    channel: NotRequired[str]
    channels: NotRequired[int]
    channel_bytes: NotRequired[int]
    linear_memory: NotRequired[bool]
    normalized_float: NotRequired[bool]
    srgb: NotRequired[bool]
    mipmapped: NotRequired[bool]
    filter: NotRequired[str]
    normalized: NotRequired[bool]
    force_unnormalized: NotRequired[bool]
    level_filter: NotRequired[str]
    address: NotRequired[list[str]]
    border: NotRequired[list[float]]
    level_bias: NotRequired[float]
    least_level: NotRequired[float]
    most_level: NotRequired[float]


# --- PTX ----------------------------------------------------------------------------------------------------


class PtxTableRow(TypedDict):
    """A row of the instruction table; see `simt.isa.ptx.PtxRow`."""

    name: str
    opcode: str
    executable: bool
    forms: str
    later_forms: str
    memory: str
    space: str
    typed: bool
    control: str
    result: str
    copies: bool
    movable: bool
    machine_opcodes: list[str]


class PtxKernelFacts(TypedDict):
    """What a launch needs to know of a kernel. parameters: name, type, size, alignment and offset of each."""

    name: str
    parameters: list[tuple[str, str, int, int, int]]
    max_threads: Dim3
    required_threads: Dim3
    cluster: Dim3
    explicit_cluster: bool
    blocks_are_clusters: bool
    max_registers: int
    min_ctas: int


class PtxAllocation(TypedDict):
    """Registers of a function after allocation. places: of each register, None where it is never named."""

    places: list[int | None]
    registers: int
    predicates: int
    max_live: int


class PtxVariable(TypedDict):
    """relocations: offset, bytes, whether generic, shift, symbol and addend of each address in `initial`."""

    name: str
    space: str
    type: str
    linkage: str
    alignment: int
    size: int
    managed: bool
    line: int
    initial: bytes
    relocations: list[tuple[int, int, bool, int, str, int]]
    properties: dict[str, str]


class PtxOperand(TypedDict):
    """Fields without meaning for its kind are absent."""

    kind: str
    negated: NotRequired[bool]
    single: NotRequired[bool]
    local: NotRequired[bool]
    component: NotRequired[int]
    index: NotRequired[int]
    value: NotRequired[int]
    text: NotRequired[str]
    parts: NotRequired[list[PtxOperand]]


class PtxInstruction(TypedDict):
    """row: of the instruction table. begin, end: bytes of the text. location: file, line, column of the
    source. guard: index of the predicate register, or -1.
    """

    mnemonic: str
    opcode: str
    row: str
    modifiers: list[str]
    line: int
    begin: int
    end: int
    location: tuple[int, int, int] | None
    guard: int
    guard_negated: bool
    operands: list[PtxOperand]


class PtxFunction(TypedDict):
    """body_begin, body_end: bytes of the text. registers: name, type, elements. labels: name, index of an
    instruction. targets: name, labels (as indices), functions. prototypes: name, results, parameters."""

    name: str
    entry: bool
    defined: bool
    noreturn: bool
    linkage: str
    line: int
    body_begin: int
    body_end: int
    results: list[PtxVariable]
    parameters: list[PtxVariable]
    variables: list[PtxVariable]
    registers: list[tuple[str, str, int]]
    instructions: list[PtxInstruction]
    labels: list[tuple[str, int]]
    targets: list[tuple[str, list[int], list[str]]]
    prototypes: list[tuple[str, list[PtxVariable], list[PtxVariable]]]
    max_threads: Dim3
    required_threads: Dim3
    cluster: Dim3
    max_registers: int
    min_ctas: int
    explicit_cluster: bool
    blocks_are_clusters: bool
    stored_parameters: list[int]


class PtxDump(TypedDict):
    """A module of PTX. version: 83 for 8.3. files: number and name. aliases: name and function."""

    name: str
    version: int
    target: int
    target_suffix: str
    address_size: int
    files: list[tuple[int, str]]
    variables: list[PtxVariable]
    functions: list[PtxFunction]
    aliases: list[tuple[str, str]]
