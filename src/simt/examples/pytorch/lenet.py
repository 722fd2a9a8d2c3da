"""Trains LeNet-5 on scikit-learn's digits: functionally for some steps, then one step with timing."""

import argparse
import copy
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn

import simt
from simt.examples.pytorch import report


def lenet() -> nn.Module:
    """LeNet-5 with padding for images of 8 x 8 instead of 32 x 32."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=4),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 3),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, 10),
    )


class Training:
    """A model, its optimiser, and a step of both on a simulated GPU or, without one, on the CPU."""

    def __init__(self, model: nn.Module, gpu: simt.GPU | None) -> None:
        self.model = model
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        self.zero, self.update = optimiser.zero_grad, optimiser.step
        self.run = model
        if gpu is not None:
            self.run = torch.compile(model, backend="simt", options={"gpu": gpu})
            self.update = torch.compile(optimiser.step, backend="simt", options={"gpu": gpu})

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        self.zero()
        loss = nn.functional.cross_entropy(self.run(images), labels)
        loss.backward()
        self.update()
        return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simt.examples.pytorch.lenet", description=__doc__)
    parser.add_argument("--gpu", default="h100", help="GPU specification (default: h100)")
    parser.add_argument("--steps", type=int, default=30, help="functional steps (default: 30)")
    parser.add_argument("--batch", type=int, default=32, help="images per step (default: 32)")
    parser.add_argument("--output", type=Path, default=Path("lenet"), help="folder (default: lenet)")
    given = parser.parse_args()
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    model = lenet()
    theirs = Training(copy.deepcopy(model), None)
    ours = Training(model, simt.GPU(given.gpu, functional=True))
    print("step   loss on the GPU   loss of PyTorch on the CPU")
    for step in range(given.steps):
        at = torch.arange(step * given.batch, (step + 1) * given.batch) % len(labels)
        found, expected = ours.step(images[at], labels[at]), theirs.step(images[at], labels[at])
        print(f"{step + 1:>4}   {found:<15.5f}   {expected:.5f}")
    gpu = simt.GPU(given.gpu)
    Training(model, gpu).step(images[: given.batch], labels[: given.batch])
    report(gpu.result(), given.output)


if __name__ == "__main__":
    main()
