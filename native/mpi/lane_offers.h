// The long versions that lanes have announced to other ranks, until no rank needs their bytes any more.
//
// Invariants:
// - every rank that was told of an offer answers once: it asks for the bytes, or declines;
// - a request is always answered, by the bytes or by a refusal, also when its transfer cannot begin;
// - at most `kMostSends` transfers are under way, the most urgent first: the others would wait for staging buffers;
// - every offer departs exactly once, when all have answered and no transfer of its bytes is under way. Until then
//   the engine keeps the bytes as they are.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>

#include "letter_transport.h"

namespace headrace::mpi {

class LaneOffers {
 public:
  /// `departed`: called when an offer departs, with its request, a NetStatus, the times of its transfers, and a NetMode.
  using Departed = std::function<void(std::int32_t, std::int32_t, double, double, std::int32_t)>;
  static constexpr std::int32_t kMostSends = 32;
  LaneOffers(LetterTransport& transport, Departed departed)
      : transport_(transport), departed_(std::move(departed)) {}

  /// A new offer; `request` names it to `departed`. Returns its number, above 0.
  std::int32_t open(std::int32_t request, LanePlace place, double bytes, double priority);
  /// The bytes of an offer, which can still be announced.
  LanePlace placeOf(std::int32_t offer) const { return offers_.at(offer).place; }
  double priorityOf(std::int32_t offer) const { return offers_.at(offer).priority; }
  /// The bytes of an offer that serves further ranks; -1: there is none with that number.
  double bytesOf(std::int32_t offer) const;
  /// So many more ranks were told of it.
  void announced(std::int32_t offer, std::int32_t ranks);
  /// A rank asks for the bytes by a NetMode. False: it gets none.
  bool asked(std::int32_t rank, std::int32_t offer, std::int32_t tag, std::int32_t mode);
  void declined(std::int32_t offer);
  /// A rank has read the bytes itself.
  void taken(std::int32_t offer);
  /// No rank that has not asked gets the bytes. Without transfers under way the offer departs, with `status`.
  void withdraw(std::int32_t offer, std::int32_t status);
  /// A transfer is over, with a NetStatus.
  void sent(std::int32_t offer, std::int32_t status, double start, double end);
  /// No offer serves further ranks. Without transfers under way it departs, with `status`.
  void close(std::int32_t status);
  /// A rank was lost: all offers depart, and transfers under way do not count.
  void lost();

 private:
  struct Offer {
    std::int32_t request;
    LanePlace place;
    double bytes;
    double priority;
    /// Ranks that have not answered.
    std::int32_t open = 0;
    std::int32_t underWay = 0;
    std::int32_t status;
    double start = 0;
    double end = 0;
    std::int32_t mode;
  };
  /// A transfer that waits for its turn.
  struct Send {
    std::int32_t rank;
    std::int32_t tag;
    std::int32_t offer;
    std::int32_t mode;
    double priority;
  };

  void settle(std::int32_t number);
  void startWaiting();

  LetterTransport& transport_;
  const Departed departed_;
  std::unordered_map<std::int32_t, Offer> offers_;
  /// Transfers that wait, the most urgent first, and how many are under way.
  std::deque<Send> waiting_;
  std::int32_t sends_ = 0;
  std::int32_t next_ = 1;
};

}  // namespace headrace::mpi
