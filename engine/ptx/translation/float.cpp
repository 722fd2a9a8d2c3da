/// Floating-point arithmetic: add, sub, mul, fma, mad, div, rcp, sqrt, min, max, abs, neg, copysign, testp.
#include <array>

#include "operations/conversion.hpp"
#include "operations/float_operations.hpp"
#include "ptx/translation/arithmetic.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

using ptx::Type;
using namespace float_operations;

template <class F>
constexpr bool changes_signs = std::is_same_v<F, Abs> || std::is_same_v<F, Neg>;

template <class F, bool ftz, Clamp clamp, class... P>
void run_f32(Context& c, Place destination, P... sources) {
  const auto compute = [](auto... operands) { return rounded<F, ftz, clamp>(operands...); };
  map_lanes<float, std::enable_if_t<true || sizeof(P), float>...>(
      c, destination, [compute](auto... v) { return compute(operand<ftz>(v)...); }, sources...);
}

/// Handles NaNs only if there are any.
template <class F, class... P>
void run_f64(Context& c, Place destination, P... sources) {
  alignas(64) double r[warp_lanes];
  const auto run = [&r](const auto*... s) {
    uint64_t any = 0;
    for (uint32_t i = 0; i < warp_lanes; ++i) {
      r[i] = F{}(s[i]...);
      any |= r[i] != r[i] ? 1 : 0;
    }
    if (!any) [[likely]]
      return;
    for (uint32_t i = 0; i < warp_lanes; ++i)
      r[i] = changes_signs<F> ? finished<Clamp::None>(r[i], r[i]) : finished<Clamp::None>(r[i], s[i]...);
  };
  run(c.lanes<const double>(sources)...);
  write_lanes(c, c.lanes<double>(destination), r);
}

/// Two f32 in a 64-bit register.
struct FloatPair {};

template <class F, bool ftz, class... P>
void run_f32x2(Context& c, Place destination, P... sources) {
  map_lanes<uint64_t, std::enable_if_t<true || sizeof(P), uint64_t>...>(
      c, destination,
      [](auto... pairs) {
        const auto half = [&](uint32_t shift) {
          return uint64_t{std::bit_cast<uint32_t>(rounded<F, ftz, Clamp::None>(
                     operand<ftz>(std::bit_cast<float>(static_cast<uint32_t>(pairs >> shift)))...))}
                 << shift;
        };
        return half(0) | half(32);
      },
      sources...);
}

/// A handler for f32, f64 and pairs of f32 with any number of operands.
template <class F, class T, bool ftz, Clamp clamp>
struct Scalar {
  static void run1(Context& c, const Op& op) { run(c, op.destination, op.a); }
  static void run2(Context& c, const Op& op) { run(c, op.destination, op.a, op.b); }
  static void run3(Context& c, const Op& op) { run(c, op.destination, op.a, op.b, op.c); }

 private:
  static void run(Context& c, Place destination, auto... sources) {
    if constexpr (std::is_same_v<T, FloatPair>)
      run_f32x2<F, ftz>(c, destination, sources...);
    else if constexpr (sizeof(T) == 8)
      run_f64<F>(c, destination, sources...);
    else
      run_f32<F, ftz, clamp>(c, destination, sources...);
  }
};
template <class F, class T, bool ftz, Clamp clamp>
  requires(std::is_invocable_v<F, T>)
constexpr Handler run_of() {
  return Scalar<F, T, ftz, clamp>::run1;
}
template <class F, class T, bool ftz, Clamp clamp>
  requires(std::is_invocable_v<F, T, T>)
constexpr Handler run_of() {
  return Scalar<F, T, ftz, clamp>::run2;
}
template <class F, class T, bool ftz, Clamp clamp>
  requires(std::is_invocable_v<F, T, T, T>)
constexpr Handler run_of() {
  return Scalar<F, T, ftz, clamp>::run3;
}

/// How an instruction rounds and post-processes its result.
struct Mode {
  int direction = FE_TONEAREST;
  bool ftz = false;
  Clamp clamp = Clamp::None;
};

template <class F, class T, bool ftz, Clamp clamp>
Handler directed(const Mode& mode) {
  return mode.direction == FE_TONEAREST ? run_of<F, T, ftz, clamp>()
                                        : run_directed<run_of<F, T, ftz, clamp>()>;
}

/// Handler of an f32 or f64 instruction that rounds.
template <class F>
Handler rounding_handler(Translation& t, Type type, const Mode& mode) {
  if (type == Type::F64) {
    if (mode.ftz || mode.clamp != Clamp::None) t.unsupported("f64 has neither .ftz nor .sat");
    return directed<F, double, false, Clamp::None>(mode);
  }
  if (mode.clamp == Clamp::Sat)
    return mode.ftz ? directed<F, float, true, Clamp::Sat>(mode)
                    : directed<F, float, false, Clamp::Sat>(mode);
  return mode.ftz ? directed<F, float, true, Clamp::None>(mode)
                  : directed<F, float, false, Clamp::None>(mode);
}

/// Handler of an f32, f64 or f32x2 instruction that rounds.
template <class F>
Handler rounding_or_pair_handler(Translation& t, Type type, const Mode& mode) {
  if (type != Type::F32x2) return rounding_handler<F>(t, type, mode);
  if (mode.clamp != Clamp::None) t.unsupported("f32x2 has no .sat");
  return mode.ftz ? directed<F, FloatPair, true, Clamp::None>(mode)
                  : directed<F, FloatPair, false, Clamp::None>(mode);
}

/// Handler of an f32 or f64 instruction that does not round.
template <class F>
Handler exact_handler(Translation& t, Type type, bool ftz) {
  if (type == Type::F64) {
    if (ftz) t.unsupported("f64 has no .ftz");
    return run_of<F, double, false, Clamp::None>();
  }
  return ftz ? run_of<F, float, true, Clamp::None>() : run_of<F, float, false, Clamp::None>();
}

/// f16 and bf16, single and packed.
template <class H>
struct FusedOf {
  float operator()(float a, float b, float c) const { return H::fused(a, b, c); }
  static bool quick(float a, float b)
    requires requires { H::quick(a, b); }
  {
    return H::quick(a, b);
  }
  static float quickly(float a, float b, float c) { return H::fused_quickly(a, b, c); }
};

/// a * b + c, with a or c negated.
template <class F, bool minus_a, bool minus_c>
struct Signed {
  template <class T>
  T operator()(T a, T b, T c) const {
    return F{}(minus_a ? -a : a, b, minus_c ? -c : c);
  }
  static float scaled(float a, float b, float c)
    requires requires { F::scaled(a, b, c); }
  {
    return F::scaled(minus_a ? -a : a, b, minus_c ? -c : c);
  }
  static bool quick(float a, float b)
    requires requires { F::quick(a, b); }
  {
    return F::quick(a, b);
  }
  static float quickly(float a, float b, float c)
    requires requires { F::quickly(a, b, c); }
  {
    return F::quickly(minus_a ? -a : a, b, minus_c ? -c : c);
  }
};

template <class F, Clamp clamp>
struct Clamped {
  float operator()(auto... operands) const
    requires std::is_invocable_v<F, decltype(operands)...>
  {
    return clamped<clamp>(F{}(operands...));
  }
  static bool quick(float a, float b)
    requires requires { F::quick(a, b); }
  {
    return F::quick(a, b);
  }
  static float quickly(float a, float b, float c) { return clamped<clamp>(F::quickly(a, b, c)); }
};

template <class H, bool packed, bool ftz, Clamp clamp, class F>
void run_half(Context& c, const Op& op) {
  const Clamped<F, clamp> f;
  if constexpr (std::is_invocable_v<F, float>)
    map_halves<H, packed, ftz>(c, op.destination, f, op.a);
  else if constexpr (std::is_invocable_v<F, float, float>)
    map_halves<H, packed, ftz>(c, op.destination, f, op.a, op.b);
  else
    map_halves<H, packed, ftz>(c, op.destination, f, op.a, op.b, op.c);
}

/// fma.oob: zero if a or b is the NaN that tensor copies write for elements outside a tensor.
template <class H, bool packed, Clamp clamp>
void run_fused_oob(Context& c, const Op& op) {
  const uint32_t *a = c.lanes<const uint32_t>(op.a), *b = c.lanes<const uint32_t>(op.b);
  uint32_t kept[warp_lanes];
  for (uint32_t i = 0; i < warp_lanes; ++i) {
    kept[i] = ~0u;
    for (const uint32_t half : {0xffffu, 0xffff0000u})
      if (((a[i] ^ 0x7fff7fffu) & half) == 0 || ((b[i] ^ 0x7fff7fffu) & half) == 0) kept[i] &= ~half;
  }
  run_half<H, packed, false, clamp, FusedOf<H>>(c, op);
  uint32_t* d = c.lanes<uint32_t>(op.destination);
  for (uint32_t i = 0; i < warp_lanes; ++i) d[i] &= (c.mask >> i) & 1 ? kept[i] : ~0u;
}

template <class H, bool packed>
Handler oob_handler(const Mode& mode) {
  return mode.clamp == Clamp::Relu ? run_fused_oob<H, packed, Clamp::Relu>
                                   : run_fused_oob<H, packed, Clamp::None>;
}

template <class H, bool packed, class F>
Handler half_handler(Translation& t, const Mode& mode) {
  switch (mode.clamp) {
    case Clamp::None:
      return mode.ftz ? run_half<H, packed, true, Clamp::None, F>
                      : run_half<H, packed, false, Clamp::None, F>;
    case Clamp::Sat:
      return mode.ftz ? run_half<H, packed, true, Clamp::Sat, F> : run_half<H, packed, false, Clamp::Sat, F>;
    case Clamp::Relu:
      if constexpr (std::is_same_v<F, FusedOf<H>>)
        return mode.ftz ? run_half<H, packed, true, Clamp::Relu, F>
                        : run_half<H, packed, false, Clamp::Relu, F>;
      break;
  }
  t.unsupported(".relu");
}

bool is_half(Type type) {
  return type == Type::F16 || type == Type::F16x2 || type == Type::BF16 || type == Type::BF16x2;
}

/// F16 and B: the functions that compute f16 and bf16.
template <class F16, class B = F16>
Handler half_handler(Translation& t, Type type, const Mode& mode) {
  const bool bfloat = type == Type::BF16 || type == Type::BF16x2;
  if (bfloat && (mode.ftz || mode.clamp == Clamp::Sat)) t.unsupported("bf16 has neither .ftz nor .sat");
  switch (type) {
    case Type::F16:
      return half_handler<Half, false, F16>(t, mode);
    case Type::F16x2:
      return half_handler<Half, true, F16>(t, mode);
    case Type::BF16:
      return half_handler<Bfloat, false, B>(t, mode);
    case Type::BF16x2:
      return half_handler<Bfloat, true, B>(t, mode);
    default:
      t.unsupported("this type");
  }
}

/// Emits an Op with the given number of sources besides the destination.
Op& emit(Translation& t, Handler handler, Type type, uint32_t sources, const Mode& mode) {
  if (t.operand_count() != sources + 1)
    t.unsupported("it has " + std::to_string(t.operand_count()) + " operands, expected " +
                  std::to_string(sources + 1));
  Op& op = sources == 1   ? emit_unary(t, handler, type)
           : sources == 2 ? emit_binary(t, handler, type)
                          : emit_ternary(t, handler, type);
  op.immediate = mode.direction;
  return op;
}

Type take_float_type(Translation& t, bool pairs = false) {
  const Type type = t.take_type();
  if (type != Type::F32 && type != Type::F64 && !is_half(type) && !(pairs && type == Type::F32x2))
    t.unsupported("this type");
  return type;
}

Mode take_mode(Translation& t) {
  Mode mode;
  mode.direction = take_rounding(t, FE_TONEAREST);
  mode.ftz = t.take("ftz");
  mode.clamp = t.take("sat") ? Clamp::Sat : t.take("relu") ? Clamp::Relu : Clamp::None;
  return mode;
}

/// The last source is f32, the others are of half precision, which f32 holds.
template <class F, uint32_t sources>
void translate_mixed(Translation& t, const Mode& mode, Type half) {
  if (mode.ftz || mode.clamp == Clamp::Relu) t.unsupported(".ftz and .relu with two types");
  const Handler handler = rounding_handler<F>(t, Type::F32, mode);
  std::array<Place, 3> from{place::none, place::none, place::none};
  for (uint32_t k = 0; k < sources; ++k) {
    if (k + 1 == sources) {
      from[k] = t.source(1 + k, Type::F32);
      continue;
    }
    const Place number = t.source(1 + k, half);
    from[k] = t.scratch(4);
    emit_conversion(t, {Type::F32, half, {}}, from[k], number);
  }
  const Place to = t.destination(0, Type::F32);
  Op& op = t.emit(handler);
  op.destination = to;
  op.a = from[0];
  op.b = from[1];
  op.c = from[2];
  op.immediate = mode.direction;
}

/// add, sub, mul, fma.
template <class F, uint32_t sources, class F16 = F, class B = F16>
void translate_rounded(Translation& t) {
  const Mode mode = take_mode(t);
  const bool oob = t.take("oob");
  const Type type = take_float_type(t, true);
  if constexpr (!std::is_same_v<F, Mul>) {
    const int half = type == Type::F32 ? t.take_one_of({"f16", "bf16"}) : -1;
    if (half >= 0) return translate_mixed<F, sources>(t, mode, half == 0 ? Type::F16 : Type::BF16);
  }
  if (oob) {
    if (sources != 3 || !is_half(type) || mode.ftz || mode.clamp == Clamp::Sat) t.unsupported(".oob");
    const bool packed = type == Type::F16x2 || type == Type::BF16x2;
    const Handler run = type == Type::F16 || type == Type::F16x2
                            ? (packed ? oob_handler<Half, true>(mode) : oob_handler<Half, false>(mode))
                            : (packed ? oob_handler<Bfloat, true>(mode) : oob_handler<Bfloat, false>(mode));
    emit(t, run, type, sources, mode);
    return;
  }
  if (is_half(type)) {
    if (mode.direction != FE_TONEAREST) t.unsupported("half precision rounds to nearest");
    emit(t, half_handler<F16, B>(t, type, mode), type, sources, mode);
    return;
  }
  if (mode.clamp == Clamp::Relu) t.unsupported(".relu is for half precision");
  emit(t, rounding_or_pair_handler<F>(t, type, mode), type, sources, mode);
}

/// fma. Contraction negates operands (ptx/contraction.hpp); PTX itself cannot.
template <bool minus_a, bool minus_c>
void translate_signed_fused(Translation& t) {
  const Mode mode = take_mode(t);
  const Type type = take_float_type(t, true);
  const Handler handler =
      is_half(type)
          ? half_handler<Signed<FusedOf<Half>, minus_a, minus_c>, Signed<FusedOf<Bfloat>, minus_a, minus_c>>(
                t, type, mode)
          : rounding_or_pair_handler<Signed<Fma, minus_a, minus_c>>(t, type, mode);
  std::array<ptx::Operand, 3> factors{t.operand(1), t.operand(2), t.operand(3)};
  for (ptx::Operand& factor : factors) factor.negated = false;
  const Place d = t.destination(0, type), a = t.source(factors[0], type), b = t.source(factors[1], type),
              c = t.source(factors[2], type);
  Op& op = t.emit(handler);
  op.destination = d;
  op.a = a;
  op.b = b;
  op.c = c;
  op.immediate = mode.direction;
}

void translate_fused(Translation& t) {
  const bool minus_a = t.operand(1).negated, minus_c = t.operand_count() == 4 && t.operand(3).negated;
  if (minus_a && minus_c) return translate_signed_fused<true, true>(t);
  if (minus_a) return translate_signed_fused<true, false>(t);
  if (minus_c) return translate_signed_fused<false, true>(t);
  translate_rounded<Fma, 3, FusedOf<Half>, FusedOf<Bfloat>>(t);
}

void translate_division(Translation& t) {
  const bool approximate = t.take("approx"), full = t.take("full");
  const Mode mode = take_mode(t);
  const Type type = take_float_type(t);
  if (is_half(type) || mode.clamp != Clamp::None) t.unsupported("this form of div");
  if (approximate || full) {
    if (type != Type::F32) t.unsupported("only f32 has .approx and .full");
  }
  emit(t, approximate ? rounding_handler<DivApprox>(t, type, mode) : rounding_handler<Div>(t, type, mode),
       type, 2, mode);
}

template <class F>
void translate_exact(Translation& t) {
  Mode mode;
  mode.ftz = t.take("ftz");
  const Type type = take_float_type(t);
  emit(t, is_half(type) ? half_handler<F>(t, type, mode) : exact_handler<F>(t, type, mode.ftz), type, 1,
       mode);
}

template <bool greater, bool nan, bool xorsign>
void translate_extreme(Translation& t, const Mode& mode) {
  using F = Extreme<greater, nan, xorsign>;
  const Type type = take_float_type(t);
  if (type == Type::F64 && (nan || xorsign)) t.unsupported("f64 has neither .NaN nor .xorsign.abs");
  Op& op = emit(t, is_half(type) ? half_handler<F>(t, type, mode) : exact_handler<F>(t, type, mode.ftz), type,
                2, mode);
  // A result has the payload of the first NaN. Of two in f64, the PTX ISA asks for a NaN; the code that ptxas
  // makes leaves the second one.
  if (type == Type::F64) std::swap(op.a, op.b);
}

template <bool greater, bool nan>
void translate_extreme_of_three(Translation& t, const Mode& mode) {
  const bool magnitudes = t.take("abs");
  if (t.take_type() != Type::F32) t.unsupported("three operands are for f32");
  emit(t,
       magnitudes ? exact_handler<ExtremeOfThree<greater, nan, true>>(t, Type::F32, mode.ftz)
                  : exact_handler<ExtremeOfThree<greater, nan, false>>(t, Type::F32, mode.ftz),
       Type::F32, 3, mode);
}

template <bool greater>
void translate_min_max(Translation& t) {
  Mode mode;
  mode.ftz = t.take("ftz");
  if (t.operand_count() == 4)
    return t.take("NaN") ? translate_extreme_of_three<greater, true>(t, mode)
                         : translate_extreme_of_three<greater, false>(t, mode);
  const bool nan = t.take("NaN"), xorsign = t.take("xorsign");
  if (xorsign && !t.take("abs")) t.unsupported(".xorsign without .abs");
  if (xorsign)
    nan ? translate_extreme<greater, true, true>(t, mode) : translate_extreme<greater, false, true>(t, mode);
  else
    nan ? translate_extreme<greater, true, false>(t, mode)
        : translate_extreme<greater, false, false>(t, mode);
}

/// rcp and sqrt of f32 and f64. The approximate forms for f32 are computed exactly, which is within their
/// error bounds.
template <class F>
void translate_root(Translation& t) {
  const bool approximate = t.take("approx");
  const Mode mode = take_mode(t);
  const Type type = take_float_type(t);
  if (is_half(type) || mode.clamp != Clamp::None) t.unsupported("this form");
  if (approximate && type == Type::F64) {
    if constexpr (std::is_same_v<F, Reciprocal>) return emit_coarse_reciprocal(t, mode.ftz);
    t.unsupported("sqrt.approx is for f32");
  }
  emit(t, rounding_handler<F>(t, type, mode), type, 1, mode);
}

template <class T>
void run_copysign(Context& c, const Op& op) {
  constexpr T sign = T{1} << (8 * sizeof(T) - 1);
  map_lanes<T, T, T>(
      c, op.destination, [](T a, T b) { return static_cast<T>((a & sign) | (b & ~sign)); }, op.a, op.b);
}

enum class Class { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

template <class T, Class which>
void run_testp(Context& c, const Op& op) {
  const uint32_t bits = test_lanes<T>(
      c,
      [](T a) {
        constexpr T least = std::numeric_limits<T>::min(), infinity = std::numeric_limits<T>::infinity();
        const T m = std::fabs(a);
        switch (which) {
          case Class::Finite:
            return m < infinity;
          case Class::Infinite:
            return m == infinity;
          case Class::Number:
            return a == a;
          case Class::NotANumber:
            return a != a;
          case Class::Normal:
            return (m >= least || m == 0) && m < infinity;  // zeros are normal (PTX ISA, testp)
          case Class::Subnormal:
            return m < least && m > 0;
        }
        return false;
      },
      op.a);
  write_predicate(c, op.destination, bits);
}

template <class T>
Handler testp_handler(int which) {
  static constexpr Handler handlers[] = {run_testp<T, Class::Finite>, run_testp<T, Class::Infinite>,
                                         run_testp<T, Class::Number>, run_testp<T, Class::NotANumber>,
                                         run_testp<T, Class::Normal>, run_testp<T, Class::Subnormal>};
  return handlers[which];
}

}  // namespace

void translate_float(Translation& t, Arithmetic operation) {
  switch (operation) {
    case Arithmetic::Add:
      return translate_rounded<Add, 2>(t);
    case Arithmetic::Sub:
      return translate_rounded<Sub, 2>(t);
    case Arithmetic::Mul:
      return translate_rounded<Mul, 2>(t);
    case Arithmetic::Mad:
    case Arithmetic::Fma:
      return translate_fused(t);
    case Arithmetic::Div:
      return translate_division(t);
    case Arithmetic::Rem:
      t.unsupported("rem is for integers");
    case Arithmetic::Abs:
      return translate_exact<Abs>(t);
    case Arithmetic::Neg:
      return translate_exact<Neg>(t);
    case Arithmetic::Min:
      return translate_min_max<false>(t);
    case Arithmetic::Max:
      return translate_min_max<true>(t);
  }
}

void translate_copysign(Translation& t) {
  const Type type = t.take_type();
  if (type != Type::F32 && type != Type::F64) t.unsupported("this type");
  emit_binary(t, type == Type::F64 ? run_copysign<uint64_t> : run_copysign<uint32_t>, type);
}

void translate_testp(Translation& t) {
  const int which = t.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (which < 0) t.unsupported("the property to test is missing");
  const Type type = t.take_type();
  if (type != Type::F32 && type != Type::F64) t.unsupported("this type");
  const Place d = t.predicate_destination(t.operand(0)), a = t.source(1, type);
  Op& op = t.emit(type == Type::F64 ? testp_handler<double>(which) : testp_handler<float>(which));
  op.destination = d;
  op.a = a;
}

void translate_rcp(Translation& t) {
  translate_root<Reciprocal>(t);
}
void translate_sqrt(Translation& t) {
  translate_root<SquareRoot>(t);
}

}  // namespace simt::functional
