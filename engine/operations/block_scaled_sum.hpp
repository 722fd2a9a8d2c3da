#pragma once
#include <cstdint>

/// Sums of products with scale factors, as tcgen05.mma makes them of an element of D. Rules: MODEL.md of
/// sf-tensor/tcgen05, section 5.
namespace simt::functional {

struct ScaleFactor {
  double value = 1;  ///< NaN if it is one
  int exponent = 0;  ///< as encoded; that of the least normal number for subnormal ones
};
/// exponent_only: ue8m0, else ue4m3.
ScaleFactor scale_factor(uint8_t code, bool exponent_only);

enum class ScaledAddition : uint8_t {
  Exact,      ///< in double precision, in ascending order of k, rounded once to nearest even
  Window,     ///< mxf8f6f4: each term is cut off 25 bits below the largest exponent
  Groups,     ///< mxf4 and mxf4nvf4 with ue8m0: sums of groups are exact, and cut off 39 bits below
  FineGroups  ///< mxf4nvf4 with ue4m3: sums of four, or of groups where the addend outranks all
};

struct ScaledForm {
  uint32_t k = 0;
  uint32_t scales = 1;           ///< in k
  int least_a = 0, least_b = 0;  ///< exponents of the types' least normal numbers
  uint32_t group = 16;           ///< terms in a group
  ScaledAddition addition = ScaledAddition::Window;
};

struct ScaledFactors {
  const float* numbers;
  const ScaleFactor* scales;
};

class BlockScaledSum {
 public:
  explicit BlockScaledSum(const ScaledForm& form) : form_(form) {}
  /// a b + c
  float add(const ScaledFactors& a, const ScaledFactors& b, float c) const;

 private:
  struct Terms;
  float in_window(const Terms& terms, float c) const;
  float in_groups(const Terms& terms, float c) const;
  float in_fine_groups(const Terms& terms, float c) const;

  ScaledForm form_;
};

}  // namespace simt::functional
