"""CUDA runtime functions for device code that programs call without defining them: grid barriers, and those
with which kernels launch kernels (dynamic parallelism) or graphs, which are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from simt.errors import DynamicParallelismError

# A handle is the address of the launch's workspace, 0 without a cooperative launch.
_GET_HANDLE = """
.visible .func (.param .b64 handle) NAME(.param .b32 scope)
{
  .reg .pred %p; .reg .b32 %low, %high, %scope; .reg .b64 %workspace;
  ld.param.b32 %scope, [scope]; setp.eq.u32 %p, %scope, 1;
  mov.u32 %high, %envreg1; mov.u32 %low, %envreg2;
  mov.b64 %workspace, {%low, %high}; selp.b64 %workspace, %workspace, 0, %p;
  st.param.b64 [handle], %workspace;
  ret;
}
"""
# Bit 0 of the flags: the CTA's threads have met, and only the first one calls. To the workspace's second word
# the CTAs' first threads add 2^31 together at each barrier, so that its top bit flips when all have come.
_SYNC = """
.visible .func (.param .b32 status) NAME(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p, %q; .reg .b32 %x, %y, %z, %mine, %before, %now; .reg .b64 %workspace;
  ld.param.b64 %workspace, [handle];
  setp.eq.u64 %p, %workspace, 0; @%p trap;
  FLAGS; and.b32 %x, %x, 1; setp.ne.u32 %q, %x, 0;
  @%q bra ARRIVES;
  barrier.sync 0;
ARRIVES:
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.ne.u32 %p, %x, 0;
  @%p bra MET;
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
MET:
  @%q bra RETURNS;
  barrier.sync 0;
RETURNS:
  st.param.b32 [status], 0;
  ret;
}
"""
# Pointers to the number of threads and that of grids, either of which may be null.
_GET_SIZE = """
.visible .func (.param .b32 status) NAME(.param .b64 threads, .param .b64 grids, .param .b64 handle)
{
  .reg .pred %p; .reg .b32 %n, %x; .reg .b64 %to;
  mov.u32 %n, %ntid.x; mov.u32 %x, %ntid.y; mul.lo.u32 %n, %n, %x; mov.u32 %x, %ntid.z; mul.lo.u32 %n, %n, %x;
  mov.u32 %x, %nctaid.x; mul.lo.u32 %n, %n, %x; mov.u32 %x, %nctaid.y; mul.lo.u32 %n, %n, %x;
  mov.u32 %x, %nctaid.z; mul.lo.u32 %n, %n, %x;
  ld.param.b64 %to, [threads]; setp.ne.u64 %p, %to, 0; @%p st.u32 [%to], %n;
  ld.param.b64 %to, [grids]; setp.ne.u64 %p, %to, 0; @%p st.u32 [%to], 1;
  st.param.b32 [status], 0;
  ret;
}
"""
# Likewise, to the thread's place in the grid and to that of the grid among grids.
_GET_RANK = """
.visible .func (.param .b32 status) NAME(.param .b64 thread, .param .b64 grid, .param .b64 handle)
{
  .reg .pred %p; .reg .b32 %i, %n, %x; .reg .b64 %to;
  mov.u32 %i, %ctaid.z; mov.u32 %n, %nctaid.y; mov.u32 %x, %ctaid.y; mad.lo.u32 %i, %i, %n, %x;
  mov.u32 %n, %nctaid.x; mov.u32 %x, %ctaid.x; mad.lo.u32 %i, %i, %n, %x;
  mov.u32 %n, %ntid.z; mov.u32 %x, %tid.z; mad.lo.u32 %i, %i, %n, %x;
  mov.u32 %n, %ntid.y; mov.u32 %x, %tid.y; mad.lo.u32 %i, %i, %n, %x;
  mov.u32 %n, %ntid.x; mov.u32 %x, %tid.x; mad.lo.u32 %i, %i, %n, %x;
  ld.param.b64 %to, [thread]; setp.ne.u64 %p, %to, 0; @%p st.u32 [%to], %i;
  ld.param.b64 %to, [grid]; setp.ne.u64 %p, %to, 0; @%p st.u32 [%to], 0;
  st.param.b32 [status], 0;
  ret;
}
"""
_SYNC_WITH_FLAGS = _SYNC.replace("FLAGS", "ld.param.b32 %x, [flags]")
# Those of libcudadevrt, and those of the driver on which it stands.
_PROVIDED = {
    "cudaCGGetIntrinsicHandle": _GET_HANDLE,
    "cudaCGSynchronize": _SYNC_WITH_FLAGS,
    "cudaCGSynchronizeGrid": _SYNC.replace("FLAGS", "mov.b32 %x, 0"),
    "cudaCGGetSize": _GET_SIZE,
    "cudaCGGetRank": _GET_RANK,
    "__cuda_syscall_CGS_get_intrinsic_handle": _GET_HANDLE,
    "__cuda_syscall_CGS_sync": _SYNC_WITH_FLAGS,
    "__cuda_syscall_CGS_get_size": _GET_SIZE,
    "__cuda_syscall_CGS_get_rank": _GET_RANK,
}
SYSTEM = frozenset({"vprintf", "__assertfail", "__assert_fail", "malloc", "free", *_PROVIDED})
"""Functions that the simulator provides: the engine (engine/ptx/translation/system.cpp), and
`with_device_runtime`."""
_NAMES = "|".join(_PROVIDED)
_NAMED = re.compile(rf"\b({_NAMES})\b")
_DECLARED = re.compile(rf"\.extern(\s+\.func\s*\([^)]*\)\s*({_NAMES})\b)")
_DEFINED = re.compile(rf"^\s*\.(?:visible|weak)\s+\.func\s*\([^)]*\)\s*({_NAMES})\b", re.MULTILINE)


def with_device_runtime(text: str) -> str:
    """The PTX, extended by those functions that it calls but does not define; line numbers do not change."""
    missing = set(_NAMED.findall(text)) - set(_DEFINED.findall(text))
    if not missing:
        return text

    def declared(head: re.Match[str]) -> str:
        return f".visible{head[1]}" if head[2] in missing else head[0]

    added = [body.replace("NAME", name) for name, body in _PROVIDED.items() if name in missing]
    return _DECLARED.sub(declared, text) + "".join(added)


def syncs_grids(text: str) -> bool:
    """Whether PTX calls the runtime's grid barrier, as Numba's does; Numba launches such kernels
    cooperatively.
    """
    return "cudaCGSynchronize" in _NAMED.findall(text)


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


def is_of_runtime(name: str) -> bool:
    """Whether a function or kernel is one of libcudadevrt, which any program may hold."""
    return _OF_RUNTIME.match(name) is not None


def refuse_launches(name: str, calls: Iterable[tuple[str, str]]) -> None:
    """Raises DynamicParallelismError if a kernel or function launches kernels or graphs.

    name: of the file, for the message. calls: the names of who calls and what is called. What libcudadevrt
    holds counts only where the program calls it.
    """
    for caller, called in calls:
        if _LAUNCHES.fullmatch(called) and not is_of_runtime(caller):
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
