#pragma once
#include <vector>

#include "functional/context.hpp"

namespace simt::functional {

/// Targets of brx.idx.
struct BranchTable : Detail {
  std::vector<uint32_t> targets;  ///< ops
};

/// A variable of a thread's stack frame.
struct StackSlot {
  uint32_t offset = 0, bytes = 0;
};

/// One call in the code.
struct CallSite : Detail {
  uint32_t function = UINT32_MAX;             ///< UINT32_MAX: by the address at Op::a, or a Builtin
  std::vector<StackSlot> arguments, results;  ///< in the caller's stack frame
};

struct CallTarget {
  uint32_t function;
  uint32_t lanes;  ///< that call it; others of the mask call something else
};

/// Of a predicate in the stack frame.
constexpr uint32_t predicate_bytes = 1;
/// In Op::immediate of what passes a predicate.
constexpr int64_t negated_predicate = int64_t{1} << 32;
/// An Op that copies a register to the thread's stack frame: Op::a to Op::immediate, of StackSlot's size.
Handler to_stack(uint32_t bytes);
/// And back: to Op::destination.
Handler from_stack(uint32_t bytes);

/// Addresses of functions, for indirect calls.
constexpr uint64_t code_window = uint64_t{5} << 32;
inline uint64_t function_address(uint32_t function) {
  return code_window + 16 * uint64_t{function};
}

CallTarget find_callee(const Context& context, const Op& op, const Program& program);
void pass_arguments(const Context& context, const CallSite& site, const FunctionCode& callee,
                    uint32_t callee_stack);
void return_results(const Context& context, const CallSite& site, const FunctionCode& callee,
                    uint32_t callee_stack, uint32_t caller_stack);

}  // namespace simt::functional
