// Libraries found at run time: tries names in order, resolves symbols, remembers the reason of a failure. Never unloads:
// drivers keep threads and handlers of their own.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace headrace {

class SharedLibrary {
 public:
  /// Opens the first of `names` that loads; a non-empty `only` (from an environment variable) excludes all others.
  SharedLibrary(const char* only, std::initializer_list<const char*> names) {
    std::vector<std::string> candidates(names.begin(), names.end());
    if (only != nullptr && *only != '\0') candidates = {only};
    for (const std::string& name : candidates) {
      handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) {
        name_ = name;
        reason_.clear();
        return;
      }
      const char* text = dlerror();
      if (reason_.empty() && text != nullptr) reason_ = text;
    }
  }

  bool found() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  /// Why it did not open, or which symbol was missing first.
  const std::string& reason() const { return reason_; }

  void* find(const char* symbol) const { return dlsym(handle_, symbol); }

  /// Fills a function pointer; false (and a reason) when the symbol does not exist.
  template <typename Function>
  bool get(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(find(symbol));
    if (function != nullptr) return true;
    if (reason_.empty()) reason_ = name_ + " has no " + symbol;
    return false;
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
  std::string reason_;
};

}  // namespace headrace
