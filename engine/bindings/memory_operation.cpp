#include "memory_operation.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <string>

#include "bindings.hpp"
#include "machine/memory.hpp"
#include "machine/rows.hpp"
#include "python_types.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace simt::functional;

namespace {

/// Memory that an operation reads or writes; kept alive as long as the operation.
struct HeldBytes {
  std::byte* begin = nullptr;
  uint64_t address = 0;  ///< of device memory; 0: it is the host's
  std::shared_ptr<void> owner;
};

HeldBytes device_place(const std::shared_ptr<DeviceMemory>& memory, uint64_t address, const Rows& rows) {
  if (rows.extent() > 0 && !memory->find(address, rows.extent()))
    throw nb::index_error((std::to_string(rows.extent()) + " bytes at " + memory->describe(address)).c_str());
  if (const Allocation* a = memory->find(address, 0); a && !a->unknown_from.empty())
    throw nb::index_error(
        ("`" + a->label + "` holds no values: they come from `" + a->unknown_from + "`, which is unbacked")
            .c_str());
  return {memory->host(address), address, memory};
}

/// The memory of a contiguous array, bytes, or any other buffer.
HeldBytes host_place(nb::handle object, const Rows& rows, bool writable) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(object.ptr(), view, writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) != 0) {
    delete view;
    throw nb::python_error();
  }
  const std::shared_ptr<Py_buffer> held(view, [](Py_buffer* b) {
    const nb::gil_scoped_acquire acquire;
    PyBuffer_Release(b);
    delete b;
  });
  if (const auto size = static_cast<uint64_t>(held->len); rows.extent() > size)
    throw nb::index_error(("the host's memory has " + std::to_string(size) + " bytes, the rows need " +
                           std::to_string(rows.extent()))
                              .c_str());
  return {static_cast<std::byte*>(held->buf), 0, held};
}

/// A device address, or a host object.
HeldBytes place_of(const std::shared_ptr<DeviceMemory>& memory, nb::handle where, const Rows& rows,
                   bool writable) {
  if (nb::isinstance<nb::int_>(where)) return device_place(memory, nb::cast<uint64_t>(where), rows);
  return host_place(where, rows, writable);
}

/// Tells who watches the memory that these rows were written.
void tell(const DeviceMemory& memory, const HeldBytes& there, const Rows& rows) {
  if (!memory.watch() || there.address == 0) return;
  for (uint64_t r = 0; r < rows.rows; ++r)
    memory.watch()->written(there.address + r * rows.pitch, rows.row_bytes);
}

/// pitch: 0 if the rows are contiguous.
Rows rows_of(uint64_t row_bytes, uint64_t rows, uint64_t pitch) {
  if (pitch == 0) pitch = row_bytes;
  if (pitch < row_bytes && rows > 1)
    throw nb::value_error(("rows of " + std::to_string(row_bytes) + " bytes are " + std::to_string(pitch) +
                           " bytes apart, expected at least their size")
                              .c_str());
  uint64_t end = 0;
  if (rows > 0 &&
      (__builtin_mul_overflow(rows - 1, pitch, &end) || __builtin_add_overflow(end, row_bytes, &end)))
    throw nb::value_error("the rows do not fit in the address space");
  return {row_bytes, rows, pitch};
}

}  // namespace

void bind_memory_operations(nb::module_& m) {
  nb::class_<MemoryOperation>(m, "MemoryOperation", "A copy or a fill of memory: call it to perform it.")
      .def(
          "__call__", [](const MemoryOperation& self) { self.perform(); },
          nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "copying",
      [](const std::shared_ptr<DeviceMemory>& memory, simt::python::AddressOrBuffer to,
         simt::python::AddressOrBuffer from, uint64_t row_bytes, uint64_t rows, uint64_t to_pitch,
         uint64_t from_pitch) {
        const Rows target = rows_of(row_bytes, rows, to_pitch), source = rows_of(row_bytes, rows, from_pitch);
        return MemoryOperation{
            [=, there = place_of(memory, to, target, true), here = place_of(memory, from, source, false)] {
              copy_rows(there.begin, target, here.begin, source);
              tell(*memory, there, target);
            }};
      },
      "memory"_a, "to"_a, "source"_a, "row_bytes"_a, "rows"_a = 1, "to_pitch"_a = 0, "source_pitch"_a = 0,
      "A copy of rows between device addresses and contiguous objects of the host. A pitch is the distance "
      "of rows in bytes, 0 for none between them. Raises IndexError for memory that does not hold the rows.");
  m.def(
      "filling",
      [](const std::shared_ptr<DeviceMemory>& memory, uint64_t to, uint32_t value, uint32_t element_bytes,
         uint64_t row_bytes, uint64_t rows, uint64_t pitch) {
        if ((element_bytes != 1 && element_bytes != 2 && element_bytes != 4) || row_bytes % element_bytes)
          throw nb::value_error("expected elements of 1, 2 or 4 bytes, and whole elements in a row");
        const Rows target = rows_of(row_bytes, rows, pitch);
        return MemoryOperation{[=, there = device_place(memory, to, target)] {
          fill_rows(there.begin, target, value, element_bytes);
          tell(*memory, there, target);
        }};
      },
      "memory"_a, "to"_a, "value"_a, "element_bytes"_a, "row_bytes"_a, "rows"_a = 1, "pitch"_a = 0,
      "A memset of rows: the lowest 1, 2 or 4 bytes of a value, repeated. Raises as `copying`.");
}
