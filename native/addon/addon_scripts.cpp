// A script worker's hold on its queue: see addon/addon_scripts.h.
//
// Lifetime rules: the server lets go of its queue before the thread-safe function that wakes it is destroyed, in a
// cleanup hook that was registered after the function was made. The core outlives the server (workers/script_port.h).
#include "addon/addon_scripts.h"

#include <cstring>
#include <memory>
#include <string>

#include "addon/values.h"
#include "addon/wake_function.h"

namespace headrace {

Napi::Value viewOfHost(const Napi::CallbackInfo& info, const Core& core) {
  const Napi::Env env = info.Env();
  const double offset = info[0].ToNumber().DoubleValue();
  const double length = info[1].ToNumber().DoubleValue();
  if (!core.space(0).contains(offset, length)) {
    fail(env, "OUT_OF_RANGE",
         "host bytes " + std::to_string(offset) + " + " + std::to_string(length) +
             " lie outside the host space");
  }
  if (length == 0) return Napi::ArrayBuffer::New(env, 0);
  // The reservation lives as long as any view of it. `close` does not detach the views: once a process has detached
  // one buffer, V8 checks every access to every typed array.
  auto* owner = new std::shared_ptr<HostMemory>(core.host());
  const auto count = static_cast<std::size_t>(length);
  return Napi::ArrayBuffer::New(
      env, (*owner)->data() + static_cast<std::size_t>(offset), count,
      [](Napi::Env, void*, std::shared_ptr<HostMemory>* held) { delete held; }, owner);
}

namespace {

class ServerObject : public Napi::ObjectWrap<ServerObject> {
 public:
  /// (core, queue, into, call, wake)
  explicit ServerObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<ServerObject>(info) {
    const Napi::Env env = info.Env();
    bool lossless = false;
    core_ = reinterpret_cast<Core*>(
        static_cast<std::uintptr_t>(info[0].As<Napi::BigInt>().Uint64Value(&lossless)));
    ScriptPort* port = core_->scriptPort(info[1].ToNumber());
    if (port == nullptr) fail(env, "OUT_OF_RANGE", "not the queue of a script worker");
    into_ = reinterpret_cast<double*>(words(info[2]));
    call_ = words(info[3]);
    Napi::Object views = Napi::Object::New(env);
    views["into"] = info[2];
    views["call"] = info[3];
    views_ = Napi::Persistent(views);
    views_.SuppressDestruct();
    waker_ = Napi::Persistent(info[4].As<Napi::Function>());
    waker_.SuppressDestruct();
    wake_.open(env, "headrace script worker", 0, [this](Napi::Env at) { onWake(at); });
    try {
      server_ = std::make_unique<ScriptServer>(*port, [this] { wake_.call(); });
    } catch (const CoreError& error) {
      wake_.release();
      fail(env, error.code(), error.what());
    }
    napi_add_env_cleanup_hook(env, atTeardown, this);
  }

  ~ServerObject() override {
    if (server_ == nullptr) return;
    server_->letGo();
    napi_remove_env_cleanup_hook(Env(), atTeardown, this);
  }

  Napi::Value next(const Napi::CallbackInfo& info) {
    const std::int32_t kernel = server_->next(info[0].As<Napi::Number>().Int32Value());
    if (kernel >= 0) {
      Executor& executor = server_->executor();
      const Command command = executor.started();
      const std::int32_t flows = command.flowCount();
      std::int32_t count = command.argumentCount();
      std::memcpy(into_, executor.startedArguments(), sizeof(double) * count);
      // The record names a list of lengths or carries them.
      const double* lengths = core_->runtime().lengths.at(command.lengths(), flows);
      if (lengths != nullptr) {
        std::memcpy(into_ + count, lengths, sizeof(double) * flows);
        count += flows;
      }
      call_[ScriptCall::flows] = flows;
      call_[ScriptCall::arguments] = count;
    } else if (kernel == ScriptNext::end) {
      // The thread has nothing to stay for.
      wake_.unref(info.Env());
    }
    return Napi::Number::New(info.Env(), kernel);
  }

  Napi::Value rest(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), server_->rest());
  }

  void throws(const Napi::CallbackInfo& info) { server_->setThrown(bytesOf(info[0])); }

  void ends(const Napi::CallbackInfo& info) { server_->setLastWords(bytesOf(info[0])); }

  Napi::Value hostView(const Napi::CallbackInfo& info) { return viewOfHost(info, *core_); }

  void forget(const Napi::CallbackInfo& info) { info[0].As<Napi::ArrayBuffer>().Detach(); }

  Napi::Value hostBytes(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), static_cast<double>(core_->space(0).bytes));
  }

 private:
  void onWake(Napi::Env env) {
    // The plain call, as for the doorbell: an exception of the callback stays pending and becomes Node's.
    napi_value ignored = nullptr;
    napi_call_function(env, env.Undefined(), waker_.Value(), 0, nullptr, &ignored);
  }

  static void atTeardown(void* object) { static_cast<ServerObject*>(object)->server_->letGo(); }

  Core* core_ = nullptr;
  double* into_ = nullptr;
  std::int32_t* call_ = nullptr;
  Napi::ObjectReference views_;
  Napi::FunctionReference waker_;
  WakeFunction wake_;
  std::unique_ptr<ScriptServer> server_;
};

}  // namespace

Napi::Function defineScriptServer(Napi::Env env) {
  return ServerObject::DefineClass(
      env, "ScriptServer",
      {
          ServerObject::InstanceMethod<&ServerObject::next>("next"),
          ServerObject::InstanceMethod<&ServerObject::rest>("rest"),
          ServerObject::InstanceMethod<&ServerObject::throws>("throws"),
          ServerObject::InstanceMethod<&ServerObject::ends>("ends"),
          ServerObject::InstanceMethod<&ServerObject::hostView>("hostView"),
          ServerObject::InstanceMethod<&ServerObject::forget>("forget"),
          ServerObject::InstanceMethod<&ServerObject::hostBytes>("hostBytes"),
      });
}

}  // namespace headrace
