// Plans as graphs of the GPUs' driver: the order between streams and between GPUs, outcomes of library calls, refusals, a lost
// GPU, and the end of all objects.
#include <sched.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/core_error.h"
#include "gpu_machine.h"

namespace headrace::test {
namespace {

/// The records of a plan, by queue.
class Lists {
 public:
  /// Appends a command; returns its number for waits, from 1.
  std::int32_t add(Queue* queue, std::int32_t opcode, std::int32_t kernel, std::int32_t flows,
                   std::initializer_list<double> arguments, Event wait = {}) {
    List& list = of(queue);
    const auto count = static_cast<std::int32_t>(arguments.size());
    const std::size_t at = list.records.size();
    list.records.resize(at + Record::words);
    std::int32_t* words = &list.records[at];
    words[Record::head] = opcode | (flows << 8) | (count << 20);
    words[Record::kernel] = (kernel & 0xffff) | ((wait.queue + 1) << 16);
    words[Record::run] = -1;
    words[Record::waitSeq] = wait.sequence;
    std::vector<double> rest(arguments);
    const std::int32_t span = Command(words).span();
    list.records.resize(at + static_cast<std::size_t>(span) * Record::words);
    auto* doubles = reinterpret_cast<double*>(&list.records[at]);
    for (int i = 0; i < count; ++i) {
      const int inPlace = Record::inlineArguments;
      doubles[i < inPlace ? Record::argument + i : Record::doubles + i - inPlace] =
          rest[static_cast<std::size_t>(i)];
    }
    return static_cast<std::int32_t>(at / Record::words) + 1;
  }

  std::vector<PlanList> lists() {
    std::vector<PlanList> result;
    for (List& list : lists_) {
      result.push_back({list.queue, list.records.data(),
                        static_cast<std::int32_t>(list.records.size() / Record::words)});
    }
    return result;
  }

 private:
  struct List {
    Queue* queue;
    std::vector<std::int32_t> records;
  };

  List& of(Queue* queue) {
    for (List& list : lists_) {
      if (list.queue == queue) return list;
    }
    lists_.push_back({queue, {}});
    return lists_.back();
  }

  std::vector<List> lists_;
};

CoreOptions options(std::int32_t streams) {
  CoreOptions result = gpuOptions(1, 4 << 20);
  result.computeStreams = streams;
  return result;
}

Event launch(Machine& machine, std::int32_t queue, std::int32_t graph, std::int32_t run = -1) {
  return machine.put(queue, Opcode::graph, 0, 0, {static_cast<double>(graph)}, {}, run);
}

constexpr int kNumbers = 8;
constexpr double kBytes = kNumbers * 8;

AddGpu order("a graph keeps the order between its streams", 1, [] {
  Machine machine(options(2));
  const Layout layout{1, 2};
  Runtime& runtime = machine.core->runtime();
  const std::int32_t add = machine.core->kernel("add_f64", 1);
  const std::int32_t one = layout.compute(1, 0);
  const std::int32_t two = layout.compute(1, 1);
  // x += y on one stream and y += x on the other, in turn: the Fibonacci numbers.
  Lists plan;
  std::int32_t first = 0;
  std::int32_t second = 0;
  for (int i = 0; i < 10; ++i) {
    first = plan.add(runtime.queue(one), Opcode::exec, add, 2, {0, kBytes, kNumbers, 1},
                     i == 0 ? Event{} : Event{two, second});
    second =
        plan.add(runtime.queue(two), Opcode::exec, add, 2, {kBytes, 0, kNumbers, 1}, {one, first});
  }
  auto* host = machine.at<double>(0, 0);
  for (int i = 0; i < 2 * kNumbers; ++i) host[i] = 1;
  expect(machine, machine.copy(layout.in(1), 1, 0, 0, 0, 2 * kBytes));
  const std::int32_t graph = runtime.queue(one)->stream->thread->capture(plan.lists());
  Event event{};
  for (int i = 0; i < 3; ++i) event = launch(machine, one, graph);
  expect(machine, event);
  expect(machine, machine.copy(layout.out(1), 0, 4 * kBytes, 1, 0, 2 * kBytes));
  double x = 1;
  double y = 1;
  for (int i = 0; i < 30; ++i) {
    x += y;
    y += x;
  }
  for (int i = 0; i < kNumbers; ++i) {
    CHECK(machine.at<double>(0, 4 * kBytes)[i] == x);
    CHECK(machine.at<double>(0, 5 * kBytes)[i] == y);
  }
});

constexpr int kTile = 16;
constexpr double kTileBytes = kTile * kTile * 8;

AddGpu outcome("a failure in a graph is not lost to its next launch", 1, [] {
  Machine machine(options(1));
  const Layout layout{1};
  Runtime& runtime = machine.core->runtime();
  const std::int32_t potrf = machine.core->kernel("potrf_f64", 1);
  const std::int32_t queue = layout.compute(1);
  // Factorises a copy of the tile at 0, and then makes that tile a good one: only the first launch fails.
  Lists plan;
  plan.add(runtime.queue(queue), Opcode::copy, 1 | (1 << 8), 0, {2 * kTileBytes, 0, kTileBytes});
  const std::int32_t record =
      plan.add(runtime.queue(queue), Opcode::exec, potrf, 1, {2 * kTileBytes, kTile, 0, kTile});
  plan.add(runtime.queue(queue), Opcode::copy, 1 | (1 << 8), 0, {0, kTileBytes, kTileBytes});
  auto* host = machine.at<double>(0, 0);
  for (int t = 0; t < 2; ++t) {
    for (int i = 0; i < kTile * kTile; ++i) {
      host[t * kTile * kTile + i] = i % (kTile + 1) == 0 ? (t == 0 && i > 100 ? -1 : 1) : 0;
    }
  }
  expect(machine, machine.copy(layout.in(1), 1, 0, 0, 0, 2 * kTileBytes));
  DeviceThread& gpu = *runtime.queue(queue)->stream->thread;
  const std::int32_t graph = gpu.capture(plan.lists());
  const Event bad = launch(machine, queue, graph, 3);
  std::vector<Event> skipped;
  for (int i = 0; i < 4; ++i) skipped.push_back(launch(machine, queue, graph, 3));
  machine.finish(skipped.back());
  CHECK(machine.status(bad) == 7);
  for (const Event& each : skipped) CHECK(machine.status(each) == Status::cancelled);
  std::int32_t list = -1;
  std::int32_t place = -1;
  CHECK(gpu.graphFailed(graph, list, place));
  CHECK(list == 0 && place == record - 1);
  expect(machine, launch(machine, queue, graph, 4));
  CHECK(!gpu.graphFailed(graph, list, place));
});

/// The words of the refusal, or nothing.
std::string refusal(DeviceThread& gpu, const std::vector<PlanList>& lists) {
  try {
    gpu.capture(lists);
    return "";
  } catch (const CoreError& error) {
    return error.what();
  }
}

AddGpu refusals("what cannot be captured is refused with the reason, and the streams go on", 1, [] {
  Machine machine(options(2));
  const Layout layout{1, 2};
  Runtime& runtime = machine.core->runtime();
  const std::int32_t one = layout.compute(1, 0);
  DeviceThread& gpu = *runtime.queue(one)->stream->thread;
  const std::int32_t add = machine.core->kernel("add_f64", 1);
  Lists outside;
  outside.add(runtime.queue(one), Opcode::exec, add, 2, {0, 1e9, kNumbers, 1});
  CHECK(refusal(gpu, outside.lists()).find("status") != std::string::npos);
  Lists ofHost;
  ofHost.add(runtime.queue(0), Opcode::nop, 0, 0, {});
  CHECK(refusal(gpu, ofHost.lists()).find("of GPUs only") != std::string::npos);
  Lists foreign;
  foreign.add(runtime.queue(one), Opcode::exec, add, 2, {0, kBytes, kNumbers, 1}, {0, 1});
  CHECK(refusal(gpu, foreign.lists()).find("itself") != std::string::npos);
  Lists good;
  good.add(runtime.queue(one), Opcode::exec, add, 2, {0, kBytes, kNumbers, 1});
  if (Stub::present()) {
    for (const char* call : {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate"}) {
      Stub::fault(call, 1, 900);
      CHECK(refusal(gpu, good.lists()).find(call) != std::string::npos);
    }
  }
  const std::int32_t graph = gpu.capture(good.lists());
  gpu.releaseGraph(graph);
  // The next capture frees it.
  expect(machine, launch(machine, one, gpu.capture(good.lists())));
  machine.finish(launch(machine, one, graph));
  CHECK(machine.status({one, machine.issued(one)}) == Status::badArguments);
});

CoreOptions optionsOfTwo(std::int32_t streams) {
  CoreOptions result = gpuOptions(2, 1 << 20);
  result.computeStreams = streams;
  return result;
}

/// Copies so many numbers at `offset` from one GPU to the same place on the other, behind the event.
Event fetch(Lists& plan, Runtime& runtime, const Layout& layout, int to, int from, double offset,
            Event after) {
  const std::int32_t queue = layout.from(to, from);
  return {queue, plan.add(runtime.queue(queue), Opcode::copy, to | (from << 8), 0,
                          {offset, offset, kBytes}, after)};
}

AddGpu across("a graph keeps the order between its GPUs", 2, [] {
  Machine machine(optionsOfTwo(2));
  const Layout layout{2, 2};
  Runtime& runtime = machine.core->runtime();
  const std::int32_t add = machine.core->kernel("add_f64", 1);
  const std::int32_t one = layout.compute(1, 1);
  const std::int32_t two = layout.compute(2, 0);
  // x += y on GPU 1 and y += x on GPU 2, in turn. Both have a place for both numbers.
  Lists plan;
  Event copied{};
  for (int i = 0; i < 6; ++i) {
    const Event first{
        one, plan.add(runtime.queue(one), Opcode::exec, add, 2, {0, kBytes, kNumbers, 1}, copied)};
    const Event there = fetch(plan, runtime, layout, 2, 1, 0, first);
    const Event second{
        two, plan.add(runtime.queue(two), Opcode::exec, add, 2, {kBytes, 0, kNumbers, 1}, there)};
    copied = fetch(plan, runtime, layout, 1, 2, kBytes, second);
  }
  auto* host = machine.at<double>(0, 0);
  for (int i = 0; i < 2 * kNumbers; ++i) host[i] = 1;
  for (int gpu = 1; gpu <= 2; ++gpu) {
    expect(machine, machine.copy(layout.in(gpu), gpu, 0, 0, 0, 2 * kBytes));
  }
  const std::int32_t graph = runtime.queue(one)->stream->thread->capture(plan.lists());
  Event event{};
  for (int i = 0; i < 3; ++i) event = launch(machine, one, graph);
  // Behind the graph on another GPU.
  expect(machine, machine.exec(two, "fill_f64", 1, {2 * kBytes, kNumbers, 5}, event));
  expect(machine, machine.copy(layout.out(2), 0, 4 * kBytes, 2, 0, 2 * kBytes));
  double x = 1;
  double y = 1;
  for (int i = 0; i < 18; ++i) {
    x += y;
    y += x;
  }
  for (int i = 0; i < kNumbers; ++i) {
    CHECK(machine.at<double>(0, 4 * kBytes)[i] == x);
    CHECK(machine.at<double>(0, 5 * kBytes)[i] == y);
  }
  // What fails while it is captured leaves both GPUs as they were.
  if (Stub::present()) {
    DeviceThread& gpu = *runtime.queue(one)->stream->thread;
    for (const char* call : {"cuStreamBeginCapture", "cuEventCreate", "cuMemcpyDtoDAsync",
                             "cuStreamWaitEvent", "cuStreamEndCapture", "cuGraphInstantiate"}) {
      for (const std::uint64_t nth : {1, 4}) {
        if (nth > 1 && std::string(call).find("cuEvent") != 0) continue;
        Stub::fault(call, nth, 900);
        CHECK(refusal(gpu, plan.lists()).find("900") != std::string::npos);
        Stub::violations();
        expect(machine, machine.exec(one, "fill_f64", 1, {2 * kBytes, kNumbers, 5}));
        expect(machine, machine.exec(two, "fill_f64", 1, {2 * kBytes, kNumbers, 5}));
      }
    }
    expect(machine, launch(machine, one, gpu.capture(plan.lists())));
  }
});

AddGpu unreachable(
    "GPUs that cannot reach each other's memory have no graph with copies between them", 2,
    [] {
      Stub::reset(2, false);
      Machine machine(optionsOfTwo(1));
      const Layout layout{2, 1};
      Runtime& runtime = machine.core->runtime();
      Lists plan;
      const std::int32_t add = machine.core->kernel("add_f64", 1);
      const std::int32_t one = layout.compute(1);
      const Event first{
          one, plan.add(runtime.queue(one), Opcode::exec, add, 2, {0, kBytes, kNumbers, 1})};
      fetch(plan, runtime, layout, 2, 1, 0, first);
      const std::string why = refusal(*runtime.queue(one)->stream->thread, plan.lists());
      CHECK(why.find("there is no peer access") != std::string::npos);
      expect(machine, machine.exec(layout.compute(2), "fill_f64", 1, {0, kNumbers, 5}));
    },
    On::stubOnly);

AddGpu lostInGraph(
    "a GPU that is lost in a graph of several is seen, and nothing hangs", 2,
    [] {
      Machine machine(optionsOfTwo(1));
      const Layout layout{2, 1};
      Runtime& runtime = machine.core->runtime();
      const std::int32_t one = layout.compute(1);
      const std::int32_t two = layout.compute(2);
      Lists plan;
      const Event bad{two, plan.add(runtime.queue(two), Opcode::exec,
                                    machine.core->kernel("illegal_address", 1), 0, {})};
      plan.add(runtime.queue(one), Opcode::exec, machine.core->kernel("empty", 1), 0, {}, bad);
      auto lists = plan.lists();
      std::swap(lists[0], lists[1]);
      const std::int32_t graph = runtime.queue(one)->stream->thread->capture(lists);
      const Event event = launch(machine, one, graph);
      machine.publish();
      const std::int64_t limit = now() + 10'000'000'000;
      while (ahead(machine.completed(one), event.sequence) < 0 && now() < limit) sched_yield();
      CHECK(now() < limit);
      CHECK(machine.status(event) == Status::deviceLost);
      CHECK(machine.core->lastError(one).find("ILLEGAL_ADDRESS") != std::string::npos);
      expect(machine, machine.exec(two, "empty", 0, {}), Status::deviceLost);
    },
    On::stubOnly);

}  // namespace
}  // namespace headrace::test
