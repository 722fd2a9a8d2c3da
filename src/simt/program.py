"""Programs to run: Python files with a `main(gpu)`, CUDA files with a driver, ready examples, workloads."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import LaunchError
from simt.extras import explained
from simt.files import is_regular, not_found, require_file
from simt.hints import did_you_mean
from simt.options import DEFAULT_GPU

if TYPE_CHECKING:
    from simt.gpu import GPU
    from simt.profile import Profile
    from simt.spec import Spec
    from simt.workloads import Outputs, Workload

SUFFIXES = (".py", ".cu", ".ptx", ".cubin", ".fatbin")
_EXAMPLES = Path(__file__).parent / "examples"
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_MAIN = re.compile(r"\b(?:int|auto)\s+main\s*\(")


def examples() -> dict[str, str]:
    """The ready examples: name and summary."""
    found = {}
    for path in sorted(_EXAMPLES.glob("[a-z]*.py")):
        found[path.stem] = path.read_text(encoding="utf-8").split('"""')[1].strip().split("\n")[0]
    return found


def find_program(name: Path) -> Path | Workload | None:
    """The program named by a path, an example or a workload; None for a path that may be a trace. Raises
    LaunchError for an unknown name.
    """
    if name.suffix in SUFFIXES:
        return name
    if name.exists() or len(name.parts) != 1 or name.suffix:
        return None
    from simt.workloads import WORKLOADS  # here, for they need NumPy

    example = _EXAMPLES / f"{name}.py"
    found = example if example.exists() else WORKLOADS.get(name.name)
    if found is None:
        known = [*examples(), *WORKLOADS]
        hint = did_you_mean(str(name), known) or f"; the examples and workloads are {', '.join(known)}"
        raise LaunchError(f"{name}: there is no such file, example or workload{hint}")
    return found


def run_program(
    program: Path | Workload,
    gpu: GPU,
    driver: Path | None = None,
    size: int | None = None,
    seed: int | None = None,
) -> None:
    """Runs a program on a GPU; `gpu.result()` then has its launches.

    A `.py` file has a function `main(gpu)`. A `.cu`, `.ptx`, `.cubin` or `.fatbin` file has a driver, a
    Python file with a function `main(gpu, module)`; by default, the one with the same name. size: the size of
    a workload; None: its default. seed: the argument `seed` of a file's `main`; None: it is given none.

    Raises LaunchError if a file or its `main` is missing; exceptions of the program propagate.
    """
    gpu.program = str(program) if isinstance(program, Path) else program.name
    if not isinstance(program, Path):
        if driver is not None:
            raise LaunchError(f"workload {program.name}: --driver is for programs in other files")
        _describe(program.run(gpu, size))
        return
    path = program
    if size is not None:
        raise LaunchError(f"{path}: --size is for workloads")
    script = script_of(path, driver)
    require_file(script, "a Python program", LaunchError)
    module: Any = None if path.suffix == ".py" else gpu.load(path)
    parameters = (gpu,) if module is None else (gpu, module)
    signature = "main(gpu)" if module is None else "main(gpu, module)"
    without_main = (
        f"{script}: has no function `{signature}`. A script that launches its kernels by itself is run by "
        f"`simt exec -- python {script}`; with --profile FILE.parquet before the --, `simt sample "
        "FILE.parquet` then chooses its launches"
    )
    if not binds_main(script):  # before the script does all its work
        raise LaunchError(without_main)
    try:
        main = runpy.run_path(str(script)).get("main")
        if not callable(main):
            raise LaunchError(without_main)
        main(*parameters, **({} if seed is None else {"seed": seed}))
    except ModuleNotFoundError as error:
        raise explained(error, script.stem if script.parent == _EXAMPLES else str(script)) from error
    except RuntimeError as error:
        if "active drivers" not in str(error):  # Triton's words
            raise
        raise LaunchError(
            f"{script}: kernel[grid](...) is Triton's own launch, for which it found no GPU. Launch kernels "
            "by `gpu.triton(kernel)[grid](...)`, or run a script that has Triton's launches by `simt exec`"
        ) from error


def profiled(
    program: Path | Workload,
    gpu: str | Spec = DEFAULT_GPU,
    driver: Path | None = None,
    size: int | None = None,
    threads: int = 1,
) -> Profile:
    """A profile of a program that is executed without timing: what its launches execute, and the time
    expected of them on `gpu`; see `simt.profile.executed`. Other arguments are as for `run_program`.

    Raises ProfileError if it launches no kernel, and whatever `run_program` raises.
    """
    from simt.gpu import GPU

    device = GPU(gpu, functional=True, threads=threads)
    with device.profiled() as found:
        run_program(program, device, driver, size)
    return found.profile()


def script_of(path: Path, driver: Path | None) -> Path:
    """The Python file that runs a program: itself, or its driver.

    Raises LaunchError if the program or its driver is missing, or a Python file has a driver.
    """
    if why := not_found(path, "a program"):
        raise LaunchError(f"{path}: {why}")
    if path.suffix == ".py":
        if driver is not None:
            raise LaunchError(f"{path}: a Python program is its own driver; --driver is for other files")
        return path
    if is_whole(path, driver):
        raise LaunchError(
            f"{path}: a program with its own `main`, which only `simt run` and `simt exec` run; elsewhere "
            f"it needs a driver, {path.with_suffix('.py')}, with a function `main(gpu, module)`"
        )
    script = driver or path.with_suffix(".py")
    if not script.exists():
        raise LaunchError(
            f"{path}: its driver {script} is missing. Write one with a function `main(gpu, module)` that "
            f"makes the arrays and launches the kernels, or name another with --driver"
        )
    return script


def is_whole(path: Path, driver: Path | None = None) -> bool:
    """Whether this is a source file with its own `main`, as far as its text shows, without a driver."""
    if path.suffix != ".cu" or driver is not None or path.with_suffix(".py").exists() or not is_regular(path):
        return False
    return _MAIN.search(_NO_CODE.sub(" ", path.read_text(encoding="utf-8", errors="replace"))) is not None


def binds_main(script: Path) -> bool:
    """Whether a file binds the name `main`, as far as its text shows: names from `import *` and syntax errors
    are for running it to find.
    """
    try:
        tree = ast.parse(script.read_bytes(), str(script))
    except (SyntaxError, ValueError, OSError, RecursionError):
        return True
    for node in ast.walk(tree):
        defined = (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == "main"
        )
        bound = isinstance(node, ast.Name) and node.id == "main" and isinstance(node.ctx, ast.Store)
        imported = isinstance(node, ast.alias) and (node.asname or node.name) in ("main", "*")
        if defined or bound or imported:
            return True
    return False


def _describe(outputs: Outputs) -> None:
    for name, values in outputs.items():
        mean = float(values.mean(dtype="float64"))
        print(f"{name}: {values.size:,} values of {values.dtype}, mean {mean:.6g}")
