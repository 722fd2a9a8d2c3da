#pragma once
extern __device__ int offset;
__device__ int shifted(int x);
