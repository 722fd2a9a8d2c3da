"""Models under simulated PyTorch devices, against PyTorch on one core: speed, and what compilation takes.

python benchmarks/pytorch_models.py [MODEL ...]

All times are seconds of processor time, which other processes disturb less than the wall clock does. Each
part is a process of its own; "cold" has empty caches on disk, "cached" those that the cold one left. A first
call includes compilation; "later" is the best of three that follow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

import simt.torch
from simt.examples.pytorch.gpt2 import Gpt2


class BasicBlock(nn.Module):
    """Of ResNet-18 (He et al. 2015, figure 2)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.norm = convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.second, self.norm2 = convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        self.short = nn.Sequential()
        if stride != 1:
            self.short = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm(self.first(x)))
        return F.relu(self.norm2(self.second(y)) + self.short(x))


def convolution(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


def resnet18() -> nn.Module:
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [
            BasicBlock(inputs, outputs, 1 if inputs == outputs else 2),
            BasicBlock(outputs, outputs, 1),
        ]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class LlamaBlock(nn.Module):
    """A block of Llama: RMS norms, rotary positions, SwiGLU (Touvron et al. 2023, section 2.2)."""

    def __init__(self, width: int = 512, heads: int = 8, hidden: int = 1408, length: int = 64) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        size = width // heads
        angles = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.before_attention(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        q, k = self.turned(q), self.turned(k)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        y = self.before_mlp(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin


class Case(NamedTuple):
    what: str
    model: Callable[[], nn.Module]
    inputs: Callable[[], torch.Tensor]


CASES = {
    "resnet18": Case("ResNet-18, one image of 64 x 64", resnet18, lambda: torch.randn(1, 3, 64, 64)),
    "gpt2": Case(
        "GPT-2, 2 layers of 256, 4 heads, 1,000 words, 64 tokens",
        lambda: Gpt2(layers=2, width=256, heads=4, words=1000, context=64),
        lambda: torch.randint(0, 1000, (1, 64)),
    ),
    "llama": Case("a block of Llama, width 512, 64 tokens", LlamaBlock, lambda: torch.randn(1, 64, 512)),
}


def measured(call: Callable[[], torch.Tensor], times: int) -> tuple[torch.Tensor, float, float]:
    """The result, and seconds of the first call, and of the best of those that follow."""
    took = []
    for _ in range(times + 1):
        begin = time.process_time()
        found = call()
        took.append(time.process_time() - begin)
    return found, took[0], min(took[1:])


def part(name: str, way: str) -> dict[str, Any]:
    """One measurement, in this process. way: "cpu", "eager", "compiled" or "timed"."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    case = CASES[name]
    model, x = case.model().eval(), case.inputs()
    with torch.no_grad():
        expected, _, on_cpu = measured(lambda: model(x), 5)
        if way == "cpu":
            return {"later": on_cpu}
        simt.torch.use("h100", timed=way == "timed", threads=1)
        there, x = model.to("simt"), x.to("simt")
        run = there if way == "eager" else torch.compile(there)
        found, first, later = measured(lambda: run(x).cpu(), 1 if way == "timed" else 3)
    error = ((found - expected).abs().max() / expected.abs().max()).item()
    result = {"first": first, "later": later, "error": error}
    if way == "timed":
        launches = simt.torch.results()[0].launches
        last = launches[len(launches) // 2 :]
        result["warp_instructions"] = sum(launch.warp_instructions for launch in last)
        result["us"] = 1e6 * sum(launch.seconds for launch in last)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(part(options.models[0], options.part)))
        return
    print("| model | way | first call, cold | cached | later | against PyTorch | largest error |")
    print("|---|---|---|---|---|---|---|")
    for name in options.models or CASES:
        with tempfile.TemporaryDirectory() as caches:
            base = run(name, "cpu", caches)["later"]
            print(f"| {CASES[name].what} | PyTorch, one core | | | {base:.4f} | 1 | |", flush=True)
            for way in ("eager", "compiled"):
                cold, cached = run(name, way, caches), run(name, way, caches)
                times = f"{cold['first']:.1f} | {cached['first']:.1f} | {cached['later']:.3f}"
                print(
                    f"| | {way} | {times} | {cached['later'] / base:.0f} times | {cached['error']:.1e} |",
                    flush=True,
                )
            timed = run(name, "timed", caches)
            rate = timed["warp_instructions"] / timed["later"] / 1e3
            print(
                f"| | compiled, timed: {timed['us']:.0f} µs, {rate:,.0f} K warp instructions/s | | "
                f"{timed['first']:.1f} | {timed['later']:.1f} | {timed['later'] / base:.0f} times | "
                f"{timed['error']:.1e} |",
                flush=True,
            )


def run(name: str, way: str, caches: str) -> dict[str, Any]:
    """A part in a process of its own, with caches in a folder."""
    places = {"TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor", "TRITON_CACHE_DIR": f"{caches}/triton"}
    places["SIMT_CACHE"] = f"{caches}/simt"
    found = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, name, "--part", way],
        env={**os.environ, **places},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
