"""What PyTorch brings: kernels of cuBLAS, cuDNN and its own, and whole models with random weights.

    python validation/torch_programs.py list
    python validation/torch_programs.py conv2d_3x3 --traces DIR --repeats 5
    python validation/torch_programs.py gpt2 --traces DIR --launches 100000
    ncu --profile-from-start off ... python validation/torch_programs.py gpt2 --steps 1

With --traces each repeat is profiled by PyTorch and leaves DIR/run-N.json.gz; without, one repeat runs
between cudaProfilerStart and cudaProfilerStop. Before that it runs a few times to warm up. --device cpu tries
it out.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

Step = Callable[[], Any]
Make = Callable[[str], Step]
WARM_UP = 3


def tensor(device: str, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device=device).to(dtype)


def matmul(n: int, dtype: torch.dtype, k: int | None = None, batch: int = 0) -> Make:
    def make(device: str) -> Step:
        lead = (batch,) if batch else ()
        a, b = (tensor(device, *lead, *shape, dtype=dtype) for shape in ((n, k or n), (k or n, n)))
        return lambda: a @ b

    return make


def convolution(
    channels: int, size: int, side: int, batch: int = 8, stride: int = 1, back: bool = False
) -> Make:
    def make(device: str) -> Step:
        layer = nn.Conv2d(channels, channels, side, stride, side // 2, device=device)
        x = tensor(device, batch, channels, size, size).requires_grad_(back)
        if not back:
            return torch.no_grad()(lambda: layer(x))
        return lambda: layer(x).sum().backward()

    return make


def elementwise(step: Callable[[torch.Tensor], Any], *shape: int, dtype: torch.dtype = torch.float32) -> Make:
    def make(device: str) -> Step:
        x = tensor(device, *shape, dtype=dtype)
        return torch.no_grad()(lambda: step(x))

    return make


def attention(batch: int, heads: int, length: int, width: int) -> Make:
    def make(device: str) -> Step:
        q, k, v = (tensor(device, batch, heads, length, width, dtype=torch.float16) for _ in range(3))
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return make


def matvec(device: str) -> Step:
    a, x = tensor(device, 4096, 4096, dtype=torch.float16), tensor(device, 4096, dtype=torch.float16)
    return lambda: a @ x


def embedding(device: str) -> Step:
    layer = nn.Embedding(50_257, 768, device=device)
    index = torch.randint(50_257, (8, 1024), device=device)
    return torch.no_grad()(lambda: layer(index))


def lstm(device: str) -> Step:
    layer, x = nn.LSTM(512, 512, device=device), tensor(device, 32, 16, 512)
    return torch.no_grad()(lambda: layer(x))


def adam(device: str) -> Step:
    weights = [nn.Parameter(tensor(device, 1024, 1024)) for _ in range(8)]
    for w in weights:
        w.grad = tensor(device, 1024, 1024)
    return torch.optim.Adam(weights).step


def cross_entropy(device: str) -> Step:
    x, labels = tensor(device, 4096, 32_000), torch.randint(32_000, (4096,), device=device)
    return lambda: F.cross_entropy(x, labels)


H, B, S = torch.float16, torch.bfloat16, torch.float32
LIBRARY: dict[str, Make] = {
    **{f"matmul_fp32_{n}": matmul(n, S) for n in (512, 1024, 2048)},
    **{f"matmul_fp16_{n}": matmul(n, H) for n in (512, 1024, 2048, 4096)},
    **{f"matmul_bf16_{n}": matmul(n, B) for n in (1024, 4096)},
    "matmul_fp64_1024": matmul(1024, torch.float64),
    "matmul_fp16_skinny": matmul(4096, H, k=64),
    "matmul_fp16_deep": matmul(256, H, k=16_384),
    "bmm_fp16_96x128": matmul(128, H, batch=96),
    "matvec_fp16_4096": matvec,
    "conv2d_1x1": convolution(256, 28, 1),
    "conv2d_3x3": convolution(64, 56, 3),
    "conv2d_3x3_wide": convolution(512, 14, 3),
    "conv2d_3x3_stride_2": convolution(128, 56, 3, stride=2),
    "conv2d_7x7": convolution(32, 112, 7),
    "conv2d_3x3_backward": convolution(64, 56, 3, back=True),
    "attention_1024": attention(4, 12, 1024, 64),
    "attention_128": attention(16, 12, 128, 64),
    "layer_norm": elementwise(lambda x: F.layer_norm(x, (1024,)), 8192, 1024),
    "batch_norm": elementwise(lambda x: F.batch_norm(x, None, None, training=True), 32, 256, 28, 28),
    "softmax": elementwise(lambda x: F.softmax(x, 1), 8192, 1024),
    "cross_entropy": cross_entropy,
    "relu": elementwise(F.relu, 1 << 24),
    "gelu_fp16": elementwise(F.gelu, 1 << 24, dtype=H),
    "add": elementwise(lambda x: x + x, 1 << 24),
    "copy_transposed": elementwise(lambda x: x.t().contiguous(), 4096, 4096),
    "sum": elementwise(torch.sum, 1 << 24),
    "sum_rows": elementwise(lambda x: x.sum(1), 4096, 4096),
    "argmax": elementwise(lambda x: x.argmax(1), 4096, 4096),
    "cumsum": elementwise(lambda x: x.cumsum(1), 1024, 8192),
    "sort": elementwise(lambda x: x.sort(), 1 << 20),
    "top_k": elementwise(lambda x: x.topk(50), 64, 50_257),
    "max_pool": elementwise(lambda x: F.max_pool2d(x, 3, 2, 1), 32, 64, 112, 112),
    "average_pool": elementwise(lambda x: F.adaptive_avg_pool2d(x, 1), 32, 2048, 7, 7),
    "interpolate": elementwise(lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), 8, 64, 56, 56),
    "dropout": elementwise(lambda x: F.dropout(x, 0.1), 1 << 24),
    "concatenate": elementwise(lambda x: torch.cat([x, x], 1), 4096, 2048),
    "fft": elementwise(torch.fft.rfft, 1024, 4096),
    "embedding": embedding,
    "lstm": lstm,
    "adam": adam,
}


def gpt2(device: str) -> Step:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to(device).eval()
    if device != "cpu":
        model = model.half()
    prompt = torch.randint(50_257, (1, 64), device=device)

    def generate() -> None:
        model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=128, min_new_tokens=128,
            do_sample=False, pad_token_id=0,
        )  # fmt: skip

    return generate


def bert(device: str) -> Step:
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig()).to(device).eval()
    words = torch.randint(30_000, (8, 128), device=device)
    return torch.no_grad()(lambda: model(words))


def resnet50(device: str) -> Step:
    from transformers import ResNetConfig, ResNetForImageClassification

    model = ResNetForImageClassification(ResNetConfig()).to(device).eval()
    images = tensor(device, 16, 3, 224, 224)
    return torch.no_grad()(lambda: model(images))


MODELS: dict[str, Make] = {"gpt2": gpt2, "bert": bert, "resnet50": resnet50}


def profiled(step: Step, trace: Path | None) -> int:
    """Runs a step under PyTorch's profiler; without a trace, the number of kernels that it launched."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        step()
        synchronize()
    if trace is not None:
        profiler.export_chrome_trace(str(trace))
        return 0
    on_gpu = [e.name for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return sum(not name.startswith(("Memcpy", "Memset")) for name in on_gpu)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def repeated(step: Step, times: int) -> Step:
    def run() -> None:
        for _ in range(times):
            step()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("--device", default="cuda", help="of PyTorch: cuda, cuda:1, cpu")
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--launches", type=int, default=1, help="of a model, at least: counted first")
    parser.add_argument("--steps", type=int, help="of a model, instead: no profiler runs, as ncu needs it")
    given = parser.parse_args()
    if given.name == "list":
        print(*LIBRARY, *MODELS, sep="\n")
        return
    if given.name not in {**LIBRARY, **MODELS}:
        sys.exit(f"no program {given.name!r}; `list` lists them")
    torch.manual_seed(0)
    model = given.name in MODELS
    step = {**LIBRARY, **MODELS}[given.name](given.device)
    for _ in range(1 if model else WARM_UP):
        step()
    if model:
        step = repeated(step, given.steps or math.ceil(given.launches / max(1, profiled(step, None))))
    synchronize()
    if given.traces is None:
        if given.device != "cpu":
            torch.cuda.profiler.start()
        step()
        synchronize()
        if given.device != "cpu":
            torch.cuda.profiler.stop()
        return
    given.traces.mkdir(parents=True, exist_ok=True)
    for run in range(given.repeats):
        profiled(step, given.traces / f"run-{run + 1}.json.gz")


if __name__ == "__main__":
    main()
