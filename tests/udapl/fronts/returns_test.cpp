// SPDX-License-Identifier: BSD-3-Clause
// Provokes each return value that the pages of dat_evd_wait, dat_srq_resize, dat_srq_post_recv,
// dat_ep_create_with_srq and dat_ep_recv_query list.
#include <array>

#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

class FrontReturns : public Front {
 protected:
  FrontReturns() {
    EXPECT_EQ(name_of(dat_srq_create(server.ia, server.pz, &srq_attr, &srq)), "DAT_SUCCESS");
    EXPECT_EQ(name_of(dat_ia_query(server.ia, nullptr, DAT_IA_FIELD_ALL, &ia_attr,
                                   DAT_PROVIDER_FIELD_NONE, nullptr)),
              "DAT_SUCCESS");
  }

  // The arguments of dat_ep_create_with_srq. Each case changes one.
  struct Arguments {
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    DAT_EVD_HANDLE recv, request, connect;
    DAT_SRQ_HANDLE srq;
    DAT_EP_ATTR attr;
  };
  [[nodiscard]] Arguments good() const {
    return {server.ia, server.pz, server.recv, server.request, server.connect, srq, server.attr};
  }
  static std::string create(Arguments with) {
    DAT_EP_HANDLE made = DAT_HANDLE_NULL;
    const auto result = dat_ep_create_with_srq(with.ia, with.pz, with.recv, with.request,
                                               with.connect, with.srq, &with.attr, &made);
    if (result == DAT_SUCCESS) {
      EXPECT_EQ(dat_ep_free(made), DAT_SUCCESS);
    }
    return name_of(result);
  }
  // Calls it with one attribute changed.
  template <typename Member, typename Value>
  std::string create_with(Member DAT_EP_ATTR::*member, Value value) {
    auto with = good();
    with.attr.*member = value;
    return create(with);
  }
  std::string post(DAT_COUNT count, DAT_LMR_TRIPLET* segments) {
    return name_of(dat_srq_post_recv(srq, count, segments, cookie(0)));
  }
  // Registers a part of the server's buffer again.
  DAT_LMR_TRIPLET registered(DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges) {
    DAT_REGION_DESCRIPTION region{};
    region.for_va = server.buffer.data();
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT context = 0;
    EXPECT_EQ(name_of(create_lmr(server.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, pz, privileges,
                                 &lmr, &context, nullptr)),
              "DAT_SUCCESS");
    return segment(context, server.buffer.data(), 64);
  }

  DAT_SRQ_ATTR srq_attr{8, 2, DAT_SRQ_LW_DEFAULT};
  DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
  DAT_IA_ATTR ia_attr{};
};
STP_BOTH_WAYS(FrontReturns);

TEST_P(FrontReturns, EvdWaitWithoutAPlaceForTheEventOrTheNumberIsAnInvalidParameter) {
  DAT_EVENT event;
  DAT_COUNT nmore = 0;
  EXPECT_EQ(name_of(dat_evd_wait(server.recv, 0, 1, nullptr, &nmore)), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(name_of(dat_evd_wait(server.recv, 0, 1, &event, nullptr)), "DAT_INVALID_PARAMETER");
}

TEST_P(FrontReturns, EvdWaitOnWhatIsNoEvdIsAnInvalidHandle) {
  DAT_EVENT event;
  DAT_COUNT nmore = 0;
  EXPECT_EQ(name_of(dat_evd_wait(srq, 0, 1, &event, &nmore)), "DAT_INVALID_HANDLE");
  EXPECT_EQ(name_of(dat_evd_wait(DAT_HANDLE_NULL, 0, 1, &event, &nmore)), "DAT_INVALID_HANDLE");
}

TEST_P(FrontReturns, SrqResizeToMoreThanAnIaHasIsInsufficientResources) {
  EXPECT_EQ(name_of(dat_srq_resize(srq, ia_attr.max_recv_per_srq + 1)),
            "DAT_INSUFFICIENT_RESOURCES");
  DAT_SRQ_PARAM param{};
  ASSERT_EQ(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(param.max_recv_dtos, 8);
}

TEST_P(FrontReturns, SrqResizeOfAFreedSrqIsAnInvalidHandleAndToNoLengthAnInvalidParameter) {
  EXPECT_EQ(name_of(dat_srq_resize(srq, -1)), "DAT_INVALID_PARAMETER");
  ASSERT_EQ(dat_srq_free(srq), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_srq_resize(srq, 4)), "DAT_INVALID_HANDLE");
}

TEST_P(FrontReturns, SrqPostRecvToAFreedSrqIsAnInvalidHandle) {
  EXPECT_EQ(name_of(dat_srq_post_recv(server.recv, 0, nullptr, cookie(0))), "DAT_INVALID_HANDLE");
  ASSERT_EQ(dat_srq_free(srq), DAT_SUCCESS);
  EXPECT_EQ(post(0, nullptr), "DAT_INVALID_HANDLE");
}

TEST_P(FrontReturns, SrqPostRecvOfSegmentsThatAreNoneIsAnInvalidParameter) {
  std::array segments{server.at(0, 1), server.at(1, 1), server.at(2, 1)};
  EXPECT_EQ(post(3, segments.data()), "DAT_INVALID_PARAMETER");  // more than max_recv_iov
  EXPECT_EQ(post(-1, segments.data()), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(post(1, nullptr), "DAT_INVALID_PARAMETER");
  auto beyond = server.at(server.buffer.size() - 1, 2);
  EXPECT_EQ(post(1, &beyond), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(post(2, segments.data()), "DAT_SUCCESS");
}

TEST_P(FrontReturns, SrqPostRecvIntoAnotherZoneIsAProtectionViolation) {
  DAT_PZ_HANDLE other = DAT_HANDLE_NULL;
  ASSERT_EQ(dat_pz_create(server.ia, &other), DAT_SUCCESS);
  auto into = registered(other, DAT_MEM_PRIV_ALL_FLAG);
  EXPECT_EQ(post(1, &into), "DAT_PROTECTION_VIOLATION");
}

TEST_P(FrontReturns, SrqPostRecvIntoWhatIsReadOnlyIsAPrivilegesViolation) {
  auto into = registered(server.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  EXPECT_EQ(post(1, &into), "DAT_PRIVILEGES_VIOLATION");
}

TEST_P(FrontReturns, EpCreateWithSrqChecksEachHandle) {
  for (const auto member : {&Arguments::pz, &Arguments::recv, &Arguments::request,
                            &Arguments::connect, &Arguments::srq}) {
    auto with = good();
    with.*member = client.lmr;
    EXPECT_EQ(create(with), "DAT_INVALID_HANDLE");
  }
  for (const auto member : {&Arguments::recv, &Arguments::request, &Arguments::connect}) {
    auto with = good();
    with.*member = DAT_HANDLE_NULL;
    EXPECT_EQ(create(with), "DAT_SUCCESS");
  }
  auto with = good();
  with.ia = DAT_HANDLE_NULL;
  EXPECT_EQ(create(with), "DAT_INVALID_HANDLE");
}

TEST_P(FrontReturns, EpCreateWithSrqOfMoreThanTheIaHasIsAnInvalidParameter) {
  EXPECT_EQ(
      create_with(&DAT_EP_ATTR::max_rdma_read_iov, ia_attr.max_iov_segments_per_rdma_read + 1),
      "DAT_INVALID_PARAMETER");
  EXPECT_EQ(create_with(&DAT_EP_ATTR::max_rdma_read_out, ia_attr.max_rdma_read_per_ep_out + 1),
            "DAT_INVALID_PARAMETER");
  EXPECT_EQ(create_with(&DAT_EP_ATTR::max_request_dtos, ia_attr.max_dto_per_ep + 1),
            "DAT_INVALID_PARAMETER");
  EXPECT_EQ(create_with(&DAT_EP_ATTR::max_message_size, ia_attr.max_message_size + 1),
            "DAT_INVALID_PARAMETER");
  EXPECT_EQ(create_with(&DAT_EP_ATTR::ep_provider_specific_count, 1), "DAT_INVALID_PARAMETER");
}

TEST_P(FrontReturns, EpCreateWithSrqOfPartsThatDoNotGoTogetherIsAnInvalidParameter) {
  auto with = good();
  with.connect = server.recv;  // it takes no connection events
  EXPECT_EQ(create(with), "DAT_INVALID_PARAMETER");
  with = good();
  with.recv = server.connect;
  EXPECT_EQ(create(with), "DAT_INVALID_PARAMETER");
  const auto ep = server.make_ep(srq);
  for (const auto flag : {DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
                          DAT_COMPLETION_EVD_THRESHOLD_FLAG})
    EXPECT_EQ(create_with(&DAT_EP_ATTR::recv_completion_flags, flag), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(create_with(&DAT_EP_ATTR::request_completion_flags, DAT_COMPLETION_UNSIGNALLED_FLAG),
            "DAT_INVALID_PARAMETER");
  ASSERT_EQ(dat_ep_free(ep), DAT_SUCCESS);
  EXPECT_EQ(create_with(&DAT_EP_ATTR::recv_completion_flags, DAT_COMPLETION_UNSIGNALLED_FLAG),
            "DAT_SUCCESS");
}

TEST_P(FrontReturns, EpCreateWithSrqOfAnotherQualityOfServiceIsAModelThatIsNotSupported) {
  EXPECT_EQ(create_with(&DAT_EP_ATTR::qos, DAT_QOS_HIGH_THROUGHPUT), "DAT_MODEL_NOT_SUPPORTED");
}

TEST_P(FrontReturns, EpCreateWithSrqGivesTheAttributesThatWereAskedFor) {
  auto with = good();
  auto& asked = with.attr;
  asked.max_recv_dtos = 7, asked.max_request_dtos = 9, asked.max_request_iov = 3;
  asked.max_rdma_read_in = 2, asked.max_rdma_read_out = 5, asked.srq_soft_hw = 6;
  asked.max_rdma_read_iov = 4, asked.max_rdma_write_iov = 8;
  DAT_EP_HANDLE made = DAT_HANDLE_NULL;
  ASSERT_EQ(name_of(dat_ep_create_with_srq(with.ia, with.pz, with.recv, with.request, with.connect,
                                           with.srq, &asked, &made)),
            "DAT_SUCCESS");
  DAT_EP_PARAM param{};
  ASSERT_EQ(dat_ep_query(made, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
  const auto& has = param.ep_attr;
  for (const auto member : {&DAT_EP_ATTR::max_recv_dtos, &DAT_EP_ATTR::max_rdma_read_in,
                            &DAT_EP_ATTR::max_rdma_read_out, &DAT_EP_ATTR::srq_soft_hw,
                            &DAT_EP_ATTR::max_rdma_read_iov, &DAT_EP_ATTR::max_rdma_write_iov})
    EXPECT_EQ(has.*member, asked.*member);
  EXPECT_GE(has.max_request_dtos, asked.max_request_dtos);
  EXPECT_GE(has.max_request_iov, asked.max_request_iov);
  EXPECT_EQ(has.qos, DAT_QOS_BEST_EFFORT);
  EXPECT_GT(has.max_message_size, 0U);  // a default
}

TEST_P(FrontReturns, EpRecvQueryOfNeitherCountIsAnInvalidParameter) {
  auto* const ep = server.make_ep(srq);
  DAT_COUNT count = -1;
  EXPECT_EQ(name_of(dat_ep_recv_query(ep, nullptr, nullptr)), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(name_of(dat_ep_recv_query(ep, &count, nullptr)), "DAT_SUCCESS");
  EXPECT_EQ(count, 0);
  EXPECT_EQ(name_of(dat_ep_recv_query(ep, nullptr, &count)), "DAT_SUCCESS");
  ASSERT_EQ(dat_ep_free(ep), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_ep_recv_query(ep, &count, nullptr)), "DAT_INVALID_HANDLE");
}

// As many EPs as a link has Ports. Tested in the process only, because they are many.
class FrontLimits : public FrontReturns {};
INSTANTIATE_TEST_SUITE_P(Link, FrontLimits, testing::Values(Way::kInProcess), way_name);

TEST_P(FrontLimits, EpCreateWithSrqBeyondTheEpsOfAnIaIsInsufficientResources) {
  auto with = good();
  DAT_EP_HANDLE last = DAT_HANDLE_NULL;
  const auto create_one = [&] {
    return dat_ep_create_with_srq(with.ia, with.pz, with.recv, with.request, with.connect, with.srq,
                                  &with.attr, &last);
  };
  for (DAT_COUNT i = 0; i < ia_attr.max_eps; ++i) ASSERT_EQ(create_one(), DAT_SUCCESS);
  EXPECT_EQ(create(with), "DAT_INSUFFICIENT_RESOURCES");
  ASSERT_EQ(dat_ep_free(last), DAT_SUCCESS);
  EXPECT_EQ(create(with), "DAT_SUCCESS");
}

}  // namespace
}  // namespace stp::test
