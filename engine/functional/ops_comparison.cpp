/// Comparison, selection, logic and shifts.
#include "functional/arithmetic.hpp"
#include "functional/instructions.hpp"
#include "functional/lanes.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

enum class Compare { Eq, Ne, Lt, Le, Gt, Ge };

template <class T, Compare how>
void run_setp(Context& c, const Op& op) {
  const uint32_t bits = test_lanes<T, T>(
      c,
      [](T a, T b) {
        switch (how) {
          case Compare::Eq:
            return a == b;
          case Compare::Ne:
            return a != b;
          case Compare::Lt:
            return a < b;
          case Compare::Le:
            return a <= b;
          case Compare::Gt:
            return a > b;
          default:
            return a >= b;
        }
      },
      op.a, op.b);
  write_predicate(c, op.destination, bits);
}

template <class T>
Handler setp_handler(int how) {
  static constexpr Handler handlers[] = {run_setp<T, Compare::Eq>, run_setp<T, Compare::Ne>,
                                         run_setp<T, Compare::Lt>, run_setp<T, Compare::Le>,
                                         run_setp<T, Compare::Gt>, run_setp<T, Compare::Ge>};
  return handlers[how];
}

void translate_setp(Translation& t) {
  const int how = t.take_one_of({"eq", "ne", "lt", "le", "gt", "ge"});
  if (how < 0) t.unsupported("this comparison");
  const Type type = t.take_type();
  Handler h = nullptr;
  switch (type) {
    case Type::S32:
      h = setp_handler<int32_t>(how);
      break;
    case Type::U32:
    case Type::B32:
      h = setp_handler<uint32_t>(how);
      break;
    case Type::S64:
      h = setp_handler<int64_t>(how);
      break;
    case Type::U64:
    case Type::B64:
      h = setp_handler<uint64_t>(how);
      break;
    case Type::F32:
      h = setp_handler<float>(how);
      break;
    default:
      t.unsupported("this type");
  }
  const Place d = t.predicate_destination(t.operand(0));
  const Place a = t.source(1, type), b = t.source(2, type);
  Op& op = t.emit(h);
  op.destination = d;
  op.a = a;
  op.b = b;
}

void run_and32(Context& c, const Op& op) {
  map_lanes<uint32_t, uint32_t, uint32_t>(
      c, op.destination, [](uint32_t a, uint32_t b) { return a & b; }, op.a, op.b);
}
void run_shl32(Context& c, const Op& op) {
  map_lanes<uint32_t, uint32_t, uint32_t>(
      c, op.destination, [](uint32_t a, uint32_t b) { return b > 31 ? 0 : a << b; }, op.a, op.b);
}

}  // namespace

void register_comparison(Registry& r) {
  r.add("setp", translate_setp);
  r.add("and", [](Translation& t) { emit_binary(t, run_and32, t.take_type()); });
  r.add("shl", [](Translation& t) { emit_binary(t, run_shl32, t.take_type()); });
}

}  // namespace simt::functional
