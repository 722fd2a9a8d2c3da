"""Which PTX instructions can be executed: tries forms of every opcode, for docs/functional/coverage.md.

python -m simt.cuda.coverage > docs/functional/coverage.md
"""

from __future__ import annotations

import itertools
import re
import string
from collections import defaultdict
from collections.abc import Sequence

from simt import _engine
from simt.errors import PtxError
from simt.isa.ptx import ptx_table

TARGET = "sm_90a"

# A form is `mnemonic operands`. {a,b} stands for each of its parts, {,x} for with and without, $NAME for a set below.
# Operands: T is a register of the size of the last type, A of the first, B of the last, W of twice the last; h r l q are
# registers of 16, 32, 64 and 128 bits, p a predicate, 4xr a vector, V a vector or register as .v2 or .v4 say, <a,b>
# a vector of operands; [g] [s] [v] [c] are addresses in global, shared, local and constant memory, [y] in the shared or
# global memory that the mnemonic names, [x] in any that it names; anything else stands for itself.
SETS = {
    "INTS": "{u16,u32,u64,s16,s32,s64}",
    "WIDE": "{u32,u64,s32,s64}",
    "BITS": "{b16,b32,b64}",
    "COMPLETE": "mbarrier::complete_tx::bytes",
}
FORMS = [form for row in ptx_table().values() for form in row.forms.split(" | ") if form]
# What PTX has for sm_100 and later only, one form or a few of each kind.
LATER_FORMS = [form for row in ptx_table().values() for form in row.later_forms.split(" | ") if form]
_SIZE = {"8": "h", "16": "h", "32": "r", "64": "l", "128": "q"}
_WIDER = {"h": "r", "r": "l", "l": "q"}
_DECLARED = {"h": "b16", "r": "b32", "l": "b64", "q": "b128"}
# What forms name besides registers: memory, functions, textures; and, within the kernel, branch targets.
_DECLARATIONS = """\
.const .align 8 .b8 cmem[64];
.global .texref tref;
.global .surfref sref;
.func nothing() { ret; }
.func (.reg .b64 y) square(.reg .b64 x) { mul.lo.u64 y, x, x; ret; }
.global .u64 table[1] = {nothing};
"""
_INSIDE = """\
ts: .branchtargets L;
proto: .callprototype _ ();
proto2: .callprototype (.reg .b64 _) _ (.reg .b64 _);
"""
_HEADER = f"""# Which PTX instructions can be executed

Written by `python -m simt.cuda.coverage > docs/functional/coverage.md`, which loads each form in a kernel for {TARGET}; do
not edit. Accepted means that it loads; what instructions compute is tested in `tests/functional/`. What is not accepted is
refused when a program is loaded, with the reason given here. The forms are a selection of those that PTX has for `sm_70` to
`sm_90`, each with fixed operands, not all. ptxas accepts every one of them (`tests/cuda/test_coverage.py`).
"""


def expand(text: str) -> list[str]:
    """Expands a text with {a,b} parts to all its alternatives."""
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        return [text]
    return list(
        itertools.chain.from_iterable(
            expand(text[: found.start()] + part + text[found.end() :]) for part in found[1].split(",")
        )
    )


def _size(modifier: str) -> str:
    if modifier == "pred":
        return "p"
    if modifier in ("f16x2", "bf16x2", "u16x2", "s16x2", "tf32"):
        return "r"
    digits = re.fullmatch(r"b?[usbf](8|16|32|64|128)", modifier)
    return _SIZE[digits[1]] if digits else ""


class _Operands:
    """Names registers on demand, a separate one for each operand."""

    def __init__(self, mnemonic: str) -> None:
        modifiers = mnemonic.split(".")
        self._sizes = [size for m in modifiers if (size := _size(m))] or ["r"]
        self._vector = next((int(m[1:]) for m in modifiers if m in ("v2", "v4", "v8")), 1)
        self._memory = "smem" if "shared" in mnemonic else "cmem" if ".const" in mnemonic else "%l60"
        self._next: dict[str, int] = defaultdict(int)

    def register(self, kind: str) -> str:
        self._next[kind] += 1
        return f"%{kind}{self._next[kind] - 1}"

    def text(self, letter: str) -> str:
        last = self._sizes[-1]
        if letter == "V":
            return self.vector(self._vector, last) if self._vector > 1 else self.register(last)
        if letter in ("T", "A", "B", "W"):
            return self.register(
                {"T": last, "A": self._sizes[0], "B": last, "W": _WIDER.get(last, "l")}[letter]
            )
        if letter in _DECLARED or letter == "p":
            return self.register(letter)
        if found := re.fullmatch(r"(\d+)x([hrl])", letter):
            return self.vector(int(found[1]), found[2])
        return letter

    def vector(self, count: int, kind: str) -> str:
        return "{" + ", ".join(self.register(kind) for _ in range(count)) + "}"

    def address(self, letter: str) -> str:
        named = {"g": "%l60", "v": "%l60", "s": "smem", "c": "cmem", "x": self._memory, "y": self._memory}
        return named.get(letter) or self.text(letter)


def instruction(form: str) -> str:
    """A form as an instruction."""
    mnemonic, _, operands = form.partition(" ")
    if operands == ";":
        return f"{mnemonic};"
    names = _Operands(mnemonic)
    out = ""
    for part in re.split(r"([,|!\[\]<>()])", operands):
        out += {"<": "{", ">": "}"}.get(part) or (
            names.address(part) if out.endswith("[") else names.text(part)
        )
    return f"{mnemonic} {out};"


def kernel(lines: list[str]) -> str:
    """A program with a kernel for each instruction."""
    registers = " ".join(f".reg .{kind} %{letter}<150>;" for letter, kind in _DECLARED.items())
    kernels = (
        f".visible .entry k{number}(.param .u64 out)\n{{\n{registers} .reg .pred %p<9>;"
        f" .shared .align 16 .b8 smem[1024];\n{_INSIDE}{line}\nL: ret;\n}}\n"
        for number, line in enumerate(lines)
    )
    return f".version 8.8\n.target {TARGET}\n.address_size 64\n{_DECLARATIONS}{''.join(kernels)}"


def refusal(line: str, memory: _engine.functional.DeviceMemory) -> str | None:
    """Why an instruction cannot be executed; None if it can."""
    try:
        _engine.functional.load(kernel([line]), "form", memory)
    except PtxError as error:
        return str(error).split("\n")[0].rsplit(": ", 1)[-1]
    return None


def forms(patterns: Sequence[str] = FORMS) -> list[str]:
    """All forms described by patterns."""
    every = [e for pattern in patterns for e in expand(string.Template(pattern).substitute(SETS))]
    return list({instruction(form): form for form in every}.values())


def _table(tried: list[str]) -> str:
    memory = _engine.functional.DeviceMemory(1 << 24)
    count: dict[str, int] = defaultdict(int)
    refused: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for form in tried:
        opcode = re.split(r"[. ]", form)[0]
        count[opcode] += 1
        why = refusal(instruction(form), memory)
        if why is not None:
            refused[opcode][why].append(form.split(" ")[0])
    total = sum(count.values())
    lost = sum(len(names) for reasons in refused.values() for names in reasons.values())
    rows = [
        f"\n{total - lost:,} of {total:,} forms of {len(count)} opcodes are accepted.\n",
        "| opcode | accepted | tried | refused |",
        "|---|---|---|---|",
    ]
    for opcode in sorted(count):
        reasons = refused[opcode]
        missing = sum(len(names) for names in reasons.values())
        notes = "; ".join(
            f"`{names[0]}`{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
            for why, names in reasons.items()
        )
        rows.append(f"| {opcode} | {count[opcode] - missing} | {count[opcode]} | {notes.replace('|', '¦')} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """The page as Markdown."""
    return (
        _HEADER
        + _table(forms())
        + "\n## Instructions of sm_100 and later\n\nA selection.\n"
        + _table(forms(LATER_FORMS))
    )


if __name__ == "__main__":
    print(page(), end="")
