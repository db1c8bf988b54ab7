// Offers of long versions: see lane_offers.h.
#include "lane_offers.h"

#include <algorithm>
#include <vector>

#include "contract.h"
#include "lane_letter.h"

namespace headrace::mpi {
namespace {

constexpr std::int32_t kLastNumber = 1 << 30;

}  // namespace

std::int32_t LaneOffers::open(std::int32_t request, LanePlace place, double bytes,
                              double priority) {
  while (offers_.count(next_) != 0) next_ = next_ == kLastNumber ? 1 : next_ + 1;
  const std::int32_t number = next_;
  next_ = next_ == kLastNumber ? 1 : next_ + 1;
  Offer offer{};
  offer.request = request;
  offer.place = place;
  offer.bytes = bytes;
  offer.priority = priority;
  offer.mode = NetMode::direct;
  offer.status = NetStatus::ok;
  offers_.emplace(number, offer);
  return number;
}

double LaneOffers::bytesOf(std::int32_t offer) const {
  const auto found = offers_.find(offer);
  return found == offers_.end() || found->second.open == 0 ? -1 : found->second.bytes;
}

void LaneOffers::announced(std::int32_t offer, std::int32_t ranks) {
  offers_.at(offer).open += ranks;
  settle(offer);
}

bool LaneOffers::asked(std::int32_t rank, std::int32_t offer, std::int32_t tag, std::int32_t mode) {
  const auto found = offers_.find(offer);
  if (found == offers_.end() || found->second.open == 0) return false;
  Offer& each = found->second;
  --each.open;
  ++each.underWay;
  each.mode = mode;
  const auto place = std::find_if(waiting_.begin(), waiting_.end(), [&](const Send& other) {
    return other.priority < each.priority;
  });
  waiting_.insert(place, {rank, tag, offer, mode, each.priority});
  startWaiting();
  return true;
}

/// Starts transfers as far as they may be under way. They may be over at once.
void LaneOffers::startWaiting() {
  while (sends_ < kMostSends && !waiting_.empty()) {
    const Send next = waiting_.front();
    waiting_.pop_front();
    ++sends_;
    const Offer offer = offers_.at(next.offer);
    const bool leaves =
        transport_.sendBytes(next.rank, next.tag, offer.place, offer.bytes, next.offer, next.mode);
    if (!leaves) transport_.send(next.rank, {kRefused, static_cast<double>(next.tag)});
  }
}

void LaneOffers::taken(std::int32_t offer) {
  const auto found = offers_.find(offer);
  if (found != offers_.end()) found->second.mode = NetMode::mapped;
  declined(offer);
}

void LaneOffers::declined(std::int32_t offer) {
  const auto found = offers_.find(offer);
  if (found == offers_.end() || found->second.open == 0) return;
  --found->second.open;
  settle(offer);
}

void LaneOffers::withdraw(std::int32_t offer, std::int32_t status) {
  const auto found = offers_.find(offer);
  if (found == offers_.end()) return;
  found->second.open = 0;
  if (found->second.status == NetStatus::ok) found->second.status = status;
  settle(offer);
}

void LaneOffers::sent(std::int32_t offer, std::int32_t status, double start, double end) {
  const auto found = offers_.find(offer);
  if (found == offers_.end()) return;
  Offer& each = found->second;
  --each.underWay;
  --sends_;
  if (each.status == NetStatus::ok) each.status = status;
  each.start = each.start == 0 ? start : std::min(each.start, start);
  each.end = std::max(each.end, end);
  settle(offer);
  startWaiting();
}

void LaneOffers::settle(std::int32_t number) {
  const auto found = offers_.find(number);
  const Offer offer = found->second;
  if (offer.open > 0 || offer.underWay > 0) return;
  offers_.erase(found);
  departed_(offer.request, offer.status, offer.start, offer.end, offer.mode);
}

void LaneOffers::close(std::int32_t status) {
  std::vector<std::int32_t> numbers;
  for (auto& [number, offer] : offers_) {
    offer.open = 0;
    if (offer.status == NetStatus::ok) offer.status = status;
    numbers.push_back(number);
  }
  for (const std::int32_t number : numbers) settle(number);
}

void LaneOffers::lost() {
  waiting_.clear();
  for (auto& [number, offer] : offers_) offer.underWay = 0;
  close(NetStatus::lost);
}

}  // namespace headrace::mpi
