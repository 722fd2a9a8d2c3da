"""A Triton script as users write it: launches, autotuning, measurements, streams, graphs."""

import json
import os
import tempfile

import torch
import triton
import triton.language as tl
import triton.profiler as proton
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = triton.runtime.driver.active.get_active_torch_device()
N = 3000


@triton.jit
def arcsine(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, i < n) + libdevice.asin(tl.load(y + i, i < n)), i < n)


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def doubled(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, 2 * tl.load(x + i, i < n), i < n)


@triton.jit
def transposed(x, o, BLOCK: tl.constexpr):
    o.store([0, 0], x.load([0, 0]).T)


assert torch.cuda.is_available() and torch.device("cuda", 0) == DEVICE
assert torch.cuda.get_device_properties(0).multi_processor_count == 132
assert torch.cuda.get_device_name() == "NVIDIA H100"
x, y = torch.rand(N, device=DEVICE), torch.rand(N, device="cuda")
assert x.is_cuda
o = torch.empty_like(x)
grid = (triton.cdiv(N, 1024),)
arcsine[grid](x, y, o, N, BLOCK=1024)
torch.testing.assert_close(o.cpu(), x.cpu() + torch.asin(y.cpu()))

doubled[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, o, N)
assert torch.equal(o.cpu(), 2 * x.cpu())
assert doubled.best_config.kwargs["BLOCK"] in (128, 512)

square, turned = torch.rand(16, 16, device="cuda"), torch.empty(16, 16, device="cuda")
transposed[(1,)](
    TensorDescriptor.from_tensor(square, [16, 16]), TensorDescriptor.from_tensor(turned, [16, 16]), BLOCK=16
)
assert torch.equal(turned.cpu(), square.cpu().T)

cold = triton.testing.do_bench(lambda: arcsine[grid](x, y, o, N, BLOCK=1024))
stream = torch.cuda.Stream()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(stream):
    begin.record()
    arcsine[grid](x, y, o, N, BLOCK=1024)
    end.record()
stream.synchronize()
warm = begin.elapsed_time(end)
assert 0 < warm < cold < 1, (warm, cold)  # the L2 is empty in a measurement

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    arcsine[grid](x, y, o, N, BLOCK=1024)
x.zero_()
y.zero_()
torch.cuda.synchronize()
assert o.cpu().abs().max() > 0  # capturing computes nothing
graph.replay()
torch.cuda.synchronize()
assert o.cpu().abs().max() == 0

torch.cuda.nvtx.range_push("outer")
with torch.cuda.nvtx.range("inner"):
    assert torch.cuda.nvtx.range_push("innermost") == 2
assert torch.cuda.nvtx.range_pop() == 1 and torch.cuda.nvtx.range_pop() == 0

with torch.profiler.profile() as profile:
    arcsine[grid](x, y, o, N, BLOCK=1024)
(row,) = (row for row in profile.key_averages() if row.key == "arcsine")
assert 0 < row.device_time_total < 1e3 * warm, (row.device_time_total, warm)

with tempfile.TemporaryDirectory() as folder:
    session = proton.start(os.path.join(folder, "found"), hook="triton")
    with proton.scope("both", {"flops32": 2.0 * N}):
        arcsine[grid](x, y, o, N, BLOCK=1024)
        arcsine[grid](x, y, o, N, BLOCK=1024)
    proton.deactivate(session)
    arcsine[grid](x, y, o, N, BLOCK=1024)  # unseen
    proton.finalize()
    with open(os.path.join(folder, "found.hatchet")) as file:
        root, devices = json.load(file)
(scope,) = root["children"]
(kernel,) = scope["children"]
assert (scope["frame"]["name"], scope["metrics"]) == ("both", {"flops32": 2.0 * N})
assert (kernel["frame"]["name"], kernel["metrics"]["count"]) == ("arcsine", 2)
assert 0 < kernel["metrics"]["time (ns)"] < 3e6 * warm
assert devices["CUDA"]["0"]["num_sms"] == 132
print("passed")
