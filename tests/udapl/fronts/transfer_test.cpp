// SPDX-License-Identifier: BSD-3-Clause
// Sends, RDMA and RMRs.
#include <cstring>

#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

class FrontTransfer : public Front {
 protected:
  void SetUp() override {
    connect();
    std::memset(server.buffer.data(), 0, server.buffer.size());
  }
  void post_recv(std::size_t offset, std::size_t length, DAT_UINT64 value) {
    auto into = server.at(offset, length);
    ASSERT_EQ(dat_ep_post_recv(server.ep, 1, &into, cookie(value), DAT_COMPLETION_DEFAULT_FLAG),
              DAT_SUCCESS);
  }
  [[nodiscard]] bool arrived(std::size_t at, std::size_t from, std::size_t length) const {
    return std::memcmp(server.buffer.data() + at, client.buffer.data() + from, length) == 0;
  }
};
STP_BOTH_WAYS(FrontTransfer);

TEST_P(FrontTransfer, MessagesOfAllSizesGoToAndFro) {
  for (const auto length : {std::size_t{0}, std::size_t{64}, std::size_t{20'000}}) {
    post_recv(0, length, 7);
    ASSERT_EQ(name_of(send(length, 8)), "DAT_SUCCESS");
    const auto received = Side::completion(server.recv);
    EXPECT_EQ(received.ep_handle, server.ep);
    EXPECT_EQ(received.user_cookie.as_64, 7U);
    EXPECT_EQ(received.status, DAT_DTO_SUCCESS);
    EXPECT_EQ(received.transfered_length, length);
    EXPECT_TRUE(arrived(0, 0, length));
    EXPECT_EQ(Side::completion(client.request).user_cookie.as_64, 8U);

    auto into = client.at(0, length), from = server.at(0, length);
    ASSERT_EQ(dat_ep_post_recv(client.ep, 1, &into, cookie(9), DAT_COMPLETION_DEFAULT_FLAG),
              DAT_SUCCESS);
    ASSERT_EQ(dat_ep_post_send(server.ep, 1, &from, cookie(1), DAT_COMPLETION_SUPPRESS_FLAG),
              DAT_SUCCESS);
    EXPECT_EQ(Side::completion(client.recv).user_cookie.as_64, 9U);
  }
}

TEST_P(FrontTransfer, AnRdmaWriteOfSeveralSegmentsIsThereBeforeASendBehindIt) {
  post_recv(0, 16, 1);
  DAT_LMR_TRIPLET from[] = {client.at(100, 1000), client.at(5000, 24)};
  const auto to = server.remote(2000, 1024);
  ASSERT_EQ(name_of(dat_ep_post_rdma_write(client.ep, 2, from, cookie(2), &to,
                                           DAT_COMPLETION_DEFAULT_FLAG)),
            "DAT_SUCCESS");
  ASSERT_EQ(send(16), DAT_SUCCESS);
  Side::completion(server.recv);
  EXPECT_TRUE(arrived(2000, 100, 1000));
  EXPECT_TRUE(arrived(3000, 5000, 24));
  EXPECT_EQ(Side::completion(client.request).user_cookie.as_64, 2U);
}

TEST_P(FrontTransfer, AnRdmaReadFetchesWhatThePeerHas) {
  server.buffer[30'000] = 77;
  auto into = client.at(64, 512);
  const auto from = server.remote(30'000, 512);
  ASSERT_EQ(name_of(dat_ep_post_rdma_read(client.ep, 1, &into, cookie(3), &from,
                                          DAT_COMPLETION_DEFAULT_FLAG)),
            "DAT_SUCCESS");
  const auto read = Side::completion(client.request);
  EXPECT_EQ(read.status, DAT_DTO_SUCCESS);
  EXPECT_EQ(read.transfered_length, 512U);
  EXPECT_TRUE(arrived(30'000, 64, 512));
}

TEST_P(FrontTransfer, ABoundRmrIsAccessibleUntilItIsUnbound) {
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  ASSERT_EQ(dat_rmr_create(server.pz, &rmr), DAT_SUCCESS);
  auto part = server.at(4096, 256);
  DAT_RMR_CONTEXT context = 0;
  ASSERT_EQ(name_of(bind_rmr(rmr, server.lmr, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, server.ep,
                             cookie(5), &context)),
            "DAT_SUCCESS");
  const auto bound = Side::next(server.request);
  ASSERT_EQ(bound.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
  EXPECT_EQ(bound.event_data.rmr_completion_event_data.rmr_handle, rmr);
  EXPECT_EQ(bound.event_data.rmr_completion_event_data.user_cookie.as_64, 5U);
  EXPECT_EQ(bound.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
  DAT_RMR_PARAM param{};
  ASSERT_EQ(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(param.rmr_context, context);
  EXPECT_EQ(param.lmr_triplet.segment_length, 256U);

  auto from = client.at(0, 256);
  const auto to = target(context, server.buffer.data() + 4096, 256);
  ASSERT_EQ(dat_ep_post_rdma_write(client.ep, 1, &from, cookie(0), &to, {}), DAT_SUCCESS);
  EXPECT_EQ(Side::completion(client.request).status, DAT_DTO_SUCCESS);
  EXPECT_TRUE(arrived(4096, 0, 256));

  part.segment_length = 0;
  ASSERT_EQ(
      bind_rmr(rmr, server.lmr, &part, DAT_MEM_PRIV_NONE_FLAG, server.ep, cookie(6), &context),
      DAT_SUCCESS);
  Side::next(server.request);
  std::memset(server.buffer.data() + 4096, 0, 256);
  ASSERT_EQ(dat_ep_post_rdma_write(client.ep, 1, &from, cookie(0), &to, {}), DAT_SUCCESS);
  EXPECT_EQ(Side::completion(client.request).status, DAT_DTO_ERR_REMOTE_ACCESS);
  EXPECT_EQ(server.buffer[4096 + 1], 0);
}

TEST_P(FrontTransfer, DisconnectingFlushesReceivesAndIsToldToBoth) {
  post_recv(0, 16, 1);
  ASSERT_EQ(dat_ep_disconnect(server.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  EXPECT_EQ(Side::completion(server.recv).status, DAT_DTO_ERR_FLUSHED);
  EXPECT_EQ(Side::next(client.connect).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_EQ(Side::next(server.connect).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
}

TEST_P(FrontTransfer, SegmentsThatAreNotAllowedAreRefusedEachWithItsCode) {
  auto outside = client.at(client.buffer.size(), 1);
  EXPECT_EQ(name_of(dat_ep_post_send(client.ep, 1, &outside, cookie(0), {})),
            "DAT_INVALID_PARAMETER");
  EXPECT_EQ(name_of(dat_ep_post_send(client.ep, -1, &outside, cookie(0), {})),
            "DAT_INVALID_PARAMETER");
  EXPECT_EQ(name_of(dat_ep_post_send(client.ep, 1, nullptr, cookie(0), {})),
            "DAT_INVALID_PARAMETER");
  auto inside = client.at(0, 1);
  EXPECT_EQ(name_of(dat_ep_post_send(client.pz, 1, &inside, cookie(0), {})), "DAT_INVALID_HANDLE");
  auto huge = client.at(0, 1);
  huge.segment_length = ~DAT_SEG_LENGTH{0};
  EXPECT_EQ(name_of(dat_ep_post_send(client.ep, 1, &huge, cookie(0), {})), "DAT_INVALID_PARAMETER");
  DAT_PZ_HANDLE other = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE foreign = DAT_HANDLE_NULL;
  ASSERT_EQ(dat_pz_create(client.ia, &other), DAT_SUCCESS);
  DAT_REGION_DESCRIPTION region{};
  region.for_lmr_handle = client.lmr;
  auto wrong = client.at(0, 1);
  ASSERT_EQ(name_of(create_lmr(client.ia, DAT_MEM_TYPE_LMR, region, 0, other, DAT_MEM_PRIV_ALL_FLAG,
                               &foreign, &wrong.lmr_context, nullptr)),
            "DAT_SUCCESS");
  EXPECT_EQ(name_of(dat_ep_post_send(client.ep, 1, &wrong, cookie(0), {})),
            "DAT_PROTECTION_VIOLATION");
}

TEST_P(FrontTransfer, ADecidedRequestAndAFreedObjectAreInvalidHandles) {
  EXPECT_EQ(name_of(reject(cr)), "DAT_INVALID_HANDLE");
  ASSERT_EQ(dat_psp_free(psp), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_psp_free(psp)), "DAT_INVALID_HANDLE");
  ASSERT_EQ(dat_ep_free(client.ep), DAT_SUCCESS);
  EXPECT_EQ(name_of(send(1)), "DAT_INVALID_HANDLE");
}

}  // namespace
}  // namespace stp::test
