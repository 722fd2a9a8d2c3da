"""Trains a small transformer as nanoGPT does; prints the losses. Says nothing of simulators."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

BATCH, LENGTH, WIDTH, HEADS, WORDS = 2, 8, 16, 2, 17


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, width = x.size()
        parts = self.qkv(self.before(x)).split(WIDTH, 2)
        q, k, v = (p.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.mlp(self.after(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.block, self.norm = Block(), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.words.weight = self.head.weight

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.places(torch.arange(tokens.size(1), device=tokens.device))
        logits = self.head(self.norm(self.block(x)))
        return F.cross_entropy(logits.view(-1, WORDS), targets.view(-1))


device = sys.argv[1]
torch.manual_seed(1337)
model = Model().to(device)
assert model.words.weight is model.head.weight
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
data = torch.randint(0, WORDS, (200,))
for _ in range(3):
    at = torch.randint(len(data) - LENGTH, (BATCH,))
    tokens = torch.stack([data[i : i + LENGTH] for i in at]).to(device)
    targets = torch.stack([data[i + 1 : i + 1 + LENGTH] for i in at]).to(device)
    loss = model(tokens, targets)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    print(f"{loss.item():.4f}")
