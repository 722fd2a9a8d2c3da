#include "image.hpp"
#include "modules.hpp"

// Modules, libraries, and their contents.

using namespace simt::driver;

namespace {

void put(const Variable& variable, CUdeviceptr* address, size_t* bytes) {
  if (address) *address = variable.address;
  if (bytes) *bytes = variable.size;
}

const Variable& variable_named(const Module& module, const char* name) {
  require(name != nullptr);
  for (const auto* table : {&module.variables, &module.managed})
    if (const auto found = table->find(name); found != table->end()) return found->second;
  fail(CUDA_ERROR_NOT_FOUND);
}

/// Without a current context, a library's symbols are looked up in device 0's primary context.
Context& context_of_library() {
  const auto& stack = Thread::get().stack;
  if (!stack.empty()) return current_context();
  CUcontext primary = nullptr;
  if (const CUresult code = cuDevicePrimaryCtxRetain(&primary, 0); code != CUDA_SUCCESS) fail(code);
  return object_of<Context>(primary);
}

void make_library(CUlibrary* library, Bytes image) {
  *library = handle_of<CUlibrary>(&all<Library>().make(std::move(image), context_of_library()));
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  return guarded([&] {
    require(module != nullptr && image != nullptr);
    JitOptions jit(count, options, values);
    std::string log;
    try {
      *module = handle_of<CUmodule>(&load_module(current_context(), image_bytes(image), &log));
    } catch (const Failure&) {
      jit.put(log);
      throw;
    }
  });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return guarded([&] {
    require(module != nullptr);
    *module = handle_of<CUmodule>(&load_module(current_context(), file_bytes(path)));
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return guarded([&] { unload_module(object_of<Module>(module)); });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return guarded([&] {
    require(mode != nullptr);
    *mode = CU_MODULE_EAGER_LOADING;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return guarded([&] {
    require(function != nullptr && name != nullptr);
    *function = handle_of<CUfunction>(&function_named(object_of<Module>(module), name));
  });
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return guarded([&] {
    require(count != nullptr);
    *count = static_cast<unsigned>(object_of<Module>(module).functions.size());
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return guarded([&] {
    require(functions != nullptr);
    const Module& m = object_of<Module>(module);
    unsigned k = 0;
    for (const auto& [name, function] : m.functions)
      if (k < count) functions[k++] = handle_of<CUfunction>(function);
  });
}

CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return guarded([&] { put(variable_named(object_of<Module>(module), name), address, bytes); });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  return guarded([&] {
    require(library != nullptr && code != nullptr);
    const auto bytes = image_bytes(code);
    make_library(library, Bytes(bytes.begin(), bytes.end()));
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned,
                               CUlibraryOption*, void**, unsigned) {
  return guarded([&] {
    require(library != nullptr);
    make_library(library, file_bytes(path));
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return guarded([&] {
    Library& l = object_of<Library>(library);
    for (const auto& [context, module] : l.modules)
      if (Module* const loaded = module.get()) unload_module(*loaded);
    for (const auto& [name, kernel] : l.kernels) all<Kernel>().destroy(*kernel);
    all<Library>().destroy(l);
  });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return guarded([&] {
    require(kernel != nullptr && name != nullptr);
    const Library& l = object_of<Library>(library);
    const auto found = l.kernels.find(name);
    require(found != l.kernels.end(), CUDA_ERROR_NOT_FOUND);
    *kernel = handle_of<CUkernel>(found->second);
  });
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return guarded([&] {
    require(count != nullptr);
    *count = static_cast<unsigned>(object_of<Library>(library).kernels.size());
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return guarded([&] {
    require(kernels != nullptr);
    unsigned k = 0;
    for (const auto& [name, kernel] : object_of<Library>(library).kernels)
      if (k < count) kernels[k++] = handle_of<CUkernel>(kernel);
  });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return guarded([&] {
    require(module != nullptr);
    *module = handle_of<CUmodule>(&object_of<Library>(library).in(current_context()));
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return guarded(
      [&] { put(variable_named(object_of<Library>(library).in(current_context()), name), address, bytes); });
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return guarded([&] {
    require(name != nullptr);
    const Module& module = object_of<Library>(library).in(context_of_library());
    const auto found = module.managed.find(name);
    require(found != module.managed.end(), CUDA_ERROR_NOT_FOUND);
    put(found->second, address, bytes);
  });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return guarded([&] {
    require(function != nullptr);
    *function = handle_of<CUfunction>(&function_of(reinterpret_cast<CUfunction>(kernel)));
  });
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return guarded([&] {
    require(library != nullptr);
    *library = handle_of<CUlibrary>(&object_of<Kernel>(kernel).library);
  });
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return guarded([&] {
    require(name != nullptr);
    *name = object_of<Kernel>(kernel).name.c_str();
  });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return guarded([&] {
    require(module != nullptr);
    *module = handle_of<CUmodule>(&function_of(function).module);
  });
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return guarded([&] {
    require(name != nullptr);
    *name = function_of(function).name.c_str();
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return guarded([&] {
    require(state != nullptr);
    function_of(function);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}

CUresult cuFuncLoad(CUfunction function) {
  return guarded([&] { function_of(function); });
}
