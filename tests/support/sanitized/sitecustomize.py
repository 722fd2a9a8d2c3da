"""Python with a sanitizer's run-time library, and without it for the programs that Python starts.

The library has to be loaded before all else, with LD_PRELOAD. Compilers and programs that `simt exec` runs
would inherit that, and in the latter, shadow memory would lie where device memory has to be mapped. So each
Python with this folder in its PYTHONPATH starts itself again with the libraries SIMT_SANITIZER, and forgets
LD_PRELOAD. Those that tests run as clients do not come here: they are started with `python -S`.
"""

import os
import sys

_LIBRARIES = os.environ["SIMT_SANITIZER"]
if os.environ.pop("LD_PRELOAD", None) != _LIBRARIES:
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "LD_PRELOAD": _LIBRARIES})
