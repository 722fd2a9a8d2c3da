/// Instructions that a user defines.
#include <algorithm>
#include <iterator>

#include "machine/context.hpp"
#include "machine/fault.hpp"
#include "ptx/own_instructions.hpp"
#include "ptx/translation/instructions.hpp"

namespace simt::functional {
namespace {

struct OwnCall : Detail {
  const ptx::OwnInstruction* instruction = nullptr;
};

void run_own(Context& c, const Op& op) {
  const ptx::OwnInstruction& own = *op.details<OwnCall>().instruction;
  const auto source = [&](Place p) { return p == place::none ? nullptr : c.lanes<const void>(p); };
  if (own.function(c.lanes<void>(op.destination), source(op.a), source(op.b), source(op.c), c.mask) != 0)
    throw Fault("instruction failed", "the function of " + own.mnemonic + " raised an exception",
                c.first_lane());
}

}  // namespace

void translate_own(Translation& t) {
  const ptx::OwnInstruction& own = *ptx::own_instruction(t.mnemonic().text);
  if (t.operand_count() != own.types.size())
    t.unsupported("found " + std::to_string(t.operand_count()) + " operands, expected " +
                  std::to_string(own.types.size()));
  t.take_all();
  Place places[1 + ptx::OwnInstruction::most_sources];
  std::fill(std::begin(places), std::end(places), place::none);
  for (uint32_t k = 1; k < own.types.size(); ++k) places[k] = t.source(k, own.types[k]);
  places[0] = t.destination(0, own.types[0]);
  Op& op = t.emit(run_own);
  op.destination = places[0];
  op.a = places[1];
  op.b = places[2];
  op.c = places[3];
  t.detail<OwnCall>().instruction = &own;
}

}  // namespace simt::functional
