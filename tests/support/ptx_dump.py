"""PTX written in tests, and how the engine parses it."""

from __future__ import annotations

from typing import Any

from simt import _engine

WIDTHS = {"b8": 1, "b16": 1, "u16": 1, "b32": 1, "u32": 1, "f32": 1, "b64": 2, "f64": 2, "b128": 4}
HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n"


def dump(text: str) -> dict[str, Any]:
    """A module that begins with the usual header."""
    return _engine.PtxModule((HEADER + text).encode(), "t.ptx").dump()


def body(text: str) -> dict[str, Any]:
    """A module with a single kernel with this body and the registers that most tests need."""
    registers = ".reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<8>; .reg .b16 %rs<4>;"
    (function,) = dump(f".visible .entry k(.param .u64 a) {{ {registers}\n{text}\n}}")["functions"]
    return function


def show(function: dict[str, Any], operand: dict[str, Any]) -> str:
    """An operand, as one would write it: names of registers, labels with their targets."""
    kind = operand["kind"]
    parts = [show(function, part) for part in operand.get("parts", [])]
    sign = "!" if operand.get("negated") else ""
    offset = f"+{operand['value']}" if operand.get("value") else ""
    if kind == "register":
        component = operand.get("component", 0)
        suffix = f".{component}" if component else ""
        return sign + function["registers"][operand["index"]][0] + suffix
    if kind == "special":
        return "%" + operand["text"]
    if kind == "integer":
        return str(operand["value"])
    if kind == "float":
        return f"{'f' if operand['single'] else 'd'}{operand['value'] & (1 << 64) - 1:x}"
    if kind in ("variable", "symbol"):
        where = "local " if operand.get("local") else ""
        return where + operand["text"] + offset
    if kind == "label":
        name, target = function["labels"][operand["index"]]
        return f"{name}@{target}"
    if kind == "address":
        return "[" + parts[0] + offset + "".join(f", {part}" for part in parts[1:]) + "]"
    if kind == "discard":
        return "_"
    brackets = {"vector": "{}", "list": "()", "pair": ["", ""]}[kind]
    return brackets[0] + ("|" if kind == "pair" else ", ").join(parts) + brackets[1]


def shown(function: dict[str, Any]) -> list[str]:
    """Each instruction as text, in a canonical spelling."""
    lines = []
    for i in function["instructions"]:
        guard = ""
        if i["guard"] >= 0:
            guard = f"@{'!' if i['guard_negated'] else ''}{function['registers'][i['guard']][0]} "
        operands = ", ".join(show(function, operand) for operand in i["operands"])
        lines.append(f"{guard}{i['mnemonic']} {operands}".strip())
    return lines


def live_after(module: _engine.PtxModule, index: int) -> tuple[list[set[int]], list[set[int]]]:
    """Registers that are live after each instruction, and before it, by iteration over instructions."""
    function = module.dump()["functions"][index]
    count = len(function["instructions"])
    successors: list[list[int]] = [[i + 1] for i in range(count)]
    blocks = module.blocks(index)
    for _, last, after, _ in blocks:
        successors[last - 1] = [blocks[s][0] for s in after]
    accesses = [module.accesses(index, i) for i in range(count)]
    before: list[set[int]] = [set() for _ in range(count)]
    after_each: list[set[int]] = [set() for _ in range(count)]
    changed = True
    while changed:
        changed = False
        for i in reversed(range(count)):
            reads, writes = accesses[i]
            after_each[i] = set().union(*(before[s] for s in successors[i] if s < count))
            killed = set() if function["instructions"][i]["guard"] >= 0 else set(writes)
            new = after_each[i] - killed | set(reads)
            changed |= new != before[i]
            before[i] = new
    return after_each, before


def check_allocation(module: _engine.PtxModule, index: int) -> dict[str, Any]:
    """Checks that the allocation separates registers that are live at once, and its figures."""
    function = module.dump()["functions"][index]
    allocation = module.allocation(index)
    places = allocation["places"]
    is_predicate = [kind == "pred" for _, kind, _ in function["registers"]]
    widths = [1 if kind == "pred" else WIDTHS[kind] for _, kind, _ in function["registers"]]

    def held(registers: set[int], predicates: bool) -> list[int]:
        return [places[r] + k for r in registers if is_predicate[r] == predicates for k in range(widths[r])]

    after, before = live_after(module, index)
    named: set[int] = set()
    most = 0
    for i in range(len(after)):
        reads, writes = module.accesses(index, i)
        named |= {*reads, *writes}
        # A destination must not overlap a live register, or an operand that is still to be read.
        for registers in (before[i] | set(writes) | set(reads), after[i] | set(writes)):
            for predicates in (False, True):
                used = held(registers, predicates)
                assert len(used) == len(set(used)), (i, registers)
        for registers in (before[i], after[i] | set(writes)):
            most = max(most, len(held(registers, False)))
    assert {r for r in range(len(places)) if places[r] is not None} == named
    for r in named:
        assert places[r] % min(widths[r], 4) == 0
        assert places[r] + widths[r] <= allocation["predicates" if is_predicate[r] else "registers"]
    # Divergent lanes may hold any two values at once; values of different widths must not overlap.
    lane_bytes = [8 if kind in ("b64", "f64", "b128") else 4 for _, kind, _ in function["registers"]]
    wide, narrow = (
        {places[r] + k for r in named if not is_predicate[r] and lane_bytes[r] == n for k in range(widths[r])}
        for n in (8, 4)
    )
    assert not wide & narrow
    assert allocation["max_live"] == most <= allocation["registers"]
    return allocation
