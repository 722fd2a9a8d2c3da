#include "operations/collectives.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "machine/lanes.hpp"
#include "operations/reductions.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace simt::functional {
namespace {

Place second_destination(const Op& op) {
  return op.details<CollectiveOperands>().predicate;
}

/// result[i] = a[index[i]], indices below 32.
void permute(const uint32_t* a, const uint32_t* index, uint32_t* result) {
#if defined(__AVX2__)
  // Permutes each of the four quarters, and selects by the upper bits of the index; gathers would wait for
  // memory.
  __m256i quarter[4];
  for (int q = 0; q < 4; ++q) quarter[q] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a) + q);
  for (int v = 0; v < 4; ++v) {
    const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index) + v);
    const __m256 bit3 = _mm256_castsi256_ps(_mm256_slli_epi32(k, 28));
    const __m256 bit4 = _mm256_castsi256_ps(_mm256_slli_epi32(k, 27));
    const auto pick = [&](int q) { return _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(quarter[q], k)); };
    const __m256 low = _mm256_blendv_ps(pick(0), pick(1), bit3);
    const __m256 high = _mm256_blendv_ps(pick(2), pick(3), bit3);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(result) + v,
                        _mm256_castps_si256(_mm256_blendv_ps(low, high, bit4)));
  }
#else
  for (uint32_t i = 0; i < warp_lanes; ++i) result[i] = a[index[i]];
#endif
}

/// Packs a word per lane, 0 or 1, into bits, one per lane.
uint32_t pack_bits(const uint32_t* words) {
  uint32_t bits = 0;
#if defined(__AVX2__)
  for (int v = 0; v < 4; ++v) {
    const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words) + v);
    const int top = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(eight, 31)));
    bits |= static_cast<uint32_t>(top) << 8 * v;
  }
#else
  for (uint32_t i = 0; i < warp_lanes; ++i) bits |= words[i] << i;
#endif
  return bits;
}

/// Each lane reads the value of a source lane in its segment, or its own if the source is outside.
template <Shuffle mode>
void run_shuffle(Context& c, const Op& op) {
  const uint32_t* a = c.lanes<const uint32_t>(op.a);
  const uint32_t* b = c.lanes<const uint32_t>(op.b);
  const uint32_t* limits = c.lanes<const uint32_t>(op.c);
  alignas(64) uint32_t source[warp_lanes], result[warp_lanes];
  alignas(64) uint32_t inside[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const auto lane = static_cast<int32_t>(i);
    const auto by = static_cast<int32_t>(b[i] & 31);
    const auto segment = static_cast<int32_t>(limits[i] >> 8 & 31);
    const auto clamp = static_cast<int32_t>(limits[i] & 31);
    const int32_t last = (lane & segment) | (clamp & ~segment);
    int32_t j = 0;
    if constexpr (mode == Shuffle::Up) j = lane - by;
    if constexpr (mode == Shuffle::Down) j = lane + by;
    if constexpr (mode == Shuffle::Butterfly) j = lane ^ by;
    if constexpr (mode == Shuffle::Index) j = (lane & segment) | (by & ~segment);
    const bool holds = mode == Shuffle::Up ? j >= last : j <= last;
    source[i] = static_cast<uint32_t>(holds ? j : lane) & 31;
    inside[i] = holds;
  }
  permute(a, source, result);
  const Place predicate = second_destination(op);
  if (predicate != place::none) write_predicate(c, predicate, pack_bits(inside));
  write_lanes(c, c.lanes<uint32_t>(op.destination), result);
}

/// Whether lanes that execute it together name different masks.
bool has_different_masks(const Context& c, const Op& op) {
  if (op.member_mask == place::none || op.member_mask >> place::bank_shift != 0) return false;
  const auto* masks = c.lanes<const uint32_t>(op.member_mask);
  for (uint32_t rest = c.mask; rest; rest &= rest - 1)
    if (masks[std::countr_zero(rest)] != masks[c.first_lane()]) return true;
  return false;
}

/// a: the predicate; immediate: 1 if it is negated. Of different masks, each lane gets what the lanes in its
/// own one vote, whether it is one of them or not: so does ptxas's code for them.
template <Vote vote>
void run_vote(Context& c, const Op& op) {
  const uint32_t p = c.predicate(op.a);
  const uint32_t bits = (op.immediate ? ~p : p) & c.mask;
  const auto outcome = [](uint32_t votes, uint32_t voters) {
    if constexpr (vote == Vote::Ballot) return votes;
    if constexpr (vote == Vote::Any) return uint32_t{votes != 0};
    return uint32_t{votes == voters || (vote == Vote::Uniform && votes == 0)};
  };
  if (has_different_masks(c, op)) {
    alignas(64) uint32_t results[warp_lanes];
    const auto* masks = c.lanes<const uint32_t>(op.member_mask);
    for (uint32_t i = 0; i < warp_lanes; ++i) results[i] = outcome(bits & masks[i], c.mask & masks[i]);
    if constexpr (vote == Vote::Ballot)
      write_lanes(c, c.lanes<uint32_t>(op.destination), results);
    else
      write_predicate(c, op.destination, pack_bits(results));
  } else if constexpr (vote == Vote::Ballot) {
    splat(c, op.destination, bits);
  } else {
    write_predicate(c, op.destination, outcome(bits, c.mask) ? full_mask : 0);
  }
}

/// Each lane gets the mask of lanes with the same value.
template <class T>
void run_match_any(Context& c, const Op& op) {
  const T* a = c.lanes<const T>(op.a);
  alignas(64) uint32_t result[warp_lanes];
  for (uint32_t rest = c.mask; rest;) {
    const T value = a[std::countr_zero(rest)];
    alignas(64) uint32_t equal[warp_lanes];
    for (uint32_t i = 0; i < warp_lanes; ++i) equal[i] = a[i] == value;
    const uint32_t same = pack_bits(equal) & c.mask;
    for (uint32_t of = same; of; of &= of - 1) result[std::countr_zero(of)] = same;
    rest &= ~same;
  }
  write_lanes(c, c.lanes<uint32_t>(op.destination), result);
}
template <class T>
void run_match_all(Context& c, const Op& op) {
  const T* a = c.lanes<const T>(op.a);
  const T value = a[c.first_lane()];
  bool same = true;
  each_lane(c, [&](int i) { same &= a[i] == value; });
  const Place predicate = second_destination(op);
  if (predicate != place::none) write_predicate(c, predicate, same ? full_mask : 0);
  splat(c, op.destination, same ? c.mask : 0);
}

template <template <class> class Operation, class T>
void run_reduce(Context& c, const Op& op) {
  const uint32_t* a = c.lanes<const uint32_t>(op.a);
  T all = from_lane<T>(a[c.first_lane()]);
  for (uint32_t rest = c.mask & (c.mask - 1); rest; rest &= rest - 1)
    all = Operation<T>::apply(all, from_lane<T>(a[std::countr_zero(rest)]));
  splat(c, op.destination, to_lane<T>(all));
}

template <class T>
Handler reduction_of(Reduction which) {
  static constexpr Handler handlers[] = {run_reduce<reduction::Add, T>, run_reduce<reduction::Min, T>,
                                         run_reduce<reduction::Max, T>, run_reduce<reduction::And, T>,
                                         run_reduce<reduction::Or, T>,  run_reduce<reduction::Xor, T>};
  return handlers[static_cast<int>(which)];
}

/// -0 is less than +0.
template <bool largest, bool abs, bool nan>
void run_float_reduce(Context& c, const Op& op) {
  const float* a = c.lanes<const float>(op.a);
  const auto precedes = [](float x, float y) {
    return x < y || (x == y && std::signbit(x) > std::signbit(y));
  };
  float all = std::numeric_limits<float>::quiet_NaN();
  bool any_nan = false;
  for (uint32_t rest = c.mask; rest; rest &= rest - 1) {
    const float lane = a[std::countr_zero(rest)], v = abs ? std::fabs(lane) : lane;
    any_nan |= v != v;
    if (v == v && (all != all || (largest ? precedes(all, v) : precedes(v, all)))) all = v;
  }
  const bool is_nan = all != all || (nan && any_nan);
  splat(c, op.destination, is_nan ? 0x7fffffffu : std::bit_cast<uint32_t>(all));
}

template <bool largest>
Handler float_reduction_of(bool abs, bool nan) {
  if (abs) return nan ? run_float_reduce<largest, true, true> : run_float_reduce<largest, true, false>;
  return nan ? run_float_reduce<largest, false, true> : run_float_reduce<largest, false, false>;
}

}  // namespace

Handler shuffle_handler(Shuffle mode) {
  static constexpr Handler handlers[] = {run_shuffle<Shuffle::Up>, run_shuffle<Shuffle::Down>,
                                         run_shuffle<Shuffle::Butterfly>, run_shuffle<Shuffle::Index>};
  return handlers[static_cast<int>(mode)];
}

Handler vote_handler(Vote vote) {
  static constexpr Handler handlers[] = {run_vote<Vote::All>, run_vote<Vote::Any>, run_vote<Vote::Uniform>,
                                         run_vote<Vote::Ballot>};
  return handlers[static_cast<int>(vote)];
}

Handler match_any_handler(bool wide) {
  return wide ? run_match_any<uint64_t> : run_match_any<uint32_t>;
}
Handler match_all_handler(bool wide) {
  return wide ? run_match_all<uint64_t> : run_match_all<uint32_t>;
}

Handler reduction_handler(Reduction which, bool is_signed) {
  return is_signed ? reduction_of<int32_t>(which) : reduction_of<uint32_t>(which);
}

Handler float_reduction_handler(bool largest, bool abs, bool nan) {
  return largest ? float_reduction_of<true>(abs, nan) : float_reduction_of<false>(abs, nan);
}

void run_active_lanes(Context& c, const Op& op) {
  splat(c, op.destination, c.mask);
}

void run_elect(Context& c, const Op& op) {
  uint32_t candidates = c.mask;
  if (op.details<CollectiveOperands>().a == CollectiveOperands::Kind::Predicate)
    candidates &= op.immediate ? ~c.predicate(op.a) : c.predicate(op.a);
  if (op.destination != place::none)
    splat(c, op.destination, static_cast<uint32_t>(std::countr_zero(candidates)));
  write_predicate(c, second_destination(op), candidates & (0 - candidates));
}

}  // namespace simt::functional
