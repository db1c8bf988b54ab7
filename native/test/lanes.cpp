// Lanes: the core's half (headrace/lanes.h) and the server of the message layer, with a transport inside this process.
// Versions that travel in their letters; announced ones are in long_versions.cpp and version_ways.cpp.
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "lane_rank.h"

namespace headrace::test {
namespace {

Add lanesAreLast("lanes are the last queues, and a core without lanes has none to serve", [] {
  Machine machine(withLanes(2, 3));
  const auto& queues = machine.core->runtime().queues;
  CHECK(queues.size() == 5);
  for (int q = 2; q < 5; ++q) CHECK(queues[q]->kind == QueueKind::lane);
  CHECK(machine.core->lanes()->count == 3);
  CHECK(Machine(small(1)).core->lanes() == nullptr);
});

Add order("a lane's commands complete in order, each with its own outcome", [] {
  Rank rank(0, 2, 1, 2, 4, INT32_MAX - 3);
  rank.machine.shared(Shared::timing).store(1);
  const Event first = rank.receive(0, 0, 8, 1, 5);
  const Event nothing = rank.machine.put(rank.lane, Opcode::nop, 0, 0, {});
  const Event second = rank.receive(0, 8, 8, 1, 6);
  const Event other = rank.receive(1, 16, 8, 1, 7);
  for (const Event& event : {nothing, second}) rank.machine.record(event)[Record::status] = 17;
  rank.serve();
  CHECK(rank.server.waiting() && !rank.server.held());
  rank.arrive(1, 6, 60);
  rank.arrive(1, 7, 70);
  rank.serve();
  CHECK(!rank.machine.done(first) && rank.machine.done(other));
  CHECK(rank.machine.shared(Shared::arrivals).load() == 1);
  rank.arrive(1, 5, 50);
  rank.serve();
  CHECK(rank.machine.done(second) && !rank.server.waiting());
  for (const Event& event : {first, nothing, second, other}) {
    CHECK(rank.machine.status(event) == Status::ok);
  }
  CHECK(rank.at(0) == 50 && rank.at(8) == 60 && rank.at(16) == 70);
  CHECK(rank.machine.shared(Shared::arrivals).load() == 4);
  CHECK(rank.machine.times(first)[Times::end] >= rank.machine.times(first)[Times::start]);
  CHECK(rank.machine.times(first)[Times::start] > 0);
});

Add sendWaits("a send waits for a worker's event, folded in or as a command, and copies the bytes",
              [] {
                Rank rank(0, 2, 1, 2);
                const Event late = rank.machine.exec(0, "fill_f64", 1, {64, 2, 3});
                const Event sent = rank.send(0, {64, 16, 1, 1, 9}, late);
                rank.machine.hold(rank.lane + 1, late);
                const Event held = rank.send(1, {64, 8, 1, 1, 10});
                for (const Event& event : {sent, held}) rank.machine.publish(event.queue);
                CHECK(!rank.server.serve(true) && rank.server.waiting() && !rank.server.held());
                rank.machine.finish(late);
                rank.serve();
                CHECK(rank.machine.done(sent) && rank.machine.done(held) &&
                      rank.out.posted.size() == 2);
                rank.at(64) = 4;  // the bytes may change once the send is over
                CHECK(rank.out.posted[0].rank == 1);
                CHECK((rank.out.posted[0].letter == Letter{1, 9, 16, 0, 3, 3}));
                CHECK((rank.out.posted[1].letter == Letter{1, 10, 8, 0, 3}));
              });

Add waitsEndLater(
    "a wait without a command is over with the command behind it, or alone at the end of its lane",
    [] {
      Rank rank(0, 2, 1, 1);
      const Event late = rank.machine.exec(0, "fill_f64", 1, {64, 2, 3});
      const Event wait = rank.machine.hold(rank.lane, late);
      const Event received = rank.receive(0, 0, 8, 1, 5);
      rank.arrive(1, 5, 50);
      // The worker has not got its command: the event cannot happen.
      rank.machine.publish(rank.lane);
      CHECK(!rank.server.serve(true) && rank.server.waiting());
      CHECK(!rank.machine.done(received) && rank.at(0) != 50);
      rank.machine.finish(late);
      rank.serve(false);
      CHECK(rank.machine.done(wait) && rank.machine.done(received) && rank.at(0) == 50);
      CHECK(rank.machine.shared(Shared::arrivals).load() == 1);
      const Event alone = rank.machine.hold(rank.lane, late);
      rank.serve();
      CHECK(rank.machine.done(alone) && !rank.server.waiting());
    });

Add readsFew("a round looks at a few lanes and reads fewer commands, and tells that there are more",
             [] {
               constexpr int kLanes = LaneServer::kMostLooks + 2;
               Rank rank(0, 2, 1, kLanes);
               Event received[kLanes];
               for (int i = 0; i < kLanes; ++i) {
                 rank.arrive(1, i + 1, 10 * i);
                 received[i] = rank.receive(i, 8 * i, 8, 1, i + 1);
               }
               rank.machine.publish();
               int rounds = 0;
               for (int over = 0; over < kLanes; ++rounds) {
                 // As long as it says so, the thread that serves the lanes does not sleep.
                 CHECK(rank.server.serve(rounds == 0));
                 const int before = over;
                 over = 0;
                 for (const Event& event : received) over += rank.machine.done(event) ? 1 : 0;
                 CHECK(over <= before + LaneServer::kMostReads);
               }
               CHECK(rounds >= kLanes / LaneServer::kMostReads);
               CHECK(!rank.server.serve(false) && !rank.server.waiting());
             });

Add shortRounds(
    "after rounds in which nothing happens each event moves its lane, of few queues or many", [] {
      for (const std::int32_t queues : {1, 3, 6}) {
        constexpr std::int32_t kEvents = 6;
        Rank rank(0, 2, queues, kEvents);
        std::vector<Event> kernels;
        std::vector<Event> sent;
        for (std::int32_t i = 0; i < kEvents; ++i) {
          kernels.push_back(rank.machine.exec(i % queues, "empty", 0, {}));
          sent.push_back(rank.send(i, {0, 8, 1, 1, static_cast<double>(i)}, kernels.back()));
          rank.machine.publish(sent.back().queue);
        }
        rank.serve(false);
        // The queues of the last events go first.
        for (std::int32_t i = kEvents - 1; i >= kEvents - queues; --i) {
          for (int round = 0; round < 5; ++round) CHECK(!rank.server.serve(false));
          const Event kernel = kernels[static_cast<std::size_t>(i)];
          rank.machine.publish(kernel.queue);
          while (!rank.machine.done(kernel)) sched_yield();
          CHECK(rank.server.serve(false));
          for (std::int32_t k = 0; k < kEvents; ++k) {
            const auto at = static_cast<std::size_t>(k);
            CHECK(rank.machine.done(sent[at]) == (k % queues >= i % queues));
          }
        }
        CHECK(!rank.server.waiting());
      }
    });

Add serverWakes("the event for which a lane waits wakes the thread that serves the lanes", [] {
  Rank rank(0, 2, 1, 2);
  FutexToken sleeper;
  for (int round = 0; round < 50; ++round) {
    const Event late = rank.machine.exec(0, "spin", 0, {100});
    const Event sent = rank.send(0, {0, 8, 1, 1, static_cast<double>(round)}, late);
    const Event free = rank.receive(1, 8, 8, 1, round);
    // The lanes have their commands, the worker has not got its own: nothing happens before the thread sleeps.
    rank.machine.publish(sent.queue);
    rank.machine.publish(free.queue);
    rank.serve(false);
    CHECK(rank.server.watch(&sleeper) && !sleeper.poll());
    rank.machine.publish();
    CHECK(sleeper.park(2000000000));
    rank.server.unwatch();
    rank.serve(false);
    CHECK(rank.machine.done(sent) && !rank.machine.done(free));
    rank.arrive(1, round, 1);
    rank.serve(false);
    CHECK(rank.machine.done(free));
  }
  // It has happened: the thread must look again.
  const Event early = rank.machine.exec(0, "empty", 0, {});
  const Event sent = rank.send(0, {0, 8, 1, 1, 1}, early);
  rank.machine.publish(sent.queue);
  rank.serve(false);
  rank.machine.finish(early);
  CHECK(!rank.server.watch(&sleeper));
  rank.server.unwatch();
  rank.serve();
  CHECK(rank.machine.done(sent));
});

Add workerWaits("a worker waits for a receive, spinning and asleep; the doorbell rings for it", [] {
  Rank rank(0, 2, 1, 1);
  for (int round = 0; round < 20; ++round) {
    const Event arrival = rank.receive(0, 0, 8, 1, round);
    const Event use = rank.machine.exec(0, "copy_bytes", 2, {512, 0, 8}, arrival);
    rank.serve();
    std::thread comm([&] {
      if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      rank.arrive(1, round, round + 0.5);
      CHECK(rank.server.serve(false));
    });
    rank.machine.finish(arrival);
    rank.machine.finish(use);
    comm.join();
    CHECK(rank.at(512) == round + 0.5);
  }
});

Add longSend("a send with more destinations than fit into one record, around the end of the ring",
             [] {
               Rank rank(0, 64, 1, 1, 1000);
               for (int round = 0; round < 40; ++round) {
                 const Event sent = rank.send(
                     0, {0, 0, 1, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 8, 80, 9, 90});
                 rank.serve();
                 CHECK(rank.machine.done(sent) &&
                       rank.machine.completed(rank.lane) == rank.machine.issued(rank.lane));
                 CHECK(rank.machine.status(sent) == Status::ok && rank.out.posted.size() == 9);
                 for (int i = 0; i < 9; ++i) {
                   const auto& [to, letter] = rank.out.posted[i];
                   CHECK(to == i + 1);
                   CHECK((letter == Letter{1, 10.0 * (i + 1), 0, 0}));
                 }
                 rank.out.posted.clear();
               }
             });

Add eras("letters of earlier eras are forgotten, of this and later ones kept", [] {
  Rank rank(0, 2, 1, 3);
  rank.arrive(1, 5, 1);
  rank.arrive(3, 5, 3);
  rank.server.beginEra(2);
  rank.arrive(1, 6, 1);
  CHECK(rank.server.kept() == 1 && rank.server.refused() == 0);
  const Event old = rank.receive(0, 0, 8, 1, 5);
  const Event present = rank.receive(1, 8, 8, 2, 5);
  const Event later = rank.receive(2, 16, 8, 3, 5);
  rank.serve();
  CHECK(!rank.machine.done(old) && !rank.machine.done(present) && rank.machine.done(later));
  rank.arrive(2, 5, 2);
  rank.serve();
  CHECK(rank.machine.done(present) && rank.at(8) == 2 && rank.at(16) == 3);
});

Add duplicates(
    "of two letters with one key the first counts; letters that make no sense are refused", [] {
      Rank rank(0, 3, 1, 1);
      rank.arrive(1, 5, 50);
      rank.arrive(1, 5, 51);
      CHECK(rank.server.refused() == 1 && rank.server.kept() == 1);
      rank.arrive({1, 6, 8, 0});             // shorter than it says
      rank.arrive({1, 6, 8, 0, 1, 1});       // longer
      rank.arrive({1, 6, 8, 1, 1, 1});       // half a pair
      rank.arrive({1, 6, 8, 2, 7, 1, 1});    // a rank that there is not
      rank.arrive({1, 6, -8, 0});            // negative
      rank.arrive({1, 6, 0.0 / 0.0, 0, 1});  // no number
      rank.arrive({1, 6, 8, 0.0 / 0.0, 1});
      rank.arrive({1, 6, 8.5, 0, 1, 1});  // half a byte
      rank.arrive({1, 6, 8, 0.5, 1});
      rank.arrive({-6, 6, 8, 0, 1});  // no kind of letter
      rank.server.arrived(1, nullptr, 0);
      CHECK(rank.server.refused() == 12 && rank.server.kept() == 1 && rank.out.posted.empty());
      const Event taken = rank.receive(0, 0, 8, 1, 5);
      rank.serve();
      CHECK(rank.machine.done(taken) && rank.at(0) == 50);
    });

Add receivedAtOnce(
    "a version whose receive is at the head of its lane is in its place when it has arrived", [] {
      Rank rank(0, 3, 1, 2);
      rank.machine.shared(Shared::timing).store(1);
      const Event first = rank.receive(0, 0, 12, 1, 0);
      const Event passedOn = rank.receive(1, 64, 8, 1, 6);
      rank.serve();
      const std::int64_t before = now();
      double text[2] = {};
      std::memcpy(text, "twelve bytes", 12);
      rank.at(8) = 3;
      char behind[4];
      std::memcpy(behind, rank.machine.at<char>(0, 12), 4);
      rank.arrive({1, -0.0, 12, 0, text[0], text[1]});  // the same number
      CHECK(rank.machine.done(first) && rank.machine.status(first) == Status::ok);
      CHECK(std::memcmp(rank.machine.at<char>(0, 0), "twelve bytes", 12) == 0);
      CHECK(std::memcmp(rank.machine.at<char>(0, 12), behind, 4) == 0);
      const double* times = rank.machine.times(first);
      CHECK(times[Times::start] >= static_cast<double>(before));
      CHECK(times[Times::end] >= times[Times::start]);
      CHECK(times[Times::end] <= static_cast<double>(now()));
      // A version that goes on to others is received in the same way.
      rank.arrive({1, 6, 8, 2, 2, 7, 60});
      CHECK(rank.machine.done(passedOn) && rank.at(64) == 60);
      CHECK(rank.out.posted.size() == 1 && (rank.out.posted[0].letter == Letter{1, 7, 8, 0, 60}));
      // The lanes are free only once a round has looked at them, and that round has moved.
      CHECK(rank.server.waiting() && rank.server.serve(false) && !rank.server.waiting());
      CHECK(!rank.server.serve(false) && rank.server.kept() == 0 && rank.server.refused() == 0);
    });

Add notReceivedAtOnce(
    "a version comes too late for a receive that ends otherwise, and too early for one that waits",
    [] {
      Rank rank(0, 2, 1, 5);
      const Event late = rank.machine.exec(0, "empty", 0, {});
      const Event withdrawn = rank.receive(0, 0, 8, 1, 1);
      const Event cancelled = rank.receive(1, 8, 8, 1, 2, {}, 2);
      const Event waits = rank.receive(2, 16, 8, 1, 3, late);
      const Event longer = rank.receive(3, 24, 16, 1, 4, {}, 3);
      const Event empty = rank.receive(4, 40, 8, 1, 5, {}, 4);
      for (int lane = 0; lane < 5; ++lane) rank.machine.publish(rank.lane + lane);
      rank.serve(false);
      rank.server.withdraw(0, withdrawn.sequence);
      rank.machine.shared(Shared::cancel + 2).store(1);
      for (int key = 1; key <= 4; ++key) rank.arrive(1, key, 10 * key);
      rank.arrive({1, 5, 0, 0});
      rank.serve(false);
      CHECK(rank.machine.status(withdrawn) == Status::cancelled && rank.at(0) == 0);
      CHECK(rank.machine.status(cancelled) == Status::cancelled && rank.at(8) == 0);
      CHECK(rank.machine.status(longer) == Status::truncated && rank.at(24) == 0);
      CHECK(rank.machine.shared(Shared::cancel + 3).load() == 1);
      CHECK(rank.machine.status(empty) == Status::transfer - NetStatus::truncated);
      CHECK(rank.machine.shared(Shared::failed).load() == 4);
      for (const Event& event : {withdrawn, cancelled, longer, empty}) {
        CHECK(rank.machine.done(event));
      }
      CHECK(!rank.machine.done(waits) && rank.at(16) == 0);
      rank.machine.finish(late);
      rank.serve();
      CHECK(rank.machine.done(waits) && rank.at(16) == 30 && !rank.server.waiting());
      CHECK(rank.server.kept() == 0 && rank.server.refused() == 0);
    });

Add receivedOnce(
    "a second version with the key of one that was received at once is kept, a third refused", [] {
      Rank rank(0, 2, 1, 1);
      const Event taken = rank.receive(0, 0, 8, 1, 5);
      rank.serve();
      rank.arrive(1, 5, 50);
      rank.arrive(1, 5, 51);
      CHECK(rank.machine.done(taken) && rank.server.kept() == 1);
      rank.arrive(1, 5, 52);
      CHECK(rank.server.kept() == 1 && rank.server.refused() == 1);
      rank.serve();
      CHECK(rank.at(0) == 50);
    });

Add laneOfBoth(
    "a lane of receives and sends in turn goes through all, whichever version comes first", [] {
      constexpr int kSteps = 20;
      for (int stride : {1, 3, kSteps - 1}) {
        Rank rank(0, 2, 1, 1, 4, INT32_MAX - 9);
        Event last;
        for (int step = 0; step < kSteps; ++step) {
          rank.receive(0, 8 * step, 8, 1, step);
          last = rank.send(0, {8.0 * step, 8, 1, 1, 100.0 + step});
        }
        rank.serve();
        CHECK(rank.out.posted.empty());
        for (int i = 0; i < kSteps; ++i) {
          const int step = i * stride % kSteps;
          rank.arrive(1, step, step + 0.5);
          CHECK(!rank.machine.done(last));
          if (i % 3 != 0) rank.serve(false);
        }
        rank.serve(false);
        CHECK(rank.machine.done(last) && !rank.server.waiting());
        CHECK(rank.out.posted.size() == kSteps);
        for (int step = 0; step < kSteps; ++step) {
          CHECK((rank.out.posted[static_cast<std::size_t>(step)].letter ==
                 Letter{1, 100.0 + step, 8, 0, step + 0.5}));
        }
        CHECK(rank.server.kept() == 0 && rank.server.refused() == 0);
      }
    });

Add laneCancel("a cancelled run's sends and receives end without bytes, after their waits", [] {
  Rank rank(0, 2, 1, 2);
  const Event slow = rank.machine.exec(0, "empty", 0, {});
  rank.machine.shared(Shared::cancel + 1).store(1);
  const Event sent = rank.send(0, {0, 8, 1, 1, 9}, slow);
  const Event taken = rank.receive(1, 8, 8, 1, 5, slow);
  rank.machine.publish(rank.lane);
  rank.machine.publish(rank.lane + 1);
  rank.arrive(1, 5, 7);
  CHECK(!rank.server.serve(true));
  rank.machine.finish(slow);
  rank.serve();
  CHECK(rank.out.posted.empty());
  CHECK(rank.machine.done(sent) && rank.machine.status(sent) == Status::cancelled);
  CHECK(rank.machine.done(taken) && rank.machine.status(taken) == Status::cancelled);
  CHECK(rank.at(8) == 0);
  CHECK(rank.machine.shared(Shared::failed).load() == 2);
  CHECK(rank.machine.control(rank.lane, Control::failures).load() == 1);
  // A receive that waits for its letter already; another run goes on.
  const Event waits = rank.receive(0, 0, 8, 1, 6, {}, 2);
  const Event stays = rank.receive(1, 0, 8, 1, 7, {}, 3);
  rank.serve();
  CHECK(!rank.machine.done(waits));
  rank.machine.shared(Shared::cancel + 2).store(1);
  CHECK(rank.look());
  CHECK(rank.machine.done(waits) && rank.machine.status(waits) == Status::cancelled);
  CHECK(!rank.machine.done(stays));
  // Its key is free again.
  const Event again = rank.receive(0, 16, 8, 1, 6, {}, 3);
  rank.serve();
  rank.arrive(1, 6, 6);
  rank.serve();
  CHECK(rank.machine.done(again) && rank.at(16) == 6);
});

Add laneFailures("nothing is sent while a failure is not handled; then its run decides", [] {
  Rank rank(0, 2, 1, 2);
  const Event bad = rank.machine.exec(0, "fail", 0, {17}, {}, 5);
  const Event other = rank.machine.exec(0, "empty", 0, {}, {}, 6);
  rank.machine.finish(other);
  CHECK(rank.machine.status(bad) == 17);
  CHECK(rank.machine.shared(Shared::failed).load() == 1);
  const Event same = rank.send(0, {0, 8, 1, 1, 9}, bad, 5);
  const Event good = rank.send(1, {0, 8, 1, 1, 10}, other, 6);
  rank.serve();
  CHECK(rank.out.posted.empty() && !rank.machine.done(good) && rank.server.held());
  CHECK(rank.machine.done(same) && rank.machine.status(same) == Status::cancelled);
  rank.machine.shared(Shared::failuresHandled).store(2);  // the cancelled send counts, too
  CHECK(rank.server.serve(false));
  CHECK(rank.machine.done(good) && rank.out.posted.size() == 1);
});

Add failureRings("a failed record wakes the engine, which may have armed none", [] {
  Machine machine(withLanes(1, 2));
  std::atomic<int> calls{0};
  machine.core->runtime().doorbell.setCall([&] { ++calls; });
  machine.shared(Shared::engineAsleep).store(2);
  const Event bad = machine.exec(0, "fail", 0, {17});
  machine.publish();
  const std::int64_t deadline = now() + 2000000000;
  while (calls.load() == 0 && now() < deadline) sched_yield();
  CHECK(calls.load() == 1 && machine.done(bad));
  machine.shared(Shared::engineAsleep).store(0);
  machine.core->runtime().doorbell.answered();
  // Before it is handled the engine does not sleep.
  const std::int64_t start = now();
  CHECK(machine.core->waitForDoorbell(5e6));
  CHECK(now() - start < 1000000000);
  machine.shared(Shared::failuresHandled).store(1);
  machine.core->waitForDoorbell(1e3);  // The ring of before may be left.
  CHECK(!machine.core->waitForDoorbell(1e3));
  machine.core->runtime().doorbell.setCall(nullptr);
});

Add refusals(
    "a receive of another length fails and cancels its run; meaningless commands are refused", [] {
      Rank rank(0, 3, 1, 1);
      rank.arrive(1, 5, 50);
      const Event wrong = rank.receive(0, 0, 16, 1, 5, {}, 7);
      rank.serve();
      CHECK(rank.machine.status(wrong) == Status::truncated);
      CHECK(rank.machine.shared(Shared::cancel + 7).load() == 1 && rank.at(0) == 0);
      const Event outside = rank.receive(0, kHost - 4, 8, 1, 6);
      const Event negative = rank.receive(0, -8, 8, 1, 6);
      const Event nan = rank.send(0, {0.0 / 0.0, 8, 1, 1, 1});
      const Event large = rank.send(0, {0, 65536, 1, 1, 1});
      const Event self = rank.send(0, {0, 8, 1, 0, 1});
      const Event nowhere = rank.send(0, {0, 8, 1, 3, 1});
      const Event half = rank.send(0, {0, 8, 1, 1});
      const Event unknown = rank.machine.put(rank.lane, Opcode::copy, 0, 0, {0, 0, 8});
      for (const Event& event : {outside, negative, nan, large, self, nowhere, half, unknown}) {
        rank.machine.record(event)[Record::run] = -1;
      }
      rank.serve();
      for (const Event& event : {outside, negative, nan, large}) {
        CHECK(rank.machine.done(event) && rank.machine.status(event) == Status::outOfRange);
      }
      for (const Event& event : {self, nowhere, half, unknown}) {
        CHECK(rank.machine.done(event) && rank.machine.status(event) == Status::badArguments);
      }
      CHECK(rank.out.posted.empty());
    });

Add lostRank("after a rank was lost nothing is sent; cancelled runs end", [] {
  Rank rank(0, 2, 1, 2);
  rank.server.lost();
  const Event sent = rank.send(0, {0, 8, 1, 1, 9});
  const Event taken = rank.receive(1, 0, 8, 1, 9);
  rank.serve();
  CHECK(rank.machine.status(sent) == Status::cancelled && !rank.machine.done(taken));
  rank.machine.shared(Shared::cancel + 1).store(1);
  rank.server.unwatch();  // after a sleep the server looks at once
  CHECK(rank.server.serve(false));
  CHECK(rank.machine.done(taken) && rank.out.posted.empty());
});

Add withdrawn(
    "a receive that is withdrawn ends as cancelled, and its version is dropped when it comes", [] {
      Rank rank(0, 2, 1, 3);
      const Event late = rank.machine.exec(0, "spin", 0, {100});
      const Event waiting = rank.receive(0, 0, 8, 1, 5);
      const Event unread = rank.receive(1, 8, 8, 1, -700, late);
      const Event come = rank.receive(2, 16, 8, 1, 7);
      for (int lane = 0; lane < 3; ++lane) rank.machine.publish(rank.lane + lane);
      rank.serve(false);
      rank.arrive(1, 7, 70);
      rank.serve(false);
      for (int lane = 0; lane < 3; ++lane) {
        const Event& event = lane == 0 ? waiting : lane == 1 ? unread : come;
        rank.server.withdraw(lane, event.sequence);
      }
      rank.serve(false);
      CHECK(rank.machine.status(waiting) == Status::cancelled && !rank.machine.done(unread));
      CHECK(rank.machine.status(come) == Status::ok);
      rank.machine.finish(late);
      rank.serve(false);
      CHECK(rank.machine.status(unread) == Status::cancelled);
      rank.arrive(1, 5, 50);
      rank.arrive(1, -700, 50);
      CHECK(rank.server.kept() == 0 && rank.server.refused() == 0);
      // Only that command of the lane was meant.
      const Event next = rank.receive(0, 0, 8, 1, 6);
      rank.arrive(1, 6, 60);
      rank.serve();
      CHECK(rank.machine.status(next) == Status::ok && rank.at(0) == 60);
    });

Add refusedVersions("versions that no receive takes are dropped: one by one, and those of calls",
                    [] {
                      Rank rank(0, 2, 1, 2);
                      rank.arrive(1, 5, 50);
                      rank.server.refuse(1, 5);
                      rank.server.refuse(1, 6);
                      rank.arrive(1, 6, 60);
                      CHECK(rank.server.kept() == 0);
                      rank.arrive(1, 6, 60);  // one version only
                      rank.arrive(1, -3, 1);
                      rank.arrive(1, -9, 1);
                      rank.arrive(2, -3, 1);
                      CHECK(rank.server.kept() == 4);
                      rank.server.refuseCalls(1, 2, -8);
                      CHECK(rank.server.kept() == 3);
                      rank.arrive(1, -7, 1);
                      CHECK(rank.server.kept() == 3);
                      const Event taken = rank.receive(0, 0, 8, 1, -5);
                      rank.serve();
                      rank.arrive(1, -5, 3);
                      rank.serve();
                      CHECK(rank.machine.status(taken) == Status::ok && rank.at(0) == 3);
                    });

Add closing("a core that closes does not wait for a letter that never comes", [] {
  for (int round = 0; round < 20; ++round) {
    Rank rank(0, 2, 1, 1);
    const Event never = rank.receive(0, 0, 8, 1, 5);
    const Event behind = rank.machine.exec(0, "empty", 0, {}, never);
    rank.serve();
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    rank.machine.core->close();
    CHECK(rank.machine.done(behind) && rank.machine.status(behind) == Status::cancelled);
    CHECK(!rank.server.serve(true));
  }
});

Add treeOfRanks("a version goes to all ranks along a tree, before their receives and after them",
                [] {
                  constexpr int kRanks = 5;
                  std::vector<std::unique_ptr<Rank>> ranks;
                  for (int r = 0; r < kRanks; ++r)
                    ranks.push_back(std::make_unique<Rank>(r, kRanks, 1, 1, 3));
                  std::vector<Event> taken(kRanks);
                  // Receives of odd ranks come before, of even ones after.
                  const auto receives = [&](int parity) {
                    for (int r = 1; r < kRanks; ++r) {
                      if (r % 2 != parity) continue;
                      taken[r] = ranks[r]->receive(0, 0, 12, 1, 100 + r);
                      ranks[r]->serve();
                    }
                  };
                  receives(1);
                  std::memcpy(ranks[0]->machine.at<char>(0, 0), "twelve bytes", 12);
                  ranks[0]->send(0, {0, 12, 1, 1, 101, 2, 102, 3, 103, 4, 104});
                  ranks[0]->serve();
                  CHECK(ranks[0]->out.posted.size() == 3);  // branches of two, one and one rank
                  std::vector<int> sent(kRanks);
                  for (bool moved = true; moved;) {
                    moved = false;
                    for (int r = 0; r < kRanks; ++r) {
                      std::deque<Outbox::Posted> posted;
                      posted.swap(ranks[r]->out.posted);
                      for (auto& [to, letter] : posted) {
                        ranks[to]->arrive(letter);
                        ranks[r]->server.giveBack(std::move(letter));
                        ++sent[r];
                        moved = true;
                      }
                    }
                  }
                  CHECK(sent[0] == 3 && sent[1] == 1);
                  receives(0);
                  for (int r = 1; r < kRanks; ++r) {
                    ranks[r]->serve();
                    CHECK(ranks[r]->machine.done(taken[r]));
                    CHECK(std::memcmp(ranks[r]->machine.at<char>(0, 0), "twelve bytes", 12) == 0);
                    CHECK(ranks[r]->server.kept() == 0 && ranks[r]->server.refused() == 0);
                  }
                });

// A worker and the thread of the server hand a number back and forth: the echo adds one to what is sent.
Add stress("a worker and the server's thread depend on each other at every step", [] {
  constexpr int kRounds = 5000;
  Rank rank(0, 2, 1, 2);
  std::atomic<bool> ending{false};
  std::thread comm([&] {
    while (!ending.load()) {
      const bool moved = rank.server.serve(true);
      for (; !rank.out.posted.empty(); rank.out.posted.pop_front()) {
        Letter letter = std::move(rank.out.posted.front().letter);
        letter[4] += 1;
        rank.arrive(letter);
        rank.server.giveBack(std::move(letter));
      }
      if (!moved) sched_yield();
    }
  });
  rank.at(0) = 0;
  rank.at(8) = 0;
  rank.at(16) = 1;
  Event arrival;
  for (int round = 0; round < kRounds; ++round) {
    // The worker adds one to the number that came, and sends it from there.
    const Event computed = rank.machine.exec(0, "add_f64", 2, {0, 16, 1, 1}, arrival);
    rank.send(0, {0, 8, 1, 1, static_cast<double>(round)}, computed);
    arrival = rank.receive(1, 0, 8, 1, round, {rank.lane, rank.machine.issued(rank.lane)});
    if (round % 7 == 0) rank.machine.publish();
  }
  rank.machine.finish(arrival);
  ending.store(true);
  comm.join();
  CHECK(rank.at(0) == 2 * kRounds);
  CHECK(rank.server.kept() == 0 && rank.server.refused() == 0);
});

}  // namespace
}  // namespace headrace::test
