#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bindings.hpp"
#include "machine/memory.hpp"
#include "machine/memory_changes.hpp"
#include "python_types.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt::functional;

namespace {

void require_backed(const DeviceMemory& memory, uint64_t address) {
  if (const Allocation* a = memory.find(address, 0); a && a->is_unbacked)
    throw nb::index_error(("`" + a->label + "` is unbacked: it holds no values").c_str());
}

void require_known(const DeviceMemory& memory, uint64_t address) {
  require_backed(memory, address);
  if (const Allocation* a = memory.find(address, 0); a && !a->unknown_from.empty())
    throw nb::index_error(("the values of `" + a->label + "` come from `" + a->unknown_from +
                           "`, which is unbacked: they are not known")
                              .c_str());
}

}  // namespace

void bind_device_memory(nb::module_& m) {
  nb::class_<AddressSpace>(m, "AddressSpace", "What the devices of a process share.")
      .def(nb::init<uint64_t, uint64_t, uint32_t>(), "begin"_a, "stride"_a, "devices"_a,
           "Raises MemoryError where the host has too few addresses left.");
  nb::class_<DeviceMemory>(m, "DeviceMemory")
      .def(nb::init<uint64_t, uint64_t, bool>(), "capacity"_a, "base"_a = window::global,
           "exact_bounds"_a = false)
      .def(nb::init<uint64_t, std::shared_ptr<AddressSpace>, uint32_t, bool>(), "capacity"_a, "space"_a,
           "number"_a, "exact_bounds"_a = false)
      .def_prop_ro_static(
          "alignment", [](nb::handle) { return DeviceMemory::alignment; },
          "Of the address of each allocation, in bytes.")
      .def_prop_ro_static(
          "everywhere", [](nb::handle) { return Allocation::everywhere; },
          "For `open`: all devices, as is the host's memory that a device holds.")
      .def_prop_ro("capacity", &DeviceMemory::capacity)
      .def_prop_ro("used", &DeviceMemory::used)
      .def_prop_ro("file", &DeviceMemory::file, "The file that holds it, which other processes may map.")
      .def_prop_ro("base", &DeviceMemory::base, "Its first address.")
      .def(
          "allocate",
          [](DeviceMemory& self, uint64_t size, std::string label) {
            return self.allocate(size, std::move(label));
          },
          "size"_a, "label"_a, "0 if there is no room.")
      .def(
          "allocate_unbacked",
          [](DeviceMemory& self, uint64_t size, std::string label) {
            return self.allocate_unbacked(size, std::move(label));
          },
          "size"_a, "label"_a,
          "As `allocate`, without memory of the host: it holds no values. Raises MemoryError where the host "
          "has too few mappings.")
      .def_prop_ro("has_unknown", &DeviceMemory::has_unknown, "Whether an allocation holds no values.")
      .def(
          "allocate_at",
          [](DeviceMemory& self, uint64_t address, uint64_t size, std::string label, bool by_kernel) {
            return self.allocate_at(address, size, std::move(label), by_kernel ? Owner::Kernel : Owner::Host);
          },
          "address"_a, "size"_a, "label"_a, "by_kernel"_a = false,
          "False where the address is not free or no multiple of 256.")
      .def(
          "allocations",
          [](const DeviceMemory& self) {
            std::vector<std::tuple<uint64_t, uint64_t, std::string, bool>> all;
            for (const Allocation& a : self.allocations())
              if (a.owner != Owner::Launch)
                all.emplace_back(a.address, a.size, a.label, a.owner == Owner::Kernel);
            return all;
          },
          "All that programs have allocated: (address, size, label, whether by a kernel's malloc), by "
          "address.")
      .def(
          "free",
          [](DeviceMemory& self, uint64_t address, bool by_kernel) {
            return self.free(address, by_kernel ? Owner::Kernel : Owner::Host);
          },
          "address"_a, "by_kernel"_a = false,
          "False if `address` is not the beginning of an allocation of the host, or of a kernel's malloc.")
      .def(
          "copy_on_write",
          [](const DeviceMemory& self) { return std::shared_ptr<DeviceMemory>(self.copy_on_write()); },
          "A copy that shares pages with this memory until it writes them.")
      .def(
          "apply_changes",
          [](DeviceMemory& self, const nb::bytes& changes) {
            return apply_changes(self, reinterpret_cast<const std::byte*>(changes.c_str()), changes.size());
          },
          "changes"_a, "Makes changes that MemoryChanges found. False if they are malformed.")
      .def("open", &DeviceMemory::open, "address"_a, "devices"_a,
           "Lets other devices of its address space access an allocation: bit n for number n. False if there "
           "is none at the address.")
      .def("reach", &DeviceMemory::reach, "number"_a, "all"_a,
           "Whether kernels of this device may access all memory of that device.")
      .def("describe", &DeviceMemory::describe, "address"_a)
      .def(
          "write",
          [](DeviceMemory& self, uint64_t address, nb::bytes data) {
            if (!self.find(address, data.size()))
              throw nb::index_error(
                  ("no allocation holds what is written: " + self.describe(address)).c_str());
            require_backed(self, address);
            std::memcpy(self.host(address), data.c_str(), data.size());
            self.make_known(address, data.size());
            if (self.watch()) self.watch()->written(address, data.size());
          },
          "address"_a, "data"_a)
      .def(
          "read",
          [](DeviceMemory& self, uint64_t address, uint64_t size) {
            if (!self.find(address, size))
              throw nb::index_error(("no allocation holds what is read: " + self.describe(address)).c_str());
            require_known(self, address);
            return nb::bytes(reinterpret_cast<const char*>(self.host(address)), size);
          },
          "address"_a, "size"_a)
      .def(
          "view",
          [](nb::handle self, uint64_t address, uint64_t size) {
            auto& memory = nb::cast<DeviceMemory&>(self);
            if (!memory.find(address, size))
              throw nb::index_error(("no allocation holds this: " + memory.describe(address)).c_str());
            require_known(memory, address);
            return nb::steal<simt::python::MemoryView>(PyMemoryView_FromMemory(
                reinterpret_cast<char*>(memory.host(address)), static_cast<Py_ssize_t>(size), PyBUF_WRITE));
          },
          "address"_a, "size"_a, "Writable view of device memory, valid while the memory object lives.");

  nb::class_<MemoryChanges>(m, "MemoryChanges")
      .def(nb::init<DeviceMemory&, const DeviceMemory&>(), "memory"_a, "copy"_a, nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>(), "What a launch on a copy of memory has changed.")
      .def(
          "take",
          [](MemoryChanges& self, size_t limit) {
            std::vector<std::byte> found;
            {
              nb::gil_scoped_release release;
              found = self.take(limit);
            }
            return nb::bytes(reinterpret_cast<const char*>(found.data()), found.size());
          },
          "limit"_a,
          "The next changes, about `limit` bytes, which are made in memory as well; empty at the end.");
}
