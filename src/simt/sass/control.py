"""The control bits of an instruction of sm_70 and later.

Meaning: Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO 2025, section 3.
The layout is the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass

from simt._engine import ControlBits

_BARRIERS, _SLOTS = 6, 4
_FIRST_BIT = 41  # in the second word


@dataclass(frozen=True)
class Control:
    """stall: cycles before the warp's next instruction can issue. yields: the scheduler should prefer another
    warp. write_barrier: dependence counter that falls when the result is written; read_barrier: when the
    operands have been read; None for none. waits: counters that must be 0 before it issues. reuse: source
    slots whose operands stay in the register-file cache.
    """

    stall: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]
    reuse: tuple[int, ...]

    @classmethod
    def of(cls, high: int) -> Control:
        """high: the second 64-bit word of the instruction."""
        bits = ControlBits.of(high)
        write, read = (
            None if counter == ControlBits.NO_COUNTER else counter
            for counter in (bits.write_counter, bits.read_counter)
        )
        return cls(
            stall=bits.stall,
            yields=bits.yields,
            write_barrier=write,
            read_barrier=read,
            waits=tuple(i for i in range(_BARRIERS) if bits.waits >> i & 1),
            reuse=tuple(i for i in range(_SLOTS) if bits.reuse >> i & 1),
        )

    @classmethod
    def parse(cls, text: str) -> Control:
        """The inverse of `str`; reuse, which it does not show, is empty."""
        waits, read, write, yields, stall = text.split(":")
        return cls(
            stall=int(stall[1:]),
            yields=yields == "Y",
            write_barrier=None if write == "--" else int(write[1:]),
            read_barrier=None if read == "--" else int(read[1:]),
            waits=tuple(i for i in range(_BARRIERS) if waits[i] != "-"),
            reuse=(),
        )

    @property
    def high(self) -> int:
        """The inverse of `of`: the second 64-bit word of an instruction that has nothing else there."""
        counters = [
            ControlBits.NO_COUNTER if x is None else x for x in (self.write_barrier, self.read_barrier)
        ]
        waits, reuse = (sum(1 << i for i in numbers) for numbers in (self.waits, self.reuse))
        fields = ((self.stall, 4), (not self.yields, 1), *((x, 3) for x in counters), (waits, 6), (reuse, 4))
        word, at = 0, _FIRST_BIT
        for value, bits in fields:
            word |= int(value) << at
            at += bits
        return word

    def __str__(self) -> str:
        """Compact text: waits, read and write barrier, yield, stall, such as `01----:R2:W0:Y:S04`."""
        waits = "".join(str(i) if i in self.waits else "-" for i in range(_BARRIERS))
        read = "--" if self.read_barrier is None else f"R{self.read_barrier}"
        write = "--" if self.write_barrier is None else f"W{self.write_barrier}"
        return f"{waits}:{read}:{write}:{'Y' if self.yields else '-'}:S{self.stall:02}"
