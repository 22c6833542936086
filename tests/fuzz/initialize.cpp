// SPDX-License-Identifier: BSD-3-Clause
// The fuzz targets check with GoogleTest's expectations. Here a failed one ends the process, so
// that the fuzzer keeps the input and the stack shows the place.
#include <gtest/gtest.h>

#include <cstdlib>

namespace {

class AbortOnFailure : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed()) std::abort();
  }
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  ::testing::UnitTest::GetInstance()->listeners().Append(new AbortOnFailure);
  return 0;
}
