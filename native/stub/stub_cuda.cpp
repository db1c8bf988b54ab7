// The part of libcuda that Headrace uses, over the imaginary GPUs (stub_machine.h). Built for tests only.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "stub_driver.h"

using namespace headrace::stub;
using Guard = std::lock_guard<std::recursive_mutex>;

#define CUDA_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

Machine& machine() { return Machine::instance(); }

bool exists(int device) { return device >= 0 && device < machine().devices; }

Context* context(void* handle) { return static_cast<Context*>(handle); }

}  // namespace

CUDA_EXPORT cuInit(unsigned) {
  Guard guard(machine().lock);
  return machine().enter("cuInit");
}

CUDA_EXPORT cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

CUDA_EXPORT cuDeviceGetCount(int* count) { return deviceCount("cuDeviceGetCount", count); }

CUDA_EXPORT cuDeviceGet(int* device, int ordinal) {
  Guard guard(machine().lock);
  const int code = machine().enter("cuDeviceGet");
  *device = ordinal;
  return code != 0 ? code : exists(ordinal) ? 0 : 101;
}

CUDA_EXPORT cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Stub GPU %d", device);
  return exists(device) ? 0 : 101;
}

CUDA_EXPORT cuDeviceGetUuid_v2(void* uuid, int device) {
  std::memset(uuid, 0x50 + device, 16);
  return exists(device) ? 0 : 101;
}

CUDA_EXPORT cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = machine().memory;
  return exists(device) ? 0 : 101;
}

CUDA_EXPORT cuDeviceGetAttribute(int* value, int attribute, int device) {
  switch (attribute) {
    case 16: *value = 4; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    case 116:
    case 117: *value = 1; break;
    case 118: *value = machine().rdmaOrdering; break;
    default: *value = 0;
  }
  return exists(device) ? 0 : 101;
}

CUDA_EXPORT cuDeviceCanAccessPeer(int* can, int device, int peer) {
  Guard guard(machine().lock);
  *can = machine().peerAccess && device != peer ? 1 : 0;
  return exists(device) && exists(peer) ? 0 : 101;
}

CUDA_EXPORT cuDevicePrimaryCtxRetain(void** result, int device) {
  Guard guard(machine().lock);
  const int code = machine().enter("cuDevicePrimaryCtxRetain");
  if (code != 0 || !exists(device)) return code != 0 ? code : 101;
  Context& retained = machine().contexts[static_cast<std::size_t>(device)];
  ++retained.retained;
  *result = &retained;
  return 0;
}

CUDA_EXPORT cuDevicePrimaryCtxRelease_v2(int device) {
  Guard guard(machine().lock);
  Context& released = machine().contexts[static_cast<std::size_t>(device)];
  if (released.retained == 0) machine().violation("cuDevicePrimaryCtxRelease: not retained");
  if (--released.retained == 0) released.peers.clear();
  return 0;
}

CUDA_EXPORT cuCtxSetCurrent(void* handle) {
  Guard guard(machine().lock);
  machine().setCurrent(context(handle));
  const int code = machine().enter("cuCtxSetCurrent");
  if (handle != nullptr && context(handle)->retained == 0) {
    machine().violation("cuCtxSetCurrent: a context that is not retained");
  }
  return code;
}

CUDA_EXPORT cuCtxEnablePeerAccess(void* peer, unsigned) {
  return enablePeer("cuCtxEnablePeerAccess", context(peer));
}

CUDA_EXPORT cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return memoryInfo("cuMemGetInfo", free, total);
}
CUDA_EXPORT cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  return memoryAlloc("cuMemAlloc", address, bytes);
}
CUDA_EXPORT cuMemFree_v2(std::uint64_t address) { return memoryFree("cuMemFree", address); }

CUDA_EXPORT cuPointerSetAttribute(const void*, int, std::uint64_t) {
  Guard guard(machine().lock);
  return machine().enter("cuPointerSetAttribute");
}

CUDA_EXPORT cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
  Guard guard(machine().lock);
  const int code = machine().enter("cuPointerGetAttribute");
  if (code != 0) return code;
  auto next = machine().allocations.upper_bound(address);
  if (next == machine().allocations.begin() || (--next)->second.file < 0) return kInvalidValue;
  std::uint64_t buffer = next->second.generation;
  const unsigned word = attribute == 2 ? 2 : attribute == 10 ? 1 : 0;
  if (attribute == 7)
    std::memcpy(value, &buffer, sizeof buffer);
  else
    std::memcpy(value, &word, sizeof word);
  return 0;
}

CUDA_EXPORT cuMemGetAddressRange_v2(std::uint64_t* base, std::size_t* bytes,
                                    std::uint64_t address) {
  Guard guard(machine().lock);
  const int code = machine().enter("cuMemGetAddressRange");
  auto next = machine().allocations.upper_bound(address);
  if (code != 0 || next == machine().allocations.begin()) return code != 0 ? code : kNotFound;
  --next;
  *base = next->first;
  *bytes = next->second.bytes;
  return 0;
}

struct StubIpcHandle {
  unsigned char bytes[64];
};

CUDA_EXPORT cuIpcGetMemHandle(void* handle, std::uint64_t address) {
  return ipcGet("cuIpcGetMemHandle", handle, address);
}

CUDA_EXPORT cuIpcOpenMemHandle_v2(std::uint64_t* address, StubIpcHandle handle, unsigned flags) {
  if (flags != 1) machine().violation("cuIpcOpenMemHandle: without lazy peer access");
  return ipcOpen("cuIpcOpenMemHandle", address, &handle);
}

CUDA_EXPORT cuIpcCloseMemHandle(std::uint64_t address) {
  return ipcClose("cuIpcCloseMemHandle", address);
}

CUDA_EXPORT cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return hostAlloc("cuMemHostAlloc", pointer, bytes);
}
CUDA_EXPORT cuMemFreeHost(void* pointer) { return hostFree("cuMemFreeHost", pointer); }
CUDA_EXPORT cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned) {
  return hostRegister("cuMemHostRegister", pointer, bytes);
}
CUDA_EXPORT cuMemHostUnregister(void* pointer) {
  return hostUnregister("cuMemHostUnregister", pointer);
}

CUDA_EXPORT cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return streamCreate("cuStreamCreateWithPriority", stream, flags);
}
CUDA_EXPORT cuStreamDestroy_v2(void* stream) { return streamDestroy("cuStreamDestroy", stream); }
CUDA_EXPORT cuStreamQuery(void* stream) { return streamQuery("cuStreamQuery", stream); }
CUDA_EXPORT cuEventCreate(void** event, unsigned flags) {
  if ((flags & 2) == 0) machine().violation("cuEventCreate: an event with timing");
  return eventCreate("cuEventCreate", event);
}
CUDA_EXPORT cuEventDestroy_v2(void* event) { return eventDestroy("cuEventDestroy", event); }
CUDA_EXPORT cuEventRecord(void* event, void* stream) {
  return eventRecord("cuEventRecord", event, stream);
}
CUDA_EXPORT cuEventQuery(void* event) { return eventQuery("cuEventQuery", event); }
CUDA_EXPORT cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return streamWait("cuStreamWaitEvent", stream, event);
}

CUDA_EXPORT cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes,
                                 void* stream) {
  return copyToDevice("cuMemcpyHtoDAsync", to, from, bytes, stream);
}
CUDA_EXPORT cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  return copyToHost("cuMemcpyDtoHAsync", to, from, bytes, stream);
}
CUDA_EXPORT cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes,
                                 void* stream) {
  return copyOnDevice("cuMemcpyDtoDAsync", to, from, bytes, stream);
}
/// CUDA_MEMCPY2D of cuda.h, as the program has filled it.
struct Block {
  std::size_t fromX, fromY;
  int fromType;
  const void* fromHost;
  std::uint64_t fromDevice;
  void* fromArray;
  std::size_t fromPitch;
  std::size_t toX, toY;
  int toType;
  void* toHost;
  std::uint64_t toDevice;
  void* toArray;
  std::size_t toPitch;
  std::size_t width, height;
};
CUDA_EXPORT cuMemcpy2DAsync_v2(const Block* block, void* stream) {
  constexpr int kDevice = 2;
  if (block->fromType != kDevice || block->toType != kDevice) return kInvalidValue;
  const std::uint64_t from = block->fromDevice + block->fromY * block->fromPitch + block->fromX;
  const std::uint64_t to = block->toDevice + block->toY * block->toPitch + block->toX;
  return copyBlock("cuMemcpy2DAsync", to, block->toPitch, from, block->fromPitch, block->width,
                   block->height, stream);
}
CUDA_EXPORT cuMemcpyPeerAsync(std::uint64_t to, void* toContext, std::uint64_t from,
                              void* fromContext, std::size_t bytes, void* stream) {
  return copyPeer("cuMemcpyPeerAsync", to, context(toContext), from, context(fromContext), bytes,
                  stream);
}
CUDA_EXPORT cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t bytes,
                            void* stream) {
  return fillBytes("cuMemsetD8Async", to, value, 1, bytes, stream);
}
CUDA_EXPORT cuMemsetD32Async(std::uint64_t to, unsigned value, std::size_t words, void* stream) {
  return fillBytes("cuMemsetD32Async", to, value, 4, words, stream);
}

CUDA_EXPORT cuLaunchKernel(void* function, unsigned gridX, unsigned gridY, unsigned gridZ,
                           unsigned blockX, unsigned blockY, unsigned blockZ, unsigned,
                           void* stream, void** arguments, void**) {
  const unsigned grid[] = {gridX, gridY, gridZ};
  const unsigned block[] = {blockX, blockY, blockZ};
  return launchKernel("cuLaunchKernel", function, grid, block, stream, arguments);
}

CUDA_EXPORT cuStreamBeginCapture_v2(void* stream, int mode) {
  return beginCapture("cuStreamBeginCapture", stream, mode);
}
CUDA_EXPORT cuStreamEndCapture(void* stream, void** graph) {
  return endCapture("cuStreamEndCapture", stream, graph);
}
CUDA_EXPORT cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return graphInstantiate("cuGraphInstantiate", executable, graph);
}
CUDA_EXPORT cuGraphLaunch(void* executable, void* stream) {
  return graphLaunch("cuGraphLaunch", executable, stream);
}
CUDA_EXPORT cuGraphDestroy(void* graph) { return graphDestroy("cuGraphDestroy", graph, false); }
CUDA_EXPORT cuGraphExecDestroy(void* graph) {
  return graphDestroy("cuGraphExecDestroy", graph, true);
}

CUDA_EXPORT cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options,
                               void** values) {
  const int code = moduleLoad("cuModuleLoadDataEx", module, image);
  if (code == 218 && count == 2 && options[0] == 5) {
    std::snprintf(static_cast<char*>(values[0]), 64, "ptxas: no entry found");
  }
  return code;
}
CUDA_EXPORT cuModuleUnload(void* module) { return moduleUnload("cuModuleUnload", module); }
CUDA_EXPORT cuModuleGetFunction(void** function, void* module, const char* name) {
  return moduleFunction("cuModuleGetFunction", function, module, name);
}
CUDA_EXPORT cuFuncGetAttribute(int* value, int, void*) {
  *value = 1024;
  return 0;
}

CUDA_EXPORT cuFuncGetParamInfo(void* function, std::size_t index, std::size_t* offset,
                               std::size_t* bytes) {
  const KernelModel* model = kernelModel(static_cast<Function*>(function)->name);
  if (model == nullptr || index >= model->sizes.size()) return kInvalidValue;
  *offset = index * 8;
  *bytes = model->sizes[index];
  return 0;
}

CUDA_EXPORT cuFlushGPUDirectRDMAWrites(int target, int scope) {
  if (const char* text = std::getenv("HEADRACE_STUB_FLUSH_SECONDS")) {
    std::this_thread::sleep_for(std::chrono::seconds(std::atoi(text)));
  }
  Guard guard(machine().lock);
  const int code = machine().enter("cuFlushGPUDirectRDMAWrites");
  if (machine().current() == nullptr) {
    machine().violation("cuFlushGPUDirectRDMAWrites: no context is current");
    return kInvalidContext;
  }
  return code != 0 ? code : target == 0 && (scope == 100 || scope == 200) ? 0 : kInvalidValue;
}

CUDA_EXPORT cuGetErrorName(int code, const char** text) {
  static thread_local std::string name;
  name = std::string("CUDA_") + errorName(code);
  *text = name.c_str();
  return 0;
}
CUDA_EXPORT cuGetErrorString(int, const char** text) {
  *text = "as the stub was told";
  return 0;
}
