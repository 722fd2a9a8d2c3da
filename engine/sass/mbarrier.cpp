/// mbarriers: SYNCS, RPCMOV, ARRIVES, and ATOMS.ARRIVE before sm_90.
#include "operations/mbarrier.hpp"

#include "machine/fault.hpp"
#include "sass/instructions.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::AccessSpace;
using functional::Fault;
using functional::Mbarrier;

namespace {

struct SyncsDetail : Detail {
  Address::Base base = Address::Base::Narrow;
  bool counts = false;  ///< c holds a number of arrivals; otherwise there are `arrivals`
  uint32_t arrivals = 0;
  Place bytes = place::none;  ///< of transactions
  bool completes = false;     ///< they are complete; otherwise they are expected
  bool drops = false;         ///< later phases expect as many arrivals less
  bool tells_lanes = false;   ///< the low word of the result: lanes that arrive at the same object
};

template <class F>
void each_object(Context& c, const Op& op, F f) {
  functional::each_mbarrier(c, op, op.details<SyncsDetail>().base, AccessSpace::Shared, f);
}

void run_exchange(Context& c, const Op& op) {
  const uint32_t* b = row(c, op.b);
  uint64_t before[warp_lanes] = {};
  each_object(c, op,
              [&](Mbarrier& m, int i) { before[i] = m.exchange(pair_at(b, static_cast<uint32_t>(i))); });
  if (op.destination != place::none) map_pairs(c, op.destination, [&](uint32_t i) { return before[i]; });
}

void run_invalidate(Context& c, const Op& op) {
  each_object(c, op, [](Mbarrier& m, int) { m.invalidate(); });
}

/// The states for lanes that arrive together: the low word tells which do, the high one is that of the object
/// before the first of them.
void tell_lanes(const Context& c, const uint64_t* address, uint64_t* state) {
  uint64_t told[warp_lanes] = {};
  each_lane(c, [&](int i) {
    uint32_t together = 0;
    each_lane(c, [&](int k) { together |= uint32_t{address[k] == address[i]} << k; });
    told[i] = (state[std::countr_zero(together)] >> 32 << 32) | together;
  });
  std::copy_n(told, warp_lanes, state);
}

void run_arrive(Context& c, const Op& op) {
  const auto& d = op.details<SyncsDetail>();
  const uint32_t* counts = d.counts ? row(c, op.c) : nullptr;
  const uint32_t* bytes = d.bytes == place::none ? nullptr : row(c, d.bytes);
  uint64_t state[warp_lanes] = {};
  each_object(c, op, [&](Mbarrier& m, int i) {
    state[i] = m.word();
    if (bytes) m.expect(d.completes ? -int64_t{bytes[i]} : int64_t{bytes[i]});
    const uint32_t count = counts ? counts[i] : d.arrivals;
    if (!counts && count == 0) return;
    if (d.drops) m.drop(count);
    m.arrive(count);
  });
  if (op.destination == place::none) return;
  if (d.tells_lanes) {
    uint64_t address[warp_lanes];
    functional::lane_addresses(c, op, d.base, address);
    tell_lanes(c, address, state);
  }
  map_pairs(c, op.destination, [&](uint32_t i) { return state[i]; });
}

/// b: the phase's parity in the highest bit.
void run_check(Context& c, const Op& op) {
  const uint32_t* b = row(c, op.b);
  uint32_t done = 0;
  each_object(c, op, [&](Mbarrier& m, int i) { done |= uint32_t{m.completed(b[i] >> 31)} << i; });
  write_predicate(c, op.destination, done);
  c.yield = (c.mask & ~done) != 0;
}

Op& emit_syncs(Translation& t, Handler run, const Address& address, SyncsDetail d,
               Control control = Control::None) {
  Op& op = t.emit(run, control);
  functional::set_address(op, address);
  d.base = address.base;
  t.detail<SyncsDetail>() = d;
  t.accesses(8);
  return op;
}

Place pair_destination(Translation& t, uint32_t index) {
  return t.operand(index).is_zero() ? place::none : t.destination(index, 2);
}

/// .ARRIVE.TRANS64 d, address, a: arrivals and transactions, one of which a gives: A for arrivals, T for
/// transactions, followed by their number, or R for those in a; TX: transactions that are complete.
void translate_arrive(Translation& t) {
  SyncsDetail d;
  if (!t.take("TRANS64")) t.unsupported("its form");
  const bool has_result = !t.take("RED");
  d.drops = t.take("OPTOUT");
  d.tells_lanes = t.take("TMASK");
  const int form = t.take_one_of({"A1T0", "ART0", "A0TR", "A0TX", "A0T1", "A1TR"}, 5);
  const Place to = pair_destination(t, 0);
  if (to != place::none && !has_result) t.unsupported("a reduction with a result");
  const Address address = t.address(1);
  const Place a = t.source(2);
  d.arrivals = form == 0 || form == 5 ? 1 : 0;
  d.counts = form == 1;
  if (form == 2 || form == 3 || form == 5) d.bytes = a;
  if (form == 4) d.bytes = t.constant({1});
  d.completes = form == 3;
  Op& op = emit_syncs(t, run_arrive, address, d);
  op.destination = to;
  op.c = a;
}

}  // namespace

/// SYNCS.EXCH.64 d, address, a: initialises an mbarrier. .ARRIVE; .PHASECHK p, address, a: whether the phase
/// with the parity in a is complete; .CCTL.IV address: ends its use; .CCTL.IVALL: of all.
void translate_syncs(Translation& t) {
  if (t.take("ARRIVE")) return translate_arrive(t);
  if (t.take("EXCH")) {
    if (!t.take("64")) t.unsupported("its form");
    const Place to = pair_destination(t, 0);
    const Address address = t.address(1);
    const Place a = t.source(2, 2);
    Op& op = emit_syncs(t, run_exchange, address, {});
    op.destination = to;
    op.b = a;
    return;
  }
  if (t.take("PHASECHK")) {
    if (!t.take("TRANS64")) t.unsupported("its form");
    t.take("TRYWAIT");
    const Place p = t.predicate_destination(0);
    const Address address = t.address(1);
    const Place a = t.source(2);
    Op& op = emit_syncs(t, run_check, address, {}, Control::Yield);
    op.destination = p;
    op.b = a;
    return;
  }
  const bool cctl = t.take("CCTL");
  if (cctl && t.take("IVALL")) return translate_nothing(t);
  if (!cctl || !t.take("IV")) t.unsupported("this operation on mbarriers");
  emit_syncs(t, run_invalidate, t.address(0), {});
}

/// RPCMOV.32 Rpc.HI, a; RPCMOV.32 d, Rpc.LO: to and from a pair of registers that every lane has.
void translate_rpcmov(Translation& t) {
  t.take("32");
  const auto named = [&](uint32_t index) {
    const Operand& o = t.operand(index);
    return o.kind == OperandKind::Name && (o.text == "Rpc.HI" || o.text == "Rpc.LO");
  };
  Place to = place::none, from = place::none;
  if (named(0)) {
    to = t.reported(t.operand(0).text == "Rpc.HI");
    from = t.source(1);
  } else if (named(1)) {
    to = t.destination(0);
    from = t.reported(t.operand(1).text == "Rpc.HI");
  } else {
    t.unsupported("Rpc is expected");
  }
  Op& op = t.emit([](Context& c, const Op& o) {
    const uint32_t* a = row(c, o.a);
    map_words(c, o.destination, [=](uint32_t i) { return a[i]; });
  });
  op.destination = to;
  op.a = from;
}

// --- before sm_90 -----------------------------------------------------------------------------------------

namespace {

/// One arrival at an object as sm_80 keeps it; other code reads and changes it as integers. Low word: 2^30
/// minus the arrivals expected in each phase. High word: bit 31 is the parity of the phase, below is minus
/// the pending arrivals. Returns what it was.
uint64_t arrive_once(Context& c, uint64_t address, int lane) {
  if (address % 8) functional::misaligned(address, 8, lane);
  std::byte* at = c.shared(address, 8, lane);
  uint32_t words[2];
  std::memcpy(words, at, sizeof words);
  if (words[0] == 0) throw Fault("mbarrier", "it has not been initialised", lane);
  const uint64_t before = words[0] | uint64_t{words[1]} << 32;
  constexpr uint32_t pending = 0x7fffffff, extends = 0x40000000;
  if ((++words[1] & pending) == 0) words[1] |= (words[0] & pending) | extends;
  std::memcpy(at, words, sizeof words);
  return before;
}

void run_old_arrive(Context& c, const Op& op) {
  uint64_t address[warp_lanes], before[warp_lanes] = {};
  functional::lane_addresses(c, op, op.details<SyncsDetail>().base, address);
  functional::record_access(c, AccessSpace::Shared, address);
  each_lane(c, [&](int i) { before[i] = arrive_once(c, address[i], i); });
  if (op.destination != place::none) map_pairs(c, op.destination, [&](uint32_t i) { return before[i]; });
}

}  // namespace

/// ATOMS.ARRIVE.64 d, address.
void translate_old_arrive(Translation& t) {
  t.take("ARRIVE");
  if (!t.take("64")) t.unsupported("its form");
  const Place to = pair_destination(t, 0);
  emit_syncs(t, run_old_arrive, t.own_address(1), {}).destination = to;
}

/// ARRIVES.LDGSTSBAR.64 address: an arrival when the lane's earlier copies are complete, which they are at
/// once here. .ARVCNT, .TRANSCNT: the arrival, or a transaction of one byte, of an object of sm_90.
void translate_arrives(Translation& t) {
  if (!t.take("LDGSTSBAR") || !t.take("64")) t.unsupported("its form");
  const int form = t.take_one_of({"ARVCNT", "TRANSCNT"});
  SyncsDetail d;
  d.arrivals = form == 0 ? 1 : 0;
  if (form == 1) d.bytes = t.constant({1});
  d.completes = form == 1;
  emit_syncs(t, form < 0 ? run_old_arrive : run_arrive, t.own_address(0), d);
}

}  // namespace simt::sass
