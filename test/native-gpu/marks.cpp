// Events of real drivers are positions with few real events behind them. Waits and completions must stay right.
#include <vector>

#include "gpu_machine.h"

namespace headrace::test {
namespace {

AddGpu chain("a long chain of kernels on one stream completes in order, with few real events", 1,
             [] {
               Machine machine(gpuOptions(1));
               const Layout layout{1};
               expect(machine, machine.exec(layout.compute(1), "fill_f64", 1, {0, 1, 0}));
               const std::uint64_t records = Stub::present() ? Stub::calls("cuEventRecord") : 0;
               Event event = machine.exec(layout.compute(1), "fill_f64", 1, {8, 1, 1});
               constexpr int kCount = 5000;
               for (int i = 0; i < kCount; ++i) {
                 event = machine.exec(layout.compute(1), "add_f64", 2, {0, 8, 1, 1});
                 if (i % 64 == 0) machine.publish();
               }
               expect(machine, event);
               event = machine.copy(layout.out(1), 0, 0, 1, 0, 8, event);
               expect(machine, event);
               CHECK(*machine.at<double>(0, 0) == kCount);
               if (Stub::present()) CHECK(Stub::calls("cuEventRecord") - records <= kCount + 10);
             });

AddGpu streams("streams of one GPU hand a value around; only events keep the order", 1, [] {
  CoreOptions options = gpuOptions(1);
  options.computeStreams = 3;
  Machine machine(options);
  const Layout layout{1, 3};
  Event event = machine.exec(layout.compute(1, 0), "fill_f64", 1, {0, 1, 0});
  event = machine.exec(layout.compute(1, 0), "fill_f64", 1, {8, 1, 1}, event);
  constexpr int kCount = 600;
  for (int i = 0; i < kCount; ++i) {
    // Also work that nobody waits for, so that the end of a stream is not what is waited for.
    event = machine.exec(layout.compute(1, i % 3), "add_f64", 2, {0, 8, 1, 1}, event);
    machine.exec(layout.compute(1, i % 3), "spin", 0, {1});
    if (i % 11 == 0) machine.publish();
  }
  event = machine.copy(layout.out(1), 0, 0, 1, 0, 8, event);
  expect(machine, event);
  CHECK(*machine.at<double>(0, 0) == kCount);
  machine.finish();
});

AddGpu foreign("a GPU waits for another GPU's kernel in the middle of its stream", 2, [] {
  Machine machine(gpuOptions(2));
  const Layout layout{2};
  expect(machine, machine.exec(layout.compute(1), "fill_f64", 1, {0, 1, 0}));
  expect(machine, machine.exec(layout.compute(1), "fill_f64", 1, {8, 1, 1}));
  Event back;
  constexpr int kCount = 150;
  for (int i = 0; i < kCount; ++i) {
    const Event event = machine.exec(layout.compute(1), "add_f64", 2, {0, 8, 1, 1}, back);
    for (int k = 0; k < 3; ++k) machine.exec(layout.compute(1), "empty", 0, {});
    back = machine.copy(layout.from(2, 1), 2, 8.0 * i, 1, 0, 8, event);
    if (i % 7 == 0) machine.publish();
  }
  Event event = machine.copy(layout.out(2), 0, 0, 2, 0, 8 * kCount, back);
  expect(machine, event);
  for (int i = 0; i < kCount; ++i) CHECK(machine.at<double>(0, 0)[i] == i + 1);
  machine.finish();
});

AddGpu around(
    "values go around three GPUs; threads serve each other's, sleep and come back", 3, [] {
      constexpr int kGpus = 3;
      Machine machine(gpuOptions(kGpus));
      const Layout layout{kGpus};
      Event last[2];
      for (int space = 1; space <= kGpus; ++space) {
        for (int word = 0; word < 2; ++word) {
          expect(machine, machine.exec(layout.compute(space), "fill_f64", 1, {8.0 * word, 1, 0}));
        }
        expect(machine, machine.exec(layout.compute(space), "fill_f64", 1, {16, 1, 1}));
      }
      constexpr int kSteps = 900;
      for (int i = 0; i < kSteps; ++i) {
        // One value goes around one way, the other the other way, so that every thread waits for every other's.
        for (int word = 0; word < 2; ++word) {
          const int here = 1 + (word == 0 ? i : 2 * i) % kGpus;
          const int before = 1 + (word == 0 ? i + kGpus - 1 : 2 * i + kGpus - 2) % kGpus;
          const double at = 8.0 * word;
          if (i > 0)
            last[word] =
                machine.copy(layout.from(here, before), here, at, before, at, 8, last[word]);
          last[word] = machine.exec(layout.compute(here), "add_f64", 2, {at, 16, 1, 1}, last[word]);
        }
        if (i % 5 == 0) machine.publish();
        if (i % 90 == 89) machine.finish();
      }
      for (int word = 0; word < 2; ++word) {
        const int end = 1 + (word == 0 ? kSteps - 1 : 2 * (kSteps - 1)) % kGpus;
        expect(machine, machine.copy(layout.out(end), 0, 0, end, 8.0 * word, 8, last[word]));
        CHECK(*machine.at<double>(0, 0) == kSteps);
      }
      machine.finish();
    });

AddGpu times("times of a stream's commands do not overlap and lie in the run", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  machine.shared(Shared::timing).store(1);
  const auto before = static_cast<double>(now());
  std::vector<Event> events;
  for (int i = 0; i < 200; ++i) {
    events.push_back(machine.exec(layout.compute(1), i % 10 == 0 ? "spin" : "empty", 0,
                                  {i % 10 == 0 ? 50.0 : 0.0}));
  }
  machine.finish(events.back());
  const auto after = static_cast<double>(now());
  double last = before;
  for (const Event event : events) {
    const double* times = machine.times(event);
    CHECK(times[Times::start] >= last && times[Times::end] >= times[Times::start]);
    last = times[Times::end];
  }
  CHECK(last <= after);
});

AddGpu awaited("a command begins when the work of another stream that it waits for has ended", 1,
               [] {
                 CoreOptions options = gpuOptions(1);
                 options.computeStreams = 2;
                 Machine machine(options);
                 const Layout layout{1, 2};
                 machine.shared(Shared::timing).store(1);
                 std::vector<std::pair<Event, Event>> pairs;
                 for (int i = 0; i < 40; ++i) {
                   const Event first = machine.exec(layout.compute(1, 0), "spin", 0, {2000});
                   pairs.emplace_back(first,
                                      machine.exec(layout.compute(1, 1), "empty", 0, {}, first));
                 }
                 machine.finish(pairs.back().second);
                 // The thread may have asked the second stream first.
                 int early = 0;
                 for (const auto& [first, second] : pairs) {
                   if (machine.times(second)[Times::start] < machine.times(first)[Times::end])
                     ++early;
                   CHECK(machine.times(second)[Times::end] >= machine.times(second)[Times::start]);
                 }
                 CHECK(early < 10);
               });

}  // namespace
}  // namespace headrace::test
