"""Machine code from text, as nvdisasm and `simt sass show` print it: kernels without ptxas."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field, replace

from simt import _engine
from simt._engine import Unit
from simt.errors import SassError
from simt.hints import did_you_mean
from simt.isa.opcodes import OpcodeRow, opcode_rows
from simt.sass.control import Control
from simt.sass.cubin import INSTRUCTION_BYTES, Cubin, CubinKernel, CubinParameter
from simt.sass.disassembler import Instruction, split_operands

_CONTROL = re.compile(r"^([0-5-]{6}:(?:R[0-5]|--):(?:W[0-5]|--):[Y-]:S\d\d)\s+")
_ADDRESS = re.compile(r"^[0-9a-f]{4,}\s+(?=[0-5-]{6}:)")
_LINE = re.compile(r"^(?:(@!?U?P[0-6T])\s+)?([A-Z][A-Z0-9_]*(?:\.\w+)*)(?:\s+(.*\S))?$")
_DECIMAL = re.compile(r"^[0-9]{1,9}$")
_LABEL = re.compile(r"^(\w+):$")
_REGISTER = re.compile(r"(?<![A-Z])R(\d+)")
_NUMBER = re.compile(r"^[+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?$")
_DIRECTIVES = (".kernel", ".parameters", ".registers", ".shared", ".target")
_TARGET = re.compile(r"^sm_(\d+)(a?)$")
_WIDEST, _MOST_REGISTERS = 4, 255  # registers of a memory access; that a thread can have
_HIDDEN_PARAMETERS = {70: 0x160, 90: 0x210, 100: 0x380}  # bytes of constant bank 0 before the parameters
_SIZES = (1, 2, 4, 8, 16)
_WORD = (1 << 32) - 1
_ENDS = ("EXIT", "BRA", "BRX", "BRXU", "RET")
# Without control bits each instruction waits for all before it.
_SERIAL = Control(15, False, 0, 1, tuple(range(6)), ())


@dataclass
class _Kernel:
    name: str
    parameters: list[int] = field(default_factory=list)
    registers: int = 0
    shared: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)


def assemble(text: str, name: str = "assembled.sass") -> Cubin:
    """A program of these instructions, which `gpu.load` takes.

        .target sm_80
        .kernel double                 // begins a kernel
        .parameters 8                  // bytes of each; they begin at c[0x0][0x160], on sm_90 at 0x210,
                                       // from sm_100 on at 0x380
            S2R R0, SR_TID.X
            ...
        loop:                          // a label, for branches
            @P0 BRA loop
            EXIT

    Further directives: `.registers` per thread (at least the highest that is named and four more)
    and `.shared`, bytes of static shared memory. Before an instruction may stand its address, which is
    ignored, and its control bits, as `simt sass show` prints them; without control bits each instruction
    waits for all before it. name: for messages.

    Raises SassError, which names the line. What an instruction has in its encoding only is refused:
    immediates of packed FP16, and numbers that the encoding does not hold exactly.
    """
    return _Assembler(text, name).cubin()


class _Assembler:
    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._arch, self._number = "", 0
        self._kernels: list[_Kernel] = []

    def cubin(self) -> Cubin:
        for number, line in enumerate(self._text.splitlines(), 1):
            self._number = number
            words = line.partition("//")[0].strip().rstrip(";").strip()
            if words.startswith("."):
                self._directive(*words.split())
            elif words and not self._kernels:
                raise self._error(f"{words!r} before a .kernel")
            elif label := _LABEL.match(words):
                self._label(label[1])
            elif words:
                self._kernels[-1].code.append(self._instruction(words))
        if not self._arch or not self._kernels:
            raise SassError(f"{self._name}: it has no {'.kernel' if self._arch else '.target'}")
        kernels = [self._linked(kernel) for kernel in self._kernels]
        return Cubin(
            self._name,
            self._arch,
            True,
            tuple(self._finished(kernel) for kernel in kernels),
            (),
            b"",
            {},
            {},
            False,
            (),
            self._text.encode(),
            {kernel.name: kernel.code for kernel in kernels},
        )

    def _directive(self, word: str, *values: str) -> None:
        if word not in _DIRECTIVES:
            raise self._error(f"directive {word!r}, expected one of {', '.join(_DIRECTIVES)}")
        if word in (".target", ".kernel"):
            if len(values) != 1:
                raise self._error(f"{word} has {len(values)} values, expected one")
            if word == ".kernel" and any(kernel.name == values[0] for kernel in self._kernels):
                raise self._error(f"kernel {values[0]!r} a second time")
            if word == ".kernel":
                self._kernels.append(_Kernel(values[0]))
            elif (found := _TARGET.match(values[0])) and int(found[1]) >= min(_HIDDEN_PARAMETERS):
                self._arch = values[0]
            else:
                raise self._error(f".target is {values[0]!r}, expected sm_70 or later")
            return
        if not self._kernels:
            raise self._error(f"{word} before a .kernel")
        if not all(_DECIMAL.match(value) for value in values) or (word != ".parameters" and len(values) != 1):
            raise self._error(f"{word} is {' '.join(values)!r}, expected a number of bytes or registers")
        kernel, numbers = self._kernels[-1], [int(value) for value in values]
        if word == ".parameters":
            if any(size not in _SIZES for size in numbers):
                raise self._error(f".parameters are {' '.join(values)}, expected 1, 2, 4, 8 or 16 bytes each")
            kernel.parameters = numbers
        elif word == ".registers":
            kernel.registers = numbers[0]
        else:
            kernel.shared = numbers[0]

    def _label(self, label: str) -> None:
        kernel = self._kernels[-1]
        if label in kernel.labels:
            raise self._error(f"label {label!r} a second time")
        kernel.labels[label] = INSTRUCTION_BYTES * len(kernel.code)

    def _instruction(self, words: str) -> Instruction:
        words = _ADDRESS.sub("", words)
        control = _SERIAL
        if found := _CONTROL.match(words):
            control = Control.parse(found[1])
            words = words[found.end() :]
        line = _LINE.match(words)
        if not line:
            raise self._error(f"{words!r} is no instruction")
        guard, opcode, operands = line[1] or "", line[2], split_operands(line[3] or "", line[2])
        name = opcode.partition(".")[0]
        row = opcode_rows().get(name)
        if row is None:
            raise self._error(f"opcode {name!r} is not known{did_you_mean(name, opcode_rows())}")
        low = self._immediate(row, operands) << 32
        address = INSTRUCTION_BYTES * len(self._kernels[-1].code)
        return Instruction(
            address, guard, opcode, tuple(operands), low, control.high, self._name, self._number
        )

    def _immediate(self, row: OpcodeRow, operands: list[str]) -> int:
        """The 32 bits of its operand that is a decimal number; 0 if none is. Hexadecimal ones are read from
        the text."""
        numbers = [x for x in operands if _NUMBER.match(x) or "@" in x]
        if not numbers:
            return 0
        text = numbers[0]
        unit, *_, is_half = _engine.opcode_classes()[_newest_class(row)]
        if len(numbers) > 1 or "@" in text or is_half or unit == Unit.Conversion:
            raise self._error(f"the immediate {', '.join(numbers)} is in the encoding only; use a register")
        if unit not in (Unit.Fp32, Unit.Compare, Unit.Sfu, Unit.Fp64):
            if not text.lstrip("+-").isdecimal():
                raise self._error(f"the immediate {text} of an integer instruction")
            if not -(1 << 31) <= int(text) <= _WORD:
                raise self._error(f"the immediate {text}, expected one of 32 bits")
            return int(text) & _WORD
        single, (lower, upper) = (
            struct.pack("<f", float(text)),
            struct.unpack("<II", struct.pack("<d", float(text))),
        )
        if unit == Unit.Fp64:
            is_exact, bits = not lower, upper
        else:
            is_exact, bits = struct.unpack("<f", single) == (float(text),), struct.unpack("<I", single)[0]
        if not is_exact:
            raise self._error(f"the encoding does not hold the immediate {text} exactly; use a register")
        return int(bits)

    def _linked(self, kernel: _Kernel) -> _Kernel:
        """With addresses in place of labels."""
        return replace(
            kernel,
            code=[
                replace(
                    x, operands=tuple(hex(kernel.labels[o]) if o in kernel.labels else o for o in x.operands)
                )
                for x in kernel.code
            ],
        )

    def _finished(self, kernel: _Kernel) -> CubinKernel:
        last = kernel.code[-1] if kernel.code else None
        if last is None or last.predicate or last.opcode.partition(".")[0] not in _ENDS:
            raise SassError(
                f"{self._name}: {kernel.name} ends with {last.text if last else 'no instruction'}, expected "
                "an EXIT or a branch without a guard"
            )
        named = [int(n) for x in kernel.code for o in x.operands for n in _REGISTER.findall(o)]
        offset, parameters = 0, []
        for size in kernel.parameters:
            offset = -(-offset // size) * size
            parameters.append(CubinParameter(offset, size))
            offset += size
        number = int(self._arch.removeprefix("sm_").rstrip("a"))
        return CubinKernel(
            kernel.name,
            b"".join(struct.pack("<QQ", x.low, x.high) for x in kernel.code),
            (),
            max(kernel.registers, min(max(named, default=0) + _WIDEST, _MOST_REGISTERS)),
            tuple(parameters),
            _HIDDEN_PARAMETERS[max(first for first in _HIDDEN_PARAMETERS if first <= number)],
            kernel.shared,
            0,
            {},
            {},
            (),
            True,
            (0, 0, 0),
            (0, 0, 0),
            (0, 0, 0),
        )

    def _error(self, why: str) -> SassError:
        return SassError(f"{self._name}:{self._number}: {why}")


def _newest_class(row: OpcodeRow) -> str:
    return next(name for name in reversed(row.classes) if name)
