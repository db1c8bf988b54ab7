// The loop of a host worker: see worker.h.
#include "worker.h"

#include <pthread.h>

#include <cstdio>
#include <cstring>

#include "clock.h"
#include "spin.h"

namespace headrace {

Worker::Worker(Runtime& runtime, Queue& queue) : runtime_(runtime), queue_(queue) {
  const Space& space = runtime.spaces[0];
  task_ = {};
  task_.space_base = reinterpret_cast<void*>(space.base);
  task_.space_bytes = space.bytes;
  task_.space_kind = space.kind;
  task_.gpu = -1;
  queue.owner = &parker_;
  thread_ = std::thread([this] { run(); });
}

Worker::~Worker() {
  parker_.unpark();
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  char name[16];
  std::snprintf(name, sizeof name, "headrace-w%d", queue_.index);
  pthread_setname_np(pthread_self(), name);
  std::int32_t done = queue_.completed();
  busySince_ = now();
  while (!stopped_) {
    const std::int32_t last = queue_.published();
    if (last == done) {
      if (!waitForWork(done)) break;
      continue;
    }
    visible_ = last;
    while (done != last && !stopped_) {
      const std::int32_t sequence = static_cast<std::int32_t>(static_cast<std::uint32_t>(done) + 1);
      // The engine wrote the records on another core: have the one after next on its way.
      __builtin_prefetch(queue_.record(sequence) + 2 * Record::words);
      done = execute(Command(queue_.record(sequence)), sequence);
    }
  }
  becomeIdle(now());
}

/// False when the core closes and the ring is empty.
bool Worker::waitForWork(std::int32_t done) {
  const auto ready = [&] { return queue_.published() != done; };
  bool idle = false;
  if (!spin(ready, [&](std::int64_t time) { becomeIdle(time), idle = true; })) {
    // The engine publishes and then looks at `sleeping`; here it is the other way round (both seq_cst), so either it
    // sees that this thread sleeps and wakes it, or this thread sees the new record.
    queue_.setSleeping(true);
    while (queue_.published(std::memory_order_seq_cst) == done) {
      if (runtime_.closing.load(std::memory_order_seq_cst)) return false;
      parker_.park(-1);
      queue_.setSleeping(true);
    }
    queue_.setSleeping(false);
  }
  if (idle) becomeBusy();
  return true;
}

/// False when the event can never happen any more.
bool Worker::waitForEvent(const Command& command) {
  Queue* target = runtime_.queue(command.waitQueue());
  const std::int32_t sequence = command.waitSequence();
  if (target == nullptr || target->hasCompleted(sequence)) return true;
  bool idle = false;
  bool happened = spin([&] { return target->hasCompleted(sequence); },
                       [&](std::int64_t time) { becomeIdle(time), idle = true; });
  if (!happened) {
    Watcher watcher;
    watcher.target = sequence;
    watcher.parker = &parker_;
    target->completion.add(watcher);
    while (!(happened = target->hasCompleted(sequence, std::memory_order_seq_cst)) &&
           !runtime_.abandoned(*target, sequence)) {
      parker_.park(-1);
    }
    target->completion.remove(watcher);
  }
  if (idle) becomeBusy();
  return happened;
}

/// Carries out one command and publishes it; returns the sequence number of its last record.
std::int32_t Worker::execute(const Command& command, std::int32_t sequence) {
  const std::int32_t span = command.span();
  const auto last = static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) +
                                              static_cast<std::uint32_t>(span) - 1);
  std::int32_t status = Status::ok;
  if (command.waitQueue() >= 0 && !waitForEvent(command)) status = Status::cancelled;

  const std::int32_t opcode = command.opcode();
  const bool timed = opcode >= Opcode::exec && opcode <= Opcode::fill && runtime_.timing();
  const std::int64_t start = timed ? now() : 0;
  queue_.setSubmitted(last, std::memory_order_relaxed);
  Word* cancel = runtime_.cancelWord(command.run());
  if (status == Status::ok) {
    switch (opcode) {
      case Opcode::exec:
        status = cancel != nullptr && cancel->load(std::memory_order_acquire) != 0
                     ? Status::cancelled
                     : runKernel(command, sequence, span);
        break;
      case Opcode::copy: status = copy(command); break;
      case Opcode::fill: status = fill(command); break;
      case Opcode::stop: stopped_ = true; break;
      default: break;
    }
  }
  if (timed) command.setTimes(static_cast<double>(start), static_cast<double>(now()));
  command.setStatus(status);
  if (__builtin_expect(status != Status::ok, 0)) {
    queue_.addFailure();
    if (cancel != nullptr) cancel->store(1, std::memory_order_release);
  }
  // Whoever sees the last of what was commanded completed may read the busy time at once.
  if (last == visible_) {
    const std::int64_t time = now();
    becomeIdle(time);
    busySince_ = time;
  }
  queue_.publish(last);
  return last;
}

std::int32_t Worker::runKernel(const Command& command, std::int32_t sequence, std::int32_t span) {
  const headrace_kernel kernel = runtime_.registry.host(command.kernel());
  if (kernel == nullptr) return Status::unknownKernel;
  const std::int32_t total = command.argumentCount();
  const std::int32_t flows = command.flowCount();
  if (flows > total) return Status::badArguments;
  const double* values = arguments(queue_, sequence, total, span, scratch_);
  const Space& space = runtime_.spaces[0];
  if (flows_.size() < static_cast<std::size_t>(flows)) flows_.resize(flows);
  for (std::int32_t i = 0; i < flows; ++i) {
    if (!space.contains(values[i])) return Status::outOfRange;
    flows_[i] = space.pointer(values[i]);
  }
  task_.flows = flows_.data();
  task_.flow_count = flows;
  task_.params = values + flows;
  task_.param_count = total - flows;
  task_.task = command.task();
  return kernel(&task_);
}

std::int32_t Worker::copy(const Command& command) {
  const Space* to = runtime_.space(command.destinationSpace());
  const Space* from = runtime_.space(command.sourceSpace());
  if (to == nullptr || from == nullptr) return Status::outOfRange;
  // A worker reaches what the processor can address: the host and emulated GPUs.
  if (to->kind > SpaceKind::emulated || from->kind > SpaceKind::emulated) {
    queue_.setError("a host worker cannot copy to or from the memory of a real GPU");
    return Status::driver;
  }
  const double bytes = command.argument(2);
  if (!to->contains(command.argument(0), bytes) || !from->contains(command.argument(1), bytes)) {
    return Status::outOfRange;
  }
  std::memmove(to->pointer(command.argument(0)), from->pointer(command.argument(1)),
               static_cast<std::size_t>(bytes));
  return Status::ok;
}

std::int32_t Worker::fill(const Command& command) {
  const Space& space = runtime_.spaces[0];
  if (!space.contains(command.argument(0), command.argument(1))) return Status::outOfRange;
  std::memset(space.pointer(command.argument(0)), static_cast<int>(command.argument(2)) & 0xff,
              static_cast<std::size_t>(command.argument(1)));
  return Status::ok;
}

void Worker::becomeIdle(std::int64_t time) { queue_.addBusy(time - busySince_); }

void Worker::becomeBusy() { busySince_ = now(); }

}  // namespace headrace
