// The part of libamdhip64 that Headrace uses, over the imaginary GPUs. HEADRACE_STUB_HIP_VERSION sets its version.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stub_driver.h"

using namespace headrace::stub;
using Guard = std::lock_guard<std::recursive_mutex>;

#define HIP_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

Machine& machine() { return Machine::instance(); }
Context* contextOf(int device) { return &machine().contexts[static_cast<std::size_t>(device)]; }
std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

HIP_EXPORT hipInit(unsigned) { return 0; }
HIP_EXPORT hipRuntimeGetVersion(int* version) {
  const char* text = std::getenv("HEADRACE_STUB_HIP_VERSION");
  *version = text != nullptr ? std::atoi(text) : 60342133;
  return 0;
}
HIP_EXPORT hipGetDeviceCount(int* count) { return deviceCount("hipGetDeviceCount", count); }
HIP_EXPORT hipDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
HIP_EXPORT hipDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Stub AMD GPU %d", device);
  return 0;
}
HIP_EXPORT hipDeviceGetUuid(void* uuid, int device) {
  std::memset(uuid, 0x60 + device, 16);
  return 0;
}
HIP_EXPORT hipDeviceTotalMem(std::size_t* bytes, int) {
  *bytes = machine().memory;
  return 0;
}
HIP_EXPORT hipDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return 0;
}
HIP_EXPORT hipDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = machine().peerAccess && device != peer ? 1 : 0;
  return 0;
}
HIP_EXPORT hipSetDevice(int device) {
  Guard guard(machine().lock);
  machine().setCurrent(contextOf(device));
  return machine().enter("hipSetDevice");
}
HIP_EXPORT hipDeviceEnablePeerAccess(int peer, unsigned) {
  return enablePeer("hipDeviceEnablePeerAccess", contextOf(peer));
}
HIP_EXPORT hipMemGetInfo(std::size_t* free, std::size_t* total) {
  return memoryInfo("hipMemGetInfo", free, total);
}
HIP_EXPORT hipMalloc(void** pointer, std::size_t bytes) {
  std::uint64_t where = 0;
  const int code = memoryAlloc("hipMalloc", &where, bytes);
  *pointer = reinterpret_cast<void*>(where);
  return code;
}
HIP_EXPORT hipFree(void* pointer) { return memoryFree("hipFree", address(pointer)); }
HIP_EXPORT hipIpcGetMemHandle(void* handle, void*) {
  std::memset(handle, 1, 64);
  return 0;
}
HIP_EXPORT hipHostMalloc(void** pointer, std::size_t bytes, unsigned) {
  return hostAlloc("hipHostMalloc", pointer, bytes);
}
HIP_EXPORT hipHostFree(void* pointer) { return hostFree("hipHostFree", pointer); }
HIP_EXPORT hipHostRegister(void* pointer, std::size_t bytes, unsigned) {
  return hostRegister("hipHostRegister", pointer, bytes);
}
HIP_EXPORT hipHostUnregister(void* pointer) { return hostUnregister("hipHostUnregister", pointer); }
HIP_EXPORT hipStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return streamCreate("hipStreamCreateWithPriority", stream, flags);
}
HIP_EXPORT hipStreamDestroy(void* stream) { return streamDestroy("hipStreamDestroy", stream); }
HIP_EXPORT hipStreamQuery(void* stream) { return streamQuery("hipStreamQuery", stream); }
HIP_EXPORT hipEventCreateWithFlags(void** event, unsigned) {
  return eventCreate("hipEventCreateWithFlags", event);
}
HIP_EXPORT hipEventDestroy(void* event) { return eventDestroy("hipEventDestroy", event); }
HIP_EXPORT hipEventRecord(void* event, void* stream) {
  return eventRecord("hipEventRecord", event, stream);
}
HIP_EXPORT hipEventQuery(void* event) { return eventQuery("hipEventQuery", event); }
HIP_EXPORT hipStreamWaitEvent(void* stream, void* event, unsigned) {
  return streamWait("hipStreamWaitEvent", stream, event);
}
HIP_EXPORT hipMemcpyHtoDAsync(void* to, void* from, std::size_t bytes, void* stream) {
  return copyToDevice("hipMemcpyHtoDAsync", address(to), from, bytes, stream);
}
HIP_EXPORT hipMemcpyDtoHAsync(void* to, void* from, std::size_t bytes, void* stream) {
  return copyToHost("hipMemcpyDtoHAsync", to, address(from), bytes, stream);
}
HIP_EXPORT hipMemcpyDtoDAsync(void* to, void* from, std::size_t bytes, void* stream) {
  return copyOnDevice("hipMemcpyDtoDAsync", address(to), address(from), bytes, stream);
}
HIP_EXPORT hipMemcpy2DAsync(void* to, std::size_t toPitch, const void* from, std::size_t fromPitch,
                            std::size_t width, std::size_t height, int kind, void* stream) {
  constexpr int kDeviceToDevice = 3;
  if (kind != kDeviceToDevice) return kInvalidValue;
  return copyBlock("hipMemcpy2DAsync", address(to), toPitch, address(from), fromPitch, width,
                   height, stream);
}
HIP_EXPORT hipMemcpyPeerAsync(void* to, int toDevice, const void* from, int fromDevice,
                              std::size_t bytes, void* stream) {
  return copyPeer("hipMemcpyPeerAsync", address(to), contextOf(toDevice), address(from),
                  contextOf(fromDevice), bytes, stream);
}
HIP_EXPORT hipMemsetD8Async(void* to, unsigned char value, std::size_t bytes, void* stream) {
  return fillBytes("hipMemsetD8Async", address(to), value, 1, bytes, stream);
}
HIP_EXPORT hipMemsetD32Async(void* to, int value, std::size_t words, void* stream) {
  return fillBytes("hipMemsetD32Async", address(to), static_cast<unsigned>(value), 4, words,
                   stream);
}
HIP_EXPORT hipModuleLaunchKernel(void* function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                 unsigned blockX, unsigned blockY, unsigned blockZ, unsigned,
                                 void* stream, void** arguments, void**) {
  const unsigned grid[] = {gridX, gridY, gridZ};
  const unsigned block[] = {blockX, blockY, blockZ};
  return launchKernel("hipModuleLaunchKernel", function, grid, block, stream, arguments);
}
HIP_EXPORT hipModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return moduleLoad("hipModuleLoadDataEx", module, image);
}
HIP_EXPORT hipModuleUnload(void* module) { return moduleUnload("hipModuleUnload", module); }
HIP_EXPORT hipModuleGetFunction(void** function, void* module, const char* name) {
  return moduleFunction("hipModuleGetFunction", function, module, name);
}
HIP_EXPORT hipFuncGetAttribute(int* value, int, void*) {
  *value = 1024;
  return 0;
}

extern "C" __attribute__((visibility("default"))) const char* hipGetErrorName(int code) {
  return errorName(code);
}
extern "C" __attribute__((visibility("default"))) const char* hipGetErrorString(int) {
  return "as the stub was told";
}
