"""Runs an unmodified CUDA program on simulated GPUs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import simt._engine
from simt.checkpoint.point import parse_point
from simt.errors import CheckpointError, LaunchError, LimitReached, ToolkitError
from simt.options import DEFAULT_GPU, ExecOptions, ExecutionOptions, GpuOptions, keywords_of
from simt.result import Result
from simt.run.interruption import Limits, number_of
from simt.run.overrides import override_texts
from simt.run.planned import Timed
from simt.spec import load_spec

from .checkpoints import CheckpointRecording, CheckpointWritten, Resumption, Steps, fixed_addresses
from .device import ProgramDevice
from .process import Process
from .server import Server
from .torch_programs import TorchPrograms

if TYPE_CHECKING:
    from simt.check.findings import Finding

_SETTINGS = {
    "CUPY_COMPILE_WITH_PTX": "1",  # CuPy: not machine code
    "TRITON_DEFAULT_BACKEND": "nvidia",  # Triton: does not look for AMD's, for which it loads PyTorch
}
"""Variables that a program's environment has by default: settings that clients document."""
_REDIRECT = "libcuda_redirect.so"
_ANY_ORDER = "verify_asan_link_order=0"
_SOCKET = "socket"
_MOST_SOCKET_NAME = 107
"""Bytes of the path of a socket, without the zero that ends it: `sun_path` of unix(7)."""
_SHORT_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
_REPEATABLE = {"PYTHONHASHSEED": "0"}
"""Those of a program that must do the same in every run."""


@dataclass(frozen=True)
class Finished:
    """A program that has ended.

    status: as in `subprocess`: negative for a signal. 1 for a program that ended with 0 although simt lacked
        what executes its code (which standard error says).
    stopped: "max_cycles" or "timeout" if that limit ended it, else empty.
    findings: what was found, with `check`.
    results: one for each device that launched kernels with timing, in the order in which they were closed.
    """

    status: int
    results: tuple[Result, ...]
    stopped: str = ""
    findings: tuple[Finding, ...] = ()


class ProgramInterrupted(KeyboardInterrupt):
    """A program was ended by Ctrl-C or another signal. results: as of Finished, with what had finished.
    number: of the signal."""

    def __init__(self, results: Sequence[Result], number: int) -> None:
        super().__init__("program interrupted")
        self.results = tuple(results)
        self.number = number


def libraries() -> Path:
    """The folder of the replacement libraries. Raises ToolkitError if they were not built."""
    folder = Path(simt._engine.__file__).parent / "exec" / "lib"
    if not (folder / "libcuda.so.1").is_file():
        raise ToolkitError(
            f"{folder}: no libcuda.so.1: simt was built without NVIDIA's headers; install it again on Linux "
            "where pip reaches nvidia-cuda-runtime-cu12"
        )
    return folder


@keywords_of(ExecOptions)
def run(command: Sequence[str | os.PathLike[str]], options: ExecOptions) -> Finished:
    """Runs a program that uses CUDA, and returns when it has ended.

    command: the program and its arguments. It uses the CUDA runtime, as a shared library or as a part of its
        own files, which must have their symbols then; or the driver API.
    {options}

    `timeout` counts from the start of the program, whatever it is doing. Results of further devices and
    processes are saved next to `output`, with a number added to the name.

    Raises LaunchError if the program cannot be started, SimtError for invalid options (SpecError before the
    program starts), CheckpointError (docs/checkpoints.md), and ProgramInterrupted on Ctrl-C.
    Launches finished by then are saved.
    """
    folder = libraries()
    if (options.checkpoint_at is None) != (options.checkpoint is None):
        raise CheckpointError("a checkpoint needs both its point and a directory to be written in")
    if options.checkpoint_at is not None and options.resume_from is not None:
        raise CheckpointError("a program that resumes from a checkpoint cannot make another one")
    Timed(
        options.plan, options.launches, options.capture_range
    )  # a wrong selection is refused before the start
    limits = Limits(options.max_cycles, options.timeout)
    steps: Steps | None = None
    gpu = options.gpu
    if options.resume_from is not None:
        steps = Resumption(options.resume_from, options.functional)
        gpu = steps.spec if gpu is None else gpu
    gpu = DEFAULT_GPU if gpu is None else gpu
    gpus = list(gpu) if isinstance(gpu, Sequence) and not isinstance(gpu, str) else [gpu]
    for one in gpus:  # a wrong name is refused before the program starts
        spec = load_spec(one, override_texts(options.set))
        if options.power:
            from simt.power import energies_of

            energies_of(options.power, spec.name)
    if options.checkpoint_at is not None and options.checkpoint is not None:
        steps = CheckpointRecording(options.checkpoint, parse_point(options.checkpoint_at))
    places, profiles = numbered(options.output), numbered(options.profile)
    common = {one.name: getattr(options, one.name) for one in fields(ExecutionOptions)}
    common |= {"functional": bool(options.untimed), "max_cycles": limits.max_cycles}

    def make(ordinal: int, program: str, ask: Callable[[int], None]) -> ProgramDevice:
        own = common | {"output": next(places), "timeout": limits.timeout_left}
        return ProgramDevice(
            GpuOptions(gpus[ordinal], **own), next(profiles), ordinal, options.name or program, ask, steps
        )

    with _scratch() as scratch:
        place = Path(scratch) / _SOCKET
        server = Server(place, make, len(gpus))
        inherited = dict(os.environ if options.env is None else options.env)
        others = inherited.get("LD_LIBRARY_PATH")
        inherited |= {
            "LD_LIBRARY_PATH": f"{folder}:{others}" if others else str(folder),
            "LD_PRELOAD": _first(folder / _REDIRECT, inherited.get("LD_PRELOAD")),
            # AddressSanitizer refuses any library that is loaded before its own.
            "ASAN_OPTIONS": ":".join(filter(None, (inherited.get("ASAN_OPTIONS"), _ANY_ORDER))),
            "SIMT_EXEC_SOCKET": str(place),
            "SIMT_EXEC_DEVICES": str(len(gpus)),
            "TRITON_LIBCUDA_PATH": str(folder),
            "NVTX_INJECTION64_PATH": str(folder / "libcuda.so.1"),
        }
        for name, value in (_SETTINGS if steps is None else _SETTINGS | _REPEATABLE).items():
            inherited.setdefault(name, value)
        inherited.pop("CUDA_VISIBLE_DEVICES", None)
        torch = TorchPrograms(Path(scratch), gpus, common, refused=steps is not None)
        inherited |= torch.environment(inherited)
        try:
            process = Process(command, inherited, None if steps is None else fixed_addresses, server.signal)
        except LaunchError:
            server.close()
            if steps is not None:
                steps.close()
            raise
        stopped, status = "", None
        try:
            stopped = server.run(process.ended, limits)
            if stopped:
                process.terminate()
                server.give_up(stopped)
            elif steps is not None:
                steps.require_arrived()
        except LimitReached as limit:
            stopped = limit.result.status
            process.terminate()
            server.give_up(stopped)
        except CheckpointWritten:
            process.terminate()
            status = 0
        except KeyboardInterrupt as stop:
            process.terminate()
            server.give_up("interrupted")
            raise ProgramInterrupted(server.results, number_of(stop)) from None
        except BaseException:
            process.terminate()
            server.give_up("interrupted")
            raise
        finally:
            server.hang_up()
            process.end()
            process.close()
            server.close()
            if steps is not None:
                steps.close()
        status = process.status() if status is None else status
        results = *server.results, *torch.results(places)
        findings = *_of_program(command, server.findings), *torch.findings()
    return Finished(status or int(bool(server.lacking)), results, stopped, findings)


def _first(library: Path, others: str | None) -> str:
    """LD_PRELOAD with a library at its beginning.

    Its directory, which is on LD_LIBRARY_PATH, is left out if it has characters that end a name there.
    """
    name = library.name if any(c in ": " for c in str(library)) else str(library)
    return f"{name}:{others}" if others else name


def _of_program(command: Sequence[str | os.PathLike[str]], findings: list[Finding]) -> list[Finding]:
    """Findings without the memory that packages of Python keep in pools until the end."""
    if not Path(command[0]).name.startswith("python"):
        return findings
    return [each for each in findings if each.kind != "leak-device"]


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A directory for the socket: that for temporary files (TMPDIR) unless its name is too long for one.

    Raises ToolkitError if there is none.
    """
    refused = []
    for parent in dict.fromkeys((tempfile.gettempdir(), *_SHORT_PLACES)):
        try:
            folder = tempfile.TemporaryDirectory(prefix="simt-exec-", dir=parent)
        except OSError as error:
            refused.append(f"{parent}: {error.strerror}")
            continue
        if len(os.fsencode(Path(folder.name) / _SOCKET)) <= _MOST_SOCKET_NAME:
            return folder
        folder.cleanup()
        refused.append(f"{parent}: its name is too long for a socket")
    raise ToolkitError(
        f"no directory for the socket to the program ({'; '.join(refused)}); set TMPDIR to one with a short "
        "name in which files can be created"
    )


def numbered(output: str | os.PathLike[str] | None) -> Iterator[str | os.PathLike[str] | None]:
    """Where Results are saved: `out`, `out.2`, `out.3`, ... (`out.json`, `out.2.json`, ...)."""
    number = 1
    while True:
        if output is None or number == 1:
            yield output
        else:
            path = Path(output)
            yield path.with_name(f"{path.stem}.{number}{path.suffix}")
        number += 1
