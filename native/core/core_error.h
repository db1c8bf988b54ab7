// The one exception of the core: a stable code and a text. The addon turns it into a JavaScript error with `code`.
#pragma once

#include <stdexcept>
#include <string>

namespace headrace {

class CoreError : public std::runtime_error {
 public:
  CoreError(const char* code, const std::string& text) : std::runtime_error(text), code_(code) {}
  const char* code() const { return code_; }

 private:
  const char* code_;
};

}  // namespace headrace
