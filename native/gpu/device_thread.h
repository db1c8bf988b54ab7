// The thread of one GPU: submits the commands of all its queues to their streams and finds the finished ones.
//
// Invariants: no call here blocks while another ring of the same GPU could go on: a wait for a stream's event
// becomes a wait of the stream, any other wait holds only its own ring. The thread sleeps only after it has told
// all threads that could give it work (see `sleep`). All calls that a driver must not make while kernels run (open,
// allocate, load) happen inside `call`, before work exists or on the user's request.
// Only the thread that holds the GPU's submission lock (gpu/submission_lock.h) touches the rings and streams. A thread
// whose ring waits for work that another GPU has yet to submit submits it itself (see `helpOthers`).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/runtime.h"
#include "core/stolen_time.h"
#include "gpu/driver.h"
#include "gpu/stream_queue.h"
#include "gpu/submission_lock.h"
#include "queues/futex_token.h"
#include "queues/ring.h"

namespace headrace {

/// The records of one queue in a plan (contract, NativePlanQueue).
struct PlanList {
  Queue* queue = nullptr;
  std::int32_t* records = nullptr;
  std::int32_t length = 0;
};

/// A plan as a graph, and what its kernels were given: they may look at it whenever they run.
struct PlanGraph {
  GraphHandle handle = nullptr;
  bool released = false;
  std::deque<std::vector<void*>> addresses;
  std::deque<std::vector<double>> values;
};

class DeviceThread {
 public:
  /// The `gpu`-th of the core; `ordinal` is the driver's number for it.
  DeviceThread(Runtime& runtime, const DriverTable& driver, std::int32_t gpu, std::int32_t ordinal);
  /// Ends the thread: the core must be closing. The device stays open for its peers until `closeDevice`.
  ~DeviceThread();

  /// Runs a function on the device's thread and returns its result; exceptions are passed on.
  void call(const std::function<void()>& function);
  /// The same at a moment in which no kernel runs, for calls that load code or allocate (gpu/quiescent_section.h). While it
  /// waits for that, the thread continues its work. Throws DRIVER with `late` when kernels have been running for so many
  /// nanoseconds.
  /// A function that returns false is called again, at another such moment.
  void callQuiet(const std::function<bool()>& function, std::int64_t patience, const char* late);
  /// To load a kernel: with patience.
  void callQuiet(const std::function<void()>& function);

  // To be used inside `call`, in this order.
  void openDevice(std::uint64_t bytes, std::int32_t sharers, Space& space);
  void openQueue(Queue& queue);
  void registerHost(void* pointer, std::uint64_t bytes, std::uint64_t reserve);
  bool enablePeer(const DeviceThread& peer);
  /// Loads the device code of all registered kernels that are not loaded yet.
  void loadFunctions();
  /// Loads device code that is not registered yet and compares it with its declaration; throws KERNEL_SOURCE.
  void tryFunctions(const std::string& image, const std::vector<Registry::DeviceKernel>& kernels);
  void forgetImage(const std::string& image);

  /// Makes one graph of the lists of a plan (gpu/graphs.h), whose queues are of this GPU and of others. The first one, of this
  /// GPU, launches it, by `Opcode::graph` with the number that is returned. Throws DRIVER with the reason why it cannot be
  /// captured.
  std::int32_t capture(const std::vector<PlanList>& lists);
  /// Place of the command whose failure was the outcome of the graph's newest launch with one; false: there was none.
  bool graphFailed(std::int32_t graph, std::int32_t& list, std::int32_t& record);
  /// The plan does not need it any more. It goes when no kernel runs: with the next capture, or when the device closes.
  void releaseGraph(std::int32_t graph);

  /// Ends the thread after everything published has finished.
  void join();
  /// Releases streams, memory and device; after `join` of all devices.
  void closeDevice();
  /// `closeDevice` does not free memory that other processes may have opened by its IPC handle (H6): it stays, with
  /// its context, until this process ends.
  void keepShared() { keepsShared_ = true; }

  DeviceHandle device() const { return device_; }
  /// How other processes open the slab, known since its allocation; null if they cannot.
  const DeviceShare* share() const { return shared_ ? &share_ : nullptr; }

 private:
  enum class Hold { none, held, abandoned };

  /// Limit of commands of one queue in a real stream at once: a stream that is full would block the thread.
  static constexpr std::int32_t kMaxInFlight = 256;

  void run();
  bool runCalls();
  bool pass();
  bool serve(int turn);
  void lookForStolen();
  bool helpOthers(DeviceThread& helper);
  bool serveFor(DeviceThread& helper);
  DriverStatus bind(DeviceThread& served);
  void enter(DeviceThread& served);
  bool submit(StreamQueue& stream, int turn);
  bool refill(StreamQueue& stream);
  Hold resolveWait(StreamQueue& stream, Queue& target, std::int32_t sequence);
  DriverStatus streamWait(StreamQueue& stream, StreamQueue& target, std::int32_t sequence,
                          bool* completed);
  void issue(StreamQueue& stream, const Command& command, std::int32_t sequence,
             std::int32_t status);
  std::int32_t perform(StreamQueue& stream, const Command& command, std::int32_t sequence);
  std::int32_t launch(StreamQueue& stream, const Command& command, const double* values,
                      std::vector<void*>& addresses);
  std::int32_t launchGraph(StreamQueue& stream, const Command& command);
  GraphHandle graphOf(const Command& command) const;
  bool mustWaitForOutcome(StreamQueue& stream, const Command& command);
  bool captureAlone(const std::vector<PlanList>& lists, std::int32_t* number);
  void captureAll(const std::vector<PlanList>& lists, PlanGraph& graph);
  void captureLists(const std::vector<PlanList>& lists, PlanGraph& graph);
  static void captureCommand(StreamQueue& stream, const Command& command, PlanGraph& graph);
  void demand(DriverStatus status);
  void freeGraphs(bool all);
  std::int32_t copy(StreamQueue& stream, const Command& command);
  std::int32_t outcome(StreamQueue& stream, DriverStatus status);
  void fail(const Command& command, std::int32_t status);
  bool beginTiming(StreamSlot& slot, StreamQueue& stream);
  bool retire(StreamQueue& stream);
  void finish(StreamQueue& stream, const Command& command, StreamSlot& slot);
  void lose(StreamQueue& stream);
  bool ended();
  bool finishedAll() const;
  bool inFlight() const;
  void sleep();
  bool somethingToDo();

  Runtime& runtime_;
  const DriverTable& driver_;
  const std::int32_t gpu_;
  const std::int32_t ordinal_;
  DeviceHandle device_ = nullptr;
  DeviceAddress slab_ = 0;
  DeviceShare share_{};
  bool shared_ = false;
  bool keepsShared_ = false;
  Space* space_ = nullptr;
  void* registered_ = nullptr;
  std::vector<std::unique_ptr<StreamQueue>> streams_;
  std::vector<FunctionHandle> functions_;
  /// By number; with a null handle once released.
  std::vector<PlanGraph> graphs_;
  /// Events of other GPUs that a stream of this one may still wait for: their completion must wake this thread.
  std::vector<std::pair<Queue*, std::int32_t>> foreign_;
  std::vector<std::pair<CompletionWaiters*, CompletionWaiter>> watching_;
  bool lost_ = false;
  SubmissionLock turn_;
  /// The GPU whose context is current on this thread.
  DeviceThread* bound_ = nullptr;

  std::mutex callLock_;
  std::condition_variable callDone_;
  std::deque<std::function<void()>> calls_;
  std::atomic<bool> callsWaiting_{false};
  std::atomic<bool> ending_{false};
  StolenTime stolen_;
  FutexToken sleeper_;
  std::thread thread_;
};

}  // namespace headrace
