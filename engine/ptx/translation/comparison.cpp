/// Comparison and selection: setp, set, selp, slct.
#include <array>
#include <bit>
#include <utility>

#include "operations/comparisons.hpp"
#include "operations/floats.hpp"
#include "ptx/translation/arithmetic.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/integer_types.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

/// The comparisons by their position among the modifiers. The first six are false of NaNs.
constexpr uint32_t comparisons[] = {Equal,
                                    Less | Greater,
                                    Less,
                                    Less | Equal,
                                    Greater,
                                    Greater | Equal,
                                    Equal | Unordered,
                                    Less | Greater | Unordered,
                                    Less | Unordered,
                                    Less | Equal | Unordered,
                                    Greater | Unordered,
                                    Greater | Equal | Unordered,
                                    Less | Equal | Greater,
                                    Unordered};
/// Of integers, which are never unordered.
constexpr uint32_t outcomes_of(uint32_t how, bool floating) {
  return comparisons[how] | (!floating && how == 1 ? uint32_t{Unordered} : 0u);
}

/// Converts the operands of a comparison to C++ numbers. `Lanes` is the type stored in registers.
template <class T>
struct Plain {
  using Lanes = T;
  static T value(T v) { return v; }
};
/// Subnormal numbers are flushed to zero.
struct Flushed {
  using Lanes = uint32_t;
  static float value(uint32_t bits) {
    return std::bit_cast<float>((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
  }
};
/// A 16-bit number, in the low or high half of the register.
template <bool high, bool flush>
struct Half {
  using Lanes = uint32_t;
  static float value(uint32_t lanes) {
    uint32_t bits = (high ? lanes >> 16 : lanes) & 0xffff;
    if (flush && (bits & 0x7c00) == 0) bits &= 0x8000;
    return functional::Half::widen_one(static_cast<uint16_t>(bits));
  }
};
template <bool high>
struct Brain {
  using Lanes = uint32_t;
  static float value(uint32_t lanes) {
    return std::bit_cast<float>(high ? lanes & 0xffff0000u : lanes << 16);
  }
};

/// Bits of the lanes for which Op::a compares true with Op::b.
using Test = uint32_t (*)(Context&, const Op&);

template <class V, uint32_t outcomes>
uint32_t test(Context& c, const Op& op) {
  using L = typename V::Lanes;
  return test_lanes<L, L>(
      c, [](L a, L b) { return compare<outcomes>(V::value(a), V::value(b)); }, op.a, op.b);
}

template <class V, bool floating, size_t... how>
constexpr std::array<Test, sizeof...(how)> tests(std::index_sequence<how...>) {
  return {test<V, outcomes_of(how, floating)>...};
}
template <class V, bool floating>
Test test_of(Translation& t, int how) {
  static constexpr auto all =
      tests<V, floating>(std::make_index_sequence<floating ? std::size(comparisons) : 6>());
  if (static_cast<size_t>(how) >= all.size())
    t.unsupported("this comparison exists for floating-point types only");
  return all[static_cast<size_t>(how)];
}

/// Shared by setp and set.
struct Comparison {
  Test test = nullptr;
  Test test_high = nullptr;  ///< for packed types: compares the upper halves
  int combine = -1;          ///< with a third operand: and, or, xor
  Type type = Type::None;
};

/// Takes the comparison, the operation that combines its result, and .ftz.
struct ComparisonModifiers {
  int how = 0, combine = -1;
  bool flush = false, unsigned_only = false;
};
ComparisonModifiers take_comparison(Translation& t) {
  ComparisonModifiers m;
  m.how = t.take_one_of(
      {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (m.how < 0) {
    const int unsigned_how = t.take_one_of({"lo", "ls", "hi", "hs"});
    if (unsigned_how < 0) t.unsupported("a comparison is missing");
    m.how = 2 + unsigned_how;
    m.unsigned_only = true;
  }
  m.combine = t.take_one_of({"and", "or", "xor"});
  m.flush = t.take("ftz");
  return m;
}

Comparison comparison_of(Translation& t, const ComparisonModifiers& m, Type type) {
  Comparison c;
  c.combine = m.combine;
  c.type = type;
  const int how = m.how;
  const bool is_half = type == Type::F16 || type == Type::F16x2;
  if (m.flush && !is_half && type != Type::F32) t.unsupported(".ftz is for .f16, .f16x2 and .f32 only");
  const bool bits = type == Type::B16 || type == Type::B32 || type == Type::B64;
  if (bits && (how > 1 || m.unsigned_only)) t.unsupported("untyped bits can only be equal or not");
  const bool is_unsigned = type == Type::U16 || type == Type::U32 || type == Type::U64;
  if (m.unsigned_only && !is_unsigned) t.unsupported("this comparison is for unsigned types only");
  switch (type) {
    case Type::B16:
    case Type::U16:
      c.test = test_of<Plain<uint16_t>, false>(t, how);
      break;
    case Type::S16:
      c.test = test_of<Plain<int16_t>, false>(t, how);
      break;
    case Type::B32:
    case Type::U32:
      c.test = test_of<Plain<uint32_t>, false>(t, how);
      break;
    case Type::S32:
      c.test = test_of<Plain<int32_t>, false>(t, how);
      break;
    case Type::B64:
    case Type::U64:
      c.test = test_of<Plain<uint64_t>, false>(t, how);
      break;
    case Type::S64:
      c.test = test_of<Plain<int64_t>, false>(t, how);
      break;
    case Type::F32:
      c.test = m.flush ? test_of<Flushed, true>(t, how) : test_of<Plain<float>, true>(t, how);
      break;
    case Type::F64:
      c.test = test_of<Plain<double>, true>(t, how);
      break;
    case Type::F16:
    case Type::F16x2:
      c.test = m.flush ? test_of<Half<false, true>, true>(t, how) : test_of<Half<false, false>, true>(t, how);
      if (type == Type::F16x2)
        c.test_high =
            m.flush ? test_of<Half<true, true>, true>(t, how) : test_of<Half<true, false>, true>(t, how);
      break;
    case Type::BF16:
    case Type::BF16x2:
      c.test = test_of<Brain<false>, true>(t, how);
      if (type == Type::BF16x2) c.test_high = test_of<Brain<true>, true>(t, how);
      break;
    default:
      t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  }
  return c;
}

struct SetDetail : Detail {
  Test test = nullptr, test_high = nullptr;
  int combine = -1;
  PredicateOperand with;
  Place second = place::none;  ///< setp's second destination
  uint32_t one = 0;            ///< set: the value for true
};

uint32_t combined(const SetDetail& d, uint32_t bits, uint32_t with) {
  switch (d.combine) {
    case 0:
      return bits & with;
    case 1:
      return bits | with;
    case 2:
      return bits ^ with;
    default:
      return bits;
  }
}
uint32_t third_operand(const Context& c, const SetDetail& d) {
  if (d.combine < 0) return 0;
  return c.predicate(d.with.place) ^ (d.with.negated ? full_mask : 0);
}

/// setp with one destination and no third operand, for the usual comparisons.
template <Test test>
void run_setp_simple(Context& c, const Op& op) {
  write_predicate(c, op.destination, test(c, op));
}

void run_setp(Context& c, const Op& op) {
  const auto& d = op.details<SetDetail>();
  const uint32_t with = third_operand(c, d), bits = d.test(c, op);
  // The second destination gets the result of the upper halves, or the negated comparison.
  uint32_t second = ~bits;
  if (d.test_high && d.second != place::none) second = d.test_high(c, op);
  write_predicate(c, op.destination, combined(d, bits, with));
  if (d.second != place::none) write_predicate(c, d.second, combined(d, second, with));
}

/// Simple setp: performs the comparison of `test` without the indirection.
template <class T, size_t... how>
constexpr std::array<Handler, sizeof...(how)> simple_handlers(std::index_sequence<how...>) {
  return {run_setp_simple<test<Plain<T>, outcomes_of(how, std::is_floating_point_v<T>)>>...};
}
template <class T>
Handler simple_setp(int how) {
  static constexpr auto handlers = simple_handlers<T>(std::make_index_sequence<6>());
  return handlers[static_cast<size_t>(how)];
}

void run_set(Context& c, const Op& op) {
  const auto& d = op.details<SetDetail>();
  const uint32_t with = third_operand(c, d), bits = combined(d, d.test(c, op), with);
  const uint32_t high = d.test_high ? combined(d, d.test_high(c, op), with) : 0;
  alignas(64) uint32_t result[warp_lanes];
  const uint32_t one = d.one & (d.test_high ? 0xffff : full_mask), high_one = d.one & 0xffff0000u;
  for (uint32_t i = 0; i < warp_lanes; ++i)
    result[i] = ((bits >> i) & 1 ? one : 0) | (d.test_high && (high >> i) & 1 ? high_one : 0);
  write_lanes(c, c.lanes<uint32_t>(op.destination), result);
}

/// The value set writes for true: 1.0 for floating-point types, all ones for integers.
uint32_t true_value(Translation& t, Type type) {
  switch (type) {
    case Type::U32:
    case Type::S32:
      return 0xffffffffu;
    case Type::U16:
    case Type::S16:
      return 0xffffu;
    case Type::F32:
      return 0x3f800000u;
    case Type::F16:
      return 0x3c00u;
    case Type::F16x2:
      return 0x3c003c00u;
    case Type::BF16:
      return 0x3f80u;
    case Type::BF16x2:
      return 0x3f803f80u;
    default:
      t.unsupported("it has no destination of the type ." + std::string(ptx::name(type)));
  }
}

/// d = p ? a : b. Op::immediate: whether the predicate is negated.
template <class L>
void run_selp(Context& c, const Op& op) {
  const uint32_t p = c.predicate(op.c) ^ (op.immediate ? full_mask : 0);
  const L* a = c.lanes<const L>(op.a);
  const L* b = c.lanes<const L>(op.b);
  L* d = c.lanes<L>(op.destination);
  if (c.full()) {
#pragma GCC ivdep
    for (uint32_t i = 0; i < warp_lanes; ++i) d[i] = (p >> i) & 1 ? a[i] : b[i];
    return;
  }
  const uint32_t mask = c.mask;
#pragma GCC ivdep
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    const L r = (p >> i) & 1 ? a[i] : b[i];
    d[i] = (mask >> i) & 1 ? r : d[i];
  }
}

/// d = c >= 0 ? a : b, where c is an integer or a number; NaN counts as less.
template <class L, class S, bool flush>
void run_slct(Context& c, const Op& op) {
  map_lanes<L, L, L, S>(
      c, op.destination,
      [](L a, L b, S s) {
        if constexpr (flush) return Flushed::value(std::bit_cast<uint32_t>(s)) >= 0 ? a : b;
        return s >= 0 ? a : b;
      },
      op.a, op.b, op.c);
}

}  // namespace

void translate_setp(Translation& t) {
  const ComparisonModifiers m = take_comparison(t);
  const Type type = t.take_type();
  const Comparison comparison = comparison_of(t, m, type);
  const ptx::Operand& destinations = t.operand(0);
  const bool two = destinations.kind == OperandKind::Pair;
  const Place p = t.predicate_destination(two ? t.part(destinations, 0) : destinations);
  const Place q = two ? t.predicate_destination(t.part(destinations, 1)) : place::none;
  const Type operand_type = comparison.test_high ? Type::B32 : type;
  const Place a = t.source(1, operand_type), b = t.source(2, operand_type);
  PredicateOperand with;
  if (m.combine >= 0) with = t.predicate_source(t.operand(3));
  Handler simple = nullptr;
  if (!two && m.combine < 0 && !m.flush && m.how < 6) {
    if (type == Type::F32)
      simple = simple_setp<float>(m.how);
    else if (type == Type::F64)
      simple = simple_setp<double>(m.how);
    else if (!ptx::is_float(type))
      simple = by_integer_type(t, type, [&](auto v) { return simple_setp<decltype(v)>(m.how); });
  }
  Op& op = t.emit(simple ? simple : run_setp);
  op.destination = p;
  op.a = a;
  op.b = b;
  const bool orders = m.how >= 2, wide = ptx::bytes(type) == 8;
  if (simple && !ptx::is_float(type) && ptx::bytes(type) >= 4)
    op.clock_use = {.kind = orders ? ClockUse::Order : ClockUse::Equality,
                    .wide_operands = wide,
                    .is_signed = ptx::is_signed(type)};
  if (simple) return;
  SetDetail& d = t.detail<SetDetail>();
  d.test = comparison.test;
  d.test_high = comparison.test_high;
  d.combine = m.combine;
  d.with = with;
  d.second = q;
}

void translate_set(Translation& t) {
  const ComparisonModifiers m = take_comparison(t);
  const Type result = t.take_type(), type = t.take_type();
  const Comparison comparison = comparison_of(t, m, type);
  const uint32_t one = true_value(t, result);
  const bool packed = comparison.test_high != nullptr;
  if ((result == Type::F16x2 || result == Type::BF16x2) && result != type)
    t.unsupported("a packed destination needs operands of the same type");
  if (packed && result != type && result != Type::U32 && result != Type::S32)
    t.unsupported("packed operands need a destination of the same type, .u32 or .s32");
  if ((result == Type::U16 || result == Type::S16) && type != Type::F16 && type != Type::BF16)
    t.unsupported("a destination of 16 bits needs operands of the type .f16 or .bf16");
  const Place d = t.destination(0, result);
  const Type operand_type = packed ? Type::B32 : type;
  const Place a = t.source(1, operand_type), b = t.source(2, operand_type);
  PredicateOperand with;
  if (m.combine >= 0) with = t.predicate_source(t.operand(3));
  Op& op = t.emit(run_set);
  op.destination = d;
  op.a = a;
  op.b = b;
  SetDetail& detail = t.detail<SetDetail>();
  detail.test = comparison.test;
  detail.test_high = comparison.test_high;
  detail.combine = m.combine;
  detail.with = with;
  detail.one = one;
}

void translate_selp(Translation& t) {
  const Type type = t.take_type();
  const uint32_t bytes = ptx::bytes(type);
  if (bytes < 2 || bytes > 8)
    t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  const Place d = t.destination(0, type), a = t.source(1, type), b = t.source(2, type);
  const PredicateOperand p = t.predicate_source(t.operand(3));
  Op& op = t.emit(bytes == 8 ? run_selp<uint64_t> : run_selp<uint32_t>);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = p.place;
  op.immediate = p.negated;
  if (bytes >= 4)
    op.clock_use = {.kind = ClockUse::Choice, .wide_operands = bytes == 8, .wide_result = bytes == 8};
}

void translate_slct(Translation& t) {
  const bool flush = t.take("ftz");
  const Type type = t.take_type(), selector = take_type_of(t, {Type::S32, Type::F32});
  const uint32_t bytes = ptx::bytes(type);
  if (bytes < 2 || bytes > 8)
    t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  if (flush && selector != Type::F32) t.unsupported(".ftz is for a selector of type .f32");
  const Place d = t.destination(0, type), a = t.source(1, type), b = t.source(2, type);
  const Place s = t.source(3, selector);
  const bool is_wide = bytes == 8;
  Handler h;
  if (selector == Type::S32)
    h = is_wide ? run_slct<uint64_t, int32_t, false> : run_slct<uint32_t, int32_t, false>;
  else if (flush)
    h = is_wide ? run_slct<uint64_t, float, true> : run_slct<uint32_t, float, true>;
  else
    h = is_wide ? run_slct<uint64_t, float, false> : run_slct<uint32_t, float, false>;
  Op& op = t.emit(h);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = s;
}

}  // namespace simt::functional
