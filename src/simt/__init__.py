"""simt simulates GPU programs: fast, in detail, deterministically. See docs/ for the tutorial.

The public names are in `__init__.pyi`; each is imported when it is first used.
"""

import lazy_loader

from simt.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# `from simt import *` hides no built-in function and needs no extra.
__all__ = [name for name in __all__ if name not in ("exec", "torch")]
