#pragma once
#include <map>
#include <string_view>

namespace simt {

/// The description of a policy. Each kind of policy derives from it.
struct PolicyText {
  std::string_view name;     ///< used in specifications
  std::string_view meaning;  ///< one sentence
  std::string_view source;   ///< publication, or the simulator it matches; may be empty
};

/// The policies of one kind, by name. A policy registers itself where it is defined:
///
///     const Registered<SchedulerPolicy> registered_oldest{{"oldest", "The oldest ready warp.", "",
///     make<Oldest>}};
template <class Policy>
class Registered {
 public:
  using Entries = std::map<std::string_view, const Policy*>;

  explicit Registered(const Policy& policy) : policy_(policy) { entries().emplace(policy_.name, &policy_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  static const Entries& all() { return entries(); }

 private:
  static Entries& entries() {
    static Entries all;
    return all;
  }
  Policy policy_;
};

/// A specification's choice of policy.
template <class Policy>
class Choice {
 public:
  using Registry = Registered<Policy>;

  Choice() = default;
  explicit Choice(const Policy* policy) : policy_(policy) {}

  /// Empty if no such policy is registered.
  static Choice named(std::string_view name) {
    const auto found = Registry::all().find(name);
    return Choice(found == Registry::all().end() ? nullptr : found->second);
  }
  explicit operator bool() const { return policy_ != nullptr; }
  const Policy* operator->() const { return policy_; }
  const Policy& operator*() const { return *policy_; }

 private:
  const Policy* policy_ = nullptr;
};

}  // namespace simt
