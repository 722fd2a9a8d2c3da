#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ptx/module.hpp"

/// PTX translated for execution: one Op per instruction, operands resolved to places.
namespace simt::functional {

constexpr uint32_t warp_lanes = 32;
constexpr uint32_t full_mask = 0xffffffffu;

struct Context;
struct Op;

/// Storage for lanes, aligned for vector instructions.
struct alignas(64) Line {
  std::byte bytes[64];
};

/// Executes an Op for the lanes of Context::mask, which is not empty.
using Handler = void (*)(Context&, const Op&);

/// Where an operand's lanes lie: a bank (top 2 bits) and a byte offset in it. Values of up to 32 bits take
/// 32 x 4 bytes, the value in the low bits and zeros above; 64-bit ones 32 x 8 bytes; 128-bit ones two
/// 64-bit arrays, low half first. A predicate is one 32-bit word, a bit a lane.
using Place = uint32_t;
namespace place {
constexpr uint32_t bank_shift = 30;
constexpr uint32_t frame = 0u << bank_shift;      ///< the running function's registers
constexpr uint32_t constants = 1u << bank_shift;  ///< immediates, the same for the whole program
constexpr uint32_t threads = 2u << bank_shift;    ///< tid, laneid and the like of one warp of the CTA
constexpr uint32_t none = UINT32_MAX;
constexpr uint32_t register_bytes = warp_lanes * 4;
}  // namespace place

/// What the executor does with an Op, beyond calling its handler.
enum class Control : uint8_t {
  None,
  Branch,          ///< target: op index
  BranchIndirect,  ///< a: place of the index; detail: BranchTable
  Call,            ///< detail: CallSite
  Return,
  Exit,
  Barrier,     ///< handler fills Context::barrier; the lanes then wait
  Collective,  ///< a handler over the lanes of a member mask, which must be here together; member_mask: its
               ///< place
  Yield,       ///< handler, then other warps may run: a wait that did not succeed, nanosleep
  Deferred     ///< an atomic or strong access to global memory: acts in the order of time (see grid.hpp)
};

/// Further operands of an Op, owned by the Program.
struct Detail {
  virtual ~Detail() = default;
};

struct Op {
  Handler run = nullptr;
  Place destination = place::none;
  Place a = place::none, b = place::none, c = place::none;
  union {
    int64_t immediate = 0;
    uint32_t target;
  };
  const Detail* detail = nullptr;
  Place guard = place::none;            ///< predicate
  Place member_mask = place::none;      ///< of collectives
  uint32_t reconvergence = UINT32_MAX;  ///< of branches: op at which diverging lanes meet; UINT32_MAX: at the
                                        ///< function's end
  Control control = Control::None;
  bool guard_negated = false;
  bool orders_memory = false;  ///< fences and acquires: what comes after waits for what came before

  template <class T>
  const T& details() const {
    return static_cast<const T&>(*detail);
  }
};

/// Where an Op comes from.
struct Origin {
  uint32_t function = 0;     ///< index into Program::functions
  uint32_t instruction = 0;  ///< index into the function's instructions
};

/// A kernel or device function.
struct FunctionCode {
  std::string name;
  uint32_t ptx = 0;  ///< index into the module's functions
  bool entry = false;
  uint32_t first = 0;        ///< op
  uint32_t body = 0;         ///< op of its first instruction; before it, parameters are put into registers
  uint32_t end = 0;          ///< one past its last op
  uint32_t frame_bytes = 0;  ///< of its registers, for a warp
  uint32_t stack_bytes = 0;  ///< of its results, parameters and local variables, for a thread
  uint32_t registers = 0;    ///< 32-bit registers of the allocation
  uint32_t max_live = 0;
  std::vector<uint32_t> places;  ///< of the PTX function's registers, as RegisterAllocation has them
  uint32_t shared_bytes = 0;     ///< static, of an entry with all that it calls
  uint32_t deepest_stack = 0;    ///< bytes a thread with all that it calls; recursive: the limit
  std::vector<uint32_t> parameter_offsets;  ///< in the stack frame; of an entry: in the parameter block
  std::vector<uint32_t> parameter_sizes;
  std::vector<uint32_t> result_offsets, result_sizes;
  uint32_t parameter_bytes = 0;  ///< of an entry's parameter block
  bool order_sensitive =
      false;  ///< with all that it calls: CTAs influence each other, so that their order matters
};

struct Program {
  ptx::Module module;
  std::vector<Op> code;
  std::vector<Origin> origins;  ///< one per Op
  std::vector<FunctionCode> functions;
  std::vector<Line> constants;  ///< bank `place::constants`
  std::vector<std::unique_ptr<Detail>> details;
  bool asks_for_workspace = false;  ///< reads where a cooperative launch's grid barrier lies
  std::vector<uint64_t> variables;  ///< for each module variable: its address (global, constant), or its
                                    ///< offset in shared memory

  const FunctionCode* find(const std::string& name) const;
  const ptx::Instruction& instruction(uint32_t op) const;
  /// The instruction's line of the PTX text, without blanks around it.
  std::string text(uint32_t op) const;
};

}  // namespace simt::functional
