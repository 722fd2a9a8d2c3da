"""Recorded executions: a directory with each launch of a program and the memory before and after it.

recording.json       launches: configuration, allocations with the digests of their contents
registers/N.npz      registers written by the threads of one CTA of launch N, if requested
modules/DIGEST.ptx   the code of the launches
data/DIGEST.zst      contents of allocations, each kept once
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, cast

import numpy as np
import zstandard
from pydantic import BaseModel, ConfigDict, ValidationError

from simt.errors import DebugError
from simt.files import decompressed, require_regular
from simt.version import __version__

from .executors import Scratch
from .launches import LaunchOutcome, Memory, RecordedAllocation, WatchedLaunch
from .registers import RegisterLog

FILE = "recording.json"
MAX_BYTES = 1 << 30
"""Of the data in a recording, unless another limit is given."""
_LEVEL = 3

_Index = tuple[int, int, int]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Allocation(_Model):
    address: int
    size: int
    label: str
    by_kernel: bool
    dtype: str
    shape: tuple[int, ...]
    digest: str


class _Launch(_Model):
    index: int
    kernel: str
    grid: _Index
    block: _Index
    cluster: _Index
    shared: int
    parameters: str
    pointers: tuple[int, ...]
    module: str
    ptx: str
    variables: dict[str, int]
    machine: dict[str, int]
    before: tuple[_Allocation, ...]
    after: tuple[_Allocation, ...]
    fault: str


class _Recording(_Model):
    format: Literal["simt.recording-1"]
    simt: str
    program: str
    gpu: str
    executor: str
    exclude: tuple[str, ...]
    launches: tuple[_Launch, ...]


class RecordingWriter:
    """Writes a recording. It appears under its name when the block ends, and not at all after an exception.

    max_bytes: limit on the compressed data.
    keep: the launches whose contents are kept, rather than only digests.
    registers: returns those of a launch, or None.

    Raises DebugError if the path exists already or the data becomes too large.
    """

    def __init__(
        self,
        path: Path,
        *,
        program: str,
        gpu: str,
        executor: str,
        exclude: frozenset[str],
        max_bytes: int = MAX_BYTES,
        keep: Callable[[WatchedLaunch], bool] = lambda launch: True,
        registers: Callable[[WatchedLaunch], RegisterLog | None] = lambda launch: None,
    ) -> None:
        if path.exists():
            raise DebugError(f"{path}: exists already; remove it or choose another name")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
            for name in ("modules", "data", "registers"):
                (self._folder / name).mkdir()
        except OSError as error:
            raise DebugError(f"{path}: cannot be written: {error.strerror}") from None
        self._path = path
        self._facts = {
            "program": program,
            "gpu": gpu,
            "executor": executor,
            "exclude": tuple(sorted(exclude)),
        }
        self._max_bytes = max_bytes
        self._keeps = keep
        self._registers = registers
        self._bytes = 0
        self._launches: list[_Launch] = []

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                whole = _Recording(
                    format="simt.recording-1",
                    simt=__version__,
                    launches=tuple(self._launches),
                    **self._facts,  # type: ignore[arg-type]
                )
                (self._folder / FILE).write_text(whole.model_dump_json(indent=1), encoding="utf-8")
                self._folder.chmod(0o755)
                os.rename(self._folder, self._path)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, launch: WatchedLaunch, outcome: LaunchOutcome) -> None:
        keep = self._keeps(launch)
        digest = RecordedAllocation.digest_of(launch.ptx.encode())
        (self._folder / "modules" / f"{digest}.ptx").write_text(launch.ptx, encoding="utf-8")
        if (log := self._registers(launch)) is not None:
            place = self._folder / "registers" / f"{launch.index}.npz"
            log.save(place)
            self._grow(launch, place.stat().st_size)
        self._launches.append(
            _Launch(
                index=launch.index,
                kernel=launch.kernel,
                grid=launch.grid,
                block=launch.block,
                cluster=launch.cluster,
                shared=launch.shared,
                parameters=launch.parameters.hex(),
                pointers=launch.pointers,
                module=launch.module,
                ptx=digest,
                variables=launch.variables,
                machine=cast("dict[str, int]", launch.machine),
                before=self._memory(launch, launch.before, keep),
                after=self._memory(launch, outcome.after, keep),
                fault=outcome.fault,
            )
        )

    def _memory(self, launch: WatchedLaunch, memory: Memory, keep: bool) -> tuple[_Allocation, ...]:
        found = []
        for a in memory:
            if keep and a.content is not None:
                self._keep(launch, a.digest, a.content)
            found.append(
                _Allocation(
                    address=a.address,
                    size=a.size,
                    label=a.label,
                    by_kernel=a.by_kernel,
                    dtype="" if a.dtype is None or a.dtype.fields else a.dtype.name,
                    shape=a.shape,
                    digest=a.digest,
                )
            )
        return tuple(found)

    def _keep(self, launch: WatchedLaunch, digest: str, content: bytes) -> None:
        place = self._folder / "data" / f"{digest}.zst"
        if place.exists():
            return
        data = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
        self._grow(launch, len(data))
        place.write_bytes(data)

    def _grow(self, launch: WatchedLaunch, size: int) -> None:
        self._bytes += size
        if self._bytes > self._max_bytes:
            raise DebugError(
                f"{self._path}: launch {launch.index} (`{launch.kernel}`) makes the recording larger than "
                f"{self._max_bytes:,} bytes; allow more (--max-bytes), keep the contents of some launches "
                f"only (--launches) or digests only (--digests)"
            )


class Recording:
    """A recording on disk. Raises DebugError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file = path / FILE
        try:
            require_regular(file)
            text = file.read_text(encoding="utf-8")
            self._whole = _Recording.model_validate_json(text)
        except OSError as error:
            raise DebugError(f"{file}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise DebugError(f"{file}: not a recording: byte {error.start}: {error.reason}") from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise DebugError(f"{file}: not a recording: {place or 'the file'}: {first['msg']}") from None

    @property
    def name(self) -> str:
        return f"{self.path} ({self._whole.executor}, simt {self._whole.simt})"

    @property
    def gpu(self) -> str:
        return self._whole.gpu

    @property
    def exclude(self) -> frozenset[str]:
        """Kinds of results in which its executor may differ from ours: see `InstrumentedProgram.points`."""
        return frozenset(self._whole.exclude)

    def __len__(self) -> int:
        return len(self._whole.launches)

    def __iter__(self) -> Iterator[tuple[WatchedLaunch, LaunchOutcome]]:
        return (self.launch(k + 1) for k in range(len(self)))

    def launch(self, index: int) -> tuple[WatchedLaunch, LaunchOutcome]:
        """A launch, numbered from 1, and its outcome."""
        raw = self._whole.launches[index - 1]
        values: dict[str, Any] = {name: getattr(raw, name) for name in _Launch.model_fields}
        fault, after = values.pop("fault"), values.pop("after")
        place = self.path / "modules" / f"{raw.ptx}.ptx"
        try:
            require_regular(place)
            values["ptx"] = place.read_text(encoding="utf-8")
            values["parameters"] = bytes.fromhex(raw.parameters)
        except OSError as error:
            raise DebugError(f"{place}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise DebugError(f"{self.path / FILE}: launch {index} is damaged: {error}") from None
        values["before"] = tuple(self._allocation(a) for a in raw.before)
        return WatchedLaunch(**values), LaunchOutcome(tuple(self._allocation(a) for a in after), fault)

    def registers(self, launch: WatchedLaunch) -> RegisterLog | None:
        """The registers written by the threads of one CTA of a launch; None if they were not recorded."""
        place = self.path / "registers" / f"{launch.index}.npz"
        return RegisterLog.load(place, launch) if place.exists() else None

    def _allocation(self, raw: _Allocation) -> RecordedAllocation:
        dtype = None
        with suppress(TypeError):
            dtype = np.dtype(raw.dtype) if raw.dtype else None
        return RecordedAllocation(
            raw.address, raw.size, raw.label, raw.by_kernel, dtype, raw.shape, self._content(raw), raw.digest
        )

    def _content(self, raw: _Allocation) -> bytes | None:
        place = self.path / "data" / f"{raw.digest}.zst"
        if len(Path(raw.digest).parts) != 1 or not place.exists():
            return None
        try:
            require_regular(place)
            content = decompressed(place.read_bytes(), raw.size)
        except (OSError, zstandard.ZstdError, MemoryError, ValueError) as error:
            raise DebugError(f"{place}: cannot be read: {error}") from None
        if len(content) != raw.size or RecordedAllocation.digest_of(content) != raw.digest:
            raise DebugError(f"{place}: damaged: its contents do not match the digest")
        return content


class OtherPython:
    """Another version of our own executor: the simt of another Python, run in separate processes.

    python: its interpreter.
    folder: for exchanged files.
    """

    exclude: frozenset[str] = frozenset({"time"})

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        self._folder = folder
        self._launch: WatchedLaunch | None = None
        version = self._call("-c", "import simt; print(simt.__version__)").strip()
        self.name = f"simt {version} of {python}"

    def record(self, program: str, gpu: str, driver: Path | None, size: int | None) -> Recording:
        """Records a whole program with the other version."""
        place = self._folder / "recording"
        arguments = ["debug", "record", program, "-o", str(place), "--gpu", gpu]
        arguments += ["--driver", str(driver)] if driver else []
        arguments += ["--size", str(size)] if size is not None else []
        arguments += ["--max-bytes", str(1 << 40)]
        self._call("-c", "from simt.cli import main; main()", *arguments)
        return Recording(place)

    def run_instrumented(self, launch: WatchedLaunch, ptx: str, scratch: Scratch) -> bytes:
        if launch != self._launch:
            self._launch = launch
            shutil.rmtree(self._folder / "launch", ignore_errors=True)
            with RecordingWriter(
                self._folder / "launch",
                program="",
                gpu="",
                executor=self.name,
                exclude=self.exclude,
                max_bytes=1 << 40,
            ) as writer:
                writer.add(launch, LaunchOutcome(()))
        (self._folder / "instrumented.ptx").write_text(ptx, encoding="utf-8")
        (self._folder / "header").write_bytes(scratch.header)
        (self._folder / "scratch").write_bytes(scratch.content)
        self._call("-m", "simt.debug.replay", str(self._folder))
        return (self._folder / "result").read_bytes()

    def _call(self, *arguments: str) -> str:
        # With our search path, it would import our own version.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        try:
            done = subprocess.run(
                [self._python, *arguments], capture_output=True, text=True, errors="replace", env=environment
            )
        except OSError as error:
            raise DebugError(f"{self._python}: cannot be run: {error.strerror}") from None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise DebugError(f"{self._python}: its simt ended with status {done.returncode}: {said[-1]}")
        return done.stdout
