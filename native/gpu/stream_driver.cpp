// The driver table over a vendor's library: devices, memory, streams and copies. Events are in gpu/events.cpp, kernels in
// gpu/functions.cpp and gpu/launches.cpp, and the errors of a GPU in gpu/device.cpp.
//
// Invariants: a device's functions are called under its submission lock with its context current (gpu/driver.h); once a
// call has reported that the context is dead, no further call is made and all functions answer `lost`; peers copy only if
// both directions were found possible, so that the vendor never stages a copy through the host in secret (hazard H3).
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>

#include "gpu/events.h"
#include "gpu/graphs.h"
#include "gpu/host_pins.h"
#include "gpu/launch_rules.h"
#include "gpu/quiescent_section.h"

namespace headrace {

namespace {

GpuDevice& device(DeviceHandle handle) { return *static_cast<GpuDevice*>(handle); }
GpuStream& stream(StreamHandle handle) { return *static_cast<GpuStream*>(handle); }

void say(char* reason, std::size_t bytes, const std::string& text) {
  std::snprintf(reason, bytes, "%s", text.c_str());
}

// -- opening --------------------------------------------------------------------------------------------------------

DriverStatus bind(DeviceHandle handle) {
  GpuDevice& on = device(handle);
  if (on.api->contextSetCurrent(on.context) == 0) return DriverStatus::ok;
  // It may be the error of the GPU that was current until now. That error is not this GPU's.
  on.api->contextSetCurrent(nullptr);
  return on.check(on.api->contextSetCurrent(on.context), "cuCtxSetCurrent");
}

void close(DeviceHandle handle) {
  GpuDevice* closing = &device(handle);
  removeOpenDevice(closing);
  if (gpuStuck(*closing)) {
    closing->api->contextSetCurrent(nullptr);
    delete closing;
    return;
  }
  // A dead context answers all of this with its error. There is no remedy.
  for (const auto& module : closing->modules) closing->api->moduleUnload(module.second);
  closing->api->contextSetCurrent(nullptr);
  closing->api->contextRelease(closing->device);
  delete closing;
}

const char* errorText(DeviceHandle handle) { return device(handle).error(); }

DriverStatus enablePeer(DeviceHandle handle, DeviceHandle other) {
  GpuDevice& on = device(handle);
  GpuDevice& peer = device(other);
  int there = 0;
  int back = 0;
  int code = on.api->deviceCanAccessPeer(&there, on.device, peer.device);
  if (code == 0) code = on.api->deviceCanAccessPeer(&back, peer.device, on.device);
  if (code != 0) return on.fail(code, "cuDeviceCanAccessPeer");
  if (there == 0 || back == 0) {
    return on.refuse(DriverStatus::unsupported, "the GPUs cannot reach each other's memory");
  }
  code = on.api->contextEnablePeer(peer.context, 0);
  if (code != 0 && code != gpu::kPeerAlreadyEnabled) return on.fail(code, "cuCtxEnablePeerAccess");
  on.peers.push_back(&peer);
  return DriverStatus::ok;
}

// -- memory ---------------------------------------------------------------------------------------------------------

DriverStatus memoryAlloc(DeviceHandle handle, std::uint64_t bytes, DeviceAddress* address) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuMemAlloc");
  if (allowed != DriverStatus::ok) return allowed;
  const int code = on.api->memoryAlloc(address, bytes);
  if (code != 0) return on.fail(code, "cuMemAlloc");
  // Synchronous copies of others (an MPI library's) on this memory must really be done when they return (H4). Memory
  // for which the driver cannot promise that still serves this runtime: events order everything here.
  const int on1 = 1;
  on.api->pointerSetAttribute(&on1, cuda::kPointerSyncMemops, *address);
  return DriverStatus::ok;
}

void memoryFree(DeviceHandle handle, DeviceAddress address) {
  GpuDevice& on = device(handle);
  if (gpuStuck(on)) return;
  if (on.permit("cuMemFree") == DriverStatus::ok) on.api->memoryFree(address);
}

/// Memory of another kind than the driver's plain allocations must not reach other processes or an MPI library (H13).
DriverStatus classify(GpuDevice& on, DeviceAddress address) {
  unsigned type = 0;
  unsigned managed = 0;
  unsigned capable = 0;
  int code = on.api->pointerAttribute(&type, cuda::kPointerMemoryType, address);
  if (code == 0) code = on.api->pointerAttribute(&managed, cuda::kPointerManaged, address);
  if (code == 0) code = on.api->pointerAttribute(&capable, cuda::kPointerIpcCapable, address);
  if (code != 0) return on.fail(code, "cuPointerGetAttribute");
  if (type != cuda::kMemoryTypeDevice || managed != 0 || capable == 0) {
    return on.refuse(DriverStatus::unsupported,
                     managed != 0 ? "managed memory cannot be shared with other processes"
                                  : "memory that the driver cannot share with other processes");
  }
  return DriverStatus::ok;
}

DriverStatus memoryShare(DeviceHandle handle, DeviceAddress address, DeviceShare* share) {
  GpuDevice& on = device(handle);
  *share = {};
  share->fd = -1;
  share->base = address;
  int code = 0;
  if (on.api->pointerAttribute != nullptr) {
    const DriverStatus plain = classify(on, address);
    if (plain != DriverStatus::ok) return plain;
    code = on.api->pointerAttribute(&share->generation, cuda::kPointerBufferId, address);
    if (code != 0) return on.fail(code, "cuPointerGetAttribute");
  }
  if (on.api->addressRange != nullptr) {
    std::size_t bytes = 0;
    code = on.api->addressRange(&share->base, &bytes, address);
    if (code != 0) return on.fail(code, "cuMemGetAddressRange");
    share->offset = address - share->base;
  }
  code = on.api->ipcGetHandle(share->ipc, share->base);
  if (code != 0) return on.fail(code, "cuIpcGetMemHandle");
  share->ipcBytes = sizeof share->ipc;
  return DriverStatus::ok;
}

DriverStatus hostAlloc(DeviceHandle handle, std::uint64_t bytes, void** pointer) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuMemHostAlloc");
  if (allowed != DriverStatus::ok) return allowed;
  return on.check(on.api->hostAlloc(pointer, bytes, gpu::kHostPortable), "cuMemHostAlloc");
}

void hostFree(DeviceHandle handle, void* pointer) {
  if (device(handle).permit("cuMemFreeHost") == DriverStatus::ok) {
    device(handle).api->hostFree(pointer);
  }
}

DriverStatus hostRegister(DeviceHandle handle, void* pointer, std::uint64_t bytes,
                          std::uint64_t reserve) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuMemHostRegister");
  if (allowed != DriverStatus::ok) return allowed;
  return on.check(hostPins(on.spaceKind).add(*on.api, pointer, bytes, reserve),
                  "cuMemHostRegister");
}

void hostUnregister(DeviceHandle handle, void* pointer) {
  hostPins(device(handle).spaceKind)
      .remove(anyStuckDevice() ? nullptr : device(handle).api, pointer);
}

// -- streams and events ---------------------------------------------------------------------------------------------

DriverStatus streamCreate(DeviceHandle handle, StreamPurpose purpose, StreamHandle* result) {
  GpuDevice& on = device(handle);
  const DriverStatus allowed = on.permit("cuStreamCreate");
  if (allowed != DriverStatus::ok) return allowed;
  auto created = std::make_unique<GpuStream>();
  created->device = &on;
  created->purpose = purpose;
  int code = on.api->streamCreate(&created->stream, gpuStreamFlags(), 0);
  if (code != 0) return on.fail(code, "cuStreamCreateWithPriority");
  DriverStatus status = gpuCreateMarks(*created);
  if (status == DriverStatus::ok && purpose == StreamPurpose::compute) {
    status = prepareOutcomes(*created);
  }
  if (status != DriverStatus::ok) {
    gpuDestroyMarks(*created);
    on.api->streamDestroy(created->stream);
    return status;
  }
  addOpenStream(created.get());
  *result = created.release();
  return DriverStatus::ok;
}

void streamDestroy(StreamHandle handle) {
  GpuStream* closing = &stream(handle);
  GpuDevice& on = *closing->device;
  if (!gpuStuck(on)) {
    if (closing->tiles != nullptr) releaseTiles(*closing);
    gpuDestroyMarks(*closing);
    on.api->streamDestroy(closing->stream);
    if (closing->outcomeWords != nullptr) on.api->hostFree(closing->outcomeWords);
  }
  removeOpenStream(closing);
  delete closing;
}

DriverStatus eventCreate(DeviceHandle handle, bool timed, EventHandle* result) {
  auto* created = new GpuEvent;
  created->device = &device(handle);
  created->timed = timed;
  *result = created;
  return DriverStatus::ok;
}

void eventDestroy(EventHandle handle) { delete static_cast<GpuEvent*>(handle); }

// -- work -----------------------------------------------------------------------------------------------------------

/// How long a copy of memory that is not locked holds up launches until the kernels that run are over (nanoseconds): a few times
/// as long as it takes the driver to copy a chunk of such memory.
constexpr std::int64_t kLockPatience = 50000000;

/// Gives a copy of host memory to the driver in pieces that lie in one registration each.
template <typename Copy>
DriverStatus copyHost(GpuStream& on, const void* host, std::uint64_t bytes, const char* call,
                      Copy copy) {
  GpuDevice& at = *on.device;
  if (at.lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  HostPins& pins = hostPins(at.spaceKind);
  ++at.work;
  std::uint64_t done = 0;
  bool tried = false;
  while (done < bytes) {
    const auto* from = static_cast<const std::uint8_t*>(host) + done;
    std::uint64_t piece = pins.locked(from, bytes - done);
    if (piece == 0 && !tried) {
      tried = true;
      if (on.capture != nullptr) {
        pins.lockChunks(*at.api, from, bytes - done);
        continue;
      }
      const QuiescentSection pause(pins.mayLock(from) ? kLockPatience : 0);
      if (pause.holds()) {
        pins.lockChunks(*at.api, from, bytes - done, pause.waited());
        continue;
      }
    }
    if (piece == 0) {
      if (on.capture != nullptr) {
        return at.refuse(DriverStatus::refused, "a graph copies page-locked host memory only");
      }
      piece = bytes - done;
      pins.slowBytes.fetch_add(piece, std::memory_order_relaxed);
    }
    const int code = copy(done, piece);
    if (code != 0) return at.fail(code, call);
    done += piece;
  }
  return DriverStatus::ok;
}

DriverStatus copyToDevice(StreamHandle handle, DeviceAddress to, const void* from,
                          std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  return copyHost(on, from, bytes, "cuMemcpyHtoDAsync", [&](std::uint64_t at, std::uint64_t piece) {
    return on.device->api->copyToDevice(to + at, static_cast<const std::uint8_t*>(from) + at, piece,
                                        on.stream);
  });
}

DriverStatus copyToHost(StreamHandle handle, void* to, DeviceAddress from, std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  return copyHost(on, to, bytes, "cuMemcpyDtoHAsync", [&](std::uint64_t at, std::uint64_t piece) {
    return on.device->api->copyToHost(static_cast<std::uint8_t*>(to) + at, from + at, piece,
                                      on.stream);
  });
}

DriverStatus copyOnDevice(StreamHandle handle, DeviceAddress to, DeviceAddress from,
                          std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (bytes == 0) return DriverStatus::ok;
  ++on.device->work;
  return on.device->check(on.device->api->copyOnDevice(to, from, bytes, on.stream),
                          "cuMemcpyDtoDAsync");
}

DriverStatus copyFromPeer(StreamHandle handle, DeviceHandle toDevice, DeviceAddress to,
                          DeviceHandle fromDevice, DeviceAddress from, std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  GpuDevice& at = device(toDevice);
  GpuDevice* source = &device(fromDevice);
  if (at.lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (std::find(at.peers.begin(), at.peers.end(), source) == at.peers.end()) {
    return at.refuse(DriverStatus::refused,
                     "there is no peer access from GPU " + std::to_string(at.ordinal) + " to GPU " +
                         std::to_string(source->ordinal) + ": copy through the host");
  }
  if (bytes == 0) return DriverStatus::ok;
  ++at.work;
  // No capture allows the call for copies between contexts. Peer access makes the addresses enough.
  if (on.capture != nullptr) {
    return at.check(at.api->copyOnDevice(to, from, bytes, on.stream), "cuMemcpyDtoDAsync");
  }
  return at.check(at.api->copyPeer(to, at.context, from, source->context, bytes, on.stream),
                  "cuMemcpyPeerAsync");
}

DriverStatus fill(StreamHandle handle, DeviceAddress to, std::uint8_t value, std::uint64_t bytes) {
  GpuStream& on = stream(handle);
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (bytes == 0) return DriverStatus::ok;
  ++on.device->work;
  return on.device->check(on.device->api->fill(to, value, bytes, on.stream), "cuMemsetD8Async");
}

std::int32_t progress(DeviceHandle) { return 0; }

}  // namespace

DriverStatus gpuProbe(const GpuApi* api, const std::string& why, std::int32_t* devices,
                      char* reason, std::size_t reasonBytes) {
  *devices = 0;
  if (api == nullptr) {
    say(reason, reasonBytes, why);
    return DriverStatus::unsupported;
  }
  int count = 0;
  int version = 0;
  const int code = api->deviceCount(&count);
  if (code != 0 || count == 0) {
    say(reason, reasonBytes, code != 0 ? gpuErrorText(*api, code) : "the driver finds no GPU");
    return DriverStatus::unsupported;
  }
  api->driverVersion(&version);
  *devices = count;
  say(reason, reasonBytes, "driver version " + std::to_string(version));
  return DriverStatus::ok;
}

DriverStatus gpuOpen(const GpuApi* api, const std::string& why, const char* driver,
                     std::int32_t spaceKind, std::int32_t ordinal, DeviceHandle* result,
                     DeviceDescription* description, char* reason, std::size_t reasonBytes) {
  if (api == nullptr) {
    say(reason, reasonBytes, why);
    return DriverStatus::unsupported;
  }
  auto opened = std::make_unique<GpuDevice>();
  opened->api = api;
  opened->driver = driver;
  opened->spaceKind = spaceKind;
  opened->ordinal = ordinal;
  unsigned char uuid[16] = {};
  std::size_t free = 0;
  std::size_t total = 0;
  int code = api->deviceGet(&opened->device, ordinal);
  if (code == 0) {
    code = api->deviceName(description->name, sizeof description->name, opened->device);
  }
  if (code == 0) code = api->deviceUuid(uuid, opened->device);
  if (code == 0 && spaceKind == SpaceKind::cuda) {
    api->deviceAttribute(&opened->major, cuda::kAttributeMajor, opened->device);
    api->deviceAttribute(&opened->minor, cuda::kAttributeMinor, opened->device);
    api->deviceAttribute(&description->flushOptions, cuda::kAttributeRdmaFlush, opened->device);
    api->deviceAttribute(&description->writeOrdering, cuda::kAttributeRdmaOrdering, opened->device);
    if (api->flushRemoteWrites == nullptr) description->flushOptions = 0;
  }
  const bool retained = code == 0;
  if (code == 0) code = api->contextRetain(&opened->context, opened->device);
  if (code == 0) code = api->contextSetCurrent(opened->context);
  if (code == 0) code = api->memoryInfo(&free, &total);
  if (code != 0) {
    say(reason, reasonBytes, gpuErrorText(*api, code));
    if (retained && opened->context != nullptr) api->contextRelease(opened->device);
    return code == gpu::kOutOfMemory ? DriverStatus::outOfMemory : DriverStatus::refused;
  }
  say(description->uuid, sizeof description->uuid, gpuUuidText(uuid));
  description->totalBytes = total;
  description->freeBytes = free;
  addOpenDevice(opened.get());
  *result = opened.release();
  return DriverStatus::ok;
}

DriverTable gpuDriverTable(const char* name, std::int32_t spaceKind,
                           decltype(DriverTable::probe) probe, decltype(DriverTable::open) open) {
  return {name,
          spaceKind,
          true,
          probe,
          open,
          bind,
          close,
          errorText,
          enablePeer,
          memoryAlloc,
          memoryFree,
          memoryShare,
          hostAlloc,
          hostFree,
          hostRegister,
          hostUnregister,
          streamCreate,
          streamDestroy,
          eventCreate,
          eventDestroy,
          gpuEventRecord,
          gpuEventQuery,
          gpuEventTime,
          gpuStreamWait,
          copyToDevice,
          copyToHost,
          copyOnDevice,
          copyFromPeer,
          fill,
          gpuLaunch,
          gpuFunctionLoad,
          progress,
          gpuGraphs()};
}

}  // namespace headrace
