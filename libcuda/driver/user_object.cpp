#include <climits>

#include "graph.hpp"

// Objects of the program that live at least as long as the graphs that use them.

namespace simt::driver {

void release(UserObject& object, uint64_t count) {
  require(object.references >= count);
  object.references -= count;
  if (object.references > 0) return;
  const CUhostFn destroy = object.destroy;
  void* const what = object.object;
  all<UserObject>().destroy(object);
  destroy(what);
}

}  // namespace simt::driver

using namespace simt::driver;

namespace {

UserObject& user_object_of(CUuserObject handle) {
  return object_of<UserObject>(handle, CUDA_ERROR_INVALID_VALUE);
}

void check_count(unsigned count) {
  require(count > 0 && count <= INT_MAX);
}

}  // namespace

CUresult cuUserObjectCreate(CUuserObject* object, void* what, CUhostFn destroy, unsigned references,
                            unsigned flags) {
  return guarded([&] {
    require(object != nullptr && destroy != nullptr && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    check_count(references);
    *object = handle_of<CUuserObject>(&all<UserObject>().make(what, destroy, references));
  });
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  return guarded([&] {
    check_count(count);
    user_object_of(object).references += count;
  });
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  return guarded([&] {
    check_count(count);
    release(user_object_of(object), count);
  });
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  return guarded([&] {
    check_count(count);
    require(flags <= CU_GRAPH_USER_OBJECT_MOVE);
    Graph& g = graph_of(graph);
    UserObject& o = user_object_of(object);
    if (flags != CU_GRAPH_USER_OBJECT_MOVE) o.references += count;
    g.objects[&o] += count;
  });
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  return guarded([&] {
    check_count(count);
    Graph& g = graph_of(graph);
    UserObject& o = user_object_of(object);
    const auto held = g.objects.find(&o);
    require(held != g.objects.end() && held->second >= count);
    held->second -= count;
    if (held->second == 0) g.objects.erase(held);
    release(o, count);
  });
}
