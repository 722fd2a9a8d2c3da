/// Video instructions: arithmetic on bytes and half-words of registers, with a second operation on the
/// result.
#include "operations/comparisons.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/integer_types.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// Wide enough for every intermediate result.
using Number = __int128;

constexpr std::initializer_list<Type> types32{Type::U32, Type::S32};

/// Rounds halves away from zero.
struct Average {
  template <class T>
  T operator()(T a, T b) const {
    return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
  }
};
template <bool wraps>
inline uint32_t shift_amount(Number b) {
  return static_cast<uint32_t>(wraps ? b & 31 : b > 32 ? Number{32} : b);
}
template <bool wraps>
struct ShiftedLeft {
  Number operator()(Number a, Number b) const { return ShiftLeft{}(a, shift_amount<wraps>(b)); }
};
template <bool wraps>
struct ShiftedRight {
  Number operator()(Number a, Number b) const { return ShiftRight{}(a, shift_amount<wraps>(b)); }
};
template <uint32_t outcomes>
struct Set {
  template <class T>
  T operator()(T a, T b) const {
    return compare<outcomes>(a, b);
  }
};

/// The intermediate results of scalar instructions have 34 bits, or 33 after saturation.
template <int bits>
inline Number signed_number(Number v) {
  constexpr int above = 128 - bits;
  return static_cast<Number>(static_cast<unsigned __int128>(v) << above) >> above;
}

/// Part of a register: a byte, a half-word or the whole register.
struct Part {
  uint32_t shift = 0, bits = 32;
  bool is_signed = false;

  uint32_t mask() const { return bits == 32 ? full_mask : (1u << bits) - 1; }
  Number value(uint32_t v) const {
    const uint32_t field = v >> shift & mask();
    return is_signed && field >> (bits - 1) ? Number{field} - (Number{1} << bits) : Number{field};
  }
  Number clamped(Number v) const {
    const Number low = is_signed ? -(Number{1} << (bits - 1)) : Number{0};
    const Number high = (Number{1} << (is_signed ? bits - 1 : bits)) - 1;
    return std::clamp(v, low, high);
  }
};

/// An operand's register, without its selector.
ptx::Operand whole(const ptx::Operand& operand) {
  ptx::Operand result = operand;
  result.component = 0;
  result.negated = false;
  return result;
}

Part part_of(Translation& t, const ptx::Operand& operand, Type type) {
  const bool is_signed = type == Type::S32;
  const uint32_t k = operand.component;
  if (k == 0) return {0, 32, is_signed};
  if (k >= 8 && k < 12) return {8 * (k - 8), 8, is_signed};
  if (k >= 16 && k < 18) return {16 * (k - 16), 16, is_signed};
  t.unsupported("the selector ." + std::string(operand.text) + " is not supported here");
}

enum class Second : uint8_t { None, Add, Min, Max, Merge };

struct ScalarDetail : Detail {
  Part a, b, d, c;
  bool saturates = false;
  Second second = Second::None;
};

template <class F>
void run_scalar(Context& context, const Op& op) {
  const auto& d = op.details<ScalarDetail>();
  const uint32_t* a = context.lanes<const uint32_t>(op.a);
  const uint32_t* b = context.lanes<const uint32_t>(op.b);
  const uint32_t* c = context.lanes<const uint32_t>(op.c);
  uint32_t* destination = context.lanes<uint32_t>(op.destination);
  each_lane(context, [&](int i) {
    Number v = signed_number<34>(F{}(d.a.value(a[i]), d.b.value(b[i])));
    v = d.saturates ? d.d.clamped(v) : signed_number<33>(v);
    const auto bits = static_cast<uint32_t>(v);
    switch (d.second) {
      case Second::None:
        destination[i] = bits;
        break;
      case Second::Add:
        destination[i] = bits + c[i];
        break;
      case Second::Min:
        destination[i] = static_cast<uint32_t>(Min{}(v, d.c.value(c[i])));
        break;
      case Second::Max:
        destination[i] = static_cast<uint32_t>(Max{}(v, d.c.value(c[i])));
        break;
      case Second::Merge: {
        const uint32_t mask = d.d.mask() << d.d.shift;
        destination[i] = (bits << d.d.shift & mask) | (c[i] & ~mask);
        break;
      }
    }
  });
}

void emit_scalar(Translation& t, Handler handler, Type result, Type first, Type second) {
  const int secondary = t.take_one_of({"add", "min", "max"});
  ScalarDetail detail;
  detail.saturates = t.take("sat");
  detail.a = part_of(t, t.operand(1), first);
  detail.b = part_of(t, t.operand(2), second);
  detail.d = part_of(t, t.operand(0), result);
  detail.c = {0, 32, result == Type::S32};
  if (secondary >= 0) {
    if (t.operand(0).component) t.unsupported("a second operation and a selector of the destination");
    detail.second = static_cast<Second>(secondary + 1);
  } else if (t.operand(0).component) {
    detail.second = Second::Merge;
  }
  const Place d = t.destination(whole(t.operand(0)), Type::B32);
  const Place a = t.source(whole(t.operand(1)), Type::B32), b = t.source(whole(t.operand(2)), Type::B32);
  const Place c = detail.second == Second::None ? a : t.source(3, Type::B32);
  Op& op = t.emit(handler);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = c;
  t.detail<ScalarDetail>() = detail;
}

/// vadd, vsub, vabsdiff, vmin, vmax
template <class F>
void translate_scalar(Translation& t) {
  const Type result = take_type_of(t, types32), first = take_type_of(t, types32);
  const Type second = take_type_of(t, types32);
  emit_scalar(t, run_scalar<F>, result, first, second);
}

template <template <bool> class Shift>
void translate_shift(Translation& t) {
  const Type result = take_type_of(t, types32), first = take_type_of(t, types32);
  const Type second = take_type_of(t, {Type::U32});
  const int mode = t.take_one_of({"clamp", "wrap"});
  if (mode < 0) t.unsupported("it needs .clamp or .wrap");
  emit_scalar(t, mode == 0 ? run_scalar<Shift<false>> : run_scalar<Shift<true>>, result, first, second);
}

/// make(Set<...>{}) for the comparison among the modifiers.
template <class Make>
Handler take_comparison(Translation& t, Make make) {
  switch (t.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"})) {
    case 0:
      return make(Set<Equal>{});
    case 1:
      return make(Set<Less | Greater | Unordered>{});
    case 2:
      return make(Set<Less>{});
    case 3:
      return make(Set<Less | Equal>{});
    case 4:
      return make(Set<Greater>{});
    case 5:
      return make(Set<Greater | Equal>{});
    default:
      t.unsupported("a comparison is missing");
  }
}

struct MadDetail : Detail {
  Part a, b;
  bool product_negated = false, addend_negated = false, plus_one = false, is_signed = false,
       saturates = false;
  uint32_t shift = 0;
};

void run_vmad(Context& context, const Op& op) {
  const auto& d = op.details<MadDetail>();
  const uint32_t* a = context.lanes<const uint32_t>(op.a);
  const uint32_t* b = context.lanes<const uint32_t>(op.b);
  const uint32_t* c = context.lanes<const uint32_t>(op.c);
  uint32_t* destination = context.lanes<uint32_t>(op.destination);
  const Part word{0, 32, d.is_signed};
  each_lane(context, [&](int i) {
    const Number product = d.a.value(a[i]) * d.b.value(b[i]);
    // A negated addend is its complement, as a number, plus one.
    const Number addend = d.addend_negated ? word.value(~c[i]) + 1 : word.value(c[i]);
    const Number sum = (d.product_negated ? -product : product) + addend + (d.plus_one ? 1 : 0);
    const Number scaled = sum >> d.shift;
    destination[i] = static_cast<uint32_t>(d.saturates ? word.clamped(scaled) : scaled);
  });
}

/// For instructions on 2 or 4 parts of registers at once.
struct ParallelDetail : Detail {
  std::array<uint8_t, 4> a{}, b{};  ///< for each part of the result: the part of b:a it takes
  uint32_t mask = 0;                ///< parts that are computed; the others are taken from c
  bool a_signed = false, b_signed = false, d_signed = false, saturates = false, accumulates = false;
};

template <uint32_t parts, class F>
void run_parallel(Context& context, const Op& op) {
  constexpr uint32_t bits = 32 / parts, low = (1u << bits) - 1;
  const auto& d = op.details<ParallelDetail>();
  const uint32_t* words[] = {context.lanes<const uint32_t>(op.a), context.lanes<const uint32_t>(op.b)};
  const uint32_t* c = context.lanes<const uint32_t>(op.c);
  uint32_t taken = 0;
  for (uint32_t k = 0; k < parts; ++k) taken |= d.mask >> k & 1 ? low << (bits * k) : 0;
  alignas(64) uint32_t result[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) result[i] = d.accumulates ? c[i] : c[i] & ~taken;
  const int32_t least = d.d_signed ? -(1 << (bits - 1)) : 0;
  const int32_t most = d.d_signed ? (1 << (bits - 1)) - 1 : static_cast<int32_t>(low);
  for (uint32_t k = 0; k < parts; ++k) {
    if (!(d.mask >> k & 1)) continue;
    const uint32_t* a = words[d.a[k] / parts];
    const uint32_t* b = words[d.b[k] / parts];
    // Moves the part to the top, then down again with or without its sign.
    const uint32_t up_a = 32 - bits - bits * (d.a[k] % parts), up_b = 32 - bits - bits * (d.b[k] % parts);
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      const uint32_t x = a[i] << up_a, y = b[i] << up_b;
      const int32_t u =
          d.a_signed ? static_cast<int32_t>(x) >> (32 - bits) : static_cast<int32_t>(x >> (32 - bits));
      const int32_t v =
          d.b_signed ? static_cast<int32_t>(y) >> (32 - bits) : static_cast<int32_t>(y >> (32 - bits));
      int32_t r = F{}(u, v);
      if (d.saturates) r = std::clamp(r, least, most);
      if (d.accumulates)
        result[i] += static_cast<uint32_t>(r);
      else
        result[i] |= (static_cast<uint32_t>(r) & low) << (bits * k);
    }
  }
  write_lanes(context, context.lanes<uint32_t>(op.destination), result);
}

/// For each part of the result, the part of b:a it takes, from a selector such as .b7654, highest first.
std::array<uint8_t, 4> take_parts(Translation& t, const ptx::Operand& operand, uint32_t parts,
                                  uint32_t first) {
  std::array<uint8_t, 4> result{};
  for (uint32_t k = 0; k < parts; ++k) result[k] = static_cast<uint8_t>(first + k);
  if (operand.component == 0) return result;
  const std::string_view digits = operand.text.substr(1);
  if (operand.text[0] != (parts == 4 ? 'b' : 'h') || digits.size() != parts)
    t.unsupported("the selector ." + std::string(operand.text) + " is not supported here");
  for (uint32_t k = 0; k < parts; ++k) result[k] = static_cast<uint8_t>(digits[parts - 1 - k] - '0');
  return result;
}

uint32_t take_mask(Translation& t, const ptx::Operand& operand, uint32_t parts) {
  if (operand.component == 0) return (1u << parts) - 1;
  uint32_t mask = 0;
  bool valid = operand.text[0] == (parts == 4 ? 'b' : 'h');
  for (const char digit : operand.text.substr(1)) {
    const uint32_t bit = 1u << (digit - '0');
    valid &= bit < 1u << parts && (mask == 0 || bit < mask);
    mask |= bit;
  }
  if (!valid) t.unsupported("the mask ." + std::string(operand.text) + " is not supported here");
  return mask;
}

template <uint32_t parts>
void emit_parallel(Translation& t, Handler handler, Type result, Type first, Type second) {
  ParallelDetail detail;
  detail.accumulates = t.take("add");
  detail.saturates = t.take("sat");
  if (detail.accumulates && detail.saturates) t.unsupported(".sat and .add do not go together");
  detail.a_signed = first == Type::S32;
  detail.b_signed = second == Type::S32;
  detail.d_signed = result == Type::S32;
  detail.mask = take_mask(t, t.operand(0), parts);
  detail.a = take_parts(t, t.operand(1), parts, 0);
  detail.b = take_parts(t, t.operand(2), parts, parts);
  const Place d = t.destination(whole(t.operand(0)), Type::B32);
  const Place a = t.source(whole(t.operand(1)), Type::B32), b = t.source(whole(t.operand(2)), Type::B32);
  const Place c = t.source(3, Type::B32);
  Op& op = t.emit(handler);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = c;
  t.detail<ParallelDetail>() = detail;
}

template <uint32_t parts, class F>
void translate_parallel(Translation& t) {
  const Type result = take_type_of(t, types32), first = take_type_of(t, types32);
  const Type second = take_type_of(t, types32);
  emit_parallel<parts>(t, run_parallel<parts, F>, result, first, second);
}

template <uint32_t parts>
void translate_parallel_set(Translation& t) {
  const Type first = take_type_of(t, types32), second = take_type_of(t, types32);
  const Handler h = take_comparison(t, [](auto f) -> Handler { return run_parallel<parts, decltype(f)>; });
  emit_parallel<parts>(t, h, Type::U32, first, second);
}

}  // namespace

void translate_vset(Translation& t) {
  const Type first = take_type_of(t, types32), second = take_type_of(t, types32);
  const Handler h = take_comparison(t, [](auto f) -> Handler { return run_scalar<decltype(f)>; });
  emit_scalar(t, h, Type::U32, first, second);
}

void translate_vmad(Translation& t) {
  take_type_of(t, types32);
  const Type first = take_type_of(t, types32), second = take_type_of(t, types32);
  MadDetail detail;
  detail.plus_one = t.take("po");
  detail.saturates = t.take("sat");
  const int scale = t.take_one_of({"shr7", "shr15"});
  detail.shift = scale < 0 ? 0 : scale == 0 ? 7 : 15;
  detail.a = part_of(t, t.operand(1), first);
  detail.b = part_of(t, t.operand(2), second);
  detail.product_negated = t.operand(1).negated != t.operand(2).negated;
  detail.addend_negated = t.operand(3).negated;
  if (detail.plus_one + detail.product_negated + detail.addend_negated > 1)
    t.unsupported("only one of the product, the addend and .po can add one");
  detail.is_signed =
      first == Type::S32 || second == Type::S32 || detail.product_negated || detail.addend_negated;
  const Place d = t.destination(0, Type::B32);
  const Place a = t.source(whole(t.operand(1)), Type::B32), b = t.source(whole(t.operand(2)), Type::B32);
  const Place c = t.source(whole(t.operand(3)), Type::B32);
  Op& op = t.emit(run_vmad);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = c;
  t.detail<MadDetail>() = detail;
}

void translate_vadd(Translation& t) {
  translate_scalar<Add>(t);
}
void translate_vsub(Translation& t) {
  translate_scalar<Sub>(t);
}
void translate_vabsdiff(Translation& t) {
  translate_scalar<AbsoluteDifference>(t);
}
void translate_vmin(Translation& t) {
  translate_scalar<Min>(t);
}
void translate_vmax(Translation& t) {
  translate_scalar<Max>(t);
}
void translate_vshl(Translation& t) {
  translate_shift<ShiftedLeft>(t);
}
void translate_vshr(Translation& t) {
  translate_shift<ShiftedRight>(t);
}
void translate_vadd2(Translation& t) {
  translate_parallel<2, Add>(t);
}
void translate_vsub2(Translation& t) {
  translate_parallel<2, Sub>(t);
}
void translate_vavrg2(Translation& t) {
  translate_parallel<2, Average>(t);
}
void translate_vabsdiff2(Translation& t) {
  translate_parallel<2, AbsoluteDifference>(t);
}
void translate_vmin2(Translation& t) {
  translate_parallel<2, Min>(t);
}
void translate_vmax2(Translation& t) {
  translate_parallel<2, Max>(t);
}
void translate_vset2(Translation& t) {
  translate_parallel_set<2>(t);
}
void translate_vadd4(Translation& t) {
  translate_parallel<4, Add>(t);
}
void translate_vsub4(Translation& t) {
  translate_parallel<4, Sub>(t);
}
void translate_vavrg4(Translation& t) {
  translate_parallel<4, Average>(t);
}
void translate_vabsdiff4(Translation& t) {
  translate_parallel<4, AbsoluteDifference>(t);
}
void translate_vmin4(Translation& t) {
  translate_parallel<4, Min>(t);
}
void translate_vmax4(Translation& t) {
  translate_parallel<4, Max>(t);
}
void translate_vset4(Translation& t) {
  translate_parallel_set<4>(t);
}

}  // namespace simt::functional
