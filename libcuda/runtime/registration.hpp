// What a program's host code registered: its modules, and the kernels and variables in them.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "runtime.hpp"

namespace runtime {

// nvcc's contents of the section .nvFatBinSegment. Version 2 is for programs with relocatable device code:
// `linked` is a null-terminated list of the images of the files.
struct FatBinary {
  int magic;
  int version;
  const void* data;
  const void* const* linked;
};

// The image from one file or one device link. It is loaded when its contents are first used.
struct Module {
  const FatBinary* image = nullptr;
  std::mutex lock;
  std::atomic<CUlibrary> library{nullptr};
  bool needs_managed = false;  // has managed variables: their host pointers are set as soon as it is loaded
};

struct KernelSymbol {
  Module* module = nullptr;
  const void* host = nullptr;
  std::string name;  // in the image
  std::atomic<CUkernel> kernel{nullptr};
};

struct Variable {
  Module* module;
  std::string name;
  size_t size;
  void** managed;  // the program's pointer to it; null if the variable is not managed
};

// A texture or surface reference of a program for CUDA 11.
struct Reference {
  Module* module;
  std::string name;
  bool normalised_read;
};

// By the host address that represents it; null if the program registered nothing there.
KernelSymbol* find_kernel(const void* host);
const Variable* find_variable(const void* host);
const Reference* find_reference(const void* host);
// The host address of a kernel; null for one loaded by the program itself.
const void* host_of(CUkernel kernel);
// Records a handle known to the program, which it may pass where a host address is expected.
void know_kernel(CUkernel kernel);

// These load the module if necessary.
cudaError_t load(Module& module, CUlibrary* library);
cudaError_t kernel_of(KernelSymbol& symbol, CUkernel* kernel);
// `host` is a registered address, or a kernel handle known to the program.
cudaError_t kernel_of(const void* host, CUkernel* kernel);
// As above, in the current context.
cudaError_t function_of(const void* host, CUfunction* function);
cudaError_t variable_of(const void* host, CUdeviceptr* address, size_t* size);

CUlaunchConfig driver_launch_config(const cudaLaunchConfig_t& config);

}  // namespace runtime
