"""Opcode tables, and how the engine classifies opcodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from slow_reader import cta, header

import simt
from simt.errors import OpcodeTableError
from simt.isa import MemorySpace, OpcodeTable, Operation, Unit, builtin_tables, load_table, table_for
from simt.power import load_energies
from simt.power.fit import to_toml
from simt.trace import open_trace


def classified(
    tmp_path: Path, *lines: str, sm: int = 80, table: OpcodeTable | None = None
) -> list[dict[str, Any]]:
    path = tmp_path / "kernel-1.traceg"
    path.write_text(
        header(5, binary_version=sm) + cta("0,0,0", [f"{i:03x}0 {line}" for i, line in enumerate(lines)])
    )
    return open_trace(path).kernels[0].source(table).instructions()


@pytest.mark.parametrize(
    ("opcode", "sm", "unit", "operation", "space"),
    [
        ("FFMA", 70, Unit.Fp32, Operation.Arithmetic, MemorySpace.None_),
        ("IMAD.WIDE", 70, Unit.Multiply, Operation.Arithmetic, MemorySpace.None_),
        ("FMNMX", 70, Unit.Compare, Operation.Arithmetic, MemorySpace.None_),
        ("DFMA", 70, Unit.Fp64, Operation.Arithmetic, MemorySpace.None_),
        ("MUFU.RCP", 70, Unit.Sfu, Operation.Arithmetic, MemorySpace.None_),
        ("HMMA.884.F32.F32.STEP0", 70, Unit.Tensor, Operation.Arithmetic, MemorySpace.None_),
        ("BRA", 70, Unit.Branch, Operation.Branch, MemorySpace.None_),
        ("EXIT", 70, Unit.Int, Operation.Exit, MemorySpace.None_),
        ("NOP", 70, Unit.Int, Operation.Nop, MemorySpace.None_),
        ("LDC.64", 70, Unit.Int, Operation.Load, MemorySpace.Constant),
        ("TEX.SCR.B", 70, Unit.Texture, Operation.Load, MemorySpace.Texture),
        ("MEMBAR.SC.GPU", 70, Unit.Memory, Operation.MemoryBarrier, MemorySpace.None_),
        ("BAR.SYNC", 70, Unit.Int, Operation.Barrier, MemorySpace.None_),
        ("BAR.ARV", 70, Unit.Int, Operation.BarrierArrive, MemorySpace.None_),
        ("XMAD.MRG", 61, Unit.Int, Operation.Arithmetic, MemorySpace.None_),
        ("SSY", 35, Unit.Int, Operation.Branch, MemorySpace.None_),
        ("ULDC.64", 80, Unit.Uniform, Operation.Arithmetic, MemorySpace.None_),
        ("IMMA.16832.S8.S8", 80, Unit.Tensor, Operation.Arithmetic, MemorySpace.None_),
        ("LDGDEPBAR", 80, Unit.Int, Operation.AsyncCommit, MemorySpace.None_),
        ("HGMMA.64x128x16.F32", 90, Unit.Tensor, Operation.Arithmetic, MemorySpace.None_),
        ("VIADD", 90, Unit.Int, Operation.Arithmetic, MemorySpace.None_),
    ],
)
def test_classes(
    opcode: str, sm: int, unit: Unit, operation: Operation, space: MemorySpace, tmp_path: Path
) -> None:
    (s,) = classified(tmp_path, f"ffffffff 0 {opcode} 0 0 0", sm=sm)
    assert (s["unit"], s["operation"], s["space"], s["access_bytes"]) == (unit, operation, space, 0)


@pytest.mark.parametrize(
    ("opcode", "sm", "operation", "space", "size", "bypass"),
    [
        ("LDG.E", 80, Operation.Load, MemorySpace.Global, 4, False),
        ("LDG.E.SYS", 70, Operation.Load, MemorySpace.Global, 4, False),
        ("LDG.E.128.CONSTANT.SYS", 70, Operation.Load, MemorySpace.Global, 16, False),
        ("LDG.E.U8", 80, Operation.Load, MemorySpace.Global, 1, False),
        ("LDG.E.S16", 80, Operation.Load, MemorySpace.Global, 2, False),
        ("LDG.E.64.STRONG.GPU", 80, Operation.Load, MemorySpace.Global, 8, True),
        ("LDG.E.STRONG.SYS", 80, Operation.Load, MemorySpace.Global, 4, True),
        ("LDG.E.STRONG.SM", 80, Operation.Load, MemorySpace.Global, 4, False),
        ("STG.E.64", 80, Operation.Store, MemorySpace.Global, 8, False),
        ("LDL.LU", 80, Operation.Load, MemorySpace.Local, 4, False),
        ("STS.128", 80, Operation.Store, MemorySpace.Shared, 16, False),
        ("LDS.U.128", 70, Operation.Load, MemorySpace.Shared, 16, False),
        ("LDSM.16.M88.4", 80, Operation.Load, MemorySpace.Shared, 16, False),
        ("LD.E", 80, Operation.Load, MemorySpace.Generic, 4, False),
        ("ATOMS.ADD", 80, Operation.Atomic, MemorySpace.Shared, 4, False),
        ("ATOMG.E.ADD.STRONG.GPU", 80, Operation.Atomic, MemorySpace.Global, 4, True),
        ("ATOM.E.ADD.F64.RN.STRONG.GPU", 80, Operation.Atomic, MemorySpace.Generic, 8, True),
        ("RED.E.ADD.STRONG.GPU", 80, Operation.Reduction, MemorySpace.Global, 4, True),
        ("LDGSTS.E.BYPASS.128", 80, Operation.AsyncCopy, MemorySpace.Global, 16, True),
        ("LDGSTS.E.128", 80, Operation.AsyncCopy, MemorySpace.Global, 16, False),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", 90, Operation.MbarrierWait, MemorySpace.Shared, 8, False),
        ("SYNCS.ARRIVE.TRANS64.A1T0", 90, Operation.MbarrierArrive, MemorySpace.Shared, 8, False),
        ("ARRIVES.LDGSTSBAR.64", 80, Operation.MbarrierArrive, MemorySpace.Shared, 8, False),
        ("REDG.E.ADD.F32.FTZ.RN", 90, Operation.Reduction, MemorySpace.Global, 4, True),
    ],
)
def test_memory_accesses(
    opcode: str, sm: int, operation: Operation, space: MemorySpace, size: int, bypass: bool, tmp_path: Path
) -> None:
    (s,) = classified(tmp_path, f"ffffffff 0 {opcode} 2 R2 R8 4 1 0x7f0000000000 4 0", sm=sm)
    found = (s["operation"], s["space"], s["access_bytes"], s["bypass_l1"], s["unit"])
    assert found == (operation, space, size, bypass, Unit.Memory)


@pytest.mark.parametrize(
    ("operands", "destination", "sources"),
    [
        ("1 R4 LDG.E.128 1 R2 16 1 0x0 16 0", 4, [2]),
        ("1 R4 LDG.E.64 1 R2 8 1 0x0 8 0", 2, [2]),
        ("1 R4 LDG.E.U8 1 R2 1 1 0x0 1 0", 1, [2]),
        ("1 R4 LDS.128 1 R2 16 1 0x0 16 0", 4, [1]),
        ("0 STG.E.128 2 R2 R8 16 1 0x0 16 0", None, [2, 4]),
        ("0 STS.64 2 R2 R8 8 1 0x0 8 0", None, [1, 2]),
        ("0 LDGSTS.E.BYPASS.128 2 R2 R8 16 1 0x0 16 0", None, [1, 2]),
        ("1 R4 LDSM.16.M88.4 1 R2 16 1 0x0 16 0", 4, [1]),
        ("1 R4 LDSM.16.MT88.2 1 R2 16 1 0x0 16 0", 2, [1]),
        ("1 R4 LDSM.16.M88 1 R2 16 1 0x0 16 0", 1, [1]),
        ("1 R4 IMAD.WIDE 3 R2 R3 R8 0 0", 2, [1, 1, 2]),
        ("1 R4 IMAD.WIDE 2 R2 R3 0 0", 2, [1, 1]),
        ("1 R4 IMAD 3 R2 R3 R8 0 0", 1, [1, 1, 1]),
        ("1 R4 DFMA 3 R2 R6 R8 0 0", 2, [2, 2, 2]),
        ("1 R4 HMMA.884.F32.F32.STEP0 3 R2 R6 R8 0 0", 2, [2, 2, 2]),
        ("1 R4 HMMA.1688.F32 3 R2 R6 R8 0 0", 4, [2, 1, 4]),
        ("1 R4 HMMA.1688.F32.TF32 3 R2 R6 R8 0 0", 4, [4, 2, 4]),
        ("1 R4 HMMA.16816.F32 3 R2 R6 R8 0 0", 4, [4, 2, 4]),
        ("1 R4 HMMA.16816.F16 3 R2 R6 R8 0 0", 2, [4, 2, 2]),
        ("1 R4 IMMA.16832.S8.S8 3 R2 R6 R8 0 0", 4, [4, 2, 4]),
        ("1 R4 IMMA.16832.S4.S4 3 R2 R6 R8 0 0", 4, [2, 1, 4]),
        ("1 R4 QMMA.16832.F32.E4M3.E5M2 3 R2 R6 R8 0 0", 4, [4, 2, 4]),
        ("1 R4 QMMA.16816.F16.E4M3.E4M3 3 R2 R6 R8 0 0", 2, [2, 1, 2]),
        ("1 R4 HMMA.SP.16816.F32 4 R2 R6 R8 R1 0 0", 4, [2, 2, 4, 1]),
        ("1 R4 HMMA.SP.16832.F16 4 R2 R6 R8 R1 0 0", 2, [4, 4, 2, 1]),
        ("1 R4 HMMA.SP.16816.F32.TF32 4 R2 R6 R8 R1 0 0", 4, [4, 4, 4, 1]),
        ("1 R4 IMMA.SP.16864.U4.S4 4 R2 R6 R8 R1 0 0", 4, [2, 2, 4, 1]),
        ("1 R4 IMMA.SP.16864.S8.U8 4 R2 R6 R8 R1 0 0", 4, [4, 4, 4, 1]),
        ("1 R4 QMMA.SP.16864.F32.E4M3.E5M2 4 R2 R6 R8 R1 0 0", 4, [4, 4, 4, 1]),
        ("1 R4 DMMA.884 3 R2 R6 R8 0 0", 4, [2, 2, 4]),
        ("1 R4 CS2R 0 0 0", 2, []),
        ("1 R4 CS2R.32 0 0 0", 1, []),
        ("1 R4 F2F.F64.F32 1 R2 0 0", 2, [1]),
        ("1 R4 F2F.F32.F64 1 R2 0 0", 1, [2]),
        ("1 R4 I2F.F64 1 R2 0 0", 2, [1]),
        ("1 R4 F2I.F64.TRUNC 1 R2 0 0", 1, [2]),
    ],
)
def test_register_widths(operands: str, destination: int | None, sources: list[int], tmp_path: Path) -> None:
    (s,) = classified(tmp_path, f"ffffffff {operands}")
    assert [r[2] for r in s["destinations"]] == ([] if destination is None else [destination])
    assert [r[2] for r in s["sources"]] == sources


def test_warp_group_accumulators(tmp_path: Path) -> None:
    (s,) = classified(tmp_path, "ffffffff 1 R24 HGMMA.64x256x16.F32 1 R24 0 0", sm=90)
    assert (s["destinations"][0][2], s["sources"][0][2]) == (128, 128)


def test_half_precision(tmp_path: Path) -> None:
    found = classified(tmp_path, *(f"ffffffff 0 {o} 0 0 0" for o in ("HFMA2.MMA", "HADD2", "FFMA")))
    assert [s["half_precision"] for s in found] == [True, True, False]


@pytest.mark.parametrize(
    ("immediate", "barrier", "threads"), [(0, 0, 0), (3, 3, 0), (15, 15, 0), (16, 1, 16), (128, 1, 128)]
)
def test_barrier_numbers_and_thread_counts(
    immediate: int, barrier: int, threads: int, tmp_path: Path
) -> None:
    (s,) = classified(tmp_path, f"ffffffff 0 BAR.SYNC 0 0 {immediate}")
    assert (s["immediate"], s["immediate2"]) == (barrier, threads)


def test_depbar_waits_for_copies_only_where_there_are_any(tmp_path: Path) -> None:
    wait = "ffffffff 0 DEPBAR.LE 0 0 1"
    assert classified(tmp_path, wait)[0]["operation"] == Operation.Arithmetic
    assert classified(tmp_path, wait, "ffffffff 0 LDGDEPBAR 0 0 0")[0]["operation"] == Operation.AsyncWait


def test_membar_scope(tmp_path: Path) -> None:
    found = classified(tmp_path, *(f"ffffffff 0 MEMBAR.SC.{s} 0 0 0" for s in ("CTA", "GPU", "SYS")))
    assert [s["bypass_l1"] for s in found] == [False, True, True]


def test_bulk_copies(tmp_path: Path) -> None:
    payload = "16 4 0x1000 2 64 0"
    opcodes = ("UTMALDG.2D", "UTMASTG.2D", "UBLKCP.S.G", "UBLKCP.G.S")
    found = classified(tmp_path, *(f"00000001 0 {o} 0 {payload}" for o in opcodes), sm=90)
    loads = [Operation.BulkLoad, Operation.BulkStore, Operation.BulkLoad, Operation.BulkStore]
    assert [(s["unit"], s["operation"]) for s in found] == [(Unit.Tma, o) for o in loads]


@pytest.mark.parametrize(
    ("mnemonic", "addresses", "destination", "operation", "nearest"),
    [
        ("IADD64", False, True, Operation.Arithmetic, "IADD"),
        ("VIADD", False, True, Operation.Arithmetic, "the same opcode of another architecture"),
        ("ZZZ", False, True, Operation.Arithmetic, "an integer operation"),
        ("ZZZ", True, True, Operation.Load, "a generic load"),
        ("ZZZ", True, False, Operation.Store, "a generic store"),
        ("LDGX", True, True, Operation.Load, "LDG"),
        ("LDGX", False, True, Operation.Arithmetic, "an integer operation"),
        ("EXIT2", False, False, Operation.Arithmetic, "an integer operation"),
        ("BARX", False, False, Operation.Arithmetic, "an integer operation"),
    ],
)
def test_unknown_opcodes(
    mnemonic: str, addresses: bool, destination: bool, operation: Operation, nearest: str
) -> None:
    _, found, _, _, exact, near = table_for(80)[0].native.find(mnemonic, addresses, destination)
    assert (found, exact, near) == (operation, False, nearest)


def test_unknown_opcodes_warn_once(tmp_path: Path) -> None:
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header() + cta("0,0,0", ["0000 1 0 FROB.X 0 0 0", "0010 1 0 FROB.Y 0 0 0"]))
    trace = open_trace(path)
    trace.kernels[0].source()
    trace.kernels[0].source()
    assert trace.warnings == ["opcode FROB is not in the ampere table; simulated as an integer operation"]


@pytest.mark.parametrize(
    ("sm", "name", "warns"),
    [
        (35, "kepler", False),
        (52, "pascal", False),
        (61, "pascal", False),
        (70, "volta", False),
        (75, "turing", False),
        (86, "ampere", False),
        (89, "ampere", False),
        (90, "hopper", False),
        (100, "blackwell", False),
        (120, "blackwell", False),
        (122, "blackwell", True),
        (95, "hopper", True),
        (20, "kepler", True),
        (0, "blackwell", True),
    ],
)
def test_tables_by_sm_version(sm: int, name: str, warns: bool) -> None:
    table, warning = table_for(sm)
    assert (table.name, warning is not None) == (name, warns)


def test_every_builtin_table_knows_the_basics() -> None:
    for table in builtin_tables().values():
        assert {"FFMA", "LDG", "LDS", "STS", "BAR", "EXIT", "BRA", "MUFU", "DFMA", "MEMBAR"} <= set(
            table.opcodes
        )


@pytest.mark.parametrize(
    ("opcode", "unit"),
    [
        ("FFMA2", Unit.Fp32),
        ("LDCU.64", Unit.Uniform),
        ("QMMA.16832.F32.E4M3.E4M3", Unit.Tensor),
        ("UTCHMMA", Unit.Tensor),
        ("HGMMA.64x64x16.F32", Unit.Tensor),
        ("UMEMSETS.64", Unit.Memory),
    ],
)
def test_opcodes_of_blackwell(opcode: str, unit: Unit, tmp_path: Path) -> None:
    (found,) = classified(tmp_path, f"ffffffff 0 {opcode} 0 0 0", table=load_table("blackwell"))
    assert found["unit"] == unit


@pytest.mark.parametrize("power", [False, "h100"])
def test_opcodes_that_are_not_modelled_warn_with_a_count(power: bool | str, tmp_path: Path) -> None:
    """Also where a table has a class for them that stands in for what they do."""
    lines = [f"{i:02x}0 00000001 0 UTCHMMA.2CTA 0 0 0" for i in range(5)]
    lines += [
        "050 ffffffff 0 LDTM.x32 0 0 0",
        "060 ffffffff 0 FROB.X 0 0 0",
        "068 00000001 0 UTCCP.T.S 0 0 0",
    ]
    lines += ["070 ffffffff 1 R8 HMMA.16816.F32 2 R4 R6 0 0", "080 ffffffff 0 EXIT 0 0 0"]
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header(5, binary_version=100) + cta("0,0,0", lines))
    result = simt.simulate(path, gpu="rtx5090", power=power)
    about = [x for x in result.warnings if "warp instruction" in x]
    assert [x for x in about if "energy" not in x] == [
        "1 warp instruction of FROB simulated as the nearest known opcode: it is in no opcode table",
        "1 warp instruction of UTCCP simulated as one instruction of unit uniform: the trace does not have "
        "its size",
        "5 warp instructions of UTCHMMA simulated as one product of 128 x 256 into tensor memory: the trace "
        "does not have its shape",
    ]
    assert [x.split(" without")[0] for x in about if "energy" in x] == (
        ["1 warp instruction of FROB", "5 warp instructions of UTCHMMA"] if power else []
    )


def test_energies_of_ones_own_opcodes(tmp_path: Path) -> None:
    """They are not counted as integer additions, and there is no warning of it, also in a loaded Result."""
    (tmp_path / "mine.toml").write_text(
        to_toml(load_energies("h100")) + '[opcodes]\nFROB = "instructions.sfu"\n'
    )
    lines = ["000 ffffffff 0 FROB.X 0 0 0", "010 ffffffff 0 GROB 0 0 0", "020 ffffffff 0 EXIT 0 0 0"]
    path = tmp_path / "kernel-1.traceg"
    path.write_text(header(5, binary_version=90) + cta("0,0,0", lines))
    result = simt.simulate(path, gpu="h100", power=tmp_path / "mine.toml")
    about = [x.split(" without")[0] for x in result.warnings if "without an energy" in x]
    assert about == ["1 warp instruction of GROB"]
    loaded = simt.Result.load(result.save(tmp_path / "out"))
    for each in (result, loaded):
        assert each.launches[0].energy.classes["sfu"] > 0 < each.launches[0].energy.classes["int_add"]


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'extends = "ampere"\nsm_versions = [80]\n[classes]\nray = { unit = "texture" }\n'
        '[opcodes]\nray = ["RTCORE"]\ninteger = ["FFMA"]\n'
    )
    table = load_table(path)
    assert table.name == "mine"
    found = classified(tmp_path, *(f"ffffffff 0 {o} 0 0 0" for o in ("RTCORE", "FFMA", "FADD")), table=table)
    assert [s["unit"] for s in found] == [Unit.Texture, Unit.Int, Unit.Fp32]
    assert load_table("volta").name == "volta"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("opcodes = [", "not a TOML file"),
        ("colour = 1", "unknown key 'colour'"),
        ('extends = "fermi"', "expected one of ampere"),
        ("extends = 3", "expected the name of a table"),
        ('extends = "bad.toml"', "is circular"),
        ("sm_versions = 80", "expected a list"),
        ('[opcodes]\nfast = ["FFMA"]', "opcodes.fast is not a class"),
        ('[opcodes]\ninteger = "IADD"', "must be a list"),
        ('[opcodes]\ninteger = ["iadd.x"]', "expected an opcode"),
        ('[opcodes]\ninteger = ["A"]\nfloat = ["A"]', "listed under integer and float"),
        ('stand_ins = ["FFMA"]', "stand_ins is ['FFMA'], expected a list of opcodes"),
        ('[classes]\nx = { unit = "gpu" }', "classes.x.unit is 'gpu'"),
        ("[classes]\nx = { speed = 3 }", "unknown field 'speed'"),
        ('[classes]\nx = { unit = "int", half_precision = 1 }', "expected true or false"),
    ],
)
def test_bad_tables(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(OpcodeTableError) as caught:
        load_table(path)
    assert reason in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_table(tmp_path: Path) -> None:
    with pytest.raises(OpcodeTableError, match="cannot read"):
        load_table(tmp_path / "none.toml")
