"""Controllers by name, for the command line."""

from __future__ import annotations

from collections.abc import Iterable

from simt.control.controller import Controller
from simt.errors import ControlError
from simt.methods.from_text import construct, find_class

# Method -> class. PKA is a plan of launches with PKP inside each launch.
METHODS = {
    "pkp": "simt.control.pkp:PKP",
    "pka": "simt.control.pkp:PKP",
    "photon": "simt.control.photon:Photon",
    "photon-published": "simt.control.photon:PublishedPhoton",
    "scale-model": "simt.control.scale_model:ScaleModel",
    "systematic": "simt.control.systematic:Systematic",
    "tbpoint": "simt.control.tbpoint_regions:TBPointRegions",
    "first-n": "simt.control.first_instructions:FirstInstructions",
}


def make(text: str, settings: Iterable[str] = ()) -> Controller:
    """A controller from `METHOD` or `METHOD:VARIANT`, such as `pkp:artifact`, `photon:warp`, `first-n:1e6`; a
    user's own is `package.module:Class`.

    settings: texts `parameter=value`, which override the variant's.

    Raises ControlError for an unknown method, variant or parameter.
    """
    method, _, variant = text.partition(":")
    if method not in METHODS:
        own = find_class(text, METHODS, Controller, ControlError)
        return construct(text, own, settings, {}, ControlError)
    kind = find_class(method, METHODS, Controller, ControlError)
    values = {}
    if variant:
        try:
            values = kind.variant(variant)
        except (KeyError, ValueError):
            there = ", ".join(f"{method}:{name}" for name in kind.presets) or f"`--sample {method}` alone"
            raise ControlError(f"{method} has no variant {variant!r}; there is {there}") from None
    return construct(method, kind, settings, values, ControlError)
