"""Two steps of training on the GPU, with kernels that PyTorch compiles: `perceptron`, `convolutions` or
`transformer`."""

import sys

import torch
from torch import nn
from torch.nn import functional


class Transformer(nn.Module):
    """One layer of an encoder over 50 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embedding(tokens))).flatten(0, 1)


torch.manual_seed(46)
if sys.argv[1] == "perceptron":
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    x, y = torch.randn(16, 32), torch.randint(0, 10, (16,))
elif sys.argv[1] == "convolutions":
    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
        *(nn.Flatten(), nn.Linear(16, 10)),
    )
    x, y = torch.randn(8, 1, 16, 16), torch.randint(0, 10, (8,))
else:
    model = Transformer()
    x, y = torch.randint(0, 50, (4, 16)), torch.randint(0, 50, (64,))
model, x, y = model.cuda(), x.cuda(), y.cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
losses = []
for _ in range(2):
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[1] < losses[0]
