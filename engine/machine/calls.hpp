#pragma once
#include <vector>

#include "machine/context.hpp"

namespace simt::functional {

/// Targets of brx.idx.
struct BranchTable : Detail {
  std::vector<uint32_t> targets;  ///< op indices
};

/// A variable in a thread's stack frame.
struct StackSlot {
  uint32_t offset = 0, bytes = 0;
};

/// A call instruction.
struct CallSite : Detail {
  uint32_t function = UINT32_MAX;             ///< UINT32_MAX: indirect, through the address at Op::a, or a
                                              ///< Builtin
  std::vector<StackSlot> arguments, results;  ///< in the caller's stack frame
  bool in_registers =
      false;  ///< of machine code: `StackSlot::offset` is a Place of rows, a word per lane each
};

struct CallTarget {
  uint32_t function;
  uint32_t lanes;  ///< the lanes that make this call; other active lanes call something else
};

/// Size of a predicate in the stack frame.
constexpr uint32_t predicate_bytes = 1;
/// Set in Op::immediate when a negated predicate is passed.
constexpr int64_t negated_predicate = int64_t{1} << 32;
/// Handler that copies a register, at Op::a, to the thread's stack frame, at Op::immediate, with StackSlot's
/// size.
Handler to_stack(uint32_t bytes);
/// The reverse: copies from the stack frame to Op::destination.
Handler from_stack(uint32_t bytes);

/// Base of the addresses of functions, for indirect calls.
constexpr uint64_t code_window = uint64_t{5} << 32;
/// Base of the addresses of machine code; 16 bytes an instruction.
constexpr uint64_t machine_code_window = uint64_t{4} << 32;
constexpr uint32_t instruction_bytes = 16;
/// The Op at an address of machine code, UINT32_MAX if there is none.
uint32_t op_at(const Program& program, uint64_t address);

inline uint64_t function_address(uint32_t function) {
  return code_window + 16 * uint64_t{function};
}

/// Stops the program: trap.
void run_trap(Context& c, const Op& op);

CallTarget find_callee(const Context& context, const Op& op, const Program& program);
void pass_arguments(const Context& context, const CallSite& site, const FunctionCode& callee,
                    uint32_t callee_stack);
void return_results(const Context& context, const CallSite& site, const FunctionCode& callee,
                    uint32_t callee_stack, uint32_t caller_stack);

}  // namespace simt::functional
