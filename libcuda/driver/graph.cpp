#include "graph.hpp"

#include "process.hpp"

namespace simt::driver {

void submit(Stream& stream, Work work) {
  execute(stream, std::move(work));
}

void require_no_capture() {}

}  // namespace simt::driver
