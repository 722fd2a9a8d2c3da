#include "timing/memory/dram_channel.hpp"

#include <algorithm>
#include <bit>

namespace simt {

namespace {

constexpr uint32_t no_bank = ~0u;

}  // namespace

DramChannel::DramChannel(const DramSpec& spec, std::vector<Counters>& counters)
    : spec_(spec),
      counters_(counters),
      groups_(std::min(spec.bank_groups, spec.banks)),
      burst_cycles_(std::max(1u, spec.burst_length / std::max(1u, spec.data_command_ratio))),
      // Derived timings: docs/model/dram.md.
      read_to_write_(spec.cl + burst_cycles_ + 2 > spec.wl ? spec.cl + burst_cycles_ + 2 - spec.wl : 0),
      write_to_read_(spec.wl + burst_cycles_ + spec.cdlr),
      write_to_precharge_(spec.wl + burst_cycles_ + spec.wr),
      rcd_write_(spec.rcd > spec.wl + 1 ? spec.rcd - (spec.wl + 1) : 0),
      banks_(spec.banks),
      bank_groups_(groups_),
      rows_(spec.banks),
      scheduler_(spec.scheduler->make(spec)),
      refresh_interval_(spec.per_bank_refresh ? spec.refi / spec.banks : spec.refi),
      refresh_at_(refresh_interval_ > 0 ? refresh_interval_ : ~uint64_t{0}) {}

void DramChannel::push(const DramRequest& request) {
  latest_slot_ = request.slot;
  ++held_;
  scheduler_->push(request);
}

void DramChannel::schedule(uint64_t cycle) {
  DramRequest request;
  if (scheduler_->pending() == 0 || !scheduler_->next(rows_, busy_banks_, priority_, request)) return;
  banks_[request.bank].request = request;
  banks_[request.bank].taken_at = cycle;
  busy_banks_ |= uint64_t{1} << request.bank;
  ++in_banks_;
  classify(request.bank);
  quiet_until_ = std::min({quiet_until_, column_allowed_at(request.bank), row_allowed_at(request.bank)});
}

void DramChannel::classify(uint32_t b) {
  const uint64_t bit = uint64_t{1} << b;
  const Bank& bank = banks_[b];
  reading_ &= ~bit;
  writing_ &= ~bit;
  opening_ &= ~bit;
  closing_ &= ~bit;
  if (!bank.active)
    opening_ |= bit;
  else if (rows_[b] != bank.request.row)
    closing_ |= bit;
  else
    (bank.request.write ? writing_ : reading_) |= bit;
}

uint64_t DramChannel::column_allowed_at(uint32_t b) const {
  const Bank& bank = banks_[b];
  if (!bank.active || rows_[b] != bank.request.row) return ~uint64_t{0};
  const uint64_t any = std::max(column_at_, bank_groups_[group_of(b)].column_at);
  return bank.request.write ? std::max({any, bank.write_at, write_at_})
                            : std::max({any, bank.read_at, read_at_});
}

uint64_t DramChannel::row_allowed_at(uint32_t b) const {
  const Bank& bank = banks_[b];
  if (!bank.active) return std::max({activate_at_, bank.activate_at, window_[oldest_activate_]});
  if (rows_[b] == bank.request.row) return ~uint64_t{0};
  return std::max(bank.precharge_at, bank_groups_[group_of(b)].precharge_at);
}

void DramChannel::column_command(uint32_t b, uint64_t cycle) {
  Bank& bank = banks_[b];
  Group& group = bank_groups_[group_of(b)];
  Counters& counters = counters_[bank.request.slot];
  if (bank.request.write) {
    read_at_ = cycle + write_to_read_;
    bank.precharge_at = std::max(bank.precharge_at, cycle + write_to_precharge_);
    ++counters[Counter::dram_writes];
    ++activity_.writes;
  } else {
    write_at_ = cycle + read_to_write_;
    bank.precharge_at = std::max(bank.precharge_at, cycle + burst_cycles_);
    group.precharge_at = cycle + spec_.rtpl;
    ++counters[Counter::dram_reads];
    ++activity_.reads;
  }
  column_at_ = cycle + spec_.ccd;
  group.column_at = cycle + spec_.ccdl;
  counters[Counter::dram_bus_cycles] += burst_cycles_;
  activity_.bus_cycles += burst_cycles_;
  bank.activity.bus_cycles += burst_cycles_;
  if (bank.hit_since_activate) ++counters[Counter::dram_row_hits];
  bank.hit_since_activate = true;
  last_data_ = std::max(cycle + (bank.request.write ? spec_.wl : spec_.cl), last_data_ + 1);
  if (--bank.request.sectors > 0) return;  // the next sector needs another column command
  data_.push_back({last_data_, bank.request});
  bank.activity.pending_cycles += cycle + 1 - bank.taken_at;
  const uint64_t others = ~(uint64_t{1} << b);
  busy_banks_ &= others;
  reading_ &= others;
  writing_ &= others;
  --in_banks_;
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
          std::max(start, std::max({refresh_at_, bank.precharge_at, bank_groups_[group_of(b)].precharge_at}) +
                              spec_.rp);
    bank.active = false;
    start = std::max(start, bank.activate_at);
  }
  for (uint32_t b = first; b < last; ++b) {
    banks_[b].activate_at = start + spec_.rfc;
    if (busy_banks_ >> b & 1) classify(b);
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
  (request.write ? activity_.writes : activity_.reads) += request.sectors;
  activity_.bus_cycles += cycles;
  activity_.pending_cycles += cycles;
  BankActivity& bank = banks_[request.bank].activity;
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
    out.push_back(banks_[b].activity);
    if (busy_banks_ >> b & 1) out.back().pending_cycles += cycle - banks_[b].taken_at;
  }
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
  if (in_banks_ == 0) return;
  ++activity_.pending_cycles;
  ++counters_[latest_slot_][Counter::dram_pending_cycles];
  if (cycle >= quiet_until_) issue_commands(cycle);
}

void DramChannel::issue_commands(uint64_t cycle) {
  if (spec_.dual_bus ? issue_on_two_buses(cycle) : issue_on_one_bus(cycle)) {
    quiet_until_ = cycle + 1;  // what was issued changes what is allowed
    return;
  }
  quiet_until_ = ~uint64_t{0};
  for (uint64_t rest = busy_banks_; rest; rest &= rest - 1) {
    const auto b = static_cast<uint32_t>(std::countr_zero(rest));
    quiet_until_ = std::min({quiet_until_, column_allowed_at(b), row_allowed_at(b)});
  }
}

template <class Allowed>
uint32_t DramChannel::first_in_turn(uint64_t banks, Allowed allowed) const {
  const uint64_t below = (uint64_t{1} << priority_) - 1;
  for (uint64_t part : {banks & ~below, banks & below})
    for (; part; part &= part - 1) {
      const auto b = static_cast<uint32_t>(std::countr_zero(part));
      if (allowed(b)) return b;
    }
  return no_bank;
}

bool DramChannel::issue_on_two_buses(uint64_t cycle) {
  // Banks are tried in turn, starting after the one that last opened or closed a row.
  uint64_t columns = 0;
  if (column_at_ <= cycle) columns = (read_at_ <= cycle ? reading_ : 0) | (write_at_ <= cycle ? writing_ : 0);
  const uint32_t column = first_in_turn(columns, [&](uint32_t b) {
    const Bank& bank = banks_[b];
    return (bank.request.write ? bank.write_at : bank.read_at) <= cycle &&
           bank_groups_[group_of(b)].column_at <= cycle;
  });
  if (column != no_bank) column_command(column, cycle);
  uint64_t rows = closing_;
  if (activate_at_ <= cycle && window_[oldest_activate_] <= cycle) rows |= opening_;
  const uint32_t row = first_in_turn(rows, [&](uint32_t b) {
    const Bank& bank = banks_[b];
    if (!bank.active) return bank.activate_at <= cycle;
    return bank.precharge_at <= cycle && bank_groups_[group_of(b)].precharge_at <= cycle;
  });
  if (row != no_bank) row_command(row, cycle);
  return column != no_bank || row != no_bank;
}

bool DramChannel::issue_on_one_bus(uint64_t cycle) {
  // A row command advances the turn while banks are still being visited, as in GPGPU-Sim.
  bool row = false;
  for (uint32_t i = 0; i < spec_.banks; ++i) {
    const uint32_t b = (i + priority_) % spec_.banks;
    if (!(busy_banks_ >> b & 1)) continue;
    if (cycle >= column_allowed_at(b)) {
      column_command(b, cycle);
      return true;
    }
    if (row || cycle < row_allowed_at(b)) continue;
    row_command(b, cycle);
    row = true;
  }
  return row;
}

}  // namespace simt
