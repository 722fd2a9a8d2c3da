"""Predicts a language model's time from its operators."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from simt.errors import SimtError
from simt.extras import install
from simt.host_threads import cores
from simt.options import DEFAULT_GPU, whole_option
from simt.spec import Spec, load_spec

from .architecture import WEIGHT_BITS, Architecture, Weights, architecture
from .errors_of_parts import interval
from .operators import Operator, Phase, operators
from .prediction import OperatorTime, Prediction
from .scaled import LaunchEstimate, fastest
from .workers import simulate


def predict(
    config: str | os.PathLike[str] | Mapping[str, Any] | Architecture,
    gpu: str | os.PathLike[str] | Spec = DEFAULT_GPU,
    *,
    batch: int = 1,
    prefill: int = 1024,
    decode: int = 128,
    weights: Weights = "same",
    layers: int | None = None,
    tensor_parallel: int = 1,
    workers: int | None = None,
    set: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Prediction:
    """The time, energy and memory of a transformer on one or several GPUs, from simulated parts of its
    kernels.

    Args:
        config: a name of `KNOWN`, a Hugging Face `config.json` or its folder, its content, or an
            `Architecture`.
        gpu: a name listed by `simt gpus`, a TOML file, or a `simt.spec.Spec`.
        batch: sequences.
        prefill: tokens of each prompt, a multiple of 16.
        decode: tokens generated for each sequence, the first of which comes from the prefill.
        weights: type of the layers' matrices: "same" as activations, "fp8" or "int4".
        layers: so many layers instead of all, with embedding and head.
        tensor_parallel: GPUs that share each layer, linked as the specification's `peer_link` says.
        workers: processes that simulate launches, by default one for each core.
        set: values that override the specification.
        progress: is told what is simulated.

    Raises:
        SimtError: the configuration is not covered, a size is out of bounds, or Triton or ml_dtypes are
            missing.
    """
    model = config if isinstance(config, Architecture) else architecture(config)
    spec = load_spec(gpu, set or ())
    for name, value, least in (("batch", batch, 1), ("prefill", prefill, 16), ("decode", decode, 1)):
        whole_option(name, value, least)
    workers = cores() if workers is None else whole_option("workers", workers)
    if layers is not None:
        whole_option("layers", layers, 1)
        if layers > model.layers:
            raise SimtError(f"layers is {layers}, expected at most the {model.layers} of {model.name}")
        model = replace(model, name=f"{model.name}, {layers} of {model.layers} layers", layers=layers)
    share = model.share(whole_option("tensor_parallel", tensor_parallel, 1))
    if prefill % 16:
        raise SimtError(f"prefill is {prefill}, expected a multiple of 16 tokens")
    if weights not in WEIGHT_BITS:
        raise SimtError(f"weights is {weights!r}, expected one of {', '.join(WEIGHT_BITS)}")
    longest = prefill + decode - 1
    if longest > model.positions or (model.window is not None and longest > model.window):
        most = min(model.positions, model.window or model.positions)
        raise SimtError(f"{model.name} sees at most {most:,} tokens here, found {longest:,}")
    try:
        import ml_dtypes  # noqa: F401
        import triton  # noqa: F401
    except ImportError as error:
        raise SimtError(f"{error}: {install('models')}") from None
    points: list[tuple[Phase, int]] = [("prefill", prefill)]
    points += [("decode", length) for length in sorted({prefill + 1, longest}) if decode > 1]
    simulate(share, points, batch, spec, weights, workers, progress or (lambda text: None))
    found: list[OperatorTime] = []
    for phase, length in points:
        for each in operators(share, phase, batch, length, spec, weights):
            if progress is not None:
                progress(f"{phase} at {length:,} tokens: {each.name}")
            work, one = fastest(each.work, spec)
            found.append(_timed(phase, length, replace(each, work=work), one))
    return Prediction(model, spec, batch, prefill, decode, weights, tuple(found), tensor_parallel)


def _timed(phase: Phase, length: int, operator: Operator, one: LaunchEstimate) -> OperatorTime:
    low, high = interval(operator.work.kind, one)
    joules = None
    if one.joules is not None:
        wide = one.joules_error
        joules = tuple(
            one.joules * x for x in (1.0, (low / one.seconds) * (1 - wide), (high / one.seconds) * (1 + wide))
        )
    work = operator.work
    return OperatorTime(
        phase,
        length,
        operator.name,
        work.kind,
        operator.count,
        one.seconds,
        low,
        high,
        joules,
        one.limit,
        work.flops,
        work.nbytes,
        work.grid,
        one.way,
        one.simulated,
        one.processor,
        one.confidence,
    )
