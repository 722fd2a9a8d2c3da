/// Atomic operations, and queries of the windows of the generic address space.
#include "operations/atomics.hpp"

#include "sass/instructions.hpp"
#include "sass/ordering.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::AccessSpace;
using functional::AtomicDetail;
using functional::AtomicOperation;
using functional::AtomicReach;
using ptx::Type;

namespace {

struct Value {
  Type type = Type::U32;
  uint32_t elements = 0;  ///< of a vector, in registers of their own; 0 if it is none
};

/// Takes the type; bits without one are an unsigned integer.
Value take_value(Translation& t) {
  struct Known {
    std::string_view name;
    Value value;
  };
  static constexpr Known known[] = {
      {"U32", {Type::U32}},          {"S32", {Type::S32}},          {"32", {Type::U32}},
      {"64", {Type::U64}},           {"U64", {Type::U64}},          {"S64", {Type::S64}},
      {"128", {Type::B128}},         {"F32", {Type::F32}},          {"F64", {Type::F64}},
      {"F16x2", {Type::F16x2}},      {"BF16x2", {Type::BF16x2}},    {"BF16_V2", {Type::BF16x2}},
      {"F16x4", {Type::F16x2, 2}},   {"BF16x4", {Type::BF16x2, 2}}, {"F16x8", {Type::F16x2, 4}},
      {"BF16x8", {Type::BF16x2, 4}}, {"F32x2", {Type::F32, 2}},     {"F32x4", {Type::F32, 4}}};
  Value result;
  for (const Known& k : known)
    if (t.take(k.name)) {
      result = k.value;
      break;
    }
  t.take("FTZ");  // part of the operation on f32 in global memory
  t.take("RN");
  return result;
}

uint32_t words_of(Type type) {
  return std::max(1u, ptx::bytes(type) / 4);
}

/// Whether atomic operations on shared memory have it; others are loops around ATOMS.CAST.
bool shared_has(AtomicOperation operation, Type type) {
  const bool moves = operation == AtomicOperation::Exch || operation == AtomicOperation::Cas;
  return moves || type == Type::U32 || type == Type::S32;
}

}  // namespace

/// ATOM, ATOMG p, d, address, a [, b]; ATOMS d, address, a [, b]; RED, REDG address, a. Where p is no PT, it
/// tells whether the operation took effect: on some memory it cannot, and other instructions follow for that.
void translate_atomic(Translation& t) {
  if (t.has("ARRIVE")) return translate_old_arrive(t);
  const AccessSpace space = t.space();
  const bool reduces = t.what().operation == Operation::Reduction, shared = space == AccessSpace::Shared;
  take_ordering(t);
  const bool counts = t.take("POPC");  // .POPC.INC adds 1
  const bool casts = t.take("CAST");
  t.take("SPIN");
  const int named = t.take_one_of({"ADD", "INC", "DEC", "MIN", "MAX", "AND", "OR", "XOR", "EXCH", "CAS"});
  if (named < 0 && !casts) t.unsupported("its operation is missing");
  const AtomicOperation operation = casts    ? AtomicOperation::Cas
                                    : counts ? AtomicOperation::Add
                                             : static_cast<AtomicOperation>(named);
  auto [type, elements] = take_value(t);
  const functional::AtomicHandlers handlers = functional::atomic_handlers(operation, type);
  // Minima and maxima of halves are those of PTX's vectors.
  if (!elements && !shared && !handlers.run && handlers.run_vector) elements = 1;
  const Handler run = casts      ? functional::compare_and_tell_handler(ptx::bytes(type))
                      : elements ? handlers.run_vector
                                 : handlers.run;
  if (!run) t.unsupported("this operation on this type");

  AtomicDetail d;
  d.space = space;
  d.pairs = true;
  const uint32_t words = words_of(type) * std::max(1u, elements);
  uint32_t next = 0;
  if (!reduces && !shared) {
    if (!t.is_predicate(next)) t.unsupported("its predicate is missing");
    if (t.operand(next).index != Operand::true_predicate) {
      d.succeeds = t.predicate_destination(next);
      d.reach = shared_has(operation, type) ? AtomicReach::GlobalAndShared : AtomicReach::Global;
    }
    ++next;
  }
  const uint32_t result = next;
  if (!reduces) ++next;
  const Address address = shared ? t.own_address(next) : t.address(next);
  ++next;
  d.base = address.base;
  Place destination = place::none;
  if (!reduces && t.operand(result).index != Operand::zero) destination = t.destination(result, words);
  d.returns = destination != place::none;
  const Place a = counts ? t.constant({1}) : t.source(next++, words);
  const Place b = operation == AtomicOperation::Cas ? t.source(next++, words) : place::none;
  if (elements) {
    d.elements = elements;
    for (uint32_t e = 0; e < elements; ++e) {
      d.values[e] = a + e * words_of(type) * place::register_bytes;
      d.results[e] = destination + e * words_of(type) * place::register_bytes;
    }
  }
  if (!shared && (d.returns || !handlers.commutes)) t.order_matters();
  Op& op = t.emit(run, !shared ? Control::Deferred : d.returns ? Control::Yield : Control::None);
  functional::set_address(op, address);
  op.destination = destination;
  op.b = a;
  op.c = b;
  t.detail<AtomicDetail>() = d;
  t.accesses(4 * words);
}

namespace {

enum class QueriedSpace : uint8_t { Own, Cluster, Local, Global };

struct QueryDetail : Detail {
  Address address;
  QueriedSpace space = QueriedSpace::Own;
};

void run_query_space(Context& c, const Op& op) {
  const auto& d = op.details<QueryDetail>();
  alignas(64) uint64_t address[warp_lanes];
  functional::lane_addresses(c, d.address.base, d.address.place, d.address.offset, address);
  namespace window = functional::window;
  write_predicate(c, op.destination, test_rows([&](uint32_t i) {
                    const uint64_t a = address[i];
                    switch (d.space) {
                      case QueriedSpace::Local:
                        return window::is_local(a);
                      case QueriedSpace::Global:
                        return a >= window::global;
                      default:
                        return window::is_shared(a) &&
                               c.is_own(a - window::shared) == (d.space == QueriedSpace::Own);
                    }
                  }));
}

}  // namespace

/// QSPC.E.S p, RZ, address: whether it is in the CTA's shared memory; .D: in that of another CTA of the
/// cluster; .L: in local memory; .G: in global memory, of which constants are part: code compares them apart.
void translate_query_space(Translation& t) {
  QueryDetail d;
  const int space = t.take_one_of({"S", "D", "L", "G"});
  if (space < 0) t.unsupported("this memory");
  if (!t.operand(1).is_zero()) t.unsupported("a second result");
  d.address = t.address(2);
  t.take("E");
  d.space = static_cast<QueriedSpace>(space);
  const Place p = t.predicate_destination(0);
  t.emit(run_query_space).destination = p;
  t.detail<QueryDetail>() = d;
}

}  // namespace simt::sass
