#include "operations/words.hpp"

#include <array>
#include <bit>
#include <utility>

#include "operations/integers.hpp"

namespace simt::functional {
namespace {

/// Function of two bits, defined by its outputs for (b, c) = 00, 01, 10, 11, from the lowest bit on.
template <uint32_t table>
inline uint32_t logic2(uint32_t b, uint32_t c) {
  const uint32_t terms[4] = {~b & ~c, ~b & c, b & ~c, b & c};
  if constexpr (table == 0)
    return 0;
  else if constexpr (table == 1)
    return ~(b | c);
  else if constexpr (table == 3)
    return ~b;
  else if constexpr (table == 5)
    return ~c;
  else if constexpr (table == 6)
    return b ^ c;
  else if constexpr (table == 7)
    return ~(b & c);
  else if constexpr (table == 9)
    return ~(b ^ c);
  else if constexpr (table == 10)
    return c;
  else if constexpr (table == 11)
    return ~b | c;
  else if constexpr (table == 12)
    return b;
  else if constexpr (table == 13)
    return b | ~c;
  else if constexpr (table == 14)
    return b | c;
  else if constexpr (table == 15)
    return full_mask;
  else
    return terms[std::countr_zero(table)];
}
/// Function of three bits: bit 4a + 2b + c of `table`.
template <uint32_t table>
struct Logic3 {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    constexpr uint32_t low = table & 15, high = table >> 4;
    if constexpr (low == high)
      return logic2<low>(b, c);
    else if constexpr ((low ^ high) == 15)
      return a ^ logic2<low>(b, c);
    else if constexpr (low == 0)
      return a & logic2<high>(b, c);
    else if constexpr (high == 0)
      return ~a & logic2<low>(b, c);
    else if constexpr (low == 15)
      return ~a | logic2<high>(b, c);
    else if constexpr (high == 15)
      return a | logic2<low>(b, c);
    else
      return (a & logic2<high>(b, c)) | (~a & logic2<low>(b, c));
  }
};

template <size_t... table>
constexpr std::array<Handler, 256> make_logic3_handlers(std::index_sequence<table...>) {
  return {run_ternary<Logic3<table>, uint32_t>...};
}
constexpr std::array<Handler, 256> logic3_handlers = make_logic3_handlers(std::make_index_sequence<256>());

/// Selects bytes of b:a (0 to 3 are a's, 4 to 7 b's): each result byte has a 4-bit selector, whose top bit
/// replicates the byte's sign.
inline uint32_t permute(uint64_t bytes, uint32_t selector) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t which = selector >> (4 * k);
    const auto byte = static_cast<uint32_t>(bytes >> (8 * (which & 7))) & 0xff;
    const uint32_t sign = (0u - (byte >> 7)) & 0xff;
    result |= (which & 8 ? sign : byte) << (8 * k);
  }
  return result;
}
enum class Permute : int { Index, Forward, Backward, Replicate8, EdgeLeft, EdgeRight, Replicate16 };
/// The selectors that the four variants of each mode stand for.
constexpr uint16_t permute_selectors[7][4] = {{},
                                              {0x3210, 0x4321, 0x5432, 0x6543},
                                              {0x5670, 0x6701, 0x7012, 0x0123},
                                              {0x0000, 0x1111, 0x2222, 0x3333},
                                              {0x3210, 0x3211, 0x3222, 0x3333},
                                              {0x0000, 0x1110, 0x2210, 0x3210},
                                              {0x1010, 0x3232, 0x1010, 0x3232}};

template <Permute mode>
struct PermuteBytes {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const uint32_t selector = mode == Permute::Index ? c : permute_selectors[static_cast<int>(mode)][c & 3];
    return permute(uint64_t{b} << 32 | a, selector);
  }
};

template <class A, class B>
void run_dp4a(Context& c, const Op& op) {
  map_lanes<uint32_t, uint32_t, uint32_t, uint32_t>(
      c, op.destination,
      [](uint32_t a, uint32_t b, uint32_t sum) {
        for (uint32_t k = 0; k < 4; ++k) sum += field<A>(a, k) * field<B>(b, k);
        return sum;
      },
      op.a, op.b, op.c);
}
/// Halves of a times bytes 0 and 1, or 2 and 3, of b.
template <class A, class B, uint32_t first>
void run_dp2a(Context& c, const Op& op) {
  map_lanes<uint32_t, uint32_t, uint32_t, uint32_t>(
      c, op.destination,
      [](uint32_t a, uint32_t b, uint32_t sum) {
        for (uint32_t k = 0; k < 2; ++k) sum += field<A>(a, k) * field<B>(b, first + k);
        return sum;
      },
      op.a, op.b, op.c);
}

template <uint32_t first>
Handler dp2a_handler(bool a, bool b) {
  if (a) return b ? run_dp2a<int16_t, int8_t, first> : run_dp2a<int16_t, uint8_t, first>;
  return b ? run_dp2a<uint16_t, int8_t, first> : run_dp2a<uint16_t, uint8_t, first>;
}

}  // namespace

Handler logic3_handler(uint32_t table) {
  return logic3_handlers[table];
}

void run_logic_test(Context& c, const Op& op) {
  const auto& d = op.details<LogicTest>();
  const uint32_t q = c.predicate(d.combined.place) ^ (d.combined.negated ? full_mask : 0);
  Op logic = op;
  logic.destination = d.result;
  d.logic(c, logic);
  const uint32_t nonzero = test_lanes<uint32_t>(c, [](uint32_t v) { return v != 0; }, d.result);
  write_predicate(c, op.destination, d.is_or ? nonzero | q : nonzero & q);
}

Handler permute_handler(int mode) {
  static constexpr Handler handlers[] = {run_ternary<PermuteBytes<Permute::Index>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Forward>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Backward>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Replicate8>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::EdgeLeft>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::EdgeRight>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Replicate16>, uint32_t>};
  return handlers[mode + 1];
}

uint32_t permute_selector(int mode, uint32_t c) {
  return mode < 0 ? c : permute_selectors[mode + 1][c & 3];
}

void run_permute_fixed(Context& c, const Op& op) {
  const uint32_t* words[] = {c.lanes<const uint32_t>(op.a), c.lanes<const uint32_t>(op.b)};
  alignas(64) uint32_t result[warp_lanes] = {};
  for (uint32_t k = 0; k < 4; ++k) {
    const auto which = static_cast<uint32_t>(op.immediate) >> (4 * k);
    const uint32_t* word = words[which >> 2 & 1];
    // Moves the byte to the top, back down with or without its sign, then to its position.
    const uint32_t up = 24 - 8 * (which & 3), to = 8 * k;
    if (which & 8) {
      for (uint32_t i = 0; i < warp_lanes; ++i)
        result[i] |= (static_cast<uint32_t>(static_cast<int32_t>(word[i] << up) >> 31) & 0xff) << to;
    } else {
      for (uint32_t i = 0; i < warp_lanes; ++i) result[i] |= word[i] << up >> 24 << to;
    }
  }
  write_lanes(c, c.lanes<uint32_t>(op.destination), result);
}

Handler dot4_handler(bool a_signed, bool b_signed) {
  if (a_signed) return b_signed ? run_dp4a<int8_t, int8_t> : run_dp4a<int8_t, uint8_t>;
  return b_signed ? run_dp4a<uint8_t, int8_t> : run_dp4a<uint8_t, uint8_t>;
}

Handler dot2_handler(bool upper, bool a_signed, bool b_signed) {
  return upper ? dp2a_handler<2>(a_signed, b_signed) : dp2a_handler<0>(a_signed, b_signed);
}

}  // namespace simt::functional
