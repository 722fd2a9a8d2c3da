#include "bindings.hpp"

void bind_memory(nanobind::module_& m) {
  (void)m;
}
