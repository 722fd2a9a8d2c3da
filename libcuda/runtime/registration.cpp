// Registration: the start-up code of programs compiled by nvcc or clang registers its modules with the
// runtime.
#include "registration.hpp"

#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "link.hpp"

namespace runtime {
namespace {

constexpr int fat_binary_magic = 0x466243B1;

struct Registry {
  std::shared_mutex lock;
  std::unordered_map<const void*, KernelSymbol> kernels;
  std::unordered_map<const void*, Variable> variables;
  std::unordered_map<const void*, Reference> references;
  std::unordered_map<CUkernel, const void*> hosts;  // null for kernels loaded by the program itself
};

// Never destroyed: programs may unregister their modules after this library's destructors have run.
Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

template <class Map>
auto* find(Map& map, const void* host) {
  const std::shared_lock guard(registry().lock);
  const auto found = map.find(host);
  return found == map.end() ? nullptr : &found->second;
}

template <class Symbol>
void add(std::unordered_map<const void*, Symbol>& map, const void* host, Symbol symbol) {
  const std::unique_lock guard(registry().lock);
  map.try_emplace(host, std::move(symbol));
}

template <class Map>
void erase_module(Map& map, const Module* module) {
  std::erase_if(map, [module](const auto& entry) { return entry.second.module == module; });
}

Module& module_of(void** handle) {
  return *reinterpret_cast<Module*>(handle);
}

// Sets the program's pointers to the managed variables of a module that has just been loaded.
cudaError_t bind_managed(const Module& module, CUlibrary library) {
  const std::shared_lock guard(registry().lock);
  for (const auto& [host, variable] : registry().variables) {
    if (variable.module != &module || !variable.managed) continue;
    CUdeviceptr address = 0;
    size_t size = 0;
    RUNTIME_TRY(cuLibraryGetManaged(&address, &size, library, variable.name.c_str()));
    *variable.managed = pointer(address);
  }
  return cudaSuccess;
}

cudaError_t load_image(const FatBinary& image, CUlibrary* library) {
  if (image.magic != fat_binary_magic) return cudaErrorInvalidKernelImage;
  if (image.version == 2) return link_images(image, library);
  return to_error(cuLibraryLoadData(library, image.data, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

}  // namespace

KernelSymbol* find_kernel(const void* host) {
  return find(registry().kernels, host);
}
const Variable* find_variable(const void* host) {
  return find(registry().variables, host);
}
const Reference* find_reference(const void* host) {
  return find(registry().references, host);
}

const void* host_of(CUkernel kernel) {
  const std::shared_lock guard(registry().lock);
  const auto found = registry().hosts.find(kernel);
  return found == registry().hosts.end() ? nullptr : found->second;
}

void know_kernel(CUkernel kernel) {
  const std::unique_lock guard(registry().lock);
  registry().hosts.try_emplace(kernel, nullptr);
}

cudaError_t load(Module& module, CUlibrary* library) {
  *library = module.library.load(std::memory_order_acquire);
  if (*library) return cudaSuccess;
  const std::lock_guard guard(module.lock);
  *library = module.library.load(std::memory_order_relaxed);
  if (*library) return cudaSuccess;
  RUNTIME_TRY(load_image(*module.image, library));
  if (module.needs_managed) RUNTIME_TRY(bind_managed(module, *library));
  module.library.store(*library, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t kernel_of(KernelSymbol& symbol, CUkernel* kernel) {
  *kernel = symbol.kernel.load(std::memory_order_acquire);
  if (*kernel) return cudaSuccess;
  CUlibrary library = nullptr;
  RUNTIME_TRY(load(*symbol.module, &library));
  if (cuLibraryGetKernel(kernel, library, symbol.name.c_str()) != CUDA_SUCCESS)
    return cudaErrorInvalidDeviceFunction;
  const std::unique_lock guard(registry().lock);
  registry().hosts[*kernel] = symbol.host;
  symbol.kernel.store(*kernel, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t kernel_of(const void* host, CUkernel* kernel) {
  if (KernelSymbol* symbol = find_kernel(host)) return kernel_of(*symbol, kernel);
  *kernel = static_cast<CUkernel>(const_cast<void*>(host));
  const std::shared_lock guard(registry().lock);
  return registry().hosts.contains(*kernel) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t function_of(const void* host, CUfunction* function) {
  CUkernel kernel = nullptr;
  RUNTIME_TRY(kernel_of(host, &kernel));
  return to_error(cuKernelGetFunction(function, kernel));
}

cudaError_t variable_of(const void* host, CUdeviceptr* address, size_t* size) {
  const Variable* variable = find_variable(host);
  if (!variable) return cudaErrorInvalidSymbol;
  CUlibrary library = nullptr;
  RUNTIME_TRY(load(*variable->module, &library));
  const auto get = variable->managed ? cuLibraryGetManaged : cuLibraryGetGlobal;
  return get(address, size, library, variable->name.c_str()) == CUDA_SUCCESS ? cudaSuccess
                                                                             : cudaErrorInvalidSymbol;
}

}  // namespace runtime

using namespace runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* image) {
  auto module = std::make_unique<Module>();
  module->image = static_cast<const FatBinary*>(image);
  return reinterpret_cast<void**>(module.release());
}

void __cudaRegisterFatBinaryEnd(void**) {}

// The driver keeps loaded modules: when the program ends, its launches may still be queued.
void __cudaUnregisterFatBinary(void** handle) {
  Module* module = &module_of(handle);
  {
    const std::unique_lock guard(registry().lock);
    std::erase_if(registry().hosts, [module](const auto& entry) {
      const auto symbol = registry().kernels.find(entry.second);
      return symbol != registry().kernels.end() && symbol->second.module == module;
    });
    erase_module(registry().kernels, module);
    erase_module(registry().variables, module);
    erase_module(registry().references, module);
  }
  delete module;
}

// If two files define the same template, the host's linker kept the first; so does this.
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  const std::unique_lock guard(registry().lock);
  KernelSymbol& symbol = registry().kernels[host];
  if (symbol.module) return;
  symbol.module = &module_of(handle);
  symbol.host = host;
  symbol.name = name;
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int, int) {
  add(registry().variables, host, Variable{&module_of(handle), name, size, nullptr});
}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t size, int,
                              int) {
  module_of(handle).needs_managed = true;
  add(registry().variables, host, Variable{&module_of(handle), name, size, host});
}

void __cudaRegisterTexture(void** handle, const void* host, const void**, const char* name, int,
                           int normalised, int) {
  add(registry().references, host, Reference{&module_of(handle), name, normalised != 0});
}

void __cudaRegisterSurface(void** handle, const void* host, const void**, const char* name, int, int) {
  add(registry().references, host, Reference{&module_of(handle), name, false});
}

// Host code calls this before dereferencing its pointer to a managed variable.
char __cudaInitModule(void** handle) {
  CUlibrary library = nullptr;
  return call([&] { return load(module_of(handle), &library); }) == cudaSuccess;
}

}  // extern "C"
