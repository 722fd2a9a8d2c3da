"""Kernels that launch kernels or graphs are refused by name."""

from __future__ import annotations

import pytest

import simt
from simt.cuda.device_runtime import calls_in, refuse_launches
from simt.errors import DynamicParallelismError

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
SYMBOLS = [
    "cudaLaunchDevice",
    "cudaLaunchDeviceV2",
    "cudaGetParameterBuffer",
    "cudaGetParameterBufferV2",
    "cudaGraphLaunch",
    "__cudaCDP2LaunchDeviceV2",
    "__cudaCDP2GetParameterBufferV2",
    "__cudaCDP2StreamCreateWithFlags",
]


def parent(symbol: str) -> str:
    return (
        HEAD
        + f"""
    .extern .func (.param .b32 r) {symbol}(.param .b64 x);
    .visible .entry other() {{ ret; }}
    .visible .entry parent() {{
    {{ .param .b64 p; .param .b32 q; st.param.b64 [p], 0; call.uni (q),
    {symbol},
    (p); }}
    ret; }}
    """
    )


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_names_the_kernel_and_the_symbol(symbol: str) -> None:
    gpu = simt.GPU("a100", functional=True)
    expected = f"dynamic parallelism is not supported: `parent` calls `{symbol}`"
    with pytest.raises(DynamicParallelismError, match=expected):
        gpu.load(parent(symbol))
    with pytest.raises(DynamicParallelismError, match=expected):
        gpu.link([parent(symbol), HEAD + ".visible .entry third() { ret; }"])


def test_a_name_that_is_not_called_is_no_launch() -> None:
    """A declaration, a comment, and a function of the program with a similar name."""
    text = (
        HEAD
        + """
    .extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);
    .func my_cudaLaunchDeviceV2() { ret; }
    .visible .entry k() { // call cudaLaunchDeviceV2
    call my_cudaLaunchDeviceV2; ret; }
    """
    )
    assert list(calls_in(text)) == [("k", "my_cudaLaunchDeviceV2")]
    assert "k" in simt.GPU("a100", functional=True).load(text)


def test_what_libcudadevrt_calls_within_itself_is_no_launch_of_the_program() -> None:
    within = ("__cudaCDP2MemcpyAsync", "__cudaCDP2LaunchDeviceV2")
    refuse_launches("file", [within])
    with pytest.raises(DynamicParallelismError, match=r"file: .*`helper` calls `__cudaCDP2MemcpyAsync`"):
        refuse_launches("file", [within, ("helper", "__cudaCDP2MemcpyAsync")])
