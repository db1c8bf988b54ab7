// The calls of both stub drivers; stub_cuda.cpp and stub_hip.cpp give them their names.
// `call` is the name under which a call is counted and can be made to fail.
#pragma once

#include "stub_machine.h"

namespace headrace::stub {

/// 0 when a context is current on this thread; else an error, and a broken rule.
int needContext(const char* call);
int deviceCount(const char* call, int* count);
int memoryAlloc(const char* call, std::uint64_t* address, std::size_t bytes);
int memoryFree(const char* call, std::uint64_t address);
int ipcGet(const char* call, void* handle, std::uint64_t address);
int ipcOpen(const char* call, std::uint64_t* address, const void* handle);
int ipcClose(const char* call, std::uint64_t address);
int hostAlloc(const char* call, void** pointer, std::size_t bytes);
int hostFree(const char* call, void* pointer);
int hostRegister(const char* call, void* pointer, std::size_t bytes);
int hostUnregister(const char* call, void* pointer);
int memoryInfo(const char* call, std::size_t* free, std::size_t* total);
int streamCreate(const char* call, void** stream, unsigned flags);
int streamDestroy(const char* call, void* stream);
int streamQuery(const char* call, void* stream);
int eventCreate(const char* call, void** event);
int eventDestroy(const char* call, void* event);
int eventRecord(const char* call, void* event, void* stream);
int eventQuery(const char* call, void* event);
int streamWait(const char* call, void* stream, void* event);
int copyToDevice(const char* call, std::uint64_t to, const void* from, std::size_t bytes,
                 void* stream);
int copyToHost(const char* call, void* to, std::uint64_t from, std::size_t bytes, void* stream);
int copyOnDevice(const char* call, std::uint64_t to, std::uint64_t from, std::size_t bytes,
                 void* stream);
int copyBlock(const char* call, std::uint64_t to, std::size_t toPitch, std::uint64_t from,
              std::size_t fromPitch, std::size_t width, std::size_t columns, void* stream);
int copyPeer(const char* call, std::uint64_t to, Context* toContext, std::uint64_t from,
             Context* fromContext, std::size_t bytes, void* stream);
int fillBytes(const char* call, std::uint64_t to, unsigned value, std::size_t width,
              std::size_t count, void* stream);
int moduleLoad(const char* call, void** module, const void* image);
int moduleUnload(const char* call, void* module);
int moduleFunction(const char* call, void** function, void* module, const char* name);
int enablePeer(const char* call, Context* peer);
int launchKernel(const char* call, void* function, const unsigned* grid, const unsigned* block,
                 void* stream, void** arguments);
int beginCapture(const char* call, void* stream, int mode);
int endCapture(const char* call, void* stream, void** graph);
int graphInstantiate(const char* call, void** executable, void* graph);
int graphLaunch(const char* call, void* executable, void* stream);
int graphDestroy(const char* call, void* graph, bool executable);
const char* errorName(int code);

}  // namespace headrace::stub
