#include "modules.hpp"

#include <cstring>

#include "image.hpp"

namespace simt::driver {
namespace {

KernelFacts facts_of(const KernelRecord& record) {
  KernelFacts facts;
  for (const ParameterPlace& p : record.parameters) facts.parameters.push_back({p.offset, p.size});
  facts.shared_bytes = record.shared_bytes;
  facts.local_bytes = record.stack_bytes;
  facts.max_threads = record.max_threads;
  facts.cluster = record.cluster;
  return facts;
}

}  // namespace

Module& load_module(Context& context, std::span<const std::byte> image, std::string* log) {
  Device& device = context.device;
  const LoadedModule loaded = device.connection.call(LoadRequest{.image = image});
  if (loaded.refusal) {
    if (log) *log = loaded.refusal->text;
    say_once(loaded.refusal->text);  // the runtime tries again at each launch
    fail(static_cast<CUresult>(loaded.refusal->code));
  }
  Module& module = all<Module>().make(context);
  module.id = loaded.module;
  module.ptx_version = loaded.ptx_version;
  for (const auto& [name, record] : loaded.kernels) {
    Function* function = &all<Function>().make(module, name);
    function->facts = facts_of(record);
    module.functions[name] = function;
  }
  for (const auto& [name, found] : loaded.variables) {
    if (found.managed) Process::get().shares_memory = true;
    (found.managed ? module.managed : module.variables)[name] = {found.address, found.size};
    if (found.size > 0)
      device.allocations[found.address] = Allocation{
          found.size, found.managed ? Origin::Managed : Origin::Variable, 0, 0, 0, Process::get().next_id++,
          nullptr};
  }
  return module;
}

void unload_module(Module& module) {
  Device& device = module.context.device;
  synchronize(device);
  for (const auto* table : {&module.variables, &module.managed})
    for (const auto& [name, variable] : *table) device.allocations.erase(variable.address);
  device.connection.send(UnloadRequest{.module = module.id});
  destroy_module(module);
}

void destroy_module(Module& module) {
  forget_references(module);
  for (const auto& [name, function] : module.functions) all<Function>().destroy(*function);
  all<Module>().destroy(module);
}

Function& function_named(const Module& module, const std::string& name) {
  const auto found = module.functions.find(name);
  require(found != module.functions.end(), CUDA_ERROR_NOT_FOUND);
  return *found->second;
}

Function& function_of(CUfunction handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_HANDLE);
  if (auto* kernel = reinterpret_cast<Kernel*>(handle); kernel->is(Kernel::tag))
    return function_named(kernel->library.in(current_context()), kernel->name);
  return object_of<Function>(handle);
}

Library::Library(Bytes of, Context& first) : Handle(tag), image(std::move(of)) {
  for (const auto& [name, function] : in(first).functions) kernels[name] = &all<Kernel>().make(*this, name);
}

Module& Library::in(Context& context) {
  Ref<Module>& module = modules[context.serial()];
  if (!module.get()) module = load_module(context, image);
  return *module;
}

JitOptions::JitOptions(unsigned count, CUjit_option* options, void** values) {
  for (unsigned k = 0; k < count; ++k) {
    if (options[k] == CU_JIT_ERROR_LOG_BUFFER) buffer_ = static_cast<char*>(values[k]);
    if (options[k] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) continue;
    bytes_ = reinterpret_cast<uintptr_t>(values[k]) & 0xffffffff;
    used_ = &values[k];
  }
}

void JitOptions::put(const std::string& log) {
  if (!buffer_ || bytes_ == 0) return;
  const size_t taken = log.copy(buffer_, bytes_ - 1);
  buffer_[taken] = '\0';
  if (used_) *used_ = reinterpret_cast<void*>(taken);
}

}  // namespace simt::driver
