/// Who has accessed what: the cells of memory, and accesses that nothing orders.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "check/checker.hpp"
#include "operations/memory_access.hpp"
#include "operations/tiles.hpp"

namespace simt::check {

using functional::AccessDetail;
namespace window = functional::window;

void Checker::access_all(Context& c, const OpFacts& f, uint32_t pc, const uint64_t* generic, uint32_t lanes) {
  const uint32_t number = moment(pc, f.manner);
  history_.take_part(number, lanes);
  if (f.kind == Kind::Load) {
    access_words<false>(c, f, number, generic, lanes);
  } else if (f.manner & Writes) {
    if (is_machine_code_ && f.kind == Kind::Store) require_apart(f, number, generic, lanes);
    access_words<true>(c, f, number, generic, lanes);
  } else {
    each_of(lanes, [&](uint32_t i) { access(c, generic[i], f.bytes, i, number, f.manner); });
  }
}

/// Lanes from `first` on access cells beside each other, which were accessed alike before: looked at
/// together. False if they were not, or if something is not ordered.
template <bool writes>
bool Checker::touch_alike(Cell* cells, uint32_t number, uint8_t manner, uint32_t first) {
  const Cell before = cells[0];
  const uint32_t turn = (first - before.read) & 31;
  uint32_t of_writes = 0, of_reads = 0, turns_of_writes = 0, turns = 0;  // bits that differ
  for (uint32_t i = 0; i < segment; ++i) {
    of_writes |= (cells[i].write ^ before.write) >> 5;
    of_reads |= (cells[i].read ^ before.read) >> 5;
    turns_of_writes |= (cells[i].write - first - i) & 31;
    turns |= ((first + i - cells[i].read) ^ turn) & 31;
  }
  const auto order = [&](Stamp s) { return s >> 5 == 0 ? Order::All : order_of(s >> 5); };
  const auto is_own = [&](Order known, bool same_lanes) { return known == Order::Own && same_lanes; };
  const Order writes_order = order(before.write);
  if (of_writes || of_reads || ((manner & Cached) && before.write)) return false;
  if (writes_order != Order::All && !is_own(writes_order, turns_of_writes == 0)) return false;
  const Order reads_order = order(before.read);
  const bool follows_reads = reads_order == Order::All || is_own(reads_order, (turns | turn) == 0);
  const Stamp now = History::stamp(number, first);
  if constexpr (writes) {
    if (!follows_reads) return false;
    for (uint32_t i = 0; i < segment; ++i) cells[i] = {now + i, 0};
    return true;
  }
  Cell after{before.write, now};
  if (!follows_reads) {
    if (turns || lanes_differ()) return false;
    after.read = before.read;
    add_read(after, number, first);
  }
  const uint32_t key = after.read & ~31u;
  for (uint32_t i = 0; i < segment; ++i) cells[i].read = key | ((after.read + i) & 31);
  return true;
}

/// As `access` for each lane. What is in words of the page that was accessed last, and ordered after what was
/// there, needs no more than a look at its cells.
template <bool writes>
void Checker::access_words(Context& c, const OpFacts& f, uint32_t number, const uint64_t* generic,
                           uint32_t lanes) {
  const bool is_simple = f.bytes % 4 == 0 && !(f.manner & Strong);
  const uint64_t most = Page::bytes - f.bytes;
  Words words = is_simple ? words_of_last(c) : Words();
  // What the lane before has found: keys of stamps that all lanes are after, and what became of a read.
  uint32_t writes_before = 0, reads_before = 0;
  uint32_t step_before = 0, step_turn = 0, step_result = 0, step_result_turn = 0;
  const auto touch_segment = [&](uint32_t first) {
    if (!is_simple || f.bytes != 4 || (lanes >> first & segment_mask) != segment_mask) return false;
    const uint64_t at = generic[first], offset = at - words.begin;
    uint64_t differs = at & 3;
    for (uint32_t i = 0; i < segment; ++i) differs |= generic[first + i] ^ (at + 4 * i);
    if (differs) return false;
    if (offset > Page::bytes - 4 * segment) {
      if (offset <= most) return false;
      words = words_at(c, at);
      if (at - words.begin > Page::bytes - 4 * segment) return false;
    }
    return touch_alike<writes>(words.cells + (at - words.begin) / 4, number, f.manner, first);
  };
  const auto touch_one = [&](uint32_t lane) {
    const uint64_t at = generic[lane];
    if (is_simple && at - words.begin > most) words = words_at(c, at);
    const uint64_t offset = at - words.begin;
    if (offset > most || (at & 3)) [[unlikely]] {
      access(c, at, f.bytes, lane, number, f.manner);
      if (is_simple) words = words_of_last(c);
      return;
    }
    const Stamp now = History::stamp(number, lane);
    Cell* const first = words.cells + offset / 4;
    Cell* const end = first + f.bytes / 4;
    const Cell before = *first;
    bool is_plain = !(f.manner & Cached) || before.write == 0;
    for (Cell* cell = first + 1; cell != end; ++cell) is_plain &= *cell == before;
    const auto follows = [&](Stamp s, uint32_t& ordered_key) {
      if (s >> 5 == ordered_key) return true;
      if (!is_behind(s, lane)) return false;
      if (order_of(s >> 5) == Order::All) ordered_key = s >> 5;
      return true;
    };
    if (!is_plain || !follows(before.write, writes_before) || (writes && !follows(before.read, reads_before)))
        [[unlikely]] {
      for (Cell* cell = first; cell != end; ++cell)
        touch(*cell, number, f.manner, lane, at + 4 * static_cast<uint64_t>(cell - first));
      return;
    }
    Cell after{now, 0};
    if constexpr (!writes) {
      after = before;
      const uint32_t turn = (lane - before.read) & 31;
      if (before.read >> 5 == reads_before) {
        after.read = now;
      } else if (before.read >> 5 == step_before && turn == step_turn) {
        after.read = step_result << 5 | ((lane + step_result_turn) & 31);
      } else {
        add_read(after, number, lane);
        if (!lanes_differ()) {
          step_before = before.read >> 5, step_turn = turn;
          step_result = after.read >> 5, step_result_turn = (after.read - lane) & 31;
        }
      }
    }
    std::fill(first, end, after);
  };
  for (uint32_t first = 0; first < warp_lanes; first += segment)
    if (touch_segment(first)) lanes &= ~(segment_mask << first);
  if constexpr (writes) {
    each_of(lanes, touch_one);
    return;
  }
  // Of lanes beside each other that read the same, the first and the last stand for those between.
  uint32_t before = 0, run = UINT32_MAX;
  bool is_first = true;
  each_of(lanes, [&](uint32_t i) {
    if (!is_first && generic[i] == generic[before]) {
      run = i;
      return;
    }
    if (run != UINT32_MAX) touch_one(run);
    run = UINT32_MAX;
    before = i;
    is_first = false;
    touch_one(i);
  });
  if (run != UINT32_MAX) touch_one(run);
}

/// Lanes that are together must not store to the same place with one instruction.
void Checker::require_apart(const OpFacts& f, uint32_t number, const uint64_t* generic, uint32_t lanes) {
  if (f.manner & Strong) return;
  if (lanes == functional::full_mask && functional::consecutive(generic, f.bytes)) return;
  each_of(lanes, [&](uint32_t i) {
    for (uint32_t rest = lanes & ~((2u << i) - 1); rest; rest &= rest - 1) {
      const auto k = static_cast<uint32_t>(std::countr_zero(rest));
      if (generic[k] - generic[i] + f.bytes - 1 > 2 * (f.bytes - 1)) continue;
      if (!window::is_local(generic[i])) conflict(number, i, k, f.manner, std::max(generic[i], generic[k]));
      return;
    }
  });
}

/// The words of the page of an address, unless it is that of another CTA, or local.
Checker::Words Checker::words_at(const Context& c, uint64_t generic) {
  if (window::is_local(generic)) return {};
  if (!window::is_shared(generic)) {
    use_page(global_, generic, epoch_);
  } else {
    const uint64_t offset = generic - window::shared;
    if (!c.is_own(offset) || offset - c.own_shared >= c.cta->shared_bytes()) return {};
    use_page(cta_->shared, offset - c.own_shared, cta_->epoch);
  }
  return words_of_last(c);
}

Checker::Words Checker::words_of_last(const Context& c) const {
  const bool is_shared = last_.shadow == &cta_->shared;
  if (!is_shared && last_.shadow != &global_) return {};
  if (last_.epoch != (is_shared ? cta_->epoch : epoch_) || !last_.page->words()) return {};
  return {last_.number * Page::bytes + (is_shared ? window::shared + c.own_shared : 0), last_.page->words()};
}

/// The CTA whose shared memory an address is in, and the offset there; nullptr if it has ended.
Checker::CtaState* Checker::owner_of(Context& c, uint64_t& offset) {
  if (c.is_own(offset)) {
    offset -= c.own_shared;
    return cta_;
  }
  const uint64_t rank = (offset >> window::rank_shift) - c.first_rank;
  const auto& ctas = c.cta->cluster().ctas;
  if (rank >= ctas.size() || !ctas[rank]) return nullptr;
  offset &= window::own_shared;
  return &state_of(*ctas[rank]);
}

void Checker::access(Context& c, uint64_t generic, uint64_t bytes, uint32_t lane, uint32_t number,
                     uint8_t manner) {
  Shadow* shadow = &global_;
  uint64_t at = generic, epoch = epoch_;
  if (window::is_shared(generic)) {
    uint64_t offset = generic - window::shared;
    CtaState* owner = owner_of(c, offset);
    if (!owner || offset + bytes > c.cta->shared_bytes()) return;
    if (owner != cta_ && (owner->remote.empty() || owner->remote.back().first != number))
      owner->remote.emplace_back(number, lane);
    shadow = &owner->shared;
    at = offset;
    epoch = owner->epoch;
  } else if (window::is_local(generic)) {
    return;
  }
  while (bytes > 0) {
    const uint64_t offset = at % Page::bytes, here = std::min(bytes, Page::bytes - offset);
    uint64_t place_now = generic;
    use_page(*shadow, at, epoch);
    (*last_.page).each(offset, here, [&](Cell& cell) { touch(cell, number, manner, lane, place_now); });
    at += here;
    generic += here;
    bytes -= here;
  }
}

void Checker::touch(Cell& cell, uint32_t number, uint8_t manner, uint32_t lane, uint64_t address) {
  const Stamp now = History::stamp(number, lane);
  const auto check = [&](Stamp earlier) {
    history_.visit(earlier, [&](uint32_t m, uint32_t then) {
      if (ordered(m, then, lane) && (!(manner & Later) || (manner & Writes) || crossed(history_[m])))
        return true;
      if ((manner & Writes) && has_been_read(history_[m])) return true;
      const bool together = may_be_together(history_[m], manner);
      if (!together || (checks_.weak && (history_[m].manner & manner & Volatile)))
        conflict(m, then, lane, manner, address);
      return true;
    });
  };
  // An ordinary access stays beside the strong ones that come after it for one thread, not for all.
  const auto is_open = [&](uint32_t m, uint32_t then) {
    if (!ordered(m, then, lane)) return true;
    const Moment& earlier = history_[m];
    const bool is_alone = window::is_shared(address) && grid_->cluster_size() == 1;
    return !(earlier.manner & Strong) &&
           !(is_alone && earlier.cta == cta_->index && earlier.clock <= cta_->floor);
  };
  if (manner & Writes) {
    if (cell.write == now && cell.read == 0) return;
    check(cell.write);
    check(cell.read);
    if (manner & Strong) {
      cell.write = history_.with(cell.write, number, lane, is_open);
    } else {
      cell.write = now;
      cell.read = 0;
    }
    return;
  }
  if (cell.read == now) return;
  if ((manner & Cached) && cell.write)
    history_.visit(cell.write, [&](uint32_t m, uint32_t then) {
      conflict(m, then, lane, manner, address);
      return false;
    });
  check(cell.write);
  if ((manner & Strong) && cell.read)
    cell.read = history_.with(cell.read, number, lane, is_open);
  else
    add_read(cell, number, lane);
}

void Checker::add_read(Cell& cell, uint32_t number, uint32_t lane) {
  const Stamp now = History::stamp(number, lane);
  if (cell.read == now) return;
  if (is_behind(cell.read, lane)) {
    cell.read = now;
    return;
  }
  if (look_up(cell.read >> 5).stays && history_[number].warp == warp_->number) return;
  const auto is_open = [&](uint32_t m, uint32_t then) { return !ordered(m, then, lane); };
  if (lanes_differ()) {
    cell.read = history_.with(cell.read, number, lane, is_open);
    return;
  }
  // Lanes beside each other, which read what lanes beside each other have read, give the same group.
  const uint32_t turn = (lane - cell.read) & 31, before = cell.read & ~31u;
  Step& step = steps_[((before >> 5) * 31 + turn + number * 7) % steps_.size()];
  if (step.before != before || step.turn != turn || step.moment != number || step.events != events_) {
    const Stamp result = history_.with(cell.read, number, lane, is_open);
    step = {before, turn, number, events_, result & ~31u, (result - lane) & 31};
  }
  cell.read = step.result | ((lane + step.result_turn) & 31);
}

/// Pointers to local memory must not be used by other threads, to which they mean another place.
void Checker::follow_pointers(Context& c, const Op& op, const OpFacts& f, const uint64_t* generic) {
  if (f.space == functional::AccessSpace::Generic && !warp_->foreign.empty())
    each_of(c.mask, [&](uint32_t i) {
      for (const auto& [lanes, pointer] : warp_->foreign) {
        if (!(lanes >> i & 1) || generic[i] - pointer.value >= Page::bytes) continue;
        Moment m;
        m.cta = pointer.cta;
        m.op = pointer.op;
        m.warp = pointer.warp;
        Finding found;
        found.check = "race";
        found.kind = "race-local";
        found.detail = "a pointer to another thread's local memory is used, where it means another place";
        found.first = describe(m, pointer.lane, Writes, 0);
        found.first.what = "write of the pointer";
        found.second = describe(here(at_), i, f.manner, generic[i]);
        add(std::move(found));
        return;
      }
    });
  if (!f.described) return;
  const auto& d = op.details<AccessDetail>();
  if (d.element_bytes != 8 || (f.kind == Kind::Load && pointers_.empty())) return;
  for (uint32_t e = 0; e < d.elements; ++e)
    each_of(c.mask, [&](uint32_t i) {
      const uint64_t at = generic[i] + 8 * e;
      if (f.kind == Kind::Store) {
        const uint64_t value = c.lanes<const uint64_t>(d.places[e])[i];
        if (window::is_local(value))
          pointers_[flag_key(at)] = {value, cta_->index, at_, i, static_cast<uint16_t>(warp_->number)};
        return;
      }
      const auto found = pointers_.find(flag_key(at));
      if (found == pointers_.end()) return;
      const Pointer& there = found->second;
      const bool own = there.cta == cta_->index && there.warp == warp_->number && there.lane == i;
      uint64_t value = 0;
      std::memcpy(&value, c.generic(at, 8, static_cast<int>(i)), 8);
      constexpr size_t most = 256;  // of the pointers that a warp has loaded
      if (!own && value == there.value && warp_->foreign.size() < most)
        warp_->foreign.emplace_back(1u << i, there);
    });
}

/// An address that is made from that of a variable must lead to the variable.
void Checker::require_inside(const Extent& variable, const OpFacts& f, const uint64_t* generic,
                             uint32_t lanes) {
  const uint64_t begin = variable.begin + (variable.is_shared ? window::shared : 0);
  const uint64_t end = variable.end + (variable.is_shared ? window::shared : 0);
  const uint64_t own = variable.is_shared ? context_->own_shared : 0;
  if (least_ >= begin + own && most_ + f.bytes <= end + own) return;
  each_of(lanes, [&](uint32_t i) {
    uint64_t at = generic[i];
    if (variable.is_shared && !window::is_shared(at)) return;
    if (variable.is_shared) at -= context_->own_shared;
    if (at >= begin && at + f.bytes <= end) return;
    if (variable.is_shared && at - window::shared >= context_->cta->shared_bytes()) return;  // a fault
    Finding found;
    found.check = "memory";
    found.kind = "out-of-bounds";
    const int64_t offset = static_cast<int64_t>(at - begin);
    found.detail = "access of " + std::to_string(f.bytes) + " bytes " +
                   (offset < 0 ? std::to_string(-offset) + " bytes before "
                               : std::to_string(offset) + " bytes from the beginning of ") +
                   "`" + std::string(variable.name) + "`, which has " +
                   std::to_string(variable.end - variable.begin) + " bytes";
    found.second = describe(here(at_), i, f.manner, generic[i]);
    add(std::move(found));
  });
}

/// Stores must not lead to constant memory.
void Checker::require_writable(const uint64_t* generic, uint32_t lanes) {
  each_of(lanes, [&](uint32_t i) {
    for (const auto& [begin, end] : constants_) {
      if (generic[i] < begin || generic[i] >= end) continue;
      Finding found;
      found.check = "memory";
      found.kind = "read-only-write";
      found.detail = "a kernel writes to constant memory";
      found.second = describe(here(at_), i, Writes, generic[i]);
      add(std::move(found));
    }
  });
}

/// Whether the store that is about to be executed writes what is there.
bool Checker::writes_same(uint32_t earlier, uint32_t then, uint32_t lane, uint64_t address) {
  const OpFacts& f = running_->facts[at_];
  Context& c = *context_;
  if (f.kind == Kind::RecordedStore && history_[earlier].op == at_ && c.record)
    return rows_are_same(earlier, then, lane, address);
  if (f.kind != Kind::Store) return false;
  const Op& op = grid_->program().code[at_];
  const auto& d = op.details<AccessDetail>();
  if (d.element_bytes > 8) return false;
  const uint64_t size = address % 4 == 0 && f.bytes % 4 == 0 ? 4 : 1;  // what a cell stands for
  std::byte all[64] = {};
  const auto value_of = [&](uint32_t i) {
    for (uint32_t e = 0; e < d.elements; ++e) {
      const uint64_t v = d.place_bytes[e] == 4 ? c.lanes<const uint32_t>(d.places[e])[i]
                                               : c.lanes<const uint64_t>(d.places[e])[i];
      std::memcpy(all + e * d.element_bytes, &v, d.element_bytes);
    }
    uint32_t value = 0;
    if (const uint64_t offset = address - generic_[i]; offset + size <= f.bytes)
      std::memcpy(&value, all + offset, size);
    return value;
  };
  const Moment& m = history_[earlier];
  const uint32_t mine = value_of(lane);
  if (m.op == at_ && m.warp == warp_->number && m.cta == cta_->index && m.clock == warp_->clock &&
      (c.mask >> then & 1) && address - generic_[then] < f.bytes) {
    const uint32_t other = value_of(then);
    if (mine == other) return true;
    const uint64_t element = (address - generic_[lane]) / d.element_bytes;
    return d.element_bytes == 4 && (address - generic_[then]) / 4 == element &&
           is_same_but_rounded(static_cast<uint32_t>(element), lane ^ then, mine, other);
  }
  uint32_t there = 0;
  std::memcpy(&there, c.generic(address, size, static_cast<int>(lane)), size);
  return mine == there;
}

/// Whether two lanes have combined the same values in different orders, as f32.
bool Checker::is_same_but_rounded(uint32_t element, uint32_t between, uint32_t mine, uint32_t other) const {
  if (is_machine_code_ || (between & ~running_->values->combined_by(at_, element))) return false;
  constexpr float tolerance = 0x1p-10f;
  const float a = std::bit_cast<float>(mine), b = std::bit_cast<float>(other);
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

/// Whether two lanes of one stmatrix give the same place, of up to a word, the same value.
bool Checker::rows_are_same(uint32_t earlier, uint32_t then, uint32_t lane, uint64_t address) const {
  const Moment& m = history_[earlier];
  const Context& c = *context_;
  if (m.warp != warp_->number || m.cta != cta_->index || !(c.record->mask >> then & 1)) return false;
  const auto& d = grid_->program().code[at_].details<functional::TilesDetail>();
  const auto element = [&](uint32_t i, uint64_t place) -> std::optional<uint8_t> {
    const uint64_t at = place - c.record->address[i];
    if (at >= functional::TilesDetail::row_bytes) return std::nullopt;
    const functional::TilesDetail::Spot s = d.spot(i, static_cast<uint32_t>(at));
    return c.lanes<const uint8_t>(d.places[s.tile])[4 * s.lane + s.byte];
  };
  const auto same = [&](uint64_t place) {
    const std::optional<uint8_t> mine = element(lane, place);
    return mine && mine == element(then, place);
  };
  if (same(address) && same(address | 1) && same(address | 2) && same(address | 3)) return true;
  // A word of a row is what one lane has given.
  const uint64_t at = address - c.record->address[lane], there = address - c.record->address[then];
  if (d.transposed || at % 4 || at != there || at >= functional::TilesDetail::row_bytes ||
      lane / 8 != then / 8)
    return false;
  const auto holder = [&](uint32_t i) { return static_cast<uint32_t>(i % 8 * 4 + at / 4); };
  const auto value = [&](uint32_t i) { return c.lanes<const uint32_t>(d.places[i / 8])[holder(i)]; };
  return is_same_but_rounded(lane / 8, holder(lane) ^ holder(then), value(lane), value(then));
}

}  // namespace simt::check
