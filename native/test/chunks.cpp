// The chunks of a staged version (mpi/chunks.h).
#include "mpi/chunks.h"

#include <numeric>
#include <vector>

#include "machine.h"

namespace headrace::test {
namespace {

using mpi::chunkLength;

constexpr std::int64_t kKiB = 1024;

std::vector<std::int64_t> chunksOf(std::int64_t bytes, std::int64_t longest) {
  std::vector<std::int64_t> chunks;
  for (std::int64_t offset = 0; offset < bytes; offset += chunks.back()) {
    chunks.push_back(chunkLength(offset, bytes, longest));
    if (chunks.back() <= 0) break;
  }
  return chunks;
}

Add whole("the chunks of a version are the version, and each fits into a buffer", [] {
  for (const std::int64_t longest : {1 * kKiB, 64 * kKiB, 100 * kKiB, 512 * kKiB}) {
    for (const std::int64_t bytes : {std::int64_t{1}, 64 * kKiB - 1, 64 * kKiB, 64 * kKiB + 1,
                                     100'001 * std::int64_t{1}, 512 * kKiB + 8, 16 * kKiB * kKiB}) {
      const std::vector<std::int64_t> chunks = chunksOf(bytes, longest);
      CHECK(std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0}) == bytes);
      for (const std::int64_t chunk : chunks) CHECK(chunk > 0 && chunk <= longest);
    }
  }
});

Add ramps("the chunks of a long version grow to a buffer and shrink again", [] {
  const std::vector<std::int64_t> chunks = chunksOf(4096 * kKiB, 512 * kKiB);
  const std::vector<std::int64_t> kib = {64,  64,  128, 256, 512, 512, 512,
                                         512, 512, 512, 256, 128, 64,  64};
  CHECK(chunks.size() == kib.size());
  for (std::size_t i = 0; i < kib.size(); ++i) CHECK(chunks[i] == kib[i] * kKiB);
});

}  // namespace
}  // namespace headrace::test
