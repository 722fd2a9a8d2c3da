#pragma once
#include "ptx/module.hpp"

namespace simt::ptx {

/// Fuses a product and a sum into an fma if neither specifies rounding, as ptxas does by default
/// (-fmad=true). What is fused follows the observed behaviour of ptxas 12.9 (docs/functional/float.md): only
/// products used exclusively by sums in the same block with the same .ftz. If two products are summed, the
/// one used only there is fused, or the first if both or neither are; a product used by several sums is fused
/// with each of them. The operands of the fma may be negated, as in the machine instruction.
void contract(Function& function, Module& module);

}  // namespace simt::ptx
