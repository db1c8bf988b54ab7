// Feeding rings from a plan: see queues/feed.h.
#include "queues/feed.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "queues/ring.h"
#include "queues/sequence.h"

namespace headrace {

namespace {

/// Records that a feed writes at a time: few enough to stay in the cache until they are executed.
constexpr std::int32_t kChunk = 128;

}  // namespace

bool PlayCondition::holds() const {
  double number = 0;
  switch (element) {
    case PlanElement::f64: std::memcpy(&number, value, sizeof number); break;
    case PlanElement::f32: {
      float narrow = 0;
      std::memcpy(&narrow, value, sizeof narrow);
      number = narrow;
      break;
    }
    case PlanElement::i32: {
      std::int32_t whole = 0;
      std::memcpy(&whole, value, sizeof whole);
      number = whole;
      break;
    }
    case PlanElement::u32: {
      std::uint32_t whole = 0;
      std::memcpy(&whole, value, sizeof whole);
      number = whole;
      break;
    }
    default: number = *static_cast<const std::uint8_t*>(value); break;
  }
  return below ? number < limit : number > limit;
}

Play::Play(const PlayOptions& options, Word* cancel)
    : options_(options),
      cancel_(cancel),
      end_(2 * options.times + (options.room == 0 ? 1 : 0)),
      barrier_(options.condition.value == nullptr ? std::numeric_limits<std::int64_t>::max()
               : options.condition.first          ? 0
                                                  : options.condition.every) {}

void Play::add(Queue& queue, const std::int32_t* records, std::int32_t length,
               const std::int32_t* open, std::int32_t openCount, double* times) {
  const auto index = static_cast<std::size_t>(queue.index);
  if (bases_.size() <= index) {
    bases_.resize(index + 1);
    lengths_.resize(index + 1);
  }
  bases_[index] = queue.completed();
  lengths_[index] = length;
  feeds_.push_back(std::make_unique<Feed>(*this, queue, records, length, open, openCount, times));
}

void Play::begin() {
  for (auto& feed : feeds_) feed->queue().setFeed(feed.get());
  wakeAll();
}

std::int64_t Play::iterations() const { return allowed(); }

std::int64_t Play::allowed() const {
  return std::min(times(), barrier_.load(std::memory_order_seq_cst));
}

bool Play::extend(std::int64_t times) {
  std::int64_t end = end_.load(std::memory_order_relaxed);
  while (!guards.playFinal || (end & 1) == 0) {
    if (end_.compare_exchange_weak(end, 2 * times, std::memory_order_seq_cst)) return true;
  }
  return false;
}

bool Play::endsAfter(std::int64_t iterations) {
  std::int64_t end = end_.load(std::memory_order_relaxed);
  while (end >> 1 == iterations) {
    if (end_.compare_exchange_weak(end, end | 1, std::memory_order_seq_cst)) return true;
  }
  return false;
}

const double* Play::parametersOf(std::int64_t iteration) const {
  const std::int64_t place = options_.room == 0 ? iteration : iteration % options_.room;
  return options_.parameters + place * options_.slots;
}

/// A feed stands at the barrier. The last one decides: it has seen the ends of all records before the barrier.
void Play::arrive() {
  const auto all = static_cast<std::int32_t>(feeds_.size());
  if (arrivals_.fetch_add(1, std::memory_order_acq_rel) + 1 < all) return;
  arrivals_.store(0, std::memory_order_relaxed);
  if (options_.condition.holds()) {
    barrier_.fetch_add(options_.condition.every, std::memory_order_seq_cst);
  } else {
    ended_.store(true, std::memory_order_seq_cst);
  }
  wakeAll();
}

void Play::wakeAll() {
  for (auto& feed : feeds_) feed->queue().wake();
}

Feed::Feed(Play& play, Queue& queue, const std::int32_t* records, std::int32_t length,
           const std::int32_t* open, std::int32_t openCount, double* times)
    : play_(play),
      queue_(queue),
      records_(records),
      length_(length),
      open_(open),
      openCount_(openCount),
      base_(queue.completed()),
      times_(times),
      values_(play.parametersOf(0)) {}

std::int32_t Feed::last() const {
  const auto count =
      static_cast<std::uint64_t>(play_.times()) * static_cast<std::uint64_t>(length_);
  return after(base_, static_cast<std::int32_t>(static_cast<std::uint32_t>(count)));
}

bool Feed::atBarrier() const { return index_ == 0 && iteration_ == play_.allowed(); }

bool Feed::ready() const {
  const bool idle = queue_.completed() == queue_.published();
  if (play_.cancelled()) return idle;
  if (!atBarrier()) return true;
  return idle && (!arrived_ || play_.ended_.load(std::memory_order_seq_cst));
}

bool Feed::refill() {
  const bool idle = queue_.completed() == queue_.published();
  // A feed that skips may be the one for which the others wait at the barrier.
  if (play_.cancelled()) {
    if (idle) skip();
    return idle;
  }
  if (atBarrier()) {
    if (!idle) return false;
    if (!arrived_) {
      arrived_ = true;
      play_.arrive();
    }
    if (play_.ended_.load(std::memory_order_seq_cst)) {
      skip();
      return true;
    }
    if (atBarrier()) return false;
  }
  arrived_ = false;
  return fill();
}

/// Writes the next records as far as slots are free, whole commands only. False when there was no room.
bool Feed::fill() {
  const std::int64_t allowed = play_.allowed();
  std::int32_t sequence = queue_.published();
  if (times_ != nullptr) {
    // The slots behind the completed records are written next.
    keepTimes(written() - ahead(sequence, queue_.completed()));
  }
  const auto ring = static_cast<std::int32_t>(queue_.mask()) + 1;
  const std::int32_t room = ring - ahead(sequence, queue_.completed());
  std::int32_t written = 0;
  while (iteration_ < allowed && written < kChunk) {
    std::int32_t* first =
        const_cast<std::int32_t*>(records_) + static_cast<std::size_t>(index_) * Record::words;
    const std::int32_t span = Command(first).span();
    if (written + span > room) break;
    for (std::int32_t i = 0; i < span; ++i) {
      sequence = after(sequence, 1);
      write(sequence, i == 0);
      ++index_;
    }
    written += span;
    if (index_ == length_) {
      index_ = 0;
      nextOpen_ = 0;
      values_ = play_.parametersOf(++iteration_);
    }
  }
  if (written == 0) return false;
  if (iteration_ == allowed && play_.endsAfter(iteration_)) queue_.setFeed(nullptr);
  queue_.setPublished(sequence);
  return true;
}

/// Writes the record at `index_` into the slot of `sequence`. The records behind the first of a command hold arguments only.
void Feed::write(std::int32_t sequence, bool isFirst) {
  const std::int32_t* from = records_ + static_cast<std::size_t>(index_) * Record::words;
  std::int32_t* to = queue_.record(sequence);
  std::memcpy(to, from, Record::bytes);
  if (times_ != nullptr) {
    std::fill_n(queue_.times(sequence), Times::doubles, std::numeric_limits<double>::quiet_NaN());
  }
  if (isFirst) {
    const Command command(to);
    to[Record::run] = play_.options_.run;
    const std::int32_t target = command.waitQueue();
    if (target >= 0) {
      const auto queue = static_cast<std::size_t>(target);
      const auto past = static_cast<std::uint64_t>(iteration_) *
                        static_cast<std::uint64_t>(play_.lengths_[queue]);
      to[Record::waitSeq] = after(
          play_.bases_[queue],
          after(to[Record::waitSeq], static_cast<std::int32_t>(static_cast<std::uint32_t>(past))));
    }
  }
  auto* doubles = reinterpret_cast<double*>(to);
  for (; nextOpen_ < openCount_; ++nextOpen_) {
    const std::int32_t* entry = open_ + static_cast<std::size_t>(nextOpen_) * PlanOpen::words;
    if (entry[PlanOpen::record] != index_) break;
    doubles[entry[PlanOpen::argument]] = values_[entry[PlanOpen::slot]];
  }
}

/// Ends the play of this queue, in which nothing is in flight.
void Feed::skip() {
  play_.makeFinal();
  const std::int32_t end = last();
  // Once this queue has completed, the engine may end the play: nothing of it is used after that.
  Queue& queue = queue_;
  // The others may sleep at the barrier.
  play_.wakeAll();
  queue.setFeed(nullptr);
  queue.setPublished(end);
  queue.setSubmitted(end, std::memory_order_seq_cst);
  queue.publish(end);
  queue.submission.reached(end);
}

/// Copies the times of the completed records before `end`, which are all in the ring.
void Feed::keepTimes(std::int64_t end) {
  while (kept_ < end) {
    const std::int32_t sequence =
        after(base_, static_cast<std::int32_t>(static_cast<std::uint32_t>(kept_ + 1)));
    const std::int64_t untilWrap = std::int64_t{queue_.mask()} + 1 - queue_.slot(sequence);
    const std::int64_t count = std::min(end - kept_, untilWrap);
    std::copy_n(queue_.times(sequence), count * Times::doubles, times_ + kept_ * Times::doubles);
    kept_ += count;
  }
}

void Feed::outcome(double& succeeded, std::int32_t& status) {
  const std::int64_t end = written();
  if (times_ != nullptr) keepTimes(end);
  succeeded = static_cast<double>(end);
  status = Status::ok;
  // A record that failed has cancelled the play before it completed, and nothing is written after that: it is in the ring.
  const std::int64_t begin = std::max<std::int64_t>(0, end - queue_.mask() - 1);
  std::int32_t index = 0;
  for (std::int64_t at = begin / length_ * length_; at < end;) {
    std::int32_t* planned =
        const_cast<std::int32_t*>(records_) + static_cast<std::size_t>(index) * Record::words;
    if (at >= begin) {
      const std::int32_t sequence =
          after(base_, static_cast<std::int32_t>(static_cast<std::uint32_t>(at + 1)));
      const std::int32_t found = *Command(queue_.record(sequence)).status();
      if (found != Status::ok) {
        succeeded = static_cast<double>(at);
        status = found;
        return;
      }
    }
    const std::int32_t span = Command(planned).span();
    at += span;
    index = (index + span) % length_;
  }
}

}  // namespace headrace
