#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>

#include "bindings.hpp"
#include "check/checker.hpp"
#include "python_types.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using simt::check::Access;
using simt::check::Checker;
using simt::check::Checks;
using simt::check::Finding;
using simt::python::RawAccess;
using simt::python::RawFinding;

Checks checks_of(const std::vector<std::string>& names) {
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return {has("race"), has("init"), has("sync"), has("memory"), has("leak"), has("weak")};
}

RawAccess raw(const Access& a) {
  RawAccess d;
  d["what"] = a.what;
  d["file"] = a.file;
  d["line"] = a.line;
  d["inner"] = a.inner;
  d["position"] = a.position;
  d["instruction"] = a.instruction;
  d["thread"] = nb::make_tuple(a.thread[0], a.thread[1], a.thread[2]);
  d["block"] = nb::make_tuple(a.block[0], a.block[1], a.block[2]);
  d["address"] = a.address;
  d["space"] = a.space;
  d["object"] = a.object;
  d["kernel"] = a.kernel;
  return d;
}

RawFinding raw(const Finding& f) {
  RawFinding d;
  d["check"] = f.check;
  d["kind"] = f.kind;
  d["kernel"] = f.kernel;
  d["detail"] = f.detail;
  d["first"] = raw(f.first);
  d["second"] = raw(f.second);
  d["count"] = f.count;
  return d;
}

}  // namespace

void bind_checker(nb::module_& m) {
  nb::class_<Checker>(m, "Checker", "Checks what launches execute: see simt.check.")
      .def(
          "__init__",
          [](Checker* self, const std::vector<std::string>& checks) {
            new (self) Checker(checks_of(checks));
          },
          "checks"_a)
      .def("begin_fresh", &Checker::begin_fresh, "address"_a, "size"_a,
           "The host has allocated memory that holds nothing yet.")
      .def("begin_work", &Checker::begin_work, "number"_a, "others"_a, "kept"_a,
           "The next launch is this work of the program. others: work submitted before that may run at the "
           "same time; kept: later work may as well.")
      .def(
          "host_work",
          [](Checker& self, uint64_t number, const std::vector<uint64_t>& others, bool kept,
             const std::string& what,
             const std::vector<std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, bool>>& rows) {
            std::vector<Checker::Rows> all;
            for (const auto& [address, bytes, count, pitch, writes] : rows)
              all.push_back({address, bytes, count, pitch, writes});
            self.host_work(number, others, kept, what, all);
          },
          "number"_a, "others"_a, "kept"_a, "what"_a, "rows"_a,
          "A copy or a fill has been done. rows: address, bytes, number, bytes apart, and whether they are "
          "written.")
      .def("forget_work", &Checker::forget_work, "number"_a, "No later work runs at the same time as this.")
      .def("written", &Checker::written, "address"_a, "size"_a, "The host has written there.")
      .def(
          "heap",
          [](const Checker& self) {
            std::vector<std::pair<uint64_t, RawAccess>> all;
            for (const auto& [address, access] : self.heap()) all.emplace_back(address, raw(access));
            return all;
          },
          "Where kernels have allocated what they have not freed: addresses and places.")
      .def_prop_ro("awaited", &Checker::awaited,
                   "What mbarriers wait for that were looked at last, in words.")
      .def("watch", &Checker::watch_memory, "memory"_a, "Is told what becomes of this memory.")
      .def_prop_ro(
          "findings",
          [](Checker& self) {
            std::vector<RawFinding> all;
            for (const Finding& f : self.findings()) all.push_back(raw(f));
            return all;
          },
          "What has been found, in the order in which it was.")
      .def_prop_ro("shadow_bytes", &Checker::shadow_bytes,
                   "Of the host's memory that says who has accessed device memory.");
}
