/// Loads and stores in all spaces, loads from constant banks, fences, and what only affects timing.
#include <bit>

#include "machine/fault.hpp"
#include "machine/launch_values.hpp"
#include "operations/memory_access.hpp"
#include "sass/instructions.hpp"
#include "sass/ordering.hpp"
#include "sass/rows.hpp"

namespace simt::sass {

using functional::AccessDetail;
using functional::AccessSpace;
using functional::Widen;

bool take_ordering(Translation& t) {
  bool strong = false;
  t.take("E");
  t.take("U");  // the address is uniform
  while (t.take_one_of({"CONSTANT", "WEAK", "PRIVATE", "EF", "EL", "LU", "EU", "NA", "LTC64B", "LTC128B",
                        "LTC256B", "CTA", "SM", "GPU", "SYS", "VC", "ZD", "BYPASS", "DEFAULT"}) >= 0) {
  }
  while (t.take_one_of({"STRONG", "MMIO"}) >= 0) strong = true;
  while (t.take_one_of({"CTA", "SM", "GPU", "SYS", "VC"}) >= 0) {
  }
  return strong;
}

namespace {

void run_nothing(Context&, const Op&) {}

/// Takes the width; the register count is `elements` where elements have a word.
void take_width(Translation& t, AccessDetail& d) {
  static constexpr uint32_t bytes[] = {1, 1, 2, 2, 4, 8, 16, 32};
  const int width = t.take_one_of({"U8", "S8", "U16", "S16", "32", "64", "128", "256"}, 4);
  d.element_bytes = std::min(4u, bytes[width]);
  d.elements = std::max(1u, bytes[width] / 4);
  d.widen = width == 1 || width == 3 ? Widen::Sign : Widen::Zero;
  d.words = d.element_bytes == 4;
}

/// The places of the words of .ENL2.256: d's upper four are the first operand of a load and the last of a
/// store. A load's mask says which words it has; they are in registers one after another.
void take_two_quads(Translation& t, AccessDetail& d, bool load) {
  if (d.elements != AccessDetail::max_elements) t.unsupported("its width");
  constexpr uint32_t quad = AccessDetail::max_elements / 2;
  const uint32_t mask = load && t.operand_count() > 3 ? static_cast<uint32_t>(t.integer(3)) : 0xff;
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t wanted = mask >> half * quad & 0xf, count = static_cast<uint32_t>(std::popcount(wanted));
    const Place first = !load   ? t.source(1 + half, quad)
                        : count ? t.destination(1 - half, count)
                                : place::none;
    if (load && count == 0 && !t.operand(1 - half).is_zero()) t.unsupported("a destination of no word");
    const Place nowhere = count < quad ? t.scratch(1) : place::none;
    uint32_t next = 0;
    for (uint32_t k = 0; k < quad; ++k)
      d.places[half * quad + k] = wanted >> k & 1 ? first + next++ * place::register_bytes : nowhere;
  }
}

/// Takes LDGMC's type: an element's, or times how many.
void take_multicast_type(Translation& t, AccessDetail& d) {
  struct Named {
    std::string_view name;
    uint32_t bytes;
  };
  static constexpr Named types[] = {{"32", 4},       {"S32", 4},     {"64", 8},     {"S64", 8},
                                    {"F32", 4},      {"F32x2", 8},   {"F32x4", 16}, {"F64", 8},
                                    {"F16x2", 4},    {"F16x4", 8},   {"F16x8", 16}, {"BF16x2", 4},
                                    {"BF16x4", 8},   {"BF16x8", 16}, {"E4M3x4", 4}, {"E4M3x8", 8},
                                    {"E4M3x16", 16}, {"E5M2x4", 4},  {"E5M2x8", 8}, {"E5M2x16", 16}};
  uint32_t bytes = 0;
  for (const Named& type : types)
    if (t.take(type.name)) bytes = type.bytes;
  if (bytes == 0) t.unsupported("this type");
  d.element_bytes = 4;
  d.elements = bytes / 4;
  d.words = true;
}

void access(Translation& t, bool load, bool multicast = false) {
  AccessDetail d;
  d.space = t.space();
  const bool strong = take_ordering(t), two_quads = t.take("ENL2");
  multicast ? take_multicast_type(t, d) : take_width(t, d);
  if (!two_quads && d.elements == AccessDetail::max_elements) t.unsupported("its width");
  const uint32_t value = load ? 0 : 1;
  const uint32_t at = !load ? 0 : two_quads ? 2 : 1;
  const Address address = d.space == AccessSpace::Shared ? t.own_address(at) : t.address(at);
  d.base = address.base;
  d.place_bytes.fill(4);
  if (two_quads) {
    take_two_quads(t, d, load);
  } else {
    const Place first = load ? t.destination(value, d.elements) : t.source(value, d.elements);
    for (uint32_t k = 0; k < d.elements; ++k) d.places[k] = first + k * place::register_bytes;
  }
  const bool far = d.space == AccessSpace::Global || d.space == AccessSpace::Generic;
  if (strong && far) t.order_matters();
  Op& op = t.emit(load ? functional::load_handler(d) : functional::store_handler(d), !strong ? Control::None
                                                                                     : far ? Control::Deferred
                                                                                           : Control::Yield);
  functional::set_address(op, address);
  if (load) op.destination = d.places[0];
  op.orders_memory = strong && load;
  t.detail<AccessDetail>() = d;
  t.accesses(d.element_bytes * d.elements);
}

}  // namespace

/// LD, LDG, LDS, LDL d, address.
void translate_load(Translation& t) {
  access(t, true);
}
/// LDGMC.E.operation.type[.RN].STRONG.scope d, address: what all copies of a multicast object combine to. The
/// GPU is alone, so there is one copy.
void translate_multicast_load(Translation& t) {
  if (t.take_one_of({"ADD", "HPADD", "MIN", "MAX", "AND", "OR", "XOR"}) < 0) t.unsupported("its operation");
  t.take("RN");
  access(t, true, true);
}
/// ST, STG, STS, STL address, a.
void translate_store(Translation& t) {
  access(t, false);
}

namespace {

struct ConstantDetail : Detail {
  uint32_t bank = 0, words = 1, bytes = 4;
  uint32_t sm = 0;  ///< the architecture of the code
  int64_t offset = 0;
  bool is_signed = false;
  bool timed = false;  ///< its addresses are

  uint32_t extended(uint32_t word) const {
    const uint32_t shift = 32 - 8 * bytes;
    return is_signed ? static_cast<uint32_t>(static_cast<int32_t>(word << shift) >> shift)
                     : word << shift >> shift;
  }
};

/// What a launch puts into bank 0 before the parameters, from a byte on.
uint32_t launch_word(const Context& c, const ConstantDetail& d, uint32_t at, int lane) {
  const uint32_t begin = at & ~3u;
  const auto value = functional::launch_value_at(d.sm, begin);
  if (!value)
    throw functional::Fault(
        "illegal instruction",
        "what sm_" + std::to_string(d.sm) + " holds in c[0x0][" + functional::hex(begin) + "] is not known",
        lane);
  return functional::value_of(*c.grid, *value) >> 8 * (at - begin);
}

/// Beyond the bank, hardware reads zeros.
uint32_t constant_word(const Context& c, const ConstantDetail& d, uint32_t at, int lane) {
  if (d.bank == 0 && at < functional::parameters_begin(d.sm)) return d.extended(launch_word(c, d, at, lane));
  const std::vector<std::byte>& bank = c.grid->constant_bank(d.bank);
  uint32_t word = 0;
  if (at < bank.size()) std::memcpy(&word, bank.data() + at, std::min<size_t>(d.bytes, bank.size() - at));
  return d.extended(word);
}

/// From the same place for all launches: out of rows that each launch fills in.
void run_load_fixed_constant(Context& c, const Op& op) {
  const auto& d = op.details<ConstantDetail>();
  const uint32_t skipped = 8 * (static_cast<uint32_t>(d.offset) % 4);
  for (uint32_t k = 0; k < d.words; ++k) {
    const uint32_t* a = row(c, op.a + k * place::register_bytes);
    map_words(c, op.destination + k * place::register_bytes,
              [&](uint32_t i) { return d.extended(a[i] >> skipped); });
  }
}

void run_load_constant(Context& c, const Op& op) {
  const auto& d = op.details<ConstantDetail>();
  const uint32_t* index = row(c, op.a);
  alignas(64) uint32_t value[4][warp_lanes] = {};
  alignas(64) uint64_t address[warp_lanes] = {};
  each_lane(c, [&](int lane) {
    const auto at = static_cast<uint32_t>(d.offset) + index[lane];
    address[lane] = c.grid->constant_address(d.bank) + at;
    for (uint32_t k = 0; k < d.words; ++k) value[k][lane] = constant_word(c, d, at + 4 * k, lane);
  });
  for (uint32_t k = 0; k < d.words; ++k)
    write_lanes(c, c.lanes<uint32_t>(op.destination + k * place::register_bytes), value[k]);
  if (d.timed) functional::record_access(c, AccessSpace::Global, address);
}

}  // namespace

/// LDC d, c[bank][a + offset]; ULDC d, c[bank][ua + offset].
void translate_load_constant(Translation& t) {
  static constexpr uint32_t bytes[] = {1, 1, 2, 2, 4, 8, 16};
  const int width = t.take_one_of({"U8", "S8", "U16", "S16", "32", "64", "128"}, 4);
  if (t.take_one_of({"IL", "IS", "ISL"}) >= 0) t.unsupported("this addressing of constants");
  ConstantDetail d;
  d.words = std::max(1u, bytes[width] / 4);
  d.bytes = std::min(4u, bytes[width]);
  d.is_signed = width == 1 || width == 3;
  const Operand& o = t.operand(1);
  const bool by_lane = o.base != Operand::none, by_warp = o.uniform != Operand::none;
  if (o.kind != OperandKind::Constant || (by_lane && by_warp) || o.bank >= functional::ConstantBanks::count)
    t.unsupported("this constant");
  d.bank = o.bank;
  d.offset = o.value;
  d.sm = t.sm();
  const Place to = t.destination(0, d.words);
  Place index = place::none;
  if (by_lane && o.base != Operand::zero) index = t.general(o.base, 1, false);
  if (by_warp && o.uniform != Operand::zero) index = t.uniform(o.uniform, 1);
  const bool fixed = index == place::none;
  if (fixed) index = t.constant_words(d.bank, static_cast<uint32_t>(d.offset) & ~3u, d.words);
  Op& op = t.emit(fixed ? run_load_fixed_constant : run_load_constant);
  op.destination = to;
  op.a = index;
  // Bank 0 has no address here. ULDC does not go through the cache of LDC.
  d.timed = by_lane && !fixed && d.bank != 0;
  t.detail<ConstantDetail>() = d;
  if (d.timed) t.accesses(d.words * d.bytes);
}

/// MEMBAR and the like.
void translate_fence(Translation& t) {
  t.take_all();
  t.emit(run_nothing).orders_memory = true;
}

/// Instructions without an effect on values.
void translate_nothing(Translation& t) {
  t.take_all();
  t.emit(run_nothing);
}

}  // namespace simt::sass
