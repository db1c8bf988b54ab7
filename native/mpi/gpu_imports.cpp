// Opening IPC handles: see gpu_imports.h.
#include "gpu_imports.h"

#include <cstring>

namespace headrace::mpi {

std::uint64_t GpuImports::open(std::int32_t owner, const GpuExport& exported, const Gpu& reader,
                               std::string& why) {
  if (const std::uint64_t known = find(owner, exported, reader)) return known;
  if (reader.api->ipcOpen == nullptr) {
    why = "the driver cannot open memory of other processes";
    return 0;
  }
  GpuIpcHandle handle;
  std::memcpy(handle.bytes, exported.handle, sizeof handle.bytes);
  std::uint64_t base = 0;
  const Current current(reader, usual_);
  const int code = reader.api->ipcOpen(&base, handle, cuda::kIpcLazyPeerAccess);
  if (code != 0) {
    why = "cuIpcOpenMemHandle: " + gpuErrorText(*reader.api, code);
    return 0;
  }
  mappings_[keyOf(owner, exported, reader)] = base;
  return base + exported.offset;
}

std::uint64_t GpuImports::find(std::int32_t owner, const GpuExport& exported,
                               const Gpu& reader) const {
  const auto known = mappings_.find(keyOf(owner, exported, reader));
  return known == mappings_.end() ? 0 : known->second + exported.offset;
}

void GpuImports::clear() {
  for (const auto& [key, base] : mappings_) {
    const Gpu& reader = *std::get<4>(key);
    const Current current(reader, usual_);
    if (guards.closeImports) reader.api->ipcClose(base);
  }
  mappings_.clear();
}

}  // namespace headrace::mpi
