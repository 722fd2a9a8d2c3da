"""Readable names of kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence


def listed(names: Sequence[str], limit: int = 12) -> str:
    """Names between commas for a message, at most `limit` of them: `a, b and 280 more`; `none`."""
    if not names:
        return "none"
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def short_name(name: str) -> str:
    """The function's name of a mangled C++ name, with its namespaces, without template and call arguments.

    `_ZN7cutlass6KernelI4GemmEEvT_` becomes `cutlass::Kernel`. Any other name stays as it is.
    """
    found = re.match(r"_Z(N[rVK]*)?(?=[0-9])", name)
    if not found:
        return name
    nested, at, parts = found[1] is not None, found.end(), []
    while length := re.match(r"[1-9][0-9]*", name[at:]):
        start = at + length.end()
        at = start + int(length[0])
        if at > len(name):
            return name
        part = name[start:at]
        parts.append("(anonymous)" if part.startswith("_GLOBAL__N") else part)
        if not nested:
            break
    return "::".join(parts) or name


def function_name(name: str) -> str:
    """What different tools call a kernel, reduced to the function's own name: no return type, namespaces,
    template or call arguments."""
    short = re.sub(r"\(anonymous namespace\)|<unnamed>|\(anonymous\)", "", short_name(name))
    head = re.match(r"[^<(]*", short)
    return (head[0] if head else short).strip().split(" ")[-1].split("::")[-1]
