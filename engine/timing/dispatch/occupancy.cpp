#include "timing/dispatch/occupancy.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "timing/warps/core_traits.hpp"

namespace simt {
namespace {

uint32_t round_up(uint32_t value, uint32_t unit) {
  return unit > 1 ? (value + unit - 1) / unit * unit : value;
}

}  // namespace

Occupancy occupancy_of(const Spec& spec, const LaunchInfo& launch, uint64_t ctas) {
  Occupancy result;
  const SmSpec& sm = spec.sm;
  const auto warps = static_cast<uint32_t>((launch.block.count() + sm.warp_size - 1) / sm.warp_size);
  if (warps > sm.max_warps)
    throw std::invalid_argument("launch " + std::to_string(launch.id) + ": a CTA of " +
                                std::to_string(launch.block.count()) + " threads needs " +
                                std::to_string(warps) + " warps, but an SM of " + spec.name + " holds " +
                                std::to_string(sm.max_warps));
  // The baseline model rounds registers to four per thread and allocates them per thread.
  const uint32_t unit = sm.register_file.allocation_unit;
  result.registers_per_cta = unit == 0 ? warps * sm.warp_size * round_up(launch.registers_per_thread, 4)
                                       : warps * round_up(launch.registers_per_thread * sm.warp_size, unit);
  result.shared_per_cta = launch.shared_bytes == 0 && spec.shared_memory.reserved_per_cta == 0
                              ? 0
                              : round_up(launch.shared_bytes + spec.shared_memory.reserved_per_cta,
                                         spec.shared_memory.allocation_unit);

  uint64_t limit = warps ? sm.max_warps / warps : sm.max_ctas;
  result.limited_by = "warps";
  const auto lower = [&](uint64_t other, const char* why) {
    if (other >= limit) return;
    limit = other;
    result.limited_by = why;
  };
  if (result.shared_per_cta > 0) lower(spec.shared_memory.bytes / result.shared_per_cta, "shared memory");
  if (result.registers_per_cta > 0) lower(sm.register_file.registers / result.registers_per_cta, "registers");
  lower(sm.max_ctas, "CTAs");
  if (limit == 0) {
    result.warning = "launch " + std::to_string(launch.id) + " (" + launch.name + ") needs more " +
                     result.limited_by + " than an SM of " + spec.name + " has; it runs one CTA per SM";
    limit = 1;
  }
  const uint64_t needed = (ctas + sm.count - 1) / std::max(1u, sm.count);
  uint64_t carved_for = limit;
  if (needed < limit) {
    limit = std::max<uint64_t>(1, needed);
    result.limited_by = "grid";
    if (core_traits(spec).carve_out_for_grid) carved_for = limit;
  }
  result.ctas_per_sm = static_cast<uint32_t>(limit);

  const L1Spec& l1 = spec.l1;
  result.l1_ways = l1.cache.ways;
  const uint32_t line_sets = l1.cache.sets * l1.cache.line_bytes;
  if (l1.adaptive && !l1.carve_out_options.empty()) {
    const uint64_t shared = carved_for * result.shared_per_cta;
    result.carve_out_bytes = l1.carve_out_options.back();
    for (uint32_t option : l1.carve_out_options)
      if (shared <= option) {
        result.carve_out_bytes = option;
        break;
      }
    const double max_ways = line_sets ? static_cast<double>(l1.unified_bytes) / line_sets : l1.cache.ways;
    const double share = 1.0 - static_cast<double>(result.carve_out_bytes) / std::max(1u, l1.unified_bytes);
    result.l1_ways =
        std::max(1u, static_cast<uint32_t>(std::lround(std::floor(max_ways * std::max(0.0, share) + 0.5))));
  }
  result.l1_bytes = result.l1_ways * line_sets;
  return result;
}

}  // namespace simt
