"""In a Python program under `simt exec`: PyTorch's build for the CPU gets the simulated GPUs as "cuda".

Python imports this file when it starts, since `simt exec` puts its folder on PYTHONPATH.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class _Loader(importlib.abc.Loader):
    """Loads PyTorch, then gives it the simulated GPUs."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        if module.version.cuda is not None or module.version.hip is not None:
            return  # it uses the driver by itself
        from simt.torch.under_exec import begin

        begin(os.environ["SIMT_EXEC_TORCH"])


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for the import of PyTorch. Programs may ask whether it is there long before they import it."""

    _searching = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if sys.meta_path[0] is not self:  # pytest's finder takes each module that is named like a test
            sys.meta_path.remove(self)
            sys.meta_path.insert(0, self)
        if name != "torch" or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec("torch")
            if spec is not None and spec.loader is not None and importlib.util.find_spec("simt") is not None:
                spec.loader = _Loader(spec.loader)
        finally:
            self._searching = False
        return spec


def _continue() -> None:
    """Imports the `sitecustomize` that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    rest = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "SIMT_EXEC_TORCH" in os.environ:
    sys.meta_path.insert(0, _Finder())
_continue()
