"""The contents of programs and traces, and of simt itself, as hashes."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from simt import _engine
from simt.errors import LaunchError, StudyError
from simt.files import require_file
from simt.program import script_of
from simt.version import __version__

_PACKAGE = Path(__file__).parents[1]
_NOT_IN_RESULTS = ("cli", "pages", "study", "spec/gpus")
"""What of simt results do not depend on; specifications are part of each point."""
_LIBRARIES = (
    "numpy",
    "nvidia-cuda-cccl-cu12",
    "nvidia-cuda-nvcc-cu12",
    "nvidia-cuda-nvrtc-cu12",
    "numba-cuda",
    "torch",
    "triton",
)
"""What compiles programs and makes their inputs."""
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_CHUNK = 1 << 20


@lru_cache(maxsize=1)
def identity() -> str:
    """SHA-256 over the engine, all of the package that results depend on, and the versions of the libraries
    that compile programs and make their inputs: the same installation gives the same results."""
    digest = hashlib.sha256(__version__.encode())
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            digest.update(f"{library} {version(library)}\n".encode())
    engine = getattr(_engine, "__file__", None)
    sources = (
        path
        for pattern in ("*.py", "*.toml", "*.cu", "*.cuh")
        for path in _PACKAGE.rglob(pattern)
        if not any(path.is_relative_to(_PACKAGE / part) for part in _NOT_IN_RESULTS)
    )
    files = {path.relative_to(_PACKAGE).as_posix(): path for path in sources}
    if engine:  # of an editable installation, it is elsewhere
        files[Path(engine).name] = Path(engine)
    for name, path in sorted(files.items()):
        digest.update(name.encode() + _bytes_digest(path))
    return digest.hexdigest()


def digest_files(paths: Iterable[Path], folder: Path) -> str:
    """SHA-256 over the contents of files, and their names relative to a folder. Raises StudyError."""
    digest = hashlib.sha256()
    for path in sorted(set(paths)):
        require_file(path, "a file that the input reads", StudyError)
        name = path.relative_to(folder) if path.is_relative_to(folder) else Path(path.name)
        try:
            digest.update(name.as_posix().encode() + b"\0" + _bytes_digest(path))
        except OSError as error:
            raise StudyError(f"{path}: cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def sources(program: Path, driver: Path | None) -> list[Path]:
    """The files of a program: itself, its driver, and what they import or include that lies beside them.

    Raises StudyError where one cannot be read.
    """
    found: dict[Path, None] = {}
    try:
        waiting = [program, script_of(program, driver)]
    except LaunchError as error:
        raise StudyError(str(error)) from None
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        require_file(path, "a program", StudyError)
        found[path] = None
        waiting += _used_by(path)
    return list(found)


def digest_class(kind: type) -> str:
    """SHA-256 over the file that defines a class; "" for simt's own, whose identity counts."""
    file = Path(inspect.getfile(kind))
    return "" if file.is_relative_to(_PACKAGE) else digest_files(sources(file, None), file.parent)


def takes_seed(script: Path) -> bool:
    """Whether a program's `main` has a parameter `seed`."""
    for node in _parsed(script).body:
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            arguments = node.args
            return any(a.arg == "seed" for a in (*arguments.args, *arguments.kwonlyargs))
    return False


def _used_by(path: Path) -> Iterator[Path]:
    if path.suffix == ".py":
        for node in ast.walk(_parsed(path)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module or ''}.{a.name}".strip(".") for a in node.names)]
            for name in filter(None, names):
                place = path.parent.joinpath(*name.split("."))
                yield from (
                    each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()
                )
    elif path.suffix in (".cu", ".cuh", ".h", ".hpp"):
        text = path.read_text(encoding="utf-8", errors="replace")
        yield from (each for name in _INCLUDE.findall(text) if (each := path.parent / name).is_file())


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        raise StudyError(f"{path}: no program in Python: {error}") from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from None


def _bytes_digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()
