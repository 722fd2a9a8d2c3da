#include "graph.hpp"

#include <algorithm>
#include <set>

// Graphs: nodes and the dependencies between them.

namespace simt::driver {

CUgraphNodeType type_of(const Task& task) {
  const auto index = static_cast<int>(task.index());
  constexpr int before_semaphores = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  return static_cast<CUgraphNodeType>(
      index <= before_semaphores ? index : index - before_semaphores - 1 + CU_GRAPH_NODE_TYPE_MEM_ALLOC);
}

Node::Node(Graph& of, Task what)
    : Handle(tag), graph(&of), id(Process::get().next_id++), task(std::move(what)) {}

Graph::Graph() : Handle(tag), id(Process::get().next_id++) {}

Graph& graph_of(CUgraph handle) {
  return object_of<Graph>(handle, CUDA_ERROR_INVALID_VALUE);
}

Node& node_of(CUgraphNode handle) {
  return object_of<Node>(handle, CUDA_ERROR_INVALID_VALUE);
}

Graph& make_graph() {
  return all<Graph>().make();
}

void destroy_graph(Graph& graph) {
  for (Node* node : graph.nodes) {
    if (const auto* child = std::get_if<ChildTask>(&node->task)) destroy_graph(*child->graph);
    all<Node>().destroy(*node);
  }
  for (const auto& [object, count] : graph.objects) release(*object, count);
  all<Graph>().destroy(graph);
}

Graph& copy_graph(const Graph& graph) {
  Graph& copy = make_graph();
  for (const Node* node : graph.nodes) {
    Task task = node->task;
    if (auto* child = std::get_if<ChildTask>(&task)) child->graph = &copy_graph(*child->graph);
    Node& made = add_node(copy, {}, std::move(task));
    made.enabled = node->enabled;
    copy.copies[node->id] = &made;
  }
  for (const Node* node : graph.nodes)
    for (const Dependency& d : node->dependencies)
      connect({copy.copies.at(d.node->id), d.edge}, *copy.copies.at(node->id));
  copy.objects = graph.objects;
  for (const auto& [object, count] : copy.objects) object->references += count;
  return copy;
}

bool has_memory_nodes(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node* node) {
    const auto* child = std::get_if<ChildTask>(&node->task);
    return child ? has_memory_nodes(*child->graph)
                 : std::holds_alternative<AllocationTask>(node->task) ||
                       std::holds_alternative<FreeTask>(node->task);
  });
}

Node& add_node(Graph& graph, std::span<const Dependency> dependencies, Task task) {
  Node& node = all<Node>().make(graph, std::move(task));
  graph.nodes.push_back(&node);
  if (const auto* child = std::get_if<ChildTask>(&node.task)) child->graph->parent = &node;
  for (const Dependency& d : dependencies) connect(d, node);
  return node;
}

void connect(const Dependency& from, Node& to) {
  to.dependencies.push_back(from);
  from.node->dependents.push_back({&to, from.edge});
}

void check_edge(const Task& from, const Task& to, const CUgraphEdgeData& edge) {
  require(edge.to_port == 0 && edge.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
          edge.type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  require(std::ranges::all_of(edge.reserved, [](unsigned char byte) { return byte == 0; }));
  const bool kernel = std::holds_alternative<KernelTask>(from);
  require(edge.from_port == 0 || kernel);
  if (edge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
    require(edge.from_port != 0 && std::holds_alternative<KernelTask>(to));
  else
    require(edge.from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
}

std::vector<Dependency> dependencies_of(const Graph& graph, const CUgraphNode* given,
                                        const CUgraphEdgeData* edges, size_t count) {
  require(count == 0 || given != nullptr);
  std::vector<Dependency> dependencies;
  std::set<const Node*> seen;
  for (size_t k = 0; k < count; ++k) {
    Node& node = node_of(given[k]);
    require(node.graph == &graph && seen.insert(&node).second);
    dependencies.push_back({&node, edges ? edges[k] : CUgraphEdgeData{}});
  }
  return dependencies;
}

Node& copy_of_node(const Graph& clone, const Node& original) {
  if (const auto found = clone.copies.find(original.id); found != clone.copies.end()) return *found->second;
  for (const Node* node : clone.nodes) {
    const auto* child = std::get_if<ChildTask>(&node->task);
    if (!child) continue;
    try {
      return copy_of_node(*child->graph, original);
    } catch (const Failure&) {  // it may be in the next child graph
    }
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace simt::driver

using namespace simt::driver;

namespace {

/// Writes a list the way the API returns them: up to *count items, the rest nullptr; or only their number.
template <class List, class Put>
void put_list(const List& list, bool wanted, size_t* count, const Put& put, const auto& clear) {
  require(count != nullptr);
  if (wanted) {
    const size_t given = std::min(*count, list.size());
    for (size_t k = 0; k < given; ++k) put(k, list[k]);
    for (size_t k = given; k < *count; ++k) clear(k);
    *count = given;
  } else {
    *count = list.size();
  }
}

void put_nodes(const std::vector<Node*>& list, CUgraphNode* out, size_t* count) {
  put_list(
      list, out != nullptr, count, [&](size_t k, Node* node) { out[k] = handle_of<CUgraphNode>(node); },
      [&](size_t k) { out[k] = nullptr; });
}

void put_dependencies(const std::vector<Dependency>& list, CUgraphNode* out, CUgraphEdgeData* edges,
                      size_t* count) {
  require(out != nullptr || edges == nullptr);
  if (out && !edges) require(std::ranges::all_of(list, &Dependency::plain), CUDA_ERROR_LOSSY_QUERY);
  put_list(
      list, out != nullptr, count,
      [&](size_t k, const Dependency& d) {
        out[k] = handle_of<CUgraphNode>(d.node);
        if (edges) edges[k] = d.edge;
      },
      [&](size_t k) { out[k] = nullptr; });
}

bool same(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

bool depends(const Node& node, const Node& on) {
  return std::ranges::any_of(node.dependencies, [&](const Dependency& d) { return d.node == &on; });
}

void disconnect(Node& from, Node& to) {
  std::erase_if(to.dependencies, [&](const Dependency& d) { return d.node == &from; });
  std::erase_if(from.dependents, [&](const Dependency& d) { return d.node == &to; });
}

/// The edges given by arrays of the API. Throws Failure unless all are between two nodes of the graph.
std::vector<std::pair<Node*, Node*>> pairs_of(const Graph& graph, const CUgraphNode* from,
                                              const CUgraphNode* to, size_t count) {
  require(count == 0 || (from != nullptr && to != nullptr));
  std::vector<std::pair<Node*, Node*>> pairs;
  for (size_t k = 0; k < count; ++k) {
    Node &a = node_of(from[k]), &b = node_of(to[k]);
    require(a.graph == &graph && b.graph == &graph && &a != &b);
    pairs.emplace_back(&a, &b);
  }
  return pairs;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  return guarded([&] {
    require(graph != nullptr && flags == 0);
    *graph = handle_of<CUgraph>(&make_graph());
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return guarded([&] {
    Graph& g = graph_of(graph);
    require(g.parent == nullptr && g.captures == 0);
    destroy_graph(g);
  });
}

CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  return guarded([&] {
    require(clone != nullptr);
    Graph& g = graph_of(original);
    require(!has_memory_nodes(g), CUDA_ERROR_NOT_SUPPORTED);
    *clone = handle_of<CUgraph>(&copy_graph(g));
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  return guarded([&] {
    require(node != nullptr);
    *node = handle_of<CUgraphNode>(&copy_of_node(graph_of(clone), node_of(original)));
  });
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  return guarded([&] {
    Node& n = node_of(node);
    Graph& graph = *n.graph;
    require(graph.captures == 0);
    require(!has_memory_nodes(graph), CUDA_ERROR_NOT_SUPPORTED);
    for (const Dependency& d : n.dependencies)
      std::erase_if(d.node->dependents, [&](const Dependency& back) { return back.node == &n; });
    for (const Dependency& d : n.dependents)
      std::erase_if(d.node->dependencies, [&](const Dependency& back) { return back.node == &n; });
    if (const auto* child = std::get_if<ChildTask>(&n.task)) destroy_graph(*child->graph);
    std::erase(graph.nodes, &n);
    std::erase_if(graph.copies, [&](const auto& entry) { return entry.second == &n; });
    all<Node>().destroy(n);
  });
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return guarded([&] {
    require(type != nullptr);
    *type = type_of(node_of(node).task);
  });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
  return guarded([&] { put_nodes(graph_of(graph).nodes, out, count); });
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
  return guarded([&] {
    std::vector<Node*> roots;
    std::ranges::copy_if(graph_of(graph).nodes, std::back_inserter(roots),
                         [](const Node* node) { return node->dependencies.empty(); });
    put_nodes(roots, out, count);
  });
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                            size_t* count) {
  return guarded([&] {
    require((from == nullptr) == (to == nullptr) && (data == nullptr || from != nullptr));
    std::vector<std::pair<Node*, Dependency>> edges;
    for (Node* node : graph_of(graph).nodes)
      for (const Dependency& d : node->dependencies) edges.emplace_back(node, d);
    if (from && !data)
      require(std::ranges::all_of(edges, [](const auto& edge) { return edge.second.plain(); }),
              CUDA_ERROR_LOSSY_QUERY);
    put_list(
        edges, from != nullptr, count,
        [&](size_t k, const auto& edge) {
          from[k] = handle_of<CUgraphNode>(edge.second.node);
          to[k] = handle_of<CUgraphNode>(edge.first);
          if (data) data[k] = edge.second.edge;
        },
        [&](size_t k) { from[k] = to[k] = nullptr; });
  });
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* edges,
                                       size_t* count) {
  return guarded([&] { put_dependencies(node_of(node).dependencies, out, edges, count); });
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, out, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* edges,
                                         size_t* count) {
  return guarded([&] { put_dependencies(node_of(node).dependents, out, edges, count); });
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, out, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
  return guarded([&] {
    const auto pairs = pairs_of(graph_of(graph), from, to, count);
    std::set<std::pair<Node*, Node*>> added;
    for (size_t k = 0; k < pairs.size(); ++k) {
      const auto& [a, b] = pairs[k];
      require(!depends(*b, *a) && added.insert(pairs[k]).second);
      if (data) check_edge(a->task, b->task, data[k]);
    }
    for (size_t k = 0; k < pairs.size(); ++k)
      connect({pairs[k].first, data ? data[k] : CUgraphEdgeData{}}, *pairs[k].second);
  });
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, size_t count) {
  return guarded([&] {
    Graph& g = graph_of(graph);
    const auto pairs = pairs_of(g, from, to, count);
    require(count == 0 || !has_memory_nodes(g), CUDA_ERROR_NOT_SUPPORTED);
    for (size_t k = 0; k < pairs.size(); ++k) {
      const CUgraphEdgeData wanted = data ? data[k] : CUgraphEdgeData{};
      require(std::ranges::any_of(pairs[k].second->dependencies, [&](const Dependency& d) {
        return d.node == pairs[k].first && same(d.edge, wanted);
      }));
    }
    for (const auto& [a, b] : pairs) disconnect(*a, *b);
  });
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

// Functions introduced with CUDA 13.

extern "C" {
__attribute__((visibility("default"))) CUresult cuGraphNodeGetContainingGraph(CUgraphNode node,
                                                                              CUgraph* graph) {
  return guarded([&] {
    require(graph != nullptr);
    *graph = handle_of<CUgraph>(node_of(node).graph);
  });
}

__attribute__((visibility("default"))) CUresult cuGraphNodeGetLocalId(CUgraphNode node, unsigned* id) {
  return guarded([&] {
    require(id != nullptr);
    const Node& n = node_of(node);
    *id = static_cast<unsigned>(std::ranges::find(n.graph->nodes, &n) - n.graph->nodes.begin());
  });
}

__attribute__((visibility("default"))) CUresult cuGraphNodeGetToolsId(CUgraphNode node,
                                                                      unsigned long long* id) {
  return guarded([&] {
    require(id != nullptr);
    *id = node_of(node).id;
  });
}

__attribute__((visibility("default"))) CUresult cuGraphGetId(CUgraph graph, unsigned* id) {
  return guarded([&] {
    require(id != nullptr);
    *id = static_cast<unsigned>(graph_of(graph).id);
  });
}
}
