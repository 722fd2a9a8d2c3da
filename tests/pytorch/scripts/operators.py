"""Eager operators on a device against the CPU. The argument is the device's name."""

import gc
import io
import sys
import warnings

import torch
from torch._inductor import compile_fx
from torch.nn import functional as F
from triton._C import libtriton

from simt.torch import eager, operator_cache

device = sys.argv[1]
torch.manual_seed(0)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    torch.rand(3, device=device)
assert [x.filename for x in seen if "runs on the host" in str(x.message)] == [__file__], seen
warnings.simplefilter("ignore")


def same(found, expected):
    assert found.device.type == device, found.device
    torch.testing.assert_close(found.cpu(), expected)


a, b = torch.randn(3, 4), torch.randn(4)
c, d = a.to(device), b.to(device)
same(c + d, a + b)
same((c.T * 2)[1:, ::2], (a.T * 2)[1:, ::2])
same(c @ c.T, a @ a.T)
same(c.sum(0, keepdim=True).expand(3, 4), a.sum(0, keepdim=True).expand(3, 4))
same(F.layer_norm(c, (4,)), F.layer_norm(a, (4,)))
same(torch.where(c > 0, c, d), torch.where(a > 0, a, b))
same(c.half() + 1, a.half() + 1)
same(torch.cat([c, c]).view(2, 12), torch.cat([a, a]).view(2, 12))

# strides are PyTorch's, also where Inductor would pad rows or put channels last
odd, kernel = torch.rand(2, 9, 273, device=device), torch.rand(32, 16, 3, 3, device=device)
assert (odd + odd).is_contiguous() and (odd.transpose(0, 1) + 1).stride() == (273, 9 * 273, 1)
images = torch.rand(2, 16, 9, 9, device=device)
assert F.conv2d(images, kernel).is_contiguous()
images = images.contiguous(memory_format=torch.channels_last)
assert F.conv2d(images, kernel).is_contiguous(memory_format=torch.channels_last)

# cuBLAS by Triton, of 4-bit numbers with scale factors
lt = libtriton.nvidia.cublas.CublasLt(None)
packed = torch.randint(0, 256, (2, 128, 32), dtype=torch.uint8)
factors = torch.randint(0x30, 0x48, (2, 512), dtype=torch.uint8).view(torch.float8_e4m3fn)
product = torch.empty(128, 128, device=device)
lt.block_scaled_matmul_nvfp4(*packed.to(device), product, *factors.to(device))
sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
numbers = torch.stack([sizes[packed.int() % 16], sizes[packed.int() // 16]], -1).reshape(2, 128, 64)
places = [[row % 32 * 16 + row // 32 * 4 + column // 16 for column in range(64)] for row in range(128)]
left, right = numbers * factors.float()[:, torch.tensor(places)]
same(product, left @ right.T)

# in place, through views
e, f = c.clone(), a.clone()
for t in (e, f):
    t[1].mul_(2)
    t[:, 1] = 7
    t[0, 2:] += 1
same(e, f)

# the same operators for other tensors, and for tensors that overlap
for n in range(3):
    same(torch.cat([e[:2], e[1:]]) * n, torch.cat([f[:2], f[1:]]) * n)
    same(e[:, :2] + e[:, 1:3], f[:, :2] + f[:, 1:3])
    same(torch.native_layer_norm(e, [4], d, d, 1e-5)[0], torch.native_layer_norm(f, [4], b, b, 1e-5)[0])
    e, f = e.add_(d), f.add_(b)
same(e, f)
operator_cache.KERNELS = operator_cache.OperatorCache()  # as in another process, without Inductor
eager.KERNELS, operator_cache.compile_fx = operator_cache.KERNELS, None
same(torch.cat([e[:2], e[1:]]) * 2, torch.cat([f[:2], f[1:]]) * 2)
operator_cache.compile_fx = compile_fx

# the memory of a graph is its own
if device == "cuda":
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = (e + 1) * 2
    others = [torch.full_like(e, 7) for _ in range(4)]
    graph.replay()
    torch.cuda.synchronize()
    same(doubled, (f + 1) * 2)
    same(torch.stack(others), torch.full((4, *f.shape), 7.0))

# overlapping copies, resizing, and operators without a kernel, which run on the host
same(c.nonzero(), a.nonzero())
same(torch.linalg.inv(c[:, :3]), torch.linalg.inv(a[:, :3]))
same(c.sort(-1).values, a.sort(-1).values)
counted = torch.tensor([3, 0, 1, 3], device=device).histc(bins=4, min=0, max=3)
assert counted.dtype is torch.int64 and counted.tolist() == [1, 1, 0, 2]
assert c[1, 2].item() == a[1, 2].item()

# autograd, with a second backward through the same leaf
x, y = a.clone().requires_grad_(), a.to(device).requires_grad_()
for t in (x, y):
    (t.exp() * t).sum().backward()
    t.square().mean().backward()
same(y.grad, x.grad)

# random numbers have a seed
torch.manual_seed(5)
first = torch.rand(3, device=device).cpu()
torch.manual_seed(5)
assert torch.equal(first, torch.rand(3, device=device).cpu())

# files
kept = io.BytesIO()
torch.save({"c": c}, kept)
kept.seek(0)
same(torch.load(kept)["c"], a)
kept.seek(0)
assert torch.equal(torch.load(kept, map_location="cpu")["c"], a)

model = torch.nn.Linear(4, 2)
expected = model(a)
same(model.to(device)(c), expected)

# memory
module = getattr(torch, device)
gc.collect()
before = module.memory_allocated()
big = torch.empty(1 << 20, dtype=torch.uint8, device=device)
assert module.memory_allocated() - before == 1 << 20, (before, module.memory_allocated())
del big
assert module.memory_allocated() == before
print("passed")
