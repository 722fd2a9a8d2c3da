"""ResNet-18 to ResNet-152 (He et al., CVPR 2016): one inference, batch 1, a launch for each layer."""

from __future__ import annotations

from .layers import DeviceLayers, HostLayers, Layers, Tensor
from .workload import Workload

# Blocks of each stage (table 1 of the paper), and whether a block is a bottleneck of three convolutions.
VARIANTS = {
    18: ((2, 2, 2, 2), False),
    34: ((3, 4, 6, 3), False),
    50: ((3, 4, 6, 3), True),
    101: ((3, 4, 23, 3), True),
    152: ((3, 8, 36, 3), True),
}


def resnet(layers: Layers[Tensor], variant: int, size: int) -> Tensor:
    """Scores of 1000 classes for an image of size x size."""
    stages, bottleneck = VARIANTS[variant]
    x = layers.image(size)
    x = layers.relu(layers.batch_norm(layers.convolution(x, 64, 7, 2, 3)))
    x = layers.max_pool(x, 3, 2, 1)
    for stage, blocks in enumerate(stages):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = _block(layers, x, 64 << stage, stride, bottleneck, project=block == 0)
    return layers.dense(layers.average_pool(x), 1000)


def _block(
    layers: Layers[Tensor], x: Tensor, channels: int, stride: int, bottleneck: bool, project: bool
) -> Tensor:
    """Convolutions beside a shortcut; the first of a stage changes the shape: its shortcut is projected."""
    if bottleneck:
        outputs = 4 * channels
        y = layers.relu(layers.batch_norm(layers.convolution(x, channels, 1)))
        y = layers.relu(layers.batch_norm(layers.convolution(y, channels, 3, stride, 1)))
        y = layers.batch_norm(layers.convolution(y, outputs, 1))
    else:
        outputs = channels
        y = layers.relu(layers.batch_norm(layers.convolution(x, channels, 3, stride, 1)))
        y = layers.batch_norm(layers.convolution(y, channels, 3, 1, 1))
        project = project and channels > 64
    if project:
        x = layers.batch_norm(layers.convolution(x, outputs, 1, stride))
    return layers.relu(layers.add(y, x))


def _workload(variant: int) -> Workload:
    return Workload(
        name=f"resnet{variant}",
        summary=f"ResNet-{variant}, one inference",
        unit="rows and columns of the image",
        sizes=(224,),
        small=32,
        multiple=32,
        on_gpu=lambda gpu, size: {"scores": resnet(DeviceLayers(gpu), variant, size).numpy()},
        on_host=lambda size: {"scores": resnet(HostLayers(), variant, size)},
        tolerance=1e-4,
    )


RESNETS = tuple(_workload(variant) for variant in VARIANTS)
