"""GPU specifications: what is known of each GPU, checked, with the source of every value."""

from simt.spec.files import available, load_spec, to_toml, write_toml
from simt.spec.gpgpusim import from_gpgpusim
from simt.spec.models import Spec

__all__ = ["Spec", "available", "from_gpgpusim", "load_spec", "to_toml", "write_toml"]
