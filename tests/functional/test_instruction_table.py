"""Every row of the PTX instruction table: its forms, its machine opcodes, and its facts."""

from __future__ import annotations

import re
import struct

import pytest

from simt import _engine
from simt.cuda import coverage
from simt.errors import DeadlockError, PtxError
from simt.isa import builtin_tables, table_for
from simt.isa.ptx import PtxRow, ptx_row, ptx_table

functional = _engine.functional
TABLES = list(builtin_tables().values())
ARCHITECTURES = [version for table in TABLES for version in table.sm_versions]
MACHINE = {
    "sm_version": 90,
    "sm_count": 8,
    "warps_per_sm": 64,
    "threads_per_cta": 1024,
    "shared_bytes_per_cta": 49152,
    "resident_ctas": 16,
}
ROWS = [row for row in ptx_table().values() if row.executable]


def forms(row: PtxRow) -> list[str]:
    """A row's forms, including those of newer architectures."""
    return coverage.forms([form for form in f"{row.forms} | {row.later_forms}".split(" | ") if form])


def instructions(row: PtxRow) -> list[str]:
    """The accepted forms of a row, as instructions."""
    memory = functional.DeviceMemory(1 << 22)
    lines = [coverage.instruction(form) for form in forms(row)]
    return [line for line in lines if coverage.refusal(line, memory) is None]


def parsed(line: str) -> dict[str, object]:
    """An instruction as the parser sees it."""
    functions = _engine.PtxModule(coverage.kernel([line]).encode()).dump()["functions"]
    found: dict[str, object] = functions[-1]["instructions"][0]
    return found


def machine_opcodes(lines: list[str], sm_version: int) -> list[str]:
    """The machine instructions for each instruction, in separate kernels."""
    module = functional.load(coverage.kernel(lines), "forms", functional.DeviceMemory(1 << 22))
    table, _ = table_for(sm_version)
    index = module.kernels["k0"]["index"]
    launch = functional.Launch(module, index, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, MACHINE)
    source = launch.source(bytes(8), 1, table.native, sm_version, 32, 0)
    names: list[str] = [i["opcode"] for i in source.instructions()]
    return names


def test_each_form_belongs_to_its_row() -> None:
    for row in ptx_table().values():
        for form in forms(row):
            assert parsed(coverage.instruction(form))["row"] == row.name, form


@pytest.mark.slow
@pytest.mark.parametrize("sm_version", ARCHITECTURES)
def test_each_form_becomes_machine_opcodes_that_a_gpu_knows(sm_version: int) -> None:
    known = {opcode for table in TABLES for opcode in table.opcodes}
    for row in ROWS:
        assert {opcode.split(".")[0] for opcode in row.machine_opcodes} <= known, row.name
        lines = instructions(row)
        assert lines, row.name
        assert {opcode.split(".")[0] for opcode in machine_opcodes(lines, sm_version)} <= known, row.name


@pytest.mark.parametrize(
    ("line", "opcodes"),
    [
        ("isspacep.shared %p0, %l0;", ["QSPC"]),
        ("isspacep.global %p0, %l0;", ["QSPC", "ISETP", "ISETP", "ISETP.EX", "ISETP.EX", "PLOP3.LUT"]),
        ("isspacep.const %p0, %l0;", ["ISETP", "ISETP", "ISETP.EX", "ISETP.EX"]),
        ("istypep.texref %p0, %l0;", ["LD.E", "LOP3.LUT", "ISETP.NE.EX"]),
        ("alloca.u64 %l0, %l1;", ["IADD3", "LOP3.LUT", "IMAD.MOV.U32"]),
        ("stacksave.u64 %l0;", ["MOV", "MOV"]),
        ("stackrestore.u64 %l0;", ["MOV"]),
        ("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [smem], %l0;", ["STS.64"]),
        ("tensormap.replace.tile.global_dim.global.b1024.b32 [%l0], 0, %r0;", ["IADD3", "STG.E"]),
        (
            "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [smem], 1;",
            ["LDS", "LOP3.LUT", "LOP3.LUT", "STS"],
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
            " [%l0], [smem], 128;",
            ["LDS", "IADD3", "IADD3.X", "ATOMG.E.EXCH.STRONG.GPU"],
        ),
    ],
)
def test_what_once_was_an_addition_is_what_ptxas_makes(line: str, opcodes: list[str]) -> None:
    """As disassembled from ptxas 12.9's code for sm_75, sm_80 and sm_90a, without the loads of operands."""
    empty = machine_opcodes([";"], 90)
    programs = [empty[:k] + opcodes + empty[k:] for k in range(len(empty))]
    assert machine_opcodes([line], 90) in programs


_INTEGERS = {"h": ("b16", 2), "r": ("b32", 4), "l": ("b64", 8)}


def _initial(register: str, salt: int) -> str:
    kind, number = register[1], int(register[2:])
    value = number + 2 + salt
    if kind == "p":
        return f"setp.ne.u32 {register}, {value % 2}, 0;"
    if kind == "q":
        return f"mov.b128 {register}, {{%l140, %l140}};"
    return f"mov.{_INTEGERS[kind][0]} {register}, {value};"


def _store(register: str, at: int) -> str:
    if register[1] == "p":
        return f"selp.u32 %r140, 1, 0, {register}; st.global.u32 [%l149+{at}], %r140;"
    if register[1] == "q":
        return f"st.global.b128 [%l149+{at}], {register};"
    return f"st.global.{_INTEGERS[register[1]][0]} [%l149+{at}], {register};"


def execute(line: str, salt: int) -> tuple[set[str], set[str], dict[str, bytes], dict[str, bytes]] | None:
    """Executes an instruction whose destinations initially hold values that depend on `salt`, as does the
    start of memory: (read, written, registers before, registers after). None if it faults, as most operands
    of memory instructions do here.
    """
    module = _engine.PtxModule(coverage.kernel([line]).encode())
    function = len(module.dump()["functions"]) - 1
    declared = [name for name, _, _ in module.dump()["functions"][function]["registers"]]
    reads, writes = ({declared[r] for r in registers} for registers in module.accesses(function, 0))
    names = sorted((reads | writes) - {"%l60"})
    begin = "ld.param.u64 %l149, [out]; mov.b64 %l140, 77; add.u64 %l60, %l149, 8192; "
    begin += " ".join(_initial(name, 64 * salt if name not in reads else 0) for name in names)
    stores = [" ".join(_store(n, base + 16 * k) for k, n in enumerate(names)) for base in (0, 4096)]
    text = coverage.kernel([f"{begin} {stores[0]} {line} {stores[1]}"])
    memory = functional.DeviceMemory(1 << 22)
    memory.allocate(4096 * (1 + salt), "displacement")
    out = memory.allocate(16384, "out")
    loaded = functional.load(text, "form", memory)
    try:
        index = loaded.kernels["k0"]["index"]
        launch = functional.Launch(loaded, index, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, MACHINE)
        launch.run(struct.pack("<Q", out), 1)
    except (functional.ProgramFault, DeadlockError):
        return None
    states = [{n: memory.read(out + base + 16 * k, 16) for k, n in enumerate(names)} for base in (0, 4096)]
    return reads, writes, states[0], states[1]


@pytest.mark.slow
def test_an_instruction_writes_what_its_row_says() -> None:
    """Registers that are only read keep their values; the values written depend neither on previous contents
    nor on memory addresses, unless the row says so.
    """
    executed = set()
    for row in ROWS:
        if row.control != "next":
            continue
        for line in instructions(row):
            first, second = execute(line, 0), execute(line, 1)
            assert (first is None) == (second is None), line
            if first is None or second is None:
                continue
            executed.add(row.name)
            reads, writes, before, behind = first
            for name in reads - writes - {"%l60"}:
                assert before[name] == behind[name], (line, name)
            is_address = row.copies or row.space == "texture" or "[out]" in line
            if row.result not in ("inputs", "late") or is_address:
                continue
            for name in writes - reads:
                assert behind[name] == second[3][name], (line, name)
    assert len(executed) > 110, sorted({row.name for row in ROWS} - executed)


def test_an_unknown_instruction_has_no_row() -> None:
    assert parsed("frobnicate.u32 %r0, %r1;")["row"] == ""
    assert parsed("mbarrier.frobnicate.b64 [smem];")["row"] == ""
    assert ptx_row("") == ptx_row("frobnicate")
    memory = functional.DeviceMemory(1 << 20)
    assert coverage.refusal("frobnicate.u32 %r0, %r1;", memory) == "this instruction is not supported"
    assert re.match(r"expected one of cp\.async, ", coverage.refusal("cp.bulk [%l0], [%l1];", memory) or "")
    with pytest.raises(PtxError, match=r"mbarrier\.init"):
        functional.load(coverage.kernel(["mbarrier.frobnicate.b64 [smem];"]), "form", memory)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("bar.sync 0;", "bar"),
        ("barrier.cta.red.popc.aligned.u32 %r0, 1, %p0;", "barrier.red"),
        ("cp.async.bulk.commit_group;", "cp.async.bulk.commit_group"),
        ("cp.async.commit_group;", "cp.async.commit_group"),
        ("wmma.load.c.sync.aligned.row.m16n16k16.f32 {%r0}, [%l0], %r1;", "wmma.load"),
        ("red.async.relaxed.cluster.add.u32 [%r0], %r1, [%r2];", "red.async"),
        ("mul24.lo.u32 %r0, %r1, %r2;", "mul24"),
    ],
)
def test_the_row_with_the_most_modifiers_counts(line: str, row: str) -> None:
    assert parsed(line)["row"] == row
