// The Node-API surface of the message layer; native/mpi.ts is its only user. Calls that wait for other ranks are
// promises: they wait on a thread of the pool, not on the JavaScript thread.
//
// Lifetime: the views handed to `open` belong to JavaScript; a reference keeps them alive until `end`, when the comm
// thread has released them. The world itself lives as long as the process.
#include <napi.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "deadline.h"
#include "world.h"

namespace headrace::mpi {
namespace {

void* dataOf(const Napi::Value& value) {
  const auto array = value.As<Napi::TypedArray>();
  void* data = nullptr;
  std::size_t length = 0;
  napi_get_typedarray_info(array.Env(), array, nullptr, &length, &data, nullptr, nullptr);
  return data;
}

/// Runs `work` on a pool thread, then `answer` on the JavaScript thread, whose value resolves the promise.
class Waiting : public Napi::AsyncWorker {
 public:
  static Napi::Value promise(Napi::Env env, std::function<void()> work,
                             std::function<Napi::Value(Napi::Env)> answer) {
    auto* waiting = new Waiting(env, std::move(work), std::move(answer));
    const Napi::Promise result = waiting->deferred_.Promise();
    waiting->Queue();
    return result;
  }

 private:
  Waiting(Napi::Env env, std::function<void()> work, std::function<Napi::Value(Napi::Env)> answer)
      : Napi::AsyncWorker(env),
        deferred_(Napi::Promise::Deferred::New(env)),
        work_(std::move(work)),
        answer_(std::move(answer)) {}

  void Execute() override {
    try {
      work_();
    } catch (const std::exception& error) {
      SetError(error.what());
    }
  }
  void OnOK() override { deferred_.Resolve(answer_(Env())); }
  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

  Napi::Promise::Deferred deferred_;
  std::function<void()> work_;
  std::function<Napi::Value(Napi::Env)> answer_;
};

/// Keeps the shared buffers of the open session.
struct Instance {
  Napi::ObjectReference views;
};

Napi::Object factsObject(Napi::Env env, const Facts& facts) {
  Napi::Object result = Napi::Object::New(env);
  result["rank"] = Napi::Number::New(env, facts.rank);
  result["size"] = Napi::Number::New(env, facts.size);
  result["flavour"] = Napi::String::New(env, facts.flavour);
  result["library"] = Napi::String::New(env, facts.library);
  result["standard"] = Napi::String::New(env, facts.standard);
  result["threadLevel"] = Napi::String::New(env, facts.threadLevel);
  result["gpuAware"] = Napi::Boolean::New(env, facts.gpuAware);
  return result;
}

Napi::Value describe(const Napi::CallbackInfo& info) {
  return factsObject(info.Env(), describeLibrary());
}

Napi::Value misalignment(const Napi::CallbackInfo& info) {
  const auto address = reinterpret_cast<std::uintptr_t>(dataOf(info[0]));
  return Napi::Number::New(info.Env(), static_cast<double>(address & 63));
}

Napi::Value start(const Napi::CallbackInfo& info) {
  auto facts = std::make_shared<Facts>();
  GpuName gpu;
  if (info[0].IsObject()) {
    const auto given = info[0].As<Napi::Object>();
    gpu = {given.Get("kind").ToNumber().Int32Value(), given.Get("uuid").ToString().Utf8Value()};
  }
  return Waiting::promise(
      info.Env(), [facts, gpu] { *facts = World::instance().start(gpu); },
      [facts](Napi::Env env) -> Napi::Value { return factsObject(env, *facts); });
}

void readExport(const Napi::Object& given, SpaceView& space) {
  const auto handle = given.Get("handle").As<Napi::Uint8Array>();
  bool lossless = true;
  std::copy_n(handle.Data(), std::min(handle.ByteLength(), sizeof space.exported.handle),
              space.exported.handle);
  space.exported.base = given.Get("base").As<Napi::BigInt>().Uint64Value(&lossless);
  space.exported.offset = static_cast<std::uint64_t>(given.Get("offset").ToNumber().DoubleValue());
  space.exported.generation = given.Get("generation").As<Napi::BigInt>().Uint64Value(&lossless);
  space.shared = true;
}

SessionOptions optionsOf(const Napi::CallbackInfo& info) {
  SessionOptions options;
  const auto given = info[0].As<Napi::Object>();
  const auto spaces = given.Get("spaces").As<Napi::Array>();
  if (spaces.Length() > static_cast<std::uint32_t>(NetLimit::spaces)) {
    throw Napi::RangeError::New(info.Env(), "too many memory spaces");
  }
  bool lossless = true;
  for (std::uint32_t i = 0; i < spaces.Length(); ++i) {
    const Napi::Value value = spaces[i];
    const auto each = value.As<Napi::Object>();
    SpaceView space;
    space.kind = each.Get("kind").ToNumber();
    space.base = reinterpret_cast<std::uint8_t*>(
        static_cast<std::uintptr_t>(each.Get("base").As<Napi::BigInt>().Uint64Value(&lossless)));
    space.bytes = each.Get("bytes").ToNumber();
    space.fd = each.Get("fd").ToNumber();
    space.direct = each.Get("direct").ToBoolean();
    space.uuid = each.Get("uuid").ToString();
    const Napi::Value exported = each.Get("exported");
    if (exported.IsObject()) readExport(exported.As<Napi::Object>(), space);
    options.spaces.push_back(space);
  }
  options.doorbell = reinterpret_cast<const headrace_doorbell*>(
      static_cast<std::uintptr_t>(given.Get("doorbell").As<Napi::BigInt>().Uint64Value(&lossless)));
  options.lanes = reinterpret_cast<const headrace_lanes*>(
      static_cast<std::uintptr_t>(given.Get("lanes").As<Napi::BigInt>().Uint64Value(&lossless)));
  options.treeFrom = given.Get("treeFrom").ToNumber();
  options.chunkBytes = given.Get("chunkBytes").ToNumber().Int64Value();
  options.chunksInFlight = given.Get("chunksInFlight").ToNumber();
  options.spinNanoseconds = given.Get("spinNanoseconds").ToNumber().Int64Value();
  options.mailboxes = given.Get("mailboxes").ToBoolean();
  const auto told = given.Get("told").As<Napi::Array>();
  if (told.Length() > options.told.size()) {
    throw Napi::RangeError::New(info.Env(), "too many numbers for the other ranks");
  }
  for (std::uint32_t i = 0; i < told.Length(); ++i) {
    const Napi::Value number = told[i];
    options.told[i] = number.ToNumber();
  }
  options.memory.words = reinterpret_cast<Word*>(dataOf(info[1]));
  options.memory.commands = static_cast<Record*>(dataOf(info[2]));
  options.memory.events = static_cast<Record*>(dataOf(info[3]));
  options.memory.outbox = static_cast<std::uint8_t*>(dataOf(info[4]));
  options.memory.inbox = static_cast<std::uint8_t*>(dataOf(info[5]));
  options.memory.ways = static_cast<const std::uint8_t*>(dataOf(info[6]));
  return options;
}

Napi::Value open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Object views = Napi::Object::New(env);
  for (std::uint32_t i = 1; i < 7; ++i) views[i] = info[i];
  auto* instance = env.GetInstanceData<Instance>();
  instance->views = Napi::Persistent(views);
  auto options = std::make_shared<SessionOptions>(optionsOf(info));
  auto opened = std::make_shared<Opened>();
  return Waiting::promise(
      env, [options, opened] { *opened = World::instance().open(std::move(*options)); },
      [opened](Napi::Env answering) -> Napi::Value {
        const auto flags = [&](const std::vector<bool>& from) {
          Napi::Array result = Napi::Array::New(answering);
          for (const bool each : from) {
            result[result.Length()] = Napi::Boolean::New(answering, each);
          }
          return result;
        };
        Napi::Array peers = Napi::Array::New(answering);
        for (const Opened::Peer& each : opened->peers) {
          Napi::Object peer = Napi::Object::New(answering);
          peer["sameHost"] = Napi::Boolean::New(answering, each.sameHost);
          peer["pid"] = Napi::Number::New(answering, each.pid);
          Napi::Array told = Napi::Array::New(answering);
          for (const double number : each.told) {
            told[told.Length()] = Napi::Number::New(answering, number);
          }
          peer["told"] = told;
          peer["mailbox"] = Napi::Boolean::New(answering, each.mailbox);
          peer["mappable"] = flags(each.mappable);
          peer["reachable"] = flags(each.reachable);
          peers[peers.Length()] = peer;
        }
        Napi::Object result = Napi::Object::New(answering);
        result["peers"] = peers;
        result["mappingProblem"] = Napi::String::New(answering, opened->mappingProblem);
        result["directProblem"] = Napi::String::New(answering, opened->directProblem);
        return result;
      });
}

Napi::Value measure(const Napi::CallbackInfo& info) {
  const std::int64_t bytes = info[0].ToNumber().Int64Value();
  const int rounds = info[1].ToNumber();
  const std::string what = info[2].ToString();
  const World::Raw how = what == "gpu"        ? World::Raw::gpuMemory
                         : what == "ipc"      ? World::Raw::ipcRead
                         : what == "emulated" ? World::Raw::emulatedMemory
                                              : World::Raw::hostMemory;
  auto seconds = std::make_shared<double>(0);
  return Waiting::promise(
      info.Env(),
      [bytes, rounds, how, seconds] { *seconds = World::instance().measure(bytes, rounds, how); },
      [seconds](Napi::Env env) -> Napi::Value { return Napi::Number::New(env, *seconds); });
}

void wake(const Napi::CallbackInfo&) { World::instance().wake(); }

void end(const Napi::CallbackInfo& info) {
  World::instance().end();
  info.Env().GetInstanceData<Instance>()->views.Reset();
}

Napi::Value finish(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(),
                            World::instance().finish(info[0].ToNumber(), info[1].ToBoolean()));
}

void watchSignal(const Napi::CallbackInfo& info) {
  deadline::watch(info[0].ToNumber(), info[1].ToNumber());
}

void heardSignal(const Napi::CallbackInfo& info) { deadline::heard(info[0].ToNumber()); }

void leaveSignal(const Napi::CallbackInfo& info) { deadline::leave(info[0].ToNumber()); }

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Instance());
  exports["contract"] = Napi::Number::New(env, headrace::netContractNumber);
  exports["describe"] = Napi::Function::New<describe>(env, "describe");
  exports["misalignment"] = Napi::Function::New<misalignment>(env, "misalignment");
  exports["start"] = Napi::Function::New<start>(env, "start");
  exports["open"] = Napi::Function::New<open>(env, "open");
  exports["measure"] = Napi::Function::New<measure>(env, "measure");
  exports["wake"] = Napi::Function::New<wake>(env, "wake");
  exports["end"] = Napi::Function::New<end>(env, "end");
  exports["finish"] = Napi::Function::New<finish>(env, "finish");
  exports["watchSignal"] = Napi::Function::New<watchSignal>(env, "watchSignal");
  exports["heardSignal"] = Napi::Function::New<heardSignal>(env, "heardSignal");
  exports["leaveSignal"] = Napi::Function::New<leaveSignal>(env, "leaveSignal");
  return exports;
}

}  // namespace

NODE_API_MODULE(headrace_mpi, initialise)

}  // namespace headrace::mpi
