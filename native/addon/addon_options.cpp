// Options of a core from JavaScript: see addon/addon_options.h.
#include "addon/addon_options.h"

#include <cstdint>
#include <string>

#include "addon/values.h"

namespace headrace {

namespace {

std::uint64_t bytes(const Napi::Object& options, const char* name) {
  const Napi::Value value = options.Get(name);
  if (!value.IsNumber()) return 0;
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= 0) || number > 9007199254740992.0) {
    fail(value.Env(), "INVALID_OPTION", std::string(name) + " is not a number of bytes");
  }
  return static_cast<std::uint64_t>(number);
}

}  // namespace

CoreOptions readCoreOptions(const Napi::Object& given) {
  CoreOptions options;
  options.driver = given.Get("driver").ToString().Utf8Value();
  options.gpus = given.Get("gpus").ToNumber();
  const Napi::Value firstGpu = given.Get("firstGpu");
  if (firstGpu.IsNumber()) options.firstGpu = firstGpu.ToNumber();
  options.gpuBytes = bytes(given, "gpuBytes");
  if (given.Get("gpuRanks").IsNumber()) options.gpuRanks = given.Get("gpuRanks").ToNumber();
  options.hostBytes = bytes(given, "hostBytes");
  options.pinnedBytes = bytes(given, "pinnedBytes");
  options.workers = given.Get("workers").ToNumber();
  if (given.Get("scriptWorkers").IsNumber()) {
    options.scriptWorkers = given.Get("scriptWorkers").ToNumber();
  }
  if (given.Get("lanes").IsNumber()) options.lanes = given.Get("lanes").ToNumber();
  if (given.Get("cores").IsNumber()) options.cores = given.Get("cores").ToNumber();
  const Napi::Value spinning = given.Get("spinNanoseconds");
  if (spinning.IsNumber() && spinning.ToNumber().Int64Value() > 0) {
    options.spinNanoseconds = spinning.ToNumber();
  }
  options.computeStreams = given.Get("computeStreams").ToNumber();
  options.ringRecords = given.Get("ringRecords").ToNumber();
  options.checked = given.Get("checked").ToBoolean();
  return options;
}

std::vector<QueueOptions> readQueues(const Napi::Value& table, const Napi::Array& rings,
                                     const Napi::Array& times) {
  const std::int32_t* facts = words(table);
  std::vector<QueueOptions> queues;
  for (std::uint32_t i = 0; i < rings.Length(); ++i) {
    const Napi::Value ring = rings[i];
    const Napi::Value pairs = times[i];
    queues.push_back({facts[3 * i], facts[3 * i + 1], facts[3 * i + 2], words(ring),
                      reinterpret_cast<double*>(words(pairs))});
  }
  return queues;
}

Napi::Value queueTable(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  CoreOptions options;
  options.workers = info[0].ToNumber();
  options.gpus = info[1].ToNumber();
  options.computeStreams = info[2].ToNumber();
  options.lanes = info[3].ToNumber();
  options.scriptWorkers = info[4].ToNumber();
  Napi::Array result = Napi::Array::New(env);
  for (const QueueOptions& queue : Core::queuesOf(options)) {
    for (const std::int32_t value : {queue.kind, queue.space, queue.peer}) {
      result[result.Length()] = Napi::Number::New(env, value);
    }
  }
  return result;
}

}  // namespace headrace
