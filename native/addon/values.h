// Errors and views of JavaScript, for all parts of the Node-API surface.
#pragma once

#include <napi.h>

#include <cstdint>
#include <string>

namespace headrace {

[[noreturn]] inline void fail(Napi::Env env, const char* code, const std::string& text) {
  Napi::Error error = Napi::Error::New(env, text);
  error.Set("code", Napi::String::New(env, code));
  throw error;
}

/// Address of a typed array's first byte. Works for views of shared memory too, whose `ArrayBuffer()` must not be
/// called on Node 20.
inline std::int32_t* words(const Napi::Value& value) {
  const auto array = value.As<Napi::TypedArray>();
  void* data = nullptr;
  std::size_t length = 0;
  napi_get_typedarray_info(array.Env(), array, nullptr, &length, &data, nullptr, nullptr);
  return static_cast<std::int32_t*>(data);
}

/// The bytes of a Uint8Array.
inline std::string bytesOf(const Napi::Value& value) {
  const auto array = value.As<Napi::Uint8Array>();
  return {reinterpret_cast<const char*>(array.Data()), array.ByteLength()};
}

}  // namespace headrace
