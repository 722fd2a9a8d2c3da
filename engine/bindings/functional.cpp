#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "machine/fault.hpp"
#include "ptx/translation/translator.hpp"
#include "sass/code.hpp"

namespace nb = nanobind;

namespace {

using simt::functional::ProgramFault;
using simt::functional::TranslationError;

void bind_errors(nb::module_& m) {
  static PyObject* fault_error =
      PyErr_NewException("simt._engine.functional.ProgramFault", PyExc_RuntimeError, nullptr);
  m.attr("ProgramFault") = nb::handle(fault_error);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const TranslationError& e) {
      PyErr_SetString(nb::module_::import_("simt.errors").attr("PtxError").ptr(), e.what());
    } catch (const simt::sass::CodeError& e) {
      PyErr_SetString(nb::module_::import_("simt.errors").attr("SassError").ptr(), e.what());
    } catch (const ProgramFault& e) {
      nb::object error = nb::steal(PyObject_CallFunction(fault_error, "s", e.what()));
      if (!error.is_valid()) return;
      error.attr("kind") = e.kind;
      error.attr("kernel") = e.kernel;
      error.attr("block") = nb::make_tuple(e.cta[0], e.cta[1], e.cta[2]);
      error.attr("thread") = nb::make_tuple(e.thread[0], e.thread[1], e.thread[2]);
      error.attr("launch") = e.launch;
      error.attr("ptx_line") = e.ptx_line;
      error.attr("instruction") = e.instruction;
      error.attr("source_file") = e.source_file;
      error.attr("source_line") = e.source_line;
      error.attr("address") = e.has_address ? nb::object(nb::int_(e.address)) : nb::none();
      PyErr_SetObject(fault_error, error.ptr());
    }
  });
}

}  // namespace

void bind_functional(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("functional", "Functional execution of PTX.");
  bind_errors(m);
  bind_device_memory(m);
  bind_memory_operations(m);
  bind_modules(m);
  bind_machine_code(m);
  bind_checker(m);
  bind_launches(m);
  bind_recorder(m);
  bind_tensor_maps(m);
  bind_textures(m);
}
