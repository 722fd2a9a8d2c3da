#pragma once
#include <concepts>
#include <cstdint>

/// What is known of an instruction apart from how it is executed and lowered. Names no instruction set.
namespace simt::instructions {

/// A member without a default: a row that leaves it out does not compile.
template <class T>
struct Required {
  T value;
  template <std::convertible_to<T> Given>
  constexpr Required(Given given) : value(given) {}
  constexpr operator const T&() const { return value; }
};

/// Operands that the instruction writes; it reads the others. Addresses are always read.
enum class Writes : uint8_t {
  Nothing,
  First,          ///< operand 0
  FirstUpdated,   ///< operand 0, which is read too
  CallResults,    ///< the list in front of the callee, if there is one
  BeforeAddress,  ///< all operands in front of the first address
};

/// What a name among the operands refers to.
enum class Names : uint8_t {
  Values,     ///< registers and variables; name[2] is the element's contents
  Addresses,  ///< as Values, but name[2] is the element's address
  Labels,
  Callee,  ///< a function; parentheses enclose its results and arguments
};

/// How the registers of a vector operand lie in the register file.
enum class Vectors : uint8_t {
  Apart,        ///< anywhere
  Consecutive,  ///< in a row, named by the first one
  Pieces,       ///< in a row, of which each access names up to 128 bits
};

enum class Memory : uint8_t {
  None,
  Load,
  Store,
  Atomic,
  Copy,  ///< from one space to another, asynchronously
  Fence,
  Mbarrier,         ///< updates or tests an mbarrier object
  StackAllocation,  ///< takes from the thread's stack
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

/// What the written values depend on: decides what two right executions may differ in.
enum class Result : uint8_t {
  OfInputs,     ///< registers and memory only
  OfTime,       ///< when the warp comes here, or what other warps have done by then
  OfAddresses,  ///< where the machine places variables and stacks
  OfOrder,      ///< the order in which threads access the same memory
  Late,         ///< of inputs, but written after the instruction has ended
};

/// Whether the scheduler may move it among the instructions of its block.
enum class Motion : uint8_t {
  Free,   ///< as far as its registers and its memory accesses permit
  Fixed,  ///< nothing moves across it
};

/// Latency class for the scheduler; memory accesses have latencies by their space.
enum class Latency : uint8_t { Alu, SpecialFunction, Division, Matrix };

/// Use of the carry flag.
enum class Carry : uint8_t { Never, IfNamed, Always };

/// Arithmetic that the compiler passes rewrite.
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

  /// The same facts but for those given.
  template <class... Fact>
  constexpr Facts with(Fact... fact) const {
    Facts changed = *this;
    (changed.set(fact), ...);
    return changed;
  }

  /// Facts that contradict each other.
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
