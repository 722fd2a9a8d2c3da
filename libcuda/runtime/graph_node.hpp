// Parameters of graph nodes, as the driver takes them.
#pragma once

#include "runtime.hpp"

namespace runtime {

cudaError_t driver_kernel_node(const cudaKernelNodeParams& parameters, CUDA_KERNEL_NODE_PARAMS* result);
cudaKernelNodeParams runtime_kernel_node(const CUDA_KERNEL_NODE_PARAMS& parameters);
CUDA_MEMSET_NODE_PARAMS driver_memset_node(const cudaMemsetParams& parameters);
cudaMemsetParams runtime_memset_node(const CUDA_MEMSET_NODE_PARAMS& parameters);
CUcontext current_context();

}  // namespace runtime
