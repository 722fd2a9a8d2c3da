"""GPU specifications: what is known of each GPU, checked, with the source of every value."""

from simt.spec.files import available, describe, field_texts, load_spec, to_json, to_toml, write_toml
from simt.spec.gpgpusim import SpecWarning, from_gpgpusim
from simt.spec.models import Spec

__all__ = [
    "Spec",
    "SpecWarning",
    "available",
    "describe",
    "field_texts",
    "from_gpgpusim",
    "load_spec",
    "to_json",
    "to_toml",
    "write_toml",
]
