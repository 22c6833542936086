// SPDX-License-Identifier: BSD-3-Clause
// A client of stpd's socket whose messages, descriptors, rings and manners the fuzzer chooses. The
// pair beside it goes on, and nothing of it stays.
#include "tests/fuzz/byte_code.h"
#include "tests/service/hostile_client.h"
#include "tests/service/served_pair.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stp;
  service::ServedPair pair;
  fuzz::ByteCode code(Bytes(reinterpret_cast<const std::byte*>(data), size));
  service::Hostile(pair.path, [&] { return std::uint64_t{code.number()}; }).live();
  EXPECT_TRUE(pair.talks(1));
  EXPECT_TRUE(pair.is_alone());
  return 0;
}
