"""VGG-16 and VGG-19 (Simonyan and Zisserman, ICLR 2015): one inference, batch 1, a launch for each layer."""

from __future__ import annotations

from .layers import DeviceLayers, HostLayers, Layers, Tensor
from .workload import Workload

# Convolutions of each stage (columns D and E of table 1 of the paper).
VARIANTS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg(layers: Layers[Tensor], variant: int, size: int) -> Tensor:
    """Scores of 1000 classes for an image of size x size."""
    x = layers.image(size)
    for channels, convolutions in zip((64, 128, 256, 512, 512), VARIANTS[variant], strict=True):
        for _ in range(convolutions):
            x = layers.relu(layers.convolution(x, channels, 3, pad=1, bias=True))
        x = layers.max_pool(x, 2, 2)
    for _ in range(2):
        x = layers.relu(layers.dense(x, 4096))
    return layers.dense(x, 1000)


def _workload(variant: int) -> Workload:
    return Workload(
        name=f"vgg{variant}",
        summary=f"VGG-{variant}, one inference",
        unit="rows and columns of the image",
        sizes=(224,),
        small=32,
        multiple=32,
        on_gpu=lambda gpu, size: {"scores": vgg(DeviceLayers(gpu), variant, size).numpy()},
        on_host=lambda size: {"scores": vgg(HostLayers(), variant, size)},
        tolerance=1e-4,
    )


VGGS = tuple(_workload(variant) for variant in VARIANTS)
