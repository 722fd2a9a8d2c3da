/// Findings: what is said of an access, and equal ones counted.
#include <algorithm>

#include "check/checker.hpp"

namespace simt::check {

namespace window = functional::window;

/// A load that is no flag, of a value that the kernel keeps in registers.
bool Checker::is_plain_load(uint32_t op, uint8_t manner) const {
  return manner == 0 && running_->facts[op].kind == Kind::Load && running_->facts[op].described;
}

void Checker::conflict(uint32_t earlier, uint32_t then, uint32_t lane, uint8_t manner, uint64_t address) {
  const Moment& m = history_[earlier];
  const auto frees = [&](uint32_t op) { return running_->facts[op].kind == Kind::Call; };
  if ((manner & Writes) && !(manner & (Later | Atomic)) && has_counted(m, then, lane, address)) return;
  const bool second_reads = is_plain_load(at_, manner);
  if (!is_machine_code_ && !((m.manner | manner) & Later) && !frees(at_) && !frees(m.op) &&
      (second_reads || is_plain_load(m.op, m.manner)) &&
      running_->values->stores_of(second_reads ? at_ : m.op)) {
    constexpr size_t many = 1u << 20;
    doubtful_.push_back({earlier, moment(at_, manner), static_cast<uint8_t>(then), static_cast<uint8_t>(lane),
                         second_reads, address});
    if (doubtful_.size() < std::max(many, most_doubtful_)) return;
    settle_reads(Undecided::Keep);
    most_doubtful_ = 2 * doubtful_.size();
    return;
  }
  Finding found;
  if ((m.manner | manner) & Later && !(m.manner & Later) && ordered(earlier, then, lane))
    found.detail =
        "asynchronous work reads what an ordinary store has written, without fence.proxy.async between";
  if (frees(at_) || frees(m.op)) {
    found.check = "memory";
    found.kind = "use-after-free";
    found.detail = "memory is freed, and nothing orders another thread's access before that";
  }
  if (m.manner & manner & Volatile) found.kind = "race-weak";
  if (manner & Cached) {
    found.check = "memory";
    found.kind = "read-only-write";
    found.detail = "data that this kernel has written is loaded as read-only, which need not see it";
  }
  if ((m.manner & Writes) && (manner & Writes) && !((m.manner | manner) & (Later | Atomic)) &&
      writes_same(earlier, then, lane, address)) {
    if (!checks_.weak) return;
    found.kind = "race-weak";
  }
  Moment now = here(at_);
  now.manner = manner;
  report_race(std::move(found), m, then, now, lane, address);
}

/// found: what is not as of any race.
void Checker::report_race(Finding found, const Moment& m, uint32_t then, const Moment& now, uint32_t lane,
                          uint64_t address) {
  const auto frees = [&](uint32_t op) { return running_->facts[op].kind == Kind::Call; };
  const bool shared = window::is_shared(address);
  if (found.check.empty()) found.check = "race";
  if (found.kind.empty())
    found.kind = (m.manner | now.manner) & Later ? "race-async"
                 : shared && m.cta != now.cta    ? "race-cluster"
                 : shared                        ? "race-shared"
                                                 : "race-global";
  found.first = describe(m, then, m.manner, address);
  found.second = describe(now, lane, now.manner, address);
  // Whether the read comes before the write is chance, and so is whether it finds a value.
  for (const Moment* each : {&m, &now})
    if (!(each->manner & Writes) || (each->manner & Atomic)) drop_values_of(each->op);
  if (frees(m.op)) found.first.what = "free";
  if (frees(now.op)) found.second.what = "free";
  // Which came first is chance: a write is named before a read, then the earlier line before the later one.
  const auto rank = [](const Access& a) { return std::pair(a.what == "read", a.line); };
  if (rank(found.second) < rank(found.first)) std::swap(found.first, found.second);
  add(std::move(found));
}

/// Reads that race are reported if the thread has stored what it has computed from them. The others are of
/// the weaker class.
void Checker::settle_reads(Undecided undecided) {
  if (doubtful_.empty()) return;
  const auto reader = [&](const DoubtfulRead& d) -> const Moment& {
    return history_[d.second_reads ? d.second : d.first];
  };
  // What threads that have read did at stores that may use it.
  std::map<std::pair<uint64_t, uint16_t>, std::vector<uint32_t>> done;
  std::vector<bool> uses(running_->facts.size());
  for (const DoubtfulRead& d : doubtful_) {
    done.try_emplace({reader(d).cta, reader(d).warp});
    for (const uint32_t store : *running_->values->stores_of(reader(d).op)) uses[store] = true;
  }
  for (uint32_t number = 1; number < history_.size(); ++number) {
    const Moment& m = history_[number];
    if (!uses[m.op]) continue;
    if (const auto at = done.find({m.cta, m.warp}); at != done.end()) at->second.push_back(number);
  }
  std::set<uint64_t> running;
  for (const auto& [cta, state] : ctas_) running.insert(state->index);
  std::vector<DoubtfulRead> kept;
  for (const DoubtfulRead& d : doubtful_) {
    const Moment& load = reader(d);
    const std::vector<uint32_t>& stores = *running_->values->stores_of(load.op);
    const auto is_use = [&](uint32_t number) {
      const Moment& m = history_[number];
      return m.clock >= load.clock && (m.lanes >> (d.second_reads ? d.lane : d.then) & 1) &&
             std::binary_search(stores.begin(), stores.end(), m.op);
    };
    const std::vector<uint32_t>& all = done.at({load.cta, load.warp});
    const bool is_used = std::any_of(all.begin(), all.end(), is_use), runs = running.contains(load.cta);
    if (!is_used && runs && undecided == Undecided::Keep) {
      kept.push_back(d);
      continue;
    }
    Finding found;
    if (!is_used && !(runs && undecided == Undecided::Report)) {
      if (!checks_.weak) continue;
      found.kind = "race-weak";
    }
    report_race(std::move(found), history_[d.first], d.then, history_[d.second], d.lane, d.address);
  }
  doubtful_ = std::move(kept);
}

Access Checker::describe(const Moment& m, uint32_t lane, uint8_t manner, uint64_t address) const {
  const functional::Program& program = grid_->program();
  const functional::InstructionPlace place = program.where(m.op);
  const auto& block = grid_->config().block;
  const uint32_t thread = m.warp % asynchronous * warp_lanes + lane;
  Access a;
  a.what = manner & Atomic ? "atomic" : manner & Writes ? "write" : "read";
  if (manner & Later) a.what = "asynchronous " + a.what;
  a.file = std::string(place.file);
  a.line = place.source_line;
  if (place.inner_line) a.inner = std::string(place.inner_file) + ":" + std::to_string(place.inner_line);
  a.position = place.position;
  a.instruction = program.text(m.op);
  a.thread = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
  a.block = grid_->position(m.cta);
  a.address = address;
  a.kernel = grid_->kernel().name;
  if (address) name_memory(a, address);
  return a;
}

void Checker::name_memory(Access& access, uint64_t generic) const {
  if (window::is_shared(generic)) {
    access.space = "shared";
    const uint64_t offset = (generic - window::shared) & window::own_shared;
    access.address = offset;
    const auto kernel = static_cast<uint32_t>(&grid_->kernel() - grid_->program().functions.data());
    if (const Extent* at = running_->variables->shared_at(offset, kernel))
      access.object = std::string(at->name) + "+" + std::to_string(offset - at->begin);
  } else if (window::is_local(generic)) {
    access.space = "local";
    access.address = generic - window::local;
  } else {
    access.space = "global";
    access.object = grid_->memory().describe(generic);
  }
}

/// load: the Op that has loaded the value that it is about.
void Checker::add(Finding finding, uint32_t load) {
  if (finding.kernel.empty()) finding.kernel = finding.second.kernel;
  const auto where = [](const Access& a) {
    return a.line ? a.file + ":" + std::to_string(a.line) : a.position;
  };
  const std::string key = finding.kind + "\n" + finding.kernel + "\n" + where(finding.first) + "\n" +
                          finding.first.what + "\n" + where(finding.second) + "\n" + finding.second.what;
  const auto [at, is_new] = known_.try_emplace(key, findings_.size());
  if (!is_new) {
    ++findings_[at->second].count;
    return;
  }
  findings_.push_back(std::move(finding));
  loads_.emplace_back(load == UINT32_MAX ? nullptr : &grid_->program(), load);
}

/// The race of a load is reported; values that it has loaded are not. Findings keep their numbers.
void Checker::drop_values_of(uint32_t load) {
  if (!running_->racing.insert(load).second) return;
  const std::pair gone(&grid_->program(), load);
  for (size_t k = 0; k < findings_.size(); ++k) {
    if (loads_[k] != gone) continue;
    findings_[k].count = 0;
    std::erase_if(known_, [&](const auto& known) { return known.second == k; });
  }
}

}  // namespace simt::check
