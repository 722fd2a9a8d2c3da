#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "stats/counters.hpp"
#include "timing/base/ring_queue.hpp"
#include "timing/base/spec.hpp"
#include "timing/memory/dram_scheduler.hpp"

namespace simt {

/// What a channel did; totals since the start.
struct ChannelActivity {
  uint64_t reads = 0, writes = 0;
  uint64_t bus_cycles = 0;      ///< command cycles in which the data bus is in use
  uint64_t pending_cycles = 0;  ///< command cycles with a request waiting for or in a bank
};

/// What a bank did; totals since the start.
struct BankActivity {
  uint64_t bus_cycles = 0;      ///< command cycles in which the data bus is in use for it
  uint64_t pending_cycles = 0;  ///< command cycles with a request in the bank
};

/// One DRAM channel: scheduler, banks and their timing (docs/model/dram.md). Time is counted in command
/// cycles.
///
/// If a command Z must follow a command X no earlier than tY cycles later, it is allowed in cycle (cycle of
/// X) + tY.
class DramChannel {
 public:
  DramChannel(const DramSpec& spec, std::vector<Counters>& counters);

  bool full(bool write) const { return scheduler_->full(write); }
  void push(const DramRequest& request);
  /// One command cycle. Reads whose data has arrived go to `returned`; finished writes are listed in
  /// writes_done().
  void tick(uint64_t cycle);
  /// The simple model: a request completes after the controller's latency.
  void serve_at_once(const DramRequest& request);
  bool idle() const { return held_ == 0; }

  /// Calls use(request) for the reads whose data can be taken in command cycles [begin, end).
  template <typename Use>
  void for_each_arriving(uint64_t begin, uint64_t end, Use use) const {
    const uint64_t most = end - begin;  // one a cycle
    for (size_t i = 0; i < returned_.size() && i < most; ++i) use(returned_[i]);
    for (size_t i = 0; i + returned_.size() < most && i < data_.size() && data_[i].ready < end; ++i)
      if (!data_[i].request.write) use(data_[i].request);
  }

  bool has_returned() const { return !returned_.empty(); }
  const DramRequest& front_returned() const { return returned_.front(); }
  void pop_returned() {
    returned_.pop_front();
    --held_;
  }
  /// Slices (within the channel) of the writes finished since the last call.
  std::vector<uint32_t>& writes_done() { return writes_done_; }

  ChannelActivity activity() const {
    return {reads_, writes_, (reads_ + writes_) * burst_cycles_, pending_cycles_};
  }
  /// Appends what each bank did before command cycle `cycle`, the next to run.
  void append_bank_activity(uint64_t cycle, std::vector<BankActivity>& out) const;

 private:
  struct alignas(64) Bank {
    DramRequest request{};
    uint64_t read_at = 0, write_at = 0;  // column commands allowed (tRCD)
    uint64_t precharge_at = 0;           // tRAS, write recovery, read to precharge
    uint64_t activate_at = 0;            // tRP, tRC
    bool active = false;                 // its row is open
    bool hit_since_activate = false;
  };
  struct BankUse {
    uint64_t taken_at = 0;    // cycle in which the bank got its request
    BankActivity activity{};  // pending cycles: of the requests that have left
  };
  struct Group {
    uint64_t column_at = 0;     // tCCDL
    uint64_t precharge_at = 0;  // tRTPL
  };
  struct Data {
    uint64_t ready;
    DramRequest request;
  };

  Group& group_of(uint32_t bank) { return bank_groups_[groups_of_[bank]]; }
  const Group& group_of(uint32_t bank) const { return bank_groups_[groups_of_[bank]]; }
  /// Gives the scheduler's next request to its bank.
  void schedule(uint64_t cycle);
  /// With separate buses, and with one that both kinds of commands share. Return the cycle before which
  /// nothing can be issued then, unless a bank gets a request or is refreshed.
  uint64_t issue_on_two_buses(uint64_t cycle);
  uint64_t issue_on_one_bus(uint64_t cycle);
  void column_command(uint32_t bank, uint64_t cycle);
  void row_command(uint32_t bank, uint64_t cycle);
  /// The cycle from which the request in a bank may have a column command, or a row command, if no other
  /// command is issued before; ~0 if it needs another first.
  uint64_t column_allowed_at(uint32_t bank) const;
  uint64_t row_allowed_at(uint32_t bank) const;
  /// Sorts a busy bank by the command that its request needs next; and takes it out again.
  void classify(uint32_t bank);
  void declassify(uint32_t bank);
  /// The first of these banks, in turn, for which allowed_at(bank) <= cycle. no_bank if there is none:
  /// `soonest` is then at most the first that will be.
  template <class AllowedAt>
  uint32_t first_in_turn(uint64_t banks, uint64_t cycle, uint64_t& soonest, AllowedAt allowed_at) const;
  /// Performs all refreshes due by `cycle`, each at its own time.
  void refresh(uint64_t cycle);
  /// Closes the row as soon as possible, and blocks the bank (or all banks) until the refresh is done.
  void refresh_next();

  uint32_t held_ = 0;  // requests in the scheduler, in banks, or whose data is on its way or has arrived
  RingQueue<DramRequest> returned_;
  const DramSpec spec_;
  std::vector<Counters>& counters_;
  uint32_t burst_cycles_, read_to_write_, write_to_read_, write_to_precharge_, rcd_write_;
  std::vector<Bank> banks_;
  std::vector<BankUse> uses_;  // of the banks
  std::vector<Group> bank_groups_;
  std::array<uint8_t, 64> groups_of_{};  // of the banks
  std::vector<uint32_t> rows_;           // per bank: the row open now or last
  std::unique_ptr<DramScheduler> scheduler_;
  bool may_schedule_ = true;  // a bank or a request has come free since the scheduler last found none
  uint64_t busy_banks_ = 0;   // banks with a request in service
  // These, by the command that the request needs next.
  uint64_t reading_ = 0, writing_ = 0, opening_ = 0, closing_ = 0;
  std::array<uint64_t, 64> ready_at_{};  // per busy bank: the cycle from which it itself allows that command
  uint16_t latest_slot_ = 0;             // of the latest request, whose launch is charged with pending cycles
  uint32_t priority_ = 0;
  uint64_t quiet_until_ = 0;  // no command is allowed before
  uint64_t column_at_ = 0, activate_at_ = 0, read_at_ = 0, write_at_ = 0;
  std::array<uint64_t, 4> window_{};  // tFAW: for each of the last four activates, when a fifth is allowed
  uint32_t oldest_activate_ = 0;      // of the window
  uint32_t refresh_interval_;         // between refreshes of one bank each, or of all banks together
  uint64_t refresh_at_;               // the next
  uint32_t refresh_bank_ = 0;
  uint64_t last_data_ = 0;
  RingQueue<Data> data_;
  std::vector<uint32_t> writes_done_;
  uint64_t reads_ = 0, writes_ = 0, pending_cycles_ = 0;
};

}  // namespace simt
