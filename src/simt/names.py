"""Readable names of kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def listed(names: Sequence[str], limit: int = 12) -> str:
    """Names separated by commas for a message, at most `limit` of them: `a, b and 280 more`; `none`."""
    if not names:
        return "none"
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # not tab and newline


def printable(text: str) -> str:
    """The text with control characters escaped, so that names from files and programs cannot act on the
    terminal: ESC becomes `\\x1b`."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def names_of(kernel: str) -> tuple[str, ...]:
    """What a kernel is called, wherever one is named, from the most to the least specific: by its own name,
    demangled (`a::f<int>(int*)`), without call arguments, without template arguments (`short_name`), and
    without namespaces (`function_name`).
    """
    declaration, short = demangled(kernel).removeprefix("void "), short_name(kernel)
    arguments = _template_arguments(declaration.removeprefix(short)) if declaration.startswith(short) else ""
    return kernel, declaration, short + arguments, short, function_name(kernel)


def named_by(name: str, kernels: Sequence[str]) -> list[str]:
    """The kernels that are called so (`names_of`): of several, those for which the name is most specific."""
    ranks = {x: names_of(x).index(name) for x in kernels if name in names_of(x)}
    return [kernel for kernel, rank in ranks.items() if rank == min(ranks.values())]


@lru_cache(maxsize=1 << 14)
def short_name(name: str) -> str:
    """The function's name in a mangled C++ name, with namespaces, without template and call arguments.

    `_ZN7cutlass6KernelI4GemmEEvT_` becomes `cutlass::Kernel`. Any other name is returned as it is, but
    printable.
    """
    declaration = demangled(name)
    if declaration == name:
        return printable(name)
    text, open_brackets, before_arguments = "", "", None
    for c in declaration.replace("(anonymous namespace)", "\0"):
        if c == "(" and not open_brackets:
            before_arguments = len(text)
        if c in "<(":
            open_brackets += c
        elif not open_brackets:
            text += c
        elif c == ")":
            open_brackets = open_brackets[: open_brackets.rindex("(")] if "(" in open_brackets else ""
        elif c == ">" and open_brackets[-1] == "<":
            open_brackets = open_brackets[:-1]
    without_return_type = text[:before_arguments].strip().rpartition(" ")[2]
    return without_return_type.replace("\0", "(anonymous)") or name


def function_name(name: str) -> str:
    """A kernel's name from any tool, reduced to the function's own name: no return type, namespaces, template
    or
    call arguments.
    """
    short = re.sub(r"\(anonymous namespace\)|<unnamed>|\(anonymous\)", "", short_name(name))
    head = re.match(r"[^<(]*", short)
    return (head[0] if head else short).strip().split(" ")[-1].split("::")[-1]


def demangled(name: str) -> str:
    """The C++ declaration of a mangled name, by the C++ run-time library; any other name as it is."""
    if not (name.startswith("_Z") and name.isascii()):
        return name
    from simt import _engine  # profiles are read without the engine

    return _engine.demangled(name)


def kernel_labels(names: Iterable[str], width: int = 44) -> dict[str, str]:
    """A label of at most `width` characters for each kernel, different for different kernels.

    A kernel with a unique short name is labelled with it. Instances of a template have their arguments;
    arguments that all share become `…` if room is short. Labels that are still equal are numbered.
    """
    families: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        families.setdefault(_family(name), []).append(name)
    found: dict[str, str] = {}
    for family, members in families.items():
        if len(members) == 1:
            found[members[0]] = short_name(members[0]).removeprefix("void ")
        else:
            found |= _told_apart(family, members, width)
    seen: dict[str, int] = {}
    labels = {}
    for name, text in found.items():
        label = shortened(text, width)
        seen[label] = number = seen.get(label, 0) + 1
        while number > 1 and shortened(text, width - len(f" #{number}")) + f" #{number}" in seen:
            number += 1
        if number > 1:
            label = shortened(text, width - len(f" #{number}")) + f" #{number}"
            seen[label] = 1
        labels[name] = label
    return labels


def _family(name: str) -> str:
    """The name without return type, template and call arguments."""
    head = re.match(r"(?:void )?((?:\(anonymous(?: namespace)?\)|[^<(])*)", short_name(name))
    return head[1] if head else name


def _told_apart(family: str, members: Sequence[str], width: int) -> dict[str, str]:
    """The members of a family with what follows their common name."""
    rests = {}
    for name in members:
        text = printable(demangled(name))
        at = text.find(family)
        rests[name] = text[at + len(family) :] if at >= 0 else text
    arguments = {name: _template_arguments(rest) for name, rest in rests.items()}
    if len(frozenset(arguments.values())) == len(members):
        rests = arguments
    whole = {name: family + rest for name, rest in rests.items()}
    if all(len(text) <= width for text in whole.values()):
        return whole
    head = _common(list(rests.values()))
    tail = _common([rest[len(head) :][::-1] for rest in rests.values()])[::-1]
    short = shortened(family, max(12, width // 2))
    return {
        name: f"{short}{head[:1]}…{rest[len(head) : len(rest) - len(tail)]}…{tail[-1:]}"
        for name, rest in rests.items()
    }


def _template_arguments(rest: str) -> str:
    """`<float, 256>` of `<float, 256>(float*)`."""
    depth = 0
    for i, letter in enumerate(rest):
        if letter == "(" and depth == 0:
            return rest[:i]
        depth += (letter == "<") - (letter == ">" and rest[i - 1 : i] != "-")
    return rest


def _common(texts: Sequence[str]) -> str:
    """What all begin with, up to the end of a word."""
    first, last = min(texts), max(texts)
    common = first
    while not last.startswith(common):
        common = common[:-1]
    while common and any(re.match(r"\w\w", text[len(common) - 1 :]) for text in texts):
        common = common[:-1]
    return common


def shortened(text: str, width: int) -> str:
    """The text, cut in the middle to at most `width` characters."""
    if len(text) <= width:
        return text
    head = (width - 1) * 2 // 3
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]
