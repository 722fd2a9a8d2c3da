#pragma once
// NVIDIA's header declares what a program calls, and so what this library exports; all else stays inside.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
