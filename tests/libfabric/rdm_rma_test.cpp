// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads of endpoints of FI_EP_RDM.
#include "tests/libfabric/rdm_fixture.h"

namespace stp::test {
namespace {

class RdmRma : public RdmTest {};

TEST_F(RdmRma, WritesAndReadsMoveBytesWithoutThePeersProgram) {
  for (const std::size_t size : {1, 5000, 300'000}) {
    const auto bytes = pattern(size);
    std::vector<char> there(size), back(size);
    const auto remote = b_->memory(there.data(), size, FI_REMOTE_READ | FI_REMOTE_WRITE);
    auto key = fi_mr_key(remote.get());
    const auto at = reinterpret_cast<std::uintptr_t>(there.data());
    ASSERT_EQ(fi_write(a_->ep.get(), bytes.data(), size, nullptr, to_b_, at, key, &key), 0);
    const auto written = a_->completed(a_->tx.get());
    EXPECT_EQ(written.op_context, &key);
    EXPECT_EQ(written.flags, FI_RMA | FI_WRITE);
    EXPECT_EQ(there, bytes);
    const std::vector<iovec> parts{{back.data(), size / 2}, {&back[size / 2], size - size / 2}};
    ASSERT_EQ(fi_readv(a_->ep.get(), parts.data(), nullptr, 2, to_b_, at, key, nullptr), 0);
    EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_RMA | FI_READ);
    EXPECT_EQ(back, bytes);
  }
}

TEST_F(RdmRma, AWriteWithDataIsToldAtThePeerWithoutAReceive) {
  std::vector<char> there(100);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  ASSERT_EQ(fi_writedata(a_->ep.get(), "flag", 4, nullptr, 42, to_b_, at, fi_mr_key(remote.get()),
                         nullptr),
            0);
  const auto told = b_->completed(b_->rx.get());
  EXPECT_EQ(told.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(told.data, 42U);
  EXPECT_EQ(told.len, 4U);
  EXPECT_EQ(std::string(there.data(), 4), "flag");
  a_->completed(a_->tx.get());
}

TEST_F(RdmRma, AccessThatIsNotGrantedFails) {
  std::vector<char> there(100), here(200);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_READ);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  ASSERT_EQ(fi_write(a_->ep.get(), here.data(), 1, nullptr, to_b_, at, key, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(fi_read(a_->ep.get(), here.data(), 101, nullptr, to_b_, at, key, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(fi_read(a_->ep.get(), here.data(), 0, nullptr, to_b_, at, key, nullptr), 0);
  a_->completed(a_->tx.get());
}

TEST_F(RdmRma, InjectedBytesAreWritten) {
  std::vector<char> there(8);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  std::string sent = "injected";
  ASSERT_EQ(fi_inject_writedata(a_->ep.get(), sent.data(), 8, 1, to_b_, at, key), 0);
  sent = "xxxxxxxx";
  b_->completed(b_->rx.get());
  EXPECT_EQ(std::string(there.data(), 8), "injected");
  a_->expect_nothing(a_->tx.get());
}

}  // namespace
}  // namespace stp::test
