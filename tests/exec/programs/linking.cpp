#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "check.hpp"

// cuLink: PTX from memory and from a file becomes one image; what is missing is said in the log.

namespace {

char caller[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 r) twice(.param .b32 x);
.extern .global .u32 offset;
.visible .entry run(.param .u64 out) {
  .reg .b64 %o; .reg .b32 %n, %f;
  ld.param.u64 %o, [out]; mov.u32 %n, 21;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %n; call (b), twice, (a); ld.param.b32 %n, [b]; }
  ld.global.u32 %f, [offset]; add.u32 %n, %n, %f;
  st.global.u32 [%o], %n;
  ret; }
)";

const char callee[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .u32 offset = 100;
.visible .func (.param .b32 r) twice(.param .b32 x) {
  .reg .b32 %x;
  ld.param.b32 %x, [x]; shl.b32 %x, %x, 1; st.param.b32 [r], %x;
  ret; }
)";

}  // namespace

int main(int, char** arguments) {
  start();
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlinkState state;
  void* image;
  size_t size;
  OK(cuLinkCreate(2, options, values, &state));
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller", 0, nullptr, nullptr));
  RETURNS(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_PTX);
  CHECK(std::strstr(log, "twice") != nullptr);
  OK(cuLinkDestroy(state));

  const std::string path = std::string(arguments[0]) + ".ptx";
  std::FILE* file = std::fopen(path.c_str(), "w");
  CHECK(file && std::fputs(callee, file) >= 0 && std::fclose(file) == 0);
  OK(cuLinkCreate(0, nullptr, nullptr, &state));
  OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, caller, sizeof caller, nullptr, 0, nullptr, nullptr));
  OK(cuLinkAddFile(state, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr));
  RETURNS(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nothing/there", 0, nullptr, nullptr),
          CUDA_ERROR_FILE_NOT_FOUND);
  RETURNS(cuLinkAddData(state, CU_JIT_INPUT_CUBIN, caller, 4, "code", 0, nullptr, nullptr),
          CUDA_ERROR_INVALID_IMAGE);
  OK(cuLinkComplete(state, &image, &size));
  CHECK(size == std::strlen(static_cast<const char*>(image)) + 1);
  CUmodule module;
  OK(cuModuleLoadData(&module, image));
  OK(cuLinkDestroy(state));
  const CUdeviceptr out = upload(std::vector<uint32_t>(1));
  launch(function(module, "run"), 1, out);
  CHECK(download<uint32_t>(out, 1)[0] == 142);
  std::puts("passed");
}
