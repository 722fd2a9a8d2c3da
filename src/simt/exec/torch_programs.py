"""Python programs that use PyTorch's build for the CPU: their simulated GPUs are in the program's process.

What else uses CUDA in a program goes through `libcuda`. PyTorch's build for the CPU has nothing that would
call it, so the program gets a device of PyTorch (`simt.torch`), and leaves its Results here when it ends.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simt.result import Result

_SITE = Path(__file__).parent / "site"
"""The folder whose `sitecustomize` waits for the import of PyTorch."""


class TorchPrograms:
    """What a program's processes need for it, and the Results that they leave.

    place: a folder that exists as long as the program. options: of `simt.GPU`, without its output.
    """

    def __init__(self, place: Path, gpus: Sequence[Any], options: Mapping[str, Any]) -> None:
        self._place = place / "torch"
        self._place.mkdir()
        kept = {name: value for name, value in options.items() if name not in ("output", "progress", "resume")}
        (self._place / "options").write_bytes(pickle.dumps((list(gpus), kept)))

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Variables of the program's environment."""
        others = inherited.get("PYTHONPATH")
        return {
            "PYTHONPATH": f"{_SITE}:{others}" if others else str(_SITE),
            "SIMT_EXEC_TORCH": str(self._place),
        }

    def results(self) -> list[Result]:
        """What the processes that have ended have left, in the order of their numbers."""
        return [Result.load(path) for path in sorted(self._place.glob("*.json"))]
