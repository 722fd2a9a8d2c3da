#pragma once
#include <map>
#include <memory>
#include <span>
#include <variant>

#include "process.hpp"

// Graphs of work: nodes, dependencies, and executable graphs.

namespace simt::driver {

struct Graph;
struct Node;

struct KernelTask {
  Launch launch;
  CUfunction function = nullptr;  ///< the handle used by the program; nullptr: use `kernel`
  CUkernel kernel = nullptr;
  std::map<int, CUlaunchAttributeValue> attributes;
};

struct CopyTask {
  Copy copy;
  CUDA_MEMCPY3D parameters{};
};

struct ChildTask {
  Graph* graph = nullptr;  ///< owned by the node
};

/// Memory of an allocation node. It exists from the creation of the node until no graph or executable graph
/// has the node, and no launch has left it allocated.
struct GraphMemory {
  GraphMemory(Device& of, uint64_t size, const Graph& owner);
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();
  Device& device;
  uint64_t bytes, address;
  uint64_t owner;          ///< id of the graph with the allocation node
  uint64_t freed_in = 0;   ///< id of the graph with the node that frees it; 0: none
  bool allocated = false;  ///< by a launch, and not freed since
  bool lost = false;       ///< the device was reset; other memory may be at the address
};

struct AllocationTask {
  std::shared_ptr<GraphMemory> memory;
  CUmemPoolProps properties{};
  std::vector<CUmemAccessDesc> access;
};

struct FreeTask {
  std::shared_ptr<GraphMemory> memory;
};

using Task = std::variant<KernelTask, CopyTask, Fill, HostCall, ChildTask, Nothing, Wait, Record,
                          AllocationTask, FreeTask>;

CUgraphNodeType type_of(const Task& task);

struct Dependency {
  Node* node = nullptr;
  CUgraphEdgeData edge{};
  bool plain() const { return (edge.from_port | edge.to_port | edge.type) == 0; }
};

struct Node : Handle {
  static constexpr uint64_t tag = 0x73696d745f6e6f64;
  Node(Graph& of, Task what);
  Graph* graph;
  uint64_t id;  ///< unique in the process; memory of nodes is reused
  Task task;
  bool enabled = true;
  std::vector<Dependency> dependencies, dependents;
  std::vector<void*> parameters;  ///< pointers to a kernel's parameters, returned to the program
};

/// A reference-counted object of the program, kept alive by graphs.
struct UserObject : Handle {
  static constexpr uint64_t tag = 0x73696d745f75736f;
  UserObject(void* what, CUhostFn how, uint64_t count)
      : Handle(tag), object(what), destroy(how), references(count) {}
  void* object;
  CUhostFn destroy;
  uint64_t references;
};
/// Drops references. The last one destroys the object.
void release(UserObject& object, uint64_t count);

struct Graph : Handle {
  static constexpr uint64_t tag = 0x73696d745f677261;
  Graph();
  uint64_t id;
  std::vector<Node*> nodes;                 ///< in order of creation
  std::map<uint64_t, Node*> copies;         ///< for a clone: its nodes, by the originals' ids
  std::map<UserObject*, uint64_t> objects;  ///< references it holds
  Node* parent = nullptr;                   ///< the node whose child graph it is
  unsigned captures = 0;                    ///< number of active captures into it
  std::shared_ptr<unsigned> instances = std::make_shared<unsigned>(0);
};

Graph& graph_of(CUgraph handle);
Node& node_of(CUgraphNode handle);

Graph& make_graph();
void destroy_graph(Graph& graph);
/// A deep copy; memory of allocation nodes is shared.
Graph& copy_graph(const Graph& graph);
/// Whether it has nodes that allocate or free memory, including those of child graphs.
bool has_memory_nodes(const Graph& graph);

Node& add_node(Graph& graph, std::span<const Dependency> dependencies, Task task);
void connect(const Dependency& from, Node& to);
/// Throws Failure for edge data not allowed between such nodes.
void check_edge(const Task& from, const Task& to, const CUgraphEdgeData& edge);
/// Dependencies given by the API. Throws Failure unless they are distinct nodes of the graph.
std::vector<Dependency> dependencies_of(const Graph& graph, const CUgraphNode* nodes,
                                        const CUgraphEdgeData* edges, size_t count);
/// The node of a clone that corresponds to a node of the original, including child graphs. Throws Failure.
Node& copy_of_node(const Graph& clone, const Node& original);

/// Keeps a kernel node's attributes when its parameters change. Throws Failure if the launch does not support
/// them.
void keep_attributes(const KernelTask& from, KernelTask& to);

// Tasks of explicit nodes, from API parameters. Each throws Failure for unsupported parameters.
Task task_of(const CUDA_KERNEL_NODE_PARAMS_v3& parameters);
Task task_of(const CUDA_MEMCPY3D& parameters);
Task task_of(const CUDA_MEMSET_NODE_PARAMS_v1& parameters);
Task task_of(const CUDA_HOST_NODE_PARAMS_v1& parameters);
Task task_of_child(CUgraph graph);
Task record_task_of(CUevent event);
Task wait_task_of(CUevent event);
Task task_of_free(const Graph& graph, CUdeviceptr address);
AllocationTask task_of_allocation(const Graph& graph, const CUDA_MEM_ALLOC_NODE_PARAMS& parameters);
CUDA_MEMCPY3D parameters_of(const Copy& copy);

/// Makes a task the next node of a captured stream.
void capture_task(Stream& stream, Task task);

// What nodes that allocate or free do when launched.
void allocate(const AllocationTask& task);
void free(const FreeTask& task);

/// Why an instantiated node cannot take a task; CU_GRAPH_EXEC_UPDATE_SUCCESS if it can.
CUgraphExecUpdateResult may_become(const Task& now, const Task& next);
/// Replaces the task of an executable graph's node that corresponds to `node`. Throws Failure.
void set_task(CUgraphExec exec, CUgraphNode node, Task task);

}  // namespace simt::driver
