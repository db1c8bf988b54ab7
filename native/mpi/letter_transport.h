// What carries letters and long versions between ranks, as the server of lanes sees it (lane_server.h).
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::mpi {

/// The values of a letter.
using Letter = std::vector<double>;

/// Memory of a version: its space, and its address there.
struct LanePlace {
  std::int32_t space = 0;
  std::uint8_t* data = nullptr;
};

class LetterTransport {
 public:
  virtual ~LetterTransport() = default;
  /// Sends the letter to another rank, and hands its memory back (`LaneServer::giveBack`) when it has left.
  virtual void send(std::int32_t rank, Letter letter) = 0;
  /// The `NetMode` of bytes from a memory space of another rank into one of this rank, for receives that leave it open.
  virtual std::int32_t wayFrom(std::int32_t rank, std::int32_t from, std::int32_t space) = 0;
  /// Sends the bytes of a version by a `NetMode`; `LaneServer::sent` follows with the number of the offer. False: none will leave.
  /// `sent` follows then, too, perhaps much later.
  virtual bool sendBytes(std::int32_t rank, std::int32_t tag, LanePlace from, double bytes,
                         std::int32_t offer, std::int32_t mode) = 0;
  /// Receives the bytes of a version; `LaneServer::fetched` follows with the number of the lane when `scope`, a `NetScope`, sees
  /// them. False: the receive is not posted, and no bytes may be sent to it. `fetched` follows then, too, perhaps much later.
  virtual bool receiveBytes(std::int32_t rank, std::int32_t tag, LanePlace to, double bytes,
                            std::int32_t lane, std::int32_t mode, std::int32_t scope) = 0;
  /// Reads the bytes of a version from memory of another rank; `LaneServer::fetched` follows with the number of the lane.
  virtual void readBytes(std::int32_t rank, std::int32_t space, double offset, LanePlace to,
                         double bytes, std::int32_t lane) = 0;
  /// The bytes for which a lane waits will not come. `LaneServer::fetched` follows.
  virtual void cancelBytes(std::int32_t lane) = 0;
  /// Tells the engine that no rank needs a version any more: the number of its offer's command, a NetStatus, the time of its
  /// transfers in nanoseconds, or 0, and the NetMode of the last one.
  virtual void departed(std::int32_t request, std::int32_t status, double start, double end,
                        std::int32_t mode) = 0;
  /// Tells the engine that the version has come that it expects with that number, and from which memory it is fetched.
  /// `forwards`: this rank passes it on.
  virtual void came(std::int32_t number, std::int32_t rank, std::int32_t space, bool forwards) = 0;
};

}  // namespace headrace::mpi
