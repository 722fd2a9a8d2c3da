#include "spec.hpp"

#include <nanobind/stl/string.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings.hpp"

namespace nb = nanobind;
using namespace simt;

namespace {

// Names of enumerators, in their order.
template <class E>
std::initializer_list<const char*> names();
template <>
std::initializer_list<const char*> names<CacheReplacement>() {
  static constexpr std::initializer_list<const char*> list = {"lru", "fifo", "custom"};
  return list;
}
template <>
std::initializer_list<const char*> names<CacheWritePolicy>() {
  static constexpr std::initializer_list<const char*> list = {
      "read_only", "write_back", "write_through", "write_evict", "local_write_back_global_write_through"};
  return list;
}
template <>
std::initializer_list<const char*> names<CacheAllocation>() {
  static constexpr std::initializer_list<const char*> list = {"on_miss", "on_fill", "streaming"};
  return list;
}
template <>
std::initializer_list<const char*> names<CacheWriteAllocation>() {
  static constexpr std::initializer_list<const char*> list = {"none", "write_allocate", "fetch_on_write",
                                                              "write_validate"};
  return list;
}
template <>
std::initializer_list<const char*> names<CacheSetIndex>() {
  static constexpr std::initializer_list<const char*> list = {"linear", "xor", "ipoly", "fermi"};
  return list;
}
template <>
std::initializer_list<const char*> names<SchedulerPolicy>() {
  static constexpr std::initializer_list<const char*> list = {"lrr",       "gto",   "oldest",
                                                              "two_level", "cggty", "custom"};
  return list;
}
template <>
std::initializer_list<const char*> names<OperandModel>() {
  static constexpr std::initializer_list<const char*> list = {"operand_collector", "read_ports"};
  return list;
}
template <>
std::initializer_list<const char*> names<NetworkArbiter>() {
  static constexpr std::initializer_list<const char*> list = {"round_robin", "islip"};
  return list;
}
template <>
std::initializer_list<const char*> names<SliceHash>() {
  static constexpr std::initializer_list<const char*> list = {
      "linear", "xor", "ipoly", "pae", "random", "ipoly_modulo", "ipoly_skewed", "custom"};
  return list;
}
template <>
std::initializer_list<const char*> names<DramScheduler>() {
  static constexpr std::initializer_list<const char*> list = {"fcfs", "fr_fcfs"};
  return list;
}

// Units in the order of simt::Unit.
constexpr const char* unit_names[] = {"int",    "fp32",    "fp64",    "sfu",    "tensor",
                                      "branch", "texture", "uniform", "memory", "tma"};
static_assert(std::size(unit_names) == static_cast<size_t>(Unit::Count));

// The fields of each struct, once, for reading and writing alike.
#define SIMT_FIELD(name) v(#name, s.name)
template <class V>
void visit(V& v, ClockSpec& s) {
  SIMT_FIELD(core_khz), SIMT_FIELD(interconnect_khz), SIMT_FIELD(l2_khz), SIMT_FIELD(dram_khz);
}
template <class V>
void visit(V& v, LaunchSpec& s) {
  SIMT_FIELD(kernel_latency), SIMT_FIELD(cta_latency), SIMT_FIELD(dispatch_latency);
  SIMT_FIELD(max_concurrent_kernels);
}
template <class V>
void visit(V& v, CacheSpec& s) {
  SIMT_FIELD(sets), SIMT_FIELD(line_bytes), SIMT_FIELD(ways), SIMT_FIELD(sectored), SIMT_FIELD(replacement);
  SIMT_FIELD(write_policy), SIMT_FIELD(allocation), SIMT_FIELD(write_allocation), SIMT_FIELD(set_index);
  SIMT_FIELD(mshr_entries), SIMT_FIELD(mshr_merge), SIMT_FIELD(miss_queue), SIMT_FIELD(port_bytes);
  SIMT_FIELD(dirty_threshold);
}
template <class V>
void visit(V& v, InstructionCacheSpec& s) {
  SIMT_FIELD(perfect), SIMT_FIELD(l1), SIMT_FIELD(l1_latency), SIMT_FIELD(l1_shared_by), SIMT_FIELD(l0);
  SIMT_FIELD(prefetch_lines);
}
template <class V>
void visit(V& v, FrontEndSpec& s) {
  SIMT_FIELD(fetch_width), SIMT_FIELD(instruction_buffer), SIMT_FIELD(instruction_cache);
}
template <class V>
void visit(V& v, SchedulerSpec& s) {
  SIMT_FIELD(policy), SIMT_FIELD(active_warps), SIMT_FIELD(issue_width),
      SIMT_FIELD(dual_issue_different_units);
}
template <class V>
void visit(V& v, RegisterFileSpec& s) {
  SIMT_FIELD(registers), SIMT_FIELD(allocation_unit), SIMT_FIELD(model), SIMT_FIELD(banks);
  SIMT_FIELD(collector_units), SIMT_FIELD(port_throughput), SIMT_FIELD(read_ports_per_bank);
  SIMT_FIELD(operand_cache), SIMT_FIELD(write_back_width);
}
template <class V>
void visit(V& v, UnitSpec& s) {
  SIMT_FIELD(count), SIMT_FIELD(latency), SIMT_FIELD(initiation_interval);
}
template <class V>
void visit(V& v, std::array<UnitSpec, static_cast<size_t>(Unit::Count)>& units) {
  for (size_t i = 0; i < units.size(); ++i) v(unit_names[i], units[i]);
}
template <class V>
void visit(V& v, SmSpec& s) {
  SIMT_FIELD(count), SIMT_FIELD(sub_cores), SIMT_FIELD(sub_core_model), SIMT_FIELD(warp_size);
  SIMT_FIELD(max_warps), SIMT_FIELD(max_ctas), SIMT_FIELD(barriers_per_cta), SIMT_FIELD(front_end);
  SIMT_FIELD(scheduler), SIMT_FIELD(register_file), SIMT_FIELD(units);
}
template <class V>
void visit(V& v, SharedMemorySpec& s) {
  SIMT_FIELD(bytes), SIMT_FIELD(reserved_per_cta), SIMT_FIELD(allocation_unit), SIMT_FIELD(banks);
  SIMT_FIELD(latency), SIMT_FIELD(wide_accesses_take_wavefronts);
}
template <class V>
void visit(V& v, L1Spec& s) {
  SIMT_FIELD(cache), SIMT_FIELD(banks), SIMT_FIELD(latency), SIMT_FIELD(unified_bytes), SIMT_FIELD(adaptive);
  SIMT_FIELD(carve_out_options), SIMT_FIELD(bypass_global), SIMT_FIELD(bypass_sectors_per_cycle);
  SIMT_FIELD(flush_at_kernel_end), SIMT_FIELD(invalidate_at_membar);
}
template <class V>
void visit(V& v, LoadStoreSpec& s) {
  SIMT_FIELD(coalescing_sub_warps), SIMT_FIELD(sectored_coalescing), SIMT_FIELD(reply_buffer);
  SIMT_FIELD(sub_core_queue);
}
template <class V>
void visit(V& v, ConstantCacheSpec& s) {
  SIMT_FIELD(perfect), SIMT_FIELD(l1), SIMT_FIELD(latency), SIMT_FIELD(miss_latency);
}
template <class V>
void visit(V& v, InterconnectSpec& s) {
  SIMT_FIELD(arbiter), SIMT_FIELD(input_buffer), SIMT_FIELD(output_buffer), SIMT_FIELD(latency);
  SIMT_FIELD(credit_latency), SIMT_FIELD(flit_bytes), SIMT_FIELD(look_ahead);
  SIMT_FIELD(sm_port_sectors);
}
template <class V>
void visit(V& v, AddressMapSpec& s) {
  SIMT_FIELD(channels), SIMT_FIELD(slices_per_channel), SIMT_FIELD(hash), SIMT_FIELD(channel_bit);
  SIMT_FIELD(layout);
}
template <class V>
void visit(V& v, L2Spec& s) {
  SIMT_FIELD(slice), SIMT_FIELD(latency), SIMT_FIELD(request_queue), SIMT_FIELD(dram_queue);
  SIMT_FIELD(fill_queue), SIMT_FIELD(reply_queue), SIMT_FIELD(copies_fill), SIMT_FIELD(partitions);
  SIMT_FIELD(far_latency);
}
template <class V>
void visit(V& v, DramSpec& s) {
  SIMT_FIELD(simple), SIMT_FIELD(latency), SIMT_FIELD(scheduler), SIMT_FIELD(scheduler_queue);
  SIMT_FIELD(return_queue), SIMT_FIELD(write_queue), SIMT_FIELD(write_queue_size), SIMT_FIELD(write_high);
  SIMT_FIELD(write_low), SIMT_FIELD(bus_bytes), SIMT_FIELD(burst_length), SIMT_FIELD(data_command_ratio);
  SIMT_FIELD(dual_bus), SIMT_FIELD(banks), SIMT_FIELD(bank_groups), SIMT_FIELD(bank_group_low_bits);
  SIMT_FIELD(bank_xor), SIMT_FIELD(ccd), SIMT_FIELD(rrd), SIMT_FIELD(rcd), SIMT_FIELD(ras), SIMT_FIELD(rp);
  SIMT_FIELD(rc), SIMT_FIELD(cl), SIMT_FIELD(wl), SIMT_FIELD(cdlr), SIMT_FIELD(wr), SIMT_FIELD(ccdl);
  SIMT_FIELD(rtpl), SIMT_FIELD(faw), SIMT_FIELD(refi), SIMT_FIELD(rfc), SIMT_FIELD(per_bank_refresh);
}
template <class V>
void visit(V& v, PolicySpec& s) {
  SIMT_FIELD(scheduler), SIMT_FIELD(l1_replacement), SIMT_FIELD(l2_replacement), SIMT_FIELD(slice_hash);
}
template <class V>
void visit(V& v, Spec& s) {
  SIMT_FIELD(name), SIMT_FIELD(sm_version), SIMT_FIELD(clock), SIMT_FIELD(launch), SIMT_FIELD(sm);
  SIMT_FIELD(shared_memory), SIMT_FIELD(l1), SIMT_FIELD(load_store), SIMT_FIELD(constant_cache);
  SIMT_FIELD(interconnect), SIMT_FIELD(address_map), SIMT_FIELD(l2), SIMT_FIELD(dram), SIMT_FIELD(policy);
}
#undef SIMT_FIELD

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw std::invalid_argument("specification: " + path + ": " + reason);
}

/// Fills a struct's fields from a dict that has exactly their names as keys.
class Reader {
 public:
  Reader(nb::dict values, std::string prefix) : values_(std::move(values)), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(const char* name, T& field) {
    known_.emplace_back(name);
    const nb::str key(name);
    if (!values_.contains(key)) refuse(prefix_ + name, "missing");
    read(prefix_ + name, values_[key], field);
  }

  void finish() const {
    for (auto [key, value] : values_) {
      const std::string name = nb::cast<std::string>(nb::str(key));
      bool found = false;
      for (const auto& k : known_) found = found || k == name;
      if (!found) refuse(prefix_ + name, "unknown");
    }
  }

  template <class T>
  static void read(const std::string& path, nb::handle value, T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!nb::isinstance<nb::bool_>(value)) refuse(path, "expected a bool");
      field = nb::cast<bool>(value);
    } else if constexpr (std::is_integral_v<T>) {
      if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, field, false))
        refuse(path, "expected an integer of " + std::to_string(8 * sizeof(T)) + " bits, not negative");
    } else if constexpr (std::is_enum_v<T>) {
      read_name(path, value, field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!nb::try_cast(value, field)) refuse(path, "expected a string");
    } else if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
      if (!nb::isinstance<nb::list>(value)) refuse(path, "expected a list");
      field.clear();
      for (nb::handle item : nb::cast<nb::list>(value)) {
        read(path + "[" + std::to_string(field.size()) + "]", item, field.emplace_back());
      }
    } else {
      if (!nb::isinstance<nb::dict>(value)) refuse(path, "expected a dict");
      Reader reader(nb::cast<nb::dict>(value), path + ".");
      visit(reader, field);
      reader.finish();
    }
  }

 private:
  template <class E>
  static void read_name(const std::string& path, nb::handle value, E& field) {
    std::string found, expected;
    if (!nb::try_cast(value, found)) refuse(path, "expected a string");
    uint8_t index = 0;
    for (const char* name : names<E>()) {
      if (found == name) {
        field = static_cast<E>(index);
        return;
      }
      expected += (index++ ? ", " : "") + std::string(name);
    }
    refuse(path, "found '" + found + "', expected one of " + expected);
  }

  nb::dict values_;
  std::string prefix_;
  std::vector<std::string> known_;
};

/// Makes the dict that Reader reads.
class Writer {
 public:
  template <class T>
  void operator()(const char* name, T& field) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      values[name] = field;
    } else if constexpr (std::is_enum_v<T>) {
      values[name] = names<T>().begin()[static_cast<size_t>(field)];
    } else if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
      nb::list list;
      for (uint32_t item : field) list.append(item);
      values[name] = list;
    } else {
      Writer inner;
      visit(inner, field);
      values[name] = inner.values;
    }
  }

  nb::dict values;
};

}  // namespace

Spec spec_from_dict(nb::dict values) {
  Spec spec;
  Reader reader(std::move(values), "");
  visit(reader, spec);
  reader.finish();
  return spec;
}

void bind_spec(nb::module_& m) {
  m.def(
      "spec_roundtrip",
      [](nb::dict values) {
        Spec spec = spec_from_dict(std::move(values));
        Writer writer;
        visit(writer, spec);
        return writer.values;
      },
      nb::arg("values"), "For tests: the dict, read into the engine's specification and written out again.");
}
