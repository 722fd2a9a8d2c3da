#include "ptx/schedule.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/control_flow.hpp"
#include "ptx/register_allocation.hpp"

namespace simt::ptx {
namespace {

using std::string_view;

constexpr uint32_t window = 24;           // how many instructions one may move ahead of
constexpr uint32_t longest_range = 1024;  // limits the number of memory dependences
constexpr uint32_t carry = UINT32_MAX;    // represents the carry flag

using instructions::Algebra;
using instructions::Carry;
using instructions::Latency;
using instructions::Memory;
using instructions::Motion;
using instructions::Space;

/// What an instruction does to memory, as far as ordering is concerned.
enum class Effect : uint8_t { None, Load, Store, Fence };
enum class Region : uint8_t { Any, Global, Shared, Local, Param };

/// Latencies are in cycles and approximate: only their order matters.
struct Traits {
  Effect effect = Effect::None;
  Region region = Region::Any;
  uint32_t latency = 4;
  bool uses_carry = false;
};

Region region_of(const Mnemonic& m) {
  if (m.facts().space == Space::Shared) return Region::Shared;
  for (const string_view x : m.modifiers) {
    if (x == "global") return Region::Global;
    if (x.starts_with("shared")) return Region::Shared;
    if (x == "local") return Region::Local;
    if (x.starts_with("param")) return Region::Param;
  }
  return Region::Any;
}

uint32_t latency_of(Latency latency) {
  switch (latency) {
    case Latency::Alu:
      return 4;
    case Latency::SpecialFunction:
      return 18;
    case Latency::Matrix:
      return 33;
    case Latency::Division:
      return 40;
  }
  return 0;
}

/// Whether an instruction copies a clock register.
bool reads_clock(const Function& function, const Mnemonic& m, const Instruction& instruction) {
  if (m.facts().algebra != Algebra::Copy || instruction.operand_count < 2) return false;
  const Operand& source = function.operands[instruction.first_operand + 1];
  return source.kind == OperandKind::Special &&
         (source.text.starts_with("clock") || source.text.starts_with("globaltimer"));
}

Traits traits(const Function& function, const Module& module, const Instruction& instruction) {
  const Mnemonic& m = module.mnemonics[instruction.mnemonic];
  const instructions::Facts& facts = m.facts();
  Traits t;
  t.latency = latency_of(facts.latency);
  t.uses_carry = facts.carry == Carry::Always || (facts.carry == Carry::IfNamed && m.has("cc"));
  const bool strong = m.has("volatile") || m.has("relaxed") || m.has("mmio");
  if (facts.motion == Motion::Fixed || reads_clock(function, m, instruction)) {
    t.effect = Effect::Fence;
  } else if (facts.memory == Memory::Store) {
    t.effect = strong || m.has("release") ? Effect::Fence : Effect::Store;
    t.region = region_of(m);
  } else if (facts.memory == Memory::Load) {
    t.region = region_of(m);
    const bool kernel_parameter = t.region == Region::Param && function.entry;
    const bool read_only = m.has("nc") || m.has("const") || kernel_parameter || facts.space == Space::Texture;
    t.effect = strong || m.has("acquire") ? Effect::Fence : read_only ? Effect::None : Effect::Load;
    t.latency = kernel_parameter ? 1 : t.region == Region::Shared ? 25 : 40;
  }
  return t;
}

bool conflict(Region a, Region b) {
  return a == Region::Any || b == Region::Any || a == b;
}

/// An instruction, among those of a range.
struct Node {
  std::vector<std::pair<uint32_t, uint32_t>>
      after;  // the instructions that need it, and how many cycles later
  uint32_t waits_for = 0;
  uint32_t path = 0;  // cycles from it to the end of the longest chain that needs it
  uint32_t ready = 0;
  bool done = false;
};

/// What must stay before what of the instructions [first, last), none of which is a fence.
std::vector<Node> dependences(const std::vector<Access>& accesses, const std::vector<Traits>& all,
                              uint32_t first, uint32_t last) {
  const uint32_t n = last - first;
  std::vector<Node> nodes(n);
  std::unordered_map<uint32_t, uint32_t> writer;
  std::unordered_map<uint32_t, std::vector<uint32_t>> readers;
  std::vector<uint32_t> loads, stores;
  const auto edge = [&](uint32_t from, uint32_t to, uint32_t cycles) {
    nodes[from].after.emplace_back(to, cycles);
    ++nodes[to].waits_for;
  };
  for (uint32_t i = 0; i < n; ++i) {
    const Access& access = accesses[first + i];
    const Traits& t = all[first + i];
    auto reads = access.reads, writes = access.writes;
    if (t.uses_carry) {
      reads.push_back(carry);
      writes.push_back(carry);
    }
    for (const uint32_t r : reads) {
      if (const auto w = writer.find(r); w != writer.end())
        edge(w->second, i, all[first + w->second].latency);
      readers[r].push_back(i);
    }
    for (const uint32_t r : writes) {
      if (const auto w = writer.find(r); w != writer.end()) edge(w->second, i, 1);
      for (const uint32_t reader : readers[r])
        if (reader != i) edge(reader, i, 1);
      readers[r].clear();
      writer[r] = i;
    }
    if (t.effect == Effect::Load || t.effect == Effect::Store) {
      for (const uint32_t s : stores)
        if (conflict(all[first + s].region, t.region)) edge(s, i, 1);
      if (t.effect == Effect::Store)
        for (const uint32_t l : loads)
          if (conflict(all[first + l].region, t.region)) edge(l, i, 1);
      (t.effect == Effect::Load ? loads : stores).push_back(i);
    }
  }
  return nodes;
}

void set_paths(std::vector<Node>& nodes, const std::vector<Traits>& all, uint32_t first) {
  for (auto i = static_cast<uint32_t>(nodes.size()); i-- > 0;) {
    nodes[i].path = all[first + i].latency;
    for (const auto& [to, cycles] : nodes[i].after)
      nodes[i].path = std::max(nodes[i].path, cycles + nodes[to].path);
  }
}

/// Orders instructions [first, last), none of which is a fence.
void schedule_range(std::vector<Instruction>& instructions, const std::vector<Access>& accesses,
                    const std::vector<Traits>& all, uint32_t first, uint32_t last) {
  const uint32_t n = last - first;
  if (n < 3) return;
  std::vector<Node> nodes = dependences(accesses, all, first, last);
  set_paths(nodes, all, first);
  std::vector<Instruction> order;
  order.reserve(n);
  uint32_t head = 0, now = 0;
  while (order.size() < n) {
    while (nodes[head].done) ++head;
    // Among the next candidates, prefer one that need not wait; among those, the one with the longest path
    // after it.
    uint32_t best = head;
    const auto better = [&](uint32_t a, uint32_t b) {
      const uint32_t wait_a = std::max(nodes[a].ready, now), wait_b = std::max(nodes[b].ready, now);
      return wait_a != wait_b ? wait_a < wait_b : nodes[a].path > nodes[b].path;
    };
    for (uint32_t i = head, end = std::min(n, head + window); i < end; ++i)
      if (!nodes[i].done && nodes[i].waits_for == 0 && better(i, best)) best = i;
    Node& chosen = nodes[best];
    now = std::max(now, chosen.ready) + 1;
    chosen.done = true;
    for (const auto& [to, cycles] : chosen.after) {
      --nodes[to].waits_for;
      nodes[to].ready = std::max(nodes[to].ready, now - 1 + cycles);
    }
    order.push_back(instructions[first + best]);
  }
  std::copy(order.begin(), order.end(), instructions.begin() + first);
}

}  // namespace

void schedule(Function& function, const Module& module) {
  if (!function.defined) return;
  const ControlFlow flow = control_flow(function, module);
  std::vector<Access> accesses;
  std::vector<Traits> all;
  for (uint32_t i = 0; i < function.instructions.size(); ++i) {
    accesses.push_back(access(function, module, i));
    all.push_back(traits(function, module, function.instructions[i]));
  }
  for (const ControlFlow::Block& block : flow.blocks) {
    uint32_t begin = block.first;
    for (uint32_t i = block.first; i <= block.last; ++i) {
      const bool fence = i == block.last || all[i].effect == Effect::Fence;
      if (!fence && i - begin < longest_range) continue;
      schedule_range(function.instructions, accesses, all, begin, i);
      begin = fence ? i + 1 : i;
    }
  }
}

}  // namespace simt::ptx
