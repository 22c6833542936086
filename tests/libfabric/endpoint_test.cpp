// SPDX-License-Identifier: BSD-3-Clause
// What a write with immediate data tells, where the queue of the link has no place for it at first.
// The provider's calls of stm_send come here: the program's own one precedes that of libst.
#include <dlfcn.h>
#include <stp/managed.h>

#include <atomic>

#include "tests/libfabric/rdm_fixture.h"

namespace {

std::atomic<int> refusals{0};  // so many calls find no place

}  // namespace

extern "C" __attribute__((visibility("default"))) int stm_send(stm_connection_t connection,
                                                               uint64_t context, unsigned flags,
                                                               uint32_t tag, stm_memory_t memory,
                                                               const void* ptr, size_t length) {
  static const auto real = reinterpret_cast<decltype(&stm_send)>(::dlsym(RTLD_NEXT, "stm_send"));
  if (refusals > 0 && refusals-- > 0) return -EAGAIN;
  return real(connection, context, flags, tag, memory, ptr, length);
}

namespace stp::test::endpoint_test {
namespace {

constexpr int kTimes = 5;

// Its bytes are there: it does not fail.
TEST_F(RdmTest, WhatIsToldOfAWriteWaitsForAPlaceInTheQueue) {
  std::vector<char> there(100);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  for (std::uint64_t i = 1; i <= 2; ++i)
    ASSERT_EQ(fi_writedata(a_->ep.get(), "flag", 4, nullptr, i, to_b_, at, key, nullptr), 0);
  refusals = kTimes;
  for (std::uint64_t i = 1; i <= 2; ++i) EXPECT_EQ(b_->completed(b_->rx.get()).data, i);
  for (int i = 0; i < 2; ++i) a_->completed(a_->tx.get());
  EXPECT_LE(refusals, 0);
}

// Nor does the peer miss it because its sender shuts down meanwhile.
TEST_F(FiTest, WhatIsToldOfAWriteWaitsForAPlaceInTheQueueBeforeTheEnd) {
  connect();
  std::vector<char> there(100);
  const auto remote = server_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  ASSERT_EQ(fi_writedata(connected_.get(), "flag", 4, nullptr, 1, 0, at, fi_mr_key(remote.get()),
                         nullptr),
            0);
  refusals = kTimes;
  ASSERT_EQ(fi_shutdown(connected_.get(), 0), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).data, 1U);
  client_->completed(client_->tx.get());
  EXPECT_LE(refusals, 0);
}

}  // namespace
}  // namespace stp::test::endpoint_test
