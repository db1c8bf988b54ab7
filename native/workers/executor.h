// Carries out the commands of a worker queue on the calling thread: kernels, copies and fills on host memory.
//
// Invariant: one thread at a time executes the commands of one queue, in the order of its ring (see queue_ownership.h),
// and `completed` is published after every record, so no other queue ever waits for a finished record.
#pragma once

#include <cstdint>
#include <vector>

#include "core/runtime.h"
#include "core/stolen_time.h"
#include "queues/ring.h"

namespace headrace {

class Executor {
 public:
  /// `stolen`: the stolen time of the executing thread.
  Executor(Runtime& runtime, StolenTime& stolen);

  /// Serves `queue` from now on; the caller holds it (queue_ownership.h).
  void begin(Queue& queue);
  /// Stops serving: the queue's busy time ends.
  void end();
  Queue& queue() const { return *queue_; }

  /// Sequence number of the last record that is done.
  std::int32_t done() const { return done_; }
  /// True when there is no published record to execute.
  bool empty() {
    if (ahead(visible_, done_) > 0) return false;
    followsAt_ = 0;
    visible_ = queue_->published();
    return done_ == visible_ && !refill();
  }
  /// The next record. Only when not `empty`.
  Command head() const { return Command(queue_->record(next())); }
  /// True when there is a next record and its wait is over.
  bool canExecute() {
    if (empty()) return false;
    const Command command = head();
    const Queue* target = runtime_.queue(command.waitQueue());
    return target == nullptr || target->hasCompleted(command.waitSequence());
  }
  /// Carries out the next record, whose wait is over, and publishes it. `givenUp`: its event never happens.
  void execute(bool givenUp = false);
  /// As `execute`, but a body that is to run is left to the caller, who ends it with `finish`: true.
  bool start(bool givenUp = false);
  void finish(std::int32_t status);
  /// The arguments of the body that was started, and its record.
  const double* startedArguments();
  Command started() const { return Command(queue_->record(started_.sequence)); }
  std::int32_t startedSequence() const { return started_.sequence; }
  /// A `stop` was executed.
  bool stopped() const { return stopped_; }

  /// Brackets time without work.
  void becomeIdle(std::int64_t time);
  void becomeBusy();

 private:
  std::int32_t next() const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(done_) + 1);
  }
  /// A record under way.
  struct UnderWay {
    std::int32_t sequence;
    std::int32_t span;
    std::int32_t last;
    std::int64_t start;
    bool timed;
    Word* cancel;
    std::int32_t status;
  };
  /// The two halves of `execute`.
  UnderWay prepare(bool givenUp);
  void complete(const UnderWay& record, std::int32_t status);
  std::int32_t carryOut(const UnderWay& record);
  /// Takes the next records of a play; true when there is one to execute.
  bool refill();
  std::int32_t runKernel(const Command& command, std::int32_t sequence, std::int32_t span);
  std::int32_t copy(const Command& command);
  std::int32_t fill(const Command& command);

  Runtime& runtime_;
  Queue* queue_ = nullptr;
  std::int32_t done_ = 0;
  std::int32_t visible_ = 0;  // last record known to be published
  StolenTime& stolen_;
  /// The begin of a time without work; the next command begins the queue's busy time then.
  std::int64_t busySince_ = 0;
  /// The queue's busy time has begun.
  bool busy_ = false;
  /// End of the last command, when it was timed and nothing was waited for since; else 0.
  std::int64_t followsAt_ = 0;
  bool stopped_ = false;
  UnderWay started_{};
  std::vector<void*> flows_;
  std::vector<double> scratch_;
  headrace_task task_;
};

}  // namespace headrace
