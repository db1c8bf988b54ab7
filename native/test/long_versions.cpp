// Versions that are announced and fetched: every announcement is answered once, and every offer departs, whatever fails.
#include <memory>
#include <vector>

#include "lane_rank.h"

namespace headrace::test {
namespace {

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

Add longFailsOnTree("the ranks below one that did not get a long version do not wait for it", [] {
  constexpr int kRanks = 5;
  std::vector<std::unique_ptr<Rank>> all;
  std::vector<Rank*> ranks;
  for (int r = 0; r < kRanks; ++r) {
    all.push_back(std::make_unique<Rank>(r, kRanks, 1, 1, 2));
    ranks.push_back(all.back().get());
  }
  ranks[0]->offer(0, {0, kLong, 1, 1, 0, 1, 101, 2, 102, 3, 103, 4, 104});
  ranks[0]->serve();
  std::vector<Event> taken(kRanks);
  for (int r = 1; r < kRanks; ++r) {
    taken[r] = ranks[r]->receive(0, 0, kLong, 1, 100 + r);
    ranks[r]->serve();
  }
  carry(ranks, false);
  CHECK(ranks[0]->out.leaving.size() == 3 && ranks[0]->out.leaving[0].rank == 1);
  // The first rank, which passes the version on to the second one, gets too few bytes.
  ranks[0]->out.leaving.pop_front();
  ranks[0]->server.sent(1, NetStatus::ok, 1, 2);
  ranks[1]->server.fetched(ranks[1]->out.coming.front().number, NetStatus::truncated);
  carry(ranks);
  CHECK(ranks[1]->machine.status(taken[1]) == Status::truncated);
  CHECK(ranks[2]->machine.done(taken[2]));
  CHECK(ranks[2]->machine.status(taken[2]) == Status::transfer - NetStatus::truncated);
  for (int r = 3; r < kRanks; ++r) CHECK(ranks[r]->machine.status(taken[r]) == Status::ok);
  CHECK((ranks[0]->out.ends == Ends{{1, NetStatus::ok}}));
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

Add wantedKept("a version that a receive wants is not declined with its era", [] {
  Rank sender(0, 2, 1, 1);
  Rank receiver(1, 2, 1, 2);
  const auto announce = [&](double key) {
    sender.offer(0, {0, kLong, 1, key, 0, 1, key});
    sender.serve();
    carry({&sender, &receiver});
  };
  announce(1);
  announce(2);
  receiver.server.want(1, 1);
  receiver.server.want(1, 3);
  receiver.server.want(1, 5);
  receiver.server.declineBefore(2);
  carry({&sender, &receiver});
  CHECK((sender.out.ends == Ends{{2, NetStatus::ok}}) && receiver.server.kept() == 1);
  announce(3);
  announce(4);
  CHECK(sender.out.ends.size() == 2 && sender.out.ends.back().first == 4);
  const Event first = receiver.receive(0, 0, kLong, 1, 1);
  receiver.serve();
  carry({&sender, &receiver});
  CHECK(receiver.machine.done(first) && receiver.server.kept() == 1);
  // What is wanted may be refused, before it comes and after.
  receiver.server.refuse(1, 3);
  receiver.server.refuse(1, 5);
  carry({&sender, &receiver});
  announce(5);
  CHECK(sender.out.ends.size() == 5 && receiver.server.kept() == 0);
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
      // A failing rank takes only what a receive expects, or wants.
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

Add longUnposted(
    "a receive that cannot be posted asks for nothing, and the ranks below it are served", [] {
      Rank sender(0, 4, 1, 1, 2);
      Rank failing(1, 4, 1, 1, 2);
      Rank below(2, 4, 1, 1, 2);
      Rank other(3, 4, 1, 1, 2);
      const std::vector<Rank*> all{&sender, &failing, &below, &other};
      failing.out.posts = false;
      sender.at(0) = 7;
      sender.offer(0, {0, kLong, 1, 17, 0, 1, 5, 2, 5, 3, 5});
      sender.serve();
      std::vector<Event> taken;
      for (Rank* rank : {&failing, &below, &other}) {
        taken.push_back(rank->receive(0, 0, kLong, 1, 5));
        rank->serve();
      }
      carry(all);
      // Its end is told later: nobody waits for that.
      CHECK(!failing.machine.done(taken[0]));
      CHECK(below.machine.done(taken[1]) && below.at(0) == 7 && other.machine.done(taken[2]));
      CHECK((sender.out.ends == Ends{{17, NetStatus::ok}}));
      failing.server.fetched(0, NetStatus::library);
      failing.serve(false);
      CHECK(failing.machine.status(taken[0]) == Status::transfer - NetStatus::library);
      CHECK(failing.out.posted.empty());
    });

Add longUnsent("a request whose bytes cannot be sent is refused, and the offer fails", [] {
  Rank sender(0, 2, 1, 1);
  Rank receiver(1, 2, 1, 1);
  sender.out.posts = false;
  sender.offer(0, {0, kLong, 1, 17, 0, 1, 5});
  sender.serve();
  const Event taken = receiver.receive(0, 0, kLong, 1, 5);
  receiver.serve();
  carry({&sender, &receiver});
  CHECK(receiver.out.coming.size() == 1 && sender.out.ends.empty());
  CHECK(receiver.out.cancelled == std::vector<std::int32_t>{0});
  sender.server.sent(1, NetStatus::library, 1, 2);
  CHECK((sender.out.ends == Ends{{17, NetStatus::library}}));
  receiver.server.fetched(0, NetStatus::cancelled);
  receiver.serve(false);
  // The sender's engine ends the run.
  CHECK(!receiver.machine.done(taken));
  receiver.machine.shared(Shared::cancel + 1).store(1);
  CHECK(receiver.look());
  CHECK(receiver.machine.status(taken) == Status::cancelled);
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

}  // namespace
}  // namespace headrace::test
