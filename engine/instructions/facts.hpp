#pragma once
#include <cstdint>

#include "isa/required.hpp"

/// What is known about an instruction, apart from how it is executed and lowered. Independent of the
/// instruction set.
namespace simt::instructions {

/// Operands that the instruction writes; it reads the others. Addresses are always read.
enum class Writes : uint8_t {
  Nothing,
  First,          ///< operand 0
  FirstUpdated,   ///< operand 0, which is also read
  CallResults,    ///< the list before the callee, if there is one
  BeforeAddress,  ///< all operands before the first address
};

/// What names among the operands refer to.
enum class Names : uint8_t {
  Values,     ///< registers and variables; name[2] is the element's contents
  Addresses,  ///< as Values, but name[2] is the element's address
  Labels,
  Callee,  ///< a function; parentheses enclose its results and arguments
};

/// How the registers of a vector operand are placed in the register file.
enum class Vectors : uint8_t {
  Apart,        ///< anywhere
  Consecutive,  ///< consecutive, named by the first one
  Pieces,       ///< consecutive, but each access names at most 128 bits
};

enum class Memory : uint8_t {
  None,
  Load,
  Store,
  Atomic,
  Copy,  ///< between spaces, asynchronously
  Fence,
  Mbarrier,         ///< updates or tests an mbarrier object
  StackAllocation,  ///< allocates from the thread's stack
};

/// The state space that the instruction accesses.
enum class Space : uint8_t {
  None,
  Named,  ///< the one among its modifiers; generic if there is none
  Shared,
  Texture  ///< through a texture, surface or sampler reference
};

/// How many bytes a lane accesses.
enum class Extent : uint8_t {
  None,
  Typed,  ///< the mnemonic's type times its vector length
  Other,  ///< a piece of a matrix, an operand, or a fixed size
};

enum class Control : uint8_t { Next, Branch, IndirectBranch, Call, Return, Exit, Trap };

/// What the written values depend on: in what two correct executions may differ.
enum class Result : uint8_t {
  OfInputs,     ///< registers and memory only
  OfTime,       ///< when the warp gets there, or what other warps have done by then
  OfAddresses,  ///< where the machine places variables and stacks
  OfOrder,      ///< the order in which threads access the same memory
  Late,         ///< of inputs, but written after the instruction has completed
};

/// Whether the scheduler may move it within its block.
enum class Motion : uint8_t {
  Free,   ///< as far as its registers and memory accesses permit
  Fixed,  ///< nothing moves across it
};

/// Latency class for the scheduler; memory accesses have latencies by their space.
enum class Latency : uint8_t { Alu, SpecialFunction, Division, Matrix };

/// Use of the carry flag.
enum class Carry : uint8_t { Never, IfNamed, Always };

/// Arithmetic that compiler passes rewrite.
enum class Algebra : uint8_t {
  Other,
  Product,
  Sum,
  Difference,
  Negation,
  Copy,      ///< the source's bits
  Iterative  ///< becomes code with branches for some types
};

struct Facts {
  Required<Writes> writes;
  Required<Names> names;
  Required<Vectors> vectors;
  Required<Memory> memory;
  Required<Space> space;
  Required<Extent> extent;
  Required<Control> control;
  Required<Result> result;
  Required<Motion> motion;
  Required<Latency> latency;
  Required<Carry> carry;
  Required<Algebra> algebra;

  /// The same facts, except for those given.
  template <class... Fact>
  constexpr Facts with(Fact... fact) const {
    Facts changed = *this;
    (changed.set(fact), ...);
    return changed;
  }

  /// False if facts contradict each other.
  constexpr bool consistent() const {
    const bool jumps = control == Control::Branch || control == Control::IndirectBranch;
    const bool accesses = memory == Memory::Load || memory == Memory::Store || memory == Memory::Atomic ||
                          memory == Memory::Copy;
    const bool movable = memory == Memory::None || memory == Memory::Load || memory == Memory::Store;
    return jumps == (names == Names::Labels) && (control == Control::Call) == (names == Names::Callee) &&
           (!accesses || space != Space::None) && (!accesses || extent != Extent::None) &&
           (motion == Motion::Fixed || (movable && control == Control::Next));
  }

 private:
  constexpr void set(Writes fact) { writes = fact; }
  constexpr void set(Names fact) { names = fact; }
  constexpr void set(Vectors fact) { vectors = fact; }
  constexpr void set(Memory fact) { memory = fact; }
  constexpr void set(Space fact) { space = fact; }
  constexpr void set(Extent fact) { extent = fact; }
  constexpr void set(Control fact) { control = fact; }
  constexpr void set(Result fact) { result = fact; }
  constexpr void set(Motion fact) { motion = fact; }
  constexpr void set(Latency fact) { latency = fact; }
  constexpr void set(Carry fact) { carry = fact; }
  constexpr void set(Algebra fact) { algebra = fact; }
};

}  // namespace simt::instructions
