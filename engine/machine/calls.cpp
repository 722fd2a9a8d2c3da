#include "machine/calls.hpp"

#include <algorithm>
#include <cstring>

#include "machine/cta.hpp"
#include "machine/fault.hpp"
#include "machine/grid.hpp"
#include "machine/lanes.hpp"

namespace simt::functional {

uint32_t op_at(const Program& program, uint64_t address) {
  const uint64_t offset = address - machine_code_window;
  if (offset % instruction_bytes || offset / instruction_bytes >= program.first_op.size()) return UINT32_MAX;
  return program.first_op[offset / instruction_bytes];
}

void run_trap(Context& c, const Op&) {
  std::string what = "the program stopped itself";
  if (c.grid->program().asks_for_workspace && !c.grid->config().cooperative)
    what +=
        "; the sync() of a grid does so without a cooperative launch, kernel[grid, block](..., "
        "cooperative=True)";
  throw Fault("trap", what, c.first_lane());
}

CallTarget find_callee(const Context& context, const Op& op, const Program& program) {
  const CallSite& site = op.details<CallSite>();
  if (site.function != UINT32_MAX) return {site.function, context.mask};
  const uint64_t* address = context.lanes<uint64_t>(op.a);
  const int first = context.first_lane();
  if (address[first] == 0) throw Fault("illegal address", "a call through a null pointer", first);
  const uint64_t index = (address[first] - code_window) / 16;
  if (index >= program.functions.size() || function_address(static_cast<uint32_t>(index)) != address[first] ||
      program.functions[index].entry)
    throw Fault("illegal address", "a call through a pointer that is not the address of a function", first);
  uint32_t lanes = 0;
  each_lane(context, [&](int i) { lanes |= uint32_t{address[i] == address[first]} << i; });
  const FunctionCode& callee = program.functions[index];
  if (callee.parameter_sizes.size() != site.arguments.size() ||
      callee.result_sizes.size() != site.results.size())
    throw Fault("illegal instruction",
                "`" + callee.name + "` is called with another number of parameters or results", first);
  return {static_cast<uint32_t>(index), lanes};
}

namespace {

template <class T>
void run_to_stack(Context& c, const Op& op) {
  const T* values = c.lanes<const T>(op.a);
  each_lane(c, [&](int lane) {
    std::byte* local = c.cta->local(c.warp->number(), static_cast<uint32_t>(lane));
    std::memcpy(local + c.stack + op.immediate, &values[lane], sizeof(T));
  });
}

template <class T>
void run_from_stack(Context& c, const Op& op) {
  T* values = c.lanes<T>(op.destination);
  each_lane(c, [&](int lane) {
    const std::byte* local = c.cta->local(c.warp->number(), static_cast<uint32_t>(lane));
    std::memcpy(&values[lane], local + c.stack + op.immediate, sizeof(T));
  });
}

/// A predicate takes one byte. Op::immediate: its place; negated if negated_predicate is set.
void run_predicate_to_stack(Context& c, const Op& op) {
  const uint32_t bits = c.predicate(op.a) ^ (op.immediate & negated_predicate ? full_mask : 0);
  const auto offset = static_cast<uint32_t>(op.immediate);
  each_lane(c, [&](int lane) {
    std::byte* local = c.cta->local(c.warp->number(), static_cast<uint32_t>(lane));
    local[c.stack + offset] = std::byte((bits >> lane) & 1);
  });
}
void run_predicate_from_stack(Context& c, const Op& op) {
  uint32_t bits = 0;
  each_lane(c, [&](int lane) {
    const std::byte* local = c.cta->local(c.warp->number(), static_cast<uint32_t>(lane));
    bits |= static_cast<uint32_t>(local[c.stack + static_cast<uint32_t>(op.immediate)]) << lane;
  });
  write_predicate(c, op.destination, bits);
}

}  // namespace

Handler to_stack(uint32_t bytes) {
  if (bytes == predicate_bytes) return run_predicate_to_stack;
  return bytes == 8 ? run_to_stack<uint64_t> : run_to_stack<uint32_t>;
}
Handler from_stack(uint32_t bytes) {
  if (bytes == predicate_bytes) return run_predicate_from_stack;
  return bytes == 8 ? run_from_stack<uint64_t> : run_from_stack<uint32_t>;
}

void pass_arguments(const Context& context, const CallSite& site, const FunctionCode& callee,
                    uint32_t callee_stack) {
  each_lane(context, [&](int lane) {
    std::byte* local = context.cta->local(context.warp->number(), static_cast<uint32_t>(lane));
    for (size_t k = 0; k < site.arguments.size(); ++k)
      std::memcpy(local + callee_stack + callee.parameter_offsets[k],
                  local + context.stack + site.arguments[k].offset,
                  std::min(site.arguments[k].bytes, callee.parameter_sizes[k]));
  });
}

void return_results(const Context& context, const CallSite& site, const FunctionCode& callee,
                    uint32_t callee_stack, uint32_t caller_stack) {
  each_lane(context, [&](int lane) {
    std::byte* local = context.cta->local(context.warp->number(), static_cast<uint32_t>(lane));
    for (size_t k = 0; k < site.results.size(); ++k)
      std::memcpy(local + caller_stack + site.results[k].offset,
                  local + callee_stack + callee.result_offsets[k],
                  std::min(site.results[k].bytes, callee.result_sizes[k]));
  });
}

}  // namespace simt::functional
