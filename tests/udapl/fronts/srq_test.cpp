// SPDX-License-Identifier: BSD-3-Clause
// dat_srq_resize, dat_srq_post_recv, dat_srq_query, dat_ep_create_with_srq and dat_ep_recv_query,
// with a case for each promise of their pages.
#include <cstring>

#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

class FrontSrq : public Front {
 protected:
  FrontSrq() {
    DAT_SRQ_ATTR attr{10, 4, DAT_SRQ_LW_DEFAULT};
    EXPECT_EQ(name_of(dat_srq_create(server.ia, server.pz, &attr, &srq)), "DAT_SUCCESS");
    server.ep = server.make_ep(srq);
  }
  void post(DAT_UINT64 value) {
    auto into = server.at(value * 64, 64);
    ASSERT_EQ(name_of(dat_srq_post_recv(srq, 1, &into, cookie(value))), "DAT_SUCCESS");
  }
  DAT_SRQ_PARAM query() {
    DAT_SRQ_PARAM param{};
    EXPECT_EQ(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param), DAT_SUCCESS);
    return param;
  }
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
};
STP_BOTH_WAYS(FrontSrq);

TEST_P(FrontSrq, TheCountsAreThoseOfTheExampleOfThePage) {
  connect();
  for (DAT_UINT64 i = 0; i < 3; ++i) post(i);
  EXPECT_EQ(query().max_recv_dtos, 10);
  EXPECT_EQ(query().available_dto_count, 3);
  EXPECT_EQ(query().outstanding_dto_count, 3);
  ASSERT_EQ(send(16), DAT_SUCCESS);
  while (query().available_dto_count != 2) {
  }
  EXPECT_EQ(query().outstanding_dto_count, 3);
  EXPECT_EQ(Side::completion(server.recv).ep_handle, server.ep);
  EXPECT_EQ(query().available_dto_count, 2);
  EXPECT_EQ(query().outstanding_dto_count, 2);
  EXPECT_EQ(query().srq_state, DAT_SRQ_STATE_OPERATIONAL);
  EXPECT_EQ(query().pz_handle, server.pz);
}

TEST_P(FrontSrq, ResizeCountsAllOutstandingBuffersAndTheLowWatermark) {
  connect();
  for (DAT_UINT64 i = 0; i < 4; ++i) post(i);
  ASSERT_EQ(send(16), DAT_SUCCESS);
  while (query().available_dto_count != 3) {
  }
  EXPECT_EQ(name_of(dat_srq_resize(srq, 3)), "DAT_INVALID_STATE");
  EXPECT_EQ(query().max_recv_dtos, 10);
  Side::completion(server.recv);
  EXPECT_EQ(name_of(dat_srq_resize(srq, 3)), "DAT_SUCCESS");
  EXPECT_EQ(query().max_recv_dtos, 3);
  ASSERT_EQ(dat_srq_resize(srq, 8), DAT_SUCCESS);
  ASSERT_EQ(dat_srq_set_lw(srq, 5), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_srq_resize(srq, 4)), "DAT_INVALID_STATE");
  EXPECT_EQ(name_of(dat_srq_resize(srq, 0)), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(name_of(dat_srq_resize(server.ep, 5)), "DAT_INVALID_HANDLE");
}

TEST_P(FrontSrq, ResizingUnderTrafficLosesNoMessage) {
  connect();
  DAT_UINT64 posted = 0, sent = 0;
  for (; posted < 4; ++posted) post(posted);
  for (int round = 0; round < 50; ++round) {
    for (; sent < posted; ++sent)
      ASSERT_EQ(send(16, sent, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
    ASSERT_EQ(dat_srq_resize(srq, round % 2 == 0 ? 4 : 9), DAT_SUCCESS);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(Side::completion(server.recv).status, DAT_DTO_SUCCESS);
    for (int i = 0; i < 4; ++i) post(posted++ % 8);
  }
}

TEST_P(FrontSrq, PostRecvFillsSegmentsInTheirOrderAndReturnsTheCookie) {
  connect();
  std::memset(server.buffer.data(), 0, 1024);
  DAT_LMR_TRIPLET into[] = {server.at(100, 10), server.at(200, 10)};
  ASSERT_EQ(dat_srq_post_recv(srq, 2, into, cookie(42)), DAT_SUCCESS);
  ASSERT_EQ(send(15), DAT_SUCCESS);
  const auto received = Side::completion(server.recv);
  EXPECT_EQ(received.user_cookie.as_64, 42U);
  EXPECT_EQ(received.transfered_length, 15U);
  EXPECT_EQ(std::memcmp(server.buffer.data() + 100, client.buffer.data(), 10), 0);
  EXPECT_EQ(std::memcmp(server.buffer.data() + 200, client.buffer.data() + 10, 5), 0);
  EXPECT_EQ(server.buffer[205], 0);
}

TEST_P(FrontSrq, PostRecvOfNoSegmentsTakesAMessageOfNoBytes) {
  connect();
  ASSERT_EQ(dat_srq_post_recv(srq, 0, nullptr, cookie(1)), DAT_SUCCESS);
  ASSERT_EQ(send(0), DAT_SUCCESS);
  EXPECT_EQ(Side::completion(server.recv).transfered_length, 0U);
}

TEST_P(FrontSrq, PostRecvChecksTheQueueAndEachSegment) {
  auto outside = server.at(server.buffer.size(), 1);
  EXPECT_EQ(name_of(dat_srq_post_recv(srq, 1, &outside, cookie(0))), "DAT_INVALID_PARAMETER");
  auto unknown = server.at(0, 1);
  unknown.lmr_context = 0xdead;
  EXPECT_EQ(name_of(dat_srq_post_recv(srq, 1, &unknown, cookie(0))), "DAT_PRIVILEGES_VIOLATION");
  for (DAT_UINT64 i = 0; i < 10; ++i) post(i);
  EXPECT_EQ(name_of(dat_srq_post_recv(srq, 0, nullptr, cookie(0))), "DAT_INSUFFICIENT_RESOURCES");
}

TEST_P(FrontSrq, AnEpWithSrqTakesNoReceivesOfItsOwnAndNeedsAttributes) {
  EXPECT_EQ(name_of(dat_ep_post_recv(server.ep, 0, nullptr, cookie(0), {})), "DAT_INVALID_STATE");
  DAT_EP_HANDLE made = DAT_HANDLE_NULL;
  EXPECT_EQ(name_of(dat_ep_create_with_srq(server.ia, server.pz, server.recv, server.request,
                                           server.connect, srq, nullptr, &made)),
            "DAT_INVALID_PARAMETER");
  auto attr = server.attr;
  attr.max_recv_iov = 1'000'000;  // ignored
  EXPECT_EQ(name_of(dat_ep_create_with_srq(server.ia, server.pz, server.recv, server.request,
                                           server.connect, srq, &attr, &made)),
            "DAT_SUCCESS");
  attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  EXPECT_EQ(name_of(dat_ep_create_with_srq(server.ia, server.pz, server.recv, server.request,
                                           server.connect, srq, &attr, &made)),
            "DAT_INVALID_PARAMETER");
}

TEST_P(FrontSrq, TheEpHasTheAttributesThatWereAskedFor) {
  ask_for_message_size(server.attr, 5000);
  server.attr.max_rdma_size = 70'000;
  DAT_EP_PARAM param{};
  ASSERT_EQ(dat_ep_query(server.make_ep(srq), DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(param.ep_attr.max_message_size, 5000U);
  EXPECT_EQ(param.ep_attr.max_rdma_size, 70'000U);
  EXPECT_EQ(param.srq_handle, srq);
  EXPECT_EQ(param.ep_state, DAT_EP_STATE_UNCONNECTED);
}

TEST_P(FrontSrq, FewerBuffersThanTheLowWatermarkAreToldOnce) {
  connect();
  for (DAT_UINT64 i = 0; i < 4; ++i) post(i);
  ASSERT_EQ(dat_srq_set_lw(srq, 3), DAT_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(send(16), DAT_SUCCESS);
    Side::completion(server.recv);
  }
  const auto told = Side::next(server.async);
  EXPECT_EQ(told.event_data.asynch_error_event_data.dat_handle, srq);
  EXPECT_EQ(told.event_data.asynch_error_event_data.reason, DAT_SRQ_LOW_WATERMARK_EVENT);
  DAT_EVENT event;
  EXPECT_EQ(dat_evd_dequeue(server.async, &event), DAT_QUEUE_EMPTY);
}

TEST_P(FrontSrq, RecvQueryCountsBuffersOfTheEpAndNoneThatAreStillInTheSrq) {
  auto* const own = client.make_ep();
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(dat_ep_post_recv(own, 0, nullptr, cookie(0), {}), DAT_SUCCESS);
  DAT_COUNT buffers = -1, span = -1;
  ASSERT_EQ(dat_ep_recv_query(own, &buffers, &span), DAT_SUCCESS);
  EXPECT_EQ(buffers, 2);
  EXPECT_EQ(span, 2);
  post(1);
  ASSERT_EQ(dat_ep_recv_query(server.ep, &buffers, &span), DAT_SUCCESS);
  EXPECT_EQ(buffers, 0);
  EXPECT_EQ(span, 0);
  EXPECT_EQ(name_of(dat_ep_recv_query(srq, &buffers, &span)), "DAT_INVALID_HANDLE");
}

}  // namespace
}  // namespace stp::test
