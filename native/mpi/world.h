// The process's one comm thread: it initialises MPI, runs one session after the other, and finalizes MPI. Every MPI
// call of the process is made here. MPI can be initialised once per process, so there is one world per process.
//
// Its waits: a short spin, then yielding, then sleeping in steps of 20 us. MPI has no wait that a
// command could interrupt, so the thread sees a message that arrives in its sleep one step later; a command wakes it at
// once. While the engine has no live task and no transfer is under way, the steps are 1 ms. Where all that it waits for wakes it, it does
// not yield, and its sleeps are 1 ms.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gpus.h"
#include "lifeline.h"
#include "session.h"

namespace headrace::mpi {

struct Facts {
  int rank = 0;
  int size = 1;
  std::string flavour;
  std::string library;
  std::string standard;
  std::string threadLevel;
  bool gpuAware = false;
};

/// A GPU by the name that is the same in every process; an empty UUID: none.
struct GpuName {
  std::int32_t kind = 0;
  std::string uuid;
};

/// The facts that a session found when it opened.
struct Opened {
  struct Peer {
    bool sameHost;
    std::int32_t pid;
    std::array<double, NetLimit::told> told;
    /// This rank writes its short letters into memory of that one.
    bool mailbox;
    /// Per space: whether this process can read it without the owner's help, and whether MPI may get addresses
    /// of it there.
    std::vector<bool> mappable;
    std::vector<bool> reachable;
  };
  std::vector<Peer> peers;
  /// Why MPI gets no addresses of real GPU memory although that was allowed; empty when it gets them.
  std::string directProblem;
  /// Why memory of a GPU of this host could not be opened.
  std::string mappingProblem;
};

/// The facts that the library reports without initialisation.
Facts describeLibrary();

class World {
 public:
  static World& instance();

  /// Starts the thread and MPI. Blocks until done; throws std::runtime_error with the reason. The GPU is made current
  /// first: an MPI library that takes device pointers binds itself to it (H10).
  Facts start(const GpuName& gpu);
  /// Opens a session on all ranks. Blocks until all are there; throws std::runtime_error.
  Opened open(SessionOptions options);
  enum class Raw { hostMemory, emulatedMemory, gpuMemory, ipcRead };
  /// Seconds of one transfer of that size by hand (raw.h). All ranks must call it; no session may be open. Throws
  /// std::runtime_error.
  double measure(std::int64_t bytes, int rounds, Raw how);
  void wake() { sleeper_.unpark(); }
  /// Ends the open session; blocks until the comm thread has let go of it.
  void end();
  /// Finalizes MPI; false when that is not possible in time (a peer was lost, or does not come). With `abandon`, ends
  /// the thread without MPI: this process dies, and the lifeline tells the others.
  bool finish(int milliseconds, bool abandon);

 private:
  World() = default;
  void run();
  bool initialise();
  bool tie();
  void openSession();
  Hello describeSelf(const Mailbox* mailbox);
  void findGpus();
  std::string directProblem() const;
  void measureRaw();
  void serve();
  void rest();
  void checkLifeline();
  int waitFor(MPI_Request* request);

  enum class Order { none, open, end, finish, measure };
  void give(Order order);

  std::mutex lock_;
  std::condition_variable changed_;
  bool started_ = false;
  bool up_ = false;
  bool answered_ = false;
  /// The comm thread reads it without the lock: all that belongs to an order is written before.
  std::atomic<Order> order_{Order::none};
  std::string error_;
  std::thread thread_;
  SharedToken token_;
  FutexToken& sleeper_ = token_.token();

  Facts facts_;
  std::uint64_t host_ = 0;
  /// Ranks of this host, this one included.
  std::int32_t hostRanks_ = 1;
  Lifeline lifeline_;
  std::unique_ptr<SessionOptions> wanted_;
  std::unique_ptr<Session> session_;
  std::vector<Hello> hellos_;
  Opened opened_;
  GpuName startGpu_;
  Gpus gpus_;
  /// The one GPU whose addresses MPI may get, since it binds itself to the first that it meets; null before that.
  const Gpu* mpiGpu_ = nullptr;
  bool finished_ = false;
  bool abandon_ = false;
  bool ended_ = false;
  std::int64_t measureBytes_ = 0;
  int measureRounds_ = 0;
  Raw measureHow_ = Raw::hostMemory;
  double measured_ = 0;
  int lost_ = -1;
  std::int64_t lookedAt_ = 0;
  std::int32_t looks_ = 0;
  /// When the thread ran out of work; 0: it has not looked at the clock since.
  std::int64_t idleSince_ = 0;
  /// It spins for long and has not ended that: it looks at the clock, and at all requests, in few rounds.
  bool hurries_ = false;
  std::uint32_t rounds_ = 0;
};

}  // namespace headrace::mpi
