// The Node-API surface: it only turns JavaScript calls into calls of Core. native/index.ts is its only user.
//
// Lifetime rules (each a crash or a hang when broken):
// - the rings, control and shared words are SharedArrayBuffers of JavaScript; `views_` keeps them alive until the
//   threads are joined;
// - the thread-safe function is unref'd at once (it must not keep the process alive; `hold` refs it) and released
//   in `close`, after the threads that could call it are joined; a call of it may be delivered when this object is gone
//   (addon/wake_function.h);
// - Node destroys thread-safe functions in environment teardown before finalizers run. So an environment cleanup hook,
//   registered after the function was made, closes the core first; worker threads tear down for real;
// - no state here is static: several cores per environment and several environments per process must work.
#include <napi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "addon/addon_gpu.h"
#include "addon/addon_kernels.h"
#include "addon/addon_memory.h"
#include "addon/addon_options.h"
#include "addon/addon_scripts.h"
#include "addon/values.h"
#include "addon/wake_function.h"
#include "core/clock.h"
#include "core/core.h"

namespace headrace {
namespace {

class CoreObject : public Napi::ObjectWrap<CoreObject> {
 public:
  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "Core",
        {
            InstanceMethod<&CoreObject::spaces>("spaces"),
            InstanceMethod<&CoreObject::open<headrace::kernel>>("kernel"),
            InstanceMethod<&CoreObject::open<headrace::takesLengths>>("takesLengths"),
            InstanceMethod<&CoreObject::open<headrace::steered>>("steered"),
            InstanceMethod<&CoreObject::open<headrace::numberLengths>>("numberLengths"),
            InstanceMethod<&CoreObject::open<headrace::loadKernels>>("loadKernels"),
            InstanceMethod<&CoreObject::open<headrace::compileKernels>>("compileKernels"),
            InstanceMethod<&CoreObject::wake>("wake"),
            InstanceMethod<&CoreObject::waitForDoorbell>("waitForDoorbell"),
            InstanceMethod<&CoreObject::spinForDoorbell>("spinForDoorbell"),
            InstanceMethod<&CoreObject::full>("full"),
            InstanceMethod<&CoreObject::serveUntilDoorbell>("serveUntilDoorbell"),
            InstanceMethod<&CoreObject::recall>("recall"),
            InstanceMethod<&CoreObject::takeStolen>("takeStolen"),
            InstanceMethod<&CoreObject::onDoorbell>("onDoorbell"),
            InstanceMethod<&CoreObject::hold>("hold"),
            InstanceMethod<&CoreObject::hostView>("hostView"),
            InstanceMethod<&CoreObject::lastError>("lastError"),
            InstanceMethod<&CoreObject::scripts>("scripts"),
            InstanceMethod<&CoreObject::thrown>("thrown"),
            InstanceMethod<&CoreObject::refuse>("refuse"),
            InstanceMethod<&CoreObject::orNull<headrace::shareable>>("shareable"),
            InstanceMethod<&CoreObject::orNull<headrace::ipcExport>>("ipcExport"),
            InstanceMethod<&CoreObject::open<spaceAddress>>("address"),
            InstanceMethod<&CoreObject::open<headrace::peerAccess>>("peerAccess"),
            InstanceMethod<&CoreObject::keepShared>("keepShared"),
            InstanceMethod<&CoreObject::doorbell>("doorbell"),
            InstanceMethod<&CoreObject::lanes>("lanes"),
            InstanceMethod<&CoreObject::capture>("capture"),
            InstanceMethod<&CoreObject::graphFailure>("graphFailure"),
            InstanceMethod<&CoreObject::releaseGraph>("releaseGraph"),
            InstanceMethod<&CoreObject::play>("play"),
            InstanceMethod<&CoreObject::extendPlay>("extendPlay"),
            InstanceMethod<&CoreObject::playOutcome>("playOutcome"),
            InstanceMethod<&CoreObject::close>("close"),
        });
  }

  /// (options, queue table of int32 kind/space/peer, rings, times, control, shared)
  explicit CoreObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<CoreObject>(info) {
    const Napi::Env env = info.Env();
    const CoreOptions options = readCoreOptions(info[0].As<Napi::Object>());
    const auto rings = info[2].As<Napi::Array>();
    const auto times = info[3].As<Napi::Array>();
    const std::vector<QueueOptions> queues = readQueues(info[1], rings, times);
    Napi::Object views = Napi::Object::New(env);
    views["rings"] = rings;
    views["times"] = times;
    views["control"] = info[4];
    views["shared"] = info[5];
    views_ = Napi::Persistent(views);
    views_.SuppressDestruct();  // reset by hand in `close`
    try {
      core_ = std::make_unique<Core>(options, queues, words(info[4]), words(info[5]));
    } catch (const CoreError& error) {
      views_.Reset();
      fail(env, error.code(), error.what());
    }
    doorbell_.open(env, "headrace doorbell", 1, [this](Napi::Env at) { onRing(at); });
    doorbell_.unref(env);
    core_->runtime().doorbell.setCall([this] { doorbell_.call(); });
    napi_add_env_cleanup_hook(env, atTeardown, this);
  }

  ~CoreObject() override {
    if (closed_) return;
    shutDown(true);
  }

 private:
  void onRing(Napi::Env env) {
    Runtime& runtime = core_->runtime();
    runtime.doorbell.answered();
    runtime.shared[Shared::engineAsleep].store(0, std::memory_order_seq_cst);
    runtime.ownership.engineWakes();
    if (callback_.IsEmpty()) return;
    // The plain call: while the environment is torn down JavaScript cannot run any more. C++ would report that by an
    // exception that no code can catch. An exception of the callback itself stays pending and becomes Node's.
    napi_value ignored = nullptr;
    napi_call_function(env, env.Undefined(), callback_.Value(), 0, nullptr, &ignored);
  }

  static void atTeardown(void* object) { static_cast<CoreObject*>(object)->shutDown(true, true); }

  void requireOpen(Napi::Env env) const {
    if (closed_) fail(env, "CLOSED", "the native core is closed");
  }

  /// A call that needs an open core.
  template <Napi::Value (*call)(const Napi::CallbackInfo&, Core&)>
  Napi::Value open(const Napi::CallbackInfo& info) {
    requireOpen(info.Env());
    return call(info, *core_);
  }

  /// A call that a closed core answers with null.
  template <Napi::Value (*call)(const Napi::CallbackInfo&, Core&)>
  Napi::Value orNull(const Napi::CallbackInfo& info) {
    return closed_ ? info.Env().Null() : call(info, *core_);
  }

  Napi::Value spaces(const Napi::CallbackInfo& info) { return headrace::spaces(info, *core_); }

  void wake(const Napi::CallbackInfo& info) {
    if (!closed_) core_->wake(info[0].ToNumber());
  }

  Napi::Value waitForDoorbell(const Napi::CallbackInfo& info) {
    const bool rang = !closed_ && core_->waitForDoorbell(info[0].ToNumber());
    return Napi::Boolean::New(info.Env(), rang);
  }

  Napi::Value spinForDoorbell(const Napi::CallbackInfo& info) {
    const bool rang = !closed_ && core_->spinForDoorbell(info[0].ToNumber());
    return Napi::Boolean::New(info.Env(), rang);
  }

  Napi::Value full(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), !closed_ && core_->runtime().ownership.full());
  }

  Napi::Value serveUntilDoorbell(const Napi::CallbackInfo& info) {
    const bool served = !closed_ && core_->serveUntilDoorbell(info[0].ToNumber());
    return Napi::Boolean::New(info.Env(), served);
  }

  void recall(const Napi::CallbackInfo&) {
    if (!closed_) core_->runtime().ownership.recall();
  }

  /// Fills a Float64Array with queue, from and to of as many spans as fit; returns their number.
  Napi::Value takeStolen(const Napi::CallbackInfo& info) {
    auto into = info[0].As<Napi::Float64Array>();
    StolenSpan spans[64];
    std::size_t count = 0;
    while (!closed_ && count < into.ElementLength() / 3) {
      const std::size_t most = std::min(std::size(spans), into.ElementLength() / 3 - count);
      const std::size_t taken = core_->takeStolen(spans, most);
      for (std::size_t i = 0; i < taken; ++i) {
        double* at = into.Data() + 3 * (count + i);
        at[0] = spans[i].queue;
        at[1] = static_cast<double>(spans[i].from);
        at[2] = static_cast<double>(spans[i].to);
      }
      count += taken;
      if (taken < most) break;
    }
    return Napi::Number::New(info.Env(), static_cast<double>(count));
  }

  void onDoorbell(const Napi::CallbackInfo& info) {
    callback_ = Napi::Persistent(info[0].As<Napi::Function>());
    callback_.SuppressDestruct();
  }

  void hold(const Napi::CallbackInfo& info) {
    if (closed_) return;
    if (info[0].ToBoolean()) {
      doorbell_.ref(info.Env());
    } else {
      doorbell_.unref(info.Env());
    }
  }

  Napi::Value hostView(const Napi::CallbackInfo& info) {
    requireOpen(info.Env());
    return viewOfHost(info, *core_);
  }

  Napi::Value scripts(const Napi::CallbackInfo& info) {
    requireOpen(info.Env());
    const auto address = reinterpret_cast<std::uintptr_t>(core_.get());
    return Napi::BigInt::New(info.Env(), static_cast<std::uint64_t>(address));
  }

  Napi::Value thrown(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    std::string bytes;
    ScriptPort* port = closed_ ? nullptr : core_->scriptPort(info[0].ToNumber());
    if (port == nullptr || !port->takeThrown(info[1].ToNumber(), bytes)) return env.Null();
    Napi::Uint8Array result = Napi::Uint8Array::New(env, bytes.size());
    std::copy(bytes.begin(), bytes.end(), result.Data());
    return result;
  }

  void refuse(const Napi::CallbackInfo& info) {
    ScriptPort* port = closed_ ? nullptr : core_->scriptPort(info[0].ToNumber());
    if (port != nullptr) port->refuse(bytesOf(info[1]));
  }

  Napi::Value lastError(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), core_->lastError(info[0].ToNumber()));
  }

  void keepShared(const Napi::CallbackInfo&) { core_->keepShared(); }

  Napi::Value doorbell(const Napi::CallbackInfo& info) {
    requireOpen(info.Env());
    const auto address = reinterpret_cast<std::uintptr_t>(core_->externalDoorbell());
    return Napi::BigInt::New(info.Env(), static_cast<std::uint64_t>(address));
  }

  Napi::Value lanes(const Napi::CallbackInfo& info) {
    requireOpen(info.Env());
    const auto address = reinterpret_cast<std::uintptr_t>(core_->lanes());
    return Napi::BigInt::New(info.Env(), static_cast<std::uint64_t>(address));
  }

  /// The lists of a plan; the thread of the first one's GPU captures them.
  Napi::Value capture(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    requireOpen(env);
    const auto given = info[0].As<Napi::Array>();
    std::vector<PlanList> lists;
    for (std::uint32_t i = 0; i < given.Length(); ++i) {
      const Napi::Value list = given[i];
      lists.push_back(planList(list.As<Napi::Object>()));
    }
    DeviceThread& gpu = gpuOf(env, lists.empty() ? nullptr : lists[0].queue);
    try {
      return Napi::Number::New(env, gpu.capture(lists));
    } catch (const CoreError& error) {
      fail(env, error.code(), error.what());
    }
  }

  Napi::Value graphFailure(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    requireOpen(env);
    std::int32_t list = 0;
    std::int32_t record = 0;
    DeviceThread& gpu = gpuOf(env, core_->runtime().queue(info[0].ToNumber()));
    if (!gpu.graphFailed(info[1].ToNumber(), list, record)) return env.Undefined();
    Napi::Array place = Napi::Array::New(env, 2);
    place[0u] = Napi::Number::New(env, list);
    place[1u] = Napi::Number::New(env, record);
    return place;
  }

  void releaseGraph(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    requireOpen(env);
    gpuOf(env, core_->runtime().queue(info[0].ToNumber())).releaseGraph(info[1].ToNumber());
  }

  /// From a NativePlanQueue of the contract.
  PlanList planList(const Napi::Object& given) {
    const auto records = given.Get("records").As<Napi::TypedArray>();
    Queue* queue = core_->runtime().queue(given.Get("queue").ToNumber());
    if (queue == nullptr) fail(Env(), "OUT_OF_RANGE", "there is no such queue");
    return {queue, words(records),
            static_cast<std::int32_t>(records.ElementLength() / Record::words)};
  }

  DeviceThread& gpuOf(Napi::Env env, const Queue* queue) {
    if (queue == nullptr || queue->stream == nullptr) {
      fail(env, "OUT_OF_RANGE", "not a queue of a GPU");
    }
    return *queue->stream->thread;
  }

  /// A NativePlay of the contract.
  void play(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    requireOpen(env);
    const auto given = info[0].As<Napi::Object>();
    Runtime& runtime = core_->runtime();
    PlayOptions options;
    options.times = given.Get("times").ToNumber().Int64Value();
    options.room = given.Get("room").ToNumber().Int64Value();
    options.run = given.Get("run").ToNumber();
    options.parameters = reinterpret_cast<const double*>(words(given.Get("parameters")));
    options.slots = given.Get("slots").ToNumber();
    if (given.Get("condition").IsObject()) {
      options.condition = condition(given.Get("condition").As<Napi::Object>());
    }
    auto play = std::make_unique<Play>(options, runtime.cancelWord(options.run));
    const auto lists = given.Get("queues").As<Napi::Array>();
    const auto recordTimes = given.Get("recordTimes").As<Napi::Array>();
    for (std::uint32_t i = 0; i < lists.Length(); ++i) {
      const Napi::Value entry = lists[i];
      const auto list = entry.As<Napi::Object>();
      const PlanList planned = planList(list);
      const auto open = list.Get("open").As<Napi::TypedArray>();
      play->add(
          *planned.queue, planned.records, planned.length, words(open),
          static_cast<std::int32_t>(open.ElementLength() / PlanOpen::words),
          recordTimes.Length() == 0 ? nullptr : reinterpret_cast<double*>(words(recordTimes[i])));
    }
    played_ = Napi::Persistent(given);
    played_.SuppressDestruct();
    core_->play = std::move(play);
    core_->play->begin();
  }

  PlayCondition condition(const Napi::Object& given) {
    PlayCondition condition;
    const Space* space = core_->runtime().space(given.Get("space").ToNumber());
    const double offset = given.Get("offset").ToNumber();
    if (space == nullptr || space->kind > SpaceKind::emulated || !space->contains(offset, 8)) {
      fail(Env(), "OUT_OF_RANGE", "the processor cannot read the number of the condition");
    }
    condition.value = space->pointer(offset);
    condition.element = given.Get("element").ToNumber();
    condition.limit = given.Get("limit").ToNumber();
    condition.below = given.Get("below").ToBoolean();
    condition.every = given.Get("every").ToNumber().Int64Value();
    condition.first = given.Get("first").ToBoolean();
    return condition;
  }

  Napi::Value extendPlay(const Napi::CallbackInfo& info) {
    requireOpen(info.Env());
    const std::int64_t times = info[0].ToNumber().Int64Value();
    return Napi::Boolean::New(info.Env(), core_->play->extend(times));
  }

  Napi::Value playOutcome(const Napi::CallbackInfo& info) {
    requireOpen(info.Env());
    Play& play = *core_->play;
    Napi::Float64Array result = Napi::Float64Array::New(info.Env(), 1 + 2 * play.feeds().size());
    std::size_t at = 0;
    result[at++] = static_cast<double>(play.iterations());
    for (const auto& feed : play.feeds()) {
      double succeeded = 0;
      std::int32_t status = 0;
      feed->outcome(succeeded, status);
      result[at++] = succeeded;
      result[at++] = status;
    }
    core_->play = nullptr;
    played_.Reset();
    return result;
  }

  void close(const Napi::CallbackInfo&) { shutDown(false); }

  /// Joins the threads, then releases the objects that only they needed. `teardown`: inside the environment's cleanup hook.
  void shutDown(bool cancel, bool teardown = false) {
    if (closed_) return;
    closed_ = true;
    core_->close(cancel);
    doorbell_.release();
    views_.Reset();
    played_.Reset();
    callback_.Reset();
    if (!teardown) napi_remove_env_cleanup_hook(Env(), atTeardown, this);
  }

  std::unique_ptr<Core> core_;
  WakeFunction doorbell_;
  Napi::ObjectReference views_;
  Napi::FunctionReference callback_;
  /// The arrays of the play that is under way.
  Napi::ObjectReference played_;
  bool closed_ = false;
};

/// Address of a view's first byte.
Napi::Value address(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(
      info.Env(), static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(words(info[0]))));
}

Napi::Value nanoseconds(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(now()));
}

Napi::Value nanosecondsOfWork(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(workTime()));
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports["contract"] = Napi::Number::New(env, contractNumber);
  exports["Core"] = CoreObject::define(env);
  exports["ScriptServer"] = defineScriptServer(env);
  exports["address"] = Napi::Function::New<address>(env, "address");
  exports["now"] = Napi::Function::New<nanoseconds>(env, "now");
  exports["workTime"] = Napi::Function::New<nanosecondsOfWork>(env, "workTime");
  exports["queueTable"] = Napi::Function::New<queueTable>(env, "queueTable");
  exports["kernels"] = Napi::Function::New<builtInKernels>(env, "kernels");
  exports["rawLoop"] = Napi::Function::New<rawLoop>(env, "rawLoop");
  exports["probe"] = Napi::Function::New<probe>(env, "probe");
  return exports;
}

}  // namespace

NODE_API_MODULE(headrace, initialise)

}  // namespace headrace
