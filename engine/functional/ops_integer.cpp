/// Integer arithmetic.
#include "functional/arithmetic.hpp"
#include "functional/instructions.hpp"
#include "functional/lanes.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a - b);
  }
};
struct MulLow {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(uint64_t{a} * uint64_t{b});
  }
};
struct MadLow {
  template <class T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(uint64_t{a} * uint64_t{b} + c);
  }
};

template <class F, class T>
void run2(Context& c, const Op& op) {
  map_lanes<T, T, T>(c, op.destination, F{}, op.a, op.b);
}
template <class F, class T>
void run3(Context& c, const Op& op) {
  map_lanes<T, T, T, T>(c, op.destination, F{}, op.a, op.b, op.c);
}

/// Wrapping arithmetic is the same for signed and unsigned types.
template <class F>
Handler wrapping2(Translation& t, Type type) {
  switch (ptx::bytes(type)) {
    case 2:
      return run2<F, uint16_t>;
    case 4:
      return run2<F, uint32_t>;
    case 8:
      return run2<F, uint64_t>;
    default:
      t.unsupported("this type");
  }
}
template <class F>
Handler wrapping3(Translation& t, Type type) {
  switch (ptx::bytes(type)) {
    case 2:
      return run3<F, uint16_t>;
    case 4:
      return run3<F, uint32_t>;
    case 8:
      return run3<F, uint64_t>;
    default:
      t.unsupported("this type");
  }
}

template <class D, class S>
void run_mul_wide(Context& c, const Op& op) {
  map_lanes<D, S, S>(
      c, op.destination, [](S a, S b) { return static_cast<D>(static_cast<D>(a) * static_cast<D>(b)); }, op.a,
      op.b);
}

}  // namespace

void translate_integer(Translation& t, Arithmetic operation) {
  switch (operation) {
    case Arithmetic::Add: {
      const Type type = t.take_type();
      emit_binary(t, wrapping2<Add>(t, type), type);
      return;
    }
    case Arithmetic::Sub: {
      const Type type = t.take_type();
      emit_binary(t, wrapping2<Sub>(t, type), type);
      return;
    }
    case Arithmetic::Mul: {
      if (t.take("wide")) {
        const Type type = t.take_type();
        const bool s = ptx::is_signed(type);
        if (ptx::bytes(type) != 4) t.unsupported("this type");
        const Place d = t.destination(0, Type::B64), a = t.source(1, type), b = t.source(2, type);
        Op& op = t.emit(s ? run_mul_wide<int64_t, int32_t> : run_mul_wide<uint64_t, uint32_t>);
        op.destination = d;
        op.a = a;
        op.b = b;
        return;
      }
      t.take("lo");
      const Type type = t.take_type();
      emit_binary(t, wrapping2<MulLow>(t, type), type);
      return;
    }
    case Arithmetic::Mad: {
      t.take("lo");
      const Type type = t.take_type();
      emit_ternary(t, wrapping3<MadLow>(t, type), type);
      return;
    }
    default:
      t.unsupported("not yet");
  }
}

void register_integer(Registry&) {}

}  // namespace simt::functional
