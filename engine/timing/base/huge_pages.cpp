#include "timing/base/huge_pages.hpp"

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace simt {

void use_huge_pages([[maybe_unused]] const void* first) {
#ifdef __linux__
  constexpr uintptr_t page = uintptr_t{2} << 20, most = uintptr_t{1} << 30;
#ifdef MADV_COLLAPSE
  constexpr int collapse = MADV_COLLAPSE;
#else
  constexpr int collapse = 25;  // since Linux 6.1; other kernels refuse it
#endif
  // Objects that a thread other than the first has made are not between its heap's ends.
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0)) / page * page;
  const auto begin = (reinterpret_cast<uintptr_t>(first) + page - 1) / page * page;
  if (begin >= end || end - begin > most) return;
  void* const pages =
      reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr): never dereferenced
  madvise(pages, end - begin, MADV_HUGEPAGE);
  madvise(pages, end - begin, collapse);
#endif
}

}  // namespace simt
