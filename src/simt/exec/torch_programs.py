"""Python programs that use PyTorch's build for the CPU: their simulated GPUs are in the program's process.

What else uses CUDA in a program goes through `libcuda`. PyTorch's build for the CPU has nothing that would
call it, so the program gets a device of PyTorch (`simt.torch`), and leaves its Results here when it ends.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.result import Result

if TYPE_CHECKING:
    from simt.check.findings import Finding

_HERE = ("output", "progress", "resume")
"""Options for the side of `simt exec`."""
_SITE = Path(__file__).parent / "site"
"""The folder whose `sitecustomize` waits for the import of PyTorch."""


class TorchPrograms:
    """What a program's processes need for it, and the Results that they leave.

    place: a folder that exists as long as the program. options: of `simt.GPU`, without its output. refused:
        PyTorch gets no device, since checkpoints do not hold what is in the program's process.
    """

    def __init__(self, place: Path, gpus: Sequence[Any], options: Mapping[str, Any], refused: bool) -> None:
        self._place = place / "torch"
        self._place.mkdir()
        self._refused = refused
        kept = {n: v for n, v in options.items() if n not in _HERE and v is not None}
        (self._place / "options").write_bytes(pickle.dumps((list(gpus), kept)))

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Variables of the program's environment."""
        if self._refused:
            return {}
        others = inherited.get("PYTHONPATH")
        return {
            "PYTHONPATH": f"{_SITE}:{others}" if others else str(_SITE),
            "SIMT_EXEC_TORCH": str(self._place),
        }

    def findings(self) -> list[Finding]:
        """What was found, with `check`, in the processes that have ended."""
        return [
            finding
            for file in sorted(self._place.glob("*.findings"))
            for finding in pickle.loads(file.read_bytes())
        ]

    def results(self, places: Iterable[Any]) -> list[Result]:
        """What the processes that have ended have left, in order, saved in these places."""
        found = [Result.load(path) for path in sorted(self._place.glob("*.json"))]
        for result, place in zip(found, places, strict=False):
            if place is not None:
                result.save(place)
        return found
