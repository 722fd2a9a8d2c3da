"""`torch.compile` with its default backend: gradients of several calls, CUDA graphs, sizes that change."""

import copy
import sys

import torch

device = sys.argv[1]
torch.manual_seed(0)
expected = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
model = copy.deepcopy(expected).to(device)
compiled = torch.compile(model, dynamic=True)

batches = [torch.randn(rows, 16) for rows in (4, 4, 7)]
sum(compiled(x.to(device)).square().sum() for x in batches).backward()
sum(expected(x).square().sum() for x in batches).backward()
for found, right in zip(model.parameters(), expected.parameters(), strict=True):
    assert found.grad.device.type == device
    torch.testing.assert_close(found.grad.cpu(), right.grad, rtol=1e-4, atol=1e-4)

torch._dynamo.reset()
graphs = torch.compile(model, mode="reduce-overhead")
with torch.no_grad():
    given = [x.to(device) for x in batches[:2]]
    kept = [graphs(x) for x in given]
    for found, x in zip(kept, batches, strict=False):
        torch.testing.assert_close(found.cpu(), expected(x), rtol=1e-4, atol=1e-4)
print("passed")
