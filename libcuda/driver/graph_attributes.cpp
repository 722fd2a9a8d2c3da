#include "graph.hpp"
#include "launch.hpp"

// Attributes of kernel nodes.

namespace simt::driver {
namespace {

void apply(KernelTask& task, int which, const CUlaunchAttributeValue& value) {
  Launch launch = task.launch;
  set_attribute(launch, static_cast<CUlaunchAttributeID>(which), value);
  check(launch);
  task.launch = std::move(launch);
  task.attributes[which] = value;
}

}  // namespace

void keep_attributes(const KernelTask& from, KernelTask& to) {
  Launch launch = to.launch;
  launch.cooperative = from.launch.cooperative;
  launch.cluster = from.launch.cluster;
  launch.window = from.launch.window;
  check(launch);
  to.launch = std::move(launch);
  to.attributes = from.attributes;
}

}  // namespace simt::driver

using namespace simt::driver;

namespace {

KernelTask& kernel_of(CUgraphNode node) {
  auto* task = std::get_if<KernelTask>(&object_of<Node>(node).task);
  require(task != nullptr);
  return *task;
}

void check_attribute(CUkernelNodeAttrID which) {
  switch (which) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      say_once("kernel nodes that kernels update are not supported (CUDA_ERROR_NOT_SUPPORTED)");
      fail(CUDA_ERROR_NOT_SUPPORTED);
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                       CUkernelNodeAttrValue* value) {
  return guarded([&] {
    require(value != nullptr);
    check_attribute(which);
    const KernelTask& task = kernel_of(node);
    *value = {};
    if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      value->cooperative = task.launch.cooperative;
    else if (which == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      value->clusterDim = {task.launch.cluster[0], task.launch.cluster[1], task.launch.cluster[2]};
    else if (const auto found = task.attributes.find(which); found != task.attributes.end())
      *value = found->second;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                       const CUkernelNodeAttrValue* value) {
  return guarded([&] {
    require(value != nullptr);
    check_attribute(which);
    apply(kernel_of(node), which, *value);
  });
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  return guarded([&] {
    KernelTask& target = kernel_of(to);
    const KernelTask& source = kernel_of(from);
    require(&target.launch.function->module.context == &source.launch.function->module.context);
    keep_attributes(source, target);
  });
}
