// Finding GPUs by UUID: see gpus.h.
#include "gpus.h"

#include "headrace/contract.h"

namespace headrace::mpi {

const Gpu* Gpus::find(std::int32_t kind, const std::string& uuid, std::string& why) {
  for (const auto& each : known_) {
    if (each->uuid == uuid) return each.get();
  }
  const GpuApi* api = kind == SpaceKind::cuda ? cudaApi(why) : hipApi(why);
  int count = 0;
  if (api == nullptr || api->deviceCount(&count) != 0) return nullptr;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    unsigned char bytes[16] = {};
    if (api->deviceGet(&device, ordinal) != 0 || api->deviceUuid(bytes, device) != 0) continue;
    if (gpuUuidText(bytes) != uuid) continue;
    auto found = std::make_unique<Gpu>(Gpu{api, ordinal, device, nullptr, uuid});
    const int code = api->contextRetain(&found->context, device);
    if (code != 0) {
      why = gpuErrorText(*api, code);
      return nullptr;
    }
    known_.push_back(std::move(found));
    return known_.back().get();
  }
  why = "there is no GPU " + uuid;
  return nullptr;
}

void Gpus::release() {
  for (const auto& each : known_) each->api->contextRelease(each->device);
  known_.clear();
}

}  // namespace headrace::mpi
