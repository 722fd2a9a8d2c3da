"""Kernels of networks with tensors that have no memory: products through TMA and `wgmma`, through `cp.async`
and `mma`, attention and the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("triton")
ml_dtypes = pytest.importorskip("ml_dtypes")

import simt  # noqa: E402
from simt.errors import LaunchError, ProgramFault  # noqa: E402
from simt.gpu.array import DeviceArray  # noqa: E402
from simt.network import works  # noqa: E402
from simt.spec import Spec  # noqa: E402

KIND = "bfloat16"
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
MAKE: dict[str, Callable[[Spec], works.Work]] = {
    "product": lambda spec: works.product(128, 128, 256, spec, KIND, bias=True),
    "narrow product": lambda spec: works.product(8, 64, 512, spec, KIND),
    "4-bit product": lambda spec: works.product(64, 128, 256, spec, KIND, "int4"),
    "attention": lambda spec: works.prefill_attention(1, 128, 2, 1, 64, KIND, spec),
    "norm": lambda spec: works.norm(8, 256, KIND, True, False),
    "rope": lambda spec: works.rotate(8, 0, 4, 2, 64, KIND, True, 16),
    "embedding": lambda spec: works.embed(8, 256, 512, 8, KIND, 0),
    "activation": lambda spec: works.activate(8, 256, KIND, True),
    "gather": lambda spec: works.gather(8, 16, 256, KIND),
    "mix": lambda spec: works.mix(8, 32, 256, 8, 2, KIND),
    "join": lambda spec: works.decode_attention(2, 300, 4, 2, 64, KIND, spec)[1],
}


def _unbacked(gpu: simt.GPU, work: works.Work) -> dict[str, DeviceArray]:
    found = work.allocate(gpu)
    for name, tensor in work.tensors.items():
        if tensor.values is None:
            found[name] = gpu.empty(tensor.shape, found[name].dtype, unbacked=True, name=name)
    return found


def _at(gpu: simt.GPU, other: dict[str, DeviceArray]) -> dict[str, DeviceArray]:
    """Arrays at the addresses of others."""
    for array in other.values():
        assert gpu.memory.native.allocate_at(array.address, array.nbytes, "array")
    return {name: DeviceArray(gpu, a.address, a.shape, a.dtype, None) for name, a in other.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("gpu", ["h100", "a100"])
def test_times_are_those_with_memory(gpu: str, name: str) -> None:
    device, other = (simt.GPU(gpu, set={"sm.count": 4}) for _ in range(2))
    work = MAKE[name](device.spec)
    arrays = _unbacked(device, work)
    backed = _at(other, arrays)
    for key, tensor in work.tensors.items():
        if tensor.values is not None:
            backed[key].set(arrays[key].numpy())
    launch, expected = work.launch(device, arrays), work.launch(other, backed)
    assert launch is not None and expected is not None
    assert launch.cycles == expected.cycles
    with pytest.raises(LaunchError, match="unbacked"):
        next(reversed(arrays.values())).numpy()


def test_pages_without_memory_are_refused() -> None:
    """They go through shared memory, and so do queries and keys, which the analysis does not tell apart."""
    device = simt.GPU("h100", set={"sm.count": 4})
    work = works.decode_attention(1, 64, 4, 2, 64, KIND, device.spec)[0]
    for name in ("pages", "keys"):
        arrays = work.allocate(device)
        arrays[name] = device.empty(work.tensors[name].shape, arrays[name].dtype, unbacked=True, name=name)
        with pytest.raises(
            ProgramFault, match=rf"reads `{name}`, which is unbacked, and it decides an address"
        ):
            work.launch(device, arrays)
