#include <algorithm>
#include <set>

#include "capture.hpp"
#include "graph_plan.hpp"

// Executable graphs: instantiation, updates and launches.

namespace simt::driver {
namespace {

/// A graph that can be launched.
struct GraphExec : Handle {
  static constexpr uint64_t tag = 0x73696d745f677865;
  GraphExec(Graph& of, uint64_t given)
      : Handle(tag), graph(&copy_graph(of)), flags(given), instances(of.instances) {}
  Graph* graph;  ///< its own
  uint64_t flags;
  std::shared_ptr<unsigned> instances;
  Plan plan;
  std::vector<Stream*> lanes;   ///< except the first
  std::vector<Event*> reached;  ///< of steps that others wait for
  Event* begun = nullptr;
  Event* done = nullptr;
  uint64_t stream = 0;  ///< of its last launch
};

GraphExec& exec_of(CUgraphExec handle) {
  return object_of<GraphExec>(handle, CUDA_ERROR_INVALID_VALUE);
}

constexpr uint64_t instantiation_flags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

/// Throws Failure. wrong: the offending node, or nullptr.
GraphExec& instantiate(Graph& graph, uint64_t flags, Node*& wrong) {
  wrong = nullptr;
  require((flags & ~instantiation_flags) == 0 && graph.captures == 0);
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
    require((flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0);
    say_once("graphs that kernels launch are not supported (CUDA_ERROR_NOT_SUPPORTED)");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  const bool memory = has_memory_nodes(graph);
  require(!memory || (*graph.instances == 0 && graph.parent == nullptr));
  plan_of(graph, wrong);
  require(wrong == nullptr);
  GraphExec& exec = all<GraphExec>().make(graph, flags & ~uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD});
  exec.plan = plan_of(*exec.graph, wrong);
  exec.reached.resize(exec.plan.steps.size());
  ++*exec.instances;
  return exec;
}

void give_up_lanes(GraphExec& exec) {
  for (Stream* lane : exec.lanes) all<Stream>().destroy(*lane);
  const auto destroy_event = [&](Event* event) {
    if (!event) return;
    if (event->id != 0) event->context->device.connection.send(ForgetRequest{.event = event->id});
    all<Event>().destroy(*event);
  };
  std::ranges::for_each(exec.reached, destroy_event);
  destroy_event(exec.begun);
  destroy_event(exec.done);
  exec.lanes.clear();
  exec.reached.assign(exec.reached.size(), nullptr);
  exec.begun = exec.done = nullptr;
}

/// Makes the streams and events that a launch in this stream needs, unless they are there.
void make_lanes(GraphExec& exec, const Stream& stream) {
  Context& context = *stream.context;
  if (exec.done && exec.done->context == &context) return;
  give_up_lanes(exec);
  const auto event = [&] { return &all<Event>().make(context, unsigned{CU_EVENT_DISABLE_TIMING}); };
  exec.begun = event();
  exec.done = event();
  for (size_t k = 0; k < exec.plan.steps.size(); ++k) {
    const Step& step = exec.plan.steps[k];
    if (step.awaited || (step.last && step.lane != 0)) exec.reached[k] = event();
  }
  while (exec.lanes.size() + 1 < exec.plan.lanes) {
    Stream& lane = all<Stream>().make(context, Process::get().next_id++, unsigned{CU_STREAM_NON_BLOCKING},
                                      stream.priority);
    context.device.connection.send(StreamRequest{.stream = lane.id, .blocking = false});
    exec.lanes.push_back(&lane);
  }
}

/// Performs a node's task.
struct Runner {
  Stream& stream;
  void operator()(const KernelTask& task) const { execute(stream, task.launch); }
  void operator()(const CopyTask& task) const { execute(stream, task.copy); }
  void operator()(const AllocationTask& task) const { allocate(task); }
  void operator()(const FreeTask& task) const { free(task); }
  void operator()(const ChildTask&) const {}  // its nodes are separate steps
  void operator()(const auto& work) const { execute(stream, work); }
};

/// Detects what would fail in the middle of a launch. Throws Failure.
struct Checker {
  const Stream& stream;
  bool frees;                                   ///< memory left allocated by an earlier launch
  std::set<const GraphMemory*> allocated = {};  ///< by earlier steps

  void operator()(const KernelTask& task) {
    const Function& function = *task.launch.function;  // fails if its module was unloaded
    if (&function.module.context.device == &stream.context->device) return;
    say_once("graphs whose nodes run on several devices are not supported (CUDA_ERROR_NOT_SUPPORTED)");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  void operator()(const AllocationTask& task) {
    require(!task.memory->lost && (frees || !task.memory->allocated));
    allocated.insert(task.memory.get());
  }
  void operator()(const FreeTask& task) {
    require(task.memory->allocated || allocated.contains(task.memory.get()));
  }
  void operator()(const Record& record) { require(record.event.get() != nullptr, CUDA_ERROR_INVALID_HANDLE); }
  void operator()(const Wait& wait) { require(wait.event.get() != nullptr, CUDA_ERROR_INVALID_HANDLE); }
  void operator()(const auto&) {}
};

void launch(GraphExec& exec, Stream& stream) {
  const std::vector<Step>& steps = exec.plan.steps;
  Checker checker{stream, (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0};
  for (const Step& step : steps) std::visit(checker, step.node->task);
  const auto run = [](Stream& in, const Step& step) {
    if (step.node->enabled) std::visit(Runner{in}, step.node->task);
  };
  if (stream.context->device.functional) {  // nothing overlaps
    for (const Step& step : steps) run(stream, step);
    return;
  }
  make_lanes(exec, stream);
  if (exec.done->id != 0 && exec.stream != stream.id) execute(stream, Wait{*exec.done});
  if (exec.plan.lanes > 1) execute(stream, Record{*exec.begun});
  for (size_t k = 0; k < steps.size(); ++k) {
    const Step& step = steps[k];
    Stream& lane = step.lane == 0 ? stream : *exec.lanes[step.lane - 1];
    if (step.after.empty() && step.lane != 0) execute(lane, Wait{*exec.begun});
    for (const size_t place : step.waits) execute(lane, Wait{*exec.reached[place]});
    run(lane, step);
    if (exec.reached[k]) execute(lane, Record{*exec.reached[k]});
  }
  for (size_t k = 0; k < steps.size(); ++k)
    if (steps[k].last && steps[k].lane != 0) execute(stream, Wait{*exec.reached[k]});
  execute(stream, Record{*exec.done});
  exec.stream = stream.id;
}

void destroy(GraphExec& exec) {
  if (!exec.graph->objects.empty() && exec.done) {
    try {
      synchronize(exec.done->context->device);  // launches may still use the program's objects
    } catch (const Failure&) {                  // the fault has been reported
    }
  }
  give_up_lanes(exec);
  destroy_graph(*exec.graph);
  --*exec.instances;
  all<GraphExec>().destroy(exec);
}

/// Determines what an update of a graph's tasks changes; the topologies must be identical.
class Update {
 public:
  CUgraphExecUpdateResultInfo info{};

  /// Whether the tasks of `next` can replace those of `now`; if not, info says why.
  bool pair(Graph& now, const Graph& next) {
    if (now.nodes.size() != next.nodes.size()) return differ(nullptr);
    const auto exits = [](const Graph& graph) {
      std::vector<Node*> found;
      std::ranges::copy_if(graph.nodes, std::back_inserter(found),
                           [](const Node* node) { return node->dependents.empty(); });
      return found;
    };
    const std::vector<Node*> ours = exits(now), theirs = exits(next);
    if (theirs.size() != ours.size())
      return differ(theirs.size() > ours.size() ? theirs[ours.size()] : nullptr);
    std::vector<std::pair<Node*, Node*>> pairs;
    std::map<Node*, Node*> partners;
    const auto match = [&](Node* our, Node* their) {
      const auto one = partners.find(our), other = partners.find(their);
      if (one != partners.end() || other != partners.end())
        return one != partners.end() && one->second == their;
      partners[our] = their;
      partners[their] = our;
      pairs.emplace_back(our, their);
      return true;
    };
    for (size_t k = 0; k < ours.size(); ++k) match(ours[k], theirs[k]);
    for (size_t k = 0; k < pairs.size(); ++k) {
      const auto [our, their] = pairs[k];
      if (our->dependencies.size() != their->dependencies.size()) return differ(their);
      for (size_t d = 0; d < our->dependencies.size(); ++d)
        if (!match(our->dependencies[d].node, their->dependencies[d].node))
          return differ(their, their->dependencies[d].node);
    }
    return std::ranges::all_of(pairs, [&](const auto& both) { return replace(*both.first, *both.second); });
  }

  void apply() {
    for (auto& [node, task] : changes_) node->task = std::move(task);
  }

 private:
  bool differ(Node* node, Node* from = nullptr) {
    return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from);
  }
  bool refuse(CUgraphExecUpdateResult result, Node* node, Node* from = nullptr) {
    info = {result, handle_of<CUgraphNode>(node), handle_of<CUgraphNode>(from)};
    return false;
  }
  bool replace(Node& now, Node& next) {
    if (now.task.index() != next.task.index())
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, &next);
    if (const auto* child = std::get_if<ChildTask>(&now.task))
      return pair(*child->graph, *std::get<ChildTask>(next.task).graph);
    const CUgraphExecUpdateResult result = may_become(now.task, next.task);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return refuse(result, &next);
    changes_.emplace_back(&now, next.task);
    return true;
  }

  std::vector<std::pair<Node*, Task>> changes_;
};

void require_linear(const CopyTask& task) {
  require(task.copy.height == 1 && task.copy.depth == 1 && task.copy.width > 0);
}

}  // namespace

void set_task(CUgraphExec handle, CUgraphNode node, Task task) {
  Node& n = copy_of_node(*exec_of(handle).graph, node_of(node));
  require(n.task.index() == task.index());
  if (const auto* child = std::get_if<ChildTask>(&task)) {
    Update update;
    const bool same = update.pair(*std::get<ChildTask>(n.task).graph, *child->graph);
    if (same) update.apply();
    destroy_graph(*child->graph);
    require(same);
    return;
  }
  if (auto* kernel = std::get_if<KernelTask>(&task)) keep_attributes(std::get<KernelTask>(n.task), *kernel);
  if (const auto* copy = std::get_if<CopyTask>(&task)) {
    require_linear(*copy);
    require_linear(std::get<CopyTask>(n.task));
  }
  require(may_become(n.task, task) == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  n.task = std::move(task);
}

void forget_lanes(Context& context) {
  for (GraphExec* exec :
       all<GraphExec>().those([&](const GraphExec& e) { return e.done && e.done->context == &context; }))
    give_up_lanes(*exec);
}

CUgraphExecUpdateResult may_become(const Task& now, const Task& next) {
  if (const auto* kernel = std::get_if<KernelTask>(&now)) {
    const Launch &a = kernel->launch, &b = std::get<KernelTask>(next).launch;
    if (&a.function->module.context != &b.function->module.context)
      return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (a.cooperative != b.cooperative) return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  } else if (const auto* copy = std::get_if<CopyTask>(&now)) {
    const CUDA_MEMCPY3D &a = copy->parameters, &b = std::get<CopyTask>(next).parameters;
    const auto array = [](CUmemorytype type) { return type == CU_MEMORYTYPE_ARRAY; };
    const auto device = [](uint64_t address) { return Process::get().device_of(address); };
    const Copy &c = copy->copy, &d = std::get<CopyTask>(next).copy;
    if (array(a.srcMemoryType) != array(b.srcMemoryType) ||
        array(a.dstMemoryType) != array(b.dstMemoryType) ||
        device(c.from.address) != device(d.from.address) || device(c.to.address) != device(d.to.address))
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  } else if (const auto* fill = std::get_if<Fill>(&now)) {
    const Fill& other = std::get<Fill>(next);
    const bool plane = fill->height > 1 || other.height > 1;
    if (plane && (fill->width != other.width || fill->height != other.height ||
                  fill->element != other.element || fill->pitch != other.pitch))
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  } else if (const auto* allocation = std::get_if<AllocationTask>(&now)) {
    if (allocation->memory != std::get<AllocationTask>(next).memory)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  } else if (const auto* release = std::get_if<FreeTask>(&now)) {
    if (release->memory != std::get<FreeTask>(next).memory)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

}  // namespace simt::driver

using namespace simt::driver;

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  return guarded([&] {
    require(exec != nullptr && parameters != nullptr);
    Node* wrong = nullptr;
    parameters->hErrNode_out = nullptr;
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    try {
      if (parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) stream_of(parameters->hUploadStream);
      *exec = handle_of<CUgraphExec>(&instantiate(graph_of(graph), parameters->flags, wrong));
    } catch (const Failure&) {
      if (wrong) {
        parameters->hErrNode_out = handle_of<CUgraphNode>(wrong);
        parameters->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
      }
      throw;
    }
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) return CUDA_ERROR_INVALID_VALUE;
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  parameters.flags = flags;
  return cuGraphInstantiateWithParams(exec, graph, &parameters);
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  return guarded([&] {
    require(flags != nullptr);
    *flags = exec_of(exec).flags;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return guarded([&] { destroy(exec_of(exec)); });
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return guarded([&] {
    exec_of(exec);
    stream_of(stream);
  });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  return guarded([&] {
    GraphExec& e = exec_of(exec);
    Stream& stream = stream_of(handle);
    require_no_implicit_capture(stream);
    if (!stream.capture) return launch(e, stream);
    require(!has_memory_nodes(*e.graph), CUDA_ERROR_NOT_SUPPORTED);
    capture_task(stream, ChildTask{&copy_graph(*e.graph)});
  });
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  return guarded([&] {
    require(info != nullptr);
    *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    GraphExec& e = exec_of(exec);
    Update update;
    const bool same = update.pair(*e.graph, graph_of(graph));
    if (same) update.apply();
    *info = update.info;
    require(same, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return guarded([&] { set_task(exec, node, task_of_child(child)); });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  return guarded([&] {
    Node& n = copy_of_node(*exec_of(exec).graph, node_of(node));
    require(type_of(n.task) <= CU_GRAPH_NODE_TYPE_MEMSET);  // kernels, copies and fills
    n.enabled = enabled != 0;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  return guarded([&] {
    require(enabled != nullptr);
    const Node& n = copy_of_node(*exec_of(exec).graph, node_of(node));
    require(type_of(n.task) <= CU_GRAPH_NODE_TYPE_MEMSET);
    *enabled = n.enabled;
  });
}

// Earlier versions of functions, and one introduced with CUDA 13.

#undef cuGraphInstantiate
#undef cuGraphExecUpdate
extern "C" {
__attribute__((visibility("default"))) CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph,
                                                                      CUgraphNode* wrong, char* log,
                                                                      size_t size) {
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  const CUresult result = cuGraphInstantiateWithParams(exec, graph, &parameters);
  if (wrong) *wrong = parameters.hErrNode_out;
  if (log && size > 0) *log = '\0';
  return result;
}

__attribute__((visibility("default"))) CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph,
                                                                   CUgraphNode* wrong, char* log,
                                                                   size_t size) {
  return cuGraphInstantiate_v2(exec, graph, wrong, log, size);
}

__attribute__((visibility("default"))) CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                                                                  CUgraphNode* wrong,
                                                                  CUgraphExecUpdateResult* result) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
  if (wrong) *wrong = info.errorNode;
  *result = info.result;
  return code;
}

__attribute__((visibility("default"))) CUresult cuGraphExecGetId(CUgraphExec exec, unsigned* id) {
  return guarded([&] {
    require(id != nullptr);
    *id = static_cast<unsigned>(exec_of(exec).graph->id);
  });
}
}
