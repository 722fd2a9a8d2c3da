#include "isa/instruction_source.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <exception>
#include <mutex>
#include <thread>

namespace simt {
namespace {

constexpr uint64_t ctas_searched = 8;  ///< for leaders

/// Calls `see(warp, previous, index)` for each record of a CTA that is replayed.
template <class See>
void walk(CtaStream& stream, See see) {
  DynamicRecord record;
  for (uint32_t warp = 0; warp < stream.warps(); ++warp) {
    uint32_t previous = BasicBlocks::none;
    while (stream.next(warp, record, 0) == CtaStream::Next::Record) {
      see(warp, previous, record.static_index);
      previous = record.static_index;
    }
  }
}

/// Counts the blocks of CTAs that are replayed, from where their streams are.
class BlockCounter {
 public:
  explicit BlockCounter(const BasicBlocks& blocks) : blocks_(blocks) {}

  void add(CtaStream& stream) {
    std::vector<uint32_t>& counts = of_ctas_.emplace_back(size_t{stream.warps()} * blocks_.count());
    walk(stream, [&](uint32_t warp, uint32_t previous, uint32_t index) {
      // The rest of a block that has begun is not counted again.
      if (previous == BasicBlocks::none) previous = index - 1;
      if (blocks_.begins(previous, index)) ++counts[size_t{warp} * blocks_.count() + blocks_.of(index)];
    });
    warps_ = std::max(warps_, stream.warps());
  }

  BlockCounts result() const {
    BlockCounts result;
    result.blocks = blocks_.count();
    result.warps_per_cta = warps_;
    const size_t of_cta = size_t{warps_} * blocks_.count();
    result.counts.resize(of_cta * of_ctas_.size());
    for (size_t i = 0; i < of_ctas_.size(); ++i)
      std::copy(of_ctas_[i].begin(), of_ctas_[i].end(),
                result.counts.begin() + static_cast<std::ptrdiff_t>(i * of_cta));
    return result;
  }

 private:
  const BasicBlocks& blocks_;
  uint32_t warps_ = 0;
  std::vector<std::vector<uint32_t>> of_ctas_;
};

/// Replays one CTA into the recorder. Returns its instructions.
InstructionCounts follow(InstructionSource& source, uint64_t ordinal, FootprintRecorder& recorder) {
  const auto stream = source.open_cta(ordinal);
  const std::vector<StaticInstruction>& instructions = source.instructions();
  std::vector<uint64_t> addresses(64);
  InstructionCounts counts;
  DynamicRecord record;
  for (uint32_t warp = 0; warp < stream->warps(); ++warp)
    while (stream->next(warp, record, 0) == CtaStream::Next::Record) {
      counts += {1, static_cast<uint64_t>(std::popcount(record.mask))};
      if (record.mask == 0 || (!instructions[record.static_index].accesses_memory() && !record.bulk_count))
        continue;
      addresses.resize(std::max<size_t>(addresses.size(), record.bulk_count));
      const uint32_t count = source.lane_addresses(record, addresses.data());
      recorder.add(record.static_index, addresses.data(), count, record.bulk_bytes);
    }
  return counts;
}

}  // namespace

std::vector<uint32_t> InstructionSource::leaders() {
  std::vector<uint8_t> leads(instructions().size());
  const uint64_t searched = std::min(ctas_searched, cta_count());
  for (uint64_t i = 0; i < searched; ++i) {
    // The midpoints of equal parts of the grid.
    const auto stream = open_cta((2 * i + 1) * cta_count() / (2 * searched));
    walk(*stream, [&](uint32_t, uint32_t previous, uint32_t index) {
      if (index != previous + 1) leads[index] = 1;
    });
  }
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < leads.size(); ++i)
    if (leads[i]) result.push_back(i);
  return result;
}

BlockCounts InstructionSource::preview(const std::vector<uint64_t>& ordinals, const BasicBlocks& blocks,
                                       uint32_t) {
  BlockCounter counter(blocks);
  for (const uint64_t ordinal : ordinals) counter.add(*open_cta(ordinal));
  return counter.result();
}

BlockCounts InstructionSource::execute(uint64_t first, uint64_t end, const BasicBlocks* blocks,
                                       uint32_t threads, std::vector<Footprint>* footprints) {
  BlockCounts all;
  if (blocks) {
    std::vector<uint64_t> ordinals(end - first);
    for (uint64_t i = first; i < end; ++i) ordinals[i - first] = i;
    all = preview(ordinals, *blocks, threads);
  }
  if (footprints) {
    footprints->resize(end - first);
    for (Footprint& footprint : *footprints) footprint.clear();
    std::atomic<uint64_t> next{0};
    std::mutex mutex;
    std::exception_ptr error;
    all.executed.emplace();
    const auto work = [&] {
      FootprintRecorder recorder(launch(), instructions());
      InstructionCounts counts;
      try {
        for (uint64_t i = next++; i < end - first; i = next++) {
          recorder.begin((*footprints)[i]);
          counts += follow(*this, first + i, recorder);
        }
      } catch (...) {
        next = end - first;
        const std::lock_guard lock(mutex);
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      *all.executed += counts;
      all.accesses += recorder.accesses();
    };
    std::vector<std::thread> others;
    for (uint32_t t = 1; t < threads && t < end - first; ++t) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
    if (error) std::rethrow_exception(error);
    all.thread_instructions = all.executed->thread_instructions;
    all.warp_instructions = all.executed->warp_instructions;
  }
  return all;
}

BlockCounts InstructionSource::finish(const std::vector<std::shared_ptr<CtaStream>>& begun, uint64_t first,
                                      const BasicBlocks* blocks, uint32_t) {
  if (!blocks) return {};
  BlockCounter counter(*blocks);
  for (const auto& stream : begun) counter.add(*stream);
  for (uint64_t i = first; i < cta_count(); ++i) counter.add(*open_cta(i));
  return counter.result();
}

}  // namespace simt
