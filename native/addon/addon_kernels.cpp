// Kernels for JavaScript: see addon/addon_kernels.h.
#include "addon/addon_kernels.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "addon/addon_gpu.h"
#include "addon/values.h"
#include "core/core_error.h"
#include "core/registry.h"

namespace headrace {

namespace {

Napi::Array toArray(Napi::Env env, const std::vector<std::string>& names) {
  Napi::Array result = Napi::Array::New(env);
  for (const std::string& name : names) result[result.Length()] = Napi::String::New(env, name);
  return result;
}

}  // namespace

Napi::Value kernel(const Napi::CallbackInfo& info, Core& core) {
  const std::int32_t space = info[1].IsNumber() ? info[1].ToNumber().Int32Value() : -1;
  return Napi::Number::New(info.Env(), core.kernel(info[0].ToString(), space));
}

Napi::Value takesLengths(const Napi::CallbackInfo& info, Core& core) {
  const std::int32_t id = info[0].ToNumber();
  return Napi::Boolean::New(info.Env(), core.runtime().registry.takesLengths(id));
}

Napi::Value steered(const Napi::CallbackInfo& info, Core& core) {
  const Napi::Env env = info.Env();
  const auto positions = info[1].As<Napi::Int32Array>();
  const auto isInteger = info[2].As<Napi::Uint8Array>();
  std::vector<Steer> steers(positions.ElementLength());
  for (std::size_t i = 0; i < steers.size(); ++i) {
    steers[i] = {positions[i], i < isInteger.ElementLength() && isInteger[i] != 0};
  }
  try {
    Registry& registry = core.runtime().registry;
    return Napi::Number::New(env, registry.steered(info[0].ToNumber(), std::move(steers)));
  } catch (const std::runtime_error& error) {
    fail(env, "KERNELS", error.what());
  }
}

Napi::Value numberLengths(const Napi::CallbackInfo& info, Core& core) {
  const auto list = info[0].As<Napi::Float64Array>();
  const std::int32_t number = core.runtime().lengths.add(list.Data(), list.ElementLength());
  return Napi::Number::New(info.Env(), number);
}

Napi::Value loadKernels(const Napi::CallbackInfo& info, Core& core) {
  const Napi::Env env = info.Env();
  std::vector<std::string> names;
  try {
    core.loadKernels(info[0].ToString(), names);
  } catch (const CoreError& error) {
    fail(env, error.code(), error.what());
  }
  return toArray(env, names);
}

Napi::Value compileKernels(const Napi::CallbackInfo& info, Core& core) {
  const Napi::Env env = info.Env();
  std::vector<std::string> names;
  try {
    core.compileKernels(readKernelSource(info[0].As<Napi::Object>()), names);
  } catch (const CoreError& error) {
    fail(env, error.code(), error.what());
  }
  return toArray(env, names);
}

Napi::Value builtInKernels(const Napi::CallbackInfo& info) {
  return toArray(info.Env(), Registry::instance().builtIn());
}

}  // namespace headrace
