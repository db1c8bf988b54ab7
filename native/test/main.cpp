// Runs the native tests, each with its name; `headrace_tests [part of a name]`. Ends at the first failure with code 1; else
// the last line is `tests: N passed, 0 failed, N skipped`.
#include <cstring>

#include "machine.h"

namespace headrace::test {

namespace {
bool isLeftOut = false;
}  // namespace

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

void leaveOut(const char* needs) {
  std::printf("  (left out here: needs %s)\n", needs);
  isLeftOut = true;
}

/// True when the test was run to its end.
bool runs(const Test& test) {
  isLeftOut = false;
  std::printf("%s\n", test.name);
  std::fflush(stdout);
  test.body();
  return !isLeftOut;
}

}  // namespace headrace::test

int main(int count, char** arguments) {
  int passed = 0;
  int skipped = 0;
  for (const auto& test : headrace::test::tests()) {
    if (count > 1 && std::strstr(test.name, arguments[1]) == nullptr) continue;
    ++(headrace::test::runs(test) ? passed : skipped);
  }
  std::printf("tests: %d passed, 0 failed, %d skipped\n", passed, skipped);
  return passed + skipped > 0 ? 0 : 1;
}
