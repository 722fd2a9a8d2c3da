"""Operators that Inductor has no Triton template for, in terms of those that it has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

aten = torch.ops.aten
_FEW_CHANNELS = 4


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention` as two products and a softmax: PyTorch's fused kernels are a library."""
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        allowed = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask
    weights = torch.softmax(scores, -1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        weights = weights.masked_fill(~attn_mask.any(-1, keepdim=True), 0)  # a row that sees nothing
    if dropout_p > 0:
        weights = F.dropout(weights, dropout_p)
    return weights @ value


class ConvolutionCall(NamedTuple):
    """The settings of a convolution, in the order of ATen's operators."""

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    transposed: bool
    output_padding: Sequence[int]
    groups: int


def convolution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    *settings: Any,
) -> Any:
    """Depthwise convolutions by sums, those of few channels by a product with the patches of the input,
    transposed and dilated ones by plain ones; NotImplemented for plain ones.

    settings: of `ConvolutionCall`.
    """
    c = ConvolutionCall(*settings)
    if c.transposed:
        return _transposed(input, weight, bias, c)
    if _is_depthwise(weight, c.groups):
        sums = sum(x * w for x, w in _taps(input, weight, c))
        return sums if bias is None else sums + bias.reshape([-1] + [1] * (input.dim() - 2))
    if any(d != 1 for d in c.dilation):
        return _dilated(input, weight, bias, c)
    if not _has_few_channels(weight, c.groups):
        return NotImplemented
    patches = _patches(input, weight.shape[2:], c)
    y = patches.flatten(0, -2) @ weight.flatten(1).T
    if bias is not None:
        y = y + bias
    return y.reshape(*patches.shape[:-1], -1).movedim(-1, 1)


def _plain(input: torch.Tensor, weight: torch.Tensor, bias: Any, stride: Sequence[int], groups: int) -> Any:
    n = input.dim() - 2
    return aten.convolution(input, weight, bias, list(stride), [0] * n, [1] * n, False, [0] * n, groups)


def _is_depthwise(weight: torch.Tensor, groups: int) -> bool:
    """Whether every channel is convolved by itself: then a matrix product has next to nothing to do."""
    return groups > 1 and weight.size(1) == 1


def _has_few_channels(weight: torch.Tensor, groups: int) -> bool:
    """Whether templates, which take 16 channels at a time, would mostly multiply zeros."""
    return groups == 1 and weight.size(1) <= _FEW_CHANNELS and math.prod(weight.shape[2:]) > 1


def _patches(input: torch.Tensor, kernel: Sequence[int], c: ConvolutionCall) -> torch.Tensor:
    """What each element of the output is computed from: batch x output sizes x (channels x filter sizes)."""
    dims = len(kernel)
    x = F.pad(input, [pad for pad in reversed(c.padding) for _ in range(2)])
    for i, (size, step) in enumerate(zip(kernel, c.stride, strict=True)):
        x = x.unfold(2 + i, size, step)
    return x.movedim(1, 1 + dims).flatten(1 + dims)


def _taps(
    input: torch.Tensor, weight: torch.Tensor, c: ConvolutionCall
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """For each position in the filters of a depthwise convolution: what it multiplies, and the weights."""
    repeats = weight.size(0) // input.size(1)
    x = F.pad(input, [pad for pad in reversed(c.padding) for _ in range(2)])
    if repeats > 1:
        x = x.repeat_interleave(repeats, 1)
    kernel = weight.shape[2:]
    ends = [n - d * (k - 1) for n, d, k in zip(x.shape[2:], c.dilation, kernel, strict=True)]
    for at in itertools.product(*(range(k) for k in kernel)):
        begins = [i * d for i, d in zip(at, c.dilation, strict=True)]
        window = [slice(b, b + e, s) for b, e, s in zip(begins, ends, c.stride, strict=True)]
        of_inputs, of_weights = (slice(None), slice(None), *window), (slice(None), 0, *at)
        yield x[of_inputs], weight[of_weights].reshape([-1] + [1] * len(at))


def _dilated(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    c: ConvolutionCall,
) -> torch.Tensor:
    """Splits the input into its phases modulo the dilation, which become further members of the batch."""
    batch, channels, *sizes = input.shape
    dims = len(sizes)
    stride, padding, dilation = c.stride, c.padding, c.dilation
    kernel = weight.shape[2:]
    whole = [
        size + 2 * pad - d * (k - 1) for size, pad, d, k in zip(sizes, padding, dilation, kernel, strict=True)
    ]
    rows = [-(-(size + 2 * pad) // d) for size, pad, d in zip(sizes, padding, dilation, strict=True)]
    pads = []
    for size, pad, d, n in reversed(list(zip(sizes, padding, dilation, rows, strict=True))):
        pads += [pad, n * d - size - pad]
    x = F.pad(input, pads)
    x = x.reshape(batch, channels, *(m for n, d in zip(rows, dilation, strict=True) for m in (n, d)))
    phases = [3 + 2 * i for i in range(dims)]
    inner = [2 + 2 * i for i in range(dims)]
    x = x.permute(*phases, 0, 1, *inner).reshape(math.prod(dilation) * batch, channels, *rows)
    y = _plain(x, weight, bias, [1] * dims, c.groups)
    y = y.reshape(*dilation, batch, y.shape[1], *y.shape[2:])
    order = [dims, dims + 1]
    for i in range(dims):
        order += [dims + 2 + i, i]
    y = y.permute(*order)
    y = y.reshape(batch, y.shape[1], *(y.shape[2 + 2 * i] * y.shape[3 + 2 * i] for i in range(dims)))
    for i, (size, step) in enumerate(zip(whole, stride, strict=True)):
        y = y.narrow(2 + i, 0, size) if step == 1 else y[(slice(None),) * (2 + i) + (slice(0, size, step),)]
    return y


def _transposed(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    c: ConvolutionCall,
) -> Any:
    """Convolves the input, with zeros between its elements, with the weight turned round."""
    channels, *sizes = input.shape[1:]
    dims = len(sizes)
    kernel = weight.shape[2:]
    x = input
    for i, step in enumerate(c.stride):
        if step > 1:
            x = F.pad(x.unsqueeze(3 + i), [0, 0] * (dims - 1 - i) + [0, step - 1]).flatten(2 + i, 3 + i)
            x = x.narrow(2 + i, 0, (sizes[i] - 1) * step + 1)
    pads = []
    for d, k, pad, extra in reversed(list(zip(c.dilation, kernel, c.padding, c.output_padding, strict=True))):
        pads += [d * (k - 1) - pad, d * (k - 1) - pad + extra]
    x = F.pad(x, pads)
    w = weight.reshape(c.groups, channels // c.groups, weight.shape[1], *kernel).transpose(1, 2)
    w = w.reshape(c.groups * weight.shape[1], channels // c.groups, *kernel).flip(list(range(2, 2 + dims)))
    none = [0] * dims
    return aten.convolution(x, w, bias, [1] * dims, none, list(c.dilation), False, none, c.groups)


def convolution_backward(
    grad: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    *rest: Any,
) -> Any:
    """The gradients of transposed convolutions, by a convolution and by the gradient of one, and of the
    others that `convolution` replaces; NotImplemented for the rest.

    rest: settings of `ConvolutionCall`, and which gradients are wanted.
    """
    *settings, output_mask = rest
    c = ConvolutionCall(*settings)
    d_bias = grad.sum([0, *range(2, grad.dim())]) if output_mask[2] else None
    if not c.transposed and _is_depthwise(weight, c.groups):
        d_input = _depthwise_d_input(grad, input, weight, c) if output_mask[0] else None
        if not output_mask[1]:
            return d_input, None, d_bias
        every = [0, *range(2, grad.dim())]
        sums = [(x * grad).sum(every) for x, _ in _taps(input, weight, c)]
        return d_input, torch.stack(sums, -1).reshape(weight.shape), d_bias
    if not c.transposed:
        if not _has_few_channels(weight, c.groups) or any(d != 1 for d in c.dilation) or not output_mask[1]:
            return NotImplemented
        d_input = None
        if output_mask[0]:
            d_input = aten.convolution_backward(grad, input, weight, None, *c, [True, False, False])[0]
        patches = _patches(input, weight.shape[2:], c).flatten(1, -2)
        # A product per image keeps more SMs busy than one over all of them.
        return d_input, (grad.flatten(2) @ patches).sum(0).reshape(weight.shape), d_bias
    plain = c._replace(transposed=False, output_padding=[0] * len(c.stride))
    d_input = aten.convolution(grad, weight, None, *plain) if output_mask[0] else None
    d_weight = None
    if output_mask[1]:
        d_weight = aten.convolution_backward(input, grad, weight, None, *plain, [False, True, False])[1]
    return d_input, d_weight, d_bias


def _depthwise_d_input(
    grad: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, c: ConvolutionCall
) -> torch.Tensor:
    """The transposed convolution of the gradient, summed over the filters of a channel."""
    channels, sizes = input.size(1), input.shape[2:]
    kernel = weight.shape[2:]
    extra = [
        n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, m, s, p, d, k in zip(
            sizes, grad.shape[2:], c.stride, c.padding, c.dilation, kernel, strict=True
        )
    ]
    found: torch.Tensor = _transposed(
        grad, weight, None, c._replace(output_padding=extra, groups=weight.size(0))
    )
    return found.unflatten(1, (channels, -1)).sum(2)


def lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cell: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`_thnn_fused_lstm_cell`: the hidden state, the cell, and the gates for the gradient."""
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    into, forget, new, out = gates.chunk(4, 1)
    into, forget, new, out = into.sigmoid(), forget.sigmoid(), new.tanh(), out.sigmoid()
    after = forget * cell + into * new
    return out * after.tanh(), after, torch.cat([into, forget, new, out], 1)


def lstm_cell_backward(
    d_hidden: torch.Tensor | None,
    d_after: torch.Tensor | None,
    cell: torch.Tensor,
    after: torch.Tensor,
    gates: torch.Tensor,
    has_bias: bool,
) -> Any:
    """`_thnn_fused_lstm_cell_backward_impl`: gradients of the gates, the cell and the bias."""
    into, forget, new, out = gates.chunk(4, 1)
    bent = after.tanh()
    d_hidden = torch.zeros_like(cell) if d_hidden is None else d_hidden
    d_cell = d_hidden * out * (1 - bent * bent)
    if d_after is not None:
        d_cell = d_cell + d_after
    d_gates = torch.cat(
        [
            d_cell * new * into * (1 - into),
            d_cell * cell * forget * (1 - forget),
            d_cell * into * (1 - new * new),
            d_hidden * bent * out * (1 - out),
        ],
        1,
    )
    return d_gates, d_cell * forget, d_gates.sum(0) if has_bias else None


def gru_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    hidden: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`_thnn_fused_gru_cell`: the hidden state, and what the gradient needs."""
    r, z, n = _biased(input_gates, input_bias).chunk(3, 1)
    hidden_r, hidden_z, hidden_n = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    reset, update = (r + hidden_r).sigmoid(), (z + hidden_z).sigmoid()
    new = (n + reset * hidden_n).tanh()
    return new + update * (hidden - new), torch.cat([reset, update, new, hidden, hidden_n], 1)


def gru_cell_backward(d_hidden: torch.Tensor, kept: torch.Tensor, has_bias: bool) -> Any:
    """`_thnn_fused_gru_cell_backward`: gradients of the gates of both, the state and the biases."""
    reset, update, new, hidden, hidden_n = kept.chunk(5, 1)
    d_update = d_hidden * (hidden - new) * update * (1 - update)
    d_new = d_hidden * (1 - update) * (1 - new * new)
    d_reset = d_new * hidden_n * reset * (1 - reset)
    of_input = torch.cat([d_reset, d_update, d_new], 1)
    of_hidden = torch.cat([d_reset, d_update, d_new * reset], 1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, d_hidden * update, *biases


def _biased(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias


def unscale(grads: Sequence[torch.Tensor], found_infinite: torch.Tensor, inverse: torch.Tensor) -> None:
    """`_amp_foreach_non_finite_check_and_unscale_`."""
    for grad in grads:
        bad = torch.logical_not(torch.isfinite(grad)).any()
        found_infinite.copy_(torch.where(bad, 1.0, found_infinite))
        grad.mul_(inverse)


def update_scale(
    scale: torch.Tensor,
    tracker: torch.Tensor,
    found_infinite: torch.Tensor,
    growth: float,
    backoff: float,
    interval: int,
) -> torch.Tensor:
    """`_amp_update_scale_`."""
    bad, steps = found_infinite > 0, tracker + 1
    grown, due = scale * growth, steps == interval
    up = torch.where(due & torch.isfinite(grown), grown, scale)
    tracker.copy_(torch.where(bad | due, 0, steps))
    return scale.copy_(torch.where(bad, scale * backoff, up))


def adam(decoupled: bool) -> Callable[..., None]:
    """`_fused_adam_` of one parameter. decoupled: `_fused_adamw_`, whose weights decay by themselves."""

    def step(
        parameters: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor],
        means: Sequence[torch.Tensor],
        squares: Sequence[torch.Tensor],
        largest: Sequence[torch.Tensor],
        steps: Sequence[torch.Tensor],
        *,
        lr: torch.Tensor,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: torch.Tensor | None = None,
        found_inf: torch.Tensor | None = None,
    ) -> None:
        (parameter,), (mean,), (square,), (count,) = parameters, means, squares, steps
        grad = _scaled(grads[0], grad_scale, maximize)
        value = parameter
        if weight_decay and decoupled:
            value = value - lr * weight_decay * value
        elif weight_decay:
            grad = grad + weight_decay * value
        first = mean + (1 - beta1) * (grad - mean)
        second = beta2 * square + (1 - beta2) * grad * grad
        bound = torch.maximum(largest[0], second) if amsgrad else second
        divisor = (bound / (1 - beta2**count)).sqrt() + eps
        after = value - lr / (1 - beta1**count) * first / divisor
        changes = [(parameter, after), (mean, first), (square, second)]
        _change([*changes, (largest[0], bound)] if amsgrad else changes, found_inf)

    return step


def sgd(
    parameters: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    momenta: Sequence[torch.Tensor],
    *,
    weight_decay: float,
    momentum: float,
    lr: torch.Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: torch.Tensor | None = None,
    found_inf: torch.Tensor | None = None,
) -> None:
    """`_fused_sgd_` of one parameter."""
    grad = _scaled(grads[0], grad_scale, maximize)
    if weight_decay:
        grad = grad + weight_decay * parameters[0]
    changes = []
    if momentum:
        moving = grad if is_first_step else momentum * momenta[0] + (1 - dampening) * grad
        changes.append((momenta[0], moving))
        grad = grad + momentum * moving if nesterov else moving
    _change([*changes, (parameters[0], parameters[0] - lr * grad)], found_inf)


def _scaled(grad: torch.Tensor, scale: torch.Tensor | None, negative: bool) -> torch.Tensor:
    """A gradient as the step takes it. scale: what the loss was multiplied by."""
    found = grad if scale is None else grad / scale
    return -found if negative else found


def _change(changes: Sequence[tuple[torch.Tensor, torch.Tensor]], found_inf: torch.Tensor | None) -> None:
    """Gives tensors their values, unless a gradient is infinite."""
    for tensor, value in changes:
        tensor.copy_(value if found_inf is None else torch.where(found_inf > 0, tensor, value))


IN_PLACE: dict[Any, Callable[..., Any]] = {
    aten._amp_foreach_non_finite_check_and_unscale_.default: unscale,
    aten._amp_update_scale_.default: update_scale,
    aten._fused_adam_.tensor_lr: adam(False),
    aten._fused_adamw_.tensor_lr: adam(True),
    aten._fused_sgd_.tensor_lr: sgd,
}
"""Operators that change their arguments and that Inductor has no kernel for, in terms of others."""
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.convolution.default: convolution,
    aten.convolution_backward.default: convolution_backward,
    aten._thnn_fused_lstm_cell.default: lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: lstm_cell_backward,
    aten._thnn_fused_gru_cell.default: gru_cell,
    aten._thnn_fused_gru_cell_backward.default: gru_cell_backward,
}
