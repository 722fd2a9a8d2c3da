"""`torch.compile` with its default backend: gradients of several calls, CUDA graphs, sizes that change."""

import copy
import sys

import torch

device = sys.argv[1]
torch.manual_seed(0)
expected = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
model = copy.deepcopy(expected).to(device)
compiled = torch.compile(model)

batches = [torch.randn(rows, 16) for rows in (4, 4, 7)]
given = [x.to(device).requires_grad_() for x in batches]
for x in given:
    torch._dynamo.mark_dynamic(x, 0)
sum(compiled(x).square().sum() for x in given).backward()
assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
for found, x in zip(given, batches, strict=True):
    expected(x.requires_grad_()).square().sum().backward()
    torch.testing.assert_close(found.grad.cpu(), x.grad, rtol=1e-4, atol=1e-4)
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


@torch.compile
def broken(x):
    for row in range(2):
        torch._dynamo.graph_break()  # in a loop: all of the function runs operator by operator
        x = x * 2 + row
    return x


frames = torch._dynamo.utils.counters["frames"]
frames.clear()
torch.testing.assert_close(broken(given[0]).cpu(), batches[0] * 4 + 1)
assert frames["total"] == 1, frames  # none of those that execute operators
print("passed")
