#pragma once
#include "ptx/module.hpp"

namespace simt::ptx {

/// Makes one fma of a product and a sum, where neither says how it rounds, as ptxas does by default
/// (-fmad=true). What is fused is what ptxas 12.9 was seen to fuse (docs/functional/float.md): only products
/// whose every use is a sum of the same block and the same .ftz; of two products that are summed the one that
/// is used only there, the first where both or neither are; and a product that several sums use with each of
/// them. The fma may have negated operands, as the machine's instruction has.
void contract(Function& function, Module& module);

}  // namespace simt::ptx
