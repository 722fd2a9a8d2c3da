#pragma once
#include <array>
#include <cstdint>

#include "ptx/module.hpp"

/// How the tensor cores of each generation add floating-point products.
namespace simt::functional {

/// A generation. Exact: products are summed in double precision and rounded once.
enum class TensorCore : uint8_t { Exact, Volta, Turing, Ampere, Ada, Hopper, Blackwell, RtxBlackwell };

/// That of a compute capability (70 for 7.0); Exact where it is not known.
TensorCore tensor_core(uint32_t sm_version);

/// Who executes a product.
enum class ProductUnit : uint8_t { Warp, Warpgroup };

/// A sum of exact products of consecutive k and the accumulator: each is aligned to the largest exponent
/// among them, that of a product being the sum of its factors', and cut off `bits` below; the sum is exact
/// and rounded to the accumulator. Longer products take several sums, in ascending order of k.
struct Addition {
  uint8_t products = 0;   ///< in a sum
  uint8_t bits = 0;       ///< kept below the largest exponent
  uint8_t fraction = 23;  ///< bits of an f32 result, cut off there; f16 is rounded to nearest even
  /// The compiler splits f8 into pairs of f16, and multiplies first the lower pair of each four, then the
  /// upper, starting from zero. The accumulator is added last, as by FADD or HADD2.
  bool unpacked = false;
  bool zeros_absent = false;  ///< zero has no exponent, rather than that of the least normal number
};

/// How products of elements of type `a` are added, by TensorCore; nullptr: as by TensorCore::Exact.
using Additions = std::array<const Addition*, 8>;
Additions find_additions(ptx::Type a, ProductUnit unit);

}  // namespace simt::functional
