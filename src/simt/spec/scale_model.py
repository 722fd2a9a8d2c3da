"""A part of a GPU that behaves as the whole one does: some SMs, with their share of what they share."""

from __future__ import annotations

from collections.abc import Iterator

from simt.errors import SpecError
from simt.spec.models import Spec

_FEWEST, _MOST = 16, 8
"""Of the GPU's SMs at least one in so many, and one in so many if channels can be divided so."""
_FEWEST_CHANNELS = 3
"""Fewer take accesses to neighbouring memory in turn, all at once."""
_NEAR = 0.02
"""Difference between the shares of SMs and channels that the clock of DRAM makes up for."""


def scale_model(spec: Spec) -> Spec:
    """A sixteenth to an eighth of the GPU, or as much as its memory channels can be divided: SMs, with their
    share of the memory channels and L2 slices, and of the rate at which CTAs are dispatched.

    Raises SpecError if no part of it is a GPU.
    """
    from simt.spec import load_spec

    refused = SpecError(f"{spec.name}: no part of it is a GPU")
    for sms, channels in _sizes(spec.sm.count, spec.address_map.channels, spec.l2.partitions):
        share = sms / spec.sm.count
        launch = spec.launch
        changes = {
            "sm.count": sms,
            "address_map.channels": channels,
            "clock.dram_mhz": round(spec.clock.dram_mhz * share * spec.address_map.channels / channels, 3),
            "launch.peak_dispatch_rate": round(launch.peak_dispatch_rate * share),
            "launch.dispatch_rate": round(launch.dispatch_rate * share),
            "launch.dispatch_burst": round(launch.dispatch_burst * share),
        }
        try:
            return load_spec(spec, changes)
        except SpecError as error:  # some hashes take a power of two of channels
            refused = error
    raise refused


def with_room(part: Spec, whole: Spec, lines: float) -> Spec:
    """A part whose L2 has room for so many lines that other parts bring, beside its share."""
    from simt.spec import load_spec

    more = lines * whole.l2.partitions  # each partition has a copy of them
    wanted = min(part.l2_lines + more, whole.l2_lines)
    ways = round(part.l2.slice.ways * wanted / part.l2_lines)
    return part if ways <= part.l2.slice.ways else load_spec(part, {"l2.slice.ways": ways})


def _sizes(sms: int, channels: int, partitions: int) -> Iterator[tuple[int, int]]:
    """SMs and channels of parts, the best first: those whose shares of both are near, and the smallest of
    them."""
    found = []
    for some in range(-(-sms // _FEWEST), sms + 1):
        exact = channels * some / sms
        whole = max(1, round(exact / partitions)) * partitions
        if whole >= min(channels, _FEWEST_CHANNELS):
            found.append((abs(whole / exact - 1) > _NEAR, max(some, -(-sms // _MOST)), some, whole))
    for *_, some, whole in sorted(found):
        yield some, whole
