// An iteration of a plan as one graph of the GPUs' driver: capture, launch, and the place of a failure (gpu/graphs.h).
#include <algorithm>
#include <cstddef>

#include "core/core_error.h"
#include "core/guards.h"
#include "gpu/device_thread.h"

namespace headrace {

namespace {

/// How long a capture waits for kernels of other runtimes of the process to end (nanoseconds): the play can do without it.
constexpr std::int64_t kCapturePatience = 50'000'000;

std::int64_t labelOf(std::size_t list, std::int32_t record) {
  return static_cast<std::int64_t>(list) << 32 | record;
}

/// The progress of a capture in one list, and the marks behind the records that other lists wait for.
struct CapturedList {
  std::int32_t next = 0;
  std::vector<bool> awaited;
  std::vector<EventHandle> marks;
};

std::size_t placeOf(const std::vector<PlanList>& lists, std::int32_t queue) {
  std::size_t i = 0;
  while (i < lists.size() && lists[i].queue->index != queue) ++i;
  return i;
}

Command commandAt(const PlanList& list, std::int32_t record) {
  return Command(list.records + static_cast<std::size_t>(record) * Record::words);
}

}  // namespace

void DeviceThread::demand(DriverStatus status) {
  if (status == DriverStatus::ok) return;
  const char* text = driver_.errorText(device_);
  if (status == DriverStatus::lost) lost_ = true;
  throw CoreError("DRIVER", text != nullptr ? text : "the driver gave no reason");
}

std::int32_t DeviceThread::capture(const std::vector<PlanList>& lists) {
  if (driver_.graphs == nullptr) {
    throw CoreError("DRIVER", std::string("the driver '") + driver_.name + "' has no graphs");
  }
  for (const PlanList& list : lists) {
    if (list.queue->stream == nullptr) {
      throw CoreError("OUT_OF_RANGE", "a graph has commands of GPUs only");
    }
  }
  std::int32_t number = 0;
  callQuiet([&] { return captureAlone(lists, &number); }, kCapturePatience,
            "other kernels of this process run, and a graph is captured while none does");
  return number;
}

/// False when the thread of another GPU of the lists is at work on its streams now. It has nothing to do for long while a
/// graph is captured, and it may be at a pause itself. So this thread does not wait for it.
bool DeviceThread::captureAlone(const std::vector<PlanList>& lists, std::int32_t* number) {
  std::vector<DeviceThread*> held;
  bool all = true;
  for (std::size_t i = 0; i < lists.size() && all; ++i) {
    DeviceThread* other = lists[i].queue->stream->thread;
    if (other == this || std::find(held.begin(), held.end(), other) != held.end()) continue;
    all = other->turn_.tryTake();
    if (all) held.push_back(other);
  }
  const auto giveBack = [&] {
    bind(*this);
    for (DeviceThread* each : held) each->turn_.giveBack();
  };
  try {
    if (all) {
      freeGraphs(false);
      PlanGraph graph;
      captureAll(lists, graph);
      *number = static_cast<std::int32_t>(graphs_.size());
      graphs_.push_back(std::move(graph));
    }
  } catch (...) {
    giveBack();
    throw;
  }
  giveBack();
  return all;
}

/// To use a stream of that GPU.
void DeviceThread::enter(DeviceThread& served) {
  if (bind(served) == DriverStatus::ok) return;
  throw CoreError("DRIVER", driver_.errorText(served.device_));
}

void DeviceThread::captureAll(const std::vector<PlanList>& lists, PlanGraph& graph) {
  std::vector<StreamHandle> streams;
  std::size_t outcomes = 0;
  for (const PlanList& list : lists) {
    streams.push_back(list.queue->stream->stream);
    for (std::int32_t r = 0; r < list.length; r += commandAt(list, r).span()) {
      if (commandAt(list, r).opcode() == Opcode::exec) ++outcomes;
    }
  }
  demand(driver_.graphs->begin(device_, streams.data(), streams.size(), outcomes, &graph.handle));
  try {
    captureLists(lists, graph);
    enter(*this);
  } catch (...) {
    bind(*this);
    driver_.graphs->end(graph.handle, false);
    throw;
  }
  demand(driver_.graphs->end(graph.handle, true));
}

/// Goes through the lists in turn, each as far as the records that it waits for are captured. An iteration waits for the one
/// before as a whole, so waits for that one are none.
void DeviceThread::captureLists(const std::vector<PlanList>& lists, PlanGraph& graph) {
  std::vector<CapturedList> captured(lists.size());
  std::size_t left = 0;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    captured[i].awaited.resize(static_cast<std::size_t>(lists[i].length));
    captured[i].marks.resize(static_cast<std::size_t>(lists[i].length));
    left += static_cast<std::size_t>(lists[i].length);
  }
  for (const PlanList& list : lists) {
    for (std::int32_t r = 0; r < list.length; r += commandAt(list, r).span()) {
      const Command command = commandAt(list, r);
      if (command.waitQueue() < 0 || command.waitSequence() <= 0) continue;
      const std::size_t target = placeOf(lists, command.waitQueue());
      if (target == lists.size() || command.waitSequence() > lists[target].length) {
        throw CoreError("OUT_OF_RANGE", "a graph waits for commands of itself only");
      }
      captured[target].awaited[static_cast<std::size_t>(command.waitSequence()) - 1] = true;
    }
  }
  while (left > 0) {
    const std::size_t before = left;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      CapturedList& own = captured[i];
      StreamQueue& stream = *lists[i].queue->stream;
      while (own.next < lists[i].length) {
        const std::int32_t record = own.next;
        const Command command = commandAt(lists[i], record);
        if (command.waitQueue() >= 0 && command.waitSequence() > 0) {
          const std::size_t target = placeOf(lists, command.waitQueue());
          if (captured[target].next < command.waitSequence()) break;
          const auto place = static_cast<std::size_t>(command.waitSequence()) - 1;
          if (target != i && guards.graphOrder) {
            demand(
                driver_.graphs->follow(graph.handle, stream.stream, captured[target].marks[place]));
          }
        }
        enter(*stream.thread);
        driver_.graphs->label(graph.handle, labelOf(i, record));
        captureCommand(stream, command, graph);
        if (own.awaited[static_cast<std::size_t>(record)]) {
          demand(driver_.graphs->mark(graph.handle, stream.stream,
                                      &own.marks[static_cast<std::size_t>(record)]));
        }
        own.next += command.span();
        left -= static_cast<std::size_t>(command.span());
      }
    }
    if (left == before) throw CoreError("OUT_OF_RANGE", "the lists of a graph wait in a circle");
  }
}

void DeviceThread::captureCommand(StreamQueue& stream, const Command& command, PlanGraph& graph) {
  std::int32_t status = Status::ok;
  command.setStatus(Status::ok);
  if (command.opcode() == Opcode::exec) {
    const double* values = command.doubles() + Record::argument;
    graph.values.emplace_back(values, values + command.argumentCount());
    graph.addresses.emplace_back();
    status =
        stream.thread->launch(stream, command, graph.values.back().data(), graph.addresses.back());
  } else if (command.opcode() == Opcode::copy) {
    status = stream.thread->copy(stream, command);
  }
  if (status == Status::ok) status = *command.status();
  command.setStatus(Status::ok);
  if (status == Status::ok) return;
  throw CoreError("DRIVER", "a command cannot become part of a graph: status " +
                                std::to_string(status) + " " + stream.queue.error());
}

GraphHandle DeviceThread::graphOf(const Command& command) const {
  const auto number = static_cast<std::size_t>(command.argument(0));
  return number < graphs_.size() ? graphs_[number].handle : nullptr;
}

std::int32_t DeviceThread::launchGraph(StreamQueue& stream, const Command& command) {
  GraphHandle graph = graphOf(command);
  if (graph == nullptr) return Status::badArguments;
  return outcome(stream, driver_.graphs->launch(stream.stream, graph, command.status(),
                                                runtime_.failureWord(command.run())));
}

/// A launch writes the words with the outcomes of the one before (gpu/graphs.h): the ring is held until those are delivered.
bool DeviceThread::mustWaitForOutcome(StreamQueue& stream, const Command& command) {
  if (command.opcode() != Opcode::graph) return false;
  stream.holdQueue = nullptr;
  GraphHandle graph = graphOf(command);
  if (!guards.graphOutcome || stream.finished == stream.next || graph == nullptr ||
      !driver_.graphs->reports(graph)) {
    return false;
  }
  stream.holdQueue = &stream.queue;
  stream.holdSequence = stream.next;
  stream.holdForSubmission = false;
  return true;
}

bool DeviceThread::graphFailed(std::int32_t graph, std::int32_t& list, std::int32_t& record) {
  std::int64_t label = -1;
  call([&] { label = driver_.graphs->failed(graphs_[static_cast<std::size_t>(graph)].handle); });
  if (label < 0) return false;
  list = static_cast<std::int32_t>(label >> 32);
  record = static_cast<std::int32_t>(label & 0xffffffff);
  return true;
}

void DeviceThread::releaseGraph(std::int32_t graph) {
  call([&] { graphs_[static_cast<std::size_t>(graph)].released = true; });
}

/// Only while no kernel runs.
void DeviceThread::freeGraphs(bool all) {
  for (PlanGraph& graph : graphs_) {
    if (graph.handle == nullptr || !(all || graph.released)) continue;
    driver_.graphs->release(graph.handle);
    graph = {};
  }
}

}  // namespace headrace
