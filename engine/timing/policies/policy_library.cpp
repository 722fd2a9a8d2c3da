#include "timing/policies/policy_library.hpp"

#include <dlfcn.h>

#include <cstring>

namespace simt {
namespace {

/// What a policy throws becomes a PolicyFault with its name.
template <class Call>
decltype(auto) guarded(const std::string& name, Call call) {
  try {
    return call();
  } catch (const PolicyFault&) {
    throw;
  } catch (const std::exception& error) {
    throw PolicyFault(name + ": " + error.what());
  } catch (...) {
    throw PolicyFault(name + ": it throws something that is no std::exception");
  }
}

class CheckedScheduler final : public WarpScheduler {
 public:
  CheckedScheduler(const std::string& name, const Setup& setup, std::unique_ptr<WarpScheduler> inner)
      : WarpScheduler(setup), name_(name), inner_(std::move(inner)) {}

  void begin_cycle() override {
    inner_->issued(static_cast<int32_t>(last_));
    guarded(name_, [&] { inner_->begin_cycle(); });
  }
  int32_t choose(uint64_t candidates, uint64_t cycle) override {
    const int32_t chosen = guarded(name_, [&] { return inner_->choose(candidates, cycle); });
    if (chosen == -1 || (chosen >= 0 && chosen < 64 && (candidates >> chosen & 1))) return chosen;
    throw PolicyFault(name_ + ": choose() returned " + std::to_string(chosen) +
                      ", expected a position among the candidates, or -1");
  }
  uint64_t asks_again(uint64_t cycle) const override {
    return guarded(name_, [&] { return inner_->asks_again(cycle); });
  }
  void l1_accessed(uint32_t position, const L1Access& access) override {
    guarded(name_, [&] { inner_->l1_accessed(position, access); });
  }
  void l1_evicted(uint32_t position, uint64_t line_address, uint64_t cycle) override {
    guarded(name_, [&] { inner_->l1_evicted(position, line_address, cycle); });
  }

 private:
  std::string name_;
  std::unique_ptr<WarpScheduler> inner_;
};

class CheckedReplacement final : public Replacement {
 public:
  CheckedReplacement(const std::string& name, std::unique_ptr<Replacement> inner)
      : name_(name), inner_(std::move(inner)) {}

  void allocated(uint32_t line, const LineUse& use) override {
    guarded(name_, [&] { inner_->allocated(line, use); });
  }
  void used(uint32_t line, const LineUse& use) override {
    guarded(name_, [&] { inner_->used(line, use); });
  }
  int32_t victim(uint32_t first, std::span<const uint8_t> evictable) const override {
    const int32_t way = guarded(name_, [&] { return inner_->victim(first, evictable); });
    const bool possible = way >= 0 && static_cast<size_t>(way) < evictable.size();
    if (way == -1 || (possible && evictable[static_cast<size_t>(way)])) return way;
    throw PolicyFault(name_ + ": victim() returned " + std::to_string(way) +
                      ", expected an evictable way, or -1");
  }

 private:
  std::string name_;
  std::unique_ptr<Replacement> inner_;
};

class CheckedDramScheduler final : public DramScheduler {
 public:
  CheckedDramScheduler(const std::string& name, std::unique_ptr<DramScheduler> inner)
      : name_(name), inner_(std::move(inner)) {}

  bool full(bool write) const override {
    return guarded(name_, [&] { return inner_->full(write); });
  }
  void push(const DramRequest& request) override {
    guarded(name_, [&] { inner_->push(request); });
    expect(pending_ + 1, "push()");
  }
  bool next(std::span<const uint32_t> rows, uint64_t busy, uint32_t& turn, DramRequest& chosen) override {
    const bool found = guarded(name_, [&] { return inner_->next(rows, busy, turn, chosen); });
    if (found && (chosen.bank >= rows.size() || (busy >> chosen.bank & 1)))
      throw PolicyFault(name_ + ": next() chose a request for bank " + std::to_string(chosen.bank) +
                        ", expected one that is free");
    if (turn >= rows.size())
      throw PolicyFault(name_ + ": next() set `turn` to " + std::to_string(turn) + ", expected a bank");
    expect(pending_ - found, "next()");
    return found;
  }

 private:
  void expect(uint32_t pending, const char* after) {
    pending_ = inner_->pending();
    if (pending_ != pending)
      throw PolicyFault(name_ + ": after " + after + " its pending_ is " + std::to_string(pending_) +
                        ", expected " + std::to_string(pending) + ", the number of requests that it holds");
  }

  std::string name_;
  std::unique_ptr<DramScheduler> inner_;
};

class Loader final : public PolicySink {
 public:
  explicit Loader(const std::string& suffix) : suffix_(suffix) {}

  void add(const SchedulerPolicy& policy) override {
    const auto checked = [make = policy.make, name = text_of(policy)](const WarpScheduler::Setup& setup) {
      return std::make_unique<CheckedScheduler>(name, setup, guarded(name, [&] { return make(setup); }));
    };
    auto changed = policy;
    changed.make = checked;
    keep(changed);
  }
  void add(const ReplacementPolicy& policy) override {
    auto changed = policy;
    if (policy.make)
      changed.make = [make = policy.make, name = text_of(policy)](const CacheShape& shape) {
        return std::make_unique<CheckedReplacement>(name, guarded(name, [&] { return make(shape); }));
      };
    keep(changed);
  }
  void add(const DramSchedulerPolicy& policy) override {
    auto changed = policy;
    changed.make = [make = policy.make, name = text_of(policy)](const DramSpec& spec) {
      return std::make_unique<CheckedDramScheduler>(name, guarded(name, [&] { return make(spec); }));
    };
    keep(changed);
  }
  void add(const WritePolicy& policy) override { keep(policy); }
  void add(const SetIndex& policy) override { keep(policy); }
  void add(const SliceHash& policy) override { keep(policy); }

  std::vector<LoadedPolicy> loaded;

 private:
  template <class Policy>
  static std::string text_of(const Policy& policy) {
    return std::string(Policy::kind) + " " + std::string(policy.name);
  }
  template <class Policy>
  void keep(const Policy& policy) {
    loaded.push_back({Policy::kind, std::string(policy.name)});
    Registered<Policy>::add(std::string(policy.name) + "@" + suffix_, policy);
  }

  std::string suffix_;
};

}  // namespace

std::vector<LoadedPolicy> load_policies(const std::string& path, const std::string& interface,
                                        const std::string& suffix) {
  // Stays open: the policies' code is in it.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw PolicyFault(dlerror());
  const auto* found = static_cast<const char*>(dlsym(library, "simt_policy_interface"));
  auto* give = reinterpret_cast<void (*)(PolicySink&)>(dlsym(library, "simt_give_policies"));
  if (!found || !give) throw PolicyFault(path + ": not a library of policies");
  if (interface != found) throw PolicyFault(path + ": built for another version of simt");
  Loader loader(suffix);
  give(loader);
  return loader.loaded;
}

}  // namespace simt
