"""Workloads: their values against NumPy's, AES against FIPS 197."""

from __future__ import annotations

import numpy as np
import pytest

import simt
from simt.cuda import toolkit
from simt.errors import LaunchError
from simt.workloads import WORKLOADS
from simt.workloads.aes import encrypt, encrypt_on, expand_key
from simt.workloads.layers import DeviceLayers, HostLayers
from simt.workloads.resnet import VARIANTS

# FIPS 197, appendix A.3 and C.3.
PLAIN = bytes.fromhex("00112233445566778899aabbccddeeff")
KEY = bytes(range(32))
CIPHER = bytes.fromhex("8ea2b7ca516745bfeafc49904b496089")
EXPANSION_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
LAST_WORD = bytes.fromhex("706c631e")


@pytest.fixture(scope="module")
def gpu() -> simt.GPU:
    if not toolkit.toolkits():
        pytest.skip("NVRTC's wheel is not installed")
    return simt.GPU("qv100", functional=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in ("resnet101", "resnet152")])
def test_values_are_those_of_numpy(gpu: simt.GPU, name: str) -> None:
    workload = WORKLOADS[name]
    outputs, expected = workload.run(gpu, workload.small), workload.reference(workload.small)
    assert outputs.keys() == expected.keys()
    assert all(outputs[key].shape == expected[key].shape for key in expected)
    assert all(np.ptp(expected[key]) > 0 for key in expected)
    assert workload.error(outputs, expected) <= workload.tolerance


def test_aes_has_the_values_of_its_standard(gpu: simt.GPU) -> None:
    block = np.frombuffer(PLAIN, np.uint8).reshape(1, 16)
    assert expand_key(EXPANSION_KEY)[14, 12:].tobytes() == LAST_WORD
    assert encrypt(block, KEY).tobytes() == CIPHER
    assert encrypt_on(gpu, block, KEY).tobytes() == CIPHER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channels", "outputs", "size", "side", "stride", "pad"),
    [
        (3, 16, 9, 3, 2, 0),
        (5, 64, 7, 1, 1, 0),
        (16, 64, 7, 3, 1, 1),
        (32, 128, 9, 1, 2, 0),
        (16, 64, 11, 5, 3, 2),
    ],
)
def test_convolutions_of_odd_shapes(
    gpu: simt.GPU, channels: int, outputs: int, size: int, side: int, stride: int, pad: int
) -> None:
    x = np.random.default_rng(1).random((channels, size, size + 2), np.float32)
    given = DeviceLayers(gpu).convolution(gpu.array(x), outputs, side, stride, pad, bias=True).numpy()
    layers = HostLayers()
    w, bias = layers.weights.convolution(outputs, channels, side), layers.weights.bias(outputs)
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    rows, columns = given.shape[1:]
    for row in range(rows):
        for column in range(columns):
            under = padded[:, row * stride :, column * stride :][:, :side, :side]
            expected = (w * under.transpose(1, 2, 0)).sum((1, 2, 3)) + bias
            assert np.allclose(given[:, row, column], expected, rtol=1e-4, atol=1e-5)
    assert np.allclose(HostLayers().convolution(x, outputs, side, stride, pad, bias=True), given, atol=1e-5)


def test_networks_have_their_layers() -> None:
    """Convolutions and the dense layer give a network its number."""
    for variant, (blocks, bottleneck) in VARIANTS.items():
        assert 2 + sum(blocks) * (3 if bottleneck else 2) == variant


def test_timing_gives_the_same_values(gpu: simt.GPU) -> None:
    timed = simt.GPU("qv100", set={"sm.count": 4})
    outputs = WORKLOADS["pagerank"].run(timed, 64)
    assert len(timed.launches) == 16
    assert (outputs["rank"] == WORKLOADS["pagerank"].run(gpu, 64)["rank"]).all()


def test_sizes_are_checked(gpu: simt.GPU) -> None:
    with pytest.raises(LaunchError, match="multiple of 64"):
        WORKLOADS["matmul"].run(gpu, 100)
    with pytest.raises(LaunchError, match="multiple of 1"):
        WORKLOADS["relu"].reference(0)


def test_sizes_are_those_of_the_literature() -> None:
    assert WORKLOADS["aes"].sizes[-1] == 8 << 20
    assert WORKLOADS["relu"].sizes == tuple(k << 16 for k in (4, 6, 8, 12, 16, 24, 32, 48, 64))
    assert WORKLOADS["fir"].sizes[-2:] == (40 << 16, 64 << 16)
