#include "ptx/register_allocation.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>
#include <utility>

#include "ptx/interface_registers.hpp"

namespace simt::ptx {

namespace {

using instructions::Vectors;
using instructions::Writes;

/// Calls read(register) and write(register) for the registers of `operand`; parts of an address are read.
template <class Read, class Write>
void visit_operand(const Function& function, const Operand& operand, bool written, Read& read, Write& write) {
  switch (operand.kind) {
    case OperandKind::Register:
      if (!written || operand.component) read(operand.index);  // the other components keep their values
      if (written) write(operand.index);
      break;
    case OperandKind::Address:
      written = false;
      [[fallthrough]];
    case OperandKind::Vector:
    case OperandKind::List:
    case OperandKind::Pair:
      for (uint32_t k = 0; k < operand.part_count; ++k)
        visit_operand(function, function.operands[operand.first_part + k], written, read, write);
      break;
    default:
      break;
  }
}

template <class Read, class Write>
void visit_accesses(const Function& function, const Instruction& instruction, Writes writes, Read read,
                    Write write) {
  if (instruction.guard >= 0) read(static_cast<uint32_t>(instruction.guard));
  const Operand* const operands = function.operands.data() + instruction.first_operand;
  uint32_t written = 0;  // number of operands, from the first
  switch (writes) {
    case Writes::First:
    case Writes::FirstUpdated:
      written = std::min<uint32_t>(1, instruction.operand_count);
      break;
    case Writes::Nothing:
      break;
    case Writes::CallResults:
      written = instruction.operand_count > 1 && operands[0].kind == OperandKind::List;
      break;
    case Writes::BeforeAddress:
      while (written < instruction.operand_count && operands[written].kind != OperandKind::Address) ++written;
      break;
  }
  // All reads precede the writes.
  const auto ignore = [](uint32_t) {};
  for (uint32_t k = 0; k < instruction.operand_count; ++k)
    visit_operand(function, operands[k], k < written && writes != Writes::FirstUpdated, read, ignore);
  for (uint32_t k = 0; k < written; ++k) visit_operand(function, operands[k], true, ignore, write);
}

/// Number of 32-bit registers for a virtual register.
uint32_t width_of(const RegisterDeclaration& declaration) {
  return std::max<uint32_t>(1, bytes(declaration.type) / 4);
}

/// A range of the program, in program order. An instruction has two points: 2i, where it reads, and 2i+1,
/// where it writes. Both ends are included.
struct Segment {
  uint32_t first = 0, last = 0;
};

/// Where a virtual register must keep its place: segments in order, with gaps between them.
struct Lifetime {
  uint32_t reg = 0;
  uint32_t first = 0;                            ///< point
  std::pair<uint32_t, uint32_t> segments{0, 0};  ///< in the list of all segments
};

/// Computes lifetimes, one virtual register after another: from each block that reads it before writing it,
/// back over the predecessors to those that write it (Boissinot et al., "Computing Liveness Sets for SSA-Form
/// Programs", 2011, by variable). Needs no sets; time is proportional to the number of blocks where the
/// register is live.
class Liveness {
 public:
  Liveness(const Function& function, const Module& module, const ControlFlow& flow)
      : function_(function),
        flow_(flow),
        seen_in_(flow.blocks.size(), none),
        seen_out_(flow.blocks.size(), none),
        kills_(flow.blocks.size(), none),
        accessed_(flow.blocks.size(), none),
        live_blocks_(flow.blocks.size() / 64 + 1, 0),
        live_(2 * function.instructions.size() + 1, 0) {
    interface_registers_ = interface_registers(function);
    collect_accesses(module);
    collect_predecessors();
  }

  /// Lifetimes of the registers that are named at all.
  std::vector<Lifetime> lifetimes() {
    std::vector<Lifetime> all;
    for (uint32_t r = 0; r < function_.registers.size(); ++r)
      if (first_access_[r] != first_access_[r + 1]) all.push_back(lifetime(r));
    return all;
  }
  std::span<const Segment> segments(const Lifetime& lifetime) const {
    return std::span(segments_).subspan(lifetime.segments.first,
                                        lifetime.segments.second - lifetime.segments.first);
  }

  uint32_t max_live() const {
    int64_t live = 0, most = 0;
    for (const int64_t change : live_) most = std::max(most, live += change);
    return static_cast<uint32_t>(most);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  enum : uint32_t { read = 1, write = 2, kill = 4 };  ///< a kill is an unguarded write
  struct Use {
    uint32_t instruction;
    uint32_t what;
  };

  template <class Add>
  void visit_all(const Module& module, Add add) const {
    for (uint32_t i = 0; i < function_.instructions.size(); ++i) {
      const Instruction& instruction = function_.instructions[i];
      const uint32_t writes = instruction.guard < 0 ? write | kill : write;
      visit_accesses(
          function_, instruction, module.mnemonics[instruction.mnemonic].facts().writes,
          [&](uint32_t r) { add(r, Use{i, read}); }, [&](uint32_t r) { add(r, Use{i, writes}); });
    }
  }

  /// Sorted by register, then in program order.
  void collect_accesses(const Module& module) {
    first_access_.assign(function_.registers.size() + 2, 0);
    visit_all(module, [&](uint32_t r, Use) { ++first_access_[r + 2]; });
    for (size_t r = 2; r < first_access_.size(); ++r) first_access_[r] += first_access_[r - 1];
    accesses_.resize(first_access_.back());
    visit_all(module, [&](uint32_t r, Use use) { accesses_[first_access_[r + 1]++] = use; });
  }

  void collect_predecessors() {
    const auto count = static_cast<uint32_t>(flow_.blocks.size());
    first_predecessor_.assign(count + 2, 0);
    for (const auto& block : flow_.blocks)
      for (const uint32_t s : block.successors) ++first_predecessor_[s + 2];
    for (uint32_t b = 2; b < count + 2; ++b) first_predecessor_[b] += first_predecessor_[b - 1];
    predecessors_.resize(first_predecessor_.back());
    for (uint32_t b = 0; b < count; ++b)
      for (const uint32_t s : flow_.blocks[b].successors) predecessors_[first_predecessor_[s + 1]++] = b;
  }

  /// Marks the blocks at whose start or end `r` is live.
  void find_live_blocks(uint32_t r) {
    live_in_.clear();
    const auto enter = [&](uint32_t b) {
      if (seen_in_[b] == r) return;
      seen_in_[b] = r;
      live_in_.push_back(b);
      live_blocks_[b / 64] |= uint64_t{1} << b % 64;
    };
    for (size_t k = first_access_[r]; k < first_access_[r + 1]; ++k) {
      const auto [i, what] = accesses_[k];
      const uint32_t b = flow_.block_of[i];
      accessed_[b] = r;
      if (what & read && kills_[b] != r) enter(b);
      if (what & kill) kills_[b] = r;
    }
    for (size_t k = 0; k < live_in_.size(); ++k) {
      const uint32_t b = live_in_[k];
      for (uint32_t p = first_predecessor_[b]; p < first_predecessor_[b + 1]; ++p) {
        const uint32_t before = predecessors_[p];
        seen_out_[before] = r;
        if (kills_[before] != r) enter(before);
      }
    }
  }

  /// Visits, in order, the blocks at whose start the register is live, then discards them.
  template <class Visit>
  void for_each_live_block(Visit visit) {
    if (live_in_.empty()) return;
    const auto [low, high] = std::minmax_element(live_in_.begin(), live_in_.end());
    for (uint32_t word = *low / 64; word <= *high / 64; ++word)
      for (uint64_t bits = std::exchange(live_blocks_[word], 0); bits != 0; bits &= bits - 1)
        visit(word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
  }

  uint32_t begin_of(uint32_t block) const { return 2 * flow_.blocks[block].first; }
  uint32_t end_of(uint32_t block) const { return 2 * flow_.blocks[block].last - 1; }

  Lifetime lifetime(uint32_t r) {
    find_live_blocks(r);
    const RegisterDeclaration& declaration = function_.registers[r];
    const uint32_t width = declaration.type == Type::Pred ? 0 : width_of(declaration);
    const auto live = [&](std::vector<Segment>& segments, uint32_t from, uint32_t to) {
      // Wide operands are written piecewise, so the places an instruction writes must differ from those it
      // reads.
      segments.push_back({from & ~1u, to});
      live_[from] += width;
      live_[to + 1] -= width;
    };
    through_.clear();
    for_each_live_block([&](uint32_t b) {
      if (accessed_[b] != r) live(through_, begin_of(b), end_of(b));
    });
    found_.clear();
    for (size_t k = first_access_[r + 1]; k > first_access_[r];) {
      const uint32_t b = flow_.block_of[accesses_[k - 1].instruction];
      // Backwards through the block: `until` is the last point at which the current value is live.
      uint32_t until = seen_out_[b] == r ? end_of(b) : none;
      for (; k > first_access_[r] && flow_.block_of[accesses_[k - 1].instruction] == b; --k) {
        const auto [i, what] = accesses_[k - 1];
        // A register that appears twice among the results counts once.
        if (what & write && k - 1 > first_access_[r] && accesses_[k - 2].instruction == i &&
            accesses_[k - 2].what & write)
          continue;
        if (what & read) {
          if (until == none) until = 2 * i;
        } else if (until == none) {
          live(found_, 2 * i + 1, 2 * i + 1);  // a dead write
        } else if (what & kill) {
          live(found_, 2 * i + 1, until);
          until = none;
        }
      }
      if (until != none) live(found_, begin_of(b), until);
    }
    std::reverse(found_.begin(), found_.end());
    // Parameters and results in registers belong to the caller as well.
    if (r < interface_registers_)
      found_.insert(found_.begin(), {0, end_of(static_cast<uint32_t>(flow_.blocks.size() - 1))});
    return {r, std::min(first_of(found_), first_of(through_)), append_segments()};
  }

  static uint32_t first_of(const std::vector<Segment>& segments) {
    return segments.empty() ? none : segments.front().first;
  }

  /// Merges the segments found with those of blocks in which the register is live but not named.
  std::pair<uint32_t, uint32_t> append_segments() {
    const auto begin = static_cast<uint32_t>(segments_.size());
    for (size_t f = 0, t = 0; f < found_.size() || t < through_.size();) {
      const bool from_found =
          t == through_.size() || (f < found_.size() && found_[f].first < through_[t].first);
      const Segment next = from_found ? found_[f++] : through_[t++];
      if (segments_.size() > begin && next.first <= segments_.back().last + 1)
        segments_.back().last = std::max(segments_.back().last, next.last);
      else
        segments_.push_back(next);
    }
    return {begin, static_cast<uint32_t>(segments_.size())};
  }

  const Function& function_;
  const ControlFlow& flow_;
  uint32_t interface_registers_ = 0;  ///< parameters and results in registers: declared first
  std::vector<size_t> first_access_;  ///< by register, into accesses_
  std::vector<Use> accesses_;
  std::vector<uint32_t> first_predecessor_, predecessors_;
  std::vector<uint32_t> live_in_;  ///< blocks at whose start the current register is live
  /// By block: the last register found to be live at its start or end, written in it without a guard, or
  /// accessed in it.
  std::vector<uint32_t> seen_in_, seen_out_, kills_, accessed_;
  std::vector<uint64_t> live_blocks_;  ///< those in live_in_, one bit each
  std::vector<Segment> segments_;      ///< of all registers
  /// Of the current register: in blocks that name it, and in those that do not.
  std::vector<Segment> found_, through_;
  std::vector<int64_t> live_;  ///< for each point: change in the number of live registers
};

/// Virtual registers that must be consecutive, because an instruction names them as a vector. A register is
/// in at most one row: that of the first vector that names it.
class Rows {
 public:
  Rows(const Function& function, const Module& module)
      : function_(function), row_of_(function.registers.size(), none) {
    for (const Instruction& instruction : function.instructions) {
      if (module.mnemonics[instruction.mnemonic].facts().vectors == Vectors::Apart) continue;
      for (uint32_t k = 0; k < instruction.operand_count; ++k)
        add(function.operands[instruction.first_operand + k]);
    }
  }

  /// The row that contains a register; empty if there is none.
  std::span<const uint32_t> of(uint32_t reg) const {
    return row_of_[reg] == none ? std::span<const uint32_t>() : rows_[row_of_[reg]];
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  /// Makes a vector a row if none of its registers is in one yet.
  void add(const Operand& vector) {
    if (vector.kind != OperandKind::Vector || vector.part_count < 2) return;
    const std::span parts(function_.operands.data() + vector.first_part, vector.part_count);
    const auto may_join = [&](const Operand& part) {
      return part.kind == OperandKind::Register && !part.component && row_of_[part.index] == none &&
             function_.registers[part.index].type != Type::Pred &&
             bytes(function_.registers[part.index].type) == bytes(function_.registers[parts[0].index].type);
    };
    if (!std::all_of(parts.begin(), parts.end(), may_join)) return;
    std::vector<uint32_t> row;
    for (const Operand& part : parts) row.push_back(part.index);
    std::vector<uint32_t> sorted = row;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return;
    for (const uint32_t r : row) row_of_[r] = static_cast<uint32_t>(rows_.size());
    rows_.push_back(std::move(row));
  }

  const Function& function_;
  std::vector<std::vector<uint32_t>> rows_;
  std::vector<uint32_t> row_of_;
};

/// Finds places for values of one or more registers: the lowest that is free and aligned. Must be called in
/// the order in which lifetimes begin.
class Places {
 public:
  /// For consecutive values of `width` registers each.
  uint32_t take(std::span<const std::span<const Segment>> lifetimes, uint32_t width) {
    const auto total = static_cast<uint32_t>(lifetimes.size()) * width;
    const uint32_t alignment = std::min(std::bit_ceil(total), 4u);
    for (uint32_t place = 0;; place += alignment) {
      if (place + total > taken_.size()) {
        taken_.resize(place + total);
        busy_until_.resize(place + total, 0);
      }
      uint32_t k = 0;
      while (k < total && is_free(place + k, lifetimes[k / width])) ++k;
      if (k < total) continue;
      for (k = 0; k < total; ++k) occupy(taken_[place + k], lifetimes[k / width]);
      count_ = std::max(count_, place + total);
      return place;
    }
  }
  uint32_t count() const { return count_; }

 private:
  bool is_free(uint32_t place, std::span<const Segment> lifetime) {
    if (lifetime.front().first < busy_until_[place]) return false;
    const std::vector<Segment>& taken = taken_[place];
    if (taken.empty() || taken.back().last < lifetime.front().first) return true;
    for (const Segment& wanted : lifetime) {
      const auto next = std::lower_bound(taken.begin(), taken.end(), wanted.first,
                                         [](const Segment& s, uint32_t point) { return s.last < point; });
      if (next == taken.end()) return true;
      if (next->first > wanted.last) continue;
      if (next->first <= lifetime.front().first) busy_until_[place] = next->last + 1;
      return false;
    }
    return true;
  }
  static void occupy(std::vector<Segment>& taken, std::span<const Segment> lifetime) {
    const auto middle = static_cast<ptrdiff_t>(taken.size());
    taken.insert(taken.end(), lifetime.begin(), lifetime.end());
    std::inplace_merge(taken.begin(), taken.begin() + middle, taken.end(),
                       [](const Segment& a, const Segment& b) { return a.first < b.first; });
  }

  std::vector<std::vector<Segment>> taken_;  ///< by place, in order
  /// By place: the end of the segment that was in the way at the start of the last lifetime refused; no
  /// lifetime that begins before it can have the place.
  std::vector<uint32_t> busy_until_;
  uint32_t count_ = 0;
};

}  // namespace

Access access(const Function& function, const Module& module, uint32_t instruction) {
  const Instruction& i = function.instructions[instruction];
  Access access;
  visit_accesses(
      function, i, module.mnemonics[i.mnemonic].facts().writes,
      [&](uint32_t r) { access.reads.push_back(r); }, [&](uint32_t r) { access.writes.push_back(r); });
  return access;
}

RegisterAllocation allocate_registers(const Function& function, const Module& module,
                                      const ControlFlow& flow) {
  RegisterAllocation allocation;
  allocation.place.assign(function.registers.size(), RegisterAllocation::unused);
  Liveness liveness(function, module, flow);
  std::vector<Lifetime> lifetimes = liveness.lifetimes();
  allocation.max_live = liveness.max_live();
  std::sort(lifetimes.begin(), lifetimes.end(), [](const Lifetime& a, const Lifetime& b) {
    return std::tie(a.first, a.reg) < std::tie(b.first, b.reg);
  });
  // Narrow and wide values have separate places: diverged lanes of a warp hold values of both kinds at once,
  // and a lane's part of a 64-bit place differs from its part of the same place used for 32-bit values.
  Places wide, narrow, predicates;
  const auto places_of = [&](const RegisterDeclaration& declaration) -> Places& {
    return declaration.type == Type::Pred ? predicates : bytes(declaration.type) >= 8 ? wide : narrow;
  };
  std::vector<const Lifetime*> lifetime_of(function.registers.size(), nullptr);
  for (const Lifetime& lifetime : lifetimes) lifetime_of[lifetime.reg] = &lifetime;
  const Rows rows(function, module);
  std::vector<std::span<const Segment>> together;
  for (const Lifetime& lifetime : lifetimes) {
    if (allocation.place[lifetime.reg] != RegisterAllocation::unused) continue;
    std::span<const uint32_t> registers = rows.of(lifetime.reg);
    if (registers.empty()) registers = std::span(&lifetime.reg, 1);
    together.clear();
    for (const uint32_t r : registers) together.push_back(liveness.segments(*lifetime_of[r]));
    const RegisterDeclaration& declaration = function.registers[lifetime.reg];
    const uint32_t width = width_of(declaration);
    uint32_t place = places_of(declaration).take(together, width);
    for (const uint32_t r : registers) {
      allocation.place[r] = place;
      place += width;
    }
  }
  const uint32_t first_narrow = (wide.count() + 3) / 4 * 4;
  for (const Lifetime& lifetime : lifetimes)
    if (&places_of(function.registers[lifetime.reg]) == &narrow)
      allocation.place[lifetime.reg] += first_narrow;
  allocation.registers = narrow.count() ? first_narrow + narrow.count() : wide.count();
  allocation.predicates = predicates.count();
  return allocation;
}

}  // namespace simt::ptx
