#include <cstdlib>
#include <random>

#include "driver.hpp"

// Random graphs, some of whose nodes are child graphs: every launch has the effect of the nodes one after
// another.

namespace {

constexpr unsigned arrays = 6, nodes_of_each = 16, n = 64;

struct Case {
  std::mt19937 random;
  std::vector<CUdeviceptr> memory;
  std::vector<unsigned> values = std::vector<unsigned>(arrays, 1);  ///< what each array's words are

  explicit Case(unsigned seed) : random(seed) {
    for (unsigned k = 0; k < arrays; ++k) memory.push_back(allocate(n));
  }
  unsigned below(unsigned bound) { return static_cast<unsigned>(random() % bound); }

  /// A graph over the arrays from `first` on. Dependencies are those that values need, and no more.
  CUgraph graph(const Gpu& gpu, unsigned first, bool nested) {
    CUgraph made;
    OK(cuGraphCreate(&made, 0));
    std::vector<std::vector<CUgraphNode>> users(arrays);  // last writer of each array, and its readers since
    const auto depend = [&](std::initializer_list<unsigned> touched) {
      std::vector<CUgraphNode> before;
      for (const unsigned array : touched)
        for (CUgraphNode node : users[array]) {
          bool known = false;
          for (CUgraphNode other : before) known |= other == node;
          if (!known) before.push_back(node);
        }
      return before;
    };
    for (unsigned k = 0; k < nodes_of_each; ++k) {
      const unsigned a = first + below(arrays - first), b = first + below(arrays - first);
      CUgraphNode node;
      if (nested && below(4) == 0) {
        const unsigned from = arrays - 3;  // uses the last three arrays
        CUgraph child = graph(gpu, from, false);
        const auto before = depend({from, from + 1, from + 2});
        OK(cuGraphAddChildGraphNode(&node, made, before.data(), before.size(), child));
        OK(cuGraphDestroy(child));
        for (unsigned array = from; array < arrays; ++array) users[array] = {node};
      } else if (a != b && below(2) == 0) {
        const auto copy = copy_node(memory[b], memory[a], n * 4);
        const auto before = depend({a, b});
        OK(cuGraphAddMemcpyNode(&node, made, before.data(), before.size(), &copy, gpu.context));
        values[b] = values[a];
        users[b] = {node};
        users[a].push_back(node);
      } else {
        Affine affine(memory[a], n, 2 * below(10) + 3, below(100));
        const auto parameters = affine.node(gpu);
        const auto before = depend({a});
        OK(cuGraphAddKernelNode(&node, made, before.data(), before.size(), &parameters));
        values[a] = values[a] * affine.a + affine.b;
        users[a] = {node};
      }
    }
    return made;
  }
};

}  // namespace

int main() {
  const Gpu gpu;
  CUstream stream;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned seed = 0; seed < 6; ++seed) {
    Case one(seed);
    CUgraph graph = one.graph(gpu, 0, true);
    CUgraphExec exec;
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (int launch = 0; launch < 2; ++launch) {
      for (const CUdeviceptr address : one.memory) OK(cuMemsetD32Async(address, 1, n, stream));
      OK(cuGraphLaunch(exec, stream));
    }
    OK(cuStreamSynchronize(stream));
    for (unsigned k = 0; k < arrays; ++k)
      CHECK(word(one.memory[k]) == one.values[k] && word(one.memory[k] + 4 * (n - 1)) == one.values[k]);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
  }
  std::printf("ordered\n");
}
