"""`rank`: checks, simulates and orders the configurations of a program."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simt.errors import SimtError
from simt.options import DEFAULT_GPU
from simt.spec import load_spec
from simt.study import Study

from .programs import Candidates, Parameters, difference_of, values_of
from .ranking import Ranked, Ranking


def rank(
    program: str | os.PathLike[str],
    parameters: Parameters | None = None,
    gpu: str = DEFAULT_GPU,
    *,
    driver: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | None = None,
    sample: str | None = None,
    check: bool = True,
    rtol: float = 1e-3,
    results: str | os.PathLike[str] | None = None,
    workers: Mapping[str, Any] | None = None,
    triton_cache: str | os.PathLike[str] | None = None,
    progress: Any = None,
) -> Ranking:
    """Ranks the configurations of a program by their simulated time: the sum of all launches.

    program: a `.py` file with `main(gpu, **configuration)`; a `.cu` file, which gets the configuration as
    macros,
        with a driver `main(gpu, module, **configuration)` in the `.py` file of the same name; or a `.py`
        file with one `@triton.autotune` kernel, which `main(gpu)` launches by `gpu.triton`.
    parameters: their values, of which all combinations are ranked, or a list of configurations; None:
        `CONFIGURATIONS` of the file, or those of its autotuned kernel.
    gpu, set: the GPU, and values that override its specification.
    sample: a controller as in `simt run --sample`, which simulates less and states an interval.
    check: compare what `main` returns (an array, or a dict or list of arrays) with what its first
    configuration
        returns, or the function `reference()` of the file, to a relative `rtol` of the largest value.
    results: a folder; what is there is not simulated again. None: FILE.rank beside the program.
    workers: as in a study file, such as `{"kind": "slurm"}`; None: a process for each core.
    triton_cache: a folder (TRITON_CACHE_DIR) into which the times of an autotuned kernel are put as Triton's
        autotuner would.
    progress: as for `Study.run`.

    A configuration that fails, or whose values are wrong, is ranked last, with the reason. Raises SimtError
    for a program without configurations; StudyError where workers cannot be started.
    """
    path = Path(program)
    candidates = Candidates.read(path, parameters, None if driver is None else Path(driver))
    load_spec(gpu, dict(set or {}))  # what is wrong with the GPU is not an error of each configuration
    if triton_cache is not None and not candidates.autotuned:
        raise SimtError(f"{candidates.script}: has no autotuned Triton kernel, expected one for its cache")
    folder = Path(results) if results is not None else path.with_suffix(".rank")
    wrong, checked = _checked(candidates, gpu, rtol) if check else ({}, "not checked")
    files = candidates.write(folder / "configurations")
    good = [i for i in range(len(files)) if i not in wrong]
    rows = [
        Ranked(candidates.configurations[i], math.nan, math.nan, math.nan, math.nan, text)
        for i, text in wrong.items()
    ]
    if good:
        more: dict[str, Any] = {} if workers is None else {"workers": dict(workers)}
        study = Study(
            inputs=[{"input": str(files[i]), "name": files[i].stem, "files": candidates.files} for i in good],
            gpus=[str(gpu)],
            set={key: [value] for key, value in (set or {}).items()},
            methods=[sample or "full"],
            results=str((folder / "study").absolute()),
            **more,
        )
        study.run(progress)
        by_name = {row["input"]: row for row in study.table().iter_rows(named=True)}
        rows += [_ranked(candidates.configurations[i], by_name.get(files[i].stem, {})) for i in good]
    rows.sort(key=lambda row: (bool(row.error), row.seconds if not row.error else 0.0))
    kept = _for_triton(candidates, rows, gpu, triton_cache)
    return Ranking(str(path), str(gpu), tuple(rows), checked, kept)


def _for_triton(
    candidates: Candidates, rows: Sequence[Ranked], gpu: str, cache: str | os.PathLike[str] | None
) -> dict[str, Any] | None:
    """What Triton's autotuner would keep; None for launches of several tuning keys, unless it is wanted."""
    from simt.gpu import GPU

    if not candidates.autotuned or not rows or rows[0].error:
        return None
    device = GPU(gpu, functional=True)
    tuning = candidates.tuning(device, rows[0].configuration)
    if cache is not None:
        tuning.write(Path(cache), rows, device.spec.sm_version)
    return tuning.to_json(rows) if len(tuning.keys) == 1 else None


def _checked(candidates: Candidates, gpu: str, rtol: float) -> tuple[dict[int, str], str]:
    """By position, why a configuration is wrong; and what values were compared with."""
    import runpy

    from simt.gpu import GPU

    reference = runpy.run_path(str(candidates.script)).get("reference")
    wanted = values_of(reference()) if callable(reference) else None
    of = "those of reference()" if wanted is not None else "those of the first configuration that runs"
    wrong: dict[int, str] = {}
    found = False
    for i, configuration in enumerate(candidates.configurations):
        try:
            values = values_of(candidates.run(GPU(gpu, functional=True), configuration))
        except SimtError as error:
            wrong[i] = str(error).split("\n")[0]
            continue
        except AssertionError as error:
            wrong[i] = f"wrong values: {error}"
            continue
        except Exception as error:  # of the user's program, or of a tuner that prunes this configuration
            wrong[i] = f"{type(error).__name__}: {error}".split("\n")[0]
            continue
        found |= bool(values)
        if wanted is None:
            wanted = {name: np.array(x) for name, x in values.items()}
        elif text := difference_of(values, wanted, rtol):
            wrong[i] = f"wrong values: {text}"
    return wrong, f"compared with {of}" if found else "main returns none, so none are compared"


def _ranked(configuration: dict[str, Any], row: Mapping[str, Any]) -> Ranked:
    if row.get("status") != "done":
        return Ranked(
            configuration, math.nan, math.nan, math.nan, math.nan, str(row.get("error") or "not simulated")
        )
    seconds, cycles = float(row["seconds"]), float(row["cycles"])
    half = float(row.get("error_bound") or 0.0)
    return Ranked(configuration, seconds, seconds * (1 - half), seconds * (1 + half), cycles)
