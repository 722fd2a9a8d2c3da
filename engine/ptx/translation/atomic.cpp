/// atom and red.
#include "operations/atomics.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;
using Operation = AtomicOperation;

/// Whether anything besides the instruction's own destination names the register.
bool is_read(const Translation& t, const ptx::Operand& destination) {
  if (destination.kind != OperandKind::Register) return false;
  uint32_t named = 0;
  for (const ptx::Operand& o : t.function().operands)
    named += o.kind == OperandKind::Register && o.index == destination.index;
  return named > 1;
}

void translate_atomic(Translation& t, bool has_destination) {
  const bool acquires = t.take_one_of({"acquire", "acq_rel"}) >= 0;
  t.take_one_of({"relaxed", "release"});
  t.take_one_of({"cta", "cluster", "gpu", "sys"});
  const AccessSpace space = take_space(t);
  if (space == AccessSpace::Local) t.unsupported("atomics need global or shared memory");
  const int operation_index =
      t.take_one_of({"add", "inc", "dec", "min", "max", "and", "or", "xor", "exch", "cas"});
  if (operation_index < 0) t.unsupported("an atomic operation is missing");
  const auto operation = static_cast<Operation>(operation_index);
  t.take("noftz");
  const bool has_policy = take_cache_hint(t);
  const int vector = t.take_one_of({"v2", "v4", "v8"});
  const Type type = t.take_type();
  const bool bitwise =
      operation == Operation::And || operation == Operation::Or || operation == Operation::Xor;
  if (bitwise && type != Type::B32 && type != Type::B64)
    t.unsupported("bitwise operations need the type .b32 or .b64");
  const AtomicHandlers choice = atomic_handlers(operation, type);
  const Handler run = vector < 0 ? choice.run : choice.run_vector;
  if (!run) t.unsupported("this operation on this type");

  uint32_t next = 0;
  AtomicDetail d;
  Place destination = place::none, b = place::none, swap = place::none;
  if (vector >= 0) d.elements = 2u << vector;
  if (ptx::bytes(type) * d.elements > 16) t.unsupported("a vector of more than 128 bits");
  if (has_destination) {
    const ptx::Operand& o = t.operand(next++);
    // Compilers leave it to the assembler to notice that the old value is unused.
    if (vector < 0) {
      d.returns = is_read(t, o);
      if (d.returns) destination = t.destination(o, type);
    } else {
      for (uint32_t e = 0; e < d.elements; ++e) {
        d.returns |= is_read(t, t.part(o, e));
        d.results[e] = t.destination(t.part(o, e), type);
      }
      if (d.returns) destination = d.results[0];
    }
  }
  const Address address = t.address(t.operand(next++));
  if (address.base == Address::Base::Stack) t.unsupported("atomics need global or shared memory");
  d.base = address.base;
  d.space = space;
  if (vector < 0) {
    b = t.source(next++, type);
    if (operation == Operation::Cas) swap = t.source(next++, type);
  } else {
    for (uint32_t e = 0; e < d.elements; ++e) d.values[e] = t.source(t.part(t.operand(next), e), type);
  }
  const bool shared = space == AccessSpace::Shared;
  if (!shared && (d.returns || !choice.commutes)) t.order_matters();
  // An atomic that returns a value may be in a loop that waits for other lanes.
  Op& op = t.emit(run, !shared ? Control::Deferred : d.returns ? Control::Yield : Control::None);
  set_address(op, address);
  op.orders_memory = acquires && !shared;
  op.destination = destination;
  op.b = b;
  op.c = swap;
  if (has_policy) set_cache_policy(t);
  t.detail<AtomicDetail>() = d;
}

}  // namespace

void translate_atom(Translation& t) {
  translate_atomic(t, true);
}
/// red, and multimem.red: to all copies, of which there is one.
void translate_red(Translation& t) {
  t.take("red");
  translate_atomic(t, false);
}

}  // namespace simt::functional
