"""Optional packages, and the commands that install them."""

from __future__ import annotations

from simt.errors import ToolkitError

# The extras of pyproject.toml, with the modules that they bring.
EXTRAS = {
    "analysis": ("scipy", "sklearn", "threadpoolctl", "matplotlib"),
    "torch": ("torch",),
    "triton": ("triton",),
    "numba-cuda": ("numba_cuda",),
    "policies": ("numba",),
    "study": ("parsl", "optuna"),
}


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'simt[{extra}]'"


def explained(error: ModuleNotFoundError, what: str) -> Exception:
    """A ToolkitError with the command that installs the missing module; other modules' errors are returned
    unchanged.

    what: the feature that needs it, for the message.
    """
    package = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if package in modules:
            return ToolkitError(f"{what} needs {package}, which is not installed: {install(extra)}")
    return error
