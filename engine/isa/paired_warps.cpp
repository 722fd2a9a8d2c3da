#include "isa/paired_warps.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>

namespace simt {
namespace {

constexpr uint32_t half_lanes = 32;
/// A half that has run alone for this many records, or for this many with accesses in time order among them,
/// yields to the other one for a turn. The numbers are arbitrary; they only have to prevent a deadlock.
constexpr uint32_t longest_run = 4096, suspicious_run = 256, suspicious_accesses = 16, turn_records = 64;

/// Counts of warps from those of their halves.
BlockCounts of_pairs(const BlockCounts& halves) {
  BlockCounts result;
  result.warps_per_cta = (halves.warps_per_cta + 1) / 2;
  result.blocks = halves.blocks;
  result.complete = halves.complete;
  result.thread_instructions = halves.thread_instructions;
  const size_t blocks = halves.blocks, of_cta = blocks * halves.warps_per_cta;
  if (of_cta == 0) return result;
  const size_t ctas = halves.counts.size() / of_cta;
  result.counts.resize(ctas * result.warps_per_cta * blocks);
  for (size_t c = 0; c < ctas; ++c)
    for (size_t h = 0; h < halves.warps_per_cta; ++h)
      for (size_t b = 0; b < blocks; ++b) {
        uint32_t& count = result.counts[(c * result.warps_per_cta + h / 2) * blocks + b];
        count = std::max(count, halves.counts[c * of_cta + h * blocks + b]);
      }
  return result;
}

}  // namespace

/// The warps of one CTA.
class PairedWarps::Stream : public CtaStream {
 public:
  Stream(PairedWarps& source, std::unique_ptr<CtaStream> halves)
      : source_(source), halves_(std::move(halves)), warps_((halves_->warps() + 1) / 2) {
    for (uint32_t w = 0; w < warps_.size(); ++w)
      if (2 * w + 1 >= halves_->warps()) warps_[w].half[1].state = State::Ended;
  }

  CtaStream& halves() { return *halves_; }
  uint32_t warps() const override { return static_cast<uint32_t>(warps_.size()); }
  void placed(uint32_t sm) override { halves_->placed(sm); }
  bool take_woken() override { return halves_->take_woken(); }

  Next next(uint32_t number, DynamicRecord& record, uint64_t now) override {
    Pair& pair = warps_[number];
    for (uint32_t h = 0; h < 2; ++h) look(pair.half[h], 2 * number + h, now);
    Half &low = pair.half[0], &high = pair.half[1];
    if (low.state == State::Ended && high.state == State::Ended) return Next::End;
    if (pair.forced < 2) {
      take(pair, pair.forced, record);
      return Next::Record;
    }
    if (low.state == State::Held && high.state == State::Held) {
      if (mergeable(low.record, high.record))
        merge(pair, record);
      else
        take(pair, choose(pair), record);
      return Next::Record;
    }
    const uint32_t h = low.state == State::Held ? 0 : 1;
    const Half &one = pair.half[h], &other = pair.half[1 - h];
    if (one.state != State::Held) return Next::NotYet;
    // A half that waits for time will continue soon, and then both may continue together; unless it waits for
    // this access.
    if (other.state == State::Waits && !one.record.ticket) return Next::NotYet;
    // A barrier for all threads is also the other half's.
    if (other.state == State::Blocked && waits_for_all(one.record)) return Next::NotYet;
    take(pair, h, record);
    return Next::Record;
  }

  void issued(uint32_t, uint32_t ticket, uint64_t now, uint64_t visible) override {
    for (const Part& p : tickets_[ticket - 1])
      if (p.ticket) halves_->issued(p.half, p.ticket, now, visible);
  }

  void perform(uint32_t, uint32_t ticket) override {
    for (const Part& p : tickets_[ticket - 1])
      if (p.ticket) halves_->perform(p.half, p.ticket);
    free_tickets_.push_back(ticket);
  }

  std::string waits_for(uint32_t number) const override {
    std::string text = halves_->waits_for(2 * number);
    if (2 * number + 1 < halves_->warps()) {
      const std::string other = halves_->waits_for(2 * number + 1);
      if (!other.empty() && other != text) text += (text.empty() ? "" : "; upper half: ") + other;
    }
    return text;
  }

 private:
  enum class State : uint8_t {
    Empty,    ///< its next record has not been requested
    Held,     ///< its next record is available
    Waits,    ///< has none yet, but will get one without the other half
    Blocked,  ///< has none yet, perhaps because of the other half
    Ended
  };
  struct Half {
    State state = State::Empty;
    DynamicRecord record{};
  };
  struct Pair {
    std::array<Half, 2> half{};
    uint32_t forced = 2;    ///< half whose barrier must be next, as the other one's was delivered; 2: none
    uint32_t alone = 2;     ///< half that has run alone; 2: none
    uint32_t run = 0;       ///< records since they were together, or since the last turn
    uint32_t accesses = 0;  ///< in the run, with tickets
    uint32_t turn_left = 0;
    std::array<std::array<uint64_t, 2 * half_lanes>, lookahead + 2> addresses{};
    uint32_t next_addresses = 0;
  };
  /// The source's access behind one of our tickets.
  struct Part {
    uint32_t half = 0, ticket = 0;
  };

  const StaticInstruction& fixed(const DynamicRecord& r) const {
    return source_.instructions()[r.static_index];
  }

  void look(Half& half, uint32_t number, uint64_t now) {
    if (half.state == State::Held || half.state == State::Ended) return;
    half.record = DynamicRecord{};
    switch (halves_->next(number, half.record, now)) {
      case Next::Record:
        if (half.record.mask >> half_lanes)
          throw std::invalid_argument("launch " + std::to_string(source_.launch_.id) +
                                      ": a mask of more than " + std::to_string(half_lanes) +
                                      " lanes in a warp of that many");
        half.state = State::Held;
        break;
      case Next::End:
        half.state = State::Ended;
        break;
      case Next::NotYet:
        half.state = halves_->awaits(number) == Awaits::Value ? State::Waits : State::Blocked;
        break;
    }
  }

  /// Whether a record is of a barrier that all threads of the CTA wait at, without a number of them.
  bool waits_for_all(const DynamicRecord& r) const {
    const StaticInstruction& s = fixed(r);
    return s.operation == Operation::Barrier && r.mask != 0 &&
           (s.immediate < 0 ? r.stride : s.immediate2) == 0;
  }

  uint64_t barrier_number(const DynamicRecord& r) const {
    const int64_t number = fixed(r).immediate;
    return number < 0 ? r.base : static_cast<uint64_t>(number);
  }

  bool mergeable(const DynamicRecord& a, const DynamicRecord& b) const {
    if (a.static_index != b.static_index || a.bulk_count || b.bulk_count) return false;
    const StaticInstruction& s = fixed(a);
    if (s.is_barrier())
      return (a.mask == 0) == (b.mask == 0) && barrier_number(a) == barrier_number(b) && a.stride == b.stride;
    return s.operation != Operation::MbarrierWait || a.base == b.base;
  }

  /// Which of two halves with a record each continues alone.
  uint32_t choose(Pair& pair) {
    const bool low_waits = waits_for_all(pair.half[0].record);
    const bool high_waits = waits_for_all(pair.half[1].record);
    if (low_waits != high_waits) return low_waits ? 1 : 0;
    const uint64_t low_pc = fixed(pair.half[0].record).pc, high_pc = fixed(pair.half[1].record).pc;
    const uint32_t behind = low_pc <= high_pc ? 0 : 1;
    if (low_waits) return behind;
    if (pair.turn_left > 0) {
      --pair.turn_left;
      return 1 - pair.alone;
    }
    if (pair.alone != behind) {
      pair.alone = behind;
      pair.run = pair.accesses = 0;
    }
    ++pair.run;
    pair.accesses += pair.half[behind].record.ticket != 0;
    if (pair.run >= longest_run || (pair.run >= suspicious_run && pair.accesses >= suspicious_accesses)) {
      pair.run = pair.accesses = 0;
      pair.turn_left = turn_records;
    }
    return behind;
  }

  /// Delivers one half's record.
  void take(Pair& pair, uint32_t h, DynamicRecord& record) {
    Half& half = pair.half[h];
    const Half& other = pair.half[1 - h];
    record = half.record;
    record.mask = half.record.mask << (h * half_lanes);
    if (fixed(record).is_barrier()) {
      // The second of two arrivals at a barrier for all is that of the warp.
      const bool second = pair.forced == h;
      const bool first =
          !second && other.state == State::Held && waits_for_all(half.record) && waits_for_all(other.record);
      if (first || !waits_for_all(half.record)) record.mask = 0;
      pair.forced = first ? 1 - h : 2;
    }
    if (!record.bulk_count) expand(pair, half.record, nullptr, record);
    if (record.ticket) record.ticket = new_ticket(2 * number_of(pair) + h, half.record.ticket, 0);
    half.state = State::Empty;
  }

  void merge(Pair& pair, DynamicRecord& record) {
    const DynamicRecord &low = pair.half[0].record, &high = pair.half[1].record;
    record = low;
    record.mask = low.mask | high.mask << half_lanes;
    if (fixed(record).is_barrier() && !waits_for_all(record)) record.mask = 0;
    expand(pair, low, &high, record);
    if (low.ticket || high.ticket) record.ticket = new_ticket(2 * number_of(pair), low.ticket, high.ticket);
    pair.half[0].state = pair.half[1].state = State::Empty;
    pair.alone = 2;
    pair.run = pair.accesses = pair.turn_left = 0;
  }

  /// Stores the lanes' addresses in an array of this class.
  void expand(Pair& pair, const DynamicRecord& first, const DynamicRecord* second, DynamicRecord& record) {
    auto& addresses = pair.addresses[pair.next_addresses];
    uint32_t count = source_.source_->lane_addresses(first, addresses.data());
    if (second) {
      std::array<uint64_t, 2 * half_lanes> others;
      const uint32_t more = source_.source_->lane_addresses(*second, others.data());
      std::copy_n(others.data(), more, addresses.data() + count);
      count += more;
    }
    record.deltas = count ? reinterpret_cast<const uint8_t*>(addresses.data()) : nullptr;
    if (count) pair.next_addresses = (pair.next_addresses + 1) % static_cast<uint32_t>(pair.addresses.size());
  }

  uint32_t number_of(const Pair& pair) const { return static_cast<uint32_t>(&pair - warps_.data()); }

  uint32_t new_ticket(uint32_t first_half, uint32_t first, uint32_t second) {
    if (free_tickets_.empty()) {
      tickets_.emplace_back();
      free_tickets_.push_back(static_cast<uint32_t>(tickets_.size()));
    }
    const uint32_t ticket = free_tickets_.back();
    free_tickets_.pop_back();
    tickets_[ticket - 1] = {Part{first_half, first}, Part{first_half + 1, second}};
    return ticket;
  }

  PairedWarps& source_;
  std::unique_ptr<CtaStream> halves_;
  std::vector<Pair> warps_;
  std::vector<std::array<Part, 2>> tickets_;
  std::vector<uint32_t> free_tickets_;
};

PairedWarps::PairedWarps(std::shared_ptr<InstructionSource> source)
    : source_(std::move(source)), launch_(source_->launch()) {
  if (launch_.warp_size != half_lanes) throw std::invalid_argument("only warps of 32 lanes can be paired");
  launch_.warp_size = 2 * half_lanes;
}

std::unique_ptr<CtaStream> PairedWarps::open_cta(uint64_t ordinal) {
  return std::make_unique<Stream>(*this, source_->open_cta(ordinal));
}

BlockCounts PairedWarps::preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                                 uint32_t threads) {
  return of_pairs(source_->preview(ordinals, blocks, threads));
}

BlockCounts PairedWarps::execute(uint64_t first, uint64_t end, const BasicBlocks* blocks, uint32_t threads,
                                 std::vector<Footprint>* footprints) {
  if (blocks || !footprints) return of_pairs(source_->execute(first, end, blocks, threads, footprints));
  if (!blocks_) blocks_ = std::make_unique<BasicBlocks>(instructions(), leaders());
  BlockCounts result = of_pairs(source_->execute(first, end, blocks_.get(), threads, footprints));
  for (size_t i = 0; i < result.counts.size(); ++i)
    result.warp_instructions += uint64_t{result.counts[i]} * (*blocks_)[i % result.blocks].length;
  result.counts.clear();
  result.blocks = 0;
  return result;
}

BlockCounts PairedWarps::finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                                const BasicBlocks* blocks, uint32_t threads) {
  std::vector<std::shared_ptr<CtaStream>> halves;
  halves.reserve(begun.size());
  for (const auto& stream : begun) halves.emplace_back(stream, &static_cast<Stream&>(*stream).halves());
  return of_pairs(source_->finish(halves, first, blocks, threads));
}

uint32_t PairedWarps::lane_addresses(const DynamicRecord& record, uint64_t* out) const {
  if (record.bulk_count) return source_->lane_addresses(record, out);
  if (!record.deltas) return 0;
  const auto count = static_cast<uint32_t>(std::popcount(record.mask));
  std::copy_n(reinterpret_cast<const uint64_t*>(record.deltas), count, out);
  return count;
}

}  // namespace simt
