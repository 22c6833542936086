// SPDX-License-Identifier: BSD-3-Clause
// What libFuzzer's main does with files: runs the target once on each. For any compiler.
#include "tests/fuzz/replay.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; ++i)
    if (!stp::fuzz::replay_file(argv[i])) return 2;
  return argc > 1 ? 0 : 2;
}
