#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "machine/context.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/// Loops over the lanes of a warp, written so that compilers vectorise them.
/// A destination may overlap a source of another width, so results are buffered until all sources have been
/// read, unless all widths are equal (then lane i only touches lane i).
namespace simt::functional {

/// How a T is stored in a register: in the low bits, zero-extended.
template <class T>
using Lane = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <size_t bytes>
struct Bits;
template <>
struct Bits<1> {
  using type = uint8_t;
};
template <>
struct Bits<2> {
  using type = uint16_t;
};
template <>
struct Bits<4> {
  using type = uint32_t;
};
template <>
struct Bits<8> {
  using type = uint64_t;
};
template <class T>
using BitsOf = typename Bits<sizeof(T)>::type;

template <class T>
inline T from_lane(Lane<T> lane) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(lane));
}
template <class T>
inline Lane<T> to_lane(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

/// Writes `result` to the lanes of the mask.
template <class L>
inline void write_lanes(const Context& context, L* __restrict destination, const L* __restrict result) {
  if (context.full()) {
    for (uint32_t i = 0; i < warp_lanes; ++i) destination[i] = result[i];
  } else {
    const uint32_t mask = context.mask;
    for (uint32_t i = 0; i < warp_lanes; ++i) destination[i] = (mask >> i) & 1 ? result[i] : destination[i];
  }
}

/// Writes the same value to the lanes of the mask.
template <class T>
inline void splat(Context& context, Place destination, T value) {
  T* const d = context.lanes<T>(destination);
  const uint32_t mask = context.mask;
  for (uint32_t i = 0; i < warp_lanes; ++i) d[i] = (mask >> i) & 1 ? value : d[i];
}

/// destination = f(sources...) for each lane of the mask. f must be defined for any input, because it is also
/// computed for inactive lanes.
template <class D, class... S, class F, class... P>
inline void map_lanes(Context& context, Place destination, F f, P... sources) {
  static_assert(sizeof...(S) == sizeof...(P));
  Lane<D>* const d = context.lanes<Lane<D>>(destination);
  const auto run = [&](const Lane<S>*... s) {
    const auto apart = [&](const auto* source) {
      const auto at = reinterpret_cast<uintptr_t>(d), other = reinterpret_cast<uintptr_t>(source);
      return at + warp_lanes * sizeof(*d) <= other || other + warp_lanes * sizeof(*source) <= at;
    };
    // A single loop for both destinations: each loop costs compile time and instruction cache.
    bool in_place = context.full();
    if constexpr (!((sizeof(Lane<S>) == sizeof(Lane<D>)) && ...)) in_place = in_place && (apart(s) && ...);
    alignas(64) Lane<D> kept[warp_lanes];
    Lane<D>* const r = in_place ? d : kept;
#pragma GCC ivdep
    for (uint32_t i = 0; i < warp_lanes; ++i) r[i] = to_lane<D>(f(from_lane<S>(s[i])...));
    if (!in_place) write_lanes(context, d, kept);
  };
  run(context.lanes<const Lane<S>>(sources)...);
}

/// Packs 32 bytes, each 0 or 1, into bits, one per lane.
inline uint32_t gather_bits(const uint8_t* bytes) {
#if defined(__AVX2__)
  const __m256i all = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(all, 7)));
#else
  uint32_t bits = 0;
  for (uint32_t part = 0; part < warp_lanes / 8; ++part) {
    uint64_t eight;
    __builtin_memcpy(&eight, bytes + 8 * part, 8);
    // Gathers the low bit of each byte: the products fall into distinct bits of the top byte.
    bits |= static_cast<uint32_t>((eight * 0x0102040810204080ull) >> 56) << (8 * part);
  }
  return bits;
#endif
}

/// A bit for each lane for which f(sources...) holds, including inactive lanes.
template <class... S, class F, class... P>
inline uint32_t test_lanes(Context& context, F f, P... sources) {
  const auto run = [&](const Lane<S>*... s) {
    // Bytes first: compilers pack comparisons well, but bit shifts badly.
    alignas(32) uint8_t holds[warp_lanes];
    for (uint32_t i = 0; i < warp_lanes; ++i) holds[i] = f(from_lane<S>(s[i])...) ? 1 : 0;
    return gather_bits(holds);
  };
  return run(context.lanes<const Lane<S>>(sources)...);
}

/// Sets the mask's lanes of a predicate.
inline void write_predicate(const Context& context, Place destination, uint32_t bits) {
  uint32_t& p = context.predicate(destination);
  p = (p & ~context.mask) | (bits & context.mask);
}

/// Calls f(lane) for each lane of the mask, in ascending order.
template <class F>
inline void each_lane(const Context& context, F f) {
  for (uint32_t rest = context.mask; rest; rest &= rest - 1) f(std::countr_zero(rest));
}

}  // namespace simt::functional
