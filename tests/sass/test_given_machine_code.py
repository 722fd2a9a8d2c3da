"""Programs that come as machine code, and where their kernels are."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import simt

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("elftools") is None,
    reason="pyelftools is not installed: pip install 'simt[sass]'",
)

SOURCE = """
extern "C" __global__ void adds(int* x, int n) {
  x[threadIdx.x] += n;
}
extern "C" __global__ void multiplies(int* x, int n) {
  x[threadIdx.x] *= n;
}
"""


def test_kernels_of_one_module_have_addresses_and_lines_of_their_own() -> None:
    gpu = simt.GPU("a100", code="sass", set={"sm.count": 1})
    module = gpu.compile(SOURCE, name="k.cu")
    x = np.arange(32, dtype=np.int32)
    module["adds"][1, 32](x, 2)
    module["multiplies"][1, 32](x, 3)
    assert x.tolist() == [3 * (i + 2) for i in range(32)]
    adds, multiplies = (launch.pc for launch in gpu.launches)
    assert not set(adds["pc"]) & set(multiplies["pc"])
    assert all("+= n" in text for text in adds["source_text"][2:-1])
    assert all("*= n" in text for text in multiplies["source_text"][2:-1])
    # Each begins in a line of the instruction cache that the other has not fetched.
    missed = [launch.counters["simt__instruction_cache_misses.sum"] for launch in gpu.launches]
    assert missed[0] >= 1 and missed[1] >= 1
