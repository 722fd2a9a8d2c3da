"""The control bits of an instruction of sm_70 and later.

Meaning: Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO 2025, section 3.
The layout is the engine's.
"""

from __future__ import annotations

from dataclasses import dataclass

from simt._engine import ControlBits

_BARRIERS, _SLOTS = 6, 4


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

    def __str__(self) -> str:
        """Compact text: waits, read and write barrier, yield, stall, such as `01----:R2:W0:Y:S04`."""
        waits = "".join(str(i) if i in self.waits else "-" for i in range(_BARRIERS))
        read = "--" if self.read_barrier is None else f"R{self.read_barrier}"
        write = "--" if self.write_barrier is None else f"W{self.write_barrier}"
        return f"{waits}:{read}:{write}:{'Y' if self.yields else '-'}:S{self.stall:02}"
