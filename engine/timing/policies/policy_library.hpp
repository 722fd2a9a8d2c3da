#pragma once
/// What a policy can be written with, and what a library of policies exports. `simt policy build` includes
/// this file before the policy's own; in the engine itself it declares how such a library is loaded.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "timing/base/ring_queue.hpp"
#include "timing/memory/dram_scheduler.hpp"
#include "timing/memory/hash.hpp"
#include "timing/memory/hashes/bit_mask.hpp"
#include "timing/memory/hashes/ipoly.hpp"
#include "timing/memory/replacement.hpp"
#include "timing/memory/write_policy.hpp"
#include "timing/schedulers/warp_scheduler.hpp"

namespace simt {

/// Takes the policies of a library.
class PolicySink {
 public:
  virtual ~PolicySink() = default;
  virtual void add(const SchedulerPolicy& policy) = 0;
  virtual void add(const ReplacementPolicy& policy) = 0;
  virtual void add(const WritePolicy& policy) = 0;
  virtual void add(const SetIndex& policy) = 0;
  virtual void add(const SliceHash& policy) = 0;
  virtual void add(const DramSchedulerPolicy& policy) = 0;
};

/// Hands over all policies that have registered themselves in this library.
template <class... Policies>
void give_policies(PolicySink& sink) {
  const auto give = [&](const auto& registered) {
    for (const auto& [name, policy] : registered) sink.add(*policy);
  };
  (give(Registered<Policies>::all()), ...);
}

}  // namespace simt

#ifdef SIMT_POLICY_INTERFACE  // what the headers were that the library was compiled with
extern "C" {
[[gnu::visibility("default")]] extern const char simt_policy_interface[];
const char simt_policy_interface[] = SIMT_POLICY_INTERFACE;
[[gnu::visibility("default")]] void simt_give_policies(simt::PolicySink& sink);
void simt_give_policies(simt::PolicySink& sink) {
  simt::give_policies<simt::SchedulerPolicy, simt::ReplacementPolicy, simt::WritePolicy, simt::SetIndex,
                      simt::SliceHash, simt::DramSchedulerPolicy>(sink);
}
}
#else
namespace simt {

/// A policy that is not part of simt did what it must not do.
struct PolicyFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct LoadedPolicy {
  std::string kind, name;  ///< as the library has it
};

/// Registers the policies of a library, each as `name@suffix`, for the rest of the process.
/// interface: that the library must have been compiled for. Throws PolicyFault if it was not, or cannot be
/// loaded.
std::vector<LoadedPolicy> load_policies(const std::string& path, const std::string& interface,
                                        const std::string& suffix);

}  // namespace simt
#endif
