// Staging buffers: as many for sends as for receives. With one pool, receives that wait for each other's ranks could
// take every buffer that the sends need.
//
// Invariant: buffers that a real GPU copies to or from are page-locked and exist from the start; others are made when
// first used.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "contract.h"
#include "gpus.h"

namespace headrace::mpi {

class Staging {
 public:
  /// With a `gpu`, all buffers are made now, page-locked for every GPU of the process. Throws std::runtime_error.
  Staging(std::int64_t bytes, const Gpu* gpu) : bytes_(bytes), gpu_(gpu) {
    if (gpu_ == nullptr) return;
    gpu_->makeCurrent();
    const auto all = static_cast<std::size_t>(bytes) * 2 * NetLimit::buffers;
    const int code = gpu_->api->hostAlloc(&locked_, all, gpu::kHostPortable);
    if (code != 0) {
      throw std::runtime_error("no page-locked memory for messages: " +
                               gpuErrorText(*gpu_->api, code));
    }
  }
  ~Staging() {
    if (locked_ == nullptr) return;
    gpu_->makeCurrent();
    gpu_->api->hostFree(locked_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// A free buffer, or -1.
  std::int32_t take(bool send) {
    std::vector<std::int32_t>& free = free_[send ? 1 : 0];
    if (!free.empty()) {
      const std::int32_t buffer = free.back();
      free.pop_back();
      return buffer;
    }
    std::int32_t& made = made_[send ? 1 : 0];
    if (made >= NetLimit::buffers) return -1;
    ++made;
    const auto buffer = static_cast<std::int32_t>(buffers_.size());
    std::uint8_t* data = nullptr;
    if (locked_ != nullptr) {
      data = static_cast<std::uint8_t*>(locked_) + buffer * bytes_;
    } else {
      data = static_cast<std::uint8_t*>(::operator new(static_cast<std::size_t>(bytes_), kPage));
      own_.emplace_back(data);
    }
    buffers_.push_back({data, 0, 0});
    return buffer;
  }
  void give(std::int32_t buffer, bool send) { free_[send ? 1 : 0].push_back(buffer); }

  std::uint8_t* data(std::int32_t buffer) { return at(buffer).data; }
  /// The bytes of its transfer that a buffer holds.
  std::int64_t& offset(std::int32_t buffer) { return at(buffer).offset; }
  std::int64_t& bytes(std::int32_t buffer) { return at(buffer).bytes; }

 private:
  struct Buffer {
    std::uint8_t* data;
    std::int64_t offset;
    std::int64_t bytes;
  };
  Buffer& at(std::int32_t buffer) { return buffers_[static_cast<std::size_t>(buffer)]; }

  /// Emulated memory begins with a page, too: a copy is faster if both of its ends lie in the same way.
  static constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(std::uint8_t* data) const { ::operator delete(data, kPage); }
  };

  const std::int64_t bytes_;
  const Gpu* gpu_;
  void* locked_ = nullptr;
  std::vector<std::unique_ptr<std::uint8_t, Free>> own_;
  std::vector<Buffer> buffers_;
  std::vector<std::int32_t> free_[2];
  std::int32_t made_[2] = {0, 0};
};

}  // namespace headrace::mpi
