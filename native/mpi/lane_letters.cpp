// Letters between lane servers: they are written, read, handed to their receives, kept or declined (see lane_server.h).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "contract.h"
#include "lane_letter.h"
#include "lane_server.h"

namespace headrace::mpi {
namespace {

/// Letters whose memory is kept for further ones.
constexpr std::size_t kSpare = 64;
constexpr double kMostBytes = 9007199254740992;  // 2^53

/// What versions and announcements begin with. `branch`: rank and key of the receiver, then `children` values.
void begin(Letter& letter, double era, double bytes, const double* branch, std::size_t children) {
  letter.insert(letter.end(), {era, branch[1], bytes, static_cast<double>(children)});
  letter.insert(letter.end(), branch + 2, branch + 2 + children);
}

}  // namespace

void LaneServer::giveBack(Letter letter) {
  if (spare_.size() < kSpare) spare_.push_back(std::move(letter));
}

Letter LaneServer::blank() {
  if (spare_.empty()) return {};
  Letter letter = std::move(spare_.back());
  spare_.pop_back();
  letter.clear();
  return letter;
}

/// The letter of a version, whose bytes are still to be filled in; zeros pad them.
Letter LaneServer::version(double era, double bytes, const double* branch, std::size_t children) {
  Letter letter = blank();
  begin(letter, era, bytes, branch, children);
  letter.resize(letter.size() + valuesOf(bytes));
  return letter;
}

Letter LaneServer::announcement(double era, double bytes, const double* branch,
                                std::size_t children, std::int32_t offer) {
  Letter letter = blank();
  letter.push_back(kAnnouncement);
  begin(letter, era, bytes, branch, children);
  letter.push_back(offer);
  if (options_.spaces.size() > 1) {
    const LanePlace place = offers_.placeOf(offer);
    const std::uint8_t* base = options_.spaces[static_cast<std::size_t>(place.space)].base;
    const auto offset = static_cast<double>(place.data - base);
    letter.insert(letter.end(),
                  {static_cast<double>(place.space), offset, offers_.priorityOf(offer)});
  }
  return letter;
}

/// Sends a version to its destinations, `count` values in pairs: the branches of a binomial tree, each with its own letter
/// (devices/network/tree.ts). With an `offer` it only announces the version. Returns the number of branches.
std::int32_t LaneServer::post(double era, double bytes, const void* data,
                              const double* destinations, std::size_t count, std::int32_t offer) {
  const std::size_t ranks = count / 2;
  const bool isTree = ranks >= static_cast<std::size_t>(options_.treeFrom);
  std::int32_t branches = 0;
  for (std::size_t first = 0, left = ranks; left > 0; ++branches) {
    // The largest branch first: it has the longest path.
    const std::size_t size = isTree ? (left + 1) / 2 : 1;
    const double* branch = destinations + 2 * first;
    const std::size_t children = 2 * (size - 1);
    Letter letter = offer > 0 ? announcement(era, bytes, branch, children, offer)
                              : version(era, bytes, branch, children);
    if (offer == 0) fill(letter, data, bytes);
    transport_.send(static_cast<std::int32_t>(branch[0]), std::move(letter));
    first += size;
    left -= size;
  }
  return branches;
}

void LaneServer::arrived(std::int32_t rank, const double* values, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(double);
  if (bytes % sizeof(double) != 0 || count == 0 || !take(rank, values, count)) ++refused_;
}

/// A letter about versions that were announced; false when its values make no sense.
bool LaneServer::takeReply(std::int32_t rank, const double* values, std::size_t count) {
  const double kind = values[0];
  if (kind == kAsked) {
    const bool staged = count == 4 && values[3] == NetMode::staged;
    const bool sound = (count == 3 || staged) && isWhole(values[1], INT32_MAX) &&
                       isWhole(values[2], kLastTag) && values[2] >= kFirstTag;
    if (!sound) return false;
    const auto offer = static_cast<std::int32_t>(values[1]);
    const auto tag = static_cast<std::int32_t>(values[2]);
    const std::int32_t mode = staged ? NetMode::staged : NetMode::direct;
    const bool served = !isLost_ && offers_.asked(rank, offer, tag, mode);
    if (!served) answer(rank, kRefused, values[2]);
    return true;
  }
  if (kind == kDeclined) return takeDecline(values, count);
  if (kind == kTaken) {
    if (count != 2 || !isWhole(values[1], INT32_MAX)) return false;
    offers_.taken(static_cast<std::int32_t>(values[1]));
    return true;
  }
  if (kind == kRefused) {
    const double number = count == 2 ? values[1] - kFirstTag : -1;
    if (!isWhole(number, lanes_.count - 1)) return false;
    const Lane& lane = all_[static_cast<std::size_t>(number)];
    const bool asks = lane.fetch == Fetch::underWay && lane.mode != NetMode::mapped;
    if (asks && lane.letter.back() == rank) {
      transport_.cancelBytes(lane.number);
    }
    return true;
  }
  return false;
}

/// A letter of any kind; false when its values make no sense, or when it has come before.
bool LaneServer::take(std::int32_t rank, const double* values, std::size_t count) {
  if (values[0] < kAnnouncement) return takeReply(rank, values, count);
  const bool announces = values[0] == kAnnouncement;
  const double* contents = values + (announces ? 1 : 0);
  const std::size_t left = count - (announces ? 1 : 0);
  const auto most = static_cast<double>(options_.longest);
  const bool sound = left >= kHeader && isWhole(contents[2], announces ? kMostBytes : most) &&
                     isWhole(contents[3], most) && pairsOf(contents) % 2 == 0 &&
                     left >= kHeader + pairsOf(contents);
  if (!sound) return false;
  const std::size_t children = pairsOf(contents);
  const std::size_t tail = left - kHeader - children;
  const double* place = contents + kHeader + children + 1;
  const bool isWhere =
      tail == kLongTail && isWhole(place[0], NetLimit::spaces - 1) && isWhole(place[1], kMostBytes);
  if (announces ? tail != kShortTail && !isWhere : tail != valuesOf(contents[2])) return false;
  for (std::size_t i = 0; i < children; i += 2) {
    if (!isRank(contents[kHeader + i])) return false;
  }
  if (children > 0 && !isLost_ && !announces) {
    post(contents[0], contents[2], contents + kHeader + children, contents + kHeader, children, 0);
  }
  if (!announces && receiveNow(contents)) return true;
  Letter letter = blank();
  letter.assign(values, values + count);
  if (announces) letter.push_back(rank);
  return keep(std::move(letter));
}

/// A rank needs no bytes of an offer. Then this rank serves the ranks to which that one should have passed them on.
bool LaneServer::takeDecline(const double* values, std::size_t count) {
  if (count < kDeclineHeader || count % 2 == 0 || !isWhole(values[1], INT32_MAX)) return false;
  for (std::size_t i = kDeclineHeader; i < count; i += 2) {
    if (!isRank(values[i])) return false;
  }
  const auto number = static_cast<std::int32_t>(values[1]);
  const double era = values[2];
  const double bytes = offers_.bytesOf(number);
  if (count > kDeclineHeader && bytes >= 0 && era >= era_ && !isLost_) {
    const double* pairs = values + kDeclineHeader;
    offers_.announced(number, post(era, bytes, nullptr, pairs, count - kDeclineHeader, number));
  }
  offers_.declined(number);
  return true;
}

/// A short version goes from the message's buffer to its place if a receive waits for nothing else. False: its letter is needed
/// until a receive takes it, or until the one that expects it ends in another way.
bool LaneServer::receiveNow(const double* version) {
  const Address address{version[0], version[1]};
  const auto expected = expected_.find(address);
  if (expected == expected_.end() || address.era < era_) return false;
  Lane& lane = all_[static_cast<std::size_t>(expected->second)];
  if (!lane.happened || isWithdrawn(lane) || isCancelled(lane)) return false;
  const double start = startTime();
  complete(lane, copyIn(lane, version), start);
  expected_.erase(expected);
  withLetters_.push_back(lane.number);
  return true;
}

/// Copies a short version to its place, and tells how its receive ends.
std::int32_t LaneServer::copyIn(const Lane& lane, const double* version) {
  if (version[2] != lane.bytes()) {
    // No datum is empty: a rank on the way did not get the bytes (`failBranches`).
    return version[2] == 0 ? Status::transfer - NetStatus::truncated : Status::truncated;
  }
  std::memcpy(lane.data, version + kHeader + pairsOf(version), wholeOf(version[2]));
  return Status::ok;
}

/// Hands a letter to its receive, or keeps it for it; false when another one is kept there.
bool LaneServer::keep(Letter letter) {
  const double* contents = contentsOf(letter);
  const Address address{contents[0], contents[1]};
  if (address.era < era_) {
    if (isAnnouncement(letter)) decline(letter);
    return true;
  }
  const auto expected = expected_.find(address);
  if (expected != expected_.end()) {
    Lane& lane = all_[static_cast<std::size_t>(expected->second)];
    lane.letter = std::move(letter);
    lane.hasLetter = true;
    withLetters_.push_back(lane.number);
    expected_.erase(expected);
    return true;
  }
  const bool isLate =
      isAnnouncement(letter) && address.era < declinedTo_ && wanted_.count(address) == 0;
  if (isLate || isRefused(address)) {
    unwanted_.erase(address);
    drop(letter);
    return true;
  }
  if (!kept_.emplace(address, std::move(letter)).second) return false;
  const auto awaited = awaited_.find(address);
  if (awaited != awaited_.end()) {
    tellCame(awaited->second, kept_.at(address));
    awaited_.erase(awaited);
  }
  return true;
}

/// The engine learns that a version has come that it expects.
void LaneServer::tellCame(std::int32_t number, const Letter& letter) {
  if (!isAnnouncement(letter)) {
    transport_.came(number, options_.rank, 0, false);
    return;
  }
  const AnnouncementTail tail = tailOf(letter);
  transport_.came(number, tail.rank, tail.space, pairsOf(contentsOf(letter)) > 0);
}

bool LaneServer::isRefused(const Address& address) const {
  const auto& [from, until, above] = refusedCalls_;
  const bool isOfCall = address.key < 0 && address.key > above;
  return (isOfCall && address.era >= from && address.era < until) || unwanted_.count(address) != 0;
}

/// No receive takes a letter. What was announced is declined; a short version was passed on when it came.
void LaneServer::drop(const Letter& letter) {
  if (isAnnouncement(letter)) decline(letter);
}

/// This rank does not need the bytes of an announced version.
void LaneServer::decline(const Letter& announcement) {
  if (isLost_) return;
  const double* contents = contentsOf(announcement);
  const AnnouncementTail tail = tailOf(announcement);
  Letter letter = blank();
  letter = {kDeclined, tail.offer, contents[0]};
  letter.insert(letter.end(), contents + kHeader, contents + kHeader + pairsOf(contents));
  transport_.send(tail.rank, std::move(letter));
}

void LaneServer::withdraw(std::int32_t lane, std::int32_t sequence) {
  all_[static_cast<std::size_t>(lane)].withdrawn = sequence;
  mustLook_ = true;
}

void LaneServer::refuse(double era, double key) {
  if (era < era_) return;
  const Address address{era, key};
  const auto found = kept_.find(address);
  if (found == kept_.end()) {
    unwanted_.insert(address);
    return;
  }
  drop(found->second);
  kept_.erase(found);
}

void LaneServer::expect(double era, double key, std::int32_t number) {
  const Address address{era, key};
  if (kept_.count(address) != 0) {
    tellCame(number, kept_.at(address));
  } else if (era >= era_) {
    awaited_[address] = number;
  }
}

void LaneServer::refuseCalls(double from, double until, double above) {
  refusedCalls_ = {from, until, above};
  for (auto each = kept_.begin(); each != kept_.end();) {
    const bool isOver = isRefused(each->first);
    if (isOver) drop(each->second);
    each = isOver ? kept_.erase(each) : std::next(each);
  }
}

void LaneServer::answer(std::int32_t rank, double kind, double value) {
  if (isLost_) return;
  Letter letter = blank();
  letter = {kind, value};
  transport_.send(rank, std::move(letter));
}

void LaneServer::beginEra(double era) {
  if (era <= era_) return;
  era_ = era;
  for (auto each = kept_.begin(); each != kept_.end();) {
    const bool isOver = each->first.era < era;
    if (isOver && isAnnouncement(each->second)) decline(each->second);
    each = isOver ? kept_.erase(each) : std::next(each);
  }
  for (auto each = branches_.begin(); each != branches_.end();) {
    each = each->first.era < era ? branches_.erase(each) : std::next(each);
  }
  for (auto each = awaited_.begin(); each != awaited_.end();) {
    each = each->first.era < era ? awaited_.erase(each) : std::next(each);
  }
  for (auto* addresses : {&unwanted_, &wanted_}) {
    for (auto each = addresses->begin(); each != addresses->end();) {
      each = each->era < era ? addresses->erase(each) : std::next(each);
    }
  }
}

void LaneServer::want(double era, double key) {
  if (era >= era_) wanted_.insert({era, key});
}

void LaneServer::declineBefore(double era) {
  declinedTo_ = std::max(declinedTo_, era);
  for (auto each = kept_.begin(); each != kept_.end();) {
    const bool isOver =
        each->first.era < era && isAnnouncement(each->second) && wanted_.count(each->first) == 0;
    if (isOver) decline(each->second);
    each = isOver ? kept_.erase(each) : std::next(each);
  }
}

void LaneServer::abandon() {
  isAbandoned_ = true;
  offers_.close(NetStatus::cancelled);
}

void LaneServer::lost() {
  isLost_ = true;
  offers_.lost();
}

}  // namespace headrace::mpi
