// What carries letters and long versions between ranks, as the server of lanes sees it (lane_server.h).
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::mpi {

/// The values of a letter.
using Letter = std::vector<double>;

class LetterTransport {
 public:
  virtual ~LetterTransport() = default;
  /// Sends the letter to another rank, and hands its memory back (`LaneServer::giveBack`) when it has left.
  virtual void send(std::int32_t rank, Letter letter) = 0;
  /// Sends the bytes of a version; `LaneServer::sent` follows with the number of the offer.
  virtual void sendBytes(std::int32_t rank, std::int32_t tag, std::uint8_t* data, double bytes,
                         std::int32_t offer) = 0;
  /// Receives the bytes of a version; `LaneServer::fetched` follows with the number of the lane.
  virtual void receiveBytes(std::int32_t rank, std::int32_t tag, std::uint8_t* data, double bytes,
                            std::int32_t lane) = 0;
  /// The bytes for which a lane waits will not come. `LaneServer::fetched` follows.
  virtual void cancelBytes(std::int32_t lane) = 0;
  /// Tells the engine that no rank needs a version any more: the number of its offer's command, a NetStatus, and the time
  /// of its transfers in nanoseconds, or 0.
  virtual void departed(std::int32_t request, std::int32_t status, double start, double end) = 0;
  /// Tells the engine that the version has come that it expects with that number.
  virtual void came(std::int32_t number) = 0;
};

}  // namespace headrace::mpi
