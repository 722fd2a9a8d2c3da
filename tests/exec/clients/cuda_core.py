"""cuda.core: kernels from source, streams, events, memory resources, graphs."""

import sys

import cuda.bindings
import numpy as np
from cuda.core import (
    Device,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    PinnedMemoryResource,
    Program,
    ProgramOptions,
    StreamOptions,
    launch,
)

TIMED = "timed" in sys.argv
SOURCE = """
template <typename T>
__global__ void axpy(T a, const T* x, T* y, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += a * x[i];
}

extern "C" __global__ void reversed(const int* in, int* out) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""

device = Device()
device.set_current()
assert device.properties.multiprocessor_count > 0 and device.properties.warp_size == 32
stream = device.create_stream()
other = device.create_stream(options=StreamOptions(priority=-1))
pinned = LegacyPinnedMemoryResource()


def array(buffer, element, count):
    """Memory that the host can read, as a NumPy array."""
    return np.from_dlpack(buffer).view(element)[:count]


program = Program(SOURCE, "c++", ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
names = ("axpy<float>", "axpy<double>")
module = program.compile("ptx", name_expressions=names)

# Templates, and timing of a launch.
n = 3000
for real, name in zip((np.float32, np.float64), names, strict=True):
    size = n * np.dtype(real).itemsize
    hosts = [pinned.allocate(size, stream=stream) for _ in "xy"]
    x, y = (array(host, real, n) for host in hosts)
    x[:] = np.arange(n)
    y[:] = 1
    buffers = [device.allocate(size, stream=stream) for _ in "xy"]
    for host, buffer in zip(hosts, buffers, strict=True):
        buffer.copy_from(host, stream=stream)
    kernel = module.get_kernel(name)
    assert kernel.attributes.max_threads_per_block >= 128
    assert kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0) > 0
    start, end = (device.create_event(options=EventOptions(timing_enabled=True)) for _ in "se")
    stream.record(start)
    launch(stream, LaunchConfig(grid=4, block=128), kernel, real(2), buffers[0], buffers[1], np.uint64(n))
    stream.record(end)
    buffers[1].copy_to(hosts[1], stream=stream)
    stream.sync()
    assert np.array_equal(y, 1 + 2 * np.arange(n))
    assert (end - start > 0) == TIMED
    for buffer in (*buffers, *hosts):
        buffer.close(stream)

# Two streams; shared, managed and pinned memory; memory fills.
count = 256
reversed = module.get_kernel("reversed")
config = LaunchConfig(grid=1, block=count, shmem_size=4 * count)
if cuda.bindings.__version__.startswith("12."):  # CUDA 12 has no pools of such memory
    managed, pool = (pinned.allocate(4 * count, stream=stream) for _ in "mp")
else:
    managed = ManagedMemoryResource(
        ManagedMemoryResourceOptions(preferred_location=0, preferred_location_type="device")
    ).allocate(4 * count, stream=stream)
    pool = PinnedMemoryResource().allocate(4 * count, stream=stream)
middle = device.allocate(4 * count, stream=stream)
middle.fill(b"\7", stream=stream)
stream.sync()
array(managed, np.int32, count)[:] = np.arange(count)
launch(stream, config, reversed, managed, middle)
other.wait(stream)
launch(other, config, reversed, middle, pool)
other.sync()
assert np.array_equal(array(pool, np.int32, count), np.arange(count))
middle.fill(np.int32(9), stream=stream)
middle.copy_to(pool, stream=stream)
stream.sync()
assert (array(pool, np.int32, count) == 9).all()

# A graph with two branches.
builder = device.create_graph_builder().begin_building()
launch(builder, config, reversed, managed, middle)
left, right = builder.split(2)
last = device.allocate(4 * count, stream=stream)
stream.sync()
launch(left, config, reversed, middle, pool)
launch(right, config, reversed, middle, last)
graph = builder.join(left, right).end_building().complete()
array(managed, np.int32, count)[:] = 5 * np.arange(count)
graph.upload(stream)
graph.launch(stream)
stream.sync()
assert np.array_equal(array(pool, np.int32, count), 5 * np.arange(count))
last.copy_to(pool, stream=stream)
stream.sync()
assert np.array_equal(array(pool, np.int32, count), 5 * np.arange(count))
print("ok")
