// One rank of the tests of lanes: a core, the server of its lanes, and a transport that keeps what is sent.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <utility>
#include <vector>

#include "../mpi/contract.h"
#include "../mpi/lane_server.h"
#include "machine.h"

namespace headrace::test {

using mpi::LaneServer;
using mpi::Letter;
using mpi::LetterTransport;

constexpr double kHost = 1 << 20;

inline CoreOptions withLanes(std::int32_t workers, std::int32_t lanes) {
  CoreOptions options = small(workers);
  options.lanes = lanes;
  return options;
}

/// Keeps what is sent, in order.
class Outbox : public LetterTransport {
 public:
  struct Posted {
    std::int32_t rank;
    Letter letter;
  };
  std::int32_t wayFrom(std::int32_t rank, std::int32_t from, std::int32_t space) override {
    asked = {rank, from, space};
    return way;
  }
  void send(std::int32_t rank, Letter letter) override {
    posted.push_back({rank, std::move(letter)});
  }
  /// Bytes that leave or are to come: the number of their offer or lane.
  struct Moved {
    std::int32_t rank;
    std::int32_t tag;
    std::uint8_t* data;
    double bytes;
    std::int32_t number;
    std::int32_t mode;
    std::int32_t scope;
    std::int32_t space;
  };
  bool sendBytes(std::int32_t rank, std::int32_t tag, mpi::LanePlace from, double bytes,
                 std::int32_t offer, std::int32_t mode) override {
    if (!posts) return false;
    leaving.push_back({rank, tag, from.data, bytes, offer, mode, 0, from.space});
    return true;
  }
  bool receiveBytes(std::int32_t rank, std::int32_t tag, mpi::LanePlace to, double bytes,
                    std::int32_t lane, std::int32_t mode, std::int32_t scope) override {
    if (!posts) return false;
    coming.push_back({rank, tag, to.data, bytes, lane, mode, scope, to.space});
    return true;
  }
  /// Bytes that are read from memory of another rank.
  struct Reading {
    std::int32_t rank;
    std::int32_t space;
    double offset;
    mpi::LanePlace to;
    double bytes;
    std::int32_t lane;
  };
  void readBytes(std::int32_t rank, std::int32_t space, double offset, mpi::LanePlace to,
                 double bytes, std::int32_t lane) override {
    reading.push_back({rank, space, offset, to, bytes, lane});
  }
  void cancelBytes(std::int32_t lane) override { cancelled.push_back(lane); }
  void departed(std::int32_t request, std::int32_t status, double, double,
                std::int32_t mode) override {
    ends.push_back({request, status});
    lastMode = mode;
  }
  void came(std::int32_t number, std::int32_t, std::int32_t space, bool forwards) override {
    arrivals.push_back(number);
    announced = {space, forwards};
  }
  std::deque<Posted> posted;
  std::deque<Moved> leaving, coming;
  std::deque<Reading> reading;
  std::vector<std::int32_t> cancelled;
  /// Otherwise no transfer can be posted. The test tells its end.
  bool posts = true;
  /// How bytes come to receives that leave it open, and for what that was last asked.
  std::int32_t way = 0;
  std::array<std::int32_t, 3> asked{};
  /// How the last offer departed, and where the last expected version is.
  std::int32_t lastMode = -1;
  std::pair<std::int32_t, bool> announced;
  /// Numbers of expected versions that have come.
  std::vector<std::int32_t> arrivals;
  /// Offers that departed: number and status.
  std::vector<std::pair<std::int32_t, std::int32_t>> ends;
};

/// One rank: a core with lanes behind its workers, and the server of its lanes.
class Rank {
 public:
  Rank(std::int32_t rank, std::int32_t size, std::int32_t workers, std::int32_t lanes,
       std::int32_t treeFrom = 4, std::int32_t first = 0, std::size_t spaces = 1)
      : machine(withLanes(workers, lanes), first),
        lane(workers),
        server(optionsOf(machine, rank, size, treeFrom, spaces), out) {}

  Machine machine;
  /// Number of the queue that is the first lane.
  const std::int32_t lane;
  Outbox out;
  LaneServer server;

  Event send(std::int32_t at, std::initializer_list<double> arguments, Event wait = {},
             std::int32_t run = 1) {
    return machine.put(lane + at, Opcode::send, 0, 0, arguments, wait, run);
  }
  Event receive(std::int32_t at, double offset, double bytes, double era, double key,
                Event wait = {}, std::int32_t run = 1) {
    return machine.put(lane + at, Opcode::receive, 0, 0, {offset, bytes, era, key}, wait, run);
  }
  /// A receive of an announced version, into a memory space, by a NetMode, seen by a NetScope when it is over.
  Event receiveInto(std::int32_t space, std::int32_t mode, std::int32_t scope, std::int32_t at,
                    double key, double bytes) {
    return machine.put(lane + at, Opcode::receive, 0, 0,
                       {1024, bytes, 1, key, static_cast<double>(space + 32 * (mode + 4 * scope))},
                       {}, 1);
  }
  /// Publishes all records, if not told otherwise, and lets the server do what it can.
  void serve(bool publishes = true) {
    if (publishes) machine.publish();
    for (bool published = true; server.serve(published);) published = false;
  }
  /// Lets the server look until it has found a cancelled run: true when it has.
  bool look() {
    bool moved = false;
    for (std::uint32_t i = 0; i < LaneServer::kLookRounds && !moved; ++i) {
      moved = server.serve(false);
    }
    return moved;
  }
  void arrive(const Letter& letter, std::int32_t from = 1) {
    server.arrived(from, letter.data(), letter.size() * sizeof(double));
  }
  void arrive(double era, double key, double value) { arrive({era, key, 8, 0, value}); }
  Event offer(std::int32_t at, std::initializer_list<double> arguments, Event wait = {},
              std::int32_t run = 1) {
    return offerFrom(0, 0, at, arguments, wait, run);
  }
  /// The same from another memory space, with a priority.
  Event offerFrom(std::int32_t space, double priority, std::int32_t at,
                  std::initializer_list<double> arguments, Event wait = {}, std::int32_t run = 1) {
    std::vector<double> all(arguments);
    all.insert(all.begin() + 5, {static_cast<double>(space), priority});
    return machine.put(lane + at, Opcode::offer, 0, 0, all, wait, run);
  }
  double& at(double offset) { return *machine.at<double>(0, offset); }

 private:
  static LaneServer::Options optionsOf(Machine& machine, std::int32_t rank, std::int32_t size,
                                       std::int32_t treeFrom, std::size_t spaces) {
    LaneServer::Options options;
    options.lanes = machine.core->lanes();
    options.spaces.push_back({machine.at<std::uint8_t>(0, 0), kHost});
    for (std::size_t space = 1; space < spaces; ++space) {
      // The server does not touch memory of GPUs.
      options.spaces.push_back({reinterpret_cast<std::uint8_t*>(space << 32), kHost});
    }
    options.rank = rank;
    options.size = size;
    options.treeFrom = treeFrom;
    return options;
  }
};

/// Carries letters and bytes between ranks until none is left. `bytes`: bytes that were asked for move, too.
inline void carry(const std::vector<Rank*>& ranks, bool bytes = true) {
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

/// Offers that departed: number and status.
using Ends = std::vector<std::pair<std::int32_t, std::int32_t>>;
/// Bytes of a version that is announced.
constexpr double kLong = 100000;

}  // namespace headrace::test
