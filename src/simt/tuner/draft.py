"""A specification under construction: values, sources, and the values pinned by the description."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from simt.errors import SpecError
from simt.spec.files import validate
from simt.spec.models import Spec


class Draft:
    """A valid specification whose values change one by one.

    base: the starting point. `pinned`: paths given by the description; measurements do not change them.
    """

    def __init__(self, base: Spec, name: str) -> None:
        self.name = name
        self.base = base.name
        self.spec = base
        self.pinned: set[str] = set()
        self.sources = {
            path: f"inherited from {base.name}, unverified: {base.sources.get(path, 'no source')}"
            for path, _ in base.leaves()
            if path != "name"
        }

    def get(self, path: str) -> Any:
        """The value at a path."""
        return value_at(self.spec.values(), path)

    def copy(self) -> Draft:
        """A copy with the same content."""
        other = copy.copy(self)
        other.pinned, other.sources = set(self.pinned), dict(self.sources)
        return other

    def tried(self, changes: Mapping[str, Any]) -> Spec | None:
        """The specification with these values and those that must follow from them; None if it is invalid."""
        try:
            spec, followed = with_values(self.spec, changes)
        except SpecError:
            return None
        return None if self.pinned & set(followed) else spec

    def change(self, changes: Mapping[str, Any], source: str) -> None:
        """Sets values, with their source. Raises SpecError if they are not valid."""
        self.spec, followed = with_values(self.spec, changes)
        for path in changes:
            self.sources[path] = source
        for path, reason in followed.items():
            self.sources[path] = f"follows {reason}; otherwise {self.sources[path]}"

    def finished(self, description: str) -> Spec:
        """The specification with its name, description and sources."""
        values = self.spec.values()
        values |= {"name": self.name, "description": description}
        return validate(values, {**self.sources, "description": "simt tune"}, self.name)


def value_at(values: Mapping[str, Any], path: str) -> Any:
    for part in path.split("."):
        values = values[part]
    return values


def put(values: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a path of nested tables."""
    *sections, last = path.split(".")
    for section in sections:
        values = values[section]
    values[last] = value


def with_values(spec: Spec, changes: Mapping[str, Any]) -> tuple[Spec, dict[str, str]]:
    """A specification with other values, and the paths that had to change as a consequence, with their
    causes.

    Raises SpecError if it is not valid.
    """
    values = spec.values()
    for path, value in changes.items():
        put(values, path, value)
    followed = {}
    for path, value, reason in _follow(values):
        # If two values contradict each other, the unchanged one follows.
        if path not in changes and value_at(values, path) != value:
            put(values, path, value)
            followed[path] = reason
    return validate(values, {}, spec.name), followed


def _follow(values: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """Consequences of other values: path, value, and the path of the cause."""
    found: list[tuple[str, Any, str]] = []
    l1, shared, address = values["l1"], values["shared_memory"]["bytes"], values["address_map"]
    if l1["adaptive"]:
        limit = max(shared, min(l1["carve_out_options"], default=shared))
        options = sorted({o for o in l1["carve_out_options"] if o < limit} | {limit})
        found.append(("l1.carve_out_options", options, "shared_memory.bytes"))
    channels = address["channels"]
    if address["hash"] in ("xor", "ipoly") and channels & (channels - 1):
        found.append(("address_map.hash", "ipoly_skewed", "address_map.channels"))
    layout, banks = address["layout"], values["dram"]["banks"]
    have = layout.count("B")
    want = max(banks.bit_length() - 1, 0)
    if have and want != have:
        first = layout.index("B")
        rest = layout[:first] + layout[first:].replace("B", "", max(0, have - want))
        found.append(
            ("address_map.layout", rest[:first] + "B" * max(0, want - have) + rest[first:], "dram.banks")
        )
    # Either alone has no effect, so neither would be found alone.
    port = values["interconnect"]["sm_port_sectors"]
    if l1["bypass_sectors_per_cycle"] < port:
        found.append(("l1.bypass_sectors_per_cycle", port, "interconnect.sm_port_sectors"))
    if values["l2"]["partitions"] == 1 and values["l2"]["far_latency"]:
        found.append(("l2.far_latency", 0, "l2.partitions"))
        found.append(("l2.partitions", 2, "l2.far_latency"))
    return found
