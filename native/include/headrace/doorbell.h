// The way in which native code outside of the core (the message layer) wakes the engine. The core hands out the address of
// one of these (`NativeCore.doorbell()`); it is valid until the core is closed.
//
// To lose no wake-up: make the news visible with a sequentially consistent store, then call `ring`. The engine stores
// that it is about to sleep, and checks for news after that.
#pragma once

extern "C" {

/// Layout shared by separately built addons: append only.
struct headrace_doorbell {
  /// Wakes the engine if it sleeps; cheap when it does not. Any thread.
  void (*ring)(void* self);
  void* self;
};
}
