#include "bindings.hpp"

NB_MODULE(_engine, m) {
  m.doc() = "The native engine of simt. Use it through the simt package.";
  nanobind::set_leak_warnings(false);  // Python's own caches keep objects until the interpreter ends
  bind_isa(m);
  bind_trace(m);
  bind_spec(m);
  bind_policies(m);
  bind_testing(m);
  bind_ptx(m);
  bind_launch_record(m);
  bind_gpu(m);
  bind_functional(m);
  bind_control(m);
}
