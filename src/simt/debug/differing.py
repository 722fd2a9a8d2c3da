"""Instructions whose results may differ between correct executions of a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from simt.isa.ptx import ptx_row

if TYPE_CHECKING:
    from simt.engine_types import PtxFunction, PtxInstruction, PtxOperand

# Decided by the machine or the time, not by the program (PTX ISA, special registers).
_TIME_REGISTERS = re.compile(
    r"(clock|globaltimer|smid|nsmid|warpid|nwarpid|gridid|pm\d|envreg|aggr_smem|reserved_smem|current_graph)"
)


def differing(
    functions: Sequence[PtxFunction],
    accesses: Callable[[str, int], tuple[Sequence[int], Sequence[int]]],
    exclude: frozenset[str],
    addresses_in_memory: bool,
) -> set[tuple[str, int]]:
    """(function, number of the instruction): sources of such values, and what is computed from them.

    accesses: registers that an instruction reads and writes. exclude: kinds of sources, of "time", "order"
    and "address". addresses_in_memory: some are in the module's variables from the beginning.

    Follows registers, `.param` variables through direct calls, and memory by its space.
    """
    flow = _Flow({f["name"]: f for f in functions})
    if "address" in exclude and addresses_in_memory:
        flow.spaces.add("global")
    found: set[tuple[str, int]] = set()
    while exclude and flow.grew():
        for f in functions:
            name, known = f["name"], flow.registers[f["name"]]
            for k, i in enumerate(f["instructions"]):
                reads, writes = accesses(name, k)
                row = ptx_row(i["row"])
                if row.control == "call":
                    flow.call(f, i, "address" in exclude)
                stores = row.memory == "store" and row.space != "texture"
                if stores and not known.isdisjoint(_stored(i)):
                    flow.store(f, i)
                if writes and (_source(i, exclude) or flow.reaches(f, i, reads)):
                    found.add((name, k))
                    known.update(writes)
    return found


class _Flow:
    """Where values are that may differ.

    registers: by function. variables: `.param` variables (function, index). spaces: of memory; in "shared"
    and "global" only what is 64 bits wide counts, as addresses are.
    """

    def __init__(self, functions: Mapping[str, PtxFunction]) -> None:
        self._functions = functions
        self.registers: dict[str, set[int]] = {name: set() for name in functions}
        self.variables: set[tuple[str, int]] = set()
        self.spaces: set[str] = set()
        self._size = -1

    def grew(self) -> bool:
        """Whether anything was added since the last call."""
        before = self._size
        self._size = sum(map(len, self.registers.values())) + len(self.variables) + len(self.spaces)
        return self._size != before

    def call(self, f: PtxFunction, i: PtxInstruction, addresses: bool) -> None:
        """Propagates arguments and results of a function."""
        name = f["name"]
        lists = [[p.get("index", -1) for p in o["parts"]] for o in i["operands"] if o["kind"] == "list"]
        target = next((k for k, o in enumerate(i["operands"]) if o["kind"] != "list"), 0)
        results = lists.pop(0) if target > 0 and lists else []
        arguments = lists[0] if lists else []
        callee = i["operands"][target].get("text", "") if i["operands"] else ""
        if callee in self._functions:
            first = len(self._functions[callee]["results"])
            for k, variable in enumerate(arguments):
                if (name, variable) in self.variables:
                    self.variables.add((callee, first + k))
            for k, variable in enumerate(results):
                if (callee, k) in self.variables:
                    self.variables.add((name, variable))
        elif (addresses and callee == "malloc") or any((name, v) in self.variables for v in arguments):
            self.variables.update((name, variable) for variable in results)

    def store(self, f: PtxFunction, i: PtxInstruction) -> None:
        space = _space(i)
        if space == "param":
            self.variables.update((f["name"], v) for v in _based_on(i))
        else:
            self.spaces.update(("local", "global") if space == "generic" else (space,))

    def reaches(self, f: PtxFunction, i: PtxInstruction, reads: Iterable[int]) -> bool:
        """Whether a result is computed from such values. An address only selects what is read."""
        if not ptx_row(i["row"]).reads_memory:
            return not self.registers[f["name"]].isdisjoint(reads)
        space = _space(i)
        if space == "param":
            return any((f["name"], v) in self.variables for v in _based_on(i))
        wide = any(m[1:] == "64" for m in i["modifiers"])
        spaces = {"generic": {"local", "global"}, "const": {"global"}}.get(space, {space})
        return any(s in self.spaces and (wide or s == "local") for s in spaces)


def _stored(i: PtxInstruction) -> list[int]:
    """Registers whose values a store stores."""
    values = [o for o in i["operands"][1:]]
    return [
        p["index"]
        for o in values
        for p in ([o] if o["kind"] == "register" else o.get("parts", ()))
        if p["kind"] == "register"
    ]


def _space(i: PtxInstruction) -> str:
    """The state space of a load or store."""
    known = ("param", "local", "shared", "global", "const")
    return next((s for m in i["modifiers"] if (s := m.split("::")[0]) in known), "generic")


def _based_on(i: PtxInstruction) -> list[int]:
    """The function's own variables named by addresses."""
    bases = [o["parts"][0] for o in i["operands"] if o["kind"] == "address"]
    return [base["index"] for base in bases if base.get("local") and "index" in base]


def _source(i: PtxInstruction, exclude: frozenset[str]) -> bool:
    """Whether an instruction's own result may differ."""
    row, operands = ptx_row(i["row"]), i["operands"]
    if "time" in exclude and (
        row.result == "time"
        or any(o["kind"] == "special" and _TIME_REGISTERS.match(o.get("text", "")) for o in operands)
    ):
        return True
    if "order" in exclude and row.result == "order":
        return True
    return "address" in exclude and (
        row.result == "addresses" or (row.copies and any(_names_variable(o) for o in operands))
    )


def _names_variable(operand: PtxOperand) -> bool:
    """Whether an operand is, or contains, the address of a variable or function."""
    named = [operand, *operand.get("parts", ())] if operand["kind"] == "address" else [operand]
    return any(o["kind"] in ("variable", "symbol") for o in named)
