// Runs the native tests, each with its name; `headrace_tests [part of a name]`. Exit code 0 when all hold.
#include <cstring>

#include "machine.h"

namespace headrace::test {
std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}
}  // namespace headrace::test

int main(int count, char** arguments) {
  int run = 0;
  for (const auto& test : headrace::test::tests()) {
    if (count > 1 && std::strstr(test.name, arguments[1]) == nullptr) continue;
    std::printf("%s\n", test.name);
    std::fflush(stdout);
    test.body();
    ++run;
  }
  std::printf("%d native tests passed\n", run);
  return run > 0 ? 0 : 1;
}
