#pragma once
#include <deque>
#include <map>
#include <string>
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
///     const Registered<SchedulerPolicy> registered_oldest{
///         {{"oldest", "The oldest ready warp.", ""}, make_scheduler<Oldest>}};
template <class Policy>
class Registered {
 public:
  using Entries = std::map<std::string_view, const Policy*>;

  explicit Registered(const Policy& policy) : policy_(policy) { entries().emplace(policy_.name, &policy_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  static const Entries& all() { return entries(); }
  /// A policy that is not part of simt, for the rest of the process. If there is one of this name it stays.
  static void add(const std::string& name, const Policy& policy) {
    struct Kept {
      std::string name, meaning, source;
      Policy policy;
    };
    static std::deque<Kept> all;
    if (entries().count(name)) return;
    Kept& kept =
        all.emplace_back(Kept{name, std::string(policy.meaning), std::string(policy.source), policy});
    kept.policy.name = kept.name;
    kept.policy.meaning = kept.meaning;
    kept.policy.source = kept.source;
    entries().emplace(kept.policy.name, &kept.policy);
  }

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
