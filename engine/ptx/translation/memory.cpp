/// Loads and stores in all state spaces: ld, ldu, st, st.bulk, and pure hints (prefetch, discard,
/// applypriority).
#include "machine/fault.hpp"
#include "operations/memory_access.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {

using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

AccessSpace take_space(Translation& t) {
  switch (t.take_one_of({"global", "const", "param", "param::entry", "param::func", "shared", "shared::cta",
                         "shared::cluster", "local"})) {
    case 0:
    case 1:
    case 2:
    case 3:
      return AccessSpace::Global;
    case 5:
    case 6:
    case 7:
      return AccessSpace::Shared;
    case 4:
    case 8:
      return AccessSpace::Local;
    default:
      return AccessSpace::Generic;
  }
}

namespace {

/// Kernel parameters: the same for all threads, so lanes are ignored.
void run_load_parameter(Context& c, const Op& op) {
  const auto& d = op.details<AccessDetail>();
  const std::byte* at = c.grid->parameters() + op.immediate;
  for (uint32_t e = 0; e < d.elements; ++e) {
    uint64_t v = 0;
    std::memcpy(&v, at + e * d.element_bytes, std::min<size_t>(8, d.element_bytes));
    if (d.widen == Widen::Sign && d.element_bytes < 8) {
      const uint32_t shift = 64 - 8 * d.element_bytes;
      v = static_cast<uint64_t>(static_cast<int64_t>(v << shift) >> shift);
    }
    const auto put = [&](auto* to) {
      using L = std::remove_pointer_t<decltype(to)>;
      for (uint32_t i = 0; i < warp_lanes; ++i) to[i] = (c.mask >> i) & 1 ? static_cast<L>(v) : to[i];
    };
    if (d.place_bytes[e] == 8)
      put(c.lanes<uint64_t>(d.places[e]));
    else
      put(c.lanes<uint32_t>(d.places[e]));
  }
}

/// Takes cache operators, eviction priorities and prefetch sizes, which only affect timing. Returns false if
/// the access must take effect in time order (volatile, relaxed, acquire, release).
bool take_ordering(Translation& t) {
  bool strong = false;
  while (t.take_one_of({"weak", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "cop"}) >= 0) {
  }
  while (t.take_one_of({"volatile", "relaxed", "acquire", "release", "mmio"}) >= 0) strong = true;
  while (t.take_one_of({"cta", "cluster", "gpu", "sys"}) >= 0) {
  }
  for (const std::string_view m : t.mnemonic().modifiers)
    if (m.starts_with("L1::") || m.starts_with("L2::") || m == "unified") t.take(m);
  return !strong;
}

/// of_bytes: .e4m3x4 and .e5m2x4, which only multimem has, are words.
void translate_access(Translation& t, bool load, bool of_bytes = false) {
  const bool has_policy = take_cache_hint(t);
  const bool weak = take_ordering(t);
  const auto has = [&](std::string_view modifier) {
    const auto& all = t.mnemonic().modifiers;
    return std::find(all.begin(), all.end(), modifier) != all.end();
  };
  const bool kernel_parameter = has("param::entry") || (has("param") && t.in_entry());
  const bool function_parameter = has("param::func") || (has("param") && !t.in_entry());
  AccessSpace space = take_space(t);
  const int vector = t.take_one_of({"v2", "v4", "v8"});
  const uint32_t elements = vector < 0 ? 1 : 2u << vector;
  const Type type = of_bytes && t.take_one_of({"e4m3x4", "e5m2x4"}) >= 0 ? Type::B32 : t.take_type();
  const ptx::Operand& value = t.operand(load ? 0 : 1);
  const Address address = t.address(t.operand(load ? 1 : 0));
  // A function's parameters are on the stack, as are local variables.
  const bool stack = address.base == Address::Base::Stack && !address.entry_parameter;
  if (stack || function_parameter) space = AccessSpace::Local;
  AccessDetail d;
  d.base = address.base;
  d.space = space;
  d.in_parameters = kernel_parameter && address.base != Address::Base::Stack;
  d.elements = elements;
  d.element_bytes = std::max(1u, ptx::bytes(type));
  d.widen = ptx::is_signed(type) ? Widen::Sign : Widen::Zero;
  for (uint32_t e = 0; e < elements; ++e) {
    const ptx::Operand& o = elements > 1 || value.kind == OperandKind::Vector ? t.part(value, e) : value;
    uint32_t bytes = 0;
    d.places[e] = load ? t.destination_of_any_size(o, type, bytes) : t.source_of_any_size(o, type, bytes);
    if (bytes < d.element_bytes) t.unsupported("a register that is narrower than the access");
    d.place_bytes[e] = static_cast<uint8_t>(std::max(4u, bytes));
  }
  d.words = d.element_bytes == 4 && std::all_of(d.place_bytes.begin(), d.place_bytes.begin() + elements,
                                                [](uint8_t bytes) { return bytes == 4; });
  if (address.entry_parameter && load && d.element_bytes <= 8) {
    Op& op = t.emit(run_load_parameter);
    op.immediate = address.offset;
  } else {
    if (address.entry_parameter) t.unsupported("a store into the kernel's parameters");
    const bool far = space == AccessSpace::Global || space == AccessSpace::Generic;
    if (!weak && far) t.order_matters();
    const Handler h = load ? load_handler(d) : store_handler(d);
    // A strong access may be in a loop that waits for other lanes, in shared memory as well.
    Op& op = t.emit(h, weak ? Control::None : far ? Control::Deferred : Control::Yield);
    set_address(op, address);
    if (load) op.destination = d.places[0];
    for (const std::string_view m : t.mnemonic().modifiers) op.orders_memory |= m == "acquire";
    if (has_policy) set_cache_policy(t);
  }
  t.detail<AccessDetail>() = d;
}

struct BulkStoreDetail : Detail {
  Address to;
  AccessSpace space = AccessSpace::Generic;  ///< or Shared
  Place bytes = place::none;
  uint32_t size_bits = 64;
};

/// Stores zeros to shared memory.
void run_bulk_store(Context& c, const Op& op) {
  constexpr uint64_t most_bytes = 1 << 24;
  const auto& d = op.details<BulkStoreDetail>();
  uint64_t to[warp_lanes];
  lane_addresses(c, d.to.base, d.to.place, d.to.offset, to);
  record_access(c, d.space, to);
  check_alignment(c, to, 8);
  each_lane(c, [&](int i) {
    const uint64_t bytes =
        d.size_bits == 32 ? c.lanes<const uint32_t>(d.bytes)[i] : c.lanes<const uint64_t>(d.bytes)[i];
    if (bytes % 8 || bytes > most_bytes)
      throw Fault(
          "illegal instruction",
          "st.bulk of " + std::to_string(bytes) + " bytes: a multiple of 8, 2^24 at most, is expected", i);
    if (d.space == AccessSpace::Generic && !window::is_shared(to[i]))
      throw Fault("illegal address", "st.bulk outside shared memory", i);
    std::memset(host_address(c, d.space, to[i], bytes, i), 0, bytes);
  });
}

void run_nothing(Context&, const Op&) {}

}  // namespace

void translate_ld(Translation& t) {
  translate_access(t, true);
}
void translate_st(Translation& t) {
  translate_access(t, false);
}

/// The GPU is alone: a multicast object has one copy of its memory, which is what all copies' elements
/// combine to.
void translate_multimem_load(Translation& t) {
  t.take("ld_reduce");
  if (t.take_one_of({"add", "min", "max", "and", "or", "xor"}) < 0) t.unsupported("an operation is missing");
  t.take_one_of({"acc::f32", "acc::f16"});
  translate_access(t, true, true);
}
/// To all copies, of which there is one.
void translate_multimem_store(Translation& t) {
  t.take("st");
  translate_access(t, false, true);
}

void translate_st_bulk(Translation& t) {
  t.take("bulk");
  t.take("weak");
  BulkStoreDetail d;
  if (t.take("shared::cta")) d.space = AccessSpace::Shared;
  d.to = t.address(t.operand(0));
  if (d.to.base == Address::Base::Stack) t.unsupported("an address in local memory or parameters");
  uint32_t bytes = 0;
  d.bytes = t.source_of_any_size(t.operand(1), Type::U64, bytes);
  d.size_bits = 8 * bytes;
  if (bytes < 4) t.unsupported("a size of 32 or 64 bits is expected");
  if (t.immediate(t.operand(2)) != 0) t.unsupported("the initial value can only be 0");
  t.emit(run_bulk_store);
  t.detail<BulkStoreDetail>() = d;
}

void translate_hint(Translation& t) {
  t.take_all();
  t.emit(run_nothing);
}

}  // namespace simt::functional
