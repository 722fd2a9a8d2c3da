// Shared by all parts of the runtime API: the transition from an entry point to the driver API, and the last
// error.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <type_traits>

namespace runtime {

// The driver's error codes and the runtime's have the same numbers.
constexpr cudaError_t to_error(CUresult result) {
  return static_cast<cudaError_t>(result);
}
constexpr cudaError_t to_error(cudaError_t error) {
  return error;
}

// Leaves the enclosing function with the error of `expression`, if there is one.
#define RUNTIME_TRY(expression) \
  if (const cudaError_t error_ = ::runtime::to_error(expression); error_ != cudaSuccess) return error_

// Initialises the driver; repeated calls cost only one load.
cudaError_t start();
// Makes a context current in this thread: the one the program chose, or its device's primary context.
cudaError_t enter();
// Keeps `error` for cudaGetLastError and returns it.
cudaError_t remember(cudaError_t error);
// The primary context of a device, retained once per process.
cudaError_t primary_context(int device, CUcontext* context);
cudaError_t current_device(int* device);
// The version of this library's interface: 11080, 12090 or 13000.
extern const int version;

// Structures that the driver and runtime APIs declare under different names.
template <class Runtime, class Driver>
struct SameLayout : std::false_type {};
#define RUNTIME_SAME_LAYOUT(Runtime, Driver)                     \
  template <>                                                    \
  struct runtime::SameLayout<Runtime, Driver> : std::true_type { \
    static_assert(sizeof(Runtime) == sizeof(Driver));            \
  }

template <class From, class To>
constexpr bool same_pointee =
    (std::is_enum_v<From> && std::is_enum_v<To> && sizeof(From) == sizeof(To)) ||
    SameLayout<From, To>::value || (std::is_same_v<From, void*> && std::is_same_v<To, CUdeviceptr>);

// Converts an argument to the driver API's type.
template <class To, class From>
To convert(From argument) {
  if constexpr (std::is_convertible_v<From, To>) {
    return argument;
  } else if constexpr (std::is_enum_v<To>) {
    return static_cast<To>(argument);
  } else if constexpr (std::is_pointer_v<From> && std::is_same_v<To, CUdeviceptr>) {
    return reinterpret_cast<CUdeviceptr>(argument);
  } else {
    using Pointee = std::remove_pointer_t<From>;
    using Wanted = std::remove_pointer_t<To>;
    static_assert(std::is_const_v<Wanted> || !std::is_const_v<Pointee>, "would drop const");
    static_assert(same_pointee<std::remove_const_t<Pointee>, std::remove_const_t<Wanted>>,
                  "not the same type");
    return reinterpret_cast<To>(argument);
  }
}

template <class... Parameters, class... Arguments>
cudaError_t forward(CUresult (*function)(Parameters...), Arguments... arguments) {
  return to_error(function(convert<Parameters>(arguments)...));
}
template <class Function, class... Arguments>
cudaError_t forward(Function function, Arguments... arguments) {
  return to_error(function(arguments...));
}

// Calls a driver API function, or one of ours, with a context current in this thread.
template <class Function, class... Arguments>
cudaError_t call(Function function, Arguments... arguments) {
  const cudaError_t error = enter();
  return remember(error == cudaSuccess ? forward(function, arguments...) : error);
}

// The same for functions that need no context.
template <class Function, class... Arguments>
cudaError_t query(Function function, Arguments... arguments) {
  const cudaError_t error = start();
  return remember(error == cudaSuccess ? forward(function, arguments...) : error);
}

inline CUarray driver_array(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}
inline CUmipmappedArray driver_array(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array));
}
inline cudaArray_t runtime_array(CUarray array) {
  return reinterpret_cast<cudaArray_t>(array);
}
inline void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace runtime

RUNTIME_SAME_LAYOUT(cudaArray_t, CUarray);
RUNTIME_SAME_LAYOUT(cudaMipmappedArray_t, CUmipmappedArray);
RUNTIME_SAME_LAYOUT(cudaMemPoolProps, CUmemPoolProps);
RUNTIME_SAME_LAYOUT(cudaMemAccessDesc, CUmemAccessDesc);
RUNTIME_SAME_LAYOUT(cudaMemLocation, CUmemLocation);
RUNTIME_SAME_LAYOUT(cudaMemPoolPtrExportData, CUmemPoolPtrExportData);
RUNTIME_SAME_LAYOUT(cudaGraphEdgeData, CUgraphEdgeData);
RUNTIME_SAME_LAYOUT(cudaGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS);
RUNTIME_SAME_LAYOUT(cudaGraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo);
RUNTIME_SAME_LAYOUT(cudaHostNodeParams, CUDA_HOST_NODE_PARAMS);
RUNTIME_SAME_LAYOUT(cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS);
RUNTIME_SAME_LAYOUT(cudaLaunchAttribute, CUlaunchAttribute);
RUNTIME_SAME_LAYOUT(cudaLaunchAttributeValue, CUlaunchAttributeValue);
RUNTIME_SAME_LAYOUT(cudaArrayMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS);
RUNTIME_SAME_LAYOUT(cudaArraySparseProperties, CUDA_ARRAY_SPARSE_PROPERTIES);
