#pragma once
#include <map>
#include <memory>
#include <span>
#include <variant>

#include "process.hpp"

// Graphs of work: nodes, dependencies, and what they are instantiated to.

namespace simt::driver {

struct Graph;
struct Node;

struct KernelTask {
  Launch launch;
  CUfunction function = nullptr;  ///< as the program named it; nullptr: by `kernel`
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

/// Memory of an allocation node. It exists from the node's creation until no graph and no executable graph
/// has the node and no launch has left it allocated.
struct GraphMemory {
  GraphMemory(Device& of, uint64_t size, const Graph& owner);
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();
  Device& device;
  uint64_t bytes, address;
  uint64_t owner;          ///< id of the graph that has the allocation node
  uint64_t freed_in = 0;   ///< id of the graph that has the one node that frees it; 0: none
  bool allocated = false;  ///< a launch has, and it was not freed since
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
  uint64_t id;  ///< unique in the process: a node's memory is used again
  Task task;
  bool enabled = true;
  std::vector<Dependency> dependencies, dependents;
  std::vector<void*> parameters;  ///< pointers to a kernel's parameters, for the program
};

/// A reference-counted object of the program that graphs keep alive.
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
  std::vector<Node*> nodes;                 ///< in the order of their creation
  std::map<uint64_t, Node*> copies;         ///< of a clone: its nodes by the originals' ids
  std::map<UserObject*, uint64_t> objects;  ///< references that it holds
  Node* parent = nullptr;                   ///< has it as its child graph
  unsigned captures = 0;                    ///< going on into it
  std::shared_ptr<unsigned> instances = std::make_shared<unsigned>(0);
};

Graph& graph_of(CUgraph handle);
Node& node_of(CUgraphNode handle);

Graph& make_graph();
void destroy_graph(Graph& graph);
/// A deep copy; one that allocates memory shares it.
Graph& copy_graph(const Graph& graph);
/// Whether it has nodes that allocate or free memory, here or in child graphs.
bool has_memory_nodes(const Graph& graph);

Node& add_node(Graph& graph, std::span<const Dependency> dependencies, Task task);
void connect(const Dependency& from, Node& to);
/// Throws Failure for edge data that cannot lie between such nodes.
void check_edge(const Task& from, const Task& to, const CUgraphEdgeData& edge);
/// Dependencies as the API names them. Throws Failure unless all are different nodes of the graph.
std::vector<Dependency> dependencies_of(const Graph& graph, const CUgraphNode* nodes,
                                        const CUgraphEdgeData* edges, size_t count);
/// The node of a clone that stands for a node of the original, in child graphs too. Throws Failure.
Node& copy_of_node(const Graph& clone, const Node& original);

/// Attributes of a kernel node outlive new parameters. Throws Failure if the launch cannot have them.
void keep_attributes(const KernelTask& from, KernelTask& to);

// Tasks of explicit nodes, from parameters of the API. Each throws Failure for what no node can do.
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

// What nodes that allocate or free do when they are launched.
void allocate(const AllocationTask& task);
void free(const FreeTask& task);

/// Why an instantiated node cannot take on a task; CU_GRAPH_EXEC_UPDATE_SUCCESS if it can.
CUgraphExecUpdateResult may_become(const Task& now, const Task& next);
/// Replaces the task of the node of an executable graph that stands for a node. Throws Failure.
void set_task(CUgraphExec exec, CUgraphNode node, Task task);

}  // namespace simt::driver
