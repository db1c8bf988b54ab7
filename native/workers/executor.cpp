// Carrying out commands on the calling thread: see workers/executor.h.
#include "workers/executor.h"

#include <cstring>

#include "core/clock.h"
#include "queues/feed.h"

namespace headrace {

Executor::Executor(Runtime& runtime, StolenTime& stolen) : runtime_(runtime), stolen_(stolen) {
  const Space& space = runtime.spaces[0];
  task_ = {};
  task_.space_base = reinterpret_cast<void*>(space.base);
  task_.space_bytes = space.bytes;
  task_.space_kind = space.kind;
  task_.gpu = -1;
}

void Executor::begin(Queue& queue) {
  queue_ = &queue;
  done_ = queue.completed();
  followsAt_ = 0;
  // A thread that returns to a queue may execute its next record soon: that one is visible.
  visible_ = queue.published();
  becomeBusy();
}

void Executor::end() {
  if (busy_) becomeIdle(now());
  queue_ = nullptr;
}

void Executor::becomeIdle(std::int64_t time) {
  if (busy_) queue_->endBusy(time);
  busy_ = false;
}

void Executor::becomeBusy() {
  busySince_ = now();
  if (runtime_.timing() && stolen_.due(busySince_)) stolen_.look(busySince_, queue_->index);
}

bool Executor::refill() {
  Feed* feed = queue_->feed();
  if (feed == nullptr || !feed->refill()) return false;
  visible_ = queue_->published();
  // The rest of the play may have been skipped.
  done_ = queue_->completed();
  return done_ != visible_;
}

void Executor::execute(bool givenUp) {
  const std::int32_t sequence = next();
  const Command command(queue_->record(sequence));
  // The engine wrote the records on another core: prefetch the one after next, but not before it is written.
  // That would take it away from the engine.
  if (ahead(visible_, sequence) > 2) {
    __builtin_prefetch(queue_->record(sequence) + 2 * Record::words);
  }
  const std::int32_t span = command.span();
  const auto last = static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) +
                                              static_cast<std::uint32_t>(span) - 1);
  std::int32_t status = givenUp ? Status::cancelled : Status::ok;
  if (!busy_) {
    busy_ = true;
    queue_->beginBusy(busySince_);
  }
  const std::int32_t opcode = command.opcode();
  const bool timed = opcode >= Opcode::exec && opcode <= Opcode::fill && runtime_.timing();
  // A command without a wait that was published before its predecessor began starts when that one ends: reading the
  // clock takes as long as a short kernel.
  const std::int64_t start = !timed                                       ? 0
                             : followsAt_ != 0 && command.waitQueue() < 0 ? followsAt_
                                                                          : now();
  queue_->setSubmitted(last, std::memory_order_relaxed);
  Word* cancel = runtime_.cancelWord(command.run());
  if (status == Status::ok && cancel != nullptr && cancel->load(std::memory_order_acquire) != 0) {
    status = Status::cancelled;
  }
  if (status == Status::ok) {
    switch (opcode) {
      case Opcode::exec: status = runKernel(command, sequence, span); break;
      case Opcode::copy: status = copy(command); break;
      case Opcode::fill: status = fill(command); break;
      case Opcode::stop: stopped_ = true; break;
      default: break;
    }
  }
  const std::int64_t end = timed ? now() : 0;
  if (timed) {
    queue_->setTimes(command.words(), static_cast<double>(start), static_cast<double>(end));
    if (stolen_.due(end)) stolen_.look(end, queue_->index);
  }
  followsAt_ = end;
  command.setStatus(status);
  if (__builtin_expect(status != Status::ok, 0)) {
    queue_->addFailure();
    if (cancel != nullptr) cancel->store(1, std::memory_order_release);
  }
  // A thread that sees the last published command completed may read the busy time at once.
  if (last == visible_) {
    const std::int64_t time = timed ? end : now();
    queue_->endBusy(time);
    busySince_ = time;
    busy_ = false;
  }
  done_ = last;
  queue_->publish(last);
}

std::int32_t Executor::runKernel(const Command& command, std::int32_t sequence, std::int32_t span) {
  const headrace_kernel kernel = runtime_.registry.host(command.kernel());
  if (kernel == nullptr) return Status::unknownKernel;
  const std::int32_t total = command.argumentCount();
  const std::int32_t flows = command.flowCount();
  if (flows > total) return Status::badArguments;
  const double* values = arguments(*queue_, sequence, total, span, scratch_);
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

std::int32_t Executor::copy(const Command& command) {
  const Space* to = runtime_.space(command.destinationSpace());
  const Space* from = runtime_.space(command.sourceSpace());
  if (to == nullptr || from == nullptr) return Status::outOfRange;
  // A worker reaches the memory that the processor can address: the host and emulated GPUs.
  if (to->kind > SpaceKind::emulated || from->kind > SpaceKind::emulated) {
    queue_->setError("a host worker cannot copy to or from the memory of a real GPU");
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

std::int32_t Executor::fill(const Command& command) {
  const Space& space = runtime_.spaces[0];
  if (!space.contains(command.argument(0), command.argument(1))) return Status::outOfRange;
  std::memset(space.pointer(command.argument(0)), static_cast<int>(command.argument(2)) & 0xff,
              static_cast<std::size_t>(command.argument(1)));
  return Status::ok;
}

}  // namespace headrace
