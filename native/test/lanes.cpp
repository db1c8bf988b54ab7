// Lanes: the core's half (headrace/lanes.h) and the server of the message layer, with a transport inside this process.
#include <algorithm>
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
      rank.server.arrived(1, nullptr, 0);
      CHECK(rank.server.refused() == 8 && rank.server.kept() == 1 && rank.out.posted.empty());
      const Event taken = rank.receive(0, 0, 8, 1, 5);
      rank.serve();
      CHECK(rank.machine.done(taken) && rank.at(0) == 50);
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

Add expected("the engine is told once of a version that it expects, and the version is kept", [] {
  Rank rank(0, 2, 1, 1);
  rank.arrive({-1, 1, 5, 8, 0, 17}, 1);
  rank.server.expect(1, 5, 3);
  rank.server.expect(1, 6, 4);
  CHECK((rank.out.arrivals == std::vector<std::int32_t>{3}));
  rank.arrive({-1, 1, 6, 8, 0, 18}, 1);
  CHECK((rank.out.arrivals == std::vector<std::int32_t>{3, 4}));
  CHECK(rank.server.kept() == 2 && rank.out.posted.empty());
  // The receive that is commanded then asks at once.
  rank.receive(0, 0, 8, 1, 5);
  rank.serve();
  CHECK(rank.out.coming.size() == 1 && rank.server.kept() == 1);
  // Versions of earlier eras do not count.
  rank.server.expect(1, 7, 5);
  rank.server.beginEra(2);
  rank.arrive({-1, 1, 7, 8, 0, 19}, 1);
  rank.server.expect(1, 8, 6);
  rank.arrive({-1, 1, 8, 8, 0, 20}, 1);
  CHECK(rank.out.arrivals.size() == 2 && rank.server.kept() == 0);
});

/// Carries letters and bytes between ranks until none is left. `bytes`: bytes that were asked for move, too.
void carry(const std::vector<Rank*>& ranks, bool bytes = true) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      std::deque<Outbox::Posted> posted;
      posted.swap(ranks[r]->out.posted);
      for (auto& [to, letter] : posted) {
        ranks[to]->arrive(letter, static_cast<std::int32_t>(r));
        moved = true;
      }
      while (bytes && !ranks[r]->out.leaving.empty()) {
        const Outbox::Moved from = ranks[r]->out.leaving.front();
        ranks[r]->out.leaving.pop_front();
        auto& coming = ranks[from.rank]->out.coming;
        const auto found = std::find_if(coming.begin(), coming.end(), [&](const auto& each) {
          return each.tag == from.tag && each.rank == static_cast<std::int32_t>(r);
        });
        CHECK(found != coming.end() && found->bytes == from.bytes);
        std::memcpy(found->data, from.data, static_cast<std::size_t>(from.bytes));
        const std::int32_t lane = found->number;
        coming.erase(found);
        ranks[r]->server.sent(from.number, NetStatus::ok, 1, 2);
        ranks[from.rank]->server.fetched(lane, NetStatus::ok);
        moved = true;
      }
    }
    for (Rank* each : ranks) each->serve(false);
  }
}

using Ends = std::vector<std::pair<std::int32_t, std::int32_t>>;
constexpr double kLong = 100000;

Add longVersion(
    "a long version is announced, and goes straight to its place when its receive asks", [] {
      for (const bool early : {false, true}) {
        Rank sender(0, 2, 1, 1);
        Rank receiver(1, 2, 1, 2);
        const Event late = sender.machine.exec(0, "fill_f64", 1, {64, 12500, 3});
        const Event user = receiver.machine.exec(0, "empty", 0, {});
        const Event offered = sender.offer(0, {64, kLong, 1, 17, 0, 1, 9}, late);
        sender.machine.publish(sender.lane);
        sender.serve(false);
        CHECK(!sender.machine.done(offered) && sender.out.posted.empty());
        const auto receive = [&] { return receiver.receive(1, 512, kLong, 1, 9, user); };
        Event taken{};
        if (early) {
          taken = receive();
          receiver.machine.publish(receiver.lane + 1);
          receiver.serve(false);
        }
        sender.machine.finish(late);
        carry({&sender, &receiver});
        // The announcement has left. The receive has not asked: a task still uses the copy, or it was not commanded.
        CHECK(sender.machine.done(offered) && sender.machine.status(offered) == Status::ok);
        CHECK(sender.out.ends.empty() && receiver.out.coming.empty());
        if (!early) taken = receive();
        receiver.machine.finish(user);
        receiver.serve();
        carry({&sender, &receiver}, false);
        CHECK(receiver.out.coming.size() == 1 && sender.out.leaving.size() == 1);
        CHECK(!receiver.machine.done(taken) && sender.out.ends.empty());
        carry({&sender, &receiver});
        CHECK(receiver.machine.done(taken) && receiver.machine.status(taken) == Status::ok);
        CHECK(receiver.at(512) == 3 && receiver.at(512 + kLong - 8) == 3 &&
              receiver.at(512 + kLong) == 0);
        CHECK((sender.out.ends == Ends{{17, NetStatus::ok}}));
        CHECK(sender.server.refused() == 0 && receiver.server.refused() == 0);
      }
    });

Add longOnTree("a long version goes along a tree when the ranks that pass it on have it", [] {
  constexpr int kRanks = 5;
  std::vector<std::unique_ptr<Rank>> all;
  std::vector<Rank*> ranks;
  for (int r = 0; r < kRanks; ++r) {
    all.push_back(std::make_unique<Rank>(r, kRanks, 1, 2, 3));
    ranks.push_back(all.back().get());
  }
  std::vector<Event> taken(kRanks), passed(kRanks);
  ranks[0]->at(0) = 7;
  ranks[0]->offer(0, {0, kLong, 1, 1, 0, 1, 101, 2, 102, 3, 103, 4, 104});
  ranks[0]->serve();
  CHECK(ranks[0]->out.posted.size() == 3);  // branches of two, one and one rank
  for (int r = 1; r < kRanks; ++r) {
    taken[r] = ranks[r]->receive(0, 0, kLong, 1, 100 + r);
    passed[r] = ranks[r]->offer(1, {0, kLong, 1, 20.0 + r, 100.0 + r}, taken[r]);
    ranks[r]->serve();
  }
  carry(ranks, false);
  CHECK(ranks[0]->out.leaving.size() == 3 && ranks[1]->out.ends.empty());
  carry(ranks);
  for (int r = 1; r < kRanks; ++r) {
    CHECK(ranks[r]->machine.done(taken[r]) && ranks[r]->machine.done(passed[r]));
    CHECK(ranks[r]->at(0) == 7 && (ranks[r]->out.ends == Ends{{20 + r, NetStatus::ok}}));
  }
  CHECK((ranks[0]->out.ends == Ends{{1, NetStatus::ok}}));
});

Add longDeclined(
    "every announcement is answered: by a cancelled receive, another length, and a new era", [] {
      Rank sender(0, 2, 1, 1);
      Rank receiver(1, 2, 1, 2);
      for (double key = 1; key <= 4; ++key) sender.offer(0, {0, kLong, 1, key, 0, 1, key});
      sender.serve();
      receiver.machine.shared(Shared::cancel + 5).store(1);
      const Event cancelled = receiver.receive(0, 0, kLong, 1, 1, {}, 5);
      const Event shorter = receiver.receive(1, 0, kLong - 8, 1, 2, {}, 6);
      receiver.serve();
      carry({&sender, &receiver});
      CHECK(receiver.machine.status(shorter) == Status::truncated);
      CHECK(receiver.machine.status(cancelled) == Status::cancelled && receiver.out.coming.empty());
      // The first came when no receive waited for it any more.
      CHECK((sender.out.ends == Ends{{2, NetStatus::ok}}) && receiver.server.kept() == 3);
      const Event fourth = receiver.receive(0, 0, kLong, 1, 4, {}, 5);
      receiver.serve();
      carry({&sender, &receiver});
      CHECK(receiver.machine.status(fourth) == Status::cancelled && sender.out.ends.size() == 2);
      // A failing rank takes only what a commanded receive expects.
      receiver.server.declineBefore(2);
      carry({&sender, &receiver});
      CHECK(sender.out.ends.size() == 4 && receiver.server.kept() == 0);
      sender.offer(0, {0, kLong, 1, 5, 0, 1, 5, 1, 6});
      sender.offer(0, {0, kLong, 2, 6, 0, 1, 7});
      const Event expecting = receiver.receive(0, 0, kLong, 1, 5);
      receiver.serve();
      sender.serve();
      carry({&sender, &receiver});
      CHECK(receiver.machine.done(expecting) && receiver.server.kept() == 1);
      CHECK(sender.out.ends.size() == 5 && sender.out.ends.back().first == 5);
      receiver.server.beginEra(2);
      CHECK(receiver.server.kept() == 1);
      receiver.server.beginEra(3);
      carry({&sender, &receiver});
      CHECK(sender.out.ends.size() == 6 && receiver.server.kept() == 0);
      // Too late for this era, and on the sender's side.
      sender.offer(0, {0, kLong, 1, 7, 0, 1, 7});
      sender.serve();
      carry({&sender, &receiver});
      CHECK(sender.out.ends.size() == 7);
      sender.server.beginEra(2);
      sender.offer(0, {0, kLong, 1, 8, 0, 1, 8});
      sender.serve();
      CHECK(sender.out.posted.empty() && sender.out.ends.back().second == NetStatus::cancelled);
      for (const auto& [request, status] : sender.out.ends) {
        CHECK(status == (request == 8 ? NetStatus::cancelled : NetStatus::ok));
      }
    });

Add longCancelled(
    "a receive whose bytes are on their way ends with them, also when its run is cancelled", [] {
      Rank sender(0, 2, 1, 1);
      Rank receiver(1, 2, 1, 1);
      sender.offer(0, {0, kLong, 1, 1, 0, 1, 5});
      const Event taken = receiver.receive(0, 0, kLong, 1, 5);
      sender.serve();
      receiver.serve();
      carry({&sender, &receiver}, false);
      receiver.machine.shared(Shared::cancel + 1).store(1);
      CHECK(!receiver.look() && !receiver.machine.done(taken));
      carry({&sender, &receiver});
      CHECK(receiver.machine.done(taken) && receiver.machine.status(taken) == Status::cancelled);
    });

Add cancelledUnderWay(
    "a cancelled receive that asked for bytes leaves none outstanding, and its lane goes on", [] {
      for (const std::int32_t mode : {NetMode::direct, NetMode::staged, NetMode::mapped}) {
        for (const std::int32_t outcome :
             {NetStatus::ok, NetStatus::library, NetStatus::cancelled}) {
          Rank sender(0, 2, 1, 1, 4, 0, 2);
          Rank receiver(1, 2, 1, 1, 4, 0, 2);
          const std::vector<Rank*> all{&sender, &receiver};
          const auto begin = [&](double key) {
            sender.offerFrom(1, 0, 0, {512, kLong, 1, key, 0, 1, key});
            const Event taken = receiver.receiveInto(1, mode, NetScope::none, 0, key, kLong);
            sender.serve();
            receiver.serve();
            carry(all, false);
            CHECK(receiver.out.coming.size() + receiver.out.reading.size() == 1);
            return taken;
          };
          const auto end = [&](std::int32_t status) {
            receiver.out.coming.clear();
            receiver.out.reading.clear();
            receiver.server.fetched(0, status);
            for (const Outbox::Moved& each : sender.out.leaving) {
              sender.server.sent(each.number, NetStatus::ok, 1, 2);
            }
            sender.out.leaving.clear();
            receiver.look();
            carry(all, false);
          };
          const Event first = begin(7);
          receiver.machine.shared(Shared::cancel + 1).store(1);
          // The bytes may still come: nothing that follows may use the memory.
          CHECK(!receiver.look() && !receiver.machine.done(first) && sender.out.ends.empty());
          end(outcome);
          CHECK(receiver.machine.done(first) &&
                receiver.machine.status(first) == Status::cancelled);
          CHECK((sender.out.ends == Ends{{7, NetStatus::ok}}));
          receiver.machine.shared(Shared::cancel + 1).store(0);
          const Event second = begin(8);
          end(NetStatus::ok);
          CHECK(receiver.machine.status(second) == Status::ok && sender.out.ends.size() == 2);
          CHECK(sender.server.refused() == 0 && receiver.server.refused() == 0);
        }
      }
    });

Add longFailures(
    "nothing is announced from a failure, or of a cancelled run; such an offer departs", [] {
      Rank rank(0, 2, 1, 2);
      const Event bad = rank.machine.exec(0, "fail", 0, {17}, {}, 5);
      rank.machine.finish(bad);
      const Event same = rank.offer(0, {0, kLong, 1, 1, 0, 1, 9}, bad, 5);
      const Event good = rank.offer(1, {0, kLong, 1, 2, 0, 1, 10}, {}, 6);
      rank.serve();
      CHECK(rank.out.posted.empty() && rank.server.held() && !rank.machine.done(good));
      CHECK(rank.machine.status(same) == Status::cancelled);
      CHECK((rank.out.ends == Ends{{1, NetStatus::cancelled}}));
      rank.machine.shared(Shared::failuresHandled).store(2);
      rank.serve(false);
      CHECK(rank.machine.done(good) && rank.out.posted.size() == 1 && rank.out.ends.size() == 1);
    });

Add longAbandoned(
    "ranks out of step: offers depart, requests are refused, receives wait for their run's end",
    [] {
      Rank sender(0, 2, 1, 1);
      Rank receiver(1, 2, 1, 2);
      sender.offer(0, {0, kLong, 1, 1, 0, 1, 5});
      sender.offer(0, {0, kLong, 1, 2, 0, 1, 6});
      sender.serve();
      const Event first = receiver.receive(0, 0, kLong, 1, 5);
      receiver.serve();
      carry({&sender, &receiver}, false);
      CHECK(sender.out.leaving.size() == 1);
      sender.server.abandon();
      // The first one's bytes are on their way.
      CHECK((sender.out.ends == Ends{{2, NetStatus::cancelled}}));
      carry({&sender, &receiver});
      CHECK(receiver.machine.done(first) && sender.out.ends.size() == 2);
      const Event second = receiver.receive(1, 0, kLong, 1, 6);
      receiver.serve();
      carry({&sender, &receiver});
      CHECK(receiver.out.cancelled == std::vector<std::int32_t>{1});
      receiver.server.fetched(1, NetStatus::cancelled);
      receiver.serve(false);
      CHECK(!receiver.machine.done(second));
      receiver.machine.shared(Shared::cancel + 1).store(1);
      CHECK(receiver.look());
      CHECK(receiver.machine.status(second) == Status::cancelled);
      const Event third = sender.offer(0, {0, kLong, 1, 3, 0, 1, 7});
      sender.serve();
      CHECK(sender.machine.done(third) && sender.out.posted.empty() && sender.out.ends.size() == 3);
    });

Add longLost("after a rank was lost offers depart, and receives end with their run", [] {
  Rank rank(0, 3, 1, 2);
  rank.offer(0, {0, kLong, 1, 1, 0, 1, 5, 2, 6});
  rank.serve();
  rank.arrive({-2, 1, 32001}, 2);
  CHECK(rank.out.leaving.size() == 1);
  const Event taken = rank.receive(1, 0, kLong, 1, 5);
  rank.serve();
  rank.arrive({-1, 1, 5, kLong, 0, 3}, 1);
  rank.serve(false);
  CHECK(rank.out.coming.size() == 1);
  rank.server.lost();
  rank.server.sent(1, NetStatus::lost, 1, 2);
  rank.server.fetched(1, NetStatus::lost);
  CHECK((rank.out.ends == Ends{{1, NetStatus::lost}}));
  rank.serve(false);
  CHECK(!rank.machine.done(taken));
  rank.machine.shared(Shared::cancel + 1).store(1);
  CHECK(rank.look());
  CHECK(rank.machine.status(taken) == Status::cancelled);
});

Add longRefusals("letters about long versions that make no sense are refused, and so are offers",
                 [] {
                   Rank rank(0, 3, 1, 1);
                   rank.arrive({-2, 7});                        // no tag
                   rank.arrive({-2, 7, 5});                     // a tag of no lane
                   rank.arrive({-3});                           // no offer
                   rank.arrive({-4, 32001 + 1});                // no such lane
                   rank.arrive({-1, 1, 5, kLong, 0});           // no offer
                   rank.arrive({-1, 1, 5, kLong, 2, 0, 1, 4});  // to be passed on to this rank
                   rank.arrive({-5, 1, 5, 8, 0, 1});            // of no kind
                   CHECK(rank.server.refused() == 7 && rank.out.posted.empty());
                   rank.arrive({-3, 7, 1});      // of no offer: it has departed
                   rank.arrive({-4, 32001});     // not under way
                   rank.arrive({-2, 7, 32001});  // is refused
                   CHECK(rank.server.refused() == 7 && rank.out.posted.size() == 1);
                   CHECK((rank.out.posted[0].letter == Letter{-4, 32001}));
                   const Event outside = rank.offer(0, {kHost, 8, 1, 3, 0, 1, 1}, {}, -1);
                   const Event half = rank.offer(0, {0, 8, 1, 4, 0, 1}, {}, -1);
                   const Event self = rank.offer(0, {0, 8, 1, 5, 0, 0, 1}, {}, -1);
                   rank.serve();
                   CHECK(rank.machine.status(outside) == Status::outOfRange);
                   CHECK(rank.machine.status(half) == Status::badArguments);
                   CHECK(rank.machine.status(self) == Status::badArguments);
                   CHECK(rank.out.ends.size() == 3 && rank.out.ends[0].first == 3);
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

Add branchesReturn(
    "the rank that offers a long version serves those to which a rank should have passed it on",
    [] {
      Rank sender(0, 5, 1, 1, 2);
      Rank refusing(1, 5, 1, 1, 2);
      Rank second(2, 5, 1, 1, 2);
      Rank third(3, 5, 1, 1, 2);
      const std::vector<Rank*> all{&sender, &refusing, &second, &third};
      sender.offer(0, {0, kLong, 1, 7, 0, 1, 5, 2, 5, 3, 5});
      std::vector<Event> taken;
      for (Rank* rank : {&second, &third}) {
        taken.push_back(rank->receive(0, 0, kLong, 1, 5));
        rank->serve();
      }
      refusing.server.refuse(1, 5);
      sender.serve();
      carry(all);
      CHECK(sender.out.ends.empty() || third.machine.done(taken[1]));
      // The second rank may have got a pair to serve.
      second.offer(0, {0, kLong, 1, 8, 5});
      third.offer(0, {0, kLong, 1, 9, 5});
      for (Rank* rank : {&second, &third}) rank->serve();
      carry(all);
      CHECK(second.machine.status(taken[0]) == Status::ok);
      CHECK(third.machine.status(taken[1]) == Status::ok);
      CHECK((sender.out.ends == Ends{{7, NetStatus::ok}}));
      // A decline that makes no sense changes nothing.
      for (const Letter& letter : {Letter{-3, 1}, Letter{-3, 1, 1, 2}, Letter{-3, 1, 1, 9, 5}}) {
        sender.arrive(letter);
      }
      CHECK(sender.server.refused() == 3);
    });

Add deviceVersion("a version in GPU memory is announced with its place and comes by a given way",
                  [] {
                    Rank sender(0, 2, 1, 1, 4, 0, 2);
                    Rank receiver(1, 2, 1, 1, 4, 0, 3);
                    const std::vector<Rank*> all{&sender, &receiver};
                    for (const std::int32_t mode : {NetMode::direct, NetMode::staged}) {
                      const double key = 9 + mode;
                      sender.offerFrom(1, 5, 0, {512, kLong, 1, 17, 0, 1, key});
                      sender.serve();
                      CHECK((sender.out.posted.at(0).letter ==
                             Letter{-1, 1, key, kLong, 0, 1.0 + mode, 1, 512, 5}));
                      receiver.server.expect(1, key, 3);
                      carry(all, false);
                      CHECK(receiver.out.arrivals.size() == 1u + mode);
                      CHECK(receiver.out.announced.first == 1 && !receiver.out.announced.second);
                      const Event taken =
                          receiver.receiveInto(2, mode, NetScope::all, 0, key, kLong);
                      receiver.serve();
                      CHECK(receiver.out.coming.size() == 1);
                      const Outbox::Moved to = receiver.out.coming[0];
                      CHECK(to.space == 2 && to.mode == mode && to.scope == NetScope::all &&
                            to.bytes == kLong);
                      receiver.out.coming.clear();
                      carry(all, false);
                      CHECK(sender.out.leaving.size() == 1);
                      CHECK(sender.out.leaving[0].space == 1 && sender.out.leaving[0].mode == mode);
                      sender.server.sent(sender.out.leaving[0].number, NetStatus::ok, 1, 2);
                      sender.out.leaving.clear();
                      CHECK(sender.out.ends.back() == std::make_pair(17, NetStatus::ok));
                      CHECK(sender.out.lastMode == mode && !receiver.machine.done(taken));
                      receiver.server.fetched(0, NetStatus::ok);
                      receiver.serve();
                      CHECK(receiver.machine.status(taken) == Status::ok);
                    }
                  });

Add mappedVersion("a version is read from mapped memory, and its sender learns of it", [] {
  Rank sender(0, 2, 1, 1, 4, 0, 2);
  Rank receiver(1, 2, 1, 1, 4, 0, 2);
  const std::vector<Rank*> all{&sender, &receiver};
  const auto begin = [&](double key) {
    sender.offerFrom(1, 0, 0, {512, kLong, 1, key, 0, 1, key});
    const Event taken = receiver.receiveInto(1, NetMode::mapped, NetScope::none, 0, key, kLong);
    sender.serve();
    receiver.serve();
    carry(all);
    CHECK(receiver.out.reading.size() == 1 && sender.out.ends.empty());
    const Outbox::Reading read = receiver.out.reading[0];
    CHECK(read.rank == 0 && read.space == 1 && read.offset == 512 && read.to.space == 1);
    receiver.out.reading.clear();
    // A refusal is for those who have asked.
    receiver.arrive({-4, 32001}, 0);
    CHECK(receiver.out.cancelled.empty() && !receiver.machine.done(taken));
    return taken;
  };
  const Event good = begin(7);
  receiver.server.fetched(0, NetStatus::ok);
  receiver.serve();
  CHECK(receiver.machine.status(good) == Status::ok);
  CHECK((receiver.out.posted.at(0).letter == Letter{-5, 1}));
  carry(all);
  CHECK((sender.out.ends == Ends{{7, NetStatus::ok}}) && sender.out.lastMode == NetMode::mapped);
  sender.out.ends.clear();
  const Event bad = begin(8);
  receiver.server.fetched(0, NetStatus::mapping);
  receiver.serve();
  CHECK(receiver.machine.status(bad) == Status::transfer - NetStatus::mapping);
  carry(all);
  CHECK((sender.out.ends == Ends{{8, NetStatus::ok}}));
  sender.arrive({-5});
  sender.arrive({-5, 99});  // has departed
  CHECK(sender.server.refused() == 1);
});

Add stagedLimit("few receives use staging buffers at a time, and the most urgent goes next", [] {
  constexpr int kAll = LaneServer::kMostStaged + 3;
  Rank rank(0, 2, 1, kAll, 4, 0, 2);
  std::vector<Event> taken;
  for (int i = 0; i < kAll; ++i) {
    taken.push_back(rank.receiveInto(1, NetMode::staged, NetScope::none, i, i, kLong));
  }
  rank.serve();
  for (int i = 0; i < kAll; ++i) {
    const double priority = i == kAll - 2 ? 2 : 1;
    rank.arrive({-1, 1, static_cast<double>(i), kLong, 0, 1, 1, 0, priority});
  }
  rank.serve();
  CHECK(rank.out.coming.size() == LaneServer::kMostStaged);
  CHECK(rank.out.coming.back().number == LaneServer::kMostStaged - 1 ||
        rank.out.coming.front().number == kAll - 2);
  // The run of one that waits is cancelled.
  rank.server.withdraw(kAll - 1, taken[kAll - 1].sequence);
  rank.serve();
  CHECK(rank.machine.status(taken[kAll - 1]) == Status::cancelled);
  for (std::size_t next = 0; next < rank.out.coming.size(); ++next) {
    rank.server.fetched(rank.out.coming[next].number, NetStatus::ok);
    rank.serve();
    CHECK(rank.out.coming.size() <= next + 1 + LaneServer::kMostStaged);
  }
  const auto at = [&](std::int32_t lane) {
    const auto found = std::find_if(rank.out.coming.begin(), rank.out.coming.end(),
                                    [&](const auto& each) { return each.number == lane; });
    return found - rank.out.coming.begin();
  };
  CHECK(at(kAll - 2) < at(kAll - 3));
  for (int i = 0; i < kAll - 1; ++i) CHECK(rank.machine.status(taken[i]) == Status::ok);
});

Add sendLimit("few transfers leave at a time, and the most urgent leaves next", [] {
  constexpr int kMost = mpi::LaneOffers::kMostSends;
  Rank rank(0, 2, 1, 1, 4, 0, 2);
  for (int i = 0; i < kMost + 2; ++i) {
    const double key = i;
    rank.offerFrom(1, i == kMost + 1 ? 9 : 1, 0, {0, kLong, 1, key, 0, 1, key});
    rank.serve();
    rank.arrive({-2, 1.0 + i, 32001.0 + i});
  }
  CHECK(rank.out.leaving.size() == kMost);
  rank.server.sent(rank.out.leaving[0].number, NetStatus::ok, 1, 2);
  CHECK(rank.out.leaving.size() == kMost + 1 && rank.out.leaving.back().number == kMost + 2);
  rank.server.sent(rank.out.leaving[1].number, NetStatus::ok, 1, 2);
  CHECK(rank.out.leaving.back().number == kMost + 1 && rank.out.ends.size() == 2);
  rank.server.lost();
  CHECK(rank.out.ends.size() == kMost + 2);
});

Add placeRefusals("commands and letters that name no memory space or no way are refused", [] {
  Rank rank(0, 2, 1, 1, 4, 0, 2);
  const Event space = rank.receiveInto(2, NetMode::direct, NetScope::none, 0, 1, 8);
  const Event way = rank.receiveInto(1, 3, NetScope::none, 0, 2, 8);
  const Event scope = rank.receiveInto(1, NetMode::direct, -1, 0, 3, 8);
  const Event nowhere = rank.offerFrom(2, 0, 0, {0, 8, 1, 4, 0, 1, 1});
  for (const Event& event : {space, way, scope, nowhere}) {
    rank.machine.record(event)[Record::run] = -1;
  }
  rank.serve();
  CHECK(rank.machine.status(space) == Status::outOfRange);
  CHECK(rank.machine.status(way) == Status::badArguments);
  CHECK(rank.machine.status(scope) == Status::badArguments);
  CHECK(rank.machine.status(nowhere) == Status::outOfRange);
  rank.arrive({-1, 1, 5, kLong, 0, 1, -1, 0, 0});  // no space
  rank.arrive({-1, 1, 5, kLong, 0, 1, 1, -8, 0});  // no place
  rank.arrive({-1, 1, 5, kLong, 0, 1, 1, 0});      // no priority
  rank.arrive({-2, 1, 32001, 2});                  // nobody sends what is mapped
  CHECK(rank.server.refused() == 4 && rank.out.posted.empty());
});

}  // namespace
}  // namespace headrace::test
