// Carrying out commands on the calling thread: see workers/executor.h.
#include "workers/executor.h"

#include <cstring>

#include "core/clock.h"
#include "core/kernel_lengths.h"
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

inline Executor::UnderWay Executor::prepare(bool givenUp) {
  UnderWay record;
  record.sequence = next();
  const Command command(queue_->record(record.sequence));
  // The engine wrote the records on another core: prefetch the one after next, but not before it is written.
  // That would take it away from the engine.
  if (ahead(visible_, record.sequence) > 2) {
    __builtin_prefetch(queue_->record(record.sequence) + 2 * Record::words);
  }
  record.span = command.span();
  record.last = after(record.sequence, record.span - 1);
  record.status = givenUp ? Status::cancelled : Status::ok;
  if (!busy_) {
    busy_ = true;
    queue_->beginBusy(busySince_);
  }
  const std::int32_t opcode = command.opcode();
  record.timed =
      opcode >= Opcode::exec && opcode <= Opcode::fill && (runtime_.timing() || command.isTimed());
  // A command without a wait that was published before its predecessor began starts when that one ends: reading the
  // clock takes as long as a short kernel.
  record.start = !record.timed                                ? 0
                 : followsAt_ != 0 && command.waitQueue() < 0 ? followsAt_
                                                              : now();
  queue_->setSubmitted(record.last, std::memory_order_relaxed);
  record.cancel = runtime_.cancelWord(command.run());
  if (record.status == Status::ok && record.cancel != nullptr &&
      record.cancel->load(std::memory_order_acquire) != 0) {
    record.status = Status::cancelled;
  }
  return record;
}

inline std::int32_t Executor::carryOut(const UnderWay& record) {
  if (record.status != Status::ok) return record.status;
  const Command command(queue_->record(record.sequence));
  switch (command.opcode()) {
    case Opcode::exec: return runKernel(command, record.sequence, record.span);
    case Opcode::copy: return copy(command);
    case Opcode::fill: return fill(command);
    case Opcode::stop: stopped_ = true; return Status::ok;
    default: return Status::ok;
  }
}

inline void Executor::complete(const UnderWay& record, std::int32_t status) {
  const Command command(queue_->record(record.sequence));
  const std::int64_t end = record.timed ? now() : 0;
  if (record.timed) {
    queue_->setTimes(command.words(), static_cast<double>(record.start), static_cast<double>(end));
    if (stolen_.due(end)) stolen_.look(end, queue_->index);
  }
  followsAt_ = end;
  command.setStatus(status);
  if (__builtin_expect(status != Status::ok, 0)) {
    queue_->addFailure();
    Word* cancel = runtime_.failureWord(command.run());
    if (status != Status::cancelled && cancel != nullptr) {
      cancel->store(1, std::memory_order_release);
    }
  }
  // A thread that sees the last published command completed may read the busy time at once.
  if (record.last == visible_) {
    const std::int64_t time = record.timed ? end : now();
    queue_->endBusy(time);
    busySince_ = time;
    busy_ = false;
  }
  done_ = record.last;
  queue_->publish(record.last);
}

void Executor::execute(bool givenUp) {
  const UnderWay record = prepare(givenUp);
  complete(record, carryOut(record));
}

bool Executor::start(bool givenUp) {
  started_ = prepare(givenUp);
  if (started_.status == Status::ok && started().opcode() == Opcode::exec) return true;
  complete(started_, carryOut(started_));
  return false;
}

void Executor::finish(std::int32_t status) { complete(started_, status); }

const double* Executor::startedArguments() {
  return arguments(*queue_, started_.sequence, started().argumentCount(), started_.span, scratch_);
}

std::int32_t Executor::runKernel(const Command& command, std::int32_t sequence, std::int32_t span) {
  const headrace_kernel kernel = runtime_.registry.host(command.kernel());
  if (kernel == nullptr) return Status::unknownKernel;
  const std::int32_t total = command.argumentCount();
  const std::int32_t flows = command.flowCount();
  const double* values = arguments(*queue_, sequence, total, span, scratch_);
  if (!readParameters(runtime_, command, values, task_)) return Status::badArguments;
  const Space& space = runtime_.spaces[0];
  if (flows_.size() < static_cast<std::size_t>(flows)) flows_.resize(flows);
  for (std::int32_t i = 0; i < flows; ++i) {
    if (!space.contains(values[i])) return Status::outOfRange;
    flows_[i] = space.pointer(values[i]);
  }
  task_.flows = flows_.data();
  task_.flow_count = flows;
  task_.task = command.task();
  task_.kernel = command.kernel();
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
