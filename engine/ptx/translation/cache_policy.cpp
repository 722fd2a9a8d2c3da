/// Cache policies: createpolicy, and the operand of .L2::cache_hint.
#include <bit>
#include <limits>

#include "machine/access.hpp"
#include "ptx/translation/instructions.hpp"
#include "ptx/translation/operands.hpp"

namespace simt::functional {

using ptx::Type;

void set_cache_policy(Translation& t, uint32_t from_end) {
  const Place policy = t.source(t.operand_count() - from_end, Type::B64);
  Op& op = t.program().code.back();
  op.policy = policy;
  op.policy_is_wide = true;
}

namespace {

// The fields of a cache policy are those of libcu++'s access_property_encoding.h, and what ptxas 13.0 makes
// of createpolicy.
constexpr uint32_t fraction_bit = 52, block_size_bit = 52, secondary_bit = 56, primary_bit = 57,
                   mode_bit = 59;
constexpr uint32_t block_count_bit = 37, block_start_bit = 44;
constexpr uint64_t interleaved = 2, in_blocks = 3;

struct PolicyDetail : Detail {
  uint64_t priorities = 0;
  Place fraction = place::none;  ///< none: all
  Address address;
  Place primary_bytes = place::none, total_bytes = place::none;
};

/// The primary priority holds for a fraction of the lines.
void run_create_fractional_policy(Context& c, const Op& op) {
  const auto& d = op.details<PolicyDetail>();
  auto* to = c.lanes<uint64_t>(op.destination);
  const auto* fraction = d.fraction == place::none ? nullptr : c.lanes<const float>(d.fraction);
  each_lane(c, [&](int i) {
    const float f = fraction ? fraction[i] : 1.0f;
    const float sixteenths = (f - std::numeric_limits<float>::epsilon()) * 16;
    const auto number = static_cast<uint64_t>(std::clamp(sixteenths, 0.0f, 15.0f));
    to[i] = interleaved << mode_bit | d.priorities | number << fraction_bit;
  });
}

/// The primary priority holds for blocks of memory from an address on.
void run_create_range_policy(Context& c, const Op& op) {
  const auto& d = op.details<PolicyDetail>();
  auto* to = c.lanes<uint64_t>(op.destination);
  const auto* primary = c.lanes<const uint32_t>(d.primary_bytes);
  const auto* total = c.lanes<const uint32_t>(d.total_bytes);
  uint64_t addresses[warp_lanes];
  lane_addresses(c, d.address.base, d.address.place, d.address.offset, addresses);
  constexpr uint32_t least_block = 12, most_blocks = 127;
  each_lane(c, [&](int i) {
    const auto total_log = static_cast<uint32_t>(std::bit_width(std::max(1u, total[i]) - 1));
    const uint32_t block_log = std::max(least_block + 7, total_log) - 7;
    const uint64_t start = addresses[i] >> block_log;
    const uint64_t end = (addresses[i] + primary[i] + (uint64_t{1} << block_log) - 1) >> block_log;
    to[i] = in_blocks << mode_bit | d.priorities | uint64_t{block_log - least_block} << block_size_bit |
            (start & most_blocks) << block_start_bit |
            std::clamp<uint64_t>(end - start, 1, most_blocks) << block_count_bit;
  });
}

void run_convert_policy(Context& c, const Op& op) {
  auto* to = c.lanes<uint64_t>(op.destination);
  const auto* from = c.lanes<const uint64_t>(op.a);
  each_lane(c, [&](int i) { to[i] = from[i]; });
}

}  // namespace

void translate_createpolicy(Translation& t) {
  const Place to = t.destination(0, Type::B64);
  if (t.take("cvt")) {
    t.take("L2");
    t.take("b64");
    const Place from = t.source(1, Type::B64);
    Op& op = t.emit(run_convert_policy);
    op.destination = to;
    op.a = from;
    return;
  }
  const bool range = t.take("range");
  if (!range && !t.take("fractional")) t.unsupported("createpolicy needs .fractional, .range or .cvt");
  t.take("global");
  t.take("b64");
  static constexpr std::string_view priorities[] = {"L2::evict_unchanged", "L2::evict_first",
                                                    "L2::evict_last", "L2::evict_normal"};
  const auto priority_of = [&](std::string_view name) -> uint64_t {
    const auto found = std::find(std::begin(priorities), std::end(priorities), name);
    if (found == std::end(priorities)) t.unsupported("an eviction priority of L2 is missing");
    return static_cast<uint64_t>(found - std::begin(priorities));
  };
  PolicyDetail d;
  d.priorities = priority_of(t.take_next()) << primary_bit;
  if (const std::string_view name = t.take_next(); !name.empty()) {
    const uint64_t secondary = priority_of(name);
    if (secondary > 1) t.unsupported("the secondary priority can be evict_first or evict_unchanged");
    d.priorities |= secondary << secondary_bit;
  }
  if (range) {
    d.address = t.address(t.operand(1));
    if (d.address.base == Address::Base::Stack) t.unsupported("an address in local memory or parameters");
    d.primary_bytes = t.source(2, Type::U32);
    d.total_bytes = t.source(3, Type::U32);
  } else if (t.operand_count() > 1) {
    d.fraction = t.source(1, Type::F32);
  }
  t.emit(range ? run_create_range_policy : run_create_fractional_policy).destination = to;
  t.detail<PolicyDetail>() = d;
}

}  // namespace simt::functional
