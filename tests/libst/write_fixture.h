// SPDX-License-Identifier: BSD-3-Clause
// The steps of a Write at level 0, header by header: RTS, CTS, DATA.
#pragma once

#include <cstring>

#include "tests/libst/libst_fixture.h"

namespace stp::test {

// Polls memory that the link may be writing to at the same time.
__attribute__((no_sanitize("thread"))) inline bool has_arrived(const volatile unsigned char* byte) {
  return *byte != 0;
}
// Compares memory in the same way, without a call that would order the link's writes.
__attribute__((no_sanitize("thread"))) inline bool are_equal(const volatile unsigned char* a,
                                                             const volatile unsigned char* b,
                                                             std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

class WriteTest : public ConnectedTest {
 protected:
  static constexpr std::size_t kBufsize = 16'384;
  static constexpr unsigned kBlocksize = 16;

  // Unmaps the buffers before the endpoints are deleted.
  void TearDown() override {
    for (auto* const region : {source_region_, target_region_})
      if (region != nullptr) st_unmap(region);
    ConnectedTest::TearDown();
  }

  void map(std::size_t bytes) {
    source_.emplace(bytes, 3);
    target_.emplace(bytes, 0, false);
    ASSERT_EQ(st_map(client_, ST_MAP_TX, source_->data(), source_->length(), 0, -1, &source_region_,
                     nullptr),
              0);
    ASSERT_EQ(st_map(server_, ST_MAP_RX, target_->data(), target_->length(), 0, -1, &target_region_,
                     &mx_),
              0);
  }

  // The client sends an RTS. The server then grants Block after Block.
  void announce(std::uint64_t bytes) {
    auto rts = header(ST_OP_RTS);
    rts.cts_req = 1;
    rts.max_block = kBlocksize;
    rts.d_id = ST_NO_ID;
    rts.s_id = 7;
    st_set_t_len(&rts, bytes);
    ASSERT_EQ(send(connected_, rts), 0);
    ASSERT_EQ(receive(accepted_, got_), 0);
    ASSERT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_RTS});
    ASSERT_EQ(st_t_len(&got_), bytes);
    ASSERT_EQ(got_.s_id, 7u);
  }

  void permit(std::uint32_t block) {
    auto cts = header(ST_OP_CTS);
    cts.blocksize = kBlocksize;
    cts.r_mx = static_cast<std::uint16_t>(mx_);
    cts.r_bufx = block * ((1u << kBlocksize) / kBufsize);
    cts.b_num = block;
    cts.d_id = 7;
    cts.s_id = 9;
    ASSERT_EQ(send(accepted_, cts), 0) << st_strerror(-ERANGE);
    ASSERT_EQ(receive(connected_, got_), 0);
    ASSERT_EQ(ST_OP(got_.op_flags), unsigned{ST_OP_CTS});
  }

  // Answers the CTS that was received last.
  void send_block(std::size_t bytes, unsigned flags = 0, void* append = nullptr) {
    auto data = header(ST_OP_DATA, flags);
    data.r_mx = got_.r_mx;
    data.r_bufx = got_.r_bufx;
    data.r_offset = got_.r_offset;
    data.b_num = got_.b_num;
    data.d_id = got_.s_id;
    data.opaque = 0xabcd;
    const auto first = static_cast<int>(got_.b_num * ((1u << kBlocksize) / kBufsize));
    const auto error = st_tx(connected_, &data, append, static_cast<int>(bytes), first, 0);
    ASSERT_EQ(error, 0) << st_strerror(error);
  }

  void expect_target_equals_source(std::size_t bytes) {
    EXPECT_TRUE(are_equal(target_->data(), source_->data(), bytes));
  }

  std::optional<Buffer> source_, target_;
  st_mhandle_t source_region_ = nullptr, target_region_ = nullptr;
  int mx_ = -1;
  st_header_t got_{};
};

}  // namespace stp::test
