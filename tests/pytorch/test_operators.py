"""Operators expressed by others, against PyTorch's own on the CPU."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'simt[torch]'")
pytest.importorskip("triton", reason="Triton is not installed")

from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from simt.torch.operators import attention, convolution, convolution_backward  # noqa: E402

CONVOLUTIONS = [
    # input, weight, stride, padding, dilation, transposed, output padding, groups
    ((2, 4, 9, 11), (6, 4, 3, 3), (1, 1), (2, 2), (2, 2), False, (0, 0), 1),
    ((1, 4, 13, 10), (6, 2, 3, 2), (1, 1), (0, 3), (3, 4), False, (0, 0), 2),
    ((2, 3, 16, 15), (5, 3, 3, 3), (2, 3), (2, 1), (2, 2), False, (0, 0), 1),
    ((2, 3, 20), (4, 3, 4), (1,), (5,), (3,), False, (0,), 1),
    ((2, 3, 9, 8), (5, 3, 3, 4), (2, 1), (1, 0), (1, 1), False, (0, 0), 1),
    ((3, 1, 12), (4, 1, 5), (1,), (2,), (1,), False, (0,), 1),
    ((2, 4, 9, 8), (4, 1, 3, 2), (2, 1), (1, 2), (1, 1), False, (0, 0), 4),
    ((2, 3, 9, 10), (6, 1, 3, 3), (2, 3), (2, 1), (2, 1), False, (0, 0), 3),
    ((2, 3, 9), (3, 1, 4), (1,), (3,), (1,), False, (0,), 3),
    ((2, 3, 5, 4), (3, 1, 3, 2), (2, 1), (1, 0), (1, 2), True, (1, 0), 3),
    ((2, 4, 5, 7), (4, 6, 3, 3), (2, 2), (1, 1), (1, 1), True, (1, 1), 1),
    ((2, 4, 5, 7), (4, 3, 4, 2), (2, 1), (1, 0), (1, 1), True, (0, 0), 2),
    ((1, 2, 6, 6), (2, 3, 3, 3), (3, 2), (2, 1), (2, 2), True, (0, 1), 1),
    ((1, 2, 3, 4, 5), (2, 3, 2, 2, 2), (2, 2, 2), (0, 1, 0), (1, 1, 1), True, (0, 0, 0), 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case: Any) -> None:
    shape, kernel, *settings = case
    torch.manual_seed(0)
    x, w = torch.randn(shape, dtype=torch.float64), torch.randn(kernel, dtype=torch.float64)
    channels = kernel[1] * settings[5] if settings[3] else kernel[0]
    b = torch.randn(channels, dtype=torch.float64)
    found = convolution(x, w, b, *settings)
    torch.testing.assert_close(found, torch.ops.aten.convolution(x, w, b, *settings))


@pytest.mark.parametrize(
    "case", [case for case in CONVOLUTIONS if case[5] or case[7] > 2 or (case[1][1] < 4 and case[4][0] == 1)]
)
def test_gradients(case: Any) -> None:
    shape, kernel, *settings = case
    torch.manual_seed(0)
    x, w = torch.randn(shape, dtype=torch.float64), torch.randn(kernel, dtype=torch.float64)
    channels = kernel[1] * settings[5] if settings[3] else kernel[0]
    y = torch.ops.aten.convolution(x, w, None, *settings)
    grad = torch.randn_like(y)
    given = (grad, x, w, [channels], *settings, [True, True, True])
    for found, expected in zip(
        convolution_backward(*given), torch.ops.aten.convolution_backward(*given), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_plain_convolutions_are_left_to_the_templates() -> None:
    x, w = torch.ones(1, 8, 4, 4), torch.ones(1, 8, 3, 3)
    settings: Any = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    assert convolution(x, w, None, *settings) is NotImplemented
    found = convolution_backward(torch.ones(1, 1, 2, 2), x, w, None, *settings, [True, True, False])
    assert found is NotImplemented


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": "bool"},
        {"attn_mask": "float"},
        {"enable_gqa": True},
    ],
)
def test_attention(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    heads = 2 if settings.get("enable_gqa") else 4
    q = torch.randn(2, 4, 5, 8, dtype=torch.float64)
    k, v = torch.randn(2, 2, heads, 7, 8, dtype=torch.float64)
    if settings.get("attn_mask") == "bool":
        mask = torch.rand(5, 7) < 0.6
        mask[2] = False  # a query that sees nothing
        settings = {"attn_mask": mask}
    elif settings.get("attn_mask") == "float":
        settings = {"attn_mask": torch.randn(2, 1, 5, 7, dtype=torch.float64)}
    torch.testing.assert_close(
        attention(q, k, v, **settings), scaled_dot_product_attention(q, k, v, **settings)
    )


def test_dropout_of_attention_keeps_the_mean() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, 64, 8)
    weights = attention(q, k, torch.eye(64)[None, None], dropout_p=0.25)
    assert abs((weights == 0).float().mean().item() - 0.25) < 0.03
    assert math.isclose(weights.sum(-1).mean().item(), 1, abs_tol=0.1)
    assert attention(q, k, v).shape == (1, 1, 64, 8)
