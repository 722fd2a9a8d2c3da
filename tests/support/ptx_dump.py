"""PTX written in tests, and what the engine makes of it."""

from __future__ import annotations

from typing import Any

from simt import _engine

HEADER = ".version 8.3\n.target sm_90a\n.address_size 64\n"


def dump(text: str) -> dict[str, Any]:
    """A module that begins with the usual header."""
    return _engine.PtxModule((HEADER + text).encode(), "t.ptx").dump()


def body(text: str) -> dict[str, Any]:
    """The only kernel of a module, with this body and the registers that most tests need."""
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
    """Each instruction as text, in one spelling."""
    lines = []
    for i in function["instructions"]:
        guard = ""
        if i["guard"] >= 0:
            guard = f"@{'!' if i['guard_negated'] else ''}{function['registers'][i['guard']][0]} "
        operands = ", ".join(show(function, operand) for operand in i["operands"])
        lines.append(f"{guard}{i['mnemonic']} {operands}".strip())
    return lines
