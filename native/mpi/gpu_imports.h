// GPU memory of other processes of this host, opened through the driver's IPC handles.
//
// All of it is opened when a session begins and closed when it ends: opening maps memory, which may wait for running
// kernels and so must not happen in between (hazard H8). So the session knows from the start which memory can be opened.
//
// Invariants:
// - a mapping is named by owner, the owner's GPU (UUID), the allocation's base and generation, and the GPU here that
//   reads it; each is opened once. A generation that differs is another allocation, also at the same address;
// - all are closed before the owner learns that it may free (Session, NetCommand::close).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "core/guards.h"
#include "gpus.h"

namespace headrace::mpi {

/// An allocation as its owner describes it.
struct GpuExport {
  std::uint8_t handle[64];
  std::uint64_t base;
  std::uint64_t offset;
  std::uint64_t generation;
  char uuid[48];
};

class GpuImports {
 public:
  /// `usual` is the GPU that is current on the calling thread otherwise, if any.
  explicit GpuImports(const Gpu* usual) : usual_(usual) {}
  ~GpuImports() { clear(); }
  GpuImports(const GpuImports&) = delete;
  GpuImports& operator=(const GpuImports&) = delete;

  /// First byte of the exported space as `reader` sees it; 0 when it cannot be opened, with a text in `why`.
  std::uint64_t open(std::int32_t owner, const GpuExport& exported, const Gpu& reader,
                     std::string& why);
  /// The same for an opened one; 0 for others.
  std::uint64_t find(std::int32_t owner, const GpuExport& exported, const Gpu& reader) const;
  void clear();

 private:
  using Key = std::tuple<std::int32_t, std::string, std::uint64_t, std::uint64_t, const Gpu*>;
  static Key keyOf(std::int32_t owner, const GpuExport& exported, const Gpu& reader) {
    const std::uint64_t generation = guards.importGeneration ? exported.generation : 0;
    return {owner, exported.uuid, exported.base, generation, &reader};
  }
  const Gpu* usual_;
  std::map<Key, std::uint64_t> mappings_;
};

}  // namespace headrace::mpi
