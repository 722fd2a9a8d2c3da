#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptx/module.hpp"

/// A program translated for execution, from PTX or machine code: Ops with their operands resolved to places.
namespace simt::functional {

constexpr uint32_t warp_lanes = 32;
constexpr uint32_t full_mask = 0xffffffffu;

struct Context;
struct Op;

/// Storage for all lanes of a value, aligned for vector instructions.
struct alignas(64) Line {
  std::byte bytes[64];
};

/// Executes an Op for the lanes in Context::mask, which is never empty.
using Handler = void (*)(Context&, const Op&);

/// Where an operand's lanes are stored: a bank (top 2 bits) and a byte offset in it. Values of up to 32 bits
/// take 32 x 4 bytes, zero-extended; 64-bit values take 32 x 8 bytes; 128-bit values take two 64-bit arrays,
/// low half first. A predicate is one 32-bit word, one bit per lane.
using Place = uint32_t;
namespace place {
constexpr uint32_t bank_shift = 30;
constexpr uint32_t frame = 0u << bank_shift;      ///< registers of the running function
constexpr uint32_t constants = 1u << bank_shift;  ///< immediates, shared by the whole program
constexpr uint32_t threads = 2u << bank_shift;    ///< tid, laneid and the like, for one warp of the CTA
constexpr uint32_t launch = 3u << bank_shift;     ///< operands in constant banks, which a launch fills in
constexpr uint32_t none = UINT32_MAX;             ///< in no bank: a launch has fewer operands
constexpr uint32_t register_bytes = warp_lanes * 4;
}  // namespace place

/// What the executor does with an Op, beyond calling its handler.
enum class Control : uint8_t {
  None,
  Branch,          ///< target: an op index
  BranchIndirect,  ///< a: place of the index; detail: BranchTable
  Jump,            ///< machine code: the handler writes the lanes' code addresses to Context::jump
  Call,            ///< detail: CallSite
  Return,
  Exit,
  Barrier,     ///< the handler fills Context::barrier; the lanes then wait
  Collective,  ///< a handler over the lanes of a member mask, which must arrive together; member_mask: place
               ///< of the mask
  /// Machine code: the lanes wait until those in the mask at member_mask wait at such an Op with the same
  /// immediate, and go on together. Lanes that wait elsewhere for them, where it is 0 (WARPSYNC) or at a
  /// barrier of the CTA, are not waited for: compilers let lanes leave a BSYNC's region that way, and put a
  /// `return` out of a loop with barriers behind a BSYNC after the loop.
  /// convergence_in_common_code is as 0, but then all that waited there go on at one of these Ops
  Convergence,
  Yield,    ///< after the handler, other warps may run: an unsuccessful wait, or nanosleep
  Deferred  ///< an atomic or strong access to global memory: takes effect in time order (see grid.hpp)
};

constexpr int64_t convergence_in_common_code = -1;
/// As 0, but lanes of different masks go on separately (WARPSYNC.EXCLUSIVE).
constexpr int64_t convergence_by_mask = -2;

/// Further operands of an Op, owned by the Program.
struct Detail {
  virtual ~Detail() = default;
};

/// How an Op's result follows its operands while a clock advances, for loops that only wait for one
/// (clock_wait.hpp).
struct ClockUse {
  enum Kind : uint8_t {
    Unknown,
    Read,      ///< a clock
    Sum,       ///< a + b, a - b or a, which may wrap around
    Choice,    ///< a or b, as the predicate c says
    Order,     ///< the predicate whether a is less than b, or the like
    Equality,  ///< the predicate whether a is b, or not
    Logic,     ///< a predicate that depends on the predicates a and b
    Wait       ///< a branch that closes such a loop; detail: ClockWait
  };
  uint8_t kind : 5 = Unknown;
  uint8_t wide_operands : 1 = false;  ///< 64 bits, not 32
  uint8_t wide_result : 1 = false;
  uint8_t is_signed : 1 = false;  ///< the operands of a comparison, or of a sum that extends them
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
  Place member_mask = place::none;      ///< for collectives
  uint32_t reconvergence = UINT32_MAX;  ///< for branches: the op at which diverged lanes reconverge;
                                        ///< UINT32_MAX: at the end of the function
  Control control = Control::None;
  bool guard_negated = false;
  bool orders_memory = false;   ///< fences and acquires: later accesses wait for earlier ones
  bool awaits_cta = false;      ///< a barrier at which lanes wait for all threads of their CTA
  bool policy_is_wide = false;  ///< `policy` is a register of 64 bits per lane
  ClockUse clock_use;
  /// Of a memory access: its L2 cache policy, or the row of that one's upper halves.
  Place policy = place::none;

  template <class T>
  const T& details() const {
    return static_cast<const T&>(*detail);
  }
};

/// The instruction an Op comes from.
struct Origin {
  uint32_t function = 0;     ///< index into Program::functions
  uint32_t instruction = 0;  ///< index into the function's instructions
};

/// Where an instruction is written.
struct InstructionPlace {
  std::string position;      ///< in the program: file and line of PTX, or kernel and address of machine code
  uint32_t line = 0;         ///< of PTX; 0 for machine code
  std::string_view file;     ///< of the source; empty if it is not known
  uint32_t source_line = 0;  ///< in that file
  std::string_view inner_file;  ///< of the library code of PTX that is inlined there; else empty
  uint32_t inner_line = 0;      ///< in that file
};

/// Constant banks of machine code: what the compiler and the program's variables put there, and where a
/// launch puts its dimensions and parameters.
struct ConstantBanks {
  static constexpr uint32_t count = 8;
  struct Bank {
    std::vector<std::byte> bytes;
    uint64_t address = 0;  ///< not 0: it is a variable of this size in memory, whose contents may change
  };
  std::array<Bank, count> banks;
  uint32_t parameters = 0;  ///< where they begin in bank 0
};

/// A word of a constant bank that Ops read from bank place::launch.
struct ConstantWord {
  uint32_t bank = 0, offset = 0;
};

/// A variable of machine code, in global memory or in constant memory.
struct MachineVariable {
  std::string name;
  uint64_t address = 0, size = 0;
  bool managed = false;
  bool hidden = false;  ///< made by the compiler: programs do not name it
};

/// A texture, sampler or surface reference of machine code: the address of its descriptor.
struct MachineReference {
  std::string name;
  uint64_t address = 0;
  std::string type;  ///< as PTX writes it, such as "texref"
};

/// The text of machine code.
struct MachineListing {
  struct Line {
    std::string text;
    uint32_t function = 0, address = 0;
    uint32_t file = 0, source_line = 0;
  };
  std::string name;
  std::vector<std::string> files;
  std::vector<Line> lines;                 ///< one per instruction
  std::map<uint32_t, std::string> called;  ///< functions within kernels: first line, and name
};

/// Where machine code expects, in shared memory, what it allocates tensor memory of two CTAs with: the system
/// has made it before the kernel begins. The CTA of the even rank allocates; it may do so at once.
struct PairAllocation {
  uint32_t mbarrier = 0, parity = 0;  ///< their bytes; 0: there are none
  uint64_t initial = 0;               ///< the mbarrier
};

/// A kernel or device function.
struct FunctionCode {
  std::string name;
  uint32_t ptx = UINT32_MAX;  ///< index into the module's functions; none for machine code
  bool entry = false;
  uint32_t first = 0;        ///< index of its first op
  uint32_t body = 0;         ///< op of its first instruction; the ops before it load parameters into
                             ///< registers
  uint32_t end = 0;          ///< one past its last op
  uint32_t frame_bytes = 0;  ///< size of its registers, per warp
  uint32_t stack_bytes = 0;  ///< size of its results, parameters and local variables, per thread
  uint32_t registers = 0;    ///< number of allocated 32-bit registers
  uint32_t max_live = 0;
  std::vector<uint32_t> places;  ///< of the PTX function's registers, as given by RegisterAllocation
  uint32_t shared_bytes = 0;     ///< static; for an entry, including everything it calls
  uint32_t reserved_shared = 0;  ///< bytes of shared memory that precede the CTA's own
  PairAllocation pair_allocation;
  uint32_t deepest_stack = 0;  ///< bytes per thread, including everything it calls; UINT32_MAX: not known
  std::vector<uint32_t> parameter_offsets;  ///< in the stack frame; for an entry, in the parameter block
  std::vector<uint32_t> parameter_sizes;
  std::vector<std::string> parameter_types;  ///< names of PTX's types; empty where they are not known
  std::vector<uint32_t> result_offsets, result_sizes;
  /// Launch bounds and the cluster size, as the program declares them; 0 where it does not.
  std::array<uint32_t, 3> max_threads{}, required_threads{}, cluster{};
  std::shared_ptr<const ConstantBanks> constants;  ///< of machine code
  std::vector<ConstantWord> constant_words;        ///< rows of bank place::launch
  uint32_t parameter_bytes = 0;                    ///< size of an entry's parameter block
  /// Of machine code: 64-bit words of the parameter block that hold addresses through which it may store.
  std::vector<bool> stored_parameters;
  bool order_sensitive =
      false;  ///< includes everything it calls: CTAs influence each other, so their order matters
};

struct Program {
  ptx::Module module;      ///< empty for machine code
  MachineListing listing;  ///< empty for PTX
  std::vector<Op> code;
  std::vector<Origin> origins;        ///< one per Op
  std::vector<uint32_t> first_op;     ///< of each instruction of machine code
  uint32_t system_code = UINT32_MAX;  ///< first op of functions of the system that machine code calls
  std::vector<FunctionCode> functions;
  std::vector<Line> constants;  ///< bank `place::constants`
  std::vector<std::unique_ptr<Detail>> details;
  bool asks_for_workspace = false;        ///< reads the address of a cooperative launch's grid barrier
  bool asks_for_reserved_shared = false;  ///< PTX that reads where the system's shared memory is
  std::vector<MachineVariable> machine_variables;
  std::vector<MachineReference> machine_references;
  std::vector<uint64_t> allocations;  ///< of memory, made for machine code's variables
  std::vector<uint64_t> variables;  ///< address of each module variable (global, constant), or its offset in
                                    ///< shared memory

  const FunctionCode* find(const std::string& name) const;
  bool is_machine_code() const { return !listing.lines.empty(); }
  /// The PTX instruction of an Op.
  const ptx::Instruction& instruction(uint32_t op) const;
  InstructionPlace where(uint32_t op) const;
  /// The function within a kernel that contains an op of machine code; empty if there is none.
  std::string_view called_function(uint32_t op) const;
  /// The instruction as the program writes it.
  std::string text(uint32_t op) const;
};

}  // namespace simt::functional
