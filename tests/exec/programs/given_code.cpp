#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "check.hpp"

// Modules of machine code from files, from memory and through cuLink. With "refused" before the names of the
// files, loading them fails.

namespace {

void works(CUmodule module) {
  const CUdeviceptr out = upload(std::vector<uint32_t>(32));
  launch(function(module, "run"), 32, out, 3u);
  const auto found = download<uint32_t>(out, 32);
  for (uint32_t i = 0; i < 32; ++i) CHECK(found[i] == 3 * i);
}

}  // namespace

int main(int count, char** arguments) {
  start();
  CUmodule module;
  const bool refused = std::strcmp(arguments[1], "refused") == 0;
  for (int k = refused ? 2 : 1; k < count; ++k) {
    if (refused) {
      RETURNS(cuModuleLoad(&module, arguments[k]), CUDA_ERROR_NO_BINARY_FOR_GPU);
      continue;
    }
    OK(cuModuleLoad(&module, arguments[k]));
    works(module);
    std::ifstream file(arguments[k], std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    OK(cuModuleLoadData(&module, bytes.data()));
    works(module);
    const bool is_cubin = bytes.starts_with("\x7f" "ELF");
    CUlinkState state;
    void* image;
    size_t size;
    OK(cuLinkCreate(0, nullptr, nullptr, &state));
    OK(cuLinkAddData(state, is_cubin ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_FATBINARY, bytes.data(),
                     bytes.size(), "code", 0, nullptr, nullptr));
    OK(cuLinkComplete(state, &image, &size));
    OK(cuModuleLoadData(&module, image));
    works(module);
    OK(cuLinkDestroy(state));
  }
  std::puts("passed");
}
