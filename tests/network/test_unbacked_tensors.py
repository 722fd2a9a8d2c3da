"""Kernels of networks with tensors that have no memory: products through TMA and `wgmma`, through `cp.async` and
`mma`, attention and the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("triton")
ml_dtypes = pytest.importorskip("ml_dtypes")

import simt  # noqa: E402
from simt.errors import LaunchError, ProgramFault  # noqa: E402
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


def _arrays(gpu: simt.GPU, work: works.Work, unbacked: bool) -> dict[str, simt.DeviceArray]:
    found = work.allocate(gpu)
    for name, tensor in work.tensors.items():
        if unbacked and tensor.values is None:
            found[name] = gpu.empty(tensor.shape, found[name].dtype, unbacked=True, name=name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("gpu", ["h100", "a100"])
def test_times_are_those_with_memory(gpu: str, name: str) -> None:
    cycles = []
    for unbacked in (False, True):
        device = simt.GPU(gpu, set={"sm.count": 4})
        work = MAKE[name](device.spec)
        arrays = _arrays(device, work, unbacked)
        launch = work.launch(device, arrays)
        assert launch is not None
        cycles.append(launch.cycles)
        with pytest.raises(LaunchError) if unbacked else pytest.MonkeyPatch.context():
            next(reversed(arrays.values())).numpy()
    assert cycles[0] == cycles[1]


def test_pages_without_memory_are_refused() -> None:
    device = simt.GPU("h100", set={"sm.count": 4})
    work = works.decode_attention(1, 64, 4, 2, 64, KIND, device.spec)[0]
    arrays = _arrays(device, work, True)
    arrays["pages"] = device.empty(work.tensors["pages"].shape, "i4", unbacked=True, name="pages")
    with pytest.raises(ProgramFault, match="reads `pages`, which is unbacked, and it decides an address"):
        work.launch(device, arrays)
