"""FlexAttention with a score of its own, compiled, and its gradients."""

import sys

import torch
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

device = sys.argv[1]
torch.manual_seed(0)
inputs = [torch.randn(1, 2, 128, 32) for _ in range(3)]
on_device = [x.to(device).requires_grad_() for x in inputs]
on_host = [x.clone().requires_grad_() for x in inputs]


def causal(score, batch, head, query, key):
    return torch.where(query >= key, score, -float("inf"))


found = torch.compile(flex_attention)(*on_device, score_mod=causal)
right = scaled_dot_product_attention(*on_host, is_causal=True)
torch.testing.assert_close(found.cpu(), right, rtol=1e-4, atol=1e-5)
found.sum().backward()
right.sum().backward()
for one, other in zip(on_device, on_host, strict=True):
    torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-4, atol=1e-5)
print("passed")
