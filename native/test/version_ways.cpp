// The ways of announced versions between memory spaces: by MPI, by staging buffers, by mapped memory; and how many go at a time.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lane_rank.h"

namespace headrace::test {
namespace {

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

Add openVersion(
    "a receive that leaves it open gets its bytes as the announcement allows, and tells how", [] {
      for (const std::int32_t way : {NetMode::direct, NetMode::staged, NetMode::mapped}) {
        Rank sender(0, 2, 1, 1, 4, 0, 2);
        Rank receiver(1, 2, 1, 1, 4, 0, 3);
        const std::vector<Rank*> all{&sender, &receiver};
        receiver.out.way = way;
        // The receive is commanded first.
        const Event taken = receiver.receiveInto(2, NetMode::open, NetScope::owner, 0, way, kLong);
        receiver.serve();
        CHECK(receiver.out.coming.empty() && receiver.out.reading.empty());
        sender.offerFrom(1, 5, 0, {512, kLong, 1, 17, 0, 1, static_cast<double>(way)});
        sender.serve();
        carry(all, false);
        CHECK((receiver.out.asked == std::array<std::int32_t, 3>{0, 1, 2}));
        if (way == NetMode::mapped) {
          CHECK(receiver.out.coming.empty() && receiver.out.reading.size() == 1);
          CHECK(receiver.out.reading[0].to.space == 2);
        } else {
          CHECK(receiver.out.reading.empty() && receiver.out.coming.size() == 1);
          const Outbox::Moved& to = receiver.out.coming[0];
          const std::int32_t scope = way == NetMode::direct ? NetScope::owner : NetScope::none;
          CHECK(to.space == 2 && to.mode == way && to.scope == scope);
          CHECK(sender.out.leaving.size() == 1 && sender.out.leaving[0].mode == way);
        }
        receiver.server.fetched(0, NetStatus::ok);
        receiver.serve();
        CHECK(receiver.machine.status(taken) == Status::ok);
        const auto* numbers = reinterpret_cast<const double*>(receiver.machine.record(taken));
        const auto arrival = static_cast<std::int32_t>(numbers[Record::argument + 4]);
        CHECK(arrival % 32 == 2 && arrival / 32 % 4 == way);
      }
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

Add placeRefusals("commands and letters that name no memory space or no scope are refused", [] {
  Rank rank(0, 2, 1, 1, 4, 0, 2);
  const Event space = rank.receiveInto(2, NetMode::direct, NetScope::none, 0, 1, 8);
  const Event far = rank.receiveInto(1, NetMode::open, NetScope::all + 1, 0, 2, 8);
  const Event scope = rank.receiveInto(1, NetMode::direct, -1, 0, 3, 8);
  const Event nowhere = rank.offerFrom(2, 0, 0, {0, 8, 1, 4, 0, 1, 1});
  for (const Event& event : {space, far, scope, nowhere}) {
    rank.machine.record(event)[Record::run] = -1;
  }
  rank.serve();
  CHECK(rank.machine.status(space) == Status::outOfRange);
  CHECK(rank.machine.status(far) == Status::badArguments);
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
