// Memory spaces for JavaScript: see addon/addon_memory.h.
#include "addon/addon_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "addon/values.h"

namespace headrace {

Napi::Value spaces(const Napi::CallbackInfo& info, Core& core) {
  const Napi::Env env = info.Env();
  Napi::Array result = Napi::Array::New(env);
  for (const Space& space : core.runtime().spaces) {
    Napi::Object each = Napi::Object::New(env);
    each["kind"] = Napi::Number::New(env, space.kind);
    each["name"] = Napi::String::New(env, space.name);
    each["bytes"] = Napi::Number::New(env, static_cast<double>(space.bytes));
    each["uuid"] = Napi::String::New(env, space.uuid);
    each["flushOptions"] = Napi::Number::New(env, space.flushOptions);
    each["writeOrdering"] = Napi::Number::New(env, space.writeOrdering);
    result[result.Length()] = each;
  }
  return result;
}

Napi::Value shareable(const Napi::CallbackInfo& info, Core& core) {
  const Napi::Env env = info.Env();
  const DeviceShare* share = core.share(info[0].ToNumber());
  if (share == nullptr || share->fd < 0) return env.Null();
  Napi::Object result = Napi::Object::New(env);
  result["pid"] = Napi::Number::New(env, getpid());
  result["fd"] = Napi::Number::New(env, share->fd);
  result["bytes"] = Napi::Number::New(env, static_cast<double>(share->bytes));
  return result;
}

Napi::Value ipcExport(const Napi::CallbackInfo& info, Core& core) {
  const Napi::Env env = info.Env();
  const DeviceShare* share = core.share(info[0].ToNumber());
  if (share == nullptr || share->ipcBytes == 0) return env.Null();
  Napi::Uint8Array handle = Napi::Uint8Array::New(env, share->ipcBytes);
  std::copy(share->ipc, share->ipc + share->ipcBytes, handle.Data());
  Napi::Object result = Napi::Object::New(env);
  result["handle"] = handle;
  result["base"] = Napi::BigInt::New(env, share->base);
  result["offset"] = Napi::Number::New(env, static_cast<double>(share->offset));
  result["generation"] = Napi::BigInt::New(env, share->generation);
  return result;
}

Napi::Value spaceAddress(const Napi::CallbackInfo& info, Core& core) {
  const Napi::Env env = info.Env();
  const Space* space = core.runtime().space(info[0].ToNumber());
  if (space == nullptr) fail(env, "OUT_OF_RANGE", "there is no such memory space");
  return Napi::BigInt::New(env, space->base);
}

Napi::Value peerAccess(const Napi::CallbackInfo& info, Core& core) {
  return Napi::Boolean::New(info.Env(), core.peerAccess(info[0].ToNumber(), info[1].ToNumber()));
}

}  // namespace headrace
