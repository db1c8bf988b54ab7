// Plays: the threads that serve the queues feed them from lists (queues/feed.h).
#include "queues/feed.h"

#include <cmath>
#include <limits>
#include <thread>

#include "machine.h"
#include "play_list.h"

namespace headrace::test {
namespace {

/// A ring of queues in which each one adds 1 to what its right neighbour had in the iteration before. Two halves by turns, so
/// an iteration has two steps. Any missing edge shows.
std::vector<List> ringOf(int queues) {
  std::vector<List> lists(static_cast<std::size_t>(queues));
  const std::int32_t length = 6;
  for (int q = 0; q < queues; ++q) {
    List& list = lists[static_cast<std::size_t>(q)];
    const int right = (q + 1) % queues;
    const int left = (q + queues - 1) % queues;
    for (int step = 0; step < 2; ++step) {
      // The record `add` of a neighbour in the step before: in step 0 that of the iteration before.
      const std::int32_t before = step == 0 ? length - length : 3;
      const double mine = (step % 2) * 4096 + 64 * q;
      const double from = ((step + 1) % 2) * 4096 + 64 * right;
      list.hold({left, before});
      list.exec("copy_bytes", 2, {mine, from, 8}, {right, before});
      list.exec("add_f64", 2, {mine, 8192, 1, 1});
    }
  }
  return lists;
}

Add plays("queues that feed themselves keep every wait, over many iterations", [] {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::int64_t kTimes = 2000;
#else
  constexpr std::int64_t kTimes = 50000;
#endif
  for (const int workers : {1, 2, 3, 5}) {
    // Sequence numbers wrap in the middle of the play.
    Machine machine(small(workers), INT32_MAX - 1000);
    machine.at<double>(0, 8192)[0] = 1;
    const std::vector<List> lists = ringOf(workers);
    PlayOptions options;
    options.times = kTimes;
    for (int round = 1; round <= 2; ++round) {
      begin(machine, lists, options);
      end(machine);
      const auto steps = static_cast<double>(2 * kTimes * round);
      for (int q = 0; q < workers; ++q) CHECK(machine.at<double>(0, 4096 + 64 * q)[0] == steps);
      for (const auto& feed : machine.core->play->feeds()) {
        double succeeded = 0;
        std::int32_t status = 1;
        feed->outcome(succeeded, status);
        CHECK(succeeded == static_cast<double>(6 * kTimes) && status == Status::ok);
        CHECK(feed->queue().feed() == nullptr);
      }
    }
  }
});

Add crowded("a play goes on while workers step aside and the engine's thread serves", [] {
  for (const auto& [workers, cores] : {std::pair{1, 1}, {2, 1}, {2, 2}, {3, 2}}) {
    CoreOptions options = small(workers);
    options.cores = cores;
    Machine machine(options);
    machine.at<double>(0, 8192)[0] = 1;
    int turn = 0;
    machine.pause = [&] {
      machine.shared(Shared::beat).fetch_add(1, std::memory_order_relaxed);
      if (++turn % 3 == 0) {
        machine.core->waitForDoorbell(200);
      } else {
        machine.core->serveUntilDoorbell(200);
      }
    };
    const std::vector<List> lists = ringOf(workers);
    PlayOptions play;
    play.times = 1000;
    begin(machine, lists, play);
    end(machine);
    for (int q = 0; q < workers; ++q) CHECK(machine.at<double>(0, 4096 + 64 * q)[0] == 2000);
  }
});

/// Lists for the times of a play of the ring of queues.
std::vector<std::vector<double>> timesOf(const std::vector<List>& lists, std::int64_t times) {
  std::vector<std::vector<double>> all;
  for (const List& list : lists) {
    all.emplace_back(static_cast<std::size_t>(times * list.length() * Times::doubles),
                     std::numeric_limits<double>::quiet_NaN());
  }
  return all;
}

Add recordTimes("the times of all records are kept, although their slots are used again", [] {
  constexpr std::int64_t kTimes = 3000;
  for (const int workers : {1, 2, 3}) {
    Machine machine(small(workers), INT32_MAX - 1000);
    machine.shared(Shared::timing).store(1);
    machine.at<double>(0, 8192)[0] = 1;
    const std::vector<List> lists = ringOf(workers);
    std::vector<std::vector<double>> times = timesOf(lists, kTimes);
    PlayOptions options;
    options.times = kTimes;
    const auto before = static_cast<double>(now());
    begin(machine, lists, options, &times);
    end(machine);
    for (const auto& feed : machine.core->play->feeds()) {
      double succeeded = 0;
      std::int32_t status = 1;
      feed->outcome(succeeded, status);
    }
    const auto after = static_cast<double>(now());
    // Record 0 of each half iteration waits, record 1 copies from the right neighbour what its record 2 has added to.
    const auto at = [&](int q, std::int64_t record, int which) {
      return times[static_cast<std::size_t>(q)]
                  [static_cast<std::size_t>(record * Times::doubles + which)];
    };
    for (int q = 0; q < workers; ++q) {
      const int right = (q + 1) % workers;
      double last = before;
      for (std::int64_t record = 0; record < 6 * kTimes; ++record) {
        if (record % 3 == 0) continue;
        CHECK(at(q, record, Times::start) >= last);
        CHECK(at(q, record, Times::end) >= at(q, record, Times::start));
        last = at(q, record, Times::end);
        if (record % 3 == 1 && record > 3) {
          CHECK(at(q, record, Times::start) >= at(right, record - 2, Times::end));
        }
      }
      CHECK(last <= after);
    }
  }
});

Add cancelledTimes("records of a play that were not written have no times", [] {
  constexpr std::int64_t kTimes = 100000;
  Machine machine(small(2));
  machine.shared(Shared::timing).store(1);
  std::vector<List> lists = ringOf(2);
  lists[1].exec("fail", 0, {42});
  std::vector<std::vector<double>> times = timesOf(lists, kTimes);
  PlayOptions options;
  options.times = kTimes;
  options.run = 3;
  begin(machine, lists, options, &times);
  end(machine);
  for (const auto& feed : machine.core->play->feeds()) {
    double succeeded = 0;
    std::int32_t status = 1;
    feed->outcome(succeeded, status);
  }
  const auto failed = static_cast<std::size_t>(lists[1].length() - 1) * Times::doubles;
  CHECK(times[1][failed + Times::end] >= times[1][failed + Times::start]);
  for (const std::vector<double>& list : times) {
    CHECK(!std::isnan(list[Times::doubles]));
    CHECK(std::isnan(list.back()));
  }
});

Add open("open parameters take their values of each iteration, in continued records, too", [] {
  Machine machine(small(1));
  std::vector<List> lists(1);
  // x += 1 * y, n elements; the open one is the factor (argument 3 of add_f64 is the factor).
  lists[0].exec("add_f64", 2, {0, 512, 1, 0});
  lists[0].open = {0, Record::argument + 3, 1};
  machine.at<double>(0, 0)[0] = 0;
  machine.at<double>(0, 512)[0] = 1;
  const std::vector<double> parameters = {0, 1, 0, 2, 0, 3, 0, 4};
  PlayOptions options;
  options.times = 4;
  options.parameters = parameters.data();
  options.slots = 2;
  begin(machine, lists, options);
  end(machine);
  CHECK(machine.at<double>(0, 0)[0] == 10);
});

Add condition("a condition ends the play at a multiple of `every`", [] {
  for (const int workers : {1, 2, 4}) {
    Machine machine(small(workers));
    machine.at<double>(0, 8192)[0] = -1;
    const std::vector<List> lists = ringOf(workers);
    for (int q = 0; q < workers; ++q) machine.at<double>(0, 4096 + 64 * q)[0] = 1000;
    PlayOptions options;
    options.times = 100000;
    options.condition.value = machine.at<double>(0, 4096);
    options.condition.limit = 500.5;
    options.condition.every = 7;
    begin(machine, lists, options);
    end(machine);
    // Every iteration subtracts 2: after 250 the number is 500. The next multiple of 7 is 252.
    CHECK(machine.core->play->iterations() == 252);
    for (int q = 0; q < workers; ++q) {
      CHECK(machine.at<double>(0, 4096 + 64 * q)[0] == 1000 - 2 * 252);
    }
    // With the limit on the number of iterations first.
    options.times = 10;
    begin(machine, lists, options);
    end(machine);
    CHECK(machine.core->play->iterations() == 7);
    options.condition.below = true;
    begin(machine, lists, options);
    end(machine);
    CHECK(machine.core->play->iterations() == 10);
  }
});

Add failure("a kernel that fails ends the play, and the outcome names the record", [] {
  Machine machine(small(2));
  std::vector<List> lists = ringOf(2);
  lists[1].exec("fail", 0, {42});
  const std::int32_t length = lists[1].length();
  PlayOptions options;
  options.times = 1000000;
  options.run = 3;
  begin(machine, lists, options);
  end(machine);
  const auto& feeds = machine.core->play->feeds();
  double succeeded = 0;
  std::int32_t status = 0;
  feeds[1]->outcome(succeeded, status);
  CHECK(succeeded == length - 1 && status == 42);
  feeds[0]->outcome(succeeded, status);
  CHECK(status == Status::cancelled);
  // The next play of the same queues is not concerned.
  machine.shared(Shared::cancel + 3).store(0);
  std::vector<List> good = ringOf(2);
  options.times = 10;
  machine.at<double>(0, 8192)[0] = 1;
  for (int i = 0; i < 2; ++i) machine.at<double>(0, 4096 + 64 * i)[0] = 0;
  begin(machine, good, options);
  end(machine);
  CHECK(machine.at<double>(0, 4096)[0] == 20);
});

Add cancel("a cancelled play ends, also one whose queues wait at a barrier", [] {
  for (int round = 0; round < 20; ++round) {
    Machine machine(small(3));
    const std::vector<List> lists = ringOf(3);
    PlayOptions options;
    options.times = 10000000;
    options.run = 3;
    double one = 1;
    if (round % 2 == 1) {
      options.condition.value = &one;
      options.condition.every = 1 + round;
    }
    begin(machine, lists, options);
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    machine.shared(Shared::cancel + 3).store(1);
    end(machine);
  }
});

Add gpus("emulated GPUs and workers play together", [] {
  Machine machine(small(2, 2));
  // Queues: 2 workers, then per GPU compute, h2d, d2h, peer.
  std::vector<List> lists(10);
  machine.at<double>(0, 8192)[0] = 1;
  machine.at<double>(1, 512)[0] = 1;
  machine.at<double>(2, 512)[0] = 1;
  const auto copy = [](List& list, std::int32_t to, double toOffset, std::int32_t from,
                       double fromOffset, Event wait) {
    const std::int32_t at = list.exec("empty", 0, {toOffset, fromOffset, 8}, wait);
    std::int32_t* words = &list.records[static_cast<std::size_t>(at) * Record::words];
    words[Record::head] = Opcode::copy | (3 << 20);
    words[Record::kernel] = to | (from << 8) | ((wait.queue + 1) << 16);
  };
  // host -> GPU 1 -> GPU 2 -> host, each adds 1; queue 0 closes the circle.
  lists[0].exec("add_f64", 2, {0, 8192, 1, 1}, {8, 0});  // after the d2h of the iteration before
  copy(lists[3], 1, 0, 0, 0, {0, 1});                    // h2d of GPU 1
  lists[2].exec("add_f64", 2, {0, 512, 1, 1}, {3, 1});   // GPU 1
  copy(lists[9], 2, 0, 1, 0, {2, 1});                    // GPU 2 from GPU 1
  lists[6].exec("add_f64", 2, {0, 512, 1, 1}, {9, 1});   // GPU 2
  copy(lists[8], 0, 0, 2, 0, {6, 1});                    // d2h of GPU 2
  Runtime& runtime = machine.core->runtime();
  PlayOptions options;
  options.times = 300;
  options.run = 3;
  machine.core->play = std::make_unique<Play>(options, runtime.cancelWord(3));
  for (const int q : {0, 2, 3, 6, 8, 9}) {
    machine.core->play->add(*runtime.queues[static_cast<std::size_t>(q)],
                            lists[static_cast<std::size_t>(q)].records.data(),
                            lists[static_cast<std::size_t>(q)].length(), nullptr, 0);
  }
  machine.core->play->begin();
  end(machine);
  CHECK(machine.at<double>(0, 0)[0] == 900);
});

}  // namespace
}  // namespace headrace::test
