// Memory opened by its handle (gpu_imports.h), on a driver that is a table of functions: no GPU takes part.
#include "gpu_imports.h"

#include <cstring>
#include <map>

#include "machine.h"

namespace headrace::test {
namespace {

/// Where the driver has mapped what, and how often each was opened; the first byte of a handle names its memory.
std::map<std::uint64_t, unsigned char> mapped;
int opens = 0;

GpuApi table() {
  GpuApi api{};
  api.contextSetCurrent = [](void*) { return 0; };
  api.ipcOpen = [](std::uint64_t* address, GpuIpcHandle handle, unsigned) {
    *address = static_cast<std::uint64_t>(++opens) << 20;
    mapped[*address] = static_cast<unsigned char>(handle.bytes[0]);
    return 0;
  };
  api.ipcClose = [](std::uint64_t address) { return mapped.erase(address) == 1 ? 0 : 1; };
  return api;
}

/// The owner's memory number `name`, always at the same address there.
mpi::GpuExport exportOf(unsigned char name, std::uint64_t generation) {
  mpi::GpuExport made{};
  made.handle[0] = name;
  made.base = 0x7f0000000000;
  made.offset = 512;
  made.generation = generation;
  std::strcpy(made.uuid, "GPU-of-the-owner");
  return made;
}

Add generations(
    "memory at an address used before is opened again; a cached mapping shows what it was made for "
    "(H6, H17)",
    [] {
      mapped.clear();
      opens = 0;
      const GpuApi api = table();
      const mpi::Gpu reader{&api, 0, 0, nullptr, "GPU-here"};
      mpi::GpuImports imports(nullptr);
      std::string why;
      for (unsigned char name = 1; name <= 20; ++name) {
        const mpi::GpuExport exported = exportOf(name, name);
        const std::uint64_t at = imports.open(3, exported, reader, why);
        CHECK(mapped[at - 512] == name);
        CHECK(imports.open(3, exported, reader, why) == at &&
              imports.find(3, exported, reader) == at);
      }
      CHECK(opens == 20);
      // The same address and generation on another rank's GPU is other memory.
      CHECK(imports.find(4, exportOf(1, 1), reader) == 0);
      imports.clear();
      CHECK(mapped.empty() && imports.find(3, exportOf(1, 1), reader) == 0);
    });

}  // namespace
}  // namespace headrace::test
