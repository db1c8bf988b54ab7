// The process's one comm thread: it initialises MPI, runs one session after the other, and finalizes MPI. Every MPI
// call of the process is made here. MPI can be initialised once per process, so there is one world per process.
//
// How it waits: a short spin, then giving way to others, then sleeping in steps of 20 us (MPI has no wait that a
// command could interrupt, so a message that comes while it sleeps is seen a step later; a command wakes it at once).
// While the engine has no live task and nothing is under way, the steps are 1 ms.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

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

/// What the library says without being initialised.
Facts describeLibrary();

class World {
 public:
  static World& instance();

  /// Starts the thread and MPI. Blocks until done; throws std::runtime_error with the reason.
  Facts start();
  /// Opens a session on all ranks. Blocks until all have come; throws std::runtime_error.
  std::vector<Hello> open(SessionOptions options);
  /// Seconds that one message of that size takes one way between ranks 0 and 1, by plain MPI_Send and MPI_Recv, as the
  /// mean over many. All ranks must call it; no session may be open. The bar that benchmarks measure against.
  double measure(std::int64_t bytes, int rounds);
  /// Identity of this rank's host in `Hello`.
  std::uint64_t host() const { return host_; }
  void wake() { parker_.unpark(); }
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
  void pingPong();
  void serve();
  void rest(std::int64_t idleSince);
  void checkLifeline();
  int waitFor(MPI_Request* request);

  enum class Order { none, open, end, finish, measure };
  void give(Order order);

  std::mutex lock_;
  std::condition_variable changed_;
  bool started_ = false;
  bool up_ = false;
  bool answered_ = false;
  Order order_ = Order::none;
  std::string error_;
  std::thread thread_;
  Parker parker_;

  Facts facts_;
  std::uint64_t host_ = 0;
  Lifeline lifeline_;
  std::unique_ptr<SessionOptions> wanted_;
  std::unique_ptr<Session> session_;
  std::vector<Hello> hellos_;
  bool finished_ = false;
  bool abandon_ = false;
  bool ended_ = false;
  std::int64_t measureBytes_ = 0;
  int measureRounds_ = 0;
  double measured_ = 0;
  int lost_ = -1;
  std::int64_t lookedAt_ = 0;
};

}  // namespace headrace::mpi
