// Events of real GPUs: positions in a stream and the marks that stand for them (see gpu/device.h).
#include "gpu/events.h"

#include <algorithm>

#include "core/clock.h"
#include "gpu/graphs.h"

namespace headrace {

namespace {

/// Commands longer than this get a mark each: 0.5 us is little beside them, and waits for them become exact.
constexpr double kSparseBelow = 10000;
constexpr double kDenseAbove = 14000;
/// Short commands get a mark every so many, so that the thread sees their completion in good time.
constexpr std::uint64_t kMarkEvery = 32;
/// A stream that waited for a command of another stream will likely wait for one of as many that follow.
constexpr std::uint32_t kAwaited = 16;
/// While it has commands to submit, the thread asks a stream no more often than this (nanoseconds), and about one mark
/// only: a question costs as much as half a launch.
constexpr std::int64_t kQueryGap = 50000;
/// Nothing was submitted for so long (nanoseconds): the thread has time to ask a stream with copies, on whose ends messages wait,
/// and later one with kernels. Without these limits a stream that was asked just before the last submission waits for the whole gap
/// (8 bytes between kernels of two ranks took 63 us in place of 28).
constexpr std::int64_t kQuietForCopies = 5000;
constexpr std::int64_t kQuietForKernels = 20000;
/// A stream with timed commands gets other timed commands soon: so many recordings later at most. The next one takes the waits
/// that were kept, so they are not many more than that.
constexpr std::uint32_t kTimed = 64;
/// Limit of outstanding marks.
constexpr std::size_t kLongestStride = 256;
/// How long a stream may wait for a GPU that is lost (nanoseconds).
constexpr std::int64_t kLostGrace = 1000000000;
/// How often the GPUs of a graph that is under way are asked whether they are alive (nanoseconds).
constexpr std::int64_t kWatchGap = 20000000;
/// Events made when a stream opens: one per command that may be in flight (256), twice that with times, and a reserve.
constexpr std::size_t kEvents = 576;

/// Puts a mark at the stream's end. The lock is held. `needed`: make an event if none is spare. Only the thread
/// of the stream's own GPU may pass it: an event belongs to the context that is current on its creation.
DriverStatus mark(GpuStream& stream, bool needed) {
  if (stream.marked == stream.position && stream.position != 0) return DriverStatus::ok;
  GpuDevice& device = *stream.device;
  if (stream.spare.empty()) {
    if (!needed) return DriverStatus::ok;
    const DriverStatus allowed = device.permit("cuEventCreate");
    if (allowed != DriverStatus::ok) return allowed;
    void* event = nullptr;
    const int code = device.api->eventCreate(&event, gpu::kEventNoTiming);
    if (code != 0) return device.fail(code, "cuEventCreate");
    stream.spare.push_back(event);
  }
  void* event = stream.spare.back();
  const int code = device.api->eventRecord(event, stream.stream);
  if (code != 0) return device.fail(code, "cuEventRecord");
  stream.spare.pop_back();
  stream.marks.push_back({event, stream.position});
  stream.marked = stream.position;
  return DriverStatus::ok;
}

/// Records that everything up to `done` marks is finished. The lock is held.
void settle(GpuStream& stream, std::size_t done) {
  const std::uint64_t before = stream.completed.load(std::memory_order_relaxed);
  const std::uint64_t reached = stream.marks[done - 1].position;
  for (std::size_t i = 0; i < done; ++i) {
    stream.spare.push_back(stream.marks.front().event);
    stream.marks.pop_front();
  }
  const std::int64_t time = now();
  const auto each = static_cast<double>(time - std::max(stream.seenDone, stream.busySince)) /
                    static_cast<double>(std::max<std::uint64_t>(reached - before, 1));
  stream.perCommand += (each - stream.perCommand) * 0.25;
  stream.dense = stream.perCommand > (stream.dense ? kSparseBelow : kDenseAbove);
  stream.seenDone = time;
  stream.done.add(reached, time);
  stream.completed.store(reached, std::memory_order_release);
}

/// When the last of the awaited work before a timed command was seen done; 0 if there was none.
std::int64_t awaitedEnd(GpuStream& stream, std::uint64_t position) {
  std::int64_t latest = 0;
  for (; !stream.timedWaits.empty() && stream.timedWaits.front().before <= position;
       stream.timedWaits.pop_front()) {
    const TimedWait& wait = stream.timedWaits.front();
    std::lock_guard<std::mutex> guard(wait.target->lock);
    latest = std::max(latest, wait.target->done.of(wait.position));
  }
  return latest;
}

/// Hands over the outcomes of library calls that are finished.
void deliver(GpuStream& stream) {
  const std::uint64_t completed = stream.completed.load(std::memory_order_relaxed);
  while (!stream.outcomes.empty() && stream.outcomes.front().position <= completed) {
    const GpuOutcome outcome = stream.outcomes.front();
    stream.outcomes.pop_front();
    if (outcome.graph == nullptr) stream.sparePinned.push_back(outcome.pinned);
    const std::int32_t code = outcome.graph != nullptr ? outcome.graph->outcome() : *outcome.pinned;
    if (code == 0) continue;
    *outcome.status = code;
    if (outcome.cancel != nullptr) outcome.cancel->store(1, std::memory_order_release);
  }
}

/// While a graph works on another GPU for long, no thread puts anything into that GPU's streams, so nobody else would see
/// that it was lost.
void watch(ForeignWait& wait, std::int64_t time) {
  if (!guards.graphWatch || wait.watch == nullptr) return;
  if (wait.watched == 0) wait.watched = time;
  if (time - wait.watched < kWatchGap) return;
  wait.watched = time;
  const int code = wait.device->api->eventQuery(wait.watch);
  if (code != 0 && code != gpu::kNotReady) wait.device->fail(code, "a CUDA graph on it");
}

/// A wait for an event of a GPU that is lost may never end, and no call can withdraw it: after a while the GPU that
/// waits is given up too.
DriverStatus checkForeignWaits(GpuStream& stream, std::int64_t time) {
  const std::uint64_t completed = stream.completed.load(std::memory_order_relaxed);
  while (!stream.foreignWaits.empty() && stream.foreignWaits.front().position <= completed) {
    stream.foreignWaits.pop_front();
  }
  for (ForeignWait& wait : stream.foreignWaits) {
    watch(wait, time);
    if (!wait.device->lost.load(std::memory_order_acquire) ||
        time - wait.device->lostAt.load(std::memory_order_relaxed) < kLostGrace) {
      continue;
    }
    stream.device->stuck.store(true, std::memory_order_relaxed);
    return stream.device->abandon("waits for GPU " + std::to_string(wait.device->ordinal) +
                                  ", which is lost: " + wait.device->error());
  }
  return DriverStatus::ok;
}

/// Asks the marks, oldest first in growing steps, and stops at the first that is not done. In a hurry it asks about one
/// mark only, at the distance that succeeded lately. The lock is held except while the driver answers: another GPU's
/// thread that waits for a mark must not wait for that. Only the caller removes marks.
DriverStatus askMarks(GpuStream& stream, std::unique_lock<std::mutex>& guard, bool hurry) {
  GpuDevice& device = *stream.device;
  std::size_t done = 0;
  std::size_t step = hurry ? stream.stride : 1;
  do {
    const std::size_t asked = std::min(done + step, stream.marks.size());
    void* event = stream.marks[asked - 1].event;
    guard.unlock();
    const int code = device.api->eventQuery(event);
    guard.lock();
    if (code != 0 && code != gpu::kNotReady) return device.fail(code, "cuEventQuery");
    if (hurry) {
      stream.stride =
          code == 0 ? std::min(step * 2, kLongestStride) : std::max<std::size_t>(step / 2, 1);
    }
    if (code == gpu::kNotReady) break;
    done = asked;
    step *= 2;
  } while (!hurry && done < stream.marks.size());
  if (done > 0) settle(stream, done);
  return DriverStatus::ok;
}

}  // namespace

std::int64_t DoneTimes::of(std::uint64_t position) const {
  // Entries are in order of position; older ones are gone.
  std::size_t i = added > kKept ? added - kKept : 0;
  if (i > 0 && entries[i % kKept].position >= position) return 0;
  for (; i < added; ++i) {
    if (entries[i % kKept].position >= position) return entries[i % kKept].time;
  }
  return 0;
}

bool gpuStuck(GpuDevice& device) {
  if (!device.stuck.load(std::memory_order_relaxed)) return false;
  for (GpuStream* stream : device.streams) {
    // Also if the answer is an error: it may be that of the lost GPU, whose context is current now.
    if (!stream->marks.empty() && device.api->eventQuery(stream->marks.back().event) != 0)
      return true;
  }
  // The driver ended the waits after all. Once streams are gone no thread can ask any more.
  if (!device.streams.empty()) device.stuck.store(false, std::memory_order_relaxed);
  return device.stuck.load(std::memory_order_relaxed);
}

DriverStatus gpuCreateMarks(GpuStream& stream) {
  while (stream.spare.size() < kEvents) {
    void* event = nullptr;
    const int code = stream.device->api->eventCreate(&event, gpu::kEventNoTiming);
    if (code != 0) return stream.device->fail(code, "cuEventCreate");
    stream.spare.push_back(event);
  }
  return DriverStatus::ok;
}

void gpuDestroyMarks(GpuStream& stream) {
  for (const GpuMark& each : stream.marks) stream.device->api->eventDestroy(each.event);
  for (void* event : stream.spare) stream.device->api->eventDestroy(event);
  stream.marks.clear();
  stream.spare.clear();
}

DriverStatus gpuEventRecord(EventHandle handle, StreamHandle on) {
  auto* event = static_cast<GpuEvent*>(handle);
  auto* stream = static_cast<GpuStream*>(on);
  if (stream->device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  std::lock_guard<std::mutex> guard(stream->lock);
  const std::uint64_t position = ++stream->position;
  event->stream = stream;
  event->position = position;
  const bool idle = stream->completed.load(std::memory_order_relaxed) + 1 == position;
  if (idle || event->timed) {
    const std::int64_t time = now();
    event->recorded = time;
    if (idle) stream->busySince = time;
  }
  if (event->timed) {
    stream->timedFor = kTimed;
    // The caller asks for times in pairs around one command (gpu/driver.h).
    event->begins = stream->pairOpen = !stream->pairOpen;
    return event->begins ? DriverStatus::ok : mark(*stream, false);
  }
  if (stream->timedFor > 0) --stream->timedFor;
  // As a rule, others wait for a copy's end.
  const bool awaited = stream->awaited > 0;
  if (awaited) --stream->awaited;
  const bool wanted = awaited || stream->dense || stream->purpose != StreamPurpose::compute ||
                      position - stream->marked >= kMarkEvery;
  return wanted ? mark(*stream, false) : DriverStatus::ok;
}

DriverStatus gpuEventQuery(EventHandle handle) {
  const auto* event = static_cast<GpuEvent*>(handle);
  GpuStream* stream = event->stream;
  if (stream == nullptr) return DriverStatus::ok;
  GpuDevice& device = *stream->device;
  if (stream->completed.load(std::memory_order_acquire) < event->position) {
    if (device.lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
    const std::int64_t time = now();
    if (device.work != device.workSeen) {
      device.workSeen = device.work;
      device.workedAt = time;
    }
    const std::int64_t quiet =
        stream->purpose == StreamPurpose::compute ? kQuietForKernels : kQuietForCopies;
    const bool hurry = device.work != stream->workAtQuery && time - device.workedAt < quiet;
    if (hurry && time - stream->lastQuery < kQueryGap) return DriverStatus::notReady;
    std::unique_lock<std::mutex> guard(stream->lock);
    stream->lastQuery = time;
    stream->workAtQuery = device.work;
    DriverStatus status = DriverStatus::ok;
    if (stream->marked < event->position) status = mark(*stream, true);
    if (status == DriverStatus::ok) status = askMarks(*stream, guard, hurry);
    if (status == DriverStatus::ok) status = checkForeignWaits(*stream, time);
    if (status != DriverStatus::ok) return status;
  }
  deliver(*stream);
  return stream->completed.load(std::memory_order_relaxed) >= event->position
             ? DriverStatus::ok
             : DriverStatus::notReady;
}

/// Times as the host saw them. A command begins when it was submitted or, if later, when the command before it in the
/// stream and the work of other streams that it waits for had ended; it ended when its mark was seen done. The thread asks
/// every 1.3 us when it has had nothing to submit for some time, and every 50 us or more otherwise, so single times are late by up to
/// that much, while a stream's busy time is exact to one such step in total. Pairs of timing events would be exact, and cost 4 us more per launch.
DriverStatus gpuEventTime(EventHandle handle, double* nanoseconds) {
  const auto* event = static_cast<GpuEvent*>(handle);
  GpuStream* stream = event->stream;
  if (stream == nullptr || !event->timed) return DriverStatus::unsupported;
  const auto recorded = static_cast<double>(event->recorded);
  if (event->begins) {
    const auto awaited = static_cast<double>(awaitedEnd(*stream, event->position));
    // The end of this command is known by now: what it waited for was seen done after that at times, if the thread asked
    // this stream first.
    const double latest = std::max(recorded, static_cast<double>(stream->seenDone));
    *nanoseconds = std::min(std::max({recorded, stream->previousEnd, awaited}), latest);
  } else {
    *nanoseconds = std::max(recorded, static_cast<double>(stream->seenDone));
    stream->previousEnd = *nanoseconds;
  }
  return DriverStatus::ok;
}

/// Called on the thread of the waiting stream; the mark may belong to another GPU's stream.
DriverStatus gpuStreamWait(StreamHandle on, EventHandle handle) {
  auto* stream = static_cast<GpuStream*>(on);
  const auto* event = static_cast<GpuEvent*>(handle);
  GpuStream* target = event->stream;
  GpuDevice& device = *stream->device;
  if (target == nullptr) {
    return device.refuse(DriverStatus::refused, "a stream was to wait for an event never recorded");
  }
  if (device.lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (target == stream || target->completed.load(std::memory_order_acquire) >= event->position) {
    return DriverStatus::ok;
  }
  std::lock_guard<std::mutex> guard(target->lock);
  if (target->completed.load(std::memory_order_relaxed) >= event->position) return DriverStatus::ok;
  target->awaited = kAwaited;
  if (target->marked < event->position) {
    const DriverStatus marked = mark(*target, target->device == &device);
    if (marked != DriverStatus::ok || target->marked < event->position) {
      // The error concerns the other device, not this one: the caller holds the ring instead.
      return device.refuse(DriverStatus::unsupported, "the event could not be recorded");
    }
  }
  const auto first = std::lower_bound(
      target->marks.begin(), target->marks.end(), event->position,
      [](const GpuMark& each, std::uint64_t position) { return each.position < position; });
  ++device.work;
  if (stream->timedFor > 0) {
    stream->timedWaits.push_back({target, event->position, stream->position + 1});
  }
  if (target->device != &device) {
    stream->foreignWaits.push_back({target->device, stream->position + 1});
  }
  return device.check(device.api->streamWaitEvent(stream->stream, first->event, 0),
                      "cuStreamWaitEvent");
}

}  // namespace headrace
