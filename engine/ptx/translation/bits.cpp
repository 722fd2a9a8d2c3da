/// Logic, shifts, and instructions on bits and bytes.
#include "operations/words.hpp"
#include "ptx/translation/arithmetic.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/integer_types.hpp"

namespace simt::functional {
namespace {

using ptx::Type;

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
  op.clock_use = {.kind = ClockUse::Logic};
}

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

template <class T>
void run_bfe(Context& c, const Op& op) {
  map_lanes<T, T, uint32_t, uint32_t>(c, op.destination, ExtractField{}, op.a, op.b, op.c);
}
/// Op::immediate: place of the length.
template <class T>
void run_bfi(Context& c, const Op& op) {
  map_lanes<T, T, T, uint32_t, uint32_t>(c, op.destination, InsertField{}, op.a, op.b, op.c,
                                         static_cast<Place>(op.immediate));
}

template <class F, bool wraps>
void run_funnel(Context& c, const Op& op) {
  map_lanes<uint32_t, uint32_t, uint32_t, uint32_t>(c, op.destination, F{wraps}, op.a, op.b, op.c);
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
  op.clock_use = {.kind = ClockUse::Logic};
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
  using Left = Funnel<true, true, false>;
  using Right = Funnel<false, false, false>;
  emit_ternary(t,
               direction == 0 ? mode == 0 ? run_funnel<Left, false> : run_funnel<Left, true>
               : mode == 0    ? run_funnel<Right, false>
                              : run_funnel<Right, true>,
               Type::B32);
}

void translate_lop3(Translation& t) {
  const int combine = t.take_one_of({"and", "or"});
  take_type_of(t, {Type::B32});
  const auto table = static_cast<uint64_t>(t.immediate(t.operand(4)));
  if (table > 255) t.unsupported("the table is not a number from 0 to 255");
  const Handler logic = logic3_handler(static_cast<uint32_t>(table));
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
  Op& op = t.emit(run_logic_test);
  op.destination = predicate;
  op.a = a;
  op.b = b;
  op.c = third;
  LogicTest& d = t.detail<LogicTest>();
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
  const int mode = t.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (t.operand(3).kind == ptx::OperandKind::Integer) {
    const auto selector = static_cast<uint32_t>(t.immediate(t.operand(3)));
    emit_binary(t, run_permute_fixed, Type::B32).immediate = permute_selector(mode, selector);
    return;
  }
  emit_ternary(t, permute_handler(mode), Type::B32);
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
