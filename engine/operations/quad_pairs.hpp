#pragma once
#include <array>
#include <vector>

#include "operations/matrix_product.hpp"

namespace simt::functional {

/// Volta's m8n8k4 with f16: each quad pair (lanes 4q to 4q+3 and the same plus 16) has its own matrices. A: 8
/// x 4, B: 4 x 8. Of the eight accumulators of a lane, d and c hold those from first_d and first_c on.
struct QuadPairProduct {
  bool a_by_column = false, b_by_column = false;
  bool c_pairs = false, d_pairs = false;  ///< f16, two in a register; otherwise f32
  std::array<Place, 2> a{}, b{};
  std::vector<Place> c, d;
  uint32_t first_c = 0, first_d = 0;
};
BoundProduct bind_quad_pairs(QuadPairProduct product);

}  // namespace simt::functional
