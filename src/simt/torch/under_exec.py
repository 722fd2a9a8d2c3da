"""PyTorch in a program under `simt exec`: its side (`exec/torch_programs.py`: the other)."""

from __future__ import annotations

import atexit
import os
import pickle
from pathlib import Path

from . import script


def begin(place: str) -> None:
    """Makes the GPUs of `simt exec` PyTorch's devices. place: the folder of options and Results."""
    gpus, options = pickle.loads((Path(place) / "options").read_bytes())
    script.use(gpus, device="cuda", **options)
    atexit.register(_leave, Path(place))


def _leave(place: Path) -> None:
    if found := script.findings():
        (place / f"{os.getpid()}.findings").write_bytes(pickle.dumps(found))
    for number, result in enumerate(script.results()):
        if result.launches:
            result.save(place / f"{os.getpid()}-{number:03}.json")
