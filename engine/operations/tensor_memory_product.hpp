#pragma once
#include <array>
#include <optional>

#include "operations/tensor_memory_moves.hpp"

/// tcgen05.mma: D = A B + D, where D is in tensor memory.
namespace simt::functional {

struct TensorMemoryProductDetail : Detail {
  enum class Kind : uint8_t { F16, Tf32, F8f6f4, I8, Mxf8f6f4, Mxf4, Mxf4nvf4 };
  Kind kind = Kind::F16;
  bool of_types = false;  ///< the instruction descriptor decides between F16 and Tf32
  uint32_t ctas = 1;
  bool weights = false;        ///< .ws
  std::optional<bool> sparse;  ///< A; none: the instruction descriptor decides
  bool shifts_a = false;       ///< .ashift
  uint32_t scales = 0;      ///< scale factors in a row of A, or two thirds of them with K = 96; 0: not scaled
  uint32_t shift_down = 0;  ///< D is first multiplied by 2 to the power of minus this
  TensorAddress d;
  TensorAddress a;         ///< unless a_descriptor is given
  TensorAddress metadata;  ///< of a sparse A
  Place a_descriptor = place::none, b_descriptor = place::none;
  Place instruction = place::none;  ///< the instruction descriptor
  PredicateOperand keep;            ///< whether to add to D
  TensorAddress scale_a, scale_b;
  std::array<Place, 8> disabled{};  ///< words of a mask of D's lanes that are not written
  uint32_t disabled_count = 0;
  Place zero_columns = place::none;  ///< the zero-column mask descriptor of .ws
};

/// For each lane, as each thread issues a product of its own. Throws Fault for a descriptor that PTX does not
/// allow.
void run_tensor_memory_product(Context& c, const Op& op);

}  // namespace simt::functional
