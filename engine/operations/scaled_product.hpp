#pragma once
#include <array>

#include "machine/code.hpp"
#include "operations/block_scaled_sum.hpp"
#include "operations/fragments.hpp"

/// D = A B + C in the registers of a warp, of small floats in blocks along k that have scale factors: mma
/// and mma.sp with .block_scale, for sm_120. A is 16 x k, B k x 8; of a sparse A, half of k is stored.
namespace simt::functional {

/// Where a warp has the scale factors of a matrix: those of a row of A, or of a column of B, in one lane of
/// the four that hold the row, from one byte of a register on (PTX ISA, "Block Scaling for mma.sync").
struct ScaleOperand {
  Place factors = place::none;
  Place byte = place::none, thread = place::none;  ///< of 16 bits
};

struct ScaledProductDetail : Detail {
  uint32_t k = 32;
  bool packed = false;  ///< both E2M1, eight in a register
  ptx::Type a{}, b{};
  std::array<Place, 4> d{}, a_tiles{}, b_tiles{}, c{};  ///< of b, two if A is dense
  Place metadata = place::none;                         ///< of a sparse A, as with s4 if packed, else with s8
  ScaleOperand scale_a{}, scale_b{};
  uint32_t scales = 1;  ///< of a row along k
  bool exponents_only = true;
  ScaledAddition addition = ScaledAddition::Window;
};

void run_scaled_product(Context& c, const Op& op);

}  // namespace simt::functional
