// Finds out which rank has died. MPI cannot: its error handlers are not called when a peer on the same host disappears.
// So every rank keeps one socket to rank 0. The end of a process ends its socket, whatever the cause, and rank 0 passes
// the news on. A process that leaves in order announces it first.
//
// Invariants: used by the comm thread only; never blocks after `open`; the first lost rank is reported, once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::mpi {

class Lifeline {
 public:
  /// Rank 0's address, which it tells the others before MPI's broadcast.
  struct Address {
    std::int32_t port;  // 0: a Unix socket in the abstract namespace, named by the token
    std::uint64_t token;
    char host[104];
  };

  Lifeline() = default;
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  /// Rank 0: starts to listen. `oneHost`: all ranks share this host.
  bool listen(bool oneHost, Address& address, std::string& error);
  /// Rank 0: takes the connections of all others. Others: connect. Blocks for at most ten seconds.
  bool open(int rank, int size, const Address& address, std::string& error);
  /// The rank that died, or -1. Cheap enough for every few milliseconds.
  int lostRank();
  /// Announces the end of this process, so that it does not count as a death.
  void leave();

 private:
  bool accept(int size, std::uint64_t token, std::string& error);
  bool connect(int rank, const Address& address, std::string& error);
  void report(int rank);

  int listener_ = -1;
  int rank_ = 0;
  int lost_ = -1;
  bool left_ = false;
  /// Sockets by rank; only [0] on other ranks than 0. -1: none, or left in order.
  std::vector<int> sockets_;
};

}  // namespace headrace::mpi
