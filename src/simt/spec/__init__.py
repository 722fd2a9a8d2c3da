"""GPU specifications: what is known of each GPU, checked, with the source of every value."""

from simt.spec.data_sheet import DataSheet
from simt.spec.derive import Derivation, DerivedValue, derive
from simt.spec.files import (
    available,
    describe,
    field_texts,
    load_spec,
    outside_policies,
    policy_fields,
    to_json,
    to_toml,
    write_toml,
)
from simt.spec.gpgpusim import SpecWarning, from_gpgpusim
from simt.spec.models import Spec
from simt.spec.peaks import Peaks, peaks

__all__ = [
    "DataSheet",
    "Derivation",
    "DerivedValue",
    "Peaks",
    "Spec",
    "SpecWarning",
    "available",
    "derive",
    "describe",
    "field_texts",
    "from_gpgpusim",
    "load_spec",
    "outside_policies",
    "peaks",
    "policy_fields",
    "to_json",
    "to_toml",
    "write_toml",
]
