#include "operations/small_conversions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operations/floats.hpp"
#include "operations/small_floats.hpp"

namespace simt::functional {
namespace {

template <class F>
constexpr uint32_t pair_shift = F::bits == 4 ? 4 : 8;
constexpr uint32_t scales_of_one = 0x7f7f;

template <class F>
void run_to_small(Context& c, const Op& op) {
  const bool relu = op.immediate != 0;
  const auto code = [relu](float v) { return nearest_code<Codes<F>, false>(relu && v <= 0 ? 0.0f : v); };
  map_lanes<uint32_t, float, float>(
      c, op.destination, [=](float upper, float lower) { return code(upper) << pair_shift<F> | code(lower); },
      op.a, op.b);
}

/// Half holds all numbers of F.
template <class F>
void run_from_small(Context& c, const Op& op) {
  const bool relu = op.immediate != 0;
  const auto half = [relu](uint32_t code) {
    const float v = small_float<F>(code);
    return uint32_t{Half::narrow_one(relu && std::signbit(v) ? 0.0f : v)};
  };
  map_lanes<uint32_t, uint32_t>(
      c, op.destination, [=](uint32_t pair) { return half(pair >> pair_shift<F>) << 16 | half(pair); }, op.a);
}

template <class F>
void run_to_bf16(Context& c, const Op& op) {
  const bool relu = op.immediate & 1, finite = op.immediate & 2;
  const auto half = [=](uint32_t code, uint32_t scale) -> uint32_t {
    constexpr uint32_t most = 0x7f7f, sign = 0x8000, nan = 0xff;
    double v = small_float<F>(code);
    if (relu && v <= 0) v = 0;
    v = scale == nan ? std::numeric_limits<double>::quiet_NaN()
                     : std::ldexp(v, static_cast<int>(scale) - 127);
    const auto f = static_cast<float>(v);
    return finite && std::isinf(f) ? most | (f < 0 ? sign : 0) : uint32_t{Bfloat::narrow_one(f)};
  };
  const auto both = [=](uint32_t pair, uint32_t scales) {
    return half(pair >> pair_shift<F>, scales >> 8 & 0xff) << 16 | half(pair, scales & 0xff);
  };
  if (op.b == place::none)
    map_lanes<uint32_t, uint32_t>(
        c, op.destination, [=](uint32_t pair) { return both(pair, scales_of_one); }, op.a);
  else
    map_lanes<uint32_t, uint32_t, uint32_t>(c, op.destination, both, op.a, op.b);
}

/// NaN becomes the largest number. PTX gives -2 as the largest negative one; that large negative numbers
/// become it, and not -127/64, is assumed.
uint32_t fixed_code(float v, uint32_t scale) {
  constexpr uint32_t nan = 0xff;
  constexpr double least = -128, most = 127, places = 6;
  if (std::isnan(v) || scale == nan) return static_cast<uint32_t>(most);
  const double units =
      std::ldexp(static_cast<double>(v), static_cast<int>(places) + 127 - static_cast<int>(scale));
  return static_cast<uint32_t>(static_cast<int>(std::clamp(std::nearbyint(units), least, most))) & 0xff;
}
void run_to_fixed(Context& c, const Op& op) {
  const bool relu = op.immediate & 1;
  const auto both = [=](float upper, float lower, uint32_t scales) {
    const auto code = [relu](float v, uint32_t scale) {
      return fixed_code(relu && v <= 0 ? 0.0f : v, scale);
    };
    return code(upper, scales >> 8 & 0xff) << 8 | code(lower, scales & 0xff);
  };
  if (op.c == place::none)
    map_lanes<uint32_t, float, float>(
        c, op.destination, [=](float upper, float lower) { return both(upper, lower, scales_of_one); }, op.a,
        op.b);
  else
    map_lanes<uint32_t, float, float, uint32_t>(c, op.destination, both, op.a, op.b, op.c);
}

template <bool bfloat>
void run_half_of_pair(Context& c, const Op& op) {
  const uint32_t shift = op.immediate ? 16 : 0;
  map_lanes<float, uint32_t>(
      c, op.destination,
      [=](uint32_t pair) {
        const auto half = static_cast<uint16_t>(pair >> shift);
        return bfloat ? std::bit_cast<float>(uint32_t{half} << 16) : Half::widen_one(half);
      },
      op.a);
}

/// The exponent of a magnitude, as CUDA's cuda_fp8.hpp has it: what is too small becomes 2^-127.
template <bool up>
uint32_t scale_code(float v, bool finite) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(v) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0xff;
  uint32_t code = magnitude >> 23;
  // Subnormal numbers are below 2^-126, whose code is 1; 2^-127 has the bits 0x400000.
  const bool above = code > 0 ? magnitude & 0x7fffffu : magnitude > 0x400000u;
  if (up && above && code < 0xff) ++code;
  return finite && code == 0xff ? 0xfe : code;
}

template <bool up>
void run_to_scale(Context& c, const Op& op) {
  const bool finite = op.immediate != 0;
  map_lanes<uint32_t, float, float>(
      c, op.destination,
      [=](float upper, float lower) {
        return scale_code<up>(upper, finite) << 8 | scale_code<up>(lower, finite);
      },
      op.a, op.b);
}
template <bool up>
void run_to_scale_of_bf16(Context& c, const Op& op) {
  const bool finite = op.immediate != 0;
  map_lanes<uint32_t, uint32_t>(
      c, op.destination,
      [=](uint32_t pair) {
        return scale_code<up>(std::bit_cast<float>(pair & 0xffff0000u), finite) << 8 |
               scale_code<up>(std::bit_cast<float>(pair << 16), finite);
      },
      op.a);
}

void run_from_scale(Context& c, const Op& op) {
  const auto number = [](uint32_t code) {
    return code == 0xff ? 0x7fffu : code == 0 ? 0x40u : code << 7;  // bf16
  };
  map_lanes<uint32_t, uint32_t>(
      c, op.destination, [=](uint32_t pair) { return number(pair >> 8 & 0xff) << 16 | number(pair & 0xff); },
      op.a);
}

template <class F>
Handler with_small(const SmallConversion& x, std::string_view format) {
  if (x.to == format) return x.from == "f32" ? run_to_small<F> : nullptr;
  if (x.from != format) return nullptr;
  return x.to == "f16x2" ? run_from_small<F> : x.to == "bf16x2" ? run_to_bf16<F> : nullptr;
}

}  // namespace

Handler small_conversion(const SmallConversion& x) {
  if (x.to == "ue8m0x2") {
    if (x.from == "f32") return x.up ? run_to_scale<true> : run_to_scale<false>;
    if (x.from == "bf16x2") return x.up ? run_to_scale_of_bf16<true> : run_to_scale_of_bf16<false>;
    return nullptr;
  }
  if (x.to == "s2f6x2") return x.from == "f32" ? run_to_fixed : nullptr;
  if (x.from == "s2f6x2") return x.to == "bf16x2" ? run_to_bf16<S2f6> : nullptr;
  if (x.from == "ue8m0x2") return x.to == "bf16x2" ? run_from_scale : nullptr;
  if (x.to == "bf16x2" && x.from == "e4m3x2") return run_to_bf16<E4m3>;
  if (x.to == "bf16x2" && x.from == "e5m2x2") return run_to_bf16<E5m2>;
  if (Handler run = with_small<E2m1>(x, "e2m1x2")) return run;
  if (Handler run = with_small<E2m3>(x, "e2m3x2")) return run;
  return with_small<E3m2>(x, "e3m2x2");
}

Handler half_of_pair(bool bfloat) {
  return bfloat ? run_half_of_pair<true> : run_half_of_pair<false>;
}

}  // namespace simt::functional
