#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "isa/prefetch.hpp"
#include "timing/memory/address_index.hpp"

namespace simt {

/// Which lines of a cache hold which tags, and the order of each set's lines. Lines are numbered set by set;
/// a set takes its lines in order, and each line has one tag after another.
///
/// A set of few ways is in one of the host's cache lines: a byte of each tag, and the order as bytes. If
/// there are more ways, an index over all sets finds tags, and the order is a list.
class TagStore {
 public:
  static constexpr uint32_t none = ~0u;

  /// `same_sets`: whether a tag is always in the same set, which is known when it is looked for.
  TagStore(uint32_t line_bytes, bool same_sets)
      : shift_(static_cast<uint32_t>(std::countr_zero(line_bytes))),
        same_sets_(same_sets),
        index_(line_bytes) {}

  /// Empties it.
  void resize(uint32_t sets, uint32_t ways) {
    ways_ = ways;
    narrow_ = same_sets_ && ways <= most_narrow;
    narrow_sets_.assign(narrow_ ? sets : 0, NarrowSet{});
    wide_sets_.assign(narrow_ ? 0 : sets, WideSet{});
    links_.assign(narrow_ ? 0 : size_t{sets} * ways, Link{});
    index_.clear();
  }

  /// The line that holds the tag. set_of(): the tag's set; tag_of(line): what a line holds.
  template <typename SetOf, typename TagOf>
  uint32_t find(uint64_t tag, SetOf set_of, TagOf tag_of) const {
    if (!narrow_) return index_.find(tag, tag_of);
    const uint32_t set = set_of();
    for (uint32_t ways = candidates(narrow_sets_[set], tag); ways; ways &= ways - 1) {
      const uint32_t line = set * ways_ + static_cast<uint32_t>(std::countr_zero(ways));
      if (tag_of(line) == tag) return line;
    }
    return none;
  }
  /// What find() returns, save that it may be a line with another tag. Touches no line.
  template <typename SetOf>
  uint32_t likely(uint64_t tag, SetOf set_of) const {
    if (!narrow_) return index_.likely(tag);
    const uint32_t set = set_of();
    const uint32_t ways = candidates(narrow_sets_[set], tag);
    return ways ? set * ways_ + static_cast<uint32_t>(std::countr_zero(ways)) : none;
  }

  /// Lines of the set that hold a tag.
  uint32_t used(uint32_t set) const { return narrow_ ? narrow_sets_[set].used() : wide_sets_[set].used; }
  /// The first line in the set's order, oldest first, for which holds(line); none if there is none.
  template <typename Holds>
  uint32_t first_in_order(uint32_t set, Holds holds) const {
    if (narrow_) {
      const NarrowSet& s = narrow_sets_[set];
      for (uint32_t i = s.used(); i-- > 0;)
        if (const uint32_t line = set * ways_ + s.at(i); holds(line)) return line;
      return none;
    }
    uint32_t line = wide_sets_[set].oldest;
    while (line != none && !holds(line)) line = links_[line].next;
    return line;
  }
  uint32_t oldest(uint32_t set) const {
    if (!narrow_) return wide_sets_[set].oldest;
    const uint32_t used = narrow_sets_[set].used();
    return used > 0 ? set * ways_ + narrow_sets_[set].at(used - 1) : none;
  }

  /// A line that holds no tag gets one, and is the newest of its set.
  void take(uint32_t set, uint32_t line, uint64_t tag) {
    if (narrow_) {
      narrow_sets_[set].set_used(narrow_sets_[set].used() + 1);
      narrow_sets_[set].set_tag(line - set * ways_, byte_of(tag));
      renew(set, line);
      return;
    }
    ++wide_sets_[set].used;
    index_.insert(tag, line);
    append(set, line);
  }
  /// The same, of a line that holds `before`.
  void replace(uint32_t set, uint32_t line, uint64_t before, uint64_t tag) {
    if (narrow_) {
      narrow_sets_[set].set_tag(line - set * ways_, byte_of(tag));
    } else {
      index_.erase(before, line);
      index_.insert(tag, line);
    }
    renew(set, line);
  }
  /// The line becomes the newest of its set.
  void renew(uint32_t set, uint32_t line) {
    if (narrow_) {
      narrow_sets_[set].renew(line - set * ways_);
    } else if (wide_sets_[set].newest != line) {
      unlink(set, line);
      append(set, line);
    }
  }
  /// Forgets the tags of a set's lines.
  template <typename TagOf>
  void clear(uint32_t set, TagOf tag_of) {
    if (narrow_) {
      narrow_sets_[set] = NarrowSet{};
      return;
    }
    for (uint32_t line = set * ways_ + wide_sets_[set].used; line-- > set * ways_;) {
      index_.erase(tag_of(line), line);
      links_[line] = Link{};
    }
    wide_sets_[set] = WideSet{};
  }

  /// Bring into the host's caches what find(), and then what renew() reads first.
  template <typename SetOf>
  void prefetch(uint64_t tag, SetOf set_of) const {
    if (narrow_)
      simt::prefetch(&narrow_sets_[set_of()]);
    else
      index_.prefetch(tag);
  }
  void prefetch_order(uint32_t line) const {
    if (!narrow_) simt::prefetch(&links_[line]);
  }
  /// Whether replace() touches more than a line and its set: prefetch() of the tag before brings it.
  bool indexed() const { return !narrow_; }

 private:
  static constexpr uint32_t most_narrow = 31;
  static constexpr uint64_t ones = 0x0101010101010101u;
  /// The highest bit of each byte of the word that is 0, and perhaps of others above the first.
  static uint64_t zero_bytes(uint64_t word) { return (word - ones) & ~word & ones << 7; }

  struct alignas(64) NarrowSet {
    /// By way, in bytes. The last is the number of ways in use.
    std::array<uint64_t, 4> tags{};
    /// Ways in bytes, the newest first, and after those in use the others in ascending order.
    std::array<uint64_t, 4> order{0x0706050403020100u, 0x0f0e0d0c0b0a0908u, 0x1716151413121110u,
                                  0x1f1e1d1c1b1a1918u};

    uint32_t used() const { return static_cast<uint32_t>(tags[3] >> 56); }
    void set_used(uint32_t used) { tags[3] = (tags[3] & ~uint64_t{0} >> 8) | uint64_t{used} << 56; }
    void set_tag(uint32_t way, uint64_t tag) {
      uint64_t& word = tags[way / 8];
      word = (word & ~(uint64_t{0xff} << way % 8 * 8)) | tag << way % 8 * 8;
    }
    uint32_t at(uint32_t position) const {
      return static_cast<uint32_t>(order[position / 8] >> position % 8 * 8 & 0xff);
    }
    void renew(uint32_t way) {
      uint64_t in = way;
      for (uint64_t& word : order) {
        const uint64_t moved = word << 8 | in;
        if (const uint64_t found = zero_bytes(word ^ ones * way)) {
          const uint64_t up_to = found ^ (found - 1);
          word = (word & ~up_to) | (moved & up_to);
          return;
        }
        in = word >> 56;
        word = moved;
      }
    }
  };
  struct WideSet {
    uint32_t oldest = none, newest = none;
    uint32_t used = 0;
  };
  struct Link {
    uint32_t previous = none, next = none;
  };

  uint64_t byte_of(uint64_t tag) const { return (tag >> shift_) * 0x9e3779b97f4a7c15u >> 56; }
  /// The ways whose tag may be this one.
  uint32_t candidates(const NarrowSet& set, uint64_t tag) const {
    uint32_t found = 0;
#if defined(__SSE2__)
    const __m128i bytes = _mm_set1_epi8(static_cast<char>(byte_of(tag)));
    const auto* tags = reinterpret_cast<const __m128i*>(set.tags.data());
    for (int i = 0; i < 2; ++i)
      found |= static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(tags + i), bytes)))
               << 16 * i;
#else
    const uint64_t bytes = ones * byte_of(tag);
    for (uint32_t i = 0; i < set.tags.size(); ++i)
      found |= static_cast<uint32_t>((zero_bytes(set.tags[i] ^ bytes) >> 7) * 0x0102040810204080u >> 56)
               << 8 * i;
#endif
    return found & ((1u << set.used()) - 1);
  }
  void unlink(uint32_t set, uint32_t line) {
    const Link link = links_[line];
    (link.previous == none ? wide_sets_[set].oldest : links_[link.previous].next) = link.next;
    (link.next == none ? wide_sets_[set].newest : links_[link.next].previous) = link.previous;
  }
  void append(uint32_t set, uint32_t line) {
    const uint32_t previous = wide_sets_[set].newest;
    wide_sets_[set].newest = line;
    links_[line] = {previous, none};
    (previous == none ? wide_sets_[set].oldest : links_[previous].next) = line;
  }

  uint32_t shift_;
  uint32_t ways_ = 0;
  bool same_sets_;
  bool narrow_ = false;
  std::vector<NarrowSet> narrow_sets_;
  std::vector<WideSet> wide_sets_;
  std::vector<Link> links_;  // of the lines
  AddressIndex index_;
};

}  // namespace simt
