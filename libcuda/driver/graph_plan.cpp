#include "graph_plan.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

namespace simt::driver {
namespace {

using Places = std::vector<size_t>;

void add_all(Places& places, const Places& more) {
  for (const size_t place : more)
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
}

/// The nodes in topological order, otherwise in order of creation.
std::vector<Node*> ordered(const Graph& graph, Node*& wrong) {
  std::unordered_map<const Node*, size_t> place, open;
  std::set<size_t> ready;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    place[graph.nodes[k]] = k;
    open[graph.nodes[k]] = graph.nodes[k]->dependencies.size();
    if (graph.nodes[k]->dependencies.empty()) ready.insert(k);
  }
  std::vector<Node*> order;
  while (!ready.empty()) {
    Node* node = graph.nodes[*ready.begin()];
    ready.erase(ready.begin());
    order.push_back(node);
    for (const Dependency& d : node->dependents)
      if (--open[d.node] == 0) ready.insert(place[d.node]);
  }
  if (order.size() < graph.nodes.size())
    wrong = *std::ranges::find_if(graph.nodes, [&](const Node* node) { return open[node] > 0; });
  return order;
}

/// Appends a graph's nodes, with child graphs expanded. Returns the steps that must end for the graph to end.
Places flatten(const Graph& graph, const Places& before, std::vector<Step>& steps, Node*& wrong) {
  std::unordered_map<const Node*, Places> ends;
  Places last;
  for (Node* node : ordered(graph, wrong)) {
    Places after;
    for (const Dependency& d : node->dependencies) add_all(after, ends[d.node]);
    if (node->dependencies.empty()) after = before;
    Places& end = ends[node];
    if (const auto* child = std::get_if<ChildTask>(&node->task)) {
      end = flatten(*child->graph, after, steps, wrong);
      if (child->graph->nodes.empty()) end = after;
    } else {
      for (const size_t place : after) steps[place].last = false;
      end = {steps.size()};
      steps.emplace_back().node = node;
      steps.back().after = std::move(after);
    }
    if (node->dependents.empty()) add_all(last, end);
  }
  return last;
}

/// For each step, the steps that precede it, as rows of bits.
class Ancestors {
 public:
  explicit Ancestors(const std::vector<Step>& steps) : words_((steps.size() + 63) / 64) {
    for (const Step& step : steps) {
      auto& row = rows_.emplace_back(words_);
      for (const size_t place : step.after) {
        row[place / 64] |= uint64_t{1} << place % 64;
        for (size_t w = 0; w < words_; ++w) row[w] |= rows_[place][w];
      }
    }
  }
  bool before(size_t first, size_t second) const { return rows_[second][first / 64] >> first % 64 & 1; }

 private:
  size_t words_;
  std::vector<std::vector<uint64_t>> rows_;
};

}  // namespace

Plan plan_of(const Graph& graph, Node*& wrong) {
  Plan plan;
  wrong = nullptr;
  flatten(graph, {}, plan.steps, wrong);
  if (wrong) return plan;
  const Ancestors ancestors(plan.steps);
  std::vector<size_t> last;  // step of each lane
  for (size_t k = 0; k < plan.steps.size(); ++k) {
    Step& step = plan.steps[k];
    std::optional<size_t> lane;
    for (const size_t place : step.after)
      if (const size_t theirs = plan.steps[place].lane; !lane && last[theirs] == place) lane = theirs;
    for (size_t other = 0; other < last.size() && !lane; ++other)
      if (ancestors.before(last[other], k)) lane = other;
    step.lane = lane.value_or(last.size());
    if (step.lane == last.size()) last.emplace_back();
    last[step.lane] = k;
    for (const size_t place : step.after) {
      const bool implied =
          std::ranges::any_of(step.after, [&](size_t other) { return ancestors.before(place, other); });
      if (implied || plan.steps[place].lane == step.lane) continue;
      step.waits.push_back(place);
      plan.steps[place].awaited = true;
    }
  }
  plan.lanes = std::max<size_t>(1, last.size());
  return plan;
}

}  // namespace simt::driver
