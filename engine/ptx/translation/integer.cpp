/// Integer arithmetic, with the carry flag of extended precision, and dot products of bytes.
#include "operations/words.hpp"
#include "ptx/translation/arithmetic.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/integer_types.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

template <class T>
void run_mul_wide(Context& c, const Op& op) {
  map_lanes<typename Wide<T>::type, T, T>(c, op.destination, MulWide{}, op.a, op.b);
}
template <class T>
void run_mad_wide(Context& c, const Op& op) {
  using W = typename Wide<T>::type;
  map_lanes<W, T, T, W>(
      c, op.destination, [](T a, T b, W d) { return Add{}(MulWide{}(a, b), d); }, op.a, op.b, op.c);
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

bool is_bytes(Type type) {
  return type == Type::U8x4 || type == Type::S8x4;
}
bool is_halves(Type type) {
  return type == Type::U16x2 || type == Type::S16x2;
}

/// F of the parts of words, of type U8x4, S8x4, U16x2 or S16x2.
template <class F>
Handler parts_binary(Type type) {
  switch (type) {
    case Type::U8x4:
      return run_binary<Bytes<F, uint8_t>, uint32_t>;
    case Type::S8x4:
      return run_binary<Bytes<F, int8_t>, uint32_t>;
    case Type::U16x2:
      return run_binary<Halves<F, uint16_t>, uint32_t>;
    default:
      return run_binary<Halves<F, int16_t>, uint32_t>;
  }
}

template <class F>
void translate_sum(Translation& t, bool subtracts) {
  if (has(t, "cc")) return translate_carry(t, subtracts, false);
  const bool saturates = t.take("sat");
  const Type type = t.take_type();
  if (is_bytes(type) || (!subtracts && is_halves(type))) {
    emit_binary(t, saturates ? parts_binary<Saturated<F>>(type) : parts_binary<F>(type), Type::B32);
    return;
  }
  if (saturates) {
    if (type != Type::S32 && (subtracts || type != Type::U32))
      t.unsupported(".sat does not exist for the type ." + std::string(ptx::name(type)));
    emit_binary(t, type == Type::S32 ? run_binary<Saturated<F>, int32_t> : run_binary<Saturated<F>, uint32_t>,
                type);
    return;
  }
  if (std::find(plain_types.begin(), plain_types.end(), type) == plain_types.end())
    t.unsupported("it does not exist for the type ." + std::string(ptx::name(type)));
  Op& op = emit_binary(t, wrapping_binary<F>(t, type), type);
  const bool wide = ptx::bytes(type) == 8;
  if (ptx::bytes(type) >= 4)
    op.clock_use = {.kind = ClockUse::Sum, .wide_operands = wide, .wide_result = wide};
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
    emit_ternary(t, run_ternary<MulThen<MulHigh, Saturated<Add>>, int32_t>, type);
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
  if (type == Type::S16x2 || type == Type::S8x4 || (!relu && (is_halves(type) || is_bytes(type)))) {
    emit_binary(t, relu ? parts_binary<Relu<F>>(type) : parts_binary<F>(type), Type::B32);
  } else if (relu) {
    if (type != Type::S32) t.unsupported(".relu exists for .s32, .s16x2 and .s8x4 only");
    emit_binary(t, run_binary<Relu<F>, int32_t>, type);
  } else {
    emit_binary(t, typed_binary<F>(t, type), type);
  }
}

}  // namespace

void translate_integer(Translation& t, Arithmetic operation) {
  switch (operation) {
    case Arithmetic::Add:
      return translate_sum<Add>(t, false);
    case Arithmetic::Sub:
      return translate_sum<Sub>(t, true);
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
      if (t.take("s8x4")) {
        emit_unary(t, run_unary<NegatedBytes, uint32_t>, Type::B32);
        return;
      }
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
    emit_ternary(t, run_ternary<MulThen<Mul24High, Saturated<Add>>, int32_t>, type);
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
  emit_ternary(t, dot4_handler(a, b), Type::B32);
}

void translate_dp2a(Translation& t) {
  const int part = t.take_one_of({"lo", "hi"});
  if (part < 0) t.unsupported("it needs .lo or .hi");
  const bool a = take_type_of(t, types32) == Type::S32, b = take_type_of(t, types32) == Type::S32;
  emit_ternary(t, dot2_handler(part == 1, a, b), Type::B32);
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
