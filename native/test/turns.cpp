// Turns at the message layer (mpi/turn.h), and workers that serve lanes while they wait (core/helping.h).
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "../mpi/turn.h"
#include "lane_rank.h"

namespace headrace::test {
namespace {

using mpi::Turn;

constexpr std::int64_t kSecond = 1'000'000'000;

/// Waits for a flag; false when it does not come.
bool soon(const std::atomic<bool>& flag) {
  const std::int64_t until = now() + 5 * kSecond;
  while (!flag.load() && now() < until) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return flag.load();
}

Add alone("one thread at a time has the turn, and sees what the one before has done", [] {
  constexpr int kRounds = 100'000;
  Turn turn;
  std::atomic<int> inside{0};
  std::atomic<bool> over{false};
  int rounds = 0;
  int helped = 0;
  const auto round = [&] {
    CHECK(inside.fetch_add(1) == 0);
    if (++rounds % 64 == 0) sched_yield();
    if (rounds >= kRounds) over.store(true);
    CHECK(inside.fetch_sub(1) == 1);
    return true;
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      while (!over.load()) {
        turn.help([&] { return round() && ++helped > 0; });
      }
    });
  }
  int stands = 0;
  while (!over.load()) {
    if (turn.isWanted()) {
      // Now spinning, now asleep.
      turn.standBy(
          ++stands % 2 == 0, [&](std::int64_t) { return over.load(); }, 100'000);
    } else {
      round();
    }
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(helped > 0 && stands > 0);
});

Add woken("a worker that makes rounds while the comm thread sleeps wakes it (H7)", [] {
  Turn turn;
  FutexToken sleeper;
  std::atomic<bool> isBack{false};
  std::thread comm([&] {
    turn.sleep(sleeper, -1);
    CHECK(turn.isWanted());
    turn.standBy(
        false, [](std::int64_t) { return false; }, 1'000'000);
    CHECK(!turn.isWanted());
    isBack.store(true);
  });
  while (!turn.help([] { return true; })) std::this_thread::yield();
  // And no further round.
  const bool isWoken = soon(isBack);
  sleeper.unpark();
  comm.join();
  CHECK(isWoken);
});

Add undone("a round that could do nothing wakes no thread, and does not count", [] {
  Turn turn;
  FutexToken sleeper;
  std::atomic<bool> isBack{false};
  std::thread comm([&] {
    turn.sleep(sleeper, -1);
    CHECK(!turn.isWanted());
    isBack.store(true);
  });
  for (int tries = 0; tries < 100;) {
    bool called = false;
    CHECK(!turn.help([&] { return !(called = true); }));
    if (called) ++tries;
  }
  CHECK(!isBack.load());
  sleeper.unpark();
  comm.join();
});

Add left("the comm thread is back at once when a worker leaves", [] {
  Turn turn;
  std::atomic<bool> isBack{false};
  std::thread comm([&] {
    while (!turn.isWanted()) std::this_thread::yield();
    turn.standBy(
        false, [](std::int64_t) { return false; }, 60 * kSecond);
    isBack.store(true);
  });
  while (!turn.help([] { return true; })) std::this_thread::yield();
  turn.leave();
  CHECK(soon(isBack));
  comm.join();
});

Add unable("the comm thread is back at once when rounds are not for workers, and keeps its turn",
           [] {
             Turn turn;
             std::atomic<bool> isBack{false};
             std::thread comm([&] {
               while (!turn.isWanted()) std::this_thread::yield();
               turn.standBy(
                   false, [](std::int64_t) { return false; }, 60 * kSecond);
               isBack.store(true);
               while (!turn.isWanted()) std::this_thread::yield();
               turn.refuse();
               CHECK(!turn.isWanted());
             });
             for (bool called = false; !called;) turn.help([&] { return !(called = true); });
             CHECK(soon(isBack));
             CHECK(!turn.help([] { return true; }));
             comm.join();
           });

/// A rank whose lanes are served by turns.
struct Served {
  Rank rank{0, 2, 2, 2};
  Turn turn;
  headrace_helper helper{};
  /// Versions that may come, and those that have come.
  std::atomic<int> wanted{0};
  int came = 0;
  std::atomic<int> helped{0};

  Served() {
    helper.self = this;
    helper.help = [](void* self) -> std::int32_t {
      auto* served = static_cast<Served*>(self);
      return served->turn.help([served] { return served->round(); }) ? ++served->helped, 1 : 0;
    };
    helper.leave = [](void* self) { static_cast<Served*>(self)->turn.leave(); };
    // However long a busy machine takes.
    rank.machine.core->runtime().littleWork = INT64_MAX;
    const headrace_lanes* lanes = rank.machine.core->lanes();
    lanes->setHelper(lanes->self, &helper);
  }
  bool round() {
    // One at a time, so that workers wait for each.
    if (came < wanted.load()) {
      ++came;
      rank.arrive(1, came, came);
    }
    rank.server.serve(true);
    return true;
  }
};

Add helping("workers that wait for version after version serve the lanes themselves", [] {
  constexpr int kBatch = 64;
  Served served;
  Machine& machine = served.rank.machine;
  std::vector<Event> before(2);
  const std::int64_t until = now() + 60 * kSecond;
  double sum = 0;
  int versions = 0;
  while (versions < 1000 || served.helped.load() == 0) {
    CHECK(now() < until);
    for (int i = 0; i < kBatch; ++i) {
      const int q = versions++ % 2;
      const double at = 64 * q;
      const Event received = served.rank.receive(q, at, 8, 1, versions, before[q]);
      before[q] = machine.exec(q, "add_f64", 2, {1024 + at, at, 1, 1}, received);
      sum += versions;
    }
    machine.publish();
    served.wanted.store(versions);
    const auto isOver = [&] { return machine.done(before[0]) && machine.done(before[1]); };
    while (!isOver()) {
      if (served.turn.isWanted()) {
        served.turn.standBy(
            false, [&](std::int64_t) { return isOver(); }, 1'000'000);
      } else {
        served.round();
        sched_yield();
      }
    }
  }
  CHECK(served.rank.at(1024) + served.rank.at(1088) == sum);
  const headrace_lanes* lanes = machine.core->lanes();
  lanes->setHelper(lanes->self, nullptr);
});

}  // namespace
}  // namespace headrace::test
