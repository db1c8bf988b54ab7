// The table of functions through which Headrace uses GPUs: the part of the CUDA driver API that it needs, with
// CUDA's own semantics. One table exists per driver (emulated, cuda, hip). No other file of the project depends on the
// driver.
//
// Callers: any thread may call `probe`. One thread at a time calls the functions of a device, `open` included: the thread
// that holds the device's submission lock (gpu/submission_lock.h) and has called `bind` for it, mostly the device's own.
// Exceptions: `streamWait` is called under the lock of the *stream's* device but may name an event of another device of
// the same driver, and any thread may call `errorText`.
//
// Invariants that every driver keeps:
// - work of one stream happens in the order submitted; streams are independent except for events;
// - an event that was never recorded counts as complete (as in CUDA), so callers never wait on one;
// - `streamWait` captures the event's latest `eventRecord`; recording it again later changes nothing;
// - no call except `open`, `close` and the create/alloc/register group may block, allocate device memory or
//   synchronise (docs: a spinning kernel must never be able to stop the thread);
// - a call that returns a status other than `ok`/`notReady` leaves a text for `errorText`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "headrace/kernel.h"

namespace headrace {

enum class DriverStatus : std::int32_t {
  ok = 0,
  notReady = 1,     // eventQuery: not yet
  unsupported = 2,  // this driver cannot do that; the caller has another way or reports it
  outOfMemory = 3,
  refused = 4,  // bad argument, or the driver said no: only this command is affected
  lost = 5,     // the context is dead: everything on the device fails from here on
};

/// A driver's own objects. A stream and an event know their device.
using DeviceHandle = void*;
using StreamHandle = void*;
using EventHandle = void*;
using FunctionHandle = void*;
using GraphHandle = void*;
/// An address in device memory.
using DeviceAddress = std::uint64_t;

struct DeviceDescription {
  char name[128];
  char uuid[64];  // '' if the device has none
  /// Of the device, and free before the slab is allocated; 0 when unknown.
  std::uint64_t totalBytes;
  std::uint64_t freeBytes;
  /// Writes of a network card: how they can be flushed (1: from the host), and the readers that see them without a flush
  /// (0 none for sure, 100 the GPU itself, 200 all). CUDA's attributes 117 and 118.
  std::int32_t flushOptions;
  std::int32_t writeOrdering;
};

/// How another process (or the message layer) opens a device's slab. `fd` is -1 and `ipcBytes` 0 if it cannot.
struct DeviceShare {
  std::int32_t fd;         // memfd (emulated) or exported file descriptor
  std::uint64_t bytes;     // size behind it
  std::uint8_t ipc[64];    // CUipcMemHandle / hipIpcMemHandle_t: names the whole allocation
  std::uint32_t ipcBytes;  // 0 or 64
  std::uint64_t base;      // first address of the allocation
  std::uint64_t offset;    // of the slab in it
  /// Differs for every allocation of the process, also for one that gets the address of an older one.
  std::uint64_t generation;
};

enum class StreamPurpose : std::int32_t { compute, hostToDevice, deviceToHost, peer };

struct LaunchRules;  // gpu/launch_rules.h

/// One kernel launch. Exactly one of `host`, `enqueue` and `function` is set.
struct Launch {
  headrace_kernel host;     // emulated: called when the stream reaches this point
  headrace_kernel enqueue;  // cuda/hip: called at once; puts its own work on the stream
  FunctionHandle function;  // cuda/hip: from `functionLoad`, launched as `plan` says
  headrace_plan plan;       // or, for sources and device code registered by the user:
  const LaunchRules* rules;
  /// The kernel's view of its task. `flows` and `params` stay valid until the launch has finished (they point into the
  /// ring and the caller's tables). The struct itself is valid only during the call: copy it if it is needed later.
  /// The driver sets `stream`.
  headrace_task task;
  /// Host word that must hold the outcome (a contract `Status`) before an event recorded after this launch counts as
  /// complete. It is 0 when `launch` is called. Real drivers whose kernels report no outcome leave it.
  std::int32_t* status;
  /// The run's cancel word or null. A driver that runs the kernel later than `launch` skips it (status cancelled) if
  /// the word is non-zero by then, and sets it to 1 before finishing a launch that failed.
  std::atomic<std::int32_t>* cancel;
};

/// The functions of gpu/graphs.h, with their meaning.
struct GraphTable {
  DriverStatus (*begin)(DeviceHandle device, const StreamHandle* streams, std::size_t count,
                        std::size_t outcomes, GraphHandle* graph);
  void (*label)(GraphHandle graph, std::int64_t label);
  DriverStatus (*mark)(GraphHandle graph, StreamHandle stream, EventHandle* mark);
  DriverStatus (*follow)(GraphHandle graph, StreamHandle stream, EventHandle mark);
  DriverStatus (*end)(GraphHandle graph, bool keep);
  DriverStatus (*launch)(StreamHandle stream, GraphHandle graph, std::int32_t* status,
                         std::atomic<std::int32_t>* cancel);
  bool (*reports)(GraphHandle graph);
  std::int64_t (*failed)(GraphHandle graph);
  void (*release)(GraphHandle graph);
};

struct DriverTable {
  const char* name;        // 'emulated' | 'cuda' | 'hip'
  std::int32_t spaceKind;  // contract SpaceKind
  /// True: work continues without the thread, and the thread must poll for it. False: all work happens inside `progress`,
  /// so the thread may sleep without a deadline when `progress` did nothing and no new command was submitted.
  bool asynchronous;

  // -- finding and opening ------------------------------------------------------------------------------------
  /// Looks for the driver and counts its devices. Never fails hard: on a status other than `ok`, `reason` has the cause.
  DriverStatus (*probe)(std::int32_t* devices, char* reason, std::size_t reasonBytes);
  /// Opens device `ordinal` (retains its primary context). `reason` as above.
  DriverStatus (*open)(std::int32_t ordinal, DeviceHandle* device, DeviceDescription* description,
                       char* reason, std::size_t reasonBytes);
  /// Makes the device current on the calling thread.
  DriverStatus (*bind)(DeviceHandle device);
  /// Destroys the remaining objects and releases the device. All its streams and events were destroyed before.
  void (*close)(DeviceHandle device);
  /// Text of the latest error of the device; valid until the next error on it.
  const char* (*errorText)(DeviceHandle device);
  /// Allows `device` to reach memory of `peer`. `unsupported`: copies between them must be staged by the caller.
  DriverStatus (*enablePeer)(DeviceHandle device, DeviceHandle peer);

  // -- memory (open/close time only) --------------------------------------------------------------------------
  DriverStatus (*memoryAlloc)(DeviceHandle device, std::uint64_t bytes, DeviceAddress* address);
  void (*memoryFree)(DeviceHandle device, DeviceAddress address);
  /// Describes the slab for other processes. `unsupported` if they cannot open it.
  DriverStatus (*memoryShare)(DeviceHandle device, DeviceAddress address, DeviceShare* share);
  /// Page-locked host memory of the driver's own.
  DriverStatus (*hostAlloc)(DeviceHandle device, std::uint64_t bytes, void** pointer);
  void (*hostFree)(DeviceHandle device, void* pointer);
  /// Page-locks the first `bytes` of existing host memory for all devices of the driver. Up to `reserve` bytes may be
  /// locked later, when copies first use them and no kernel runs (gpu/host_pins.h).
  DriverStatus (*hostRegister)(DeviceHandle device, void* pointer, std::uint64_t bytes,
                               std::uint64_t reserve);
  void (*hostUnregister)(DeviceHandle device, void* pointer);

  // -- streams and events -------------------------------------------------------------------------------------
  /// A non-blocking stream (never ordered with the NULL stream).
  DriverStatus (*streamCreate)(DeviceHandle device, StreamPurpose purpose, StreamHandle* stream);
  void (*streamDestroy)(StreamHandle stream);
  /// `timed` events can be asked for their time; the others are cheaper. They are recorded in pairs around one command
  /// of a stream.
  DriverStatus (*eventCreate)(DeviceHandle device, bool timed, EventHandle* event);
  void (*eventDestroy)(EventHandle event);
  DriverStatus (*eventRecord)(EventHandle event, StreamHandle stream);
  /// `ok` when the latest recording has happened, `notReady`, or `lost`.
  DriverStatus (*eventQuery)(EventHandle event);
  /// When a completed, timed event happened, in nanoseconds on CLOCK_MONOTONIC. `unsupported`: the caller uses the
  /// time at which it saw the completion.
  DriverStatus (*eventTime)(EventHandle event, double* nanoseconds);
  /// The stream goes no further until the event's latest recording (as of this call) has happened.
  DriverStatus (*streamWait)(StreamHandle stream, EventHandle event);

  // -- work ---------------------------------------------------------------------------------------------------
  DriverStatus (*copyToDevice)(StreamHandle stream, DeviceAddress to, const void* from,
                               std::uint64_t bytes);
  DriverStatus (*copyToHost)(StreamHandle stream, void* to, DeviceAddress from,
                             std::uint64_t bytes);
  DriverStatus (*copyOnDevice)(StreamHandle stream, DeviceAddress to, DeviceAddress from,
                               std::uint64_t bytes);
  /// The stream belongs to `toDevice`: the destination drives the copy (H3).
  DriverStatus (*copyFromPeer)(StreamHandle stream, DeviceHandle toDevice, DeviceAddress to,
                               DeviceHandle fromDevice, DeviceAddress from, std::uint64_t bytes);
  DriverStatus (*fill)(StreamHandle stream, DeviceAddress to, std::uint8_t value,
                       std::uint64_t bytes);
  DriverStatus (*launch)(StreamHandle stream, const Launch* launch);
  /// Loads device code and finds a function in it (open and load time only).
  DriverStatus (*functionLoad)(DeviceHandle device, const void* image, std::uint64_t imageBytes,
                               const char* symbol, FunctionHandle* function);
  /// Called under the device's lock between submissions; returns the number of operations that it carried out. A driver
  /// whose device works by itself returns 0 (and may do its own bookkeeping here).
  std::int32_t (*progress)(DeviceHandle device);

  /// Null: the driver has no graphs.
  const GraphTable* graphs;
};

/// The tables, by name; null for an unknown name. Filling a table loads nothing until `probe` or `open`.
const DriverTable* findDriver(const char* name);
/// All tables, null-terminated.
const DriverTable* const* allDrivers();

/// Defined in gpu/emulated/driver.cpp, gpu/cuda/driver.cpp and gpu/hip/driver.cpp.
const DriverTable* emulatedDriver();
const DriverTable* cudaDriver();
const DriverTable* hipDriver();

}  // namespace headrace
