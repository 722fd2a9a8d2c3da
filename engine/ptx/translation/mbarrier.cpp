/// mbarrier objects: init, inval, arrivals, transactions, waits.
#include "operations/mbarrier.hpp"

#include "ptx/translation/instructions.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {
namespace {

using ptx::OperandKind;
using ptx::Type;

struct MbarrierDetail : Detail {
  Address::Base base = Address::Base::Narrow;
  AccessSpace space = AccessSpace::Generic;
  bool expects = false;      ///< arrive.expect_tx: b holds the bytes, for one arrival
  bool drops = false;        ///< arrive_drop
  bool may_complete = true;  ///< false for .noComplete
};

template <class F>
void each_object(Context& c, const Op& op, F f) {
  const auto& d = op.details<MbarrierDetail>();
  each_mbarrier(c, op, d.base, d.space, f);
}

void run_init(Context& c, const Op& op) {
  const uint32_t* count = c.lanes<const uint32_t>(op.b);
  each_object(c, op, [&](Mbarrier& m, int i) { m.initialise(count[i]); });
}
void run_inval(Context& c, const Op& op) {
  each_object(c, op, [](Mbarrier& m, int) { m.invalidate(); });
}
void run_expect(Context& c, const Op& op) {
  const uint32_t* bytes = c.lanes<const uint32_t>(op.b);
  each_object(c, op, [&](Mbarrier& m, int i) { m.expect(bytes[i]); });
}
void run_complete(Context& c, const Op& op) {
  const uint32_t* bytes = c.lanes<const uint32_t>(op.b);
  each_object(c, op, [&](Mbarrier& m, int i) { m.expect(-int64_t{bytes[i]}); });
}

void run_arrive(Context& c, const Op& op) {
  const auto& d = op.details<MbarrierDetail>();
  const uint32_t* b = c.lanes<const uint32_t>(op.b);
  uint64_t state[warp_lanes] = {};
  each_object(c, op, [&](Mbarrier& m, int i) {
    state[i] = m.word();
    const uint32_t count = d.expects ? 1 : b[i];
    if (!d.may_complete && count >= Mbarrier::pending(m.word()))
      throw Fault("mbarrier", "an arrival with .noComplete would complete the phase", i);
    if (d.expects) m.expect(b[i]);
    if (d.drops) m.drop(count);
    m.arrive(count);
  });
  if (op.destination != place::none) write_lanes(c, c.lanes<uint64_t>(op.destination), state);
}

/// b: parity or state.
template <class T>
void run_wait(Context& c, const Op& op) {
  const T* b = c.lanes<const T>(op.b);
  uint32_t done = 0;
  each_object(c, op, [&](Mbarrier& m, int i) {
    const uint32_t parity = sizeof(T) == 8 ? Mbarrier::parity(b[i]) : static_cast<uint32_t>(b[i] & 1);
    done |= uint32_t{m.completed(parity)} << i;
  });
  write_predicate(c, op.destination, done);
  c.yield = (c.mask & ~done) != 0;
}

void run_pending_count(Context& c, const Op& op) {
  map_lanes<uint32_t, uint64_t>(
      c, op.destination, [](uint64_t state) { return Mbarrier::pending(state); }, op.a);
}

enum class Kind : uint8_t {
  Init,
  Inval,
  Arrive,
  ArriveDrop,
  ExpectTx,
  CompleteTx,
  TestWait,
  TryWait,
  PendingCount
};

}  // namespace

void translate_mbarrier(Translation& t) {
  const int index = t.take_one_of({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx",
                                   "test_wait", "try_wait", "pending_count"});
  if (index < 0) t.unsupported("this operation of mbarriers");
  const auto kind = static_cast<Kind>(index);
  if (!t.take("b64")) t.unsupported("mbarriers have the type .b64");
  if (kind == Kind::PendingCount) {
    const Place d = t.destination(0, Type::U32), state = t.source(1, Type::B64);
    Op& op = t.emit(run_pending_count);
    op.destination = d;
    op.a = state;
    return;
  }
  MbarrierDetail d;
  d.space = take_space(t);
  t.take_one_of({"release", "acquire", "relaxed"});
  t.take_one_of({"cta", "cluster"});
  d.drops = kind == Kind::ArriveDrop;
  const bool arrives = kind == Kind::Arrive || d.drops;
  const bool waits = kind == Kind::TestWait || kind == Kind::TryWait;
  bool parity = false;
  if (arrives) {
    d.expects = t.take("expect_tx");
    d.may_complete = !t.take("noComplete");
  }
  if (waits) parity = t.take("parity");

  uint32_t next = 0;
  Place destination = place::none, b = place::none;
  if (waits) {
    destination = t.predicate_destination(t.operand(next++));
  } else if (arrives && t.operand(0).kind != OperandKind::Address) {
    const ptx::Operand& o = t.operand(next++);
    if (o.kind != OperandKind::Discard) destination = t.destination(o, Type::B64);
  }
  const Address address = t.address(t.operand(next++));
  if (address.base == Address::Base::Stack) t.unsupported("mbarriers lie in shared memory");
  d.base = address.base;
  if (waits)
    b = t.source(next++, parity ? Type::U32 : Type::B64);  // a time limit may follow
  else if (next < t.operand_count())
    b = t.source(next++, Type::U32);
  else if (arrives && !d.expects)
    b = t.constant(1, 4);
  else if (kind != Kind::Inval)
    t.unsupported("an operand is missing");

  Handler run = run_arrive;
  switch (kind) {
    case Kind::Init:
      run = run_init;
      break;
    case Kind::Inval:
      run = run_inval;
      break;
    case Kind::ExpectTx:
      run = run_expect;
      break;
    case Kind::CompleteTx:
      run = run_complete;
      break;
    case Kind::TestWait:
    case Kind::TryWait:
      run = parity ? run_wait<uint32_t> : run_wait<uint64_t>;
      break;
    default:
      break;
  }
  Op& op = t.emit(run, waits ? Control::Yield : Control::None);
  set_address(op, address);
  op.destination = destination;
  op.b = b;
  t.detail<MbarrierDetail>() = d;
}

}  // namespace simt::functional
