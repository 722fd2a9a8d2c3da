"""A ranking of a Triton kernel's configurations as what Triton's autotuner keeps of its own measurements.

With `cache_results=True`, or `TRITON_CACHE_AUTOTUNING=1`, `@triton.autotune` looks for a file
`KERNEL.autotune.json` in its cache, in a folder whose name follows from the versions of Triton and ptxas, the
GPU, the kernel's source, the configurations and the tuning key of the launch
(`triton.runtime.autotuner.Autotuner.check_disk_cache`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simt.errors import SimtError

from .ranking import Ranked


@dataclass(frozen=True)
class TritonTuning:
    """What the autotuner of a kernel was called for.

    tuner: the `Autotuner`. keys: its tuning keys, of each launch another one. configs: those left by pruning.
    """

    tuner: Any
    keys: tuple[tuple[Any, ...], ...]
    configs: tuple[Any, ...]

    @classmethod
    def recorded(cls, tuner: Any, run: Callable[[], object], best: Mapping[str, Any]) -> TritonTuning:
        """Calls `run`, which launches the kernel with the best configuration, and notes what the tuner is
        asked for."""
        keys: dict[tuple[Any, ...], None] = {}
        left: list[Any] = []
        prune = tuner.prune_configs

        def noted(kwargs: Mapping[str, Any]) -> list[Any]:
            keys[_tuning_key(tuner, {**tuner.nargs, **kwargs})] = None
            left[:] = prune(kwargs)
            return [config for config in left if config.all_kwargs() == best]

        tuner.prune_configs = noted
        try:
            run()
        finally:
            tuner.prune_configs = prune
        return cls(tuner, tuple(keys), tuple(left))

    def to_json(self, rows: Sequence[Ranked]) -> dict[str, Any]:
        """The file's content: times in ms, of each configuration its time and the ends of its interval.

        Raises SimtError where launches have several keys, whose times are not told apart.
        """
        if len(self.keys) != 1:
            raise SimtError(
                f"kernel {self.tuner.fn.__name__}: its launches have {len(self.keys)} tuning keys, expected "
                "one: rank a program that launches it for one shape and type"
            )
        times = {
            _text(row.configuration): [1e3 * row.seconds, 1e3 * row.low, 1e3 * row.high]
            for row in rows
            if not row.error
        }
        found = [(config.__dict__, times.get(_text(config.all_kwargs()))) for config in self.configs]
        return {"key": self.keys[0], "configs_timings": [pair for pair in found if pair[1] is not None]}

    def write(self, folder: Path, rows: Sequence[Ranked], sm_version: int) -> Path:
        """Puts the file into a cache (TRITON_CACHE_DIR), as Triton of this installation would on that GPU.

        Raises SimtError.
        """
        from triton import knobs
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend
        from triton.runtime.autotuner import get_cache_invalidating_env_vars
        from triton.runtime.cache import get_cache_manager, triton_key

        content = self.to_json(rows)
        fn = self.tuner.fn
        while not hasattr(fn, "cache_key"):
            fn = fn.fn
        parts = [
            triton_key(),
            make_backend(GPUTarget("cuda", sm_version, 32)).hash(),
            fn.cache_key,
            str(sorted(get_cache_invalidating_env_vars().items())),
            str(self.keys[0]),
            *map(str, self.configs),
        ]
        digest = hashlib.sha256("-".join(parts).encode()).hexdigest()
        with knobs.cache.scope():
            knobs.cache.dir = str(folder.absolute())
            name = f"{fn.__name__[:150]}.autotune.json"
            return Path(get_cache_manager(digest).put(json.dumps(content), name, binary=False))


def _tuning_key(tuner: Any, named: Mapping[str, Any]) -> tuple[Any, ...]:
    """As `Autotuner.run` makes it, for tensors of PyTorch in place of arrays."""
    own = {name: value for name, value in named.items() if name in tuner.arg_names}
    types = [str(value.dtype) for value in own.values() if hasattr(value, "dtype")]
    return (
        *(own[name] for name in tuner.keys if name in own),
        *(name if name.startswith("torch.") else f"torch.{name}" for name in types),
    )


def _text(configuration: Mapping[str, Any]) -> str:
    return json.dumps(dict(configuration), sort_keys=True, default=str)
