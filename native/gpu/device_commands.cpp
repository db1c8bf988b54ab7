// The commands of a GPU's thread: waits become orders between streams, work goes into streams, and finished
// commands are published (gpu/device_thread.h names the callers).
#include <algorithm>

#include "core/clock.h"
#include "core/kernel_lengths.h"
#include "gpu/device_thread.h"
#include "queues/feed.h"

namespace headrace {

namespace {

std::int32_t variantOf(std::int32_t spaceKind) {
  return spaceKind == SpaceKind::cuda  ? HEADRACE_KERNEL_CUDA
         : spaceKind == SpaceKind::hip ? HEADRACE_KERNEL_HIP
                                       : HEADRACE_KERNEL_HOST;
}

}  // namespace

bool DeviceThread::submit(StreamQueue& stream, int turn) {
  bool moved = false;
  for (; turn > 0 && !stream.stopped; --turn) {
    if (stream.queue.published() == stream.next && !refill(stream)) break;
    if (lost_) {
      lose(stream);
      return true;
    }
    if (ahead(stream.next, stream.finished) >= kMaxInFlight) break;
    const std::int32_t sequence = after(stream.next, 1);
    const Command command(stream.queue.record(sequence));
    std::int32_t status = Status::ok;
    if (mustWaitForOutcome(stream, command)) break;
    Queue* target = runtime_.queue(command.waitQueue());
    if (target != nullptr) {
      const Hold hold = resolveWait(stream, *target, command.waitSequence());
      if (hold == Hold::held) break;
      if (hold == Hold::abandoned) status = Status::cancelled;
    }
    issue(stream, command, sequence, status);
    moved = true;
  }
  return moved;
}

/// Takes the next records of a play; true when there is one to submit.
bool DeviceThread::refill(StreamQueue& stream) {
  Feed* feed = stream.queue.feed();
  if (feed == nullptr || !feed->refill()) return false;
  // The rest of the play may have been skipped. The engine may have published records behind it already, and the slots
  // before these hold old ones.
  const std::int32_t completed = stream.queue.completed();
  if (ahead(completed, stream.next) > 0 &&
      (guards.playPassed || stream.queue.published() == completed)) {
    stream.next = stream.finished = completed;
  }
  return stream.queue.published() != stream.next;
}

/// Turns a wait between two streams into an order between them; otherwise holds the ring until it is over.
DeviceThread::Hold DeviceThread::resolveWait(StreamQueue& stream, Queue& target,
                                             std::int32_t sequence) {
  stream.holdQueue = nullptr;
  if (&target == &stream.queue || target.hasCompleted(sequence)) return Hold::none;
  if (runtime_.abandoned(target, sequence)) return Hold::abandoned;
  bool forSubmission = false;
  if (target.stream != nullptr) {
    if (target.hasSubmitted(sequence)) {
      bool completed = false;
      const DriverStatus status = streamWait(stream, *target.stream, sequence, &completed);
      if (status == DriverStatus::ok || completed) return Hold::none;
      // The driver cannot express this order: the ring is held until the event has happened.
      outcome(stream, status);
    } else {
      forSubmission = true;
    }
  }
  stream.holdQueue = &target;
  stream.holdSequence = sequence;
  stream.holdForSubmission = forSubmission;
  return Hold::held;
}

DriverStatus DeviceThread::streamWait(StreamQueue& stream, StreamQueue& target,
                                      std::int32_t sequence, bool* completed) {
  if (target.device == gpu_) {
    const StreamSlot& slot = target.slot(target.slot(sequence).last);
    return driver_.streamWait(stream.stream, slot.done);
  }
  std::lock_guard<std::mutex> guard(target.lock);
  if ((*completed = target.queue.hasCompleted(sequence))) return DriverStatus::ok;
  const StreamSlot& slot = target.slot(target.slot(sequence).last);
  const DriverStatus status = driver_.streamWait(stream.stream, slot.done);
  if (status == DriverStatus::ok) {
    if (foreign_.size() >= 64) {
      foreign_.erase(
          std::remove_if(foreign_.begin(), foreign_.end(),
                         [](const auto& wait) { return wait.first->hasCompleted(wait.second); }),
          foreign_.end());
    }
    foreign_.emplace_back(&target.queue, sequence);
  }
  return status;
}

/// Submits one command (unless it has a status already) and the event that marks its end.
void DeviceThread::issue(StreamQueue& stream, const Command& command, std::int32_t sequence,
                         std::int32_t status) {
  const std::int32_t last = after(sequence, command.span() - 1);
  StreamSlot& slot = stream.slot(last);
  if (stream.next == stream.finished) stream.queue.beginBusy(now());
  const std::int32_t opcode = command.opcode();
  const bool wantsTimes =
      opcode >= Opcode::exec && opcode <= Opcode::fill && (runtime_.timing() || command.isTimed());
  slot.timed = wantsTimes && beginTiming(slot, stream);
  // The ring slot has the times of an earlier command. An end before its start says that the time is not known; NaN would make a
  // trace unreadable.
  if (wantsTimes && !slot.timed) {
    const auto time = static_cast<double>(now());
    stream.queue.setTimes(command.words(), time, time - 1);
  }
  command.setStatus(Status::ok);  // a slot's last record may have left another
  if (status == Status::ok) status = perform(stream, command, sequence);
  if (status != Status::ok) fail(command, status);
  {
    // Only threads of other GPUs read this from outside.
    std::unique_lock<std::mutex> guard(stream.lock, std::defer_lock);
    if (runtime_.spaces.size() > 2) guard.lock();
    slot.done = slot.timed ? slot.end : slot.plain;
    for (std::int32_t s = sequence; s != after(last, 1); s = after(s, 1)) {
      stream.slot(s).last = last;
    }
    const DriverStatus recorded = driver_.eventRecord(slot.done, stream.stream);
    // Without the event no thread can see the end of the stream's work: the device is of no use any more.
    if (recorded != DriverStatus::ok) {
      outcome(stream, recorded);
      lost_ = true;
    }
    stream.next = last;
    stream.queue.setSubmitted(last, std::memory_order_seq_cst);
  }
  stream.queue.submission.reached(last);
}

std::int32_t DeviceThread::perform(StreamQueue& stream, const Command& command,
                                   std::int32_t sequence) {
  const Word* cancel = runtime_.cancelWord(command.run());
  if (cancel != nullptr && cancel->load(std::memory_order_acquire) != 0) return Status::cancelled;
  switch (command.opcode()) {
    case Opcode::exec: {
      StreamSlot& slot = stream.slot(sequence);
      const double* values = arguments(stream.queue, sequence, command.argumentCount(),
                                       command.span(), slot.arguments);
      return launch(stream, command, values, slot.flows);
    }
    case Opcode::graph: return launchGraph(stream, command);
    case Opcode::copy: return copy(stream, command);
    case Opcode::fill: {
      const double offset = command.argument(0);
      const double bytes = command.argument(1);
      if (!space_->contains(offset, bytes)) return Status::outOfRange;
      return outcome(stream, driver_.fill(stream.stream, space_->address(offset),
                                          static_cast<std::uint8_t>(command.argument(2)),
                                          static_cast<std::uint64_t>(bytes)));
    }
    case Opcode::stop: stream.stopped = true; return Status::ok;
    default: return Status::ok;
  }
}

/// `addresses` must stay as it is until the kernel has run.
std::int32_t DeviceThread::launch(StreamQueue& stream, const Command& command, const double* values,
                                  std::vector<void*>& addresses) {
  const std::int32_t id = command.kernel();
  const KernelEntry* entry = runtime_.registry.entry(id);
  if (entry == nullptr) return Status::unknownKernel;
  const std::int32_t variant = variantOf(space_->kind);
  Launch launch{};
  if (variant == HEADRACE_KERNEL_HOST) {
    launch.host = entry->kernel[HEADRACE_KERNEL_HOST];
  } else if (entry->kernel[variant] != nullptr) {
    launch.enqueue = entry->kernel[variant];
  } else if (static_cast<std::size_t>(id) < functions_.size()) {
    launch.function = functions_[id];
    launch.plan = entry->code[variant].plan;
    launch.rules = entry->code[variant].rules.get();
  }
  if (launch.host == nullptr && launch.enqueue == nullptr && launch.function == nullptr) {
    return Status::unknownKernel;
  }
  const std::int32_t flows = command.flowCount();
  if (!readParameters(runtime_, command, values, launch.task)) return Status::badArguments;
  addresses.resize(static_cast<std::size_t>(flows));
  for (std::int32_t i = 0; i < flows; ++i) {
    if (!space_->contains(values[i])) return Status::outOfRange;
    addresses[i] = space_->pointer(values[i]);
  }
  launch.task.flows = addresses.data();
  launch.task.flow_count = flows;
  launch.task.space_base = reinterpret_cast<void*>(space_->base);
  launch.task.space_bytes = space_->bytes;
  launch.task.space_kind = space_->kind;
  launch.task.gpu = gpu_;
  launch.task.task = command.task();
  launch.task.kernel = id;
  launch.status = command.status();
  launch.cancel = runtime_.failureWord(command.run());
  return outcome(stream, driver_.launch(stream.stream, &launch));
}

/// The destination drives a copy between GPUs; a queue copies only to or from the memory of its own GPU.
std::int32_t DeviceThread::copy(StreamQueue& stream, const Command& command) {
  const Space* to = runtime_.space(command.destinationSpace());
  const Space* from = runtime_.space(command.sourceSpace());
  const double bytes = command.argument(2);
  if (to == nullptr || from == nullptr || !to->contains(command.argument(0), bytes) ||
      !from->contains(command.argument(1), bytes)) {
    return Status::outOfRange;
  }
  const std::uint64_t target = to->address(command.argument(0));
  const std::uint64_t source = from->address(command.argument(1));
  const auto count = static_cast<std::uint64_t>(bytes);
  DriverStatus status;
  if (to == space_ && from == space_) {
    status = driver_.copyOnDevice(stream.stream, target, source, count);
  } else if (to == space_ && from->device == nullptr) {
    status = driver_.copyToDevice(stream.stream, target, reinterpret_cast<void*>(source), count);
  } else if (from == space_ && to->device == nullptr) {
    status = driver_.copyToHost(stream.stream, reinterpret_cast<void*>(target), source, count);
  } else if (to == space_) {
    status = driver_.copyFromPeer(stream.stream, device_, target, from->device, source, count);
  } else {
    stream.queue.setError("a GPU's queue copies only to or from the memory of its own GPU");
    return Status::driver;
  }
  return outcome(stream, status);
}

/// Contract status of a driver's answer; keeps the driver's words.
std::int32_t DeviceThread::outcome(StreamQueue& stream, DriverStatus status) {
  if (status == DriverStatus::ok) return Status::ok;
  const char* text = driver_.errorText(device_);
  stream.queue.setError(text != nullptr ? text : "");
  if (status != DriverStatus::lost) return Status::driver;
  lost_ = true;
  return Status::deviceLost;
}

void DeviceThread::fail(const Command& command, std::int32_t status) {
  command.setStatus(status);
  Word* cancel = runtime_.failureWord(command.run());
  if (status != Status::cancelled && cancel != nullptr) {
    cancel->store(1, std::memory_order_release);
  }
}

/// False: the command cannot be timed.
bool DeviceThread::beginTiming(StreamSlot& slot, StreamQueue& stream) {
  for (EventHandle* event : {&slot.begin, &slot.end}) {
    const bool exists =
        *event != nullptr || driver_.eventCreate(device_, true, event) == DriverStatus::ok;
    if (!exists) return false;
  }
  slot.submitted = now();
  return driver_.eventRecord(slot.begin, stream.stream) == DriverStatus::ok;
}

/// Publishes the finished commands of the stream, in order.
bool DeviceThread::retire(StreamQueue& stream) {
  if (stream.finished == stream.next) return false;
  const std::int32_t before = stream.finished;
  while (stream.finished != stream.next && !lost_) {
    const std::int32_t head = after(stream.finished, 1);
    const std::int32_t last = stream.slot(head).last;
    StreamSlot& slot = stream.slot(last);
    const DriverStatus status = driver_.eventQuery(slot.done);
    if (status == DriverStatus::notReady) break;
    if (status != DriverStatus::ok) {
      outcome(stream, status);
      lost_ = true;
      break;
    }
    finish(stream, Command(stream.queue.record(head)), slot);
    stream.finished = last;
  }
  if (lost_) {
    lose(stream);
    return true;
  }
  if (stream.finished == before) return false;
  if (stream.finished == stream.next) stream.queue.endBusy(now());
  stream.queue.publish(stream.finished);
  return true;
}

void DeviceThread::finish(StreamQueue& stream, const Command& command, StreamSlot& slot) {
  const std::int32_t status = *command.status();
  if (status != Status::ok) {
    fail(command, status);
    stream.queue.addFailure();
  }
  if (slot.timed) {
    double begin = 0;
    double end = 0;
    if (driver_.eventTime(slot.begin, &begin) != DriverStatus::ok ||
        driver_.eventTime(slot.end, &end) != DriverStatus::ok) {
      begin = static_cast<double>(slot.submitted);
      end = static_cast<double>(now());
    }
    stream.queue.setTimes(command.words(), begin, end);
  }
}

/// The device is lost: all commands in flight and all later ones fail, in order.
void DeviceThread::lose(StreamQueue& stream) {
  const std::int32_t published = stream.queue.published();
  if (stream.finished == published) return;
  stream.queue.setError(driver_.errorText(device_));
  if (stream.next != stream.finished) stream.queue.endBusy(now());
  while (stream.finished != published) {
    const std::int32_t head = after(stream.finished, 1);
    const Command command(stream.queue.record(head));
    fail(command, Status::deviceLost);
    stream.queue.addFailure();
    if (command.opcode() == Opcode::stop) stream.stopped = true;
    stream.finished = stream.next = after(head, command.span() - 1);
  }
  stream.holdQueue = nullptr;
  stream.queue.setSubmitted(stream.next, std::memory_order_seq_cst);
  stream.queue.publish(stream.finished);
  stream.queue.submission.reached(stream.next);
}

}  // namespace headrace
