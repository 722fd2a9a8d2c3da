"""The types of `simt._engine`: its stub is what the module says, and its dicts are of the types listed."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import typing_extensions

import simt
from simt import _engine, engine_types
from simt.control import Controller, Stop
from simt.control.launch import LaunchControl
from simt.spec import load_spec
from simt.spec.native import NativeSpec
from simt.trace import open_trace
from support.ptx_dump import HEADER
from support.tiny import GLOBAL, warp_of, write_kernel

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "src" / "simt" / "_engine"


def test_the_stub_is_what_the_module_says(tmp_path: Path) -> None:
    pytest.importorskip("nanobind")
    pattern = str(ROOT / "engine" / "bindings" / "stub.pat")
    command = ["nanobind.stubgen", "-q", "-r", "-m", "simt._engine", "-p", pattern, "-O", str(tmp_path)]
    subprocess.run([sys.executable, "-m", *command], check=True, cwd=tmp_path)
    written = sorted((tmp_path / "_engine").iterdir())
    assert [file.name for file in written] == sorted(file.name for file in STUB.iterdir())
    for file in written:
        assert (STUB / file.name).read_text() == file.read_text(), f"{file.name}: run `make generate`"


def test_nothing_in_the_stub_is_any() -> None:
    for file in STUB.iterdir():
        assert not re.search(r"\bAny\b|: (dict|list|tuple|Callable)\b(?!\[)", file.read_text()), file.name


# What stubtest takes amiss in every function, class and enum of nanobind.
OF_NANOBIND = re.compile(
    r"(metaclass differs|stub does not have \*args parameter \"args\"|is not a function"
    r"|stub is a staticmethod but runtime is not|__nb_enum__ is not present in stub)$"
)


@pytest.mark.slow
def test_the_stub_and_the_module_have_the_same_names(tmp_path: Path) -> None:
    # Modules that the stub imports have tests of their own: `make lint` checks simt's.
    (tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = skip\n")
    command = ["mypy.stubtest", "--concise", "--ignore-disjoint-bases", "--mypy-config-file", "mypy.ini"]
    command.append("simt._engine")
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert len(lines) > 20, done.stdout + done.stderr  # it has looked
    assert [line for line in lines if not OF_NANOBIND.search(line)] == []


# --- dicts --------------------------------------------------------------------------------------------------


def deviations(value: object, type_: Any, at: str = "") -> Iterator[str]:
    """Where a value is not of a type: a TypedDict has exactly its keys."""
    origin, args = get_origin(type_), get_args(type_)
    if typing_extensions.is_typeddict(type_):
        if not isinstance(value, dict):
            yield f"{at}: {value!r}"
            return
        hints = get_type_hints(type_, include_extras=True)
        optional = {k for k, hint in hints.items() if get_origin(hint) is typing_extensions.NotRequired}
        for key in (hints.keys() ^ value.keys()) - (optional - value.keys()):
            yield f"{at}.{key}: {'missing' if key in hints else 'unknown'}"
        for key in hints.keys() & value.keys():
            hint = get_args(hints[key])[0] if key in optional else hints[key]
            yield from deviations(value[key], hint, f"{at}.{key}")
    elif origin in (Union, types.UnionType):
        if all(list(deviations(value, arg, at)) for arg in args):
            yield f"{at}: {value!r}"
    elif origin is Literal:
        if value not in args:
            yield f"{at}: {value!r}"
    elif origin in (list, dict, tuple):
        if type(value) is not origin or (origin is tuple and len(value) != len(args)):
            yield f"{at}: {value!r}"
        elif origin is list:
            for item in value:
                yield from deviations(item, args[0], f"{at}[]")
        elif origin is tuple:
            for item, arg in zip(value, args, strict=True):
                yield from deviations(item, arg, f"{at}()")
        else:
            for key, item in value.items():
                yield from deviations(key, args[0], f"{at} key")
                yield from deviations(item, args[1], f"{at}[]")
    elif type(value) is not type_ and not (type_ is not int and isinstance(value, type_)):
        yield f"{at}: {value!r}"


def test_deviations_are_found() -> None:
    right: dict[str, Any] = {"places": [1, None], "registers": 2, "predicates": 0, "max_live": 3}
    assert list(deviations(right, engine_types.PtxAllocation)) == []
    for wrong in ({"registers": "2"}, {"places": [1.5]}, {"registers": True}, {"more": 1}):
        assert len(list(deviations({**right, **wrong}, engine_types.PtxAllocation))) == 1
    del right["max_live"]
    assert list(deviations(right, engine_types.PtxAllocation)) == [".max_live: missing"]
    field = {"name": "x", "unit": "", "meaning": "", "type": "flag"}
    assert list(deviations(field, engine_types.SpecField)) == []
    assert len(list(deviations({**field, "type": "flags"}, engine_types.SpecField))) == 1


class StopsAtOnce(Controller):
    method = "stops"

    def begin(self, launch: object) -> Stop:
        return Stop("enough")


def test_launches(tmp_path: Path) -> None:
    def build(w: Any) -> None:
        w.memory("LDG.E.SYS", [GLOBAL], 4, 4, (2,))
        w.op("FFMA", 2, (4, 4, 4))

    trace = write_kernel(tmp_path / "t", [[warp_of(build)]])
    (kernel,) = open_trace(trace).kernels
    source, spec = kernel.source(), load_spec("qv100").native()
    engine = _engine.Gpu(spec, timeline_interval=100)
    engine.launch(source, 1)
    engine.run(100_000)
    (raw,) = engine.finished()
    assert raw["timeline"] is not None and raw["timeline"]["dram_banks"]["bank"]
    assert list(deviations(raw, engine_types.RawLaunch)) == []
    assert list(deviations(raw["code"].parts(raw["numbers"]), engine_types.RawLaunchParts)) == []
    with pytest.raises(ValueError, match="no numbers of a launch"):
        raw["code"].parts(raw["numbers"][:-1])
    engine = _engine.Gpu(spec)
    facts: dict[str, Any] = dict(index=0, id=1, name="tiny", grid=(1, 1, 1), block=(32, 1, 1))
    control = LaunchControl(StopsAtOnce().start(), sm_count=80, l2_lines=1, dram_bytes_per_cycle=1.0, **facts)
    engine.launch(source, 1, controller=control)
    assert list(deviations(engine.progress(), engine_types.EngineProgress)) == []
    engine.run(100_000)
    (stopped,) = engine.finished()
    assert stopped["sampled"] is not None and stopped["sampled"]["stopped"]
    assert list(deviations(stopped, engine_types.RawLaunch)) == []
    instructions = source.instructions()
    assert list(deviations(instructions, list[engine_types.DecodedInstruction])) == []
    assert instructions[0]["opcode"] == "LDG.E.SYS"


def test_specifications() -> None:
    spec = load_spec("h100").native()
    assert list(deviations(spec, NativeSpec)) == []
    assert list(deviations(_engine.spec_roundtrip(spec), NativeSpec)) == []
    assert list(deviations(_engine.spec_schema(), engine_types.SpecSchema)) == []
    policies = dict[str, dict[str, engine_types.PolicyFacts]]
    assert list(deviations(_engine.policies(), policies)) == []


PROGRAM = (
    HEADER
    + """
.file 1 "a.cu"
.global .align 8 .u64 table[2] = {generic(table), 7};
.global .texref image;
.func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %a; ld.param.b32 %a, [a]; st.param.b32 [r], %a; ret; }
.visible .entry k(.param .u64 a, .param .f32 b) .maxntid 64, 1, 1 {
  .reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<2>; .reg .v2 .f32 %v;
  .loc 1 3 0
  ld.param.u64 %rd0, [a];
  mov.u32 %r0, %tid.x;
  setp.eq.u32 %p, %r0, 0;
  @!%p bra DONE;
  mov.f32 %f0, 0f3f800000;
  { .param .b32 x; .param .b32 y; st.param.b32 [x], %r0; call (y), twice, (x); }
  st.global.v2.f32 [%rd0+8], {%f0, %f1};
  ts: .branchtargets DONE;
  brx.idx %r0, ts;
DONE: ret;
}
"""
)


def test_ptx() -> None:
    module = _engine.PtxModule(PROGRAM.encode())
    dump = module.dump()
    assert list(deviations(dump, engine_types.PtxDump)) == []
    kinds = {o["kind"] for f in dump["functions"] for i in f["instructions"] for o in i["operands"]}
    assert {"register", "special", "integer", "label", "float", "list", "address", "vector"} <= kinds
    assert list(deviations(module.kernels(), list[engine_types.PtxKernelFacts])) == []
    assert list(deviations(module.allocation(1), engine_types.PtxAllocation)) == []
    assert list(deviations(_engine.instruction_table(), list[engine_types.PtxTableRow])) == []
    memory = _engine.functional.DeviceMemory(1 << 24)
    loaded = _engine.functional.load(PROGRAM, "t.ptx", memory)
    assert list(deviations(loaded.kernels, dict[str, engine_types.LoadedKernel])) == []
    assert loaded.variables == {"table": (loaded.variables["table"][0], 16)}
    assert loaded.references["image"][1] == "texref"
    view = memory.view(loaded.variables["table"][0], 16)
    assert type(view) is memoryview and int.from_bytes(view[8:], "little") == 7


RACE = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry race(.param .u64 x)
{
  .reg .u64 %d<2>;
  .reg .u32 %r<2>;
  ld.param.u64 %d0, [x];
  mov.u32 %r0, %tid.x;
  st.global.u32 [%d0], %r0;
  ret;
}
"""


def test_findings() -> None:
    gpu = simt.GPU("a100", check=True)
    gpu.load(RACE).race[1, 64](gpu.zeros(1, "int32"))
    assert gpu.checking is not None and gpu.checking.native.findings
    assert list(deviations(gpu.checking.native.findings, list[engine_types.RawFinding])) == []


def test_every_dict_of_the_stub_is_compared() -> None:
    """What the engine takes is read key by key in C++; the rest is compared above."""
    named = set(re.findall(r"simt\.engine_types\.(\w+)", "".join(f.read_text() for f in STUB.iterdir())))
    taken = {"LoadableCode", "MachineFacts", "TextureFields"}
    inside = {"RawSampling", "RawAccess"}
    here = set(re.findall(r"engine_types\.(\w+)", Path(__file__).read_text()))
    assert named <= here | taken | inside
