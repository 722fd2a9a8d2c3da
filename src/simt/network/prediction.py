"""A predicted model: times, energy, memory, by operator; as text, JSON, HTML and Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.errors import SimtError
from simt.files import write_bytes
from simt.formatting import format_energy, format_time, percent, text_table
from simt.pages import notebook
from simt.spec import Spec

from .architecture import Architecture, Weights
from .operators import Phase
from .scaled import Way

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Amount:
    """A value and its interval."""

    value: float
    low: float
    high: float

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.value + other.value, self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> Amount:
        return Amount(self.value * factor, self.low * factor, self.high * factor)

    @property
    def inverse(self) -> Amount:
        """One divided by it."""
        return Amount(1 / self.value, 1 / self.high, 1 / self.low)


@dataclass(frozen=True)
class OperatorTime:
    """An operator in one pass over the network.

    tokens: of each sequence, cached ones included. count: launches of the pass. seconds, low, high: of one
    launch. joules: of one, with its interval; None if the energies of the GPU are not known. limit: what sets
    the pace. flops, nbytes: what one launch needs at least. way: how its time was found; simulated: share of
    its passes that were simulated; processor: seconds that this took. confidence: multiples of the time
    between which silicon is, in 9 of 10 cases.
    """

    phase: Phase
    tokens: int
    name: str
    kernel: str
    count: int
    seconds: float
    low: float
    high: float
    joules: tuple[float, ...] | None
    limit: str
    flops: float
    nbytes: float
    ctas: int
    way: Way
    simulated: float
    processor: float
    confidence: tuple[float, float] | None

    @property
    def time(self) -> Amount:
        """Of all its launches of the pass, in seconds."""
        return Amount(self.seconds, self.low, self.high) * self.count

    @property
    def energy(self) -> Amount | None:
        """Of all its launches of the pass, in J."""
        return None if self.joules is None else Amount(*self.joules) * self.count


@dataclass(frozen=True)
class Prediction:
    """What a model takes on a GPU.

    operators: of the prefill, and of the first and the last decoding step; on one GPU of tensor_parallel that
    share each layer. Intervals are those of the
    extrapolation from parts, with all errors in one direction; those of the simulator against silicon are in
    `confidence`.
    """

    model: Architecture
    spec: Spec
    batch: int
    prefill: int
    decode: int
    weights: Weights
    operators: tuple[OperatorTime, ...]
    tensor_parallel: int = 1

    def rows(self, phase: Phase, tokens: int | None = None) -> list[OperatorTime]:
        """Operators of a pass, in the order of their launches; those of the layers have a count of layers."""
        return [row for row in self.operators if row.phase == phase and tokens in (None, row.tokens)]

    @cached_property
    def time_to_first_token(self) -> Amount:
        """Seconds of the prefill."""
        return _sum(row.time for row in self.rows("prefill"))

    @cached_property
    def time_per_token(self) -> Amount | None:
        """Seconds of a decoding step, in the mean over the steps: linear between the first and the last one,
        which see prefill + 1 and prefill + decode - 1 tokens. None without steps."""
        steps = self.steps
        return _sum(_sum(row.time for row in rows) for rows in steps) * (1 / len(steps)) if steps else None

    @property
    def steps(self) -> list[list[OperatorTime]]:
        """`rows` of the first and of the last decoding step; of one if there is no other."""
        return [self.rows("decode", n) for n in sorted({row.tokens for row in self.rows("decode")})]

    @property
    def seconds(self) -> Amount:
        """Of prefill and decoding."""
        step = self.time_per_token
        return (
            self.time_to_first_token if step is None else self.time_to_first_token + step * (self.decode - 1)
        )

    @property
    def tokens_per_second(self) -> Amount:
        """Generated tokens of all sequences per second of `seconds`."""
        return self.seconds.inverse * (self.batch * self.decode)

    @property
    def joules(self) -> Amount | None:
        """Of prefill and decoding, on all GPUs; None if the energies of the GPU are not known."""
        if any(row.energy is None for row in self.operators):
            return None
        total = _sum(row.energy for row in self.rows("prefill") if row.energy)
        steps = self.steps
        each = [_sum(row.energy for row in rows if row.energy) for rows in steps]
        one = total + _sum(each) * ((self.decode - 1) / len(steps)) if steps else total
        return one * self.tensor_parallel

    @property
    def joules_per_token(self) -> Amount | None:
        """`joules` for each generated token."""
        return None if self.joules is None else self.joules * (1 / (self.batch * self.decode))

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of weights, of the cache with all tokens, and of the prefill's activations, on each GPU."""
        model, tokens = self.model.share(self.tensor_parallel), self.batch * self.prefill
        mlp = model.inner * (3 if model.gated else 2) * max(1, model.per_token)
        widest = max(model.qkv_width + model.heads * model.head_dim, mlp)
        return {
            "weights": model.weight_bytes(self.weights),
            "cache": model.cache_bytes(self.batch, self.prefill + self.decode),
            "activations": 2 * tokens * (2 * model.hidden + widest),
        }

    @property
    def capacity(self) -> int:
        """Bytes of the GPU's memory."""
        return int(self.spec.dram.capacity_gib * (1 << 30))

    @property
    def fits(self) -> bool:
        """Whether the model fits into the GPU's memory."""
        return sum(self.memory.values()) <= self.capacity

    @property
    def confidence(self) -> tuple[float, float, float] | None:
        """Multiples of the time between which silicon is in 9 of 10 cases, by the errors of compared runs,
        the widest of all operators for which such are known; and their share of the time. None if there are
        none."""
        weight = {"prefill": 1.0, "decode": (self.decode - 1) / max(1, len(self.steps))}
        time = [(row, row.time.value * weight[row.phase]) for row in self.operators]
        known = [(row.confidence, seconds) for row, seconds in time if row.confidence is not None]
        if not known:
            return None
        share = sum(seconds for _, seconds in known) / sum(seconds for _, seconds in time)
        return min(sure[0] for sure, _ in known), max(sure[1] for sure, _ in known), share

    @property
    def processor_seconds(self) -> float:
        """Seconds of the host's processor that its simulations took, now or when they were put into the
        cache; those of equal launches once."""
        return sum({(row.kernel, row.processor): row.processor for row in self.operators}.values())

    def limits(self, phase: Phase) -> dict[str, float]:
        """Shares of a phase's time by what limits it, largest first."""
        found: dict[str, float] = {}
        for row in self.rows(phase):
            found[row.limit] = found.get(row.limit, 0.0) + row.time.value
        total = sum(found.values())
        return {name: found[name] / total for name in sorted(found, key=lambda name: -found[name])}

    @property
    def notes(self) -> list[str]:
        """What is to be said of it, in sentences."""
        memory = ", ".join(f"{name} {_gigabytes(size)}" for name, size in self.memory.items())
        fits = "it fits" if self.fits else "IT DOES NOT FIT, and times are as if it did"
        each = "Memory" if self.tensor_parallel == 1 else "Memory of each GPU"
        said = [f"{each}: {memory}; the GPU has {_gigabytes(self.capacity)}: {fits}."]
        for phase in ("prefill", "decode"):
            if limits := self.limits(phase):
                said.append(
                    f"What limits {phase}: {', '.join(f'{k} {percent(v, 0)}' for k, v in limits.items())}."
                )
        sure = self.confidence
        if sure is None:
            said.append("How far silicon may be off is unknown: no compared run is near.")
        else:
            low, high, share = sure
            said.append(
                f"Intervals are of the extrapolation. Silicon is {low - 1:+.0%} to {high - 1:+.0%} off in 9 "
                f"of 10 cases, by compared runs that are near {percent(share, 0)} of the time."
            )
        said.append(
            "Host time, sampling of tokens and their transfers are not included: launches follow at once."
        )
        if self.tensor_parallel > 1:
            said.append(self._link_note())
        if self.model.experts:
            said.append("Experts are taken to get equally many tokens.")
        return said

    def _link_note(self) -> str:
        link, host = self.spec.peer_link.bandwidth, self.spec.host_link.bandwidth
        way = f"a link of {link / 1000:,.0f} GB/s" if link else f"the host's link, {host / 1000:,.0f} GB/s"
        return (
            f"Each of {self.tensor_parallel} GPUs reads from the others over {way} in each direction. All "
            "are taken to be ready at the same time, and the link's energy is not included. Published "
            "all-reduces took 1.1 to 9 times as long, the smallest ones most (docs/models.md)."
        )

    @property
    def totals(self) -> dict[str, Amount | None]:
        """The figures of the whole by name."""
        return {
            "time to first token": self.time_to_first_token,
            "time per token": self.time_per_token,
            "tokens per second": self.tokens_per_second,
            "joules per token": self.joules_per_token,
            "total time": self.seconds,
        }

    @property
    def tables(self) -> list[tuple[list[str], list[list[str]], tuple[int, ...]]]:
        """Header, rows and columns of text: of the whole, and of the operators."""
        whole = [
            [name, _text(name, one.value), f"{_text(name, one.low)} to {_text(name, one.high)}"]
            for name, one in self.totals.items()
            if one is not None
        ]
        header = [
            "phase",
            "operator",
            "launches",
            "time",
            "interval",
            "share",
            "limit",
            "TFLOP/s",
            "GB/s",
            "energy",
        ]
        rows = []
        shown = self.rows("prefill") + (self.steps or [[]])[0]
        for row in shown:
            total = sum(each.time.value for each in shown if each.phase == row.phase)
            time, energy = row.time, row.energy
            rows.append(
                [
                    row.phase,
                    row.name,
                    str(row.count),
                    format_time(time.value),
                    f"{format_time(time.low)} to {format_time(time.high)}",
                    percent(time.value / total, 1),
                    row.limit,
                    f"{row.flops / row.seconds / 1e12:.3g}",
                    f"{row.nbytes / row.seconds / 1e9:,.0f}",
                    "-" if energy is None else format_energy(energy.value),
                ]
            )
        return [(["", "", "interval"], whole, (0,)), (header, rows, (0, 1, 6))]

    @property
    def title(self) -> str:
        """Model, GPU and sizes."""
        kind = self.model.dtype if self.weights == "same" else f"{self.weights} weights"
        gpus = self.spec.name if self.tensor_parallel == 1 else f"{self.tensor_parallel} x {self.spec.name}"
        return (
            f"{self.model.name} ({self.model.parameters / 1e9:.2f} B, {kind}) on {gpus}: "
            f"batch {self.batch}, prefill {self.prefill:,}, decode {self.decode:,}"
        )

    def to_json(self) -> dict[str, Any]:
        """One JSON object: figures of the whole with their intervals, and a row for each operator."""
        return {
            "model": asdict(self.model) | {"parameters": self.model.parameters},
            "gpu": self.spec.name,
            "specification": self.spec.hash,
            **{
                name: getattr(self, name)
                for name in ("batch", "prefill", "decode", "weights", "tensor_parallel")
            },
            **{name.replace(" ", "_"): one and asdict(one) for name, one in self.totals.items()},
            "memory": self.memory | {"capacity": self.capacity, "fits": self.fits},
            "limits": {phase: self.limits(phase) for phase in ("prefill", "decode")},
            "confidence": self.confidence,
            "operators": [asdict(row) for row in self.operators],
            "notes": self.notes,
        }

    def to_polars(self) -> pl.DataFrame:
        """A row for each operator and pass; seconds and joules are of one launch."""
        import polars as pl

        rows = []
        for row in self.operators:
            values = asdict(row)
            joules, sure = values.pop("joules"), values.pop("confidence")
            values |= dict(zip(("joules", "joules_low", "joules_high"), joules or (None,) * 3, strict=True))
            values |= dict(zip(("silicon_low", "silicon_high"), sure or (None,) * 2, strict=True))
            rows.append(values)
        return pl.DataFrame(rows, infer_schema_length=None)

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table of operators."""
        self.to_polars().write_parquet(os.fspath(path))

    def write_chakra(self, path: str | os.PathLike[str]) -> None:
        """Writes its launches in their order as a Chakra execution trace (`simt.network.chakra`)."""
        from .chakra import trace

        write_bytes(Path(path), trace(self), SimtError)

    def write_vidur(self, folder: str | os.PathLike[str]) -> None:
        """Adds its rows to Vidur's profiles in a folder (`simt.network.tables`)."""
        from .tables import write_vidur

        write_vidur(self, Path(folder))

    def write_phantora(self, folder: str | os.PathLike[str]) -> None:
        """Adds linear layers and attention of its prefill to Phantora's performance database in a folder
        (`simt.network.tables`)."""
        from .tables import write_phantora

        write_phantora(self, Path(folder))

    def __str__(self) -> str:
        lines = [self.title, ""]
        for header, rows, left in self.tables:
            lines += [*("  " + line for line in text_table(header, rows, left)), ""]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        return notebook(self.title, self.tables, self.notes)


def _sum(amounts: Iterable[Amount]) -> Amount:
    total = Amount(0.0, 0.0, 0.0)
    for one in amounts:
        total += one
    return total


def _text(name: str, value: float) -> str:
    if "joules" in name:
        return format_energy(value)
    return f"{value:,.4g}" if "per second" in name else format_time(value)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
