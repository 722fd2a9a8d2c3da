"""Machine code: control bits, cubins, instructions, and the command that shows them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simt
from simt.cli import main
from simt.cuda import compile_cuda, load, machine_code
from simt.errors import SassError
from simt.isa import table_for
from simt.sass import Control, Cubin, CubinParameter, Instruction, disassemble, disassembler
from simt.sass.disassembler import _lines, is_installed, split_operands
from support.sass import number_of, parameters_begin

SOURCE = """
__device__ __noinline__ float twice(float x, int n) {
  for (int i = 0; i < n; ++i) x = x * x + 1.0f;
  return x;
}
__constant__ float table[4] = {1, 2, 3, 4};
extern "C" __global__ void f(float* a, const float* b, int n, char c) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = b[i];
  __syncthreads();
  a[i] = twice(s[255 - threadIdx.x], n) + table[n & 3];
}
extern "C" __global__ void empty() {}
extern "C" __global__ void outer(float* c, const float* a, const float* b, int n) {
  float sum[4][4] = {};
  for (int k = 0; k < n; ++k) {
    float x[4], y[4];
    for (int i = 0; i < 4; ++i) x[i] = a[4 * k + i], y[i] = b[4 * k + i];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
  }
  for (int i = 0; i < 16; ++i) c[i] = sum[i / 4][i % 4];
}
"""
PROGRAMS = Path(__file__).parents[1] / "exec" / "cuda"
ARCHS = (
    "sm_80",
    "sm_90a",
    "sm_120",
    *(
        pytest.param(arch, marks=pytest.mark.slow)
        for arch in ("sm_70", "sm_75", "sm_86", "sm_89", "sm_90", "sm_100")
    ),
)

pytestmark = pytest.mark.skipif(
    not is_installed(),
    reason="nvdisasm is not installed: pip install 'simt[cuda]'",
)


@lru_cache
def cubin(arch: str = "sm_80") -> Cubin:
    module = compile_cuda(SOURCE, arch=arch)
    return Cubin.parse(machine_code(module, arch), "kernel.cu")


def control(
    stall: int = 0, no_yield: int = 1, write: int = 7, read: int = 7, waits: int = 0, reuse: int = 0
) -> int:
    """A high word with these control bits, and all other bits set."""
    bits = stall | no_yield << 4 | write << 5 | read << 8 | waits << 11 | reuse << 17
    return bits << 41 | (1 << 41) - 1 | 0b11 << 62


@pytest.mark.parametrize(
    "high, expected, text",
    [
        (control(), Control(0, False, None, None, (), ()), "------:--:--:-:S00"),
        (control(stall=15, no_yield=0), Control(15, True, None, None, (), ()), "------:--:--:Y:S15"),
        (control(write=0, read=5), Control(0, False, 0, 5, (), ()), "------:R5:W0:-:S00"),
        (control(waits=0b100001), Control(0, False, None, None, (0, 5), ()), "0----5:--:--:-:S00"),
        (control(reuse=0b1010), Control(0, False, None, None, (), (1, 3)), "------:--:--:-:S00"),
    ],
)
def test_control_bits(high: int, expected: Control, text: str) -> None:
    assert Control.of(high) == expected
    assert str(expected) == text


def test_operands_are_split_outside_brackets() -> None:
    assert split_operands("") == []
    assert split_operands("R1") == ["R1"]
    assert split_operands("R5[R2.64]") == split_operands("R5,[R2.64]") == ["R5", "[R2.64]"]
    for glued in ("R3desc,[UR4][R2.64],P0", "R3desc[UR4][R2.64],P0", "R3,desc[UR4][R2.64],P0"):
        assert split_operands(glued) == ["R3", "desc[UR4][R2.64]", "P0"]
    assert split_operands("R4.64desc,[UR4][R2]") == ["R4.64", "desc[UR4][R2]"]
    assert split_operands("desc,[UR4][R2.64],R5") == ["desc[UR4][R2.64]", "R5"]
    assert split_operands("R24,gdesc[UR8],!UPT") == ["R24", "gdesc[UR8]", "!UPT"]
    assert split_operands("R2,desc[UR4][R4.64+0x10],c[0x0][0x28],{R1,R2}") == [
        "R2", "desc[UR4][R4.64+0x10]", "c[0x0][0x28]", "{R1,R2}",
    ]  # fmt: skip


def test_lines_of_inlined_functions_are_the_innermost_of_the_program() -> None:
    text = """
\t.section\t.text.f,"ax",@progbits
\t//## File "a.h", line 3 inlined at "a.cu", line 9
\t//## File "a.cu", line 9
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   EXIT ;
\t//## File "a.cu", line 12
        /*0020*/                   NOP ;
\t//## File "/x/site-packages/inner.h", line 1 inlined at "/x/site-packages/outer.h", line 2
\t//## File "/x/site-packages/outer.h", line 2 inlined at "a.h", line 5
\t//## File "a.h", line 5 inlined at "a.cu", line 20
\t//## File "a.cu", line 20
        /*0030*/                   NOP ;
\t//## File "/x/site-packages/inner.h", line 1
        /*0040*/                   NOP ;
"""
    places = {
        0: ("a.h", 3), 16: ("a.h", 3), 32: ("a.cu", 12), 48: ("a.h", 5),
        64: ("/x/site-packages/inner.h", 1),
    }  # fmt: skip
    assert _lines(text) == {("f", address): place for address, place in places.items()}


def test_a_kernel_of_a_cubin() -> None:
    found = cubin()
    assert found.arch == "sm_80"
    assert sorted(x.name for x in found.kernels) == ["empty", "f", "outer"]
    f = found["f"]
    assert f.parameters == (
        CubinParameter(0, 8),
        CubinParameter(8, 8),
        CubinParameter(16, 4),
        CubinParameter(20, 1),
    )
    assert f.parameter_base == 0x160
    assert f.shared_bytes == 1024
    assert len(f.constants[3]) == 16 and f.constants[3][:4] == b"\0\0\x80\x3f"  # table
    assert [x.name.split("$")[-1] for x in f.functions] == ["_Z5twicefi"]
    assert 0 < f.registers < 64
    assert found["empty"].parameters == ()
    with pytest.raises(KeyError, match="no kernel 'g'; it has"):
        found["g"]


@pytest.mark.parametrize("arch", ARCHS)
def test_instructions(arch: str) -> None:
    found = cubin(arch)
    assert found.arch == arch
    assert found["f"].parameter_base == parameters_begin(arch)
    code = disassemble(found)["f"]
    assert [x.address for x in code] == list(range(0, len(found["f"].code), 16))
    opcodes = table_for(number_of(arch))[0].opcodes
    assert [x.opcode for x in code if x.opcode.partition(".")[0] not in opcodes] in ([], ["ULDC"])
    by_name = {x.opcode.partition(".")[0]: x for x in code}
    # Variable latencies raise a counter that is waited for; others are covered by stall counts.
    load = by_name["LDG"]
    assert load.control.write_barrier is not None
    assert any(load.control.write_barrier in x.control.waits for x in code[load.address // 16 + 1 :])
    assert all(
        x.control.write_barrier is None for x in code if x.opcode.startswith(("FFMA", "IADD3", "LOP3"))
    )
    assert all(x.control.stall >= 1 for x in code if x.opcode.startswith(("FFMA", "IMAD")))
    store = next(x for x in code if x.opcode.startswith("STS"))
    assert SOURCE.split("\n")[store.line - 1].strip().startswith("s[threadIdx.x] =")
    assert store.text == f"{store.opcode} {', '.join(store.operands)}"


@pytest.mark.parametrize("arch", ARCHS)
def test_the_reuse_bits_are_those_that_the_disassembler_prints(arch: str) -> None:
    printed = [
        (x, sum(".reuse" in operand for operand in x.operands)) for x in disassemble(cubin(arch))["outer"]
    ]
    assert [len(x.control.reuse) for x, _ in printed] == [n for _, n in printed]
    assert sum(n for _, n in printed) > 0


@pytest.mark.parametrize("text", ["PR,R64.reuse,0x6", "R64.reuse,0x6"])
def test_predicates_that_nvdisasm_leaves_out(text: str) -> None:
    """Its JSON lacks PR in some R2P, whose bits are the same as those of the others."""
    assert split_operands(text, "R2P") == ["PR", "R64.reuse", "0x6"]


@pytest.mark.parametrize(
    ("ends", "message"),
    [("kill -SEGV $$", r"nvdisasm crashed \(SIGSEGV\)"), ("echo no >&2; exit 1", "nvdisasm refuses it: no")],
)
def test_nvdisasm_that_fails(
    ends: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVIDIA's crashes on some large files that are not linked."""
    tool = tmp_path / "nvdisasm"
    tool.write_text(f'#!/bin/sh\n[ "$1" = -json ] && {{ {ends}; }}\necho "\'SM80\'"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("simt.sass.disassembler._tools", lambda search_path: (tool,))
    with pytest.raises(SassError, match=message):
        disassemble(cubin())


def test_decoding_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path))
    first = disassemble(cubin())
    (kept,) = (tmp_path / "sass").glob("*.json")
    monkeypatch.setattr("simt.sass.disassembler._decoded", None)
    assert disassemble(cubin()) == first
    kept.write_text("{")
    with pytest.raises(TypeError):  # damaged: decoded again
        disassemble(cubin())


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    raw = bytearray(cubin().data)
    for _ in range(data.draw(st.integers(1, 6))):
        # Most often in headers and tables, which are at the beginning and at the end.
        places = st.integers(0, 63), st.integers(0, len(raw) - 1), st.integers(len(raw) - 2000, len(raw) - 1)
        at = data.draw(st.one_of(*places))
        raw[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)) if data.draw(st.booleans()) else st.just(len(raw)))
    try:
        found = Cubin.parse(bytes(raw[:cut]), "x.cubin")
    except SassError as error:
        assert str(error).startswith("x.cubin: ")
    else:
        assert all(len(kernel.code) % 16 == 0 for kernel in found.kernels)


def test_what_is_not_a_cubin_is_refused() -> None:
    for data in (b"", b"\x7fELF", b"PTX", Path("/proc/self/exe").read_bytes()[:100_000]):
        with pytest.raises(SassError, match=r"x\.cubin: "):
            Cubin.parse(data, "x.cubin")


def test_text_of_an_instruction() -> None:
    assert Instruction(0, "@!P0", "BRA", ("0x120",), 0, 0).text == "@!P0 BRA 0x120"
    assert Instruction(0, "", "EXIT", (), 0, 0).text == "EXIT"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["simt", "sass", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (0, None)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(SOURCE)
    run(monkeypatch, "list", str(source), "--gpu", "a100")
    out = capsys.readouterr().out
    assert "3 kernels" in out and "1,024" in out and "ampere has all of them" in out
    (tmp_path / "k.cubin").write_bytes(cubin("sm_90a").data)
    run(monkeypatch, "show", str(tmp_path / "k.cubin"), "--kernel", "f", "--lines")
    out = capsys.readouterr().out
    assert out.startswith("f (sm_90a, ") and "// kernel.cu:11" in out and "BAR.SYNC" in out
    (tmp_path / "named.cu").write_text("namespace a { __global__ void f(int* x) { *x = 1; } }")
    for name in ("_ZN1a1fEPi", "a::f(int*)", "a::f", "f"):
        run(monkeypatch, "show", str(tmp_path / "named.cu"), "--gpu", "a100", "--kernel", name)
        assert capsys.readouterr().out.startswith("_ZN1a1fEPi (sm_80, ")
    run(monkeypatch, "list", str(source), "--gpu", "qv100")
    assert "sm_70" in capsys.readouterr().out
    run(monkeypatch, "list", str(source), "--gpu", "titanx")
    captured = capsys.readouterr()
    assert "titanx is sm_61; this is sm_70 code" in captured.err and "sm_70" in captured.out


LOOP = """extern "C" __global__ void other(int* x) { x[threadIdx.x] += 1; }
extern "C" __global__ void scale(float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; ++k)
    x[i] = x[i] * a + k;
}
"""


def test_what_happened_stands_beside_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(LOOP)
    gpu = simt.GPU("a100", code="sass")
    module = gpu.load(source)
    for n in (5, 9):
        module.scale[4, 128](np.ones(512, np.float32), 2.0, n)
    gpu.result().save(tmp_path / "out")
    run(monkeypatch, "show", str(source), "--gpu", "a100", "--result", str(tmp_path / "out"))
    out = capsys.readouterr().out
    rows = out.splitlines()
    assert rows[0].startswith("scale (sm_80, ") and "in 2 launches" in rows[1] and "other (" not in out
    # ptxas keeps x in a register: each of the 16 warps of each launch stores it once.
    stores = [row.split()[0] for row in rows if " STG.E" in row and not row.startswith(" " * 70)]
    assert sum(map(int, stores)) == 2 * 16
    load_line = next(row for row in rows if row.endswith("kernel.cu:5"))
    issued, waited, each = load_line.split()[:3]
    assert int(waited.replace(",", "")) / int(issued.replace(",", "")) == pytest.approx(float(each), abs=0.05)
    assert sum("kernel.cu:5" in row and row[:70].strip() != "" for row in rows) == 1

    monkeypatch.setattr("sys.argv", ["simt", "sass", "show", str(source), "--gpu", "h100", "--result"])
    sys.argv.append(str(tmp_path / "out"))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "expected a run with --code sass of this program" in capsys.readouterr().err


def test_what_is_not_executed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(LOOP)
    run(monkeypatch, "list", str(source))
    listed = capsys.readouterr().out
    assert listed.count(" all ") >= 2 and "not executed" not in listed
    known = disassembler._instructions

    def renamed(rows: list[list[Any]], words: list[tuple[int, int]]) -> Iterator[Instruction]:
        return (replace(x, opcode=x.opcode.replace("STG", "STGX")) for x in known(rows, words))

    monkeypatch.setattr(disassembler, "_instructions", renamed)
    run(monkeypatch, "list", str(source))
    listed = capsys.readouterr().out
    # `other` has 24 instructions, one of which is a store.
    assert "95.8%" in listed
    assert listed.count("not executed: ") == 1 and "STGX" in listed and "is not supported" in listed
    run(monkeypatch, "show", str(source), "--kernel", "other")
    shown = capsys.readouterr().out
    assert shown.count("<- not executed by simt") == 1


def test_options_of_ptxas_change_the_code(tmp_path: Path) -> None:
    module = compile_cuda(SOURCE, arch="sm_80")
    fast, slow = (Cubin.parse(machine_code(module, "sm_80", *o), "k")["f"] for o in ((), ("-O0",)))
    assert len(slow.code) > len(fast.code)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_70", "sm_90a"])
def test_programs_decode(arch: str) -> None:
    found = [path for path in sorted(PROGRAMS.glob("*.cu")) if "__global__" in path.read_text()]
    linked = dict.fromkeys(("separate", "dynamic_parallelism", "grid_runtime"), 999)
    needs = {"clusters": 90, "synchronisation": 80, **linked}
    kernels = [path for path in found if number_of(arch) >= needs.get(path.stem, 0)]
    assert len(kernels) > 10
    for path in kernels:
        for module in load(path, arch):
            code = Cubin.parse(machine_code(module, arch), path.name)
            assert len(code.kernels) == len(module.kernels)
            assert all(disassemble(code).values())


INLINED = """__device__ __forceinline__ float inner(float x) {
  return x * x + 1;
}
__device__ __forceinline__ float outer(float x) {
  return inner(x) +
         sqrtf(x);
}
#line 40 "other.cu"
extern "C" __global__ void f(float* x, int n) {
  for (int i = 0; i < n; ++i)
    x[i] += outer(x[i + 32]);
}
"""


def test_lines_are_those_of_the_listing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """nvdisasm 13.5 has lines in its JSON; before it, they come from the comments of its listing."""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "one"))
    cubin = Cubin.parse(machine_code(compile_cuda(INLINED, arch="sm_80"), "sm_80"), "f")
    asked: list[tuple[str, ...]] = []
    known = disassembler._run

    def without_lines(tool: Path, name: str, *arguments: str) -> str:
        asked.append(arguments)
        text = known(tool, name, *arguments)
        return json.dumps(json.loads(text)[:2]) if "-json" in arguments else text

    code = disassemble(cubin)["f"]
    assert {line for _, line in {(x.file, x.line) for x in code}} >= {2, 6, 40, 41, 42}
    monkeypatch.setattr(disassembler, "_run", without_lines)
    monkeypatch.setattr(disassembler, "_release", lambda tool: (13, 1))
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "other"))
    assert disassemble(cubin)["f"] == code
    assert any("-c" in arguments for arguments in asked)
