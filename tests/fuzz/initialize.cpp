// SPDX-License-Identifier: BSD-3-Clause
// The fuzz targets check with GoogleTest's expectations. Here a failed one ends the process, so
// that the fuzzer keeps the input and the stack shows the place.
//
// FUZZER replay CORPUS [COUNT] runs each input of a corpus once, and ends.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/fuzz/replay.h"

namespace {

class AbortOnFailure : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed()) std::abort();
  }
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ::testing::UnitTest::GetInstance()->listeners().Append(new AbortOnFailure);
  const auto arguments = *argv;
  if (*argc < 3 || arguments[1] != std::string("replay")) return 0;
  std::optional<std::size_t> count;
  if (*argc > 3) count = std::stoul(arguments[3]);
  std::exit(stp::fuzz::replay(arguments[2], count));
}
