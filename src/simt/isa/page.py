"""The page of all opcodes: python -m simt.isa.page > docs/opcodes.md"""

from __future__ import annotations

from simt import _engine
from simt.isa.opcodes import OpcodeRow, energy_class, opcode_rows

_PAGE = """\
# Opcodes

The opcodes of machine code that simt knows, from Kepler to Blackwell: {known}, of which {executed} are
[executed](machine-code.md). Of the others, traces are simulated. [How to add one](adding-an-opcode.md).

Written by `python -m simt.isa.page > docs/opcodes.md` from the rows in `engine/instructions/sass/`; do not
edit.

* **class** by generation ([opcode tables](opcode-tables.md)): each holds until the next one; `-` ends it. A
  class in brackets stands in for what the opcode does, which is not modelled.
* **energy**: the key in an [Energies file](power/README.md); of tensor products it depends on the type.
* **executed**: modifiers and operands. `d` destination, `p` predicate, `a` address, other letters sources;
  [..] optional.

| opcode | class | energy | executed |
|---|---|---|---|
"""


def _history(row: OpcodeRow) -> str:
    """The generations in which an opcode's class changes."""
    found: list[str] = []
    before = ""
    for (name, _), now in zip(_engine.opcode_generations(), row.classes, strict=True):
        if now != before:
            found.append(f"{name} {f'({now})' if row.stand_in else now or '-'}")
        before = now
    return ", ".join(found)


def page() -> str:
    """docs/opcodes.md."""
    rows = opcode_rows().values()
    lines = []
    for row in rows:
        energy = energy_class(row.name)[0].removeprefix("instructions.")
        cells = [
            f"`{row.name}`",
            _history(row),
            "by type" if energy.startswith("tensor.") else energy,
            f"`{row.name}{row.forms}`".replace("|", "\\|") if row.is_executed else "",
        ]
        lines.append(f"| {' | '.join(cells)} |\n")
    executed = sum(row.is_executed for row in rows)
    return _PAGE.format(known=len(rows), executed=executed) + "".join(lines)


if __name__ == "__main__":
    print(page(), end="")
