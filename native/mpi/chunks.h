// The chunks of a staged version. The first ones are short, so that the message layer has something to send while the next one is copied, and
// the last ones are short, so that little is left to copy behind the last message. In between they are as long as a staging buffer.
//
// Invariant: both ranks find the same chunks, since each depends on the bytes of the version, the bytes before it and the length of a buffer only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headrace::mpi {

/// Bytes of the first chunk. A copy of that many takes about as long as a message.
constexpr std::int64_t kFirstChunk = 65536;

/// Bytes of the chunk at `offset` of a version of `bytes`; none is longer than `longest`.
inline std::int64_t chunkLength(std::int64_t offset, std::int64_t bytes, std::int64_t longest) {
  const std::int64_t left = bytes - offset;
  const std::int64_t half = (left / 2 + kFirstChunk - 1) / kFirstChunk * kFirstChunk;
  const std::int64_t growing = std::max(offset, kFirstChunk);
  return std::min({left, longest, growing, std::max(half, kFirstChunk)});
}

}  // namespace headrace::mpi
