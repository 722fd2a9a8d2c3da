/// Calls, returns, barriers.
#include "ptx/lowering/rules.hpp"

namespace simt::functional {

using ptx::OperandKind;

void lower_call(Lowerer& l) {
  // Ordered system functions change shared state: each is timed as one atomic operation.
  if (l.deferred())
    l.memory("ATOMG.E.EXCH.64.STRONG.GPU", 8);
  else
    l.one("CALL.REL.NOINC");
}

void lower_return(Lowerer& l) {
  l.one(l.in_entry() ? "EXIT" : "RET.REL.NODEC");
}

/// A barrier's number and thread count are immediates in machine code if they are constants.
void lower_barrier(Lowerer& l) {
  const bool reduces = l.has("red");
  RawInstruction& raw = l.barrier(l.has("arrive") ? "BAR.ARV"
                                  : reduces       ? "BAR.RED.POPC.DEFER_BLOCKING"
                                                  : "BAR.SYNC.DEFER_BLOCKING");
  const uint32_t skip = reduces ? 1 : 0;
  const ptx::Operand* id = l.operand(skip);
  const ptx::Operand* threads = reduces && l.operand_count() < 4 ? nullptr : l.operand(skip + 1);
  const bool known =
      (!id || id->kind == OperandKind::Integer) && (!threads || threads->kind == OperandKind::Integer);
  raw.immediate = !known ? -1 : id ? id->value : 0;
  raw.immediate2 = known && threads ? threads->value : 0;
  if (reduces) l.chain({"B2R.RESULT"});
}

void lower_sleep(Lowerer& l) {
  RawInstruction& raw = l.one("NANOSLEEP");
  if (l.operand(0)->kind == OperandKind::Integer) raw.immediate = l.operand(0)->value;
}

}  // namespace simt::functional
