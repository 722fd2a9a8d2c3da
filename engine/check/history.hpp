#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simt::check {

/// What a warp did at an instruction between two events of its clock.
struct Moment {
  uint64_t cta = 0;
  uint32_t op = 0;        ///< index into the program's code
  uint32_t clock = 0;     ///< of the warp
  uint32_t together = 0;  ///< in machine code: lanes that were at the instruction, guarded or not
  uint32_t lanes = 0;     ///< that have made accesses which details of the Op describe
  uint16_t warp = 0;
  uint8_t manner = 0;  ///< see Manner
};

/// How an access was made.
enum Manner : uint8_t {
  Writes = 1,
  Atomic = 2,
  Strong = 4,  ///< volatile, or with an order and a scope
  OfCta = 8,   ///< its scope is the CTA
  OfCluster = 16,
  Volatile = 64,
  Cached = 128,  ///< ld.global.nc: need not see what the kernel writes
  Later = 32     ///< made by an asynchronous copy or product, after its instruction
};

/// Who has accessed something last: 0: nobody; a moment and a lane; or up to four of them.
using Stamp = uint32_t;

/// The moments of a launch, and the groups of them that stamps name.
class History {
 public:
  static constexpr uint32_t most = 4;

  History() { clear(); }
  void clear();
  /// The number of a new moment.
  uint32_t add(const Moment& moment);
  const Moment& operator[](uint32_t number) const { return moments_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(moments_.size()); }
  /// These lanes have made an access of a moment.
  void take_part(uint32_t number, uint32_t lanes) { moments_[number].lanes |= lanes; }
  /// No more moments can be kept apart, or no more groups in another moment's accesses.
  bool full() const {
    constexpr size_t numbers = 1u << 26, in_a_moment = 1u << 16;
    return moments_.size() >= numbers || groups_.size() >= numbers - in_a_moment;
  }

  static Stamp stamp(uint32_t moment, uint32_t lane) { return moment << 5 | lane; }
  static bool is_group(Stamp s) { return s >> 31; }
  static uint32_t number(Stamp s) { return s << 1 >> 6; }
  static uint32_t lane(Stamp s) { return s & 31; }

  /// Calls f(moment, lane) for each access that a stamp names, until f returns false.
  template <class F>
  void visit(Stamp s, F f) const {
    if (s == 0) return;
    if (!is_group(s)) {
      f(number(s), lane(s));
      return;
    }
    const Group& g = groups_[number(s)];
    for (uint32_t k = 0; k < g.count; ++k)
      if (!f(g.moment[k], (lane(s) + g.turn[k]) & 31)) return;
  }
  /// Whether the accesses of `s` stay as they are if one like this, which is after none of them, comes.
  bool stays(Stamp s, const Moment& other) const {
    if (!is_group(s)) return false;
    const Group& g = groups_[number(s)];
    return g.count == most && std::any_of(g.moment.begin(), g.moment.end(), [&](uint32_t m) {
             return alike(moments_[m], other) >= g.likeness;
           });
  }
  /// The stamp of the accesses of `s` for which keep(moment, lane) holds, and of another one.
  template <class F>
  Stamp with(Stamp s, uint32_t moment, uint32_t lane, F keep) {
    std::array<std::pair<uint32_t, uint32_t>, most> kept;
    uint32_t count = 0;
    visit(s, [&](uint32_t m, uint32_t l) {
      if (keep(m, l)) kept[count++] = {m, l};
      return true;
    });
    if (count == 0) return stamp(moment, lane);
    return joined(s, kept, count, moment, lane);
  }

 private:
  struct Group {
    uint32_t count = 0;
    std::array<uint32_t, most> moment{};
    std::array<uint8_t, most> turn{};    ///< lanes behind that of the stamp
    uint8_t likeness = 0, worst = most;  ///< of a full one: see `judge`
    bool operator==(const Group& other) const {
      return count == other.count && moment == other.moment && turn == other.turn;
    }
  };
  static size_t hash(const Group& g);
  static uint32_t alike(const Moment& a, const Moment& b) {
    return a.cta != b.cta ? 0 : a.warp != b.warp ? 1 : 2;
  }
  /// Which member of a full group tells least: one whose likeness with another is greatest.
  void judge(Group& g) const;
  Stamp joined(Stamp s, std::array<std::pair<uint32_t, uint32_t>, most>& kept, uint32_t count,
               uint32_t moment, uint32_t lane);

  std::vector<Moment> moments_;
  std::vector<Group> groups_;
  std::array<uint32_t, 4096> known_{};  ///< groups found lately, by hash
  uint32_t last_ = 0;                   ///< group found last
};

}  // namespace simt::check
