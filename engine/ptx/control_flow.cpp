#include "ptx/control_flow.hpp"
namespace simt::ptx {
ControlFlow control_flow(const Function& f, const Module& m) {
  ControlFlow c;
  const size_t n = f.instructions.size();
  std::vector<char> leader(n + 1, 0);
  leader[0] = 1;
  for (auto& l : f.labels) leader[l.target] = 1;
  auto op = [&](size_t i) { return m.mnemonics[f.instructions[i].mnemonic].opcode; };
  for (size_t i = 0; i < n; ++i)
    if (op(i) == "bra" || op(i) == "ret" || op(i) == "exit") leader[i + 1] = 1;
  c.block_of.resize(n);
  for (size_t i = 0; i < n; ++i) {
    if (leader[i]) {
      c.blocks.push_back({});
      c.blocks.back().first = (uint32_t)i;
    }
    c.block_of[i] = (uint32_t)c.blocks.size() - 1;
    c.blocks.back().last = (uint32_t)i + 1;
  }
  for (auto& b : c.blocks) {
    size_t i = b.last - 1;
    bool g = f.instructions[i].guard >= 0;
    auto o = op(i);
    if (o == "bra") {
      uint32_t t = f.labels[f.operands[f.instructions[i].first_operand].index].target;
      if (t < n) b.successors.push_back(c.block_of[t]);
    }
    if (!((o == "bra" || o == "ret" || o == "exit") && !g) && b.last < n)
      b.successors.push_back(c.block_of[b.last]);
  }
  const size_t B = c.blocks.size();
  std::vector<std::vector<char>> pd(B, std::vector<char>(B, 1));
  for (bool ch = true; ch;) {
    ch = false;
    for (size_t b = B; b-- > 0;) {
      std::vector<char> s(B, c.blocks[b].successors.empty() ? 0 : 1);
      for (auto x : c.blocks[b].successors)
        for (size_t k = 0; k < B; ++k) s[k] &= pd[x][k];
      s[b] = 1;
      if (s != pd[b]) {
        pd[b] = s;
        ch = true;
      }
    }
  }
  for (size_t b = 0; b < B; ++b) {
    for (size_t k = 0; k < B; ++k)
      if (k != b && pd[b][k]) {
        bool im = true;
        for (size_t j = 0; j < B; ++j)
          if (j != b && j != k && pd[b][j] && pd[j][k] && !pd[k][j]) im = false;
        if (im) c.blocks[b].post_dominator = (uint32_t)k;
      }
    if (c.blocks[b].post_dominator != c.none) {
    }
  }
  return c;
}
}  // namespace simt::ptx
