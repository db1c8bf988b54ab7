// One opened core: its spaces, queues and threads. It does not know JavaScript; the addon and the native tests both
// drive it through this class.
//
// Invariants: the memory behind rings, control and shared words belongs to the caller and outlives the core; threads
// exist from `open` to `close`; `close` is idempotent, and only the thread that opened the core may call it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/core_error.h"
#include "core/kernel_source.h"
#include "core/lanes.h"
#include "core/memory.h"
#include "core/runtime.h"
#include "gpu/device_thread.h"
#include "headrace/doorbell.h"
#include "queues/feed.h"
#include "queues/spin.h"
#include "workers/script_port.h"
#include "workers/worker.h"

namespace headrace {

struct CoreOptions {
  std::string driver = "emulated";
  std::int32_t gpus = 0;
  /// Driver's number of the first GPU; the others follow, from 0 again after the last.
  std::int32_t firstGpu = 0;
  /// Per GPU; 0: what a real GPU has, or this process's share of it.
  std::uint64_t gpuBytes = 0;
  /// Processes of this host that divide its GPUs.
  std::int32_t gpuRanks = 1;
  std::uint64_t hostBytes = 0;
  /// First bytes of host space that are page-locked for a real driver.
  std::uint64_t pinnedBytes = 0;
  std::int32_t workers = 1;
  /// Limit of threads that run at once; 0: as many as this process may use.
  std::int32_t cores = 0;
  /// How long idle threads spin before they yield (queues/spin.h).
  std::int64_t spinNanoseconds = kSpinNanoseconds;
  std::int32_t computeStreams = 1;
  std::uint32_t ringRecords = 1024;
  bool checked = false;
  std::int32_t scriptWorkers = 0;
  /// Lanes to other ranks.
  std::int32_t lanes = 0;
};

struct QueueOptions {
  std::int32_t kind;
  std::int32_t space;
  std::int32_t peer;
  std::int32_t* ring;
  double* times;
};

class Core {
 public:
  /// Queues must be `queuesOf(options)`, with rings. Throws CoreError.
  Core(const CoreOptions& options, const std::vector<QueueOptions>& queues, std::int32_t* control,
       std::int32_t* shared);
  ~Core();

  /// The queues of the options, in order: workers, then per GPU compute streams, h2d, d2h, peers, then script
  /// workers; last the lanes.
  static std::vector<QueueOptions> queuesOf(const CoreOptions& options);

  std::int32_t kernel(const std::string& name, std::int32_t space);
  void loadKernels(const std::string& path, std::vector<std::string>& names);
  /// Compiles and registers kernels for the CUDA GPUs of this core.
  void compileKernels(const KernelSource& source, std::vector<std::string>& names);
  void wake(std::int32_t queue);
  bool waitForDoorbell(double microseconds);
  /// As `waitForDoorbell`, but keeps the core.
  bool spinForDoorbell(double microseconds);
  /// As `waitForDoorbell`, but the calling thread executes commands of worker queues meanwhile. False when it found
  /// none to execute and no doorbell rang, or when the engine has a core of its own.
  bool serveUntilDoorbell(double microseconds);
  /// On the engine's thread: reads its stolen time too, and moves up to `most` spans out (stolen_time.h).
  std::size_t takeStolen(StolenSpan* into, std::size_t most);
  std::string lastError(std::int32_t queue) const;
  /// How other processes open a space; null if they cannot.
  const DeviceShare* share(std::int32_t space) const;
  /// From now on `close` does not free device memory that other processes may have open.
  void keepShared();
  bool peerAccess(std::int32_t to, std::int32_t from) const;

  /// Finishes the published commands, ends all threads, frees device memory. With `cancel`, kernels that have not started
  /// are skipped.
  void close(bool cancel = false);
  bool closed() const { return closed_; }

  /// The play that has begun, or null. The caller adds the queues, calls `Play::begin`, and ends it when all of it has
  /// completed.
  std::unique_ptr<Play> play;

  /// The port of a script worker's queue, or null.
  ScriptPort* scriptPort(std::int32_t queue);

  /// For other addons (the message layer); valid as long as the core exists.
  const headrace_doorbell* externalDoorbell() const { return &externalDoorbell_; }
  /// Null without lanes.
  const headrace_lanes* lanes() const { return lanes_ == nullptr ? nullptr : lanes_->table(); }

  Runtime& runtime() { return runtime_; }
  const Space& space(std::size_t index) const { return runtime_.spaces[index]; }
  const std::shared_ptr<HostMemory>& host() const { return host_; }

 private:
  void openDevices(const CoreOptions& options);
  void prepareTileKernels();
  bool doorbellDue() const;

  Runtime runtime_;
  headrace_doorbell externalDoorbell_;
  std::shared_ptr<HostMemory> host_;
  std::vector<std::unique_ptr<DeviceThread>> devices_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<ScriptPort>> scriptPorts_;
  /// Of the engine's thread, also while it executes commands.
  StolenTime stolen_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Lanes> lanes_;
  std::vector<bool> peers_;
  /// Per GPU: cuBLAS and cuSOLVER were prepared, or are missing.
  std::vector<bool> tilesAsked_;
  bool closed_ = false;
};

}  // namespace headrace
