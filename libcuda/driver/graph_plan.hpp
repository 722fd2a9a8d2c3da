#pragma once
#include "graph.hpp"

namespace simt::driver {

/// A node of an executable graph or of one of its child graphs, in an order in which all can be launched.
struct Step {
  Node* node = nullptr;
  std::vector<size_t> after;  ///< steps that come before it, by their places in the order
  size_t lane = 0;            ///< steps of one lane follow one another; lane 0 is the stream of the launch
  std::vector<size_t> waits;  ///< what it waits for of other lanes
  bool awaited = false;       ///< by a step of another lane
  bool last = true;           ///< no step comes after it
};

struct Plan {
  std::vector<Step> steps;
  size_t lanes = 1;
};

/// Puts the nodes of a graph in order and divides them among lanes, so that independent ones can overlap.
/// The result depends on the graph alone. wrong: a node of a cycle, or nullptr; with one, the plan is of no
/// use.
Plan plan_of(const Graph& graph, Node*& wrong);

}  // namespace simt::driver
