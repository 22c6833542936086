// SPDX-License-Identifier: BSD-3-Clause
// Oracles are GoogleTest's expectations; here one that fails ends the process, so that the fuzzer
// keeps the input and the stack shows where.
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
