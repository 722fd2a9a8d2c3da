"""One token of GPT-2 with random weights: its logits against PyTorch's, and the time of each operator."""

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import simt
from simt.control import Photon
from simt.examples.pytorch import report


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.before_attention(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        x = x + self.out(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.before_mlp(x))


class Gpt2(nn.Module):
    """GPT-2 small, unless told otherwise: 124 million weights."""

    def __init__(
        self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257, context: int = 1024
    ) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits of the next token. tokens: batch x length."""
        x = self.words(tokens) + self.positions(torch.arange(tokens.size(1), device=tokens.device))
        return self.norm(self.blocks(x)[:, -1]) @ self.words.weight.T


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simt.examples.pytorch.gpt2", description=__doc__)
    parser.add_argument("--gpu", default="h100", help="GPU specification (default: h100)")
    parser.add_argument("--layers", type=int, default=12, help="blocks (default: 12)")
    parser.add_argument("--tokens", type=int, default=16, help="tokens of the prompt (default: 16)")
    parser.add_argument("--photon", action="store_true", help="predict most of the launches while they run")
    parser.add_argument("--functional", action="store_true", help="values only")
    parser.add_argument("--output", type=Path, default=Path("gpt2"), help="folder (default: gpt2)")
    given = parser.parse_args()
    torch.manual_seed(0)
    model = Gpt2(given.layers).eval()
    gpu = simt.GPU(
        given.gpu, functional=given.functional, controller=Photon() if given.photon else None, progress=True
    )
    compiled = torch.compile(model, backend="simt", options={"gpu": gpu})
    tokens = torch.randint(0, 50257, (1, given.tokens))
    with torch.no_grad():
        start = time.monotonic()
        found, expected = compiled(tokens), model(tokens)
    print(f"{time.monotonic() - start:.0f} seconds, compilation included")
    print(
        f"next token {found.argmax()} (PyTorch: {expected.argmax()}); largest error of the logits "
        f"{(found - expected).abs().max():.1e} of {expected.abs().max():.1f}"
    )
    if not given.functional:
        report(gpu.result(), given.output)


if __name__ == "__main__":
    main()
