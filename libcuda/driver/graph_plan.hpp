#pragma once
#include "graph.hpp"

namespace simt::driver {

/// A node of an executable graph or of one of its child graphs. Steps are in launch order.
struct Step {
  Node* node = nullptr;
  std::vector<size_t> after;  ///< steps that must precede it, by index
  size_t lane = 0;            ///< steps of a lane run in sequence; lane 0 is the stream of the launch
  std::vector<size_t> waits;  ///< steps in other lanes that it waits for
  bool awaited = false;       ///< by a step of another lane
  bool last = true;           ///< no step follows it
};

struct Plan {
  std::vector<Step> steps;
  size_t lanes = 1;
};

/// Orders the nodes of a graph and assigns them to lanes, so that independent ones can overlap. The result
/// depends only on the graph. wrong: a node in a cycle, or nullptr; if there is a cycle, the plan is
/// unusable.
Plan plan_of(const Graph& graph, Node*& wrong);

}  // namespace simt::driver
