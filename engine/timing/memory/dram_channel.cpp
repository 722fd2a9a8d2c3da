#include "timing/memory/dram_channel.hpp"

#include <algorithm>
#include <bit>

namespace simt {

namespace {

constexpr uint32_t no_bank = ~0u;
constexpr uint64_t never = ~uint64_t{0};

}  // namespace

DramChannel::DramChannel(const DramSpec& spec, std::vector<Counters>& counters)
    : spec_(spec),
      counters_(counters),
      burst_cycles_(std::max(1u, spec.burst_length / std::max(1u, spec.data_command_ratio))),
      // Derived timings: docs/model/dram.md.
      read_to_write_(spec.cl + burst_cycles_ + 2 > spec.wl ? spec.cl + burst_cycles_ + 2 - spec.wl : 0),
      write_to_read_(spec.wl + burst_cycles_ + spec.cdlr),
      write_to_precharge_(spec.wl + burst_cycles_ + spec.wr),
      rcd_write_(spec.rcd > spec.wl + 1 ? spec.rcd - (spec.wl + 1) : 0),
      banks_(spec.banks),
      uses_(spec.banks),
      bank_groups_(std::min(spec.bank_groups, spec.banks)),
      rows_(spec.banks),
      scheduler_(spec.scheduler->make(spec)),
      refresh_interval_(spec.per_bank_refresh ? spec.refi / spec.banks : spec.refi),
      refresh_at_(refresh_interval_ > 0 ? refresh_interval_ : never) {
  const auto groups = static_cast<uint32_t>(bank_groups_.size());
  for (uint32_t b = 0; b < spec.banks; ++b)
    groups_of_[b] = static_cast<uint8_t>(spec.bank_group_low_bits ? b % groups : b / (spec.banks / groups));
}

void DramChannel::push(const DramRequest& request) {
  latest_slot_ = request.slot;
  ++held_;
  may_schedule_ = true;
  scheduler_->push(request);
}

inline void DramChannel::classify(uint32_t b) {
  const uint64_t bit = uint64_t{1} << b;
  const Bank& bank = banks_[b];
  if (!bank.active) {
    opening_ |= bit;
    ready_at_[b] = bank.activate_at;
  } else if (rows_[b] != bank.request.row) {
    closing_ |= bit;
    ready_at_[b] = bank.precharge_at;
  } else {
    (bank.request.write ? writing_ : reading_) |= bit;
    ready_at_[b] = bank.request.write ? bank.write_at : bank.read_at;
  }
}

inline void DramChannel::declassify(uint32_t b) {
  const uint64_t others = ~(uint64_t{1} << b);
  reading_ &= others;
  writing_ &= others;
  opening_ &= others;
  closing_ &= others;
}

inline void DramChannel::schedule(uint64_t cycle) {
  if (!may_schedule_) return;
  DramRequest request;
  may_schedule_ = scheduler_->pending() > 0 && scheduler_->next(rows_, busy_banks_, priority_, request);
  if (!may_schedule_) return;
  const uint32_t b = request.bank;
  banks_[b].request = request;
  uses_[b].taken_at = cycle;
  busy_banks_ |= uint64_t{1} << b;
  classify(b);
  quiet_until_ = std::min(quiet_until_, ready_at_[b]);
}

uint64_t DramChannel::column_allowed_at(uint32_t b) const {
  if (!((reading_ | writing_) >> b & 1)) return never;
  return std::max(
      {column_at_, group_of(b).column_at, ready_at_[b], writing_ >> b & 1 ? write_at_ : read_at_});
}

uint64_t DramChannel::row_allowed_at(uint32_t b) const {
  if (opening_ >> b & 1) return std::max({activate_at_, ready_at_[b], window_[oldest_activate_]});
  return closing_ >> b & 1 ? std::max(ready_at_[b], group_of(b).precharge_at) : never;
}

inline void DramChannel::column_command(uint32_t b, uint64_t cycle) {
  Bank& bank = banks_[b];
  Group& group = group_of(b);
  Counters& counters = counters_[bank.request.slot];
  if (bank.request.write) {
    read_at_ = cycle + write_to_read_;
    bank.precharge_at = std::max(bank.precharge_at, cycle + write_to_precharge_);
    ++counters[Counter::dram_writes];
    ++writes_;
  } else {
    write_at_ = cycle + read_to_write_;
    bank.precharge_at = std::max(bank.precharge_at, cycle + burst_cycles_);
    group.precharge_at = cycle + spec_.rtpl;
    ++counters[Counter::dram_reads];
    ++reads_;
  }
  column_at_ = cycle + spec_.ccd;
  group.column_at = cycle + spec_.ccdl;
  counters[Counter::dram_bus_cycles] += burst_cycles_;
  uses_[b].activity.bus_cycles += burst_cycles_;
  if (bank.hit_since_activate) ++counters[Counter::dram_row_hits];
  bank.hit_since_activate = true;
  last_data_ = std::max(cycle + (bank.request.write ? spec_.wl : spec_.cl), last_data_ + 1);
  if (--bank.request.sectors > 0) return;  // the next sector needs another column command
  data_.push_back({last_data_, bank.request});
  uses_[b].activity.pending_cycles += cycle + 1 - uses_[b].taken_at;
  busy_banks_ &= ~(uint64_t{1} << b);
  declassify(b);
  may_schedule_ = true;
}

void DramChannel::row_command(uint32_t b, uint64_t cycle) {
  Bank& bank = banks_[b];
  Counters& counters = counters_[bank.request.slot];
  if (!bank.active) {
    bank.active = true;
    rows_[b] = bank.request.row;
    bank.hit_since_activate = false;
    activate_at_ = cycle + spec_.rrd;
    window_[oldest_activate_] = cycle + spec_.faw;
    oldest_activate_ = (oldest_activate_ + 1) % window_.size();
    bank.read_at = cycle + spec_.rcd;
    bank.write_at = cycle + rcd_write_;
    bank.precharge_at = cycle + spec_.ras;
    bank.activate_at = cycle + spec_.rc;
    ++counters[Counter::dram_activates];
  } else {
    bank.active = false;
    bank.activate_at = std::max(bank.activate_at, cycle + spec_.rp);
    ++counters[Counter::dram_precharges];
  }
  priority_ = (b + 1) % spec_.banks;
  declassify(b);
  classify(b);
}

void DramChannel::refresh_next() {
  const uint32_t first = spec_.per_bank_refresh ? refresh_bank_ : 0;
  const uint32_t last = spec_.per_bank_refresh ? refresh_bank_ + 1 : spec_.banks;
  uint64_t start = refresh_at_;
  for (uint32_t b = first; b < last; ++b) {
    Bank& bank = banks_[b];
    if (bank.active)
      start =
          std::max(start, std::max({refresh_at_, bank.precharge_at, group_of(b).precharge_at}) + spec_.rp);
    bank.active = false;
    start = std::max(start, bank.activate_at);
  }
  for (uint32_t b = first; b < last; ++b) {
    banks_[b].activate_at = start + spec_.rfc;
    if (!(busy_banks_ >> b & 1)) continue;
    declassify(b);
    classify(b);
  }
  refresh_at_ += refresh_interval_;
  refresh_bank_ = last % spec_.banks;
}

void DramChannel::refresh(uint64_t cycle) {
  // An idle channel does not run. After a long idle time, only the first round of refreshes, which closes
  // rows, and the last ones matter.
  const uint64_t round = uint64_t{refresh_interval_} * (spec_.per_bank_refresh ? spec_.banks : 1);
  if (cycle - refresh_at_ > 4 * round) {
    for (const uint64_t end = refresh_at_ + round; refresh_at_ < end;) refresh_next();
    refresh_at_ += ((cycle - refresh_at_) / round - 1) * round;
  }
  while (refresh_at_ <= cycle) refresh_next();
  quiet_until_ = 0;
}

void DramChannel::serve_at_once(const DramRequest& request) {
  Counters& counters = counters_[request.slot];
  const uint64_t cycles = uint64_t{request.sectors} * burst_cycles_;
  counters[request.write ? Counter::dram_writes : Counter::dram_reads] += request.sectors;
  (request.write ? writes_ : reads_) += request.sectors;
  pending_cycles_ += cycles;
  BankActivity& bank = uses_[request.bank].activity;
  bank.bus_cycles += cycles;
  bank.pending_cycles += cycles;
  counters[Counter::dram_pending_cycles] += cycles;
  counters[Counter::dram_bus_cycles] += cycles;
  if (request.write) {
    writes_done_.push_back(request.slice);
  } else {
    returned_.push_back(request);
    ++held_;
  }
}

void DramChannel::append_bank_activity(uint64_t cycle, std::vector<BankActivity>& out) const {
  for (uint32_t b = 0; b < spec_.banks; ++b) {
    out.push_back(uses_[b].activity);
    if (busy_banks_ >> b & 1) out.back().pending_cycles += cycle - uses_[b].taken_at;
  }
}

template <class AllowedAt>
uint32_t DramChannel::first_in_turn(uint64_t banks, uint64_t cycle, uint64_t& soonest,
                                    AllowedAt allowed_at) const {
  // Banks are tried in turn, starting after the one that last opened or closed a row.
  for (uint64_t rest = std::rotr(banks, static_cast<int>(priority_)); rest; rest &= rest - 1) {
    const uint32_t b = (priority_ + static_cast<uint32_t>(std::countr_zero(rest))) % 64;
    const uint64_t at = allowed_at(b);
    if (at <= cycle) return b;
    soonest = std::min(soonest, at);
  }
  return no_bank;
}

inline uint64_t DramChannel::issue_on_two_buses(uint64_t cycle) {
  uint64_t soonest = never;
  // Those of the banks whose command all banks allow.
  const auto allowed = [&](uint64_t banks, uint64_t at) {
    if (banks && at > cycle) soonest = std::min(soonest, at);
    return at > cycle ? 0 : banks;
  };
  const uint64_t columns =
      allowed(reading_, std::max(column_at_, read_at_)) | allowed(writing_, std::max(column_at_, write_at_));
  const uint32_t column = first_in_turn(
      columns, cycle, soonest, [&](uint32_t b) { return std::max(ready_at_[b], group_of(b).column_at); });
  if (column != no_bank) column_command(column, cycle);
  const uint64_t rows = closing_ | allowed(opening_, std::max(activate_at_, window_[oldest_activate_]));
  const uint32_t row = first_in_turn(rows, cycle, soonest, [&](uint32_t b) {
    return closing_ >> b & 1 ? std::max(ready_at_[b], group_of(b).precharge_at) : ready_at_[b];
  });
  if (row != no_bank) row_command(row, cycle);
  return column != no_bank || row != no_bank ? cycle + 1 : soonest;
}

uint64_t DramChannel::issue_on_one_bus(uint64_t cycle) {
  uint64_t soonest = never;
  // A row command advances the turn while banks are still being visited, as in GPGPU-Sim.
  bool row = false;
  for (uint32_t i = 0; i < spec_.banks; ++i) {
    const uint32_t b = (i + priority_) % spec_.banks;
    if (!(busy_banks_ >> b & 1)) continue;
    const uint64_t column_at = column_allowed_at(b), row_at = row_allowed_at(b);
    if (cycle >= column_at) {
      column_command(b, cycle);
      return cycle + 1;
    }
    soonest = std::min({soonest, column_at, row_at});
    if (row || cycle < row_at) continue;
    row_command(b, cycle);
    row = true;
  }
  return row ? cycle + 1 : soonest;
}

void DramChannel::tick(uint64_t cycle) {
  if (cycle >= refresh_at_) refresh(cycle);
  if (!data_.empty() && data_.front().ready <= cycle && returned_.size() < spec_.return_queue) {
    const DramRequest& request = data_.front().request;
    if (request.write) {
      writes_done_.push_back(request.slice);
      --held_;
    } else {
      returned_.push_back(request);
    }
    data_.pop_front();
  }
  schedule(cycle);
  if (busy_banks_ == 0) return;
  ++pending_cycles_;
  ++counters_[latest_slot_][Counter::dram_pending_cycles];
  if (cycle >= quiet_until_)
    quiet_until_ = spec_.dual_bus ? issue_on_two_buses(cycle) : issue_on_one_bus(cycle);
}

}  // namespace simt
