"""Readable names of kernels."""

from __future__ import annotations

import re


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
