"""System functions for kernels: printf, assert, malloc and free; functions compiled by NVRTC."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import simt

libc = ctypes.CDLL(None)


def compiled(source: str, **options: object) -> object:
    options.setdefault("functional", True)
    return simt.GPU("qv100", **options).compile(source)  # type: ignore[arg-type]


# --- printf -------------------------------------------------------------------------------------------

CONVERSIONS: list[tuple[str, list[object]]] = [
    ("%d|%5d|%-5d|%05d|%+d|% d", [1, -2, 3, -4, 5, 6]),
    ("%i %u %x %X %#x %o %#o", [-1, 2**32 - 1, 48879, 48879, 255, 8, 8]),
    ("%ld %lld %llu %lx", [ctypes.c_long(-(2**40)), ctypes.c_long(2**62), ctypes.c_ulong(2**64 - 1),
                           ctypes.c_ulong(2**40 + 1)]),
    ("%hd %hhd %hu %zu", [70000, 300, 70000, ctypes.c_ulong(5)]),
    ("%f|%10.3f|%-10.2f|%+.1f|%.0f|%#.0f", [1.5, 3.14159, 2.5, 2.25, 2.5, 3.0]),
    ("%e %.2E %g %G %g %a", [12345.678, 0.00012, 1e-5, 1e10, 100000.0, 1.0]),
    ("%f %f %g %F", [float("inf"), float("-inf"), float("nan"), float("inf")]),
    ("%c%c%5c|%-3c|", [72, 105, 33, 46]),
    ("%s|%8s|%-8s|%.2s|%%|%s", [b"text", b"right", b"left", b"cut short", b""]),
    ("%*d|%-*d|%.*f|%*.*f", [5, 42, 5, 43, 2, 3.14159, 8, 3, 2.71828]),
    ("%p", [ctypes.c_void_p(0xABCDEF)]),
    ("100%% plain text\t%5%|", []),
]  # fmt: skip


def literal(value: object) -> str:
    """A C++ expression for an argument."""
    if isinstance(value, bytes):
        return '"' + value.decode() + '"'
    if isinstance(value, float):
        if value != value:
            return "__longlong_as_double(0x7ff8000000000000ll)"
        if value in (float("inf"), float("-inf")):
            return ("-" if value < 0 else "") + "__longlong_as_double(0x7ff0000000000000ll)"
        return repr(value)
    if isinstance(value, ctypes.c_ulong):
        return f"{value.value}ul"
    if isinstance(value, ctypes.c_long):
        return f"{value.value}l"
    if isinstance(value, ctypes.c_void_p):
        return f"(void*){value.value}"
    return f"{value}u" if isinstance(value, int) and value >= 2**31 else str(value)


def reference(text: str, values: list[object]) -> str:
    """The output of C's printf for it."""
    buffer = ctypes.create_string_buffer(1000)
    arguments = [ctypes.c_double(v) if isinstance(v, float) else v for v in values]
    libc.snprintf(buffer, ctypes.c_size_t(1000), text.encode(), *arguments)
    return buffer.value.decode()


def test_conversions_print_what_c_prints() -> None:
    lines = []
    for text, values in CONVERSIONS:
        arguments = "".join(", " + literal(v) for v in values)
        escaped = text.replace("\t", "\\t")
        lines.append(f'*count++ = printf("{escaped}\\n"{arguments});')
    module = compiled(f'extern "C" __global__ void k(int* count) {{ {" ".join(lines)} }}')
    counts = np.zeros(len(CONVERSIONS), np.int32)
    module.k[1, 1](counts)
    expected = "".join(reference(text, values) + "\n" for text, values in CONVERSIONS)
    assert module.gpu.printed == expected
    assert counts.tolist() == [len(values) for _, values in CONVERSIONS]


def test_strings_from_device_memory_and_null() -> None:
    module = compiled("""
        __device__ char name[] = "global";
        extern "C" __global__ void k(const char* text) {
            char local[4] = {'a', 'b', char('0' + threadIdx.x), 0};
            printf("%s %s %s %s\\n", name, text, local, (const char*)nullptr);
        }""")
    module.k[1, 2](np.frombuffer(b"argument\0", np.uint8))
    assert module.gpu.printed == "global argument ab0 (null)\nglobal argument ab1 (null)\n"


PRINTS = """
extern "C" __global__ void k() {
    if (threadIdx.x % 3 == 1) printf("%d.%d ", blockIdx.x, threadIdx.x);
}"""


@pytest.mark.parametrize("functional", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_lanes_and_blocks_print_in_order(functional: bool, threads: int) -> None:
    module = compiled(PRINTS, functional=functional, threads=threads)
    module.k[9, 40]()
    printed = [tuple(int(n) for n in item.split(".")) for item in module.gpu.printed.split()]
    everything = [(block, thread) for block in range(9) for thread in range(1, 40, 3)]
    if functional:
        assert printed == everything
    else:
        assert sorted(printed) == everything
        for block in range(9):
            first_warp = [t for b, t in printed if b == block and t < 32]
            assert first_warp == sorted(first_warp)
        again = compiled(PRINTS, functional=False, threads=3 - threads)
        again.k[9, 40]()
        assert again.gpu.printed == module.gpu.printed


# --- assert -------------------------------------------------------------------------------------------

ASSERTS = """#include <cassert>
extern "C" __global__ void k(const int* a) {
    printf("before ");
    assert(a[threadIdx.x] >= 0);
}
"""


@pytest.mark.parametrize("functional", [True, False])
def test_a_failed_assertion_says_which_and_where(functional: bool) -> None:
    module = compiled(ASSERTS, functional=functional, code="ptx")
    a = np.arange(64, dtype=np.int32)
    module.k[1, 64](a)
    a[[37, 40]] = -1
    with pytest.raises(simt.ProgramFault, match=r"`a\[threadIdx.x\] >= 0` failed in `void k\(const int \*\)`"
                       ", kernel.cu:4") as error:  # fmt: skip
        module.k[1, 64](a)
    fault = error.value
    assert (fault.kind, fault.thread, fault.source_line) == ("assert", (37, 0, 0), 4)
    assert fault.source_text == "assert(a[threadIdx.x] >= 0);"
    assert module.gpu.printed.count("before") >= 64 + 32


# --- malloc and free ----------------------------------------------------------------------------------

HEAP = """
extern "C" __global__ void take(int** out, size_t bytes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int* p = (int*)malloc(bytes);
    if (p) for (int k = 0; k < bytes / 4; ++k) p[k] = i + k;
    out[i] = p;
}
extern "C" __global__ void give(int** in, int* sums, size_t bytes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int k = 0; k < bytes / 4; ++k) sum += in[i][k];
    free(in[i]);
    sums[i] = sum;
}
extern "C" __global__ void lists(int* out) {
    struct Node { int value; Node* next; };
    Node* head = nullptr;
    for (int i = 0; i <= threadIdx.x; ++i) head = new Node{i, head};
    int sum = 0;
    while (head) { sum += head->value; Node* next = head->next; delete head; head = next; }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void misuse(int** p, int what) {
    int* mine = (int*)malloc(40);
    if (what == 0) { free(mine); free(mine); }
    if (what == 1) free(mine + 1);
    if (what == 2) free(p);
    if (what == 3) { free(mine); *mine = 1; }
    if (what == 4) mine[10] = 1;
    if (what == 5) free(nullptr);
}"""


@pytest.mark.parametrize("functional", [True, False])
def test_memory_lives_from_malloc_to_free_across_launches(functional: bool) -> None:
    module = compiled(HEAP, functional=functional)
    gpu = module.gpu
    before = gpu.memory.used
    pointers = gpu.zeros(128, np.uint64)
    module.take[2, 64](pointers, 100)
    addresses = pointers.numpy()
    assert len(set(addresses.tolist())) == 128 and (addresses % 16 == 0).all()
    sums = np.zeros(128, np.int32)
    module.give[2, 64](pointers, sums, 100)
    assert (sums == 25 * np.arange(128) + 300).all()
    pointers.free()
    assert gpu.memory.used == before


def test_heap_addresses_do_not_depend_on_host_threads() -> None:
    found = []
    for threads in (1, 2):
        module = compiled(HEAP, functional=False, threads=threads)
        pointers = module.gpu.zeros(256, np.uint64)
        module.take[4, 64](pointers, 64)
        found.append((pointers.numpy().tolist(), module.gpu.launches[0].end_cycle))
    assert found[0] == found[1]


@pytest.mark.parametrize("functional", [True, False])
def test_new_and_delete(functional: bool) -> None:
    module = compiled(HEAP, functional=functional)
    before = module.gpu.memory.used
    out = np.zeros(64, np.int32)
    module.lists[2, 32](out)
    n = np.arange(64) % 32
    assert (out == n * (n + 1) // 2).all()
    assert module.gpu.memory.used == before


def test_malloc_gives_null_where_there_is_no_room() -> None:
    gpu = simt.GPU("qv100", functional=True, memory=1 << 20)
    module = gpu.compile(HEAP)
    pointers = np.ones(4, np.uint64)
    module.take[1, 4](pointers, 300_000)
    assert [p != 0 for p in pointers] == [True, True, True, False]


@pytest.mark.parametrize("functional", [True, False])
@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        (0, "invalid free", "0 bytes into freed `malloc in misuse`"),
        (1, "invalid free", "4 bytes into `malloc in misuse` \\(40 bytes"),
        (2, "invalid free", "which no malloc in a kernel has returned"),
        (3, "illegal address", "0 bytes into freed `malloc in misuse`"),
        (4, "illegal address", "0 bytes behind the end of `malloc in misuse`"),
    ],
)
def test_misuse_of_the_heap(functional: bool, what: int, kind: str, words: str) -> None:
    module = compiled(HEAP, functional=functional)
    with pytest.raises(simt.ProgramFault, match=words) as error:
        module.misuse[1, 1](np.zeros(1, np.uint64), what)
    assert error.value.kind == kind
    module.misuse[1, 32](np.zeros(1, np.uint64), 5)


# --- functions ----------------------------------------------------------------------------------------

FUNCTIONS = """
__device__ __noinline__ unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recursive(unsigned* out) { out[threadIdx.x] = fib(threadIdx.x % 12); }

__device__ __noinline__ long ackermann(long m, long n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void deep(long* out) { out[threadIdx.x] = ackermann(2, threadIdx.x & 7); }

typedef float (*Operation)(float, float);
__device__ __noinline__ float plus(float a, float b) { return a + b; }
__device__ __noinline__ float times(float a, float b) { return a * b; }
__device__ __noinline__ float larger(float a, float b) { return a > b ? a : b; }
__device__ Operation table[3] = {plus, times, larger};
extern "C" __global__ void indirect(const int* which, const float* a, float* out) {
    int t = threadIdx.x;
    out[t] = table[which[t] % 3](a[t], a[t + 1]);
}
__device__ __noinline__ float apply(Operation f, float x) { return f(x, 2) + f(x, 3); }
extern "C" __global__ void passed(const float* a, float* out) {
    out[threadIdx.x] = apply(threadIdx.x & 1 ? plus : times, a[threadIdx.x]);
}

struct Shape {
    int k;
    __device__ Shape(int k) : k(k) {}
    __device__ virtual float area(float x) const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    __device__ Square() : Shape(1) {}
    __device__ float area(float x) const override { return x * x; }
};
struct Circle : Shape {
    __device__ Circle() : Shape(2) {}
    __device__ float area(float x) const override { return 3 * x * x; }
};
extern "C" __global__ void virtuals(float* out) {
    Shape* s;
    if (threadIdx.x & 1) s = new Square; else s = new Circle;
    out[threadIdx.x] = s->area(threadIdx.x) + s->k;
    delete s;
}

struct Big { int a[8]; double d; };
__device__ __noinline__ Big make(int x) {
    Big b;
    for (int i = 0; i < 8; i++) b.a[i] = x * i;
    b.d = x * .5;
    return b;
}
__device__ __noinline__ double sum(Big b, float4 f, char c, short s) {
    double r = b.d;
    for (int i = 0; i < 8; i++) r += b.a[i];
    b.a[0] = 1000;
    return r + f.x + f.w + c + s;
}
extern "C" __global__ void structures(double* out, Big in, float3 f) {
    Big b = make(threadIdx.x + in.a[3]);
    out[threadIdx.x] = sum(b, make_float4(f.x, f.y, f.z, 1), (char)in.a[0], (short)in.a[1]) + b.a[0];
}

extern "C" __global__ void choose(const int* which, int* out) {
    int r;
    switch (which[threadIdx.x]) {
        case 0: r = 11; break;
        case 1: r = out[threadIdx.x] * 3; break;
        case 2: r = out[threadIdx.x] - 7; break;
        case 3: r = __clz(out[threadIdx.x]); break;
        case 4: r = out[threadIdx.x] ^ 0x55; break;
        case 5: r = out[threadIdx.x] << 2; break;
        case 6: r = ~out[threadIdx.x]; break;
        default: r = -1;
    }
    out[threadIdx.x] = r;
}
"""


@pytest.fixture(scope="module", params=["values", "timing"])
def functions(request: pytest.FixtureRequest) -> object:
    return compiled(FUNCTIONS, functional=request.param == "values")


LANES = np.arange(32)


def test_recursion(functions: object) -> None:
    out = np.zeros(32, np.uint32)
    functions.recursive[1, 32](out)  # type: ignore[attr-defined]
    fibonacci = [0, 1]
    while len(fibonacci) < 12:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert (out == np.array(fibonacci)[LANES % 12]).all()
    deep = np.zeros(32, np.int64)
    functions.deep[1, 32](deep)  # type: ignore[attr-defined]
    assert (deep == 2 * (LANES & 7) + 3).all()


def test_function_pointers(functions: object) -> None:
    which = np.random.default_rng(1).integers(0, 9, 32, np.int32)
    a = np.random.default_rng(2).random(33, np.float32)
    out = np.zeros(32, np.float32)
    functions.indirect[1, 32](which, a, out)  # type: ignore[attr-defined]
    expected = np.choose(which % 3, [a[:-1] + a[1:], a[:-1] * a[1:], np.maximum(a[:-1], a[1:])])
    assert (out == expected).all()
    functions.passed[1, 32](a, out)  # type: ignore[attr-defined]
    x = a[:32]
    assert (out == np.where(LANES & 1, (x + 2) + (x + 3), x * 2 + x * 3).astype(np.float32)).all()


def test_virtual_functions(functions: object) -> None:
    out = np.zeros(32, np.float32)
    functions.virtuals[1, 32](out)  # type: ignore[attr-defined]
    assert (out == np.where(LANES & 1, LANES**2 + 1, 3 * LANES**2 + 2)).all()


def test_structures_by_value(functions: object) -> None:
    big = np.zeros(1, [("a", np.int32, 8), ("d", np.float64)])
    big["a"] = [5, 6, 0, 2, 0, 0, 0, 0]
    three = np.array([(1.5, 2.5, 3.5)], "f4,f4,f4")
    out = np.zeros(32, np.float64)
    functions.structures[1, 32](out, big[0], three[0])  # type: ignore[attr-defined]
    x = LANES + 2
    assert (out == 28 * x + x * 0.5 + 1.5 + 1 + 5 + 6).all()


def test_a_switch_with_a_jump_table(functions: object) -> None:
    which = (LANES % 8).astype(np.int32)
    values = (LANES * 77 + 1).astype(np.int32)
    out = values.copy()
    functions.choose[1, 32](which, out)  # type: ignore[attr-defined]
    lz = np.array([32 - int(v).bit_length() for v in values])
    expected = np.choose(
        which, [11 + 0 * values, values * 3, values - 7, lz, values ^ 0x55, values << 2, ~values, -1]
    )
    assert (out == expected).all()


def test_kernels_that_launch_kernels_are_refused() -> None:
    source = """.version 8.0
    .target sm_70
    .address_size 64
    .extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);
    .visible .entry k() {
      .param .b64 p; .param .b64 s; .param .b32 r;
      call (r), cudaLaunchDeviceV2, (p, s);
      ret;
    }"""
    with pytest.raises(simt.SimtError, match=r"cudaLaunchDeviceV2.*kernels that launch kernels"):
        simt.GPU("qv100").load(source)
