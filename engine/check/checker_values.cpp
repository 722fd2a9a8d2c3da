/// Which memory holds values that somebody has written: what is copied stays without a value, and only its
/// use is reported.
#include <algorithm>
#include <bit>
#include <cstring>

#include "check/checker.hpp"
#include "machine/lanes.hpp"
#include "operations/atomics.hpp"
#include "operations/copies.hpp"
#include "operations/memory_access.hpp"
#include "operations/tiles.hpp"

namespace simt::check {

using functional::AccessDetail;
using functional::AccessSpace;
using functional::full_mask;
using functional::TilesDetail;
namespace place = functional::place;
namespace window = functional::window;

namespace {

bool is_register(Place p) {
  return p != place::none && p >> place::bank_shift == 0;
}

}  // namespace

uint64_t Checker::missing(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane) {
  if (window::is_shared(generic)) {
    uint64_t offset = generic - window::shared;
    CtaState* owner = owner_of(c, offset);
    if (!owner || offset + bytes > c.cta->shared_bytes()) return 0;
    return owner->valid.missing(offset, bytes);
  }
  if (window::is_local(generic)) {
    const uint64_t each = grid_->local_bytes(), at = generic - window::local;
    if (warp_->local.empty() || at + bytes > each) return 0;
    return warp_->local.missing(lane * each + at, bytes);
  }
  return device_.missing(generic, bytes);
}

void Checker::holds(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane, uint64_t what) {
  if (window::is_shared(generic)) {
    uint64_t offset = generic - window::shared;
    CtaState* owner = owner_of(c, offset);
    if (owner && offset + bytes <= c.cta->shared_bytes()) owner->valid.set(offset, bytes, what);
  } else if (window::is_local(generic)) {
    const uint64_t each = grid_->local_bytes(), at = generic - window::local;
    if (!warp_->local.empty() && at + bytes <= each) warp_->local.set(lane * each + at, bytes, what);
  } else {
    device_.set(generic, bytes, what);
  }
}

/// As `holds`, for any number of bytes.
void Checker::fills(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane) {
  if (!checks_.init) return;
  for (uint64_t done = 0; done < bytes; done += 64)
    holds(c, generic + done, std::min<uint64_t>(64, bytes - done), lane, ~uint64_t{0});
}

/// A copy in memory: what has no value has none there either.
void Checker::copies(Context& c, uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane) {
  if (!checks_.init) return;
  for (uint64_t done = 0; done < bytes; done += 64) {
    const uint64_t size = std::min<uint64_t>(64, bytes - done);
    holds(c, to + done, size, lane, ~missing(c, from + done, size, lane));
  }
}

uint32_t Checker::new_source(uint64_t generic, uint32_t lane) {
  sources_.push_back(
      {at_, static_cast<uint16_t>(warp_->number), static_cast<uint8_t>(lane), cta_->index, generic});
  return static_cast<uint32_t>(sources_.size() - 1);
}

/// A value that nobody has written is used.
void Checker::used(Context& c, uint32_t source, uint32_t lane, const char* how) {
  if (source >= sources_.size()) return;
  const Source& s = sources_[source];
  if (running_->racing.contains(s.op)) return;
  Finding found;
  found.check = s.is_shuffle ? "sync" : "init";
  const bool shared = window::is_shared(s.address);
  uint64_t offset = s.address - window::shared;
  const bool own = !shared || c.is_own(offset);
  found.kind = s.is_shuffle                  ? "mask"
               : shared                      ? own ? "uninitialised-shared" : "uninitialised-cluster"
               : window::is_local(s.address) ? "uninitialised-local"
                                             : "uninitialised-global";
  found.detail = (s.is_shuffle ? "a value from a lane that does not take part in the shuffle is "
                               : "a value that nobody has written is ") +
                 std::string(how);
  Moment then;
  then.cta = s.cta;
  then.op = s.op;
  then.warp = s.warp;
  found.first = describe(then, s.lane, 0, s.address);
  if (s.is_shuffle) found.first.what = "shuffle";
  found.second = describe(here(at_), lane, 0, s.address);
  found.second.what = "use";
  add(std::move(found), s.op);
}

void Checker::values_before(Context& c, const Op& op, const OpFacts& f, uint32_t pc) {
  const uint32_t lanes = c.mask;
  uint32_t unsure = 0;
  if (warp_->poisoned) {
    if (is_register(op.guard)) {
      const uint32_t all = of_warp_split_mask(c);
      if (const uint32_t bad = poisoned(c, {op.guard, 0}) & all) {
        if (flow_of(pc).transfer == Transfer::Computed)
          unsure = bad;
        else
          used(c, source_of(c, op.guard), static_cast<uint32_t>(std::countr_zero(bad)), "decided by");
      }
    }
    if (is_machine_code_ && decides(pc))
      for (const Operand& read : flow_of(pc).reads)
        if (const uint32_t bad = poisoned(c, read) & lanes)
          used(c, source_of(c, read.place), static_cast<uint32_t>(std::countr_zero(bad)), "decided by");
    const bool has_address = f.kind == Kind::Load || f.kind == Kind::Store || f.kind == Kind::Atomic;
    if (c.mask && has_address && is_register(op.a) && f.base != Address::Base::Stack) {
      const uint32_t words = f.base == Address::Base::Pair ? 2 : 1;
      const uint32_t bytes = f.base == Address::Base::Wide ? 8 : 4;
      for (uint32_t k = 0; k < words; ++k)
        if (const uint32_t bad = poisoned(c, {op.a + k * place::register_bytes, bytes}) & lanes) {
          used(c, source_of(c, op.a), static_cast<uint32_t>(std::countr_zero(bad)), "used as an address");
          break;
        }
    }
    if (!(f.kind == Kind::Load && f.described) && (c.mask || unsure)) foresee(c, flow_of(pc));
    if (unsure) doubt(c, flow_of(pc), unsure, op.guard);
  }
  if (c.mask == 0) return;
  if (f.kind == Kind::Call && !warp_->local.empty())
    each_of(lanes, [&](uint32_t i) { fills(c, window::local + c.stack, grid_->local_bytes() - c.stack, i); });
  if (f.kind == Kind::Load && f.described) {
    load_values(c, op, f);
  } else if (f.kind == Kind::Store && f.described) {
    store_values(c, op, f);
  } else if (f.kind == Kind::Atomic) {
    each_of(lanes, [&](uint32_t i) {
      const uint64_t at = generic_[i];
      if (!f.replaces && missing(c, at, f.bytes, i)) used(c, new_source(at, i), i, "combined by an atomic");
      holds(c, at, f.bytes, i, ~uint64_t{0});
    });
  }
}

void Checker::values_after(Context& c, const Op& op, const OpFacts& f, uint32_t pc) {
  if (f.kind == Kind::Recorded && f.tiles) {
    load_tiles(c, op);
    return;
  }
  if (warp_->poisoned && foreseen_.valid && flow_of(pc).last) {
    settle(c, op, flow_of(pc));
    foreseen_.valid = false;
  }
  if (f.kind != Kind::Shuffle || !undefined_) return;
  warp_->poisoned = everything = true;
  const auto lane = static_cast<uint32_t>(std::countr_zero(undefined_));
  source_of(c, op.destination) = new_source(0, lane);
  sources_.back().is_shuffle = true;
  poison(c, {op.destination, 4}, undefined_, undefined_);
  undefined_ = 0;
}

/// Whether all bytes between the first and the last that the lanes access are known to hold values: enough,
/// where they lie close together.
bool Checker::all_hold(const Context& c, uint64_t bytes) {
  const uint64_t least = least_, most = most_, all = most - least + bytes;
  if (window::is_shared(least)) {
    const uint64_t offset = least - window::shared - c.own_shared, size = c.cta->shared_bytes();
    return offset < size && all <= size - offset && cta_->valid.holds_all(offset, all);
  }
  return !window::is_local(least) && !window::is_shared(most) && !window::is_local(most) &&
         device_.holds_all(least, all);
}

void Checker::load_values(Context& c, const Op& op, const OpFacts& f) {
  const auto& d = op.details<AccessDetail>();
  if (f.space == AccessSpace::Local) begin_local();
  uint64_t gone[warp_lanes] = {};
  uint32_t bad = 0;
  if (!all_hold(c, f.bytes))
    each_of(c.mask, [&](uint32_t i) {
      gone[i] = missing(c, generic_[i], std::min(64u, f.bytes), i);
      bad |= uint32_t{gone[i] != 0} << i;
    });
  if (!bad && !warp_->poisoned) return;
  foreseen_.valid = false;
  uint32_t source = 0;
  if (bad) {
    warp_->poisoned = everything = true;
    const auto lane = static_cast<uint32_t>(std::countr_zero(bad));
    source = new_source(generic_[lane], lane);
  }
  std::byte* frame = poison_frame(c);
  for (uint32_t e = 0; e < d.elements; ++e) {
    if (!is_register(d.places[e])) continue;
    if (bad) source_of(c, d.places[e]) = source;
    const uint32_t rows = d.element_bytes > 8 ? 2 : 1, bytes = d.place_bytes[e] >= 8 ? 8 : 4;
    for (uint32_t r = 0; r < rows; ++r)
      each_of(c.mask, [&](uint32_t i) {
        std::byte* to = frame + d.places[e] + r * 2 * place::register_bytes + i * bytes;
        std::memset(to, 0, bytes);
        if (!(bad >> i & 1)) return;
        const uint32_t size = d.element_bytes / rows;
        bool top = false;
        for (uint32_t b = 0; b < size; ++b) {
          top = gone[i] >> (e * d.element_bytes + r * 8 + b) & 1;
          if (top) to[b] = std::byte{0xff};
        }
        if (d.widen == functional::Widen::Sign && top)
          for (uint32_t b = size; b < bytes; ++b) to[b] = std::byte{0xff};
      });
  }
}

void Checker::store_values(Context& c, const Op& op, const OpFacts& f) {
  const auto& d = op.details<AccessDetail>();
  if (f.space == AccessSpace::Local) begin_local();
  const std::byte* frame = warp_->poisoned ? poison_frame(c) : nullptr;
  if (!frame) {
    if (all_hold(c, f.bytes)) return;
    if (c.full() && functional::consecutive(generic_, f.bytes)) {
      const uint64_t all = uint64_t{f.bytes} * warp_lanes, first = generic_[0];
      uint64_t offset = first - window::shared;
      if (!window::is_shared(first) && !window::is_local(first)) {
        device_.fill(first, all);
        return;
      }
      if (window::is_shared(first) && owner_of(c, offset) == cta_ && offset + all <= c.cta->shared_bytes()) {
        cta_->valid.fill(offset, all);
        return;
      }
    }
  }
  each_of(c.mask, [&](uint32_t i) {
    uint64_t gone = 0;
    Place from = 0;
    if (frame)
      for (uint32_t e = 0; e < d.elements; ++e) {
        if (!is_register(d.places[e])) continue;
        const uint32_t rows = d.element_bytes > 8 ? 2 : 1, bytes = d.place_bytes[e] >= 8 ? 8 : 4;
        for (uint32_t b = 0; b < d.element_bytes; ++b) {
          const uint32_t r = rows == 2 ? b / 8 : 0, in = rows == 2 ? b % 8 : b;
          if (frame[d.places[e] + r * 2 * place::register_bytes + i * bytes + in] == std::byte{}) continue;
          gone |= uint64_t{1} << (e * d.element_bytes + b);
          from = d.places[e];
        }
      }
    const uint64_t at = generic_[i];
    holds(c, at, std::min(64u, f.bytes), i, ~gone);
    const uint64_t all = f.bytes < 64 ? (uint64_t{1} << f.bytes) - 1 : ~uint64_t{0};
    if (gone == all && !window::is_shared(at) && !window::is_local(at) && !is_of_heap(at)) {
      used(c, source_of(c, from), i, "stored as a result");
      holds(c, at, std::min(64u, f.bytes), i, ~uint64_t{0});  // once is enough
    }
  });
}

/// Whether a kernel has allocated it: what is stored there is no result yet.
bool Checker::is_of_heap(uint64_t address) const {
  const auto after = heap_.upper_bound(address);
  if (after == heap_.begin()) return false;
  return address - std::prev(after)->first < heap_sizes_.at(std::prev(after)->first);
}

/// Rows of 16 bytes, by the lanes that give their addresses, become elements of all lanes.
void Checker::load_tiles(Context& c, const Op& op) {
  const auto& d = op.details<TilesDetail>();
  if (!c.record) return;
  uint64_t gone[warp_lanes] = {};
  uint32_t bad = 0;
  each_of(c.record->mask, [&](uint32_t i) {
    gone[i] = missing(c, c.record->address[i], TilesDetail::row_bytes, i);
    bad |= uint32_t{gone[i] != 0} << i;
  });
  if (!bad && !warp_->poisoned) return;
  uint32_t source = 0;
  if (bad) {
    warp_->poisoned = everything = true;
    const auto lane = static_cast<uint32_t>(std::countr_zero(bad));
    source = new_source(c.record->address[lane], lane);
  }
  std::byte* frame = poison_frame(c);
  for (uint32_t t = 0; t < d.count; ++t) {
    if (!is_register(d.places[t])) continue;
    if (bad) source_of(c, d.places[t]) = source;
  }
  for (uint32_t row = 0; row < d.rows(); ++row)
    for (uint32_t byte = 0; byte < TilesDetail::row_bytes; ++byte) {
      const TilesDetail::Spot s = d.spot(row, byte);
      if (is_register(d.places[s.tile]))
        frame[d.places[s.tile] + 4 * s.lane + s.byte] =
            std::byte{gone[row] & d.sources(byte) ? uint8_t{0xff} : uint8_t{0}};
    }
}

void Checker::begin_local() {
  if (warp_->local.empty()) warp_->local.reset(uint64_t{grid_->local_bytes()} * warp_lanes);
}

uint32_t Checker::of_warp_split_mask(Context& c) {
  const Warp::Split* split = c.warp->current();
  return split ? split->mask : c.mask;
}

void Checker::allocated(const functional::Allocation& made) {
  if (made.owner == functional::Owner::Kernel) device_.begin(made.address, made.size);
  global_.forget(made.address, made.size);
  concurrency_.forget_memory(made.address, made.address + made.size);
  last_ = {};
  if (made.owner == functional::Owner::Kernel && grid_ && cta_) {
    Access& place_made = heap_[made.address] = describe(here(at_), 0, 0, 0);  // memory is locked
    place_made.what = "malloc";
    heap_sizes_[made.address] = made.size;
  }
}

void Checker::freed(const functional::Allocation& gone) {
  device_.end(gone.address);
  heap_.erase(gone.address);
  concurrency_.forget_memory(gone.address, gone.address + gone.size);
}

void Checker::written(uint64_t address, uint64_t size) {
  device_.fill(address, size);
}

}  // namespace simt::check
