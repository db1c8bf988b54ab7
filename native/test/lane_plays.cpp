// Plays that use lanes (queues/feed.h, mpi/lane_server.h): the server takes the records of a play, and deliveries wait for
// their receivers.
#include <thread>

#include "lane_rank.h"
#include "play_list.h"

namespace headrace::test {
namespace {

constexpr double kLong = 1 << 17;

/// Keys of the letters: era of the first iteration.
constexpr double kEra = 4;

std::vector<std::int32_t> openAt(std::int32_t record, std::int32_t argument) {
  std::vector<std::int32_t> entry(PlanOpen::words);
  entry[PlanOpen::record] = record;
  entry[PlanOpen::argument] = Record::argument + argument;
  entry[PlanOpen::slot] = 0;
  return entry;
}

Add playedLanes(
    "lanes take the records of a play, each iteration with its era and after its kernel", [] {
      constexpr int kTimes = 300;  // more than a ring holds
      Rank rank(0, 2, 1, 2, 4, INT32_MAX - 100);
      // worker: adds 1 once the value of this iteration has come; lane 0 sends the result, lane 1 receives the value.
      std::vector<List> lists(3);
      lists[0].exec("add_f64", 2, {0, 8, 1, 1}, {2, 1});
      const auto sent = lists[1].message(Opcode::send, {0, 8, 0, 1, 7}, {0, 1});
      lists[1].open = openAt(sent, 2);
      const auto received = lists[2].message(Opcode::receive, {8, 8, 0, 9}, {0, 0});
      lists[2].open = openAt(received, 2);
      std::vector<double> eras(kTimes);
      for (int k = 0; k < kTimes; ++k) eras[static_cast<std::size_t>(k)] = kEra + k / 1024.0;
      PlayOptions options;
      options.times = kTimes;
      options.parameters = eras.data();
      options.slots = 1;
      begin(rank.machine, lists, options);
      const std::int32_t arrivals = rank.machine.shared(Shared::arrivals).load();
      double sum = 0;
      for (int k = 0; k < kTimes; ++k) {
        const double era = eras[static_cast<std::size_t>(k)];
        // Nothing leaves before the value of the iteration has come.
        rank.serve(false);
        CHECK(rank.out.posted.empty());
        rank.arrive(era, 9, k);
        const std::int64_t limit = now() + std::int64_t{60} * 1000000000;
        while (rank.out.posted.empty()) {
          rank.server.serve(true);
          std::this_thread::yield();
          CHECK(now() < limit);
        }
        sum += k;
        CHECK((rank.out.posted.front().letter == Letter{era, 7, 8, 0, sum}));
        rank.out.posted.pop_front();
      }
      end(rank.machine);
      CHECK(rank.machine.shared(Shared::arrivals).load() >= arrivals + 2 * kTimes);
      CHECK(rank.server.kept() == 0 && !rank.server.waiting());
    });

Add cancelledLanes(
    "a cancelled play ends on lanes whose values never come, and the engine is told", [] {
      Rank rank(0, 2, 1, 2);
      std::vector<List> lists(3);
      lists[0].exec("empty", 0, {}, {2, 1});
      lists[1].message(Opcode::deliver, {0, kLong, kEra, 1, 7});
      lists[2].message(Opcode::receive, {8, 8, kEra, 9});
      PlayOptions options;
      options.times = 1000000;
      options.run = 3;
      begin(rank.machine, lists, options);
      rank.serve(false);
      CHECK(rank.server.waiting() && rank.out.posted.size() == 1);
      const std::int32_t arrivals = rank.machine.shared(Shared::arrivals).load();
      rank.machine.core->runtime().cancelWord(3)->store(1);
      rank.machine.core->wake(0);
      rank.server.serve(true);
      rank.serve(false);
      end(rank.machine);
      CHECK(rank.machine.shared(Shared::arrivals).load() >= arrivals + 2);
      CHECK(!rank.server.waiting());
      // A request that comes now is refused.
      rank.arrive(Letter{-2, rank.out.posted[0].letter.back(), 32001});
      CHECK((rank.out.posted.back().letter == Letter{-4, 32001}) && rank.out.leaving.empty());
    });

Add lookingLanes(
    "lanes wait for the condition of a play, and their server is woken when it goes on", [] {
      Rank rank(0, 2, 1, 1, 4, INT32_MAX - 10);
      // The lane is at the condition long before the worker, which adds 1 to the number.
      std::vector<List> lists(2);
      lists[0].exec("spin", 1, {16, 2000}, {1, 0});
      lists[0].exec("add_f64", 2, {0, 8, 1, 1});
      lists[1].message(Opcode::send, {8, 8, kEra, 1, 7});
      *rank.machine.at<double>(0, 0) = 0;
      *rank.machine.at<double>(0, 8) = 1;
      PlayOptions options;
      options.times = 1000;
      options.condition.value = rank.machine.at<double>(0, 0);
      options.condition.limit = 9.5;
      options.condition.below = true;
      options.condition.every = 2;
      begin(rank.machine, lists, options);
      rank.server.serve(true);
      FutexToken sleeper;
      const std::int64_t limit = now() + std::int64_t{60} * 1000000000;
      while (rank.server.waiting()) {
        if (rank.server.watch(&sleeper)) CHECK(sleeper.park(std::int64_t{5} * 1000000000));
        rank.server.unwatch();
        // Nothing is published: the server knows which lanes wait.
        while (rank.server.serve(false)) {
        }
        CHECK(now() < limit);
      }
      end(rank.machine);
      CHECK(rank.machine.core->play->iterations() == 10);
      CHECK(rank.out.posted.size() == 10 && *rank.machine.at<double>(0, 0) == 10);
    });

Add deliveries("a delivery is over when its receiver has the bytes, or does not want them", [] {
  Rank rank(0, 2, 1, 1);
  const auto deliver = [&](double key, std::int32_t run) {
    const Event event =
        rank.machine.put(rank.lane, Opcode::deliver, 0, 0, {0, kLong, 1, 1, key}, {}, run);
    rank.out.posted.clear();
    rank.serve();
    CHECK(!rank.machine.done(event) && rank.out.posted.size() == 1);
    const Letter& letter = rank.out.posted[0].letter;
    CHECK(letter[0] == -1 && letter[1] == 1 && letter[2] == key && letter[3] == kLong);
    return std::pair{event, letter.back()};
  };
  const auto [fetched, first] = deliver(5, 1);
  rank.arrive(Letter{-2, first, 32001});
  rank.serve();
  CHECK(!rank.machine.done(fetched) && rank.out.leaving.size() == 1);
  rank.server.sent(rank.out.leaving[0].number, NetStatus::ok, 1, 2);
  rank.serve();
  CHECK(rank.machine.done(fetched) && rank.machine.status(fetched) == Status::ok);

  const auto [declined, second] = deliver(6, 1);
  rank.arrive(Letter{-3, second, 1});
  rank.serve();
  CHECK(rank.machine.done(declined) && rank.machine.status(declined) == Status::ok);

  // Bytes that leave while the run is cancelled: the copy must stay until they have left.
  const auto [leaving, third] = deliver(7, 2);
  rank.arrive(Letter{-2, third, 32001});
  rank.machine.core->runtime().cancelWord(2)->store(1);
  rank.serve();
  CHECK(!rank.machine.done(leaving));
  rank.server.sent(rank.out.leaving[1].number, NetStatus::ok, 1, 2);
  rank.serve();
  CHECK(rank.machine.done(leaving) && rank.machine.status(leaving) == Status::cancelled);

  rank.machine.shared(Shared::failuresHandled).store(rank.machine.shared(Shared::failed).load());
  // A rank was lost: the end of the run ends the delivery.
  const auto [lost, fourth] = deliver(8, 4);
  rank.server.lost();
  rank.serve();
  CHECK(!rank.machine.done(lost));
  rank.machine.core->runtime().cancelWord(4)->store(1);
  rank.serve();
  CHECK(rank.machine.done(lost) && rank.machine.status(lost) == Status::cancelled);
  CHECK(rank.out.ends.empty());  // the engine is not asked
});

}  // namespace
}  // namespace headrace::test
