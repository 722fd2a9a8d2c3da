"""Rewrites PTX so that it stores every written register (Lew et al., section III-D).

Each thread counts the registers that it has written and keeps a running hash of their values. A window of
them goes into a buffer: every one, or one in `stride`. Memory is therefore bounded however long a kernel
runs, and two executions can be compared in a few runs: whole threads by their hashes, windows by intermediate
hashes, and finally individual registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from simt import _engine
from simt.errors import DebugError
from simt.isa.ptx import PtxRow, ptx_row

from .differing import differing

if TYPE_CHECKING:
    from simt.engine_types import PtxFunction, PtxInstruction, PtxOperand

HEADER = "simt_debug"
"""The variable that says what is to be stored, and where: 64 bytes."""
HEADER_TYPE = np.dtype(
    [
        ("buffer", "<u8"),
        ("first", "<u8"),  # linear number of the first thread of interest
        ("threads", "<u8"),
        ("capacity", "<u4"),  # entries of a thread
        ("stride", "<u4"),
        ("probe", "<u4"),  # count of writes before the instruction whose inputs are wanted
        ("unused", "<u4"),
        ("target", "<u8"),  # address whose writers are wanted
        ("size", "<u8"),  # and bytes there
        ("unused2", "<u8"),
    ]
)
STATE_TYPE = np.dtype(
    [("hash", "<u8"), ("entry", "<u8"), ("count", "<u4"), ("next", "<u4"), ("unused", "<u8")]
)
ENTRY_TYPE = np.dtype([("hash", "<u8"), ("value", "<u8"), ("point", "<u4"), ("unused", "<u4", 3)])
WRITERS_TYPE = np.dtype([("stores", "<u8"), ("thread", "<u8"), ("point", "<u8")])
MOST_INPUTS = 64
"""Registers whose values before an instruction are kept."""

# Odd, so that no difference is lost by multiplying; the fractional digits of the golden ratio.
_FACTOR = 0x9E3779B97F4A7C15

_COMMENT = re.compile(rb'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_PREAMBLE = re.compile(rb"\.address_size\s+\d+|\.target\s[^\n]*")
_BYTES = {"pred": 0, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class WritePoint:
    """A register that an instruction writes.

    function, instruction: name, and number in it from 0. text: the instruction. line: of the PTX.
    location: (file, line) of the source, None if it is not known. part: number of this register among
    those that the instruction writes.
    """

    function: str
    instruction: int
    text: str
    opcode: str
    line: int
    location: tuple[str, int] | None
    register: str
    type: str
    part: int

    @property
    def reads_memory(self) -> bool:
        return ptx_row(self.opcode).reads_memory


@dataclass(frozen=True)
class _Write:
    register: str
    type: str
    part: int


class InstrumentedProgram:
    """A PTX module to be instrumented, seen from one of its kernels.

    Raises PtxError if the text is not PTX, DebugError if there is no such kernel.
    """

    def __init__(self, text: str, name: str, kernel: str) -> None:
        self.name = name
        self.kernel = kernel
        self._text = text.encode()
        self._module = _engine.PtxModule(self._text, name)
        self._dump = self._module.dump()
        self._known: dict[str, dict[int, list[_Write]]] = {}
        self._files = dict(self._dump["files"])
        bare = _COMMENT.sub(lambda m: b" " * len(m[0]), self._text)
        preamble = _PREAMBLE.search(bare)
        entries = [f["name"] for f in self._functions]
        if preamble is None or kernel not in entries:
            raise DebugError(f"{name}: no kernel {kernel!r} to instrument")
        self._preamble = max(m.end() for m in _PREAMBLE.finditer(bare))
        if HEADER.encode() in self._text:
            raise DebugError(f"{name}: has a variable {HEADER!r} already; is it instrumented?")

    @cached_property
    def _functions(self) -> list[PtxFunction]:
        """The kernel, and all functions with a body: what it may call."""
        return [
            f
            for f in self._dump["functions"]
            if f["defined"] and (not f["entry"] or f["name"] == self.kernel)
        ]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {f["name"]: k for k, f in enumerate(self._dump["functions"])}

    @cached_property
    def variable_types(self) -> dict[str, str]:
        """PTX types of the module's variables."""
        return {v["name"]: v["type"] for v in self._dump["variables"]}

    @property
    def uses_textures(self) -> bool:
        """Whether the kernel, or a function it may call, reads or writes textures or surfaces."""
        return any(_row(i).space == "texture" for f in self._functions for i in f["instructions"])

    @cached_property
    def relocations(self) -> dict[str, tuple[int, ...]]:
        """Positions of addresses in the initial contents of each variable."""
        return {v["name"]: tuple(r[0] for r in v["relocations"]) for v in self._dump["variables"]}

    def instructions(self, function: str) -> list[str]:
        """Mnemonics with the kinds of their operands, by which two versions of a function are matched."""
        f = self._dump["functions"][self._numbers[function]]
        return [f"{i['mnemonic']} {' '.join(_shape(o) for o in i['operands'])}" for i in f["instructions"]]

    @property
    def function_names(self) -> list[str]:
        return [f["name"] for f in self._functions]

    def text_of(self, function: str, instruction: int) -> str:
        i = self._dump["functions"][self._numbers[function]]["instructions"][instruction]
        return " ".join(self._text[i["begin"] : i["end"]].decode("utf-8", "replace").split()).rstrip(";")

    def line_of(self, function: str, instruction: int) -> int:
        line: int = self._dump["functions"][self._numbers[function]]["instructions"][instruction]["line"]
        return line

    def points(self, exclude: Iterable[str] = ()) -> list[WritePoint]:
        """All registers that instructions write, in the order of the text.

        exclude: kinds of results that two right executions may differ in, with all that is computed from
        them: "time" (clocks, numbers of SMs, states of barriers), "address" (where variables lie), "order"
        (what atomics return).
        """
        excluded = differing(
            self._functions, self._accesses, frozenset(exclude), any(self.relocations.values())
        )
        found = []
        for f in self._functions:
            for k, i in enumerate(f["instructions"]):
                if _asynchronous(i):
                    continue
                for write in self._writes(f, k):
                    if (f["name"], k) in excluded:
                        continue
                    location = i["location"]
                    found.append(
                        WritePoint(
                            function=f["name"],
                            instruction=k,
                            text=self.text_of(f["name"], k),
                            opcode=i["row"] or i["opcode"],
                            line=i["line"],
                            location=(self._files.get(location[0], ""), location[1]) if location else None,
                            register=write.register,
                            type=_value_type(write.type, i),
                            part=write.part,
                        )
                    )
        return found

    def inputs(self, point: WritePoint) -> list[tuple[str, str]]:
        """Registers that an instruction reads, without its guard: name and type."""
        f = self._dump["functions"][self._numbers[point.function]]
        reads, _ = self._accesses(point.function, point.instruction)
        names = []
        for register in dict.fromkeys(reads):
            name, kind, vector = f["registers"][register]
            if vector == 1 and kind != "b128":
                names.append((name, _value_type(kind, f["instructions"][point.instruction])))
        return names[:MOST_INPUTS]

    # --- rewriting --------------------------------------------------------------------------------------

    def traced(self, points: Sequence[WritePoint], probe: WritePoint | None = None) -> str:
        """The module with what stores written registers; `points[k]` has the number k.

        probe: an instruction before which the registers that it reads are stored, too.
        """
        numbers = {(p.function, p.instruction, p.part): k for k, p in enumerate(points)}
        touched = {p.function for p in points}
        insertions: list[tuple[int, str]] = [(self._preamble, _DECLARATION)]
        for f in self._functions:
            if f["name"] not in touched:
                continue
            insertions.append((f["body_begin"], _REGISTERS + _THREAD + _LOAD_STATE_FIRST))
            for k, i in enumerate(f["instructions"]):
                before, after = "", ""
                guard = self._guard(f, i)
                writes = [
                    (numbers[key], write)
                    for write in self._writes(f, k)
                    if (key := (f["name"], k, write.part)) in numbers
                ]
                if probe is not None and (probe.function, probe.instruction) == (f["name"], k):
                    before += _probe_code(self.inputs(probe))
                if writes:
                    if guard and guard.lstrip("!") in {w.register for _, w in writes}:
                        before += f"mov.pred %simt_g, {guard.lstrip('!')};\n"
                        guard = guard.replace(guard.lstrip("!"), "%simt_g")
                    for number, write in writes:
                        after += _store_code(number, write, guard)
                control = _row(i).control
                calls = control == "call" and self._calls_code(i, touched)
                if control in ("return", "exit") or calls:
                    before += _SAVE_STATE
                if calls:
                    after += _LOAD_STATE
                if before:
                    insertions.append((i["begin"], before))
                if after:
                    insertions.append((i["end"], "\n" + after))
            if not _ends(f):
                insertions.append((f["body_end"], _SAVE_STATE))
        return self._insert(insertions)

    def writers(self) -> str:
        """The module with code that records, in the header, the last thread that stores to the bytes of
        `target`.
        """
        insertions: list[tuple[int, str]] = [(self._preamble, _DECLARATION)]
        for number, (f, k, address) in enumerate(self._stores()):
            i = f["instructions"][k]
            insertions.append((i["begin"], self._writer_code(f, i, number, address)))
        for f in self._functions:
            insertions.append((f["body_begin"], _REGISTERS + _THREAD))
        return self._insert(insertions)

    def store_text(self, number: int) -> tuple[str, int]:
        """The store with that number in `writers`: its text, and its line in the PTX."""
        f, k, _ = self._stores()[number]
        return self.text_of(f["name"], k), self.line_of(f["name"], k)

    def _stores(self) -> list[tuple[PtxFunction, int, str]]:
        """Stores and atomics to global or generic addresses: function, instruction, address as written."""
        found: list[tuple[PtxFunction, int, str]] = []
        for f in self._functions:
            for k, i in enumerate(f["instructions"]):
                row = _row(i)
                if row.memory not in ("store", "atomic") or row.space != "named" or not row.typed:
                    continue
                spaces = {m.split("::")[0] for m in i["modifiers"]} & {"shared", "local", "param", "const"}
                address = next((o for o in i["operands"] if o["kind"] == "address"), None)
                if spaces or address is None:
                    continue
                base = address["parts"][0]
                if base["kind"] == "register":
                    name, kind, _ = f["registers"][base["index"]]
                    if kind[1:] == "64":
                        found.append((f, k, name))
                elif base["kind"] == "variable" and not base.get("local"):
                    found.append((f, k, self._dump["variables"][base["index"]]["name"]))
        return found

    def _writer_code(self, f: PtxFunction, i: PtxInstruction, number: int, base: str) -> str:
        width = _access_bytes(i)
        address = next(o for o in i["operands"] if o["kind"] == "address")
        offset = address.get("value", 0) + address["parts"][0].get("value", 0) + width - 1
        guard = self._guard(f, i)
        test = "setp.lt.and.u64" if guard else "setp.lt.u64"
        return (
            f"mov.b64 %simt_a, {base};\n"
            f"add.s64 %simt_a, %simt_a, {offset};\n"
            "sub.u64 %simt_a, %simt_a, %simt_target;\n"
            f"add.u64 %simt_b, %simt_size, {width - 1};\n"
            f"{test} %simt_p, %simt_a, %simt_b{', ' + guard if guard else ''};\n"
            "@%simt_p red.global.add.u64 [%simt_buffer], 1;\n"
            "@%simt_p st.global.u64 [%simt_buffer+8], %simt_thread;\n"
            f"@%simt_p st.global.u64 [%simt_buffer+16], {number};\n"
        )

    def _insert(self, insertions: list[tuple[int, str]]) -> str:
        pieces, at = [], 0
        for offset, text in sorted(insertions, key=lambda x: x[0]):
            pieces += [self._text[at:offset], b"\n", text.encode()]
            at = offset
        return b"".join([*pieces, self._text[at:]]).decode("utf-8", "replace")

    def _guard(self, f: PtxFunction, i: PtxInstruction) -> str:
        if i["guard"] < 0:
            return ""
        name: str = f["registers"][i["guard"]][0]
        return f"!{name}" if i["guard_negated"] else name

    def _calls_code(self, i: PtxInstruction, touched: set[str]) -> bool:
        """Whether a call may reach an instrumented function."""
        named = [o.get("text", "") for o in i["operands"] if o["kind"] == "symbol"]
        direct = [n for n in named if n in self._numbers]
        if direct and not any(o["kind"] == "register" for o in i["operands"]):
            return self._dump["functions"][self._numbers[direct[0]]]["defined"] and len(touched) > 0
        return True

    def _accesses(self, function: str, instruction: int) -> tuple[list[int], list[int]]:
        """Numbers of the registers that it reads and writes."""
        reads, writes = self._module.accesses(self._numbers[function], instruction)
        return reads, writes

    def _writes(self, f: PtxFunction, k: int) -> list[_Write]:
        known = self._known.setdefault(f["name"], {})
        if k not in known:
            _, writes = self._accesses(f["name"], k)
            found: list[_Write] = []
            for register in dict.fromkeys(writes):
                name, kind, vector = f["registers"][register]
                if (
                    vector == 1 and kind != "b128"
                ):  # those are rare; instructions that read them show their values
                    found.append(_Write(name, kind, len(found)))
            known[k] = found
        return known[k]


# --- pieces of PTX --------------------------------------------------------------------------------------

_DECLARATION = f".visible .global .align 16 .b8 {HEADER}[{HEADER_TYPE.itemsize}];\n"
_REGISTERS = """
.reg .pred %simt_p, %simt_q, %simt_g, %simt_active;
.reg .b16 %simt_half;
.reg .b32 %simt_count, %simt_next, %simt_stride, %simt_word, %simt_x, %simt_y, %simt_probe;
.reg .b64 %simt_hash, %simt_value, %simt_entry, %simt_end, %simt_thread, %simt_state, %simt_buffer;
.reg .b64 %simt_a, %simt_b, %simt_target, %simt_size;
"""
_THREAD = f"""
mov.u32 %simt_x, %ctaid.z;
mov.u32 %simt_y, %nctaid.y;
mul.wide.u32 %simt_thread, %simt_x, %simt_y;
mov.u32 %simt_x, %ctaid.y;
cvt.u64.u32 %simt_a, %simt_x;
add.u64 %simt_thread, %simt_thread, %simt_a;
mov.u32 %simt_x, %nctaid.x;
cvt.u64.u32 %simt_a, %simt_x;
mov.u32 %simt_x, %ctaid.x;
cvt.u64.u32 %simt_b, %simt_x;
mad.lo.u64 %simt_thread, %simt_thread, %simt_a, %simt_b;
mov.u32 %simt_x, %ntid.x;
cvt.u64.u32 %simt_a, %simt_x;
mul.lo.u64 %simt_thread, %simt_thread, %simt_a;
mov.u32 %simt_y, %ntid.y;
cvt.u64.u32 %simt_a, %simt_y;
mul.lo.u64 %simt_thread, %simt_thread, %simt_a;
mov.u32 %simt_word, %ntid.z;
cvt.u64.u32 %simt_a, %simt_word;
mul.lo.u64 %simt_thread, %simt_thread, %simt_a;
mov.u32 %simt_word, %tid.z;
mov.u32 %simt_count, %tid.y;
mad.lo.u32 %simt_word, %simt_word, %simt_y, %simt_count;
mov.u32 %simt_count, %tid.x;
mad.lo.u32 %simt_word, %simt_word, %simt_x, %simt_count;
cvt.u64.u32 %simt_a, %simt_word;
add.u64 %simt_thread, %simt_thread, %simt_a;
ld.global.u64 %simt_buffer, [{HEADER}];
ld.global.u64 %simt_target, [{HEADER}+40];
ld.global.u64 %simt_size, [{HEADER}+48];
"""
# The state of a thread lies in memory while another function runs; entries are counted from the buffer's
# begin.
_LOAD_STATE = """
@%simt_active ld.global.v2.b64 {%simt_hash, %simt_entry}, [%simt_state];
@%simt_active add.u64 %simt_entry, %simt_entry, %simt_buffer;
@%simt_active ld.global.v2.b32 {%simt_count, %simt_next}, [%simt_state+16];
"""
_SAVE_STATE = """
sub.u64 %simt_a, %simt_entry, %simt_buffer;
@%simt_active st.global.v2.b64 [%simt_state], {%simt_hash, %simt_a};
@%simt_active st.global.v2.b32 [%simt_state+16], {%simt_count, %simt_next};
"""
_LOAD_STATE_FIRST = f"""
ld.global.u64 %simt_a, [{HEADER}+8];
ld.global.u64 %simt_b, [{HEADER}+16];
sub.u64 %simt_value, %simt_thread, %simt_a;
setp.lt.u64 %simt_active, %simt_value, %simt_b;
mad.lo.u64 %simt_state, %simt_value, {STATE_TYPE.itemsize}, %simt_buffer;
ld.global.u32 %simt_word, [{HEADER}+24];
ld.global.u32 %simt_stride, [{HEADER}+28];
ld.global.u32 %simt_probe, [{HEADER}+32];
mul.wide.u32 %simt_a, %simt_word, {ENTRY_TYPE.itemsize};
add.u64 %simt_value, %simt_value, 1;
mul.lo.u64 %simt_a, %simt_a, %simt_value;
mad.lo.u64 %simt_b, %simt_b, {STATE_TYPE.itemsize}, %simt_buffer;
add.u64 %simt_end, %simt_a, %simt_b;
mov.u64 %simt_hash, 0;
mov.u64 %simt_entry, 0;
mov.u32 %simt_count, 0;
mov.u32 %simt_next, 0;
{_LOAD_STATE}"""


def _as_bits(register: str, kind: str, to: str) -> str:
    """PTX that puts a register's bits into a 64-bit one."""
    if kind == "pred":
        return f"selp.b64 {to}, 1, 0, {register};\n"
    size = width(kind)
    if size == 8:
        return f"mov.b64 {to}, {register};\n"
    if size == 4:
        return f"mov.b32 %simt_word, {register};\ncvt.u64.u32 {to}, %simt_word;\n"
    if size == 2:
        return f"mov.b16 %simt_half, {register};\ncvt.u64.u16 {to}, %simt_half;\n"
    return f"cvt.u64.u8 {to}, {register};\n"


def _store_code(number: int, write: _Write, guard: str) -> str:
    at = f"@{guard} " if guard else ""
    test = f"setp.eq.and.u32 %simt_p, %simt_count, %simt_next, {guard};" if guard else ""
    return (
        _as_bits(write.register, write.type, "%simt_value")
        + f"{at}xor.b64 %simt_hash, %simt_hash, %simt_value;\n"
        f"{at}mad.lo.u64 %simt_hash, %simt_hash, {_FACTOR:#x}, {number + 1};\n"
        f"{at}add.u32 %simt_count, %simt_count, 1;\n"
        f"{test or 'setp.eq.u32 %simt_p, %simt_count, %simt_next;'}\n"
        "@%simt_p st.global.v2.b64 [%simt_entry], {%simt_hash, %simt_value};\n"
        f"@%simt_p st.global.u32 [%simt_entry+16], {number};\n"
        f"@%simt_p add.u64 %simt_entry, %simt_entry, {ENTRY_TYPE.itemsize};\n"
        "@%simt_p setp.lt.u64 %simt_q, %simt_entry, %simt_end;\n"
        "@%simt_p add.u32 %simt_next, %simt_next, %simt_stride;\n"
        "@%simt_p selp.b32 %simt_next, %simt_next, 0, %simt_q;\n"
    )


def _probe_code(inputs: Sequence[tuple[str, str]]) -> str:
    """Stores inputs after the entries of the traced thread."""
    code = "setp.eq.and.u32 %simt_p, %simt_count, %simt_probe, %simt_active;\n"
    for k, (register, kind) in enumerate(inputs):
        code += _as_bits(register, kind, "%simt_value")
        code += f"@%simt_p st.global.u64 [%simt_end+{8 * k}], %simt_value;\n"
    return code


# --- properties of instructions ---------------------------------------------------------------------------


def _row(i: PtxInstruction) -> PtxRow:
    return ptx_row(i["row"])


def _ends(f: PtxFunction) -> bool:
    """Whether the end of the body is unreachable."""
    if not f["instructions"] or any(target == len(f["instructions"]) for _, target in f["labels"]):
        return False
    last = f["instructions"][-1]
    return _row(last).ends_block and last["guard"] < 0


def _asynchronous(i: PtxInstruction) -> bool:
    """Whether results arrive after the instruction ends, so that they cannot be read right after it."""
    return _row(i).result == "late"


def _shape(operand: PtxOperand) -> str:
    kind: str = operand["kind"]
    parts = "".join(_shape(p) for p in operand.get("parts", ()))
    value = operand.get("value", "") if kind in ("integer", "float", "address") else ""
    return f"{kind}{operand.get('text', '') if kind == 'special' else ''}{value}{parts}"


def width(kind: str) -> int:
    """Bytes of a register of a type."""
    if kind in _BYTES:
        return _BYTES[kind]
    return 8 if kind.endswith("64") or kind == "f32x2" else 4


def _value_type(kind: str, i: PtxInstruction) -> str:
    """How to show a register's bits: as declared, or for `.b32` and similar types as the instruction
    interprets them.
    """
    if not kind.startswith("b") or kind == "bf16":
        return kind
    for modifier in i["modifiers"]:
        if re.fullmatch(r"[usf](8|16|32|64)|bf16|f16x2|bf16x2", modifier) and width(modifier) == width(kind):
            return str(modifier)
    return kind


def _access_bytes(i: PtxInstruction) -> int:
    elements, width = 1, 4
    for modifier in i["modifiers"]:
        if modifier in ("v2", "v4", "v8"):
            elements = int(modifier[1])
        elif re.fullmatch(r"[busf](8|16|32|64|128)|f16x2|bf16|bf16x2", modifier):
            digits = re.search(r"\d+", modifier)
            width = 4 if "x2" in modifier else int(digits[0] if digits else 32) // 8
    return elements * width
