// The token on which the comm thread sleeps, in memory that the other ranks of the host map: a rank that sends wakes the
// rank that receives.
//
// MPI has no wait that gives the core away. Without such a token the comm thread would have to look for messages every few
// microseconds, also where other threads need its core.
//
// Invariant (no lost wake-up): a sender gives its message to MPI and *then* unparks the token; the receiver looks for messages
// and *then* parks on it. An unpark before the park makes that return at once (queues/futex_token.h). The library may keep a
// message back (full buffers), and ranks of other hosts have no token: so no sleep is longer than a moment.
#pragma once

#include <cstdint>
#include <vector>

#include "queues/futex_token.h"

namespace headrace::mpi {

/// The token of this process.
class SharedToken {
 public:
  SharedToken();
  ~SharedToken();
  SharedToken(const SharedToken&) = delete;
  SharedToken& operator=(const SharedToken&) = delete;

  FutexToken& token() { return *token_; }
  /// Descriptor of the memory, for other processes; -1: there is none, and they cannot wake this one.
  std::int32_t fd() const { return fd_; }

 private:
  FutexToken own_;
  FutexToken* token_ = &own_;
  std::int32_t fd_ = -1;
};

/// The tokens of the other ranks of this host.
class PeerTokens {
 public:
  explicit PeerTokens(std::int32_t ranks) : tokens_(static_cast<std::size_t>(ranks), nullptr) {}
  ~PeerTokens();
  PeerTokens(const PeerTokens&) = delete;
  PeerTokens& operator=(const PeerTokens&) = delete;

  /// Maps the token of `rank`, a process of this host; false when that is not possible.
  bool open(std::int32_t rank, std::int32_t pid, std::int32_t fd);
  bool canWake(std::int32_t rank) const {
    return tokens_[static_cast<std::size_t>(rank)] != nullptr;
  }
  /// Wakes the rank, if its token is mapped.
  void wake(std::int32_t rank) {
    FutexToken* token = tokens_[static_cast<std::size_t>(rank)];
    if (token != nullptr) token->unpark();
  }

 private:
  std::vector<FutexToken*> tokens_;
};

}  // namespace headrace::mpi
