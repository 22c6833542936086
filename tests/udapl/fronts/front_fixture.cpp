// SPDX-License-Identifier: BSD-3-Clause
#include "tests/udapl/fronts/front_fixture.h"

#include <netinet/in.h>

#include <cstdlib>

namespace stp::test {

void use_conf() {
  ::setenv("DAT_OVERRIDE", STP_DAT_CONF, 1);
}

std::string name_of(DAT_RETURN value) {
  const char *major = nullptr, *minor = nullptr;
  return dat_strerror(value, &major, &minor) == DAT_SUCCESS ? major : "?";
}

Side::Side(DAT_COMPLETION_FLAGS recv_flags, DAT_COMPLETION_FLAGS request_flags) {
  use_conf();
  char name[] = "stp0";
  EXPECT_EQ(name_of(dat_ia_open(name, 16, &async, &ia)), "DAT_SUCCESS");
  recv = evd(64, DAT_EVD_DTO_FLAG);
  request = evd(64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
  connect = evd(16, DAT_EVD_CONNECTION_FLAG);
  requests = evd(16, DAT_EVD_CR_FLAG);
  EXPECT_EQ(dat_pz_create(ia, &pz), DAT_SUCCESS);
  DAT_REGION_DESCRIPTION region{};
  region.for_va = buffer.data();
  EXPECT_EQ(name_of(create_lmr(ia, DAT_MEM_TYPE_VIRTUAL, region, buffer.size(), pz,
                               DAT_MEM_PRIV_ALL_FLAG, &lmr, &lmr_context, &rmr_context)),
            "DAT_SUCCESS");
  attr.max_rdma_read_in = attr.max_rdma_read_out = 4;
  attr.recv_completion_flags = recv_flags;
  attr.request_completion_flags = request_flags;
}

Side::~Side() {
  dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

DAT_EVD_HANDLE Side::evd(DAT_COUNT length, unsigned flags) const {
  DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
  EXPECT_EQ(name_of(dat_evd_create(ia, length, DAT_HANDLE_NULL, static_cast<DAT_EVD_FLAGS>(flags),
                                   &made)),
            "DAT_SUCCESS");
  return made;
}

DAT_EP_HANDLE Side::make_ep(DAT_SRQ_HANDLE srq) const {
  DAT_EP_HANDLE made = DAT_HANDLE_NULL;
  const auto result =
      srq == DAT_HANDLE_NULL
          ? dat_ep_create(ia, pz, recv, request, connect, &attr, &made)
          : dat_ep_create_with_srq(ia, pz, recv, request, connect, srq, &attr, &made);
  EXPECT_EQ(name_of(result), "DAT_SUCCESS");
  return made;
}

DAT_LMR_TRIPLET Side::at(std::size_t offset, std::size_t length) const {
  return segment(lmr_context, buffer.data() + offset, length);
}

DAT_RMR_TRIPLET Side::remote(std::size_t offset, std::size_t length) const {
  return target(rmr_context, buffer.data() + offset, length);
}

DAT_EVENT Side::next(DAT_EVD_HANDLE from) {
  DAT_EVENT event{};
  DAT_COUNT more = 0;
  EXPECT_EQ(name_of(dat_evd_wait(from, kPatience, 1, &event, &more)), "DAT_SUCCESS");
  return event;
}

DAT_DTO_COMPLETION_EVENT_DATA Side::completion(DAT_EVD_HANDLE from) {
  const auto event = next(from);
  EXPECT_EQ(event.event_number, DAT_DTO_COMPLETION_EVENT);
  return event.event_data.dto_completion_event_data;
}

void Front::listen() {
  ASSERT_EQ(dat_psp_create(server.ia, kPort, server.requests, DAT_PSP_CONSUMER_FLAG, &psp),
            DAT_SUCCESS);
}

DAT_RETURN Front::connect_with(const std::string& question) const {
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto copy = question;
  return dat_ep_connect(client.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&here), kPort, kPatience,
                        static_cast<DAT_COUNT>(copy.size()), copy.data(), DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG);
}

void Front::ask_server(const std::string& question) {
  ASSERT_EQ(name_of(connect_with(question)), "DAT_SUCCESS");
}

DAT_EVENT Front::await_established() {
  const auto established = Side::next(client.connect);
  EXPECT_EQ(established.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  const auto passive = Side::next(server.connect);
  EXPECT_EQ(passive.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(passive.event_data.connect_event_data.private_data_size, 0);
  return established;
}

void Front::connect() {
  if (server.ep == DAT_HANDLE_NULL) server.ep = server.make_ep();
  if (client.ep == DAT_HANDLE_NULL) client.ep = client.make_ep();
  const std::string question = "who is there";
  char answer[] = "come in";
  listen();
  ask_server(question);
  const auto request = Side::next(server.requests);
  ASSERT_EQ(request.event_number, DAT_CONNECTION_REQUEST_EVENT);
  EXPECT_EQ(request.event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
  EXPECT_EQ(request.event_data.cr_arrival_event_data.conn_qual, kPort);
  cr = request.event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM param{};
  ASSERT_EQ(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(std::string(static_cast<const char*>(param.private_data),
                        static_cast<std::size_t>(param.private_data_size)),
            question);
  ASSERT_EQ(name_of(dat_cr_accept(cr, server.ep, sizeof answer, answer)), "DAT_SUCCESS");
  connected = await_established();
  EXPECT_STREQ(static_cast<char*>(connected.event_data.connect_event_data.private_data), answer);
}

DAT_RETURN Front::send(std::size_t length, DAT_UINT64 value, DAT_COMPLETION_FLAGS flags) {
  auto from = client.at(0, length);
  return dat_ep_post_send(client.ep, 1, &from, cookie(value), flags);
}

}  // namespace stp::test
