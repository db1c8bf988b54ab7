// One rank of the tests of lanes: a core, the server of its lanes, and a transport that keeps what is sent.
#pragma once

#include <cstdint>
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
  };
  void sendBytes(std::int32_t rank, std::int32_t tag, std::uint8_t* data, double bytes,
                 std::int32_t offer) override {
    leaving.push_back({rank, tag, data, bytes, offer});
  }
  void receiveBytes(std::int32_t rank, std::int32_t tag, std::uint8_t* data, double bytes,
                    std::int32_t lane) override {
    coming.push_back({rank, tag, data, bytes, lane});
  }
  void cancelBytes(std::int32_t lane) override { cancelled.push_back(lane); }
  void departed(std::int32_t request, std::int32_t status, double, double) override {
    ends.push_back({request, status});
  }
  void came(std::int32_t number) override { arrivals.push_back(number); }
  std::deque<Posted> posted;
  std::deque<Moved> leaving, coming;
  std::vector<std::int32_t> cancelled;
  /// Numbers of expected versions that have come.
  std::vector<std::int32_t> arrivals;
  /// Offers that departed: number and status.
  std::vector<std::pair<std::int32_t, std::int32_t>> ends;
};

/// One rank: a core with lanes behind its workers, and the server of its lanes.
class Rank {
 public:
  Rank(std::int32_t rank, std::int32_t size, std::int32_t workers, std::int32_t lanes,
       std::int32_t treeFrom = 4, std::int32_t first = 0)
      : machine(withLanes(workers, lanes), first),
        lane(workers),
        server(optionsOf(machine, rank, size, treeFrom), out) {}

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
  /// Publishes all records, if not told otherwise, and lets the server do what it can.
  void serve(bool publishes = true) {
    if (publishes) machine.publish();
    while (server.serve(true)) {
    }
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
    return machine.put(lane + at, Opcode::offer, 0, 0, arguments, wait, run);
  }
  double& at(double offset) { return *machine.at<double>(0, offset); }

 private:
  static LaneServer::Options optionsOf(Machine& machine, std::int32_t rank, std::int32_t size,
                                       std::int32_t treeFrom) {
    LaneServer::Options options;
    options.lanes = machine.core->lanes();
    options.host = machine.at<std::uint8_t>(0, 0);
    options.hostBytes = kHost;
    options.rank = rank;
    options.size = size;
    options.treeFrom = treeFrom;
    return options;
  }
};

}  // namespace headrace::test
