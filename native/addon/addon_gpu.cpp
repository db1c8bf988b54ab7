// Kernel sources, the report of the machine and raw loops for JavaScript: see addon/addon_gpu.h.
#include "addon/addon_gpu.h"

#include "addon/values.h"
#include "core/core_error.h"
#include "gpu/cuda/tiles.h"
#include "gpu/driver_baseline.h"
#include "gpu/inventory.h"
#include "kernels/blas.h"

namespace headrace {

namespace {

ExtentRule readExtent(const Napi::Value& value) {
  if (value.IsNumber()) return {-1, value.As<Napi::Number>().DoubleValue()};
  const auto rule = value.As<Napi::Object>();
  const Napi::Value divisor = rule.Get("divisor");
  return {rule.Get("param").ToNumber().Int32Value(),
          divisor.IsNumber() ? divisor.As<Napi::Number>().DoubleValue() : 1};
}

void readExtents(const Napi::Value& value, ExtentRule* rules) {
  const auto list = value.As<Napi::Array>();
  for (std::uint32_t d = 0; d < 3 && d < list.Length(); ++d) rules[d] = readExtent(list[d]);
}

KernelDeclaration readKernel(const Napi::Object& given) {
  KernelDeclaration kernel;
  kernel.name = given.Get("name").ToString();
  const Napi::Value symbol = given.Get("symbol");
  kernel.symbol = symbol.IsString() ? symbol.ToString().Utf8Value() : kernel.name;
  const auto signature = given.Get("signature").As<Napi::Array>();
  if (signature.Length() > 32) {
    throw CoreError("INVALID_OPTION", "kernel " + kernel.name + " has more than 32 arguments");
  }
  for (std::uint32_t i = 0; i < signature.Length(); ++i) {
    ArgumentType type;
    const Napi::Value each = signature[i];
    std::int32_t index = -1;
    Napi::Value word = each;
    if (each.IsObject()) {
      word = each.As<Napi::Object>().Get("type");
      index = each.As<Napi::Object>().Get("index").ToNumber();
    }
    const std::string text = word.ToString();
    if (!parseArgumentType(text, &type)) {
      throw CoreError("INVALID_OPTION", "kernel " + kernel.name + ": '" + text +
                                            "' is no argument type (pointer, f64, f32, i32, i64)");
    }
    kernel.rules.signature.emplace_back(type, index);
  }
  readExtents(given.Get("grid"), kernel.rules.grid);
  readExtents(given.Get("block"), kernel.rules.block);
  const Napi::Value shared = given.Get("sharedBytes");
  if (shared.IsNumber() || shared.IsObject()) kernel.rules.sharedBytes = readExtent(shared);
  return kernel;
}

Napi::Object library(Napi::Env env, bool found, const std::string& name,
                     const std::string& reason) {
  Napi::Object each = Napi::Object::New(env);
  each["found"] = Napi::Boolean::New(env, found);
  each["library"] = Napi::String::New(env, name);
  each["reason"] = Napi::String::New(env, found ? "" : reason);
  return each;
}

Napi::Object facts(Napi::Env env, const GpuFacts& gpu) {
  Napi::Object each = Napi::Object::New(env);
  each["name"] = Napi::String::New(env, gpu.name);
  each["uuid"] = Napi::String::New(env, gpu.uuid);
  each["bytes"] = Napi::Number::New(env, gpu.bytes);
  each["multiprocessors"] = Napi::Number::New(env, gpu.multiprocessors);
  each["capability"] =
      Napi::String::New(env, std::to_string(gpu.major) + "." + std::to_string(gpu.minor));
  each["rdmaSupported"] = Napi::Boolean::New(env, gpu.rdma == 1);
  each["rdmaFlushOptions"] = Napi::Number::New(env, gpu.rdmaFlush);
  each["rdmaOrdering"] = Napi::Number::New(env, gpu.rdmaOrdering);
  Napi::Array peers = Napi::Array::New(env);
  for (const bool peer : gpu.peers) peers[peers.Length()] = Napi::Boolean::New(env, peer);
  each["peers"] = peers;
  return each;
}

/// The GPUs and the libraries for kernels.
Napi::Object cudaReport(Napi::Env env) {
  Napi::Object report = Napi::Object::New(env);
  Napi::Array devices = Napi::Array::New(env);
  for (const GpuFacts& gpu : cudaInventory()) devices[devices.Length()] = facts(env, gpu);
  report["devices"] = devices;
  const CompilerReport compiler = compilerReport();
  report["nvrtc"] = library(env, compiler.found, compiler.library, compiler.reason);
  const TileReport tiles = tileReport();
  report["cublas"] = library(env, !tiles.blas.empty(), tiles.blas, tiles.reason);
  report["cusolver"] = library(env, !tiles.solver.empty(), tiles.solver, tiles.reason);
  return report;
}

}  // namespace

KernelSource readKernelSource(const Napi::Object& given) {
  KernelSource source;
  source.name = given.Get("name").ToString();
  const Napi::Value text = given.Get("source");
  if (text.IsString()) {
    source.source = text.ToString();
  } else {
    const auto image = given.Get("image").As<Napi::Uint8Array>();
    source.source.assign(reinterpret_cast<const char*>(image.Data()), image.ByteLength());
    source.image = true;
  }
  const Napi::Value options = given.Get("options");
  if (options.IsArray()) {
    const auto list = options.As<Napi::Array>();
    for (std::uint32_t i = 0; i < list.Length(); ++i) {
      source.options.push_back(Napi::Value(list[i]).ToString());
    }
  }
  const auto kernels = given.Get("kernels").As<Napi::Array>();
  for (std::uint32_t i = 0; i < kernels.Length(); ++i) {
    source.kernels.push_back(readKernel(Napi::Value(kernels[i]).As<Napi::Object>()));
  }
  return source;
}

Napi::Value probe(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Object result = Napi::Object::New(env);
  const BlasReport report = blasReport();
  Napi::Object blas = Napi::Object::New(env);
  blas["found"] = Napi::Boolean::New(env, report.found);
  blas["library"] = Napi::String::New(env, report.library);
  blas["reason"] = Napi::String::New(env, report.reason);
  result["blas"] = blas;
  Napi::Array drivers = Napi::Array::New(env);
  for (const DriverTable* const* driver = allDrivers(); *driver != nullptr; ++driver) {
    std::int32_t devices = 0;
    char reason[256] = "";
    const bool found = (*driver)->probe(&devices, reason, sizeof reason) == DriverStatus::ok;
    Napi::Object each = Napi::Object::New(env);
    each["name"] = Napi::String::New(env, (*driver)->name);
    each["found"] = Napi::Boolean::New(env, found);
    each["devices"] = Napi::Number::New(env, found ? devices : 0);
    each["reason"] = Napi::String::New(env, reason);
    drivers[drivers.Length()] = each;
  }
  result["drivers"] = drivers;
  result["cuda"] = cudaReport(env);
  return result;
}

Napi::Value rawLoop(const Napi::CallbackInfo& info) {
  BaselineLoop loop;
  loop.name = info[0].ToString();
  loop.gpus = info[1].ToNumber();
  loop.count = info[2].ToNumber();
  loop.bytes = static_cast<std::uint64_t>(info[3].ToNumber().DoubleValue());
  if (info[4].IsNumber()) loop.to = info[4].As<Napi::Number>();
  if (info[5].IsNumber()) loop.from = info[5].As<Napi::Number>();
  try {
    return Napi::Number::New(info.Env(), runBaselineLoop(loop));
  } catch (const CoreError& error) {
    fail(info.Env(), error.code(), error.what());
  }
}

}  // namespace headrace
