#include <cstdio>
#include <memory>
#include <string>

#include "graph.hpp"

// Graphs as text for Graphviz.

namespace simt::driver {
namespace {

class DotWriter {
 public:
  DotWriter(std::FILE* file, unsigned flags) : file_(file), flags_(flags) {}

  void write(const Graph& graph, const char* kind) {
    std::fprintf(file_, "%s \"graph_%llu\" {\n", kind, static_cast<unsigned long long>(graph.id));
    for (size_t k = 0; k < graph.nodes.size(); ++k) {
      const Node& node = *graph.nodes[k];
      std::fprintf(file_, "  %s [label=\"%zu\\n%s%s\" shape=\"box\"];\n", name(node).c_str(), k,
                   label(node.task).c_str(), handle(node).c_str());
      if (const auto* child = std::get_if<ChildTask>(&node.task)) write(*child->graph, "subgraph");
    }
    for (const Node* node : graph.nodes)
      for (const Dependency& d : node->dependencies)
        std::fprintf(file_, "  %s -> %s;\n", name(*d.node).c_str(), name(*node).c_str());
    std::fprintf(file_, "}\n");
  }

 private:
  bool wants(unsigned flag) const { return flags_ & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE); }
  static std::string name(const Node& node) { return "node_" + std::to_string(node.id); }
  std::string handle(const Node& node) const {
    if (!wants(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)) return "";
    char text[32];
    std::snprintf(text, sizeof text, "\\n%p", static_cast<const void*>(&node));
    return text;
  }
  static std::string dimensions(const std::array<uint32_t, 3>& d) {
    return std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]);
  }

  std::string label(const Task& task) const {
    switch (type_of(task)) {
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        const Launch& launch = std::get<KernelTask>(task).launch;
        std::string text = "KERNEL\\n" + (launch.function.get() ? launch.function->name : "unloaded");
        if (wants(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
          text += "\\ngrid " + dimensions(launch.grid) + " block " + dimensions(launch.block) + " shared " +
                  std::to_string(launch.shared_bytes);
        return text;
      }
      case CU_GRAPH_NODE_TYPE_MEMCPY: {
        const Copy& copy = std::get<CopyTask>(task).copy;
        const auto side = [](const Copy::Side& s) {
          Device* device = Process::get().device_of(s.address);
          return device && device->on_device(s.address) ? "D" : "H";
        };
        std::string text = std::string("MEMCPY\\n") + side(copy.from) + "to" + side(copy.to);
        if (wants(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
          text += "\\nwidth " + std::to_string(copy.width) + " height " + std::to_string(copy.height) +
                  " depth " + std::to_string(copy.depth);
        return text;
      }
      case CU_GRAPH_NODE_TYPE_MEMSET: {
        const Fill& fill = std::get<Fill>(task);
        std::string text = "MEMSET";
        if (wants(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
          text += "\\nvalue " + std::to_string(fill.value) + " element " + std::to_string(fill.element) +
                  " width " + std::to_string(fill.width) + " height " + std::to_string(fill.height);
        return text;
      }
      case CU_GRAPH_NODE_TYPE_HOST:
        return "HOST";
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return "GRAPH\\n" + std::to_string(std::get<ChildTask>(task).graph->id);
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return "EVENT_WAIT";
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return "EVENT_RECORD";
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return "MEM_ALLOC\\n" + std::to_string(std::get<AllocationTask>(task).memory->bytes);
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return "MEM_FREE";
      default:
        return "EMPTY";
    }
  }

  std::FILE* file_;
  unsigned flags_;
};

}  // namespace
}  // namespace simt::driver

using namespace simt::driver;

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  return guarded([&] {
    require(path != nullptr);
    const Graph& g = graph_of(graph);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "w"), &std::fclose);
    require(file != nullptr, CUDA_ERROR_OPERATING_SYSTEM);
    simt::driver::DotWriter(file.get(), flags).write(g, "digraph");
  });
}
