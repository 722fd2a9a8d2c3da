"""CUDA runtime functions for device code that programs call without defining them: grid barriers, and those
with which kernels launch kernels (dynamic parallelism) or graphs, which are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from simt.errors import DynamicParallelismError

# A handle is the address of the launch's workspace, 0 without a cooperative launch. To its second word the
# CTAs' first threads add 2^31 together at each barrier, so that its top bit flips when all have come.
_GRID_BARRIER = """
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .b32 %low, %high; .reg .b64 %workspace;
  mov.u32 %high, %envreg1; mov.u32 %low, %envreg2;
  mov.b64 %workspace, {%low, %high};
  st.param.b64 [handle], %workspace;
  ret;
}
.visible .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p; .reg .b32 %x, %y, %z, %mine, %before, %now; .reg .b64 %workspace;
  ld.param.b64 %workspace, [handle];
  setp.eq.u64 %p, %workspace, 0; @%p trap;
  barrier.sync 0;
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.ne.u32 %p, %x, 0;
  @%p bra WAIT;
  mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z;
  mul.lo.u32 %mine, %x, %y; mul.lo.u32 %mine, %mine, %z; sub.u32 %mine, -2147483647, %mine;
  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.eq.u32 %p, %x, 0; selp.b32 %mine, %mine, 1, %p;
  membar.gl;
  atom.global.add.u32 %before, [%workspace+4], %mine;
POLL:
  ld.volatile.global.u32 %now, [%workspace+4];
  xor.b32 %now, %now, %before; setp.ge.s32 %p, %now, 0;
  @%p bra POLL;
  membar.gl;
WAIT:
  barrier.sync 0;
  st.param.b32 [status], 0;
  ret;
}
"""
_CALLED = re.compile(r"\bcudaCG(GetIntrinsicHandle|Synchronize)\b")
_DECLARED = re.compile(r"\.extern(\s+\.func\s*\([^)]*\)\s*cudaCG(GetIntrinsicHandle|Synchronize)\b)")
_SYNCS = re.compile(r"\bcudaCGSynchronize\b")
_DEFINED = re.compile(r"^\s*\.(visible|weak) \.func .*\bcudaCGSynchronize\b", re.MULTILINE)


def with_device_runtime(text: str) -> str:
    """The PTX, extended by those functions that it calls but does not define; line numbers do not change."""
    if not _CALLED.search(text) or _DEFINED.search(text):
        return text
    return _DECLARED.sub(r".visible\1", text) + _GRID_BARRIER


def syncs_grids(text: str) -> bool:
    """Whether PTX calls the runtime's grid barrier, as Numba's does; Numba launches such kernels
    cooperatively.
    """
    return _SYNCS.search(text) is not None


# Of the headers cuda_device_runtime_api.h of CUDA 11 to 13; "CDP2" is CUDA dynamic parallelism, version 2.
_LAUNCHES = re.compile(
    r"__cudaCDP2\w+|cuda(LaunchDevice|GetParameterBuffer)(V2)?(_ptsz)?|cudaGraphLaunch(_ptsz)?"
)
_OF_RUNTIME = re.compile(r"__cudaCDP2|cuda[A-Z]|__nv_static_\w*_cuda_device_runtime_cu_")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEAD_OR_CALL = re.compile(
    r"(?<![\w$.%])(?:\.(?:entry|func)\s*(?:\([^()]*\)\s*)?([A-Za-z_$%][\w$]*)"
    r"|call(?:\.uni)?\s+(?:\([^()]*\)\s*,\s*)?([A-Za-z_$][\w$]*))"
)


def refuse_launches(name: str, calls: Iterable[tuple[str, str]]) -> None:
    """Raises DynamicParallelismError if a kernel or function launches kernels or graphs.

    name: of the file, for the message. calls: the names of who calls and what is called. What libcudadevrt
    holds may be part of any program, and counts only where the program calls it.
    """
    for caller, called in calls:
        if _LAUNCHES.fullmatch(called) and not _OF_RUNTIME.match(caller):
            raise DynamicParallelismError(
                f"{name}: dynamic parallelism is not supported: `{caller}` calls `{called}` (kernels that "
                "launch kernels or graphs); launch from the host"
            )


def calls_in(text: str) -> Iterable[tuple[str, str]]:
    """The direct calls of PTX: the names of who calls and what is called."""
    if "cuda" not in text:
        return
    caller = ""
    for match in _HEAD_OR_CALL.finditer(_COMMENT.sub(" ", text)):
        if match[1]:
            caller = match[1]
        else:
            yield caller, match[2]
