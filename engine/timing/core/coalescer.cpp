#include "timing/core/coalescer.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "timing/base/request.hpp"

namespace simt {
namespace {

uint32_t bytes_in_sector(uint64_t address, uint64_t sector, uint32_t bytes) {
  const uint64_t begin = std::max(address, sector), end = std::min(address + bytes, sector + sector_bytes);
  const uint64_t length = end - begin;
  const uint64_t ones = length >= 32 ? 0xffffffffull : (uint64_t{1} << length) - 1;
  return static_cast<uint32_t>(ones << (begin - sector));
}

/// Whether each lane accesses the bytes behind the lane before it, and none crosses the end of a sector.
bool side_by_side(const uint64_t* addresses, uint32_t count, uint32_t bytes) {
  if (!std::has_single_bit(bytes) || bytes > sector_bytes || addresses[0] % bytes != 0) return false;
  uint64_t differences = 0;
  for (uint32_t i = 0; i < count; ++i) differences |= addresses[i] ^ (addresses[0] + uint64_t{i} * bytes);
  return differences == 0;
}

constexpr auto by_address = [](const Transaction& a, const Transaction& b) { return a.address < b.address; };

void widen_to_segments(std::vector<Transaction>& transactions) {
  std::vector<Transaction> wide;
  for (size_t i = 0; i < transactions.size();) {
    const uint64_t line = transactions[i].address & ~uint64_t{127};
    uint32_t sectors = 0;
    uint16_t lanes = 0;
    for (; i < transactions.size() && (transactions[i].address & ~uint64_t{127}) == line; ++i) {
      sectors |= 1u << (transactions[i].address % 128 / sector_bytes);
      lanes = static_cast<uint16_t>(lanes + transactions[i].lanes);
    }
    uint32_t fetched = sectors;
    if ((sectors & 3) && (sectors & 12))
      fetched = 15;
    else if (sectors == 3 || sectors == 12)
      fetched = sectors;
    for (uint32_t s = 0; s < 4; ++s)
      if (fetched >> s & 1) {
        wide.push_back({line + uint64_t{s} * sector_bytes, ~0u, lanes});
        lanes = 0;
      }
  }
  transactions = std::move(wide);
}

/// Whether all active lanes n and n ^ distance have the same address.
bool pairs_are_equal(const uint64_t* of_lane, uint64_t mask, uint32_t distance) {
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest)), other = lane ^ distance;
    if ((mask >> other & 1) && of_lane[lane] != of_lane[other]) return false;
  }
  return true;
}

/// Passes of lanes whose words ascend, as those of most accesses do: each is then new, or that of the lane
/// before. 0 if they do not.
uint32_t passes_of_ascending(const uint64_t* addresses, uint64_t lanes, uint32_t words, uint32_t banks) {
  std::array<uint8_t, 64> of_bank{};
  uint64_t before = ~uint64_t{0}, end = 0;
  uint32_t most = 0;
  for (; lanes; lanes &= lanes - 1) {
    const uint64_t first = addresses[std::countr_zero(lanes)] / 4;
    if (first == before) continue;
    if (first < end) return 0;
    before = first;
    end = first + words;
    for (uint64_t word = first; word < end; ++word)
      most = std::max<uint32_t>(most, ++of_bank[word & (banks - 1)]);
  }
  return most;
}

/// Whether no two of the lanes' words are different words of one bank.
bool one_word_per_bank(const uint64_t* addresses, uint64_t lanes, uint32_t words, uint32_t banks) {
  std::array<uint64_t, 64> of_bank;
  uint64_t taken = 0;
  for (; lanes; lanes &= lanes - 1)
    for (uint32_t w = 0; w < words; ++w) {
      const uint64_t word = addresses[std::countr_zero(lanes)] / 4 + w;
      const uint64_t bank = word & (banks - 1);
      if (!(taken >> bank & 1)) {
        taken |= uint64_t{1} << bank;
        of_bank[bank] = word;
      } else if (of_bank[bank] != word) {
        return false;
      }
    }
  return true;
}

}  // namespace

void coalesce(const uint64_t* addresses, uint32_t count, uint32_t bytes, bool sectored,
              std::vector<Transaction>& transactions) {
  transactions.clear();
  if (sectored && count > 0 && side_by_side(addresses, count, bytes)) {
    const uint64_t end = addresses[0] + uint64_t{count} * bytes;
    transactions.reserve((end - 1) / sector_bytes - addresses[0] / sector_bytes + 1);
    for (uint64_t at = addresses[0]; at < end;) {
      const uint64_t sector = at & ~uint64_t{sector_bytes - 1};
      const auto length = static_cast<uint32_t>(std::min(end, sector + sector_bytes) - at);
      transactions.push_back(
          {sector, bytes_in_sector(at, sector, length), static_cast<uint16_t>(length / bytes)});
      at += length;
    }
    return;
  }
  uint64_t seen = 0, highest = 0;  // seen: a bit for each sector's hash
  const auto transaction_at = [&](uint64_t sector) -> Transaction& {
    const uint64_t bit = uint64_t{1} << (sector * 0x9e3779b97f4a7c15ull >> 58);
    if (sector <= highest && (seen & bit))
      for (size_t i = transactions.size(); i-- > 0;)
        if (transactions[i].address == sector) return transactions[i];
    seen |= bit;
    highest = std::max(highest, sector);
    return transactions.emplace_back(Transaction{sector, 0, 0});
  };
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t first = addresses[i] & ~uint64_t{sector_bytes - 1};
    const uint64_t last = (addresses[i] + bytes - 1) & ~uint64_t{sector_bytes - 1};
    for (uint64_t sector = first;; sector += sector_bytes) {
      Transaction& t = transaction_at(sector);
      t.byte_mask |= bytes_in_sector(addresses[i], sector, bytes);
      if (sector == first) ++t.lanes;
      if (sector == last) break;
    }
  }
  if (!std::is_sorted(transactions.begin(), transactions.end(), by_address))
    std::sort(transactions.begin(), transactions.end(), by_address);
  if (!sectored) widen_to_segments(transactions);
}

void coalesce_atomic(const uint64_t* addresses, uint32_t count, uint32_t bytes,
                     std::vector<Transaction>& transactions) {
  transactions.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t sector = addresses[i] & ~uint64_t{sector_bytes - 1};
    const uint32_t mask = bytes_in_sector(addresses[i], sector, bytes);
    auto found = std::find_if(transactions.begin(), transactions.end(), [&](const Transaction& t) {
      return t.address == sector && (t.byte_mask & mask) == 0;
    });
    if (found == transactions.end()) found = transactions.insert(transactions.end(), {sector, 0, 0});
    found->byte_mask |= mask;
    ++found->lanes;
  }
  if (!std::is_sorted(transactions.begin(), transactions.end(), by_address))
    std::stable_sort(transactions.begin(), transactions.end(), by_address);
}

uint32_t shared_memory_passes(const uint64_t* addresses, uint64_t mask, uint32_t bytes, uint32_t banks,
                              bool by_width, SharedAccess access) {
  constexpr uint32_t max_banks = 64, max_lanes = 64;
  banks = std::min(banks, max_banks);
  const uint32_t words = by_width ? std::max(1u, bytes / 4) : 1;
  std::array<uint64_t, max_lanes> scattered;
  const uint64_t* of_lane = addresses;
  if (mask & (mask + 1)) {
    for (uint64_t rest = mask; rest; rest &= rest - 1) scattered[std::countr_zero(rest)] = *addresses++;
    of_lane = scattered.data();
  }
  uint32_t group = by_width ? std::max(1u, 32 / words) : max_lanes;  // lanes served together
  if (access == SharedAccess::Load && words > 1 && mask >> 32 == 0 &&
      (pairs_are_equal(of_lane, mask, 1) || pairs_are_equal(of_lane, mask, 2)))
    group = std::min(32u, 2 * group);
  uint32_t passes = 0;
  for (uint32_t begin = 0; begin < max_lanes; begin += group) {
    uint64_t lanes = mask >> begin;
    if (group < max_lanes) lanes &= (uint64_t{1} << group) - 1;
    if (lanes == 0) continue;
    if (access != SharedAccess::Atomic) {
      const uint32_t ascending = passes_of_ascending(of_lane + begin, lanes, words, banks);
      passes += ascending;
      if (ascending > 0) continue;
      if (one_word_per_bank(of_lane + begin, lanes, words, banks)) {
        ++passes;
        continue;
      }
    }
    // Distinct words per bank, in lane order (of atomics, all words); a warp has at most 64 lanes, so a bank
    // sees at most 64 words.
    std::array<std::array<uint64_t, max_lanes>, max_banks> seen;
    std::array<uint8_t, max_banks> different{};
    uint32_t most = 1;
    for (; lanes; lanes &= lanes - 1)
      for (uint32_t w = 0; w < words; ++w) {
        const uint64_t word = of_lane[begin + static_cast<uint32_t>(std::countr_zero(lanes))] / 4 + w;
        const uint32_t bank = static_cast<uint32_t>(word & (banks - 1));
        const uint64_t* known = seen[bank].data();
        const uint64_t* known_end = seen[bank].data() + different[bank];
        if (different[bank] == max_lanes) continue;
        if (access != SharedAccess::Atomic && std::find(known, known_end, word) != known_end) continue;
        seen[bank][different[bank]++] = word;
        most = std::max<uint32_t>(most, different[bank]);
      }
    passes += most;
  }
  return std::max(1u, passes);
}

}  // namespace simt
