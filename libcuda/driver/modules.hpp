#pragma once
#include <map>
#include <span>
#include <string>

#include "process.hpp"

namespace simt::driver {

/// An image, loaded into a context when one of its kernels or variables is needed there.
struct Library : Handle {
  static constexpr uint64_t tag = 0x73696d745f6c6962;
  Library(Bytes of, Context& first);
  Bytes image;
  std::map<uint64_t, Ref<Module>> modules;  ///< by context, by its serial number
  std::map<std::string, struct Kernel*> kernels;
  Module& in(Context& context);
};

/// A kernel of a library, independent of context.
struct Kernel : Handle {
  static constexpr uint64_t tag = 0x73696d745f6b726e;
  Kernel(Library& of, std::string called) : Handle(tag), library(of), name(std::move(called)) {}
  Library& library;
  std::string name;
};

/// Loads an image into a context. Throws Failure if it contains nothing that runs there. log: receives the
/// error.
Module& load_module(Context& context, std::span<const std::byte> image, std::string* log = nullptr);
void unload_module(Module& module);
/// Destroys its handles; simt has already dropped it.
void destroy_module(Module& module);
/// Destroys the handles of a module's texture and surface references.
void forget_references(const Module& module);
/// The kernel of that name. Throws Failure (CUDA_ERROR_NOT_FOUND).
Function& function_named(const Module& module, const std::string& name);
/// The function of a handle; for a kernel of a library, the function in the current context.
Function& function_of(CUfunction handle);
/// Options of cuModuleLoadDataEx and cuLinkCreate: only the log buffers.
class JitOptions {
 public:
  JitOptions(unsigned count, CUjit_option* options, void** values);
  void put(const std::string& log);

 private:
  char* buffer_ = nullptr;
  size_t bytes_ = 0;
  void** used_ = nullptr;
};

}  // namespace simt::driver
