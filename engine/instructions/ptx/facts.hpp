#pragma once
#include "instructions/ptx.hpp"
#include "ptx/lowering/rules.hpp"
#include "ptx/translation/instructions.hpp"

/// Common facts of kinds of PTX instructions; rows specify the differences.
namespace simt::instructions {

using PtxLowering = Lowering<void (*)(functional::Lowerer&)>;

inline constexpr Facts arithmetic{.writes = Writes::First,
                                  .names = Names::Values,
                                  .vectors = Vectors::Apart,
                                  .memory = Memory::None,
                                  .space = Space::None,
                                  .extent = Extent::None,
                                  .control = Control::Next,
                                  .result = Result::OfInputs,
                                  .motion = Motion::Free,
                                  .latency = Latency::Alu,
                                  .carry = Carry::Never,
                                  .algebra = Algebra::Other};
inline constexpr Facts special_function = arithmetic.with(Latency::SpecialFunction);
inline constexpr Facts matrix_product = arithmetic.with(Latency::Matrix);
inline constexpr Facts copies = arithmetic.with(Algebra::Copy);
/// Instructions that depend on other threads, on the machine's state or on time, or affect them.
inline constexpr Facts ordered = arithmetic.with(Motion::Fixed);
inline constexpr Facts load = arithmetic.with(Memory::Load, Space::Named, Extent::Typed);
inline constexpr Facts store = load.with(Memory::Store, Writes::Nothing);
inline constexpr Facts atomic = load.with(Memory::Atomic, Motion::Fixed, Result::OfOrder);
inline constexpr Facts texture_load = load.with(Space::Texture, Extent::Other);
inline constexpr Facts copies_memory =
    ordered.with(Memory::Copy, Space::Named, Extent::Other, Writes::Nothing);
inline constexpr Facts fences = ordered.with(Memory::Fence, Writes::Nothing);
inline constexpr Facts mbarrier = ordered.with(Memory::Mbarrier, Result::OfTime);
inline constexpr Facts ending = ordered.with(Writes::Nothing);
inline constexpr Facts jump = ending.with(Control::Branch, Names::Labels);

}  // namespace simt::instructions
