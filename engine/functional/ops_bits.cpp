/// Logic, shifts, and instructions on bits and bytes.
#include <array>
#include <bit>
#include <utility>

#include "functional/arithmetic.hpp"
#include "functional/instructions.hpp"
#include "functional/integer_types.hpp"
#include "functional/lanes.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  T operator()(T a) const {
    return a == 0;
  }
};

/// Op::immediate: bit 0 negates the first source, bit 1 the second.
template <class F>
void run_logic_predicates(Context& c, const Op& op) {
  const uint32_t a = c.predicate(op.a) ^ (op.immediate & 1 ? full_mask : 0);
  const uint32_t b = c.predicate(op.b) ^ (op.immediate & 2 ? full_mask : 0);
  write_predicate(c, op.destination, F{}(a, b));
}
void run_not_predicate(Context& c, const Op& op) {
  const uint32_t a = c.predicate(op.a) ^ (op.immediate & 1 ? full_mask : 0);
  write_predicate(c, op.destination, ~a);
}

constexpr std::initializer_list<Type> logic_types{Type::Pred, Type::B16, Type::B32, Type::B64};
constexpr std::initializer_list<Type> word_types{Type::B32, Type::B64};

template <class F>
void translate_logic(Translation& t) {
  const Type type = take_type_of(t, logic_types);
  if (type != Type::Pred) {
    emit_binary(t, by_size(t, type, [](auto v) -> Handler { return run_binary<F, decltype(v)>; }), type);
    return;
  }
  const Place d = t.predicate_destination(t.operand(0));
  const PredicateOperand a = t.predicate_source(t.operand(1)), b = t.predicate_source(t.operand(2));
  Op& op = t.emit(run_logic_predicates<F>);
  op.destination = d;
  op.a = a.place;
  op.b = b.place;
  op.immediate = (a.negated ? 1 : 0) | (b.negated ? 2 : 0);
}

/// Shifts by more than the width yield zeros, or copies of the sign.
struct ShiftLeft {
  template <class T>
  T operator()(T a, uint32_t n) const {
    constexpr uint32_t bits = 8 * sizeof(T);
    const Wrapping<T> wide = a;
    return n >= bits ? T{0} : static_cast<T>(wide << (n & (8 * sizeof(wide) - 1)));
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, uint32_t n) const {
    constexpr uint32_t bits = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> (n >= bits ? bits - 1 : n));
    else
      return n >= bits ? T{0} : static_cast<T>(a >> (n & (bits - 1)));
  }
};

template <class F, class T>
void run_shift(Context& c, const Op& op) {
  map_lanes<T, T, uint32_t>(c, op.destination, F{}, op.a, op.b);
}

void emit_shift(Translation& t, Handler handler, Type type) {
  const Place d = t.destination(0, type), a = t.source(1, type), n = t.source(2, Type::U32);
  Op& op = t.emit(handler);
  op.destination = d;
  op.a = a;
  op.b = n;
}
inline uint32_t shift_left(uint32_t v, uint32_t n) {
  return ShiftLeft{}(v, n);
}
inline uint32_t shift_right(uint32_t v, uint32_t n) {
  return ShiftRight{}(v, n);
}

/// The 64-bit number b:a shifted: left, returning the upper half, or right, returning the lower half.
template <bool left, bool wraps>
struct Funnel {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const uint32_t n = wraps ? c & 31 : std::min(c, 32u);
    if constexpr (left)
      return shift_left(b, n) | shift_right(a, 32 - n);
    else
      return shift_right(a, n) | shift_left(b, 32 - n);
  }
};

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
constexpr std::array<Handler, 256> make_lop3_handlers(std::index_sequence<table...>) {
  return {run_ternary<Logic3<table>, uint32_t>...};
}
constexpr std::array<Handler, 256> lop3_handlers = make_lop3_handlers(std::make_index_sequence<256>());

/// lop3's second result: the predicate p = (d != 0) OP q.
struct BoolDetail : Detail {
  Handler logic = nullptr;
  Place result = place::none;
  PredicateOperand combined;
  bool is_or = false;
};

void run_lop3_bool(Context& c, const Op& op) {
  const auto& d = op.details<BoolDetail>();
  const uint32_t q = c.predicate(d.combined.place) ^ (d.combined.negated ? full_mask : 0);
  Op logic = op;
  logic.destination = d.result;
  d.logic(c, logic);
  const uint32_t nonzero = test_lanes<uint32_t>(c, [](uint32_t v) { return v != 0; }, d.result);
  write_predicate(c, op.destination, d.is_or ? nonzero | q : nonzero & q);
}

/// d (32 bits) = F(a).
template <class F, class T>
void run_count(Context& c, const Op& op) {
  map_lanes<uint32_t, T>(c, op.destination, F{}, op.a);
}
template <class F>
void emit_count(Translation& t, Type type) {
  const Place d = t.destination(0, Type::U32), a = t.source(1, type);
  Op& op = t.emit(by_integer_type(t, type, [](auto v) -> Handler { return run_count<F, decltype(v)>; }));
  op.destination = d;
  op.a = a;
}

struct PopulationCount {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::popcount(static_cast<Wrapping<T>>(a)));
  }
};
struct LeadingZeros {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
  }
};
/// Position of the highest bit that differs from the sign (for unsigned numbers: that is set), or its
/// distance from the top; all ones if there is none.
template <bool shift_amount>
struct FindLeading {
  template <class T>
  uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(a < 0 ? ~a : a);
    if (bits == 0) return UINT32_MAX;
    const auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
    return shift_amount ? zeros : 8 * sizeof(T) - 1 - zeros;
  }
};

/// Position of the offset-th set bit from `base`, upwards or, for a negative offset, downwards.
struct FindNthSet {
  uint32_t operator()(uint32_t mask, uint32_t base, uint32_t offset) const {
    const auto wanted = static_cast<int32_t>(offset);
    if (base > 31) return UINT32_MAX;
    if (wanted == 0) return (mask >> base) & 1 ? base : UINT32_MAX;
    uint32_t left = wanted < 0 ? 0u - offset : offset;
    const int32_t step = wanted < 0 ? -1 : 1;
    for (auto at = static_cast<int32_t>(base); at >= 0 && at < 32; at += step)
      if ((mask >> at) & 1 && --left == 0) return static_cast<uint32_t>(at);
    return UINT32_MAX;
  }
};
struct Reverse {
  template <class T>
  T operator()(T v) const {
    v = static_cast<T>((v >> 1 & T(0x5555555555555555)) | (v & T(0x5555555555555555)) << 1);
    v = static_cast<T>((v >> 2 & T(0x3333333333333333)) | (v & T(0x3333333333333333)) << 2);
    v = static_cast<T>((v >> 4 & T(0x0f0f0f0f0f0f0f0f)) | (v & T(0x0f0f0f0f0f0f0f0f)) << 4);
    v = static_cast<T>((v >> 8 & T(0x00ff00ff00ff00ff)) | (v & T(0x00ff00ff00ff00ff)) << 8);
    if constexpr (sizeof(T) == 4) return v >> 16 | v << 16;
    v = static_cast<T>((v >> 16 & T(0x0000ffff0000ffff)) | (v & T(0x0000ffff0000ffff)) << 16);
    return static_cast<T>(v >> (4 * sizeof(T)) | v << (4 * sizeof(T)));
  }
};
/// A mask of the `length` lowest bits.
template <class T>
inline T low_bits(uint32_t length) {
  return static_cast<T>(ShiftLeft{}(T{1}, length) - 1);
}

/// `length` bits from `position`; a signed number is extended with its sign beyond the top.
struct ExtractField {
  template <class T>
  T operator()(T a, uint32_t position, uint32_t length) const {
    constexpr uint32_t bits = 8 * sizeof(T);
    const T shifted = ShiftRight{}(a, position & 255);
    const uint32_t wanted = length & 255;
    if constexpr (std::is_signed_v<T>) {
      const uint32_t above = bits - std::clamp(wanted, 1u, bits);
      const T extended =
          static_cast<T>(static_cast<T>(static_cast<std::make_unsigned_t<T>>(shifted) << above) >> above);
      return wanted == 0 ? T{0} : extended;
    } else {
      return shifted & low_bits<T>(wanted);
    }
  }
};
template <class T>
void run_bfe(Context& c, const Op& op) {
  map_lanes<T, T, uint32_t, uint32_t>(c, op.destination, ExtractField{}, op.a, op.b, op.c);
}
/// Inserts the lowest `length` bits of a into b at `position`. Op::immediate: place of the length.
template <class T>
void run_bfi(Context& c, const Op& op) {
  map_lanes<T, T, T, uint32_t, uint32_t>(
      c, op.destination,
      [](T a, T b, uint32_t position, uint32_t length) {
        const T mask = ShiftLeft{}(low_bits<T>(length & 255), position & 255);
        return static_cast<T>((ShiftLeft{}(a, position & 255) & mask) | (b & ~mask));
      },
      op.a, op.b, op.c, static_cast<Place>(op.immediate));
}
/// The lowest b bits of a, sign- or zero-extended.
template <bool wraps>
struct Extend {
  template <class T>
  T operator()(T a, T b) const {
    const auto n = static_cast<uint32_t>(b);
    return ExtractField{}(a, 0, wraps ? n & 31 : std::min(n, 32u));
  }
};
/// b set bits, starting at bit a.
template <bool wraps>
struct BitMask {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const uint32_t position = wraps ? a & 31 : std::min(a, 32u), width = wraps ? b & 31 : std::min(b, 32u);
    return shift_left(low_bits<uint32_t>(width), position);
  }
};
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

/// One selector, Op::immediate, for all lanes.
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

}  // namespace

void translate_not(Translation& t) {
  const Type type = take_type_of(t, logic_types);
  if (type != Type::Pred) {
    emit_unary(t, by_size(t, type, [](auto v) -> Handler { return run_unary<Not, decltype(v)>; }), type);
    return;
  }
  const Place d = t.predicate_destination(t.operand(0));
  const PredicateOperand a = t.predicate_source(t.operand(1));
  Op& op = t.emit(run_not_predicate);
  op.destination = d;
  op.a = a.place;
  op.immediate = a.negated;
}

void translate_cnot(Translation& t) {
  const Type type = take_type_of(t, {Type::B16, Type::B32, Type::B64});
  emit_unary(t, by_size(t, type, [](auto v) -> Handler { return run_unary<LogicalNot, decltype(v)>; }), type);
}

void translate_shl(Translation& t) {
  const Type type = take_type_of(t, {Type::B16, Type::B32, Type::B64});
  emit_shift(t, by_size(t, type, [](auto v) -> Handler { return run_shift<ShiftLeft, decltype(v)>; }), type);
}

void translate_shr(Translation& t) {
  const Type type = t.take_type();
  emit_shift(t,
             by_integer_type(t, type, [](auto v) -> Handler { return run_shift<ShiftRight, decltype(v)>; }),
             type);
}

void translate_shf(Translation& t) {
  const int direction = t.take_one_of({"l", "r"}), mode = t.take_one_of({"clamp", "wrap"});
  if (direction < 0 || mode < 0) t.unsupported("it needs .l or .r, and .clamp or .wrap");
  take_type_of(t, {Type::B32});
  emit_ternary(t,
               direction == 0 ? mode == 0 ? run_ternary<Funnel<true, false>, uint32_t>
                                          : run_ternary<Funnel<true, true>, uint32_t>
               : mode == 0    ? run_ternary<Funnel<false, false>, uint32_t>
                              : run_ternary<Funnel<false, true>, uint32_t>,
               Type::B32);
}

void translate_lop3(Translation& t) {
  const int combine = t.take_one_of({"and", "or"});
  take_type_of(t, {Type::B32});
  const auto table = static_cast<uint64_t>(t.immediate(t.operand(4)));
  if (table > 255) t.unsupported("the table is not a number from 0 to 255");
  const Handler logic = lop3_handlers[table];
  if (combine < 0) {
    emit_ternary(t, logic, Type::B32);
    return;
  }
  const ptx::Operand& pair = t.operand(0);
  if (pair.kind != ptx::OperandKind::Pair) t.unsupported("it needs two destinations, d|p");
  const Place result = t.destination(t.part(pair, 0), Type::B32);
  const Place predicate = t.predicate_destination(t.part(pair, 1));
  const Place a = t.source(1, Type::B32), b = t.source(2, Type::B32), third = t.source(3, Type::B32);
  const PredicateOperand q = t.predicate_source(t.operand(5));
  Op& op = t.emit(run_lop3_bool);
  op.destination = predicate;
  op.a = a;
  op.b = b;
  op.c = third;
  BoolDetail& d = t.detail<BoolDetail>();
  d.logic = logic;
  d.result = result;
  d.combined = q;
  d.is_or = combine == 1;
}

void translate_popc(Translation& t) {
  emit_count<PopulationCount>(t, take_type_of(t, word_types));
}

void translate_clz(Translation& t) {
  emit_count<LeadingZeros>(t, take_type_of(t, word_types));
}

void translate_bfind(Translation& t) {
  const bool shift_amount = t.take("shiftamt");
  const Type type = take_type_of(t, {Type::U32, Type::U64, Type::S32, Type::S64});
  if (shift_amount)
    emit_count<FindLeading<true>>(t, type);
  else
    emit_count<FindLeading<false>>(t, type);
}

void translate_fns(Translation& t) {
  take_type_of(t, {Type::B32});
  emit_ternary(t, run_ternary<FindNthSet, uint32_t>, Type::B32);
}

void translate_brev(Translation& t) {
  const Type type = take_type_of(t, word_types);
  emit_unary(t, type == Type::B32 ? run_unary<Reverse, uint32_t> : run_unary<Reverse, uint64_t>, type);
}

void translate_bfe(Translation& t) {
  const Type type = take_type_of(t, {Type::U32, Type::U64, Type::S32, Type::S64});
  const Place d = t.destination(0, type), a = t.source(1, type);
  const Place position = t.source(2, Type::U32), length = t.source(3, Type::U32);
  Op& op = t.emit(by_integer_type(t, type, [](auto v) -> Handler { return run_bfe<decltype(v)>; }));
  op.destination = d;
  op.a = a;
  op.b = position;
  op.c = length;
}

void translate_bfi(Translation& t) {
  const Type type = take_type_of(t, word_types);
  const Place d = t.destination(0, type), a = t.source(1, type), b = t.source(2, type);
  const Place position = t.source(3, Type::U32), length = t.source(4, Type::U32);
  Op& op = t.emit(type == Type::B32 ? run_bfi<uint32_t> : run_bfi<uint64_t>);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = position;
  op.immediate = length;
}

void translate_szext(Translation& t) {
  const int mode = t.take_one_of({"clamp", "wrap"});
  if (mode < 0) t.unsupported("it needs .clamp or .wrap");
  const Type type = take_type_of(t, {Type::U32, Type::S32});
  emit_binary(t,
              type == Type::U32
                  ? mode == 0 ? run_binary<Extend<false>, uint32_t> : run_binary<Extend<true>, uint32_t>
              : mode == 0 ? run_binary<Extend<false>, int32_t>
                          : run_binary<Extend<true>, int32_t>,
              type);
}

void translate_bmsk(Translation& t) {
  const int mode = t.take_one_of({"clamp", "wrap"});
  if (mode < 0) t.unsupported("it needs .clamp or .wrap");
  take_type_of(t, {Type::B32});
  emit_binary(t, mode == 0 ? run_binary<BitMask<false>, uint32_t> : run_binary<BitMask<true>, uint32_t>,
              Type::B32);
}

void translate_prmt(Translation& t) {
  take_type_of(t, {Type::B32});
  static constexpr Handler handlers[] = {run_ternary<PermuteBytes<Permute::Index>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Forward>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Backward>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Replicate8>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::EdgeLeft>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::EdgeRight>, uint32_t>,
                                         run_ternary<PermuteBytes<Permute::Replicate16>, uint32_t>};
  const int mode = t.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (t.operand(3).kind == ptx::OperandKind::Integer) {
    const auto selector = static_cast<uint32_t>(t.immediate(t.operand(3)));
    emit_binary(t, run_permute_fixed, Type::B32).immediate =
        mode < 0 ? selector : permute_selectors[mode + 1][selector & 3];
    return;
  }
  emit_ternary(t, handlers[mode + 1], Type::B32);
}

void translate_and(Translation& t) {
  translate_logic<And>(t);
}
void translate_or(Translation& t) {
  translate_logic<Or>(t);
}
void translate_xor(Translation& t) {
  translate_logic<Xor>(t);
}

}  // namespace simt::functional
