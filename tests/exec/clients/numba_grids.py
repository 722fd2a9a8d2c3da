"""numba-cuda's grid synchronisation, in machine code that nvJitLink links with libcudadevrt.

With debug=True, that code keeps the PTX of the kernel without that of the functions it calls.
"""

import numpy as np
from numba import cuda


def reverse(x, y):
    i = cuda.grid(1)
    grid = cuda.cg.this_grid()
    y[i] = x[i] * 2
    grid.sync()
    x[i] = y[x.size - 1 - i] + 1
    grid.sync()
    y[i] = x[x.size - 1 - i]


for options in ({}, {"lineinfo": True}, {"debug": True, "opt": False}):
    x = np.arange(1024, dtype=np.float32)
    to, work = cuda.to_device(x), cuda.device_array_like(x)
    cuda.jit(**options)(reverse)[8, 128](to, work)
    assert np.array_equal(to.copy_to_host(), 2 * x[::-1] + 1)
    assert np.array_equal(work.copy_to_host(), 2 * x + 1)
print("ok")
