"""The standard headers that kernels include and that NVRTC lacks.

NVRTC has no host compiler's headers: `#include <cstdint>` fails and `INFINITY` is undefined, although nvcc
accepts both. The headers here forward to libcu++ (`cuda/std/...`) and also declare its names in `std`.
"""

from __future__ import annotations

PRELUDE = "simt_prelude.h"
"""Included before every source: what nvcc declares without being asked."""

NO_HOST = "simt_no_host.h"
"""Turns host-only functions, such as members of classes, into device code that is never called."""
STANDARD_LIBRARY = "simt_standard_library.h"
"""All that device code has of the C++ standard library: with nvcc the host's headers bring each other."""

_STD = "namespace std { using namespace cuda::std; }\n"
_BUILT_IN = ("assert", "stdio", "string")  # NVRTC declares assert, printf, memcpy and memset itself
_HOST_ONLY = (  # what they declare only host code uses, or NVRTC declares it itself
    *("cuda.h", "iostream", "fstream"),
    *("sstream", "iomanip", "vector", "map", "set", "unordered_map", "list", "deque", "queue", "chrono"),
    *("thread", "mutex", "random", "stdexcept", "exception", "ctime", "time.h", "sys/time.h", "unistd.h"),
    *("csignal", "signal.h", "errno.h", "fcntl.h", "sys/types.h", "sys/stat.h", "malloc.h"),
)
_C = ("float", "limits", "stddef", "stdint", "stdlib")
_CXX = (
    *("array", "atomic", "bit", "bitset", "complex", "functional", "initializer_list", "iterator", "limits"),
    *("memory", "numeric", "optional", "span", "tuple", "type_traits", "utility"),
)
# The whole of CUB holds host code that NVRTC refuses; kernels use these parts.
_CUB = tuple(
    f"block/block_{part}"
    for part in (
        *(
            "adjacent_difference",
            "discontinuity",
            "exchange",
            "histogram",
            "load",
            "merge_sort",
            "radix_rank",
        ),
        *("radix_sort", "reduce", "run_length_decode", "scan", "shuffle", "store"),
    )
) + tuple(f"warp/warp_{part}" for part in ("exchange", "load", "merge_sort", "reduce", "scan", "store"))
_MATH = {
    "M_E": "2.7182818284590452354",
    "M_LOG2E": "1.4426950408889634074",
    "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402",
    "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390",
    "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "HUGE_VALF": "__int_as_float(0x7f800000)",
    "HUGE_VAL": "__longlong_as_double(0x7ff0000000000000ll)",
}


def standard_headers() -> dict[str, str]:
    """Text of each header by its name in `#include`."""
    headers = {
        PRELUDE: "#include <math.h>\n#include <stdint.h>\n"
        "typedef unsigned int uint;\ntypedef unsigned short ushort;\ntypedef unsigned long ulong;\n",
        "math.h": "".join(
            f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in _MATH.items()
        ),
        "cmath": f"#include <math.h>\n#include <cuda/std/cmath>\n{_STD}",
        "new": "\n",  # NVRTC declares placement new
        **dict.fromkeys(_HOST_ONLY, "\n"),
        "algorithm": (
            "#if __has_include(<cuda/std/algorithm>)\n#include <cuda/std/algorithm>\n#else\n"
            f"#include <cuda/std/detail/libcxx/include/algorithm>\n#endif\n{_STD}"
        ),
    }
    headers[NO_HOST] = "#undef __host__\n#define __host__\n"
    headers["cub/cub.cuh"] = "".join(f"#include <cub/{part}.cuh>\n" for part in _CUB)
    headers[STANDARD_LIBRARY] = "".join(f"#include <{name}>\n" for name in (*_CXX, "algorithm", "cmath"))
    for name in _BUILT_IN:
        headers[f"{name}.h"] = headers[f"c{name}"] = "\n"
    for name in _C:
        headers[f"{name}.h"] = f"#include <cuda/std/c{name}>\n"
        headers[f"c{name}"] = f"#include <cuda/std/cstddef>\n#include <cuda/std/c{name}>\n{_STD}"
    for name in _CXX:
        headers[name] = f"#include <cuda/std/{name}>\n{_STD}"
    return headers
