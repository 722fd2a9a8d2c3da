#include "modules.hpp"

#include <cstring>

#include "image.hpp"

namespace simt::driver {
namespace {

KernelFacts facts_of(const Value& value) {
  KernelFacts facts;
  for (const Value& p : value[0].items)
    facts.parameters.push_back({static_cast<uint32_t>(p[0].number()), static_cast<uint32_t>(p[1].number())});
  facts.shared_bytes = static_cast<uint32_t>(value[1].number());
  facts.local_bytes = static_cast<uint32_t>(value[2].number());
  facts.max_threads = static_cast<uint32_t>(value[3].number());
  for (size_t k = 0; k < 3; ++k) facts.cluster[k] = static_cast<uint32_t>(value[4][k].number());
  return facts;
}

}  // namespace

Module& load_module(Context& context, std::span<const std::byte> image, std::string* log) {
  Device& device = context.device;
  const Value reply = device.connection.call("load", image);
  if (const Value* error = reply.find("error")) {
    const std::string& text = reply.at("text").string();
    if (log) *log = text;
    say_once(text);  // the runtime tries again at each launch
    fail(static_cast<CUresult>(error->number()));
  }
  Module& module = all<Module>().make(context);
  module.id = reply.at("module").number();
  module.ptx_version = static_cast<int>(reply.at("ptx_version").number());
  const Value& kernels = reply.at("kernels");
  for (size_t i = 0; i + 1 < kernels.size(); i += 2) {
    Function* function = &all<Function>().make(module, kernels.items[i].string());
    function->facts = facts_of(kernels.items[i + 1]);
    module.functions[function->name] = function;
  }
  const Value& variables = reply.at("variables");
  for (size_t i = 0; i + 1 < variables.size(); i += 2) {
    const Value& facts = variables.items[i + 1];
    const Variable variable{facts[0].number(), facts[1].number()};
    const bool managed = facts[2].number() != 0;
    (managed ? module.managed : module.variables)[variables.items[i].string()] = variable;
    if (variable.size > 0)
      device.allocations[variable.address] = Allocation{
          variable.size, managed ? Origin::Managed : Origin::Variable, 0, 0, 0, Process::get().next_id++,
          nullptr};
  }
  return module;
}

void unload_module(Module& module) {
  Device& device = module.context.device;
  synchronize(device);
  for (const auto* table : {&module.variables, &module.managed})
    for (const auto& [name, variable] : *table) device.allocations.erase(variable.address);
  device.connection.send("unload", module.id);
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
