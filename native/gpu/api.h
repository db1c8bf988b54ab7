// The calls of Headrace into a vendor's driver library, in one shape. libcuda's functions are stored as they are (their
// types are declared here, so that the build needs no CUDA header). libamdhip64's have small adapters if their
// shapes differ.
//
// Invariant: a table that a loader returns is complete but for the members under "may be missing", and stays valid
// for the life of the process (the libraries are never unloaded). Every function returns the vendor's code, 0 for
// success. Streams are passed explicitly everywhere: nothing here uses a NULL stream or depends on the per-thread one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/guards.h"

namespace headrace {

/// A handle of memory for other processes; both vendors pass it by value.
struct GpuIpcHandle {
  unsigned char bytes[64];
};

struct GpuApi {
  // -- devices --
  int (*init)(unsigned flags);
  int (*driverVersion)(int* version);
  int (*deviceCount)(int* count);
  int (*deviceGet)(int* device, int ordinal);
  int (*deviceName)(char* name, int length, int device);
  int (*deviceUuid)(void* bytes16, int device);
  int (*deviceMemory)(std::size_t* bytes, int device);
  int (*deviceAttribute)(int* value, int attribute, int device);
  int (*deviceCanAccessPeer)(int* can, int device, int peer);
  // -- contexts --
  int (*contextRetain)(void** context, int device);
  int (*contextRelease)(int device);
  int (*contextSetCurrent)(void* context);
  int (*contextEnablePeer)(void* peer, unsigned flags);
  // -- memory --
  int (*memoryInfo)(std::size_t* free, std::size_t* total);
  int (*memoryAlloc)(std::uint64_t* address, std::size_t bytes);
  int (*memoryFree)(std::uint64_t address);
  int (*pointerSetAttribute)(const void* value, int attribute, std::uint64_t address);
  int (*ipcGetHandle)(void* bytes64, std::uint64_t address);
  int (*hostAlloc)(void** pointer, std::size_t bytes, unsigned flags);
  int (*hostFree)(void* pointer);
  int (*hostRegister)(void* pointer, std::size_t bytes, unsigned flags);
  int (*hostUnregister)(void* pointer);
  // -- streams and events --
  int (*streamCreate)(void** stream, unsigned flags, int priority);
  int (*streamDestroy)(void* stream);
  int (*streamQuery)(void* stream);
  int (*eventCreate)(void** event, unsigned flags);
  int (*eventDestroy)(void* event);
  int (*eventRecord)(void* event, void* stream);
  int (*eventQuery)(void* event);
  int (*streamWaitEvent)(void* stream, void* event, unsigned flags);
  // -- work --
  int (*copyToDevice)(std::uint64_t to, const void* from, std::size_t bytes, void* stream);
  int (*copyToHost)(void* to, std::uint64_t from, std::size_t bytes, void* stream);
  int (*copyOnDevice)(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream);
  /// `columns` pieces of `width` bytes on one device; pieces begin every `toPitch` and `fromPitch` bytes.
  int (*copyBlock)(std::uint64_t to, std::size_t toPitch, std::uint64_t from, std::size_t fromPitch,
                   std::size_t width, std::size_t columns, void* stream);
  int (*copyPeer)(std::uint64_t to, void* toContext, std::uint64_t from, void* fromContext,
                  std::size_t bytes, void* stream);
  int (*fill)(std::uint64_t to, unsigned char value, std::size_t bytes, void* stream);
  int (*fill32)(std::uint64_t to, unsigned value, std::size_t words, void* stream);
  int (*launch)(void* function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                unsigned blockY, unsigned blockZ, unsigned sharedBytes, void* stream,
                void** arguments, void** extra);
  // -- code --
  int (*moduleLoad)(void** module, const void* image, unsigned count, int* options, void** values);
  int (*moduleUnload)(void* module);
  int (*moduleFunction)(void** function, void* module, const char* name);
  int (*functionAttribute)(int* value, int attribute, void* function);
  // -- messages --
  int (*errorName)(int code, const char** text);
  int (*errorString)(int code, const char** text);
  // -- may be missing (null): newer than the oldest driver that is supported --
  int (*functionParameter)(void* function, std::size_t index, std::size_t* offset,
                           std::size_t* bytes);
  int (*flushRemoteWrites)(int target, int scope);
  int (*pointerAttribute)(void* value, int attribute, std::uint64_t address);
  int (*addressRange)(std::uint64_t* base, std::size_t* bytes, std::uint64_t address);
  int (*ipcOpen)(std::uint64_t* address, GpuIpcHandle handle, unsigned flags);
  int (*ipcClose)(std::uint64_t address);
  // Graphs: all of them or none.
  int (*streamBeginCapture)(void* stream, int mode);
  int (*streamEndCapture)(void* stream, void** graph);
  int (*graphInstantiate)(void** exec, void* graph, unsigned long long flags);
  int (*graphLaunch)(void* exec, void* stream);
  int (*graphDestroy)(void* graph);
  int (*graphExecDestroy)(void* exec);
};

/// Codes and flags that both vendors share, by value.
namespace gpu {
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidContext = 201;
inline constexpr int kNotReady = 600;
inline constexpr int kPeerAlreadyEnabled = 704;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventNoTiming = 2;
inline constexpr unsigned kHostPortable = 1;
}  // namespace gpu

/// CUDA's numbers (cuda.h 13.0).
namespace cuda {
inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeRdma = 116;
inline constexpr int kAttributeRdmaFlush = 117;
inline constexpr int kAttributeRdmaOrdering = 118;
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerSyncMemops = 6;
inline constexpr int kPointerBufferId = 7;
inline constexpr int kPointerManaged = 8;
inline constexpr int kPointerIpcCapable = 10;
inline constexpr unsigned kMemoryTypeDevice = 2;
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr int kFlushCurrentContext = 0;
inline constexpr int kJitErrorLog = 5;
inline constexpr int kJitErrorLogBytes = 6;
}  // namespace cuda

/// For every stream in which work is done: work in the NULL stream does not block it.
inline unsigned gpuStreamFlags() { return guards.nonBlockingStreams ? gpu::kStreamNonBlocking : 0; }

/// The table of libcuda.so.1 (or of the library named by HEADRACE_CUDA_LIBRARY), initialised; or null and the reason.
const GpuApi* cudaApi(std::string& reason);
/// The same for libamdhip64.so (HEADRACE_HIP_LIBRARY).
const GpuApi* hipApi(std::string& reason);

/// True when the code means that the context is dead: no call on the device works any more.
bool gpuLost(int code);
/// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
std::string gpuErrorText(const GpuApi& api, int code);
/// "GPU-" and the 16 bytes as nvidia-smi writes them.
std::string gpuUuidText(const unsigned char* bytes);

}  // namespace headrace
