#include "operations/special_registers.hpp"

#include <map>

#include "machine/cta.hpp"
#include "machine/grid.hpp"
#include "machine/lanes.hpp"

namespace simt::functional {
namespace {

enum class Special : int64_t {
  CtaidX,
  CtaidY,
  CtaidZ,
  NtidX,
  NtidY,
  NtidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Nwarpid,
  Smid,
  Nsmid,
  Gridid,
  DynamicShared,
  TotalShared,
  ReservedShared,
  ReservedSharedEnd,
  AggregateShared,
  Clock,
  ClockHigh,
  Clock64,
  GlobalTimer,
  GlobalTimerLow,
  GlobalTimerHigh,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,
  WorkspaceHigh,
  WorkspaceLow,
  Zero
};

const std::map<std::string_view, Special>& specials() {
  using enum Special;
  static const std::map<std::string_view, Special> names{{"ctaid.x", CtaidX},
                                                         {"ctaid.y", CtaidY},
                                                         {"ctaid.z", CtaidZ},
                                                         {"ntid.x", NtidX},
                                                         {"ntid.y", NtidY},
                                                         {"ntid.z", NtidZ},
                                                         {"nctaid.x", NctaidX},
                                                         {"nctaid.y", NctaidY},
                                                         {"nctaid.z", NctaidZ},
                                                         {"nwarpid", Nwarpid},
                                                         {"smid", Smid},
                                                         {"nsmid", Nsmid},
                                                         {"gridid", Gridid},
                                                         {"dynamic_smem_size", DynamicShared},
                                                         {"total_smem_size", TotalShared},
                                                         {"aggr_smem_size", AggregateShared},
                                                         {"clock", Clock},
                                                         {"clock_hi", ClockHigh},
                                                         {"clock64", Clock64},
                                                         {"globaltimer", GlobalTimer},
                                                         {"globaltimer_lo", GlobalTimerLow},
                                                         {"globaltimer_hi", GlobalTimerHigh},
                                                         {"clusterid.x", ClusteridX},
                                                         {"clusterid.y", ClusteridY},
                                                         {"clusterid.z", ClusteridZ},
                                                         {"nclusterid.x", NclusteridX},
                                                         {"nclusterid.y", NclusteridY},
                                                         {"nclusterid.z", NclusteridZ},
                                                         {"cluster_ctaid.x", ClusterCtaidX},
                                                         {"cluster_ctaid.y", ClusterCtaidY},
                                                         {"cluster_ctaid.z", ClusterCtaidZ},
                                                         {"cluster_nctaid.x", ClusterNctaidX},
                                                         {"cluster_nctaid.y", ClusterNctaidY},
                                                         {"cluster_nctaid.z", ClusterNctaidZ},
                                                         {"cluster_ctarank", ClusterCtarank},
                                                         {"cluster_nctarank", ClusterNctarank},
                                                         {"is_explicit_cluster", IsExplicitCluster},
                                                         {"envreg1", WorkspaceHigh},
                                                         {"envreg2", WorkspaceLow},
                                                         {"current_graph_exec", Zero},
                                                         {"tid.w", Zero},
                                                         {"ntid.w", Zero},
                                                         {"ctaid.w", Zero},
                                                         {"nctaid.w", Zero},
                                                         {"reserved_smem_offset_begin", ReservedShared},
                                                         {"reserved_smem_offset_end", ReservedSharedEnd},
                                                         {"reserved_smem_offset_cap", ReservedSharedEnd},
                                                         {"reserved_smem_offset_0", ReservedShared},
                                                         {"reserved_smem_offset_1", ReservedShared}};
  return names;
}

uint64_t special_value(const Context& c, Special which) {
  const Grid& g = *c.grid;
  const LaunchConfig& l = g.config();
  const auto& index = c.cta->index();
  const auto clusters = [&](int i) { return l.grid[i] / l.cluster[i]; };
  switch (which) {
    case Special::CtaidX:
      return index[0];
    case Special::CtaidY:
      return index[1];
    case Special::CtaidZ:
      return index[2];
    case Special::NtidX:
      return l.block[0];
    case Special::NtidY:
      return l.block[1];
    case Special::NtidZ:
      return l.block[2];
    case Special::NctaidX:
      return l.grid[0];
    case Special::NctaidY:
      return l.grid[1];
    case Special::NctaidZ:
      return l.grid[2];
    case Special::Nwarpid:
      return g.machine().warps_per_sm;
    case Special::Smid:
      return c.cta->sm;
    case Special::Nsmid:
      return g.machine().sm_count;
    case Special::Gridid:
      return l.id;
    case Special::DynamicShared:
      return l.dynamic_shared_bytes;
    case Special::TotalShared:
    case Special::ReservedShared:
      return g.own_shared_bytes();
    case Special::AggregateShared:
    case Special::ReservedSharedEnd:
      return g.shared_bytes();
    case Special::ClusteridX:
      return index[0] / l.cluster[0];
    case Special::ClusteridY:
      return index[1] / l.cluster[1];
    case Special::ClusteridZ:
      return index[2] / l.cluster[2];
    case Special::NclusteridX:
      return clusters(0);
    case Special::NclusteridY:
      return clusters(1);
    case Special::NclusteridZ:
      return clusters(2);
    case Special::ClusterCtaidX:
      return index[0] % l.cluster[0];
    case Special::ClusterCtaidY:
      return index[1] % l.cluster[1];
    case Special::ClusterCtaidZ:
      return index[2] % l.cluster[2];
    case Special::ClusterNctaidX:
      return l.cluster[0];
    case Special::ClusterNctaidY:
      return l.cluster[1];
    case Special::ClusterNctaidZ:
      return l.cluster[2];
    case Special::ClusterCtarank:
      return c.cta->rank();
    case Special::ClusterNctarank:
      return g.cluster_size();
    case Special::WorkspaceHigh:
      return g.workspace() >> 32;
    case Special::WorkspaceLow:
      return g.workspace() & 0xffffffffu;
    case Special::IsExplicitCluster:
      return g.cluster_size() > 1;
    default:
      return 0;
  }
  return 0;
}

template <SpecialForm form>
void write(Context& c, Place destination, uint64_t value) {
  if constexpr (form == SpecialForm::Predicate)
    write_predicate(c, destination, value ? full_mask : 0);
  else if constexpr (form == SpecialForm::Wide)
    splat(c, destination, value);
  else
    splat(c, destination, static_cast<uint32_t>(value));
  if constexpr (form == SpecialForm::Rows)
    splat(c, destination + place::register_bytes, static_cast<uint32_t>(value >> 32));
}

template <SpecialForm form>
void run_special(Context& c, const Op& op) {
  write<form>(c, op.destination, special_value(c, static_cast<Special>(op.immediate)));
}

bool is_clock(Special which) {
  return which >= Special::Clock && which <= Special::GlobalTimerHigh;
}

/// The value a clock shows in cycle `now`; timers count nanoseconds.
uint64_t clock_value(const Context& c, Special which, uint64_t now) {
  if (which >= Special::GlobalTimer) {
    const uint64_t khz = c.grid->machine().core_khz;
    now = now / khz * 1'000'000 + now % khz * 1'000'000 / khz;
  }
  switch (which) {
    case Special::Clock:
    case Special::GlobalTimerLow:
      return now & 0xffffffffu;
    case Special::ClockHigh:
    case Special::GlobalTimerHigh:
      return now >> 32;
    default:
      return now;
  }
}

template <SpecialForm form>
void perform_clock(Context& c, DeferredAccess& access) {
  const auto which = static_cast<Special>(access.op->immediate);
  write<form>(c, access.op->destination, clock_value(c, which, access.value[0][0]));
}

/// With timing, the cycle of its issue is not yet known.
template <SpecialForm form>
void run_clock(Context& c, const Op& op) {
  if (c.deferred) {
    c.deferred->mask = c.mask;
    c.deferred->of_clock = true;
    c.deferred->perform = perform_clock<form>;
    return;
  }
  write<form>(c, op.destination, clock_value(c, static_cast<Special>(op.immediate), c.now()));
}

}  // namespace

std::optional<SpecialRegister> special_register(std::string_view name) {
  const auto it = specials().find(name);
  if (it == specials().end()) return std::nullopt;
  const Special which = it->second;
  const bool advances = which == Special::Clock || which == Special::Clock64 || which == Special::GlobalTimer;
  return SpecialRegister{static_cast<int64_t>(which), is_clock(which), advances};
}

Handler special_register_handler(const SpecialRegister& which, SpecialForm form) {
  switch (form) {
    case SpecialForm::Word:
      return which.is_clock ? run_clock<SpecialForm::Word> : run_special<SpecialForm::Word>;
    case SpecialForm::Wide:
      return which.is_clock ? run_clock<SpecialForm::Wide> : run_special<SpecialForm::Wide>;
    case SpecialForm::Rows:
      return which.is_clock ? run_clock<SpecialForm::Rows> : run_special<SpecialForm::Rows>;
    case SpecialForm::Predicate:
      break;
  }
  return which.is_clock ? run_clock<SpecialForm::Predicate> : run_special<SpecialForm::Predicate>;
}

}  // namespace simt::functional
