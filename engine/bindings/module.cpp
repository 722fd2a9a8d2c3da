#include "bindings.hpp"

NB_MODULE(_engine, m) {
  m.doc() = "The native engine of simt. Use it through the simt package.";
  bind_trace(m);
  bind_memory(m);
  bind_gpu(m);
}
