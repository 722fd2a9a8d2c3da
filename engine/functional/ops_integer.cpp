/// Integer arithmetic, with the carry flag of extended precision, and dot products of bytes.
#include <limits>

#include "functional/arithmetic.hpp"
#include "functional/instructions.hpp"
#include "functional/integer_types.hpp"
#include "functional/lanes.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

/// The type of twice the width.
template <class T>
struct Wide;
template <>
struct Wide<uint16_t> {
  using type = uint32_t;
};
template <>
struct Wide<int16_t> {
  using type = int32_t;
};
template <>
struct Wide<uint32_t> {
  using type = uint64_t;
};
template <>
struct Wide<int32_t> {
  using type = int64_t;
};
template <>
struct Wide<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Wide<int64_t> {
  using type = __int128;
};

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct AddSaturated {
  int32_t operator()(int32_t a, int32_t b) const {
    // Overflows if the sum's sign differs from both operands'.
    const uint32_t sum = static_cast<uint32_t>(a) + static_cast<uint32_t>(b);
    const int32_t limit = a < 0 ? INT32_MIN : INT32_MAX;
    const bool overflows =
        static_cast<int32_t>((sum ^ static_cast<uint32_t>(a)) & (sum ^ static_cast<uint32_t>(b))) < 0;
    return overflows ? limit : static_cast<int32_t>(sum);
  }
};
struct SubSaturated {
  int32_t operator()(int32_t a, int32_t b) const {
    const uint32_t difference = static_cast<uint32_t>(a) - static_cast<uint32_t>(b);
    const int32_t limit = a < 0 ? INT32_MIN : INT32_MAX;
    const bool overflows = static_cast<int32_t>((static_cast<uint32_t>(a) ^ static_cast<uint32_t>(b)) &
                                                (difference ^ static_cast<uint32_t>(a))) < 0;
    return overflows ? limit : static_cast<int32_t>(difference);
  }
};
struct MulLow {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct MulHigh {
  template <class T>
  T operator()(T a, T b) const {
    using W = typename Wide<T>::type;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
  }
};
/// The low 24 bits of an operand, sign- or zero-extended.
template <class T>
inline T low24(T v) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(static_cast<uint32_t>(v) << 8) >> 8;
  else
    return v & 0xffffffu;
}
struct Mul24Low {
  template <class T>
  T operator()(T a, T b) const {
    return MulLow{}(low24(a), low24(b));
  }
};
/// Bits 16 to 47 of the 48-bit product.
struct Mul24High {
  template <class T>
  T operator()(T a, T b) const {
    using W = typename Wide<T>::type;
    return static_cast<T>((static_cast<W>(low24(a)) * static_cast<W>(low24(b))) >> 16);
  }
};
/// A product, then a sum.
template <class Product, class Sum>
struct MulThen {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Sum{}(Product{}(a, b), c);
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(c, a < b ? Sub{}(b, a) : Sub{}(a, b));
  }
};

/// Division as in the code that ptxas generates: division by zero gives all ones for both quotient and
/// remainder; the most negative number divided by -1 gives itself, with remainder 0.
template <class T>
inline T quotient(T a, T b) {
  if constexpr (sizeof(T) <= 4) {
    // Exact: a quotient that is not an integer is further from the next integer than the rounding error of a
    // type with more bits than the operands.
    using Real = std::conditional_t<sizeof(T) == 4, double, float>;
    const bool negates = std::is_signed_v<T> && b == static_cast<T>(-1);  // the quotient may overflow
    const Real q = static_cast<Real>(a) / static_cast<Real>(b == 0 || negates ? T{1} : b);
    using Whole = std::conditional_t<sizeof(T) == 4, T, int32_t>;
    const T result = negates ? Sub{}(T{0}, a) : static_cast<T>(static_cast<Whole>(q));
    return b == 0 ? static_cast<T>(-1) : result;
  } else {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub{}(T{0}, a);
    // Processors divide short numbers faster.
    if ((static_cast<uint64_t>(a | b) >> 32) == 0)
      return static_cast<T>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b));
    return static_cast<T>(a / b);
  }
}
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return quotient(a, b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    const T rest = Sub{}(a, MulLow{}(quotient(a, b), b));
    return b == 0 ? static_cast<T>(-1) : rest;
  }
};

struct Neg {
  template <class T>
  T operator()(T a) const {
    return Sub{}(T{0}, a);
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Sub{}(T{0}, a) : a;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
/// Applies F, then replaces negative results by 0.
template <class F>
struct Relu {
  template <class T>
  T operator()(T a, T b) const {
    return Max{}(F{}(a, b), T{0});
  }
};

template <class T>
void run_mul_wide(Context& c, const Op& op) {
  using W = typename Wide<T>::type;
  map_lanes<W, T, T>(
      c, op.destination, [](T a, T b) { return static_cast<W>(static_cast<W>(a) * static_cast<W>(b)); }, op.a,
      op.b);
}
template <class T>
void run_mad_wide(Context& c, const Op& op) {
  using W = typename Wide<T>::type;
  map_lanes<W, T, T, W>(
      c, op.destination,
      [](T a, T b, W d) { return Add{}(static_cast<W>(static_cast<W>(a) * static_cast<W>(b)), d); }, op.a,
      op.b, op.c);
}

template <class F>
Handler typed_unary(Translation& t, Type type) {
  return by_integer_type(t, type, [](auto v) -> Handler { return run_unary<F, decltype(v)>; });
}
template <class F>
Handler typed_binary(Translation& t, Type type) {
  return by_integer_type(t, type, [](auto v) -> Handler { return run_binary<F, decltype(v)>; });
}
template <class F>
Handler typed_ternary(Translation& t, Type type) {
  return by_integer_type(t, type, [](auto v) -> Handler { return run_ternary<F, decltype(v)>; });
}
template <class F>
Handler wrapping_unary(Translation& t, Type type) {
  return by_size(t, type, [](auto v) -> Handler { return run_unary<F, decltype(v)>; });
}
template <class F>
Handler wrapping_binary(Translation& t, Type type) {
  return by_size(t, type, [](auto v) -> Handler { return run_binary<F, decltype(v)>; });
}
template <class F>
Handler wrapping_ternary(Translation& t, Type type) {
  return by_size(t, type, [](auto v) -> Handler { return run_ternary<F, decltype(v)>; });
}

constexpr std::initializer_list<Type> plain_types{Type::U16, Type::U32, Type::U64,
                                                  Type::S16, Type::S32, Type::S64};
constexpr std::initializer_list<Type> signed_types{Type::S16, Type::S32, Type::S64};
constexpr std::initializer_list<Type> carry_types{Type::U32, Type::U64, Type::S32, Type::S64};
constexpr std::initializer_list<Type> types32{Type::U32, Type::S32};

/// Sums with the carry flag. A difference is a + ~b + 1, so its flag is 1 if nothing is borrowed, and both
/// kinds of instruction can follow each other in a chain, as in machine code (IADD3.X).
enum class Multiply : uint8_t { None, Low, High };

/// a + b or a - b, or product + c. Op::immediate: place of the carry flag.
template <class T, Multiply multiply, bool subtracts>
void run_carry(Context& c, const Op& op, bool carry_in, bool carry_out) {
  using U = std::make_unsigned_t<T>;
  const T* a = c.lanes<const T>(op.a);
  const T* b = c.lanes<const T>(op.b);
  const auto flag = static_cast<Place>(op.immediate);
  const uint32_t carries = carry_in ? c.predicate(flag) : subtracts ? full_mask : 0;
  alignas(64) U result[warp_lanes];
  alignas(32) uint8_t out[warp_lanes];
  const U* addend = c.lanes<const U>(multiply == Multiply::None ? op.b : op.c);
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    U first = static_cast<U>(a[i]);
    if constexpr (multiply == Multiply::Low) first = static_cast<U>(MulLow{}(a[i], b[i]));
    if constexpr (multiply == Multiply::High) first = static_cast<U>(MulHigh{}(a[i], b[i]));
    const U second = subtracts ? static_cast<U>(~addend[i]) : addend[i];
    const U one = (carries >> i) & 1;
    const U sum = first + second;
    result[i] = sum + one;
    out[i] = (sum < first) | (result[i] < sum);
  }
  write_lanes(c, c.lanes<U>(op.destination), result);
  if (carry_out) write_predicate(c, flag, gather_bits(out));
}
template <class T, Multiply multiply, bool subtracts, bool carry_in, bool carry_out>
void run_carry(Context& c, const Op& op) {
  run_carry<T, multiply, subtracts>(c, op, carry_in, carry_out);
}

template <Multiply multiply, bool subtracts>
Handler carry_handler(Translation& t, Type type, bool carry_in, bool carry_out) {
  return by_integer_type(t, type, [&](auto v) -> Handler {
    using T = decltype(v);
    if constexpr (sizeof(T) == 2)
      return nullptr;
    else if (!carry_in)
      return run_carry<T, multiply, subtracts, false, true>;
    else if (carry_out)
      return run_carry<T, multiply, subtracts, true, true>;
    else
      return run_carry<T, multiply, subtracts, true, false>;
  });
}

/// add.cc, addc{.cc}, sub.cc, subc{.cc}
void translate_carry(Translation& t, bool subtracts, bool carry_in) {
  const bool carry_out = t.take("cc");
  const Type type = take_type_of(t, carry_types);
  const Handler h = subtracts ? carry_handler<Multiply::None, true>(t, type, carry_in, carry_out)
                              : carry_handler<Multiply::None, false>(t, type, carry_in, carry_out);
  emit_binary(t, h, type).immediate = t.carry_flag();
}
/// mad{.lo,.hi}.cc, madc{.lo,.hi}{.cc}
void translate_mad_carry(Translation& t, bool carry_in) {
  const int part = t.take_one_of({"lo", "hi"});
  if (part < 0) t.unsupported("it needs .lo or .hi");
  const bool carry_out = t.take("cc");
  const Type type = take_type_of(t, carry_types);
  const Handler h = part == 0 ? carry_handler<Multiply::Low, false>(t, type, carry_in, carry_out)
                              : carry_handler<Multiply::High, false>(t, type, carry_in, carry_out);
  emit_ternary(t, h, type).immediate = t.carry_flag();
}

bool has(const Translation& t, std::string_view modifier) {
  return t.mnemonic().has(modifier);
}

template <class F, class Saturated>
void translate_sum(Translation& t, bool subtracts) {
  if (has(t, "cc")) return translate_carry(t, subtracts, false);
  if (t.take("sat")) {
    const Type type = take_type_of(t, {Type::S32});
    emit_binary(t, run_binary<Saturated, int32_t>, type);
    return;
  }
  const Type type = t.take_type();
  if (!subtracts && (type == Type::U16x2 || type == Type::S16x2)) {
    emit_binary(t, run_binary<Halves<F, uint16_t>, uint32_t>, Type::B32);
    return;
  }
  if (std::find(plain_types.begin(), plain_types.end(), type) == plain_types.end())
    t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  emit_binary(t, wrapping_binary<F>(t, type), type);
}

Type wide_type(Translation& t, Type type) {
  switch (type) {
    case Type::U16:
      return Type::U32;
    case Type::S16:
      return Type::S32;
    case Type::U32:
      return Type::U64;
    case Type::S32:
      return Type::S64;
    default:
      t.unsupported(".wide does not exist for the type ." + std::string(ptx::name(type)));
  }
}

void translate_product(Translation& t) {
  const int part = t.take_one_of({"lo", "hi", "wide"});
  const Type type = take_type_of(t, plain_types);
  switch (part) {
    case 0:
      emit_binary(t, wrapping_binary<MulLow>(t, type), type);
      return;
    case 1:
      emit_binary(t, typed_binary<MulHigh>(t, type), type);
      return;
    case 2: {
      const Place d = t.destination(0, wide_type(t, type)), a = t.source(1, type), b = t.source(2, type);
      Op& op = t.emit(type == Type::U16   ? run_mul_wide<uint16_t>
                      : type == Type::S16 ? run_mul_wide<int16_t>
                      : type == Type::U32 ? run_mul_wide<uint32_t>
                                          : run_mul_wide<int32_t>);
      op.destination = d;
      op.a = a;
      op.b = b;
      return;
    }
    default:
      t.unsupported("it needs .lo, .hi or .wide");
  }
}

void translate_product_sum(Translation& t) {
  if (has(t, "cc")) return translate_mad_carry(t, false);
  const int part = t.take_one_of({"lo", "hi", "wide"});
  if (part == 1 && t.take("sat")) {
    const Type type = take_type_of(t, {Type::S32});
    emit_ternary(t, run_ternary<MulThen<MulHigh, AddSaturated>, int32_t>, type);
    return;
  }
  const Type type = take_type_of(t, plain_types);
  switch (part) {
    case 0:
      emit_ternary(t, wrapping_ternary<MulThen<MulLow, Add>>(t, type), type);
      return;
    case 1:
      emit_ternary(t, typed_ternary<MulThen<MulHigh, Add>>(t, type), type);
      return;
    case 2: {
      const Type wide = wide_type(t, type);
      const Place d = t.destination(0, wide), a = t.source(1, type), b = t.source(2, type),
                  c = t.source(3, wide);
      Op& op = t.emit(type == Type::U16   ? run_mad_wide<uint16_t>
                      : type == Type::S16 ? run_mad_wide<int16_t>
                      : type == Type::U32 ? run_mad_wide<uint32_t>
                                          : run_mad_wide<int32_t>);
      op.destination = d;
      op.a = a;
      op.b = b;
      op.c = c;
      return;
    }
    default:
      t.unsupported("it needs .lo, .hi or .wide");
  }
}

template <class F>
void translate_min_max(Translation& t) {
  const bool relu = t.take("relu");
  const Type type = t.take_type();
  if (type == Type::U16x2 && !relu) {
    emit_binary(t, run_binary<Halves<F, uint16_t>, uint32_t>, Type::B32);
  } else if (type == Type::S16x2) {
    emit_binary(
        t, relu ? run_binary<Halves<Relu<F>, int16_t>, uint32_t> : run_binary<Halves<F, int16_t>, uint32_t>,
        Type::B32);
  } else if (relu) {
    if (type != Type::S32) t.unsupported(".relu exists for .s32 and .s16x2 only");
    emit_binary(t, run_binary<Relu<F>, int32_t>, type);
  } else {
    emit_binary(t, typed_binary<F>(t, type), type);
  }
}

/// Field `index` of `bits` bits, sign- or zero-extended according to T.
template <class T>
inline uint32_t field(uint32_t v, uint32_t index) {
  return static_cast<uint32_t>(static_cast<T>(v >> (8 * sizeof(T) * index)));
}

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

void translate_integer(Translation& t, Arithmetic operation) {
  switch (operation) {
    case Arithmetic::Add:
      return translate_sum<Add, AddSaturated>(t, false);
    case Arithmetic::Sub:
      return translate_sum<Sub, SubSaturated>(t, true);
    case Arithmetic::Mul:
      return translate_product(t);
    case Arithmetic::Mad:
      return translate_product_sum(t);
    case Arithmetic::Div: {
      const Type type = take_type_of(t, plain_types);
      emit_binary(t, typed_binary<Div>(t, type), type);
      return;
    }
    case Arithmetic::Rem: {
      const Type type = take_type_of(t, plain_types);
      emit_binary(t, typed_binary<Rem>(t, type), type);
      return;
    }
    case Arithmetic::Abs: {
      const Type type = take_type_of(t, signed_types);
      emit_unary(t, typed_unary<Abs>(t, type), type);
      return;
    }
    case Arithmetic::Neg: {
      const Type type = take_type_of(t, signed_types);
      emit_unary(t, wrapping_unary<Neg>(t, type), type);
      return;
    }
    case Arithmetic::Min:
      return translate_min_max<Min>(t);
    case Arithmetic::Max:
      return translate_min_max<Max>(t);
    case Arithmetic::Fma:
      t.unsupported("it exists for floating-point types only");
  }
}

void translate_mul24(Translation& t) {
  const int part = t.take_one_of({"lo", "hi"});
  if (part < 0) t.unsupported("it needs .lo or .hi");
  const Type type = take_type_of(t, types32);
  emit_binary(t, part == 0 ? typed_binary<Mul24Low>(t, type) : typed_binary<Mul24High>(t, type), type);
}

void translate_mad24(Translation& t) {
  const int part = t.take_one_of({"lo", "hi"});
  if (part < 0) t.unsupported("it needs .lo or .hi");
  if (part == 1 && t.take("sat")) {
    const Type type = take_type_of(t, {Type::S32});
    emit_ternary(t, run_ternary<MulThen<Mul24High, AddSaturated>, int32_t>, type);
    return;
  }
  const Type type = take_type_of(t, types32);
  emit_ternary(t,
               part == 0 ? typed_ternary<MulThen<Mul24Low, Add>>(t, type)
                         : typed_ternary<MulThen<Mul24High, Add>>(t, type),
               type);
}

void translate_sad(Translation& t) {
  const Type type = take_type_of(t, plain_types);
  emit_ternary(t, typed_ternary<Sad>(t, type), type);
}

void translate_dp4a(Translation& t) {
  const bool a = take_type_of(t, types32) == Type::S32, b = take_type_of(t, types32) == Type::S32;
  emit_ternary(t,
               a   ? b ? run_dp4a<int8_t, int8_t> : run_dp4a<int8_t, uint8_t>
               : b ? run_dp4a<uint8_t, int8_t>
                   : run_dp4a<uint8_t, uint8_t>,
               Type::B32);
}

void translate_dp2a(Translation& t) {
  const int part = t.take_one_of({"lo", "hi"});
  if (part < 0) t.unsupported("it needs .lo or .hi");
  const bool a = take_type_of(t, types32) == Type::S32, b = take_type_of(t, types32) == Type::S32;
  emit_ternary(t, part == 0 ? dp2a_handler<0>(a, b) : dp2a_handler<2>(a, b), Type::B32);
}

void translate_addc(Translation& t) {
  translate_carry(t, false, true);
}
void translate_subc(Translation& t) {
  translate_carry(t, true, true);
}
void translate_madc(Translation& t) {
  translate_mad_carry(t, true);
}

}  // namespace simt::functional
