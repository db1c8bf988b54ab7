// The rounds of a lane server: which lanes a round looks at, and what it may leave for the next one (see lane_server.h).
//
// A thread that is in a hurry makes rounds without a pause, and a message or the end of a kernel waits for the round under way. So
// a round in which nothing has happened compares a few numbers.
//
// Invariant: a round that ends early would have moved nothing. Every lane that it does not look at waits for an event which had not
// happened when `noteEvents` compared it, and whose queue has completed no record since.
#include <algorithm>

#include "lane_server.h"
#include "queues/sequence.h"

namespace headrace::mpi {
namespace {

/// Queues whose events a short round compares.
constexpr std::size_t kMostEvents = 4;

}  // namespace

bool LaneServer::serve(bool published) {
  bool moved = serveLetters();
  if (published) prefetchNews();
  const bool hasSeen = unseen_ > 0 && lookAtSome();
  // The thread does not sleep before it has seen all.
  moved = moved || unseen_ > 0;
  if (!waiting()) return moved;
  held_ = false;
  const bool looks = ++round_ % kLookRounds == 0 || hasSeen;
  const bool all = mustLook_ || (looks && isAnyCancelled());
  mustLook_ = false;
  if (!all && isQuiet()) return moved;
  if (all) visitAll();
  std::size_t left = 0;
  std::int32_t reads = 0;
  for (const Visit& visit : visited_) {
    // Most lanes wait for an event. Then this comparison is all that the round costs.
    if (!all && visit.waitQueue >= 0 && ahead(reached(visit.waitQueue), visit.waitSequence) < 0) {
      visited_[left++] = visit;
      continue;
    }
    Lane& lane = all_[static_cast<std::size_t>(visit.number)];
    if (lane.waitsInPlay) {
      look(lane);
      moved = moved || !lane.waitsInPlay;
    }
    if (!lane.read && lane.published == lane.over) look(lane);
    if (!lane.read && lane.published != lane.over && ++reads > kMostReads) {
      moved = true;  // the next round reads it
    } else if (mayMove(lane, all)) {
      while (lane.published != lane.over && serveLane(lane)) {
        moved = true;
        if (lane.published == lane.over) look(lane);
      }
    }
    lane.active = lane.published != lane.over || lane.waitsInPlay;
    if (!lane.active) --working_;
    lane.visited = lane.active && !lane.awaitsLetter();
    if (lane.visited) visited_[left++] = visitOf(lane);
  }
  visited_.resize(left);
  noteEvents();
  return moved;
}

/// The engine has written records of some lanes on another core. This round and the next ones look at all lanes, a few each.
void LaneServer::prefetchNews() {
  unseen_ = lanes_.count;
  for (std::int32_t lane = 0; lane < lanes_.count; ++lane) lanes_.prefetch(lanes_.self, lane);
}

/// Whether a command of a cancelled run is under way: receives without a letter, and movements of bytes, are not looked at otherwise.
bool LaneServer::isAnyCancelled() const {
  std::int32_t alive = -1;
  for (const std::int32_t number : active_) {
    const Lane& lane = all_[static_cast<std::size_t>(number)];
    if (!lane.read || lane.run < 0 || lane.run == alive) continue;
    if (isCancelled(lane)) return true;
    alive = lane.run;
  }
  return false;
}

/// Whether all lanes that a round looks at wait for events, and none of these has happened since the last round.
bool LaneServer::isQuiet() const {
  return awaitEvents_ && std::all_of(events_.begin(), events_.end(), [this](const Event& event) {
           return lanes_.reached(lanes_.self, event.queue) == event.reached;
         });
}

/// Notes the queues for whose events the lanes wait, and the last complete records of these, as this round has compared them.
void LaneServer::noteEvents() {
  events_.clear();
  awaitEvents_ = false;
  for (const Visit& visit : visited_) {
    if (visit.waitQueue < 0) return;
    const std::int32_t sequence = reached(visit.waitQueue);
    if (ahead(sequence, visit.waitSequence) >= 0) return;
    const bool isNew = std::none_of(events_.begin(), events_.end(), [&](const Event& event) {
      return event.queue == visit.waitQueue;
    });
    if (isNew && events_.size() == kMostEvents) return;
    if (isNew) events_.push_back({visit.waitQueue, sequence});
  }
  awaitEvents_ = true;
}

/// The round looks at every lane with commands, also at those that wait for letters.
void LaneServer::visitAll() {
  const auto isIdle = [this](std::int32_t number) {
    Lane& lane = all_[static_cast<std::size_t>(number)];
    lane.listed = lane.visited = lane.active;
    return !lane.active;
  };
  active_.erase(std::remove_if(active_.begin(), active_.end(), isIdle), active_.end());
  visited_.clear();
  for (const std::int32_t number : active_) visited_.push_back({number, -1, 0});
}

/// The next rounds look at the lane.
void LaneServer::visit(Lane& lane) {
  if (lane.visited) return;
  lane.visited = true;
  awaitEvents_ = false;
  visited_.push_back({lane.number, -1, 0});
}

/// The next visit of a lane after this round.
LaneServer::Visit LaneServer::visitOf(const Lane& lane) {
  const bool waits = lane.read && !lane.happened && !lane.waitsInPlay;
  return {lane.number, waits ? lane.waitQueue : -1, lane.waitSequence};
}

/// The last complete record of a queue, as first seen in this round.
std::int32_t LaneServer::reached(std::int32_t queue) {
  const auto at = static_cast<std::size_t>(queue);
  if (at >= reached_.size()) reached_.resize(at + 1);
  Reached& found = reached_[at];
  if (found.round != round_) found = {round_, lanes_.reached(lanes_.self, queue)};
  return found.sequence;
}

/// Receives whose letters have come, and that did not end then, end before anything else is looked at.
bool LaneServer::serveLetters() {
  if (withLetters_.empty()) return false;
  for (const std::int32_t number : withLetters_) {
    Lane& lane = all_[static_cast<std::size_t>(number)];
    if (lane.read && lane.hasLetter) serveLane(lane);
    visit(lane);
  }
  withLetters_.clear();
  return true;
}

/// Looks at a few lanes that may have new records; true when it has seen all.
bool LaneServer::lookAtSome() {
  for (std::int32_t looks = 0; unseen_ > 0 && looks < kMostLooks; ++looks, --unseen_) {
    Lane& lane = all_[static_cast<std::size_t>(nextLook_)];
    nextLook_ = (nextLook_ + 1) % lanes_.count;
    look(lane);
    if (lane.active || (lane.published == lane.over && !lane.waitsInPlay)) continue;
    lane.active = true;
    ++working_;
    if (!lane.listed) active_.push_back(lane.number);
    lane.listed = true;
    visit(lane);
  }
  return unseen_ == 0;
}

/// The next record of a lane, which the engine has written on another core, is soon read.
void LaneServer::prefetchRecord(const Lane& lane) {
  __builtin_prefetch(lanes_.record(lanes_.self, lane.number, after(lane.over, 1)));
}

/// Looks for new records of a lane, also those of a play.
void LaneServer::look(Lane& lane) {
  lane.published = lanes_.published(lanes_.self, lane.number);
  // A core that closes publishes what is complete.
  if (ahead(lane.published, lane.over) < 0) lane.published = lane.over;
  lane.waitsInPlay = false;
  if (lane.published != lane.over) return prefetchRecord(lane);
  const std::int32_t found = lanes_.refill(lanes_.self, lane.number);
  lane.waitsInPlay = found == 2;
  if (found != 1) return;
  // The rest of a play may have been skipped.
  lane.over = lanes_.completed(lanes_.self, lane.number);
  lane.published = lanes_.published(lanes_.self, lane.number);
}

/// A round costs a comparison per lane: what the thread waits for most of the time is looked at here.
bool LaneServer::mayMove(Lane& lane, bool all) {
  if (!lane.read || all) return true;
  // Then it may wait for its bytes. A send that is held is looked at in each round.
  if (lane.happened) {
    const bool isMoved = lane.opcode == Opcode::deliver || lane.opcode == Opcode::receive;
    return !isMoved || lane.fetch != Fetch::underWay;
  }
  lane.happened = ahead(reached(lane.waitQueue), lane.waitSequence) >= 0;
  return lane.happened;
}

bool LaneServer::watch(void* sleeper) {
  for (const std::int32_t number : active_) {
    const Lane& lane = all_[static_cast<std::size_t>(number)];
    if (!lane.active || (!lane.waitsInPlay && (!lane.read || lane.happened))) continue;
    const std::int32_t queue = lane.waitsInPlay ? -1 : lane.waitQueue;
    if (lanes_.watch(lanes_.self, number, queue, lane.waitSequence, sleeper) != 0) {
      return false;
    }
    watched_.push_back(number);
  }
  return true;
}

void LaneServer::unwatch() {
  for (const std::int32_t number : watched_) lanes_.unwatch(lanes_.self, number);
  watched_.clear();
  mustLook_ = true;
}

}  // namespace headrace::mpi
