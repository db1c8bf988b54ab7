// A GPU behind a real driver (CUDA or HIP): its context, streams, events and loaded code.
//
// Recording an event costs little here, because the events that the rest of the runtime sees are only positions in a
// stream: `position` counts recordings. A real event, a *mark*, is put into the stream only if it is needed:
// - a wait of another stream takes the first mark at or after the position, or puts one at the stream's end;
// - a question about completion puts one at the end if no mark is outstanding, and asks only the marks;
// - while commands take long (more than `kSparseBelow`), or other streams have waited for one of the last ones, every
//   recording gets its mark. So waits are exact and cost the waiter one call.
// Measured on H200: a launch with an event costs 0.5 us more than one without, a question costs 1.27 us.
//
// Invariants: marks of a stream are in order of position and were recorded in that order; `completed` is a position
// whose mark was seen done (and only grows); all work before it is done, since a stream works in order. Marks are
// touched under the stream's lock only, since other GPUs' threads wait for them. So are the times at which they were done.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/api.h"
#include "gpu/driver.h"
#include "headrace/contract.h"

namespace headrace {

struct GpuDevice;
struct GpuGraph;
struct GpuStream;
struct TileLibrary;

struct GpuMark {
  void* event;
  std::uint64_t position;
};

/// The pinned memory in which the outcome of a library call (potrf's info) arrives, and the word that gets it.
struct GpuOutcome {
  std::uint64_t position;  // known when `completed` reaches this
  std::int32_t* pinned;
  std::int32_t* status;
  std::atomic<std::int32_t>* cancel;
  /// Its words have the outcomes, instead of `pinned`.
  GpuGraph* graph = nullptr;
};

/// A stream's wait for another GPU: it ends before the position. For the work of a graph on that GPU, also an event of its
/// context (gpu/graphs.h).
struct ForeignWait {
  GpuDevice* device;
  std::uint64_t position;
  void* watch = nullptr;
  std::int64_t watched = 0;
};

/// A stream's wait for a position of another stream, before the command at `before`. Kept while commands are timed.
struct TimedWait {
  GpuStream* target;
  std::uint64_t position;
  std::uint64_t before;
};

/// When positions of a stream were seen done, for the newest marks.
struct DoneTimes {
  static constexpr std::size_t kKept = 64;
  struct Entry {
    std::uint64_t position;
    std::int64_t time;
  } entries[kKept];
  std::size_t added = 0;

  void add(std::uint64_t position, std::int64_t time) {
    entries[added++ % kKept] = {position, time};
  }
  /// The time at which `position` was seen done; 0 if that is not known, or not known any more.
  std::int64_t of(std::uint64_t position) const;
};

struct GpuStream {
  GpuDevice* device = nullptr;
  void* stream = nullptr;
  StreamPurpose purpose = StreamPurpose::compute;

  std::mutex lock;
  std::uint64_t position = 0;  // recordings so far; stored by the owner under `lock`
  std::atomic<std::uint64_t> completed{0};
  std::deque<GpuMark> marks;  // outstanding, oldest first
  std::vector<void*> spare;   // events without a recording in use
  std::uint64_t marked = 0;   // position of the newest mark
  std::uint32_t awaited =
      0;  // so many of the next recordings get a mark: other streams have waited lately
  DoneTimes done;

  /// Position of the newest launch: other threads see by it whether a kernel may be running.
  std::atomic<std::uint64_t> launched{0};

  // Only for the thread that holds the device's submission lock:
  bool pairOpen = false;  // a timed command's begin is recorded, its end is not
  std::int64_t lastQuery = 0;
  std::uint64_t workAtQuery = 0;
  std::size_t stride = 1;  // marks that a hurried question skips
  std::int64_t busySince = 0;
  double perCommand = 0;  // nanoseconds, smoothed
  bool dense = true;
  double previousEnd = 0;     // of the newest timed command
  std::int64_t seenDone = 0;  // when `completed` was last brought up to date
  std::deque<GpuOutcome> outcomes;
  std::deque<ForeignWait> foreignWaits;
  std::uint32_t timedFor = 0;  // waits before so many of the next recordings are kept
  std::deque<TimedWait> timedWaits;
  std::int32_t* outcomeWords = nullptr;    // pinned
  std::vector<std::int32_t*> sparePinned;  // the unused ones
  const Launch* launch = nullptr;          // during an `enqueue` kernel or a plan
  GpuGraph* capture = nullptr;             // the graph that its work becomes part of
  TileLibrary* tiles = nullptr;  // cuBLAS and cuSOLVER handles of this stream (gpu/cuda/tiles.cpp)
};

struct GpuEvent {
  GpuDevice* device = nullptr;
  bool timed = false;
  bool begins = false;          // the first of a timed pair
  GpuStream* stream = nullptr;  // null: never recorded
  std::uint64_t position = 0;
  std::int64_t recorded = 0;
};

struct GpuDevice {
  const GpuApi* api = nullptr;
  const char* driver = "";
  std::int32_t spaceKind = 0;
  std::int32_t ordinal = 0;
  int device = 0;
  void* context = nullptr;
  int major = 0;
  int minor = 0;
  std::vector<GpuStream*> streams;
  std::vector<GpuDevice*> peers;         // this one may read their memory
  std::map<const void*, void*> modules;  // by image
  std::uint64_t work = 0;                // launches and copies submitted
  std::uint64_t workSeen = 0;            // of them, at the last question
  std::int64_t workedAt = 0;             // when a question first saw so many
  std::atomic<bool> lost{false};
  std::atomic<std::int64_t> lostAt{0};
  /// Its streams may wait for a lost GPU for ever. Calls that would wait for them (freeing, destroying) are omitted
  /// at the end, and the memory stays allocated as long as the process.
  std::atomic<bool> stuck{false};

  /// Keeps the words of a failed call; returns its meaning.
  DriverStatus fail(int code, const char* call);
  /// The same for a refusal of this driver table.
  DriverStatus refuse(DriverStatus status, const std::string& text);
  /// Gives the device up for a reason that is not an error of its own.
  DriverStatus abandon(const std::string& text);
  DriverStatus check(int code, const char* call) {
    return __builtin_expect(code == 0, 1) ? DriverStatus::ok : fail(code, call);
  }
  const char* error();
  /// False while a kernel may be running: calls that could wait for it are forbidden then (hazard H8).
  bool quiet() const;
  /// With checks on, refuses a call that could block on a running kernel and names its caller.
  DriverStatus permit(const char* call);

 private:
  std::mutex errorLock_;
  std::string error_;
};

/// Checks for misuse, on as soon as one core of the process is opened with `checked`.
void enableDriverChecks();
bool driverChecks();

/// Puts a kernel into a stream.
DriverStatus gpuLaunch(StreamHandle stream, const Launch* launch);

/// The stream that the running `enqueue` kernel or plan works on; null outside one.
GpuStream* currentStream();

/// For built-in `enqueue` kernels and plans: the outcome in `pinned` (see `takeOutcome`), which the caller's work in the
/// stream writes, becomes the task's status once the stream has got there.
void reportLater(GpuStream& stream, std::int32_t* pinned);
/// A pinned word for `reportLater`; null when as many as can be in flight are.
std::int32_t* takeOutcome(GpuStream& stream);
/// Makes the words of a compute stream. Not on the hot path.
DriverStatus prepareOutcomes(GpuStream& stream);
/// Releases a stream's library handles and workspaces (gpu/cuda/tiles.cpp).
void releaseTiles(GpuStream& stream);

/// A function of an image, which is loaded once per GPU. Not while a kernel runs.
DriverStatus gpuFunctionLoad(DeviceHandle device, const void* image, std::uint64_t imageBytes,
                             const char* symbol, FunctionHandle* function);
/// Compares a loaded function's parameters with its declaration, if the driver can tell them (CUDA 12.4).
DriverStatus gpuCheckSignature(DeviceHandle device, FunctionHandle function,
                               const LaunchRules& rules);
/// Unloads the functions that were loaded from an image that is freed.
void gpuForgetImage(DeviceHandle device, const void* image);

/// A driver's table over the functions of gpu/stream_driver.cpp and gpu/launches.cpp.
DriverTable gpuDriverTable(const char* name, std::int32_t spaceKind,
                           decltype(DriverTable::probe) probe, decltype(DriverTable::open) open);
DriverStatus gpuProbe(const GpuApi* api, const std::string& why, std::int32_t* devices,
                      char* reason, std::size_t reasonBytes);
DriverStatus gpuOpen(const GpuApi* api, const std::string& why, const char* driver,
                     std::int32_t spaceKind, std::int32_t ordinal, DeviceHandle* device,
                     DeviceDescription* description, char* reason, std::size_t reasonBytes);

}  // namespace headrace
