// The doctor's questions to the driver: see gpu/inventory.h.
#include "gpu/inventory.h"

#include "gpu/api.h"
#include "gpu/device.h"

namespace headrace {

std::vector<GpuFacts> cudaInventory() {
  std::vector<GpuFacts> all;
  std::string reason;
  const GpuApi* api = cudaApi(reason);
  int count = 0;
  if (api == nullptr || api->deviceCount(&count) != 0) return all;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    char name[128] = "";
    unsigned char uuid[16] = {};
    std::size_t bytes = 0;
    if (api->deviceGet(&device, ordinal) != 0 || api->deviceName(name, sizeof name, device) != 0 ||
        api->deviceUuid(uuid, device) != 0 || api->deviceMemory(&bytes, device) != 0) {
      continue;
    }
    const auto attribute = [&](int which) {
      int value = -1;
      api->deviceAttribute(&value, which, device);
      return value;
    };
    GpuFacts facts{name,
                   gpuUuidText(uuid),
                   static_cast<double>(bytes),
                   attribute(cuda::kAttributeMultiprocessors),
                   attribute(cuda::kAttributeMajor),
                   attribute(cuda::kAttributeMinor),
                   attribute(cuda::kAttributeRdma),
                   attribute(cuda::kAttributeRdmaFlush),
                   attribute(cuda::kAttributeRdmaOrdering),
                   {}};
    for (int peer = 0; peer < count; ++peer) {
      int can = peer == ordinal ? 1 : 0;
      if (peer != ordinal) api->deviceCanAccessPeer(&can, ordinal, peer);
      facts.peers.push_back(can != 0);
    }
    all.push_back(facts);
  }
  return all;
}

}  // namespace headrace
