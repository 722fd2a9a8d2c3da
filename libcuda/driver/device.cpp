#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "process.hpp"

// Initialisation and device properties.

using namespace simt::driver;

namespace {

/// Tells simt that the program ends in order: work that it has not waited for is still done. A thread that is
/// within a call may hold the lock for ever; then that work is lost, as on hardware.
void leave() {
  Process& process = Process::get();
  const std::unique_lock lock(process.lock, std::try_to_lock);
  if (!lock || !process.initialised) return;  // also in a process forked from the program
  ++process.waiting;                          // nothing runs ahead any more
  for (const auto& device : process.devices) {
    try {
      if (device) device->connection.send(LeaveRequest{});
    } catch (const Failure&) {  // simt has ended
    }
  }
}

/// The device of a context whose memory kernels of `own` are to access.
Device& peer_of(CUcontext context, const Device& own) {
  Device& peer = object_of<Context>(context, CUDA_ERROR_INVALID_CONTEXT).device;
  require(&peer != &own && own.joined && peer.joined, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  return peer;
}

}  // namespace

CUresult cuInit(unsigned flags) {
  Process& process = Process::get();
  const std::lock_guard guard(process.lock);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (process.initialised) return CUDA_SUCCESS;
  const char* count = std::getenv("SIMT_EXEC_DEVICES");
  if (!count) {
    say_once("this CUDA library belongs to simt: start the program with `simt exec -- ...`");
    return CUDA_ERROR_NO_DEVICE;
  }
  process.devices.resize(static_cast<size_t>(std::max(1, std::atoi(count))));
  std::atexit(leave);
  process.initialised = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 13050;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return guarded([&] {
    require(device != nullptr);
    require(ordinal >= 0 && static_cast<size_t>(ordinal) < Process::get().devices.size(),
            CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return guarded([&] {
    require(count != nullptr);
    *count = static_cast<int>(Process::get().devices.size());
  });
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return guarded([&] {
    require(name != nullptr && size > 0);
    const std::string& text = Process::get().device(device).name;
    const size_t taken = text.copy(name, static_cast<size_t>(size) - 1);
    name[taken] = '\0';
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return guarded([&] {
    require(uuid != nullptr);
    std::memcpy(uuid->bytes, Process::get().device(device).uuid.data(), sizeof uuid->bytes);
  });
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return guarded([&] {
    require(bytes != nullptr);
    *bytes = Process::get().device(device).memory;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return guarded([&] {
    require(value != nullptr && attribute > 0);
    *value = Process::get().device(device).attribute(attribute);
  });
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  return guarded([&] {
    require(properties != nullptr);
    const Device& d = Process::get().device(device);
    properties->maxThreadsPerBlock = d.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int k = 0; k < 3; ++k) {
      properties->maxThreadsDim[k] =
          d.attribute(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + k));
      properties->maxGridSize[k] =
          d.attribute(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + k));
    }
    properties->sharedMemPerBlock = d.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    properties->totalConstantMemory = d.attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    properties->SIMDWidth = d.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    properties->memPitch = d.attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    properties->regsPerBlock = d.attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    properties->clockRate = d.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    properties->textureAlign = d.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return guarded([&] {
    require(major != nullptr && minor != nullptr);
    const Device& d = Process::get().device(device);
    *major = d.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = d.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  return guarded([&] {
    require(id != nullptr && size > 0);
    const Device& d = Process::get().device(device);
    std::snprintf(id, static_cast<size_t>(size), "%04x:%02x:%02x.0",
                  static_cast<unsigned>(d.attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)),
                  static_cast<unsigned>(d.attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)),
                  static_cast<unsigned>(d.attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)));
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return guarded([&] {
    require(device != nullptr && id != nullptr);
    const int count = static_cast<int>(Process::get().devices.size());
    for (int k = 0; k < count; ++k) {
      char own[32];
      cuDeviceGetPCIBusId(own, sizeof own, k);
      if (std::strcmp(own, id) == 0 || std::strcmp(own + 5, id) == 0) {
        *device = k;
        return;
      }
    }
    fail(CUDA_ERROR_INVALID_DEVICE);
  });
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format, unsigned, CUdevice device) {
  return guarded([&] {
    require(width != nullptr);
    *width = static_cast<size_t>(
        Process::get().device(device).attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return guarded([&] {
    require(can != nullptr);
    const Device &d = Process::get().device(device), &p = Process::get().device(peer);
    *can = device != peer && d.joined && p.joined;
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute which, CUdevice device, CUdevice peer) {
  if (which == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK && value && device != peer) {
    *value = 0;  // all links are alike
    return CUDA_SUCCESS;
  }
  return cuDeviceCanAccessPeer(value, device, peer);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return guarded([&] {
    require(flags == 0);
    Device &own = current_context().device, &other = peer_of(peer, own);
    require(own.peers.insert(other.ordinal).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    own.connection.send(ReachRequest{.number = static_cast<uint64_t>(other.ordinal), .all = true});
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return guarded([&] {
    Device &own = current_context().device, &other = peer_of(peer, own);
    require(own.peers.contains(other.ordinal), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    synchronize(own);
    own.peers.erase(other.ordinal);
    own.connection.send(ReachRequest{.number = static_cast<uint64_t>(other.ordinal), .all = false});
  });
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice device) {
  return guarded([&] {
    require(supported != nullptr && type < CU_EXEC_AFFINITY_TYPE_MAX);
    Process::get().device(device);
    *supported = 0;
  });
}
