#include "operations/tensor_load_reduction.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "operations/float_operations.hpp"

namespace simt::functional {
namespace {

template <class T, class F>
void run_load_reduction(Context& c, const Op& op) {
  const auto& d = op.details<LoadReduction>();
  T* const out = c.lanes<T>(op.destination);
  each_lane(c, [&](int i) {
    if (static_cast<uint32_t>(i) - d.first_thread >= d.threads) return;
    T result = c.lanes<const T>(d.registers[0])[i];
    // The first with itself: its magnitude, if magnitudes are compared.
    for (const Place each : d.registers) result = F{}(result, c.lanes<const T>(each)[i]);
    out[i] = result;
  });
}

template <bool greatest, bool nan, bool magnitudes>
struct FloatExtreme {
  float operator()(float a, float b) const {
    const float r = float_operations::Extreme<greatest, nan, false>{}(magnitudes ? std::fabs(a) : a,
                                                                      magnitudes ? std::fabs(b) : b);
    return r == r ? r : std::bit_cast<float>(canonical_nan);
  }
  static constexpr uint32_t canonical_nan = 0x7fffffff;
};

template <bool greatest>
struct IntegerExtreme {
  template <class T>
  T operator()(T a, T b) const {
    return greatest ? std::max(a, b) : std::min(a, b);
  }
};

template <bool greatest>
Handler reduction_of(Reduced type, bool magnitudes, bool nan) {
  if (type == Reduced::Unsigned) return run_load_reduction<uint32_t, IntegerExtreme<greatest>>;
  if (type == Reduced::Signed) return run_load_reduction<int32_t, IntegerExtreme<greatest>>;
  if (magnitudes)
    return nan ? run_load_reduction<float, FloatExtreme<greatest, true, true>>
               : run_load_reduction<float, FloatExtreme<greatest, false, true>>;
  return nan ? run_load_reduction<float, FloatExtreme<greatest, true, false>>
             : run_load_reduction<float, FloatExtreme<greatest, false, false>>;
}

}  // namespace

Handler load_reduction(bool greatest, Reduced type, bool magnitudes, bool nan) {
  return greatest ? reduction_of<true>(type, magnitudes, nan) : reduction_of<false>(type, magnitudes, nan);
}

}  // namespace simt::functional
