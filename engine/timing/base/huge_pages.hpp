#pragma once

namespace simt {

/// Asks the host to hold its heap from `first`, which is in the heap, in huge pages: the state of a GPU is
/// many times what the processor's translation of addresses covers with small ones. Takes about a millisecond
/// for each 8 MiB that are not in huge pages yet; does nothing where the host cannot.
void use_huge_pages(const void* first);

}  // namespace simt
