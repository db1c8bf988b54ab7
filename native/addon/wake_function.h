// A function that other threads call and that runs on the JavaScript thread: its calls may be outstanding when the object
// that made it is gone.
//
// Invariant: a call that is delivered after `release`, or after the object was destroyed (garbage collection deletes a
// closed object while Node still holds its calls), does nothing. Node holds the target, not the object, until no call can
// come any more.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>

namespace headrace {

/// All but `call` on the JavaScript thread.
class WakeFunction {
 public:
  WakeFunction() = default;
  WakeFunction(const WakeFunction&) = delete;
  WakeFunction& operator=(const WakeFunction&) = delete;
  ~WakeFunction() { release(); }

  /// `woken` runs on the JavaScript thread, at most once for every call. `most`: calls that are held at a time, 0 for any
  /// number. The function keeps the event loop alive until `unref`.
  void open(Napi::Env env, const char* name, std::size_t most,
            std::function<void(Napi::Env)> woken) {
    target_ = std::make_shared<Target>();
    target_->woken = std::move(woken);
    auto* held = new std::shared_ptr<Target>(target_);
    function_ =
        Function::New(env, name, most, 1, held, [](Napi::Env, void*, std::shared_ptr<Target>* end) {
          (*end)->isOver = true;
          delete end;
        });
  }
  /// Any thread, until `release`.
  void call() { function_.NonBlockingCall(); }
  void ref(Napi::Env env) { function_.Ref(env); }
  void unref(Napi::Env env) { function_.Unref(env); }
  /// No thread calls any more.
  void release() {
    if (target_ == nullptr) return;
    target_->isReleased = true;
    // Node has ended it by itself when the environment is torn down.
    if (!target_->isOver) function_.Release();
    target_ = nullptr;
  }

 private:
  struct Target {
    std::function<void(Napi::Env)> woken;
    bool isReleased = false;
    bool isOver = false;
  };

  static void onCall(Napi::Env env, Napi::Function, std::shared_ptr<Target>* held, void*) {
    // No environment: it is being torn down.
    if (env != nullptr && !(*held)->isReleased) (*held)->woken(env);
  }
  using Function = Napi::TypedThreadSafeFunction<std::shared_ptr<Target>, void, onCall>;

  std::shared_ptr<Target> target_;
  Function function_;
};

}  // namespace headrace
