#include "ptx/control_flow.hpp"

#include <algorithm>
#include <utility>

namespace simt::ptx {

namespace {

using instructions::Control;

bool ends_block(Control control) {
  return control != Control::Next && control != Control::Call;
}

/// Visits the instructions to which `instruction` may branch.
template <class Visit>
void for_each_target(const Function& function, const Instruction& instruction, Visit visit) {
  for (uint32_t k = 0; k < instruction.operand_count; ++k) {
    const Operand& operand = function.operands[instruction.first_operand + k];
    if (operand.kind == OperandKind::Label)
      visit(function.labels[operand.index].target);
    else if (operand.kind == OperandKind::Symbol && operand.local && operand.component == 1)
      for (const uint32_t label : function.targets[operand.index].labels)
        visit(function.labels[label].target);
  }
}

/// Immediate post-dominators, by the algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance
/// Algorithm", 2001) on the reverse graph, from a virtual block after every return.
///
/// Blocks that cannot reach a return do not count as paths for the others, because their lanes never return.
/// Those that can reach a trap form a separate tree; then those in infinite loops, one tree for each set of
/// blocks that is never left, rooted at its last block.
class PostDominators {
 public:
  explicit PostDominators(std::vector<ControlFlow::Block>& blocks)
      : blocks_(blocks),
        end_(static_cast<uint32_t>(blocks.size())),
        tree_(blocks.size() + 1, none),
        number_(blocks.size() + 1, none),
        parent_(blocks.size() + 1, none),
        root_(blocks.size(), false),
        first_predecessor_(blocks.size() + 2, 0) {
    for (const auto& block : blocks_)
      for (const uint32_t s : block.successors) ++first_predecessor_[s + 2];
    for (uint32_t b = 2; b < end_ + 2; ++b) first_predecessor_[b] += first_predecessor_[b - 1];
    predecessors_.resize(first_predecessor_[end_ + 1]);
    for (uint32_t b = 0; b < end_; ++b)
      for (const uint32_t s : blocks_[b].successors) predecessors_[first_predecessor_[s + 1]++] = b;
  }

  void compute(const std::vector<uint32_t>& returns, const std::vector<uint32_t>& traps) {
    grow_tree(returns);
    grow_tree(traps);
    // A depth-first search on the reverse graph finishes last in a set of blocks that is never left
    // (Kosaraju's algorithm for strongly connected components), and starts in that set at its last block.
    std::vector<uint32_t> order;
    std::vector<bool> seen(end_, false);
    for (uint32_t b = end_; b-- > 0;)
      if (tree_[b] == none && !seen[b])
        walk(
            b, order, [&](uint32_t p) { return tree_[p] == none && !seen[p]; },
            [&](uint32_t p) { seen[p] = true; });
    for (size_t k = order.size(); k-- > 0;)
      if (tree_[order[k]] == none) grow_tree({order[k]});
    for (uint32_t b = 0; b < end_; ++b)
      blocks_[b].post_dominator = parent_[b] == end_ ? ControlFlow::none : parent_[b];
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  /// Depth-first over predecessors from `start`, appending to `order` as it leaves them.
  template <class Wanted, class Mark>
  void walk(uint32_t start, std::vector<uint32_t>& order, Wanted wanted, Mark mark) {
    mark(start);
    stack_.assign(1, {start, first_of(start)});
    while (!stack_.empty()) {
      auto& [block, next] = stack_.back();
      if (next == first_of(block + 1)) {
        order.push_back(block);
        stack_.pop_back();
        continue;
      }
      const uint32_t p = predecessors_[next++];
      if (!wanted(p)) continue;
      mark(p);
      stack_.emplace_back(p, first_of(p));
    }
  }
  uint32_t first_of(uint32_t block) const { return first_predecessor_[block]; }

  /// Computes post-dominators of all blocks not yet in a tree that reach one of `roots`.
  void grow_tree(const std::vector<uint32_t>& roots) {
    const uint32_t tree = trees_++;
    std::vector<uint32_t> order;
    for (const uint32_t r : roots) root_[r] = true;
    for (const uint32_t r : roots)
      if (tree_[r] == none)
        walk(r, order, [&](uint32_t p) { return tree_[p] == none; }, [&](uint32_t p) { tree_[p] = tree; });
    for (uint32_t k = 0; k < order.size(); ++k) number_[order[k]] = k;
    number_[end_] = static_cast<uint32_t>(order.size());
    parent_[end_] = end_;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t k = order.size(); k-- > 0;) {
        const uint32_t block = order[k];
        uint32_t parent = root_[block] ? end_ : none;
        for (const uint32_t s : blocks_[block].successors)
          if (tree_[s] == tree && parent_[s] != none) parent = parent == none ? s : meet(parent, s);
        changed |= parent != parent_[block];
        parent_[block] = parent;
      }
    }
  }
  uint32_t meet(uint32_t a, uint32_t b) const {
    while (a != b) {
      while (number_[a] < number_[b]) a = parent_[a];
      while (number_[b] < number_[a]) b = parent_[b];
    }
    return a;
  }

  std::vector<ControlFlow::Block>& blocks_;
  const uint32_t end_;  ///< the virtual block after the roots
  uint32_t trees_ = 0;
  std::vector<uint32_t> tree_;
  std::vector<uint32_t> number_;  ///< the order in which the search left the blocks of a tree
  std::vector<uint32_t> parent_;
  std::vector<bool> root_;
  std::vector<uint32_t> predecessors_;
  std::vector<uint32_t> first_predecessor_;
  std::vector<std::pair<uint32_t, uint32_t>> stack_;  ///< block, its next predecessor
};

}  // namespace

ControlFlow control_flow(const Function& function, const Module& module) {
  ControlFlow flow;
  const auto count = static_cast<uint32_t>(function.instructions.size());
  if (count == 0) return flow;
  const auto control_of = [&](const Instruction& i) -> Control {
    return module.mnemonics[i.mnemonic].facts().control;
  };
  std::vector<bool> leader(count + 1, false);
  leader[0] = true;
  for (uint32_t i = 0; i < count; ++i) {
    const Instruction& instruction = function.instructions[i];
    if (!ends_block(control_of(instruction))) continue;
    leader[i + 1] = true;
    for_each_target(function, instruction, [&](uint32_t target) { leader[target] = true; });
  }
  flow.block_of.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (leader[i]) {
      flow.blocks.emplace_back();
      flow.blocks.back().first = i;
    }
    flow.blocks.back().last = i + 1;
    flow.block_of[i] = static_cast<uint32_t>(flow.blocks.size() - 1);
  }
  std::vector<uint32_t> returns, traps;
  for (uint32_t b = 0; b < flow.blocks.size(); ++b) {
    ControlFlow::Block& block = flow.blocks[b];
    const Instruction& last = function.instructions[block.last - 1];
    const Control control = control_of(last);
    bool returning = (control == Control::Return || control == Control::Exit) && last.guard < 0;
    const auto go_to = [&](uint32_t instruction) {
      if (instruction == count)
        returning = true;  // the function ends after the last instruction
      else
        block.successors.push_back(flow.block_of[instruction]);
    };
    if (control == Control::Branch || control == Control::IndirectBranch)
      for_each_target(function, last, go_to);
    if (!ends_block(control) || last.guard >= 0) go_to(block.last);
    // Removes duplicates.
    std::vector<uint32_t>& all = block.successors;
    if (all.size() == 2 && all[0] == all[1]) all.pop_back();
    if (all.size() > 2) {
      std::vector<uint32_t> sorted(all);
      std::sort(sorted.begin(), sorted.end());
      sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
      all = std::move(sorted);
    }
    if (returning) returns.push_back(b);
    if (control == Control::Trap && last.guard < 0) traps.push_back(b);
  }
  PostDominators(flow.blocks).compute(returns, traps);
  return flow;
}

}  // namespace simt::ptx
