// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/dat/dat_end.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

namespace stp::bench {
namespace {

constexpr DAT_COUNT kDatQueue = 256;
constexpr DAT_CONN_QUAL kPort = 3000;
constexpr DAT_TIMEOUT kDatLimit = std::chrono::microseconds(Patience::kLimit).count();

void use_link(const std::string& conf, const std::string& link) {
  std::ofstream(conf) << "stp0 u1.2 nonthreadsafe default " << STP_PROVIDER << " stp.1.2 \"" << link
                      << "\" \"\"\n";
  ::setenv("DAT_OVERRIDE", conf.c_str(), 1);
}

DAT_DTO_COOKIE no_cookie() {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 0;
  return cookie;
}

}  // namespace

DatEnd::DatEnd(const std::string& folder, const std::string& link, bool sleep) : sleep_(sleep) {
  use_link(folder + "/" + std::to_string(::getpid()) + ".conf", link);
  char name[] = "stp0";
  check(dat_ia_open(name, kDatQueue, &async_, &ia_), "dat_ia_open");
  recv_ = make_evd(DAT_EVD_DTO_FLAG);
  request_ = make_evd(DAT_EVD_DTO_FLAG);
  connect_ = make_evd(DAT_EVD_CONNECTION_FLAG);
  requests_ = make_evd(DAT_EVD_CR_FLAG);
  check(dat_pz_create(ia_, &pz_), "dat_pz_create");
  DAT_REGION_DESCRIPTION region{};
  region.for_va = bytes_.data();
  check(
      dat_lmr_create(ia_, DAT_MEM_TYPE_VIRTUAL, region, 2 * kWriteSize, pz_, DAT_MEM_PRIV_ALL_FLAG,
                     &lmr_, &context_, &target_.rmr_context, nullptr, nullptr),
      "dat_lmr_create");
  target_.target_address = reinterpret_cast<DAT_VADDR>(bytes_.data() + kWriteSize);
  target_.segment_length = kWriteSize;
  check(dat_ep_create(ia_, pz_, recv_, request_, connect_, nullptr, &ep_), "dat_ep_create");
  post_receive();
}

void DatEnd::check(DAT_RETURN result, const char* call) const {
  if (result == DAT_SUCCESS) return;
  const char *major = "", *minor = "";
  dat_strerror(result, &major, &minor);
  patience.fail(std::string(call) + ": " + major);
}

DAT_EVD_HANDLE DatEnd::make_evd(DAT_EVD_FLAGS streams) const {
  DAT_EVD_HANDLE made = DAT_HANDLE_NULL;
  check(dat_evd_create(ia_, kDatQueue, DAT_HANDLE_NULL, streams, &made), "dat_evd_create");
  return made;
}

DAT_EVENT DatEnd::next(DAT_EVD_HANDLE from) {
  DAT_EVENT event;
  DAT_COUNT more = 0;
  if (sleep_) {
    check(dat_evd_wait(from, kDatLimit, 1, &event, &more), "dat_evd_wait");
    return event;
  }
  while (dat_evd_dequeue(from, &event) != DAT_SUCCESS) patience.look();
  return event;
}

void DatEnd::await_dto(DAT_EVD_HANDLE from) {
  const auto event = next(from);
  const auto status = event.event_data.dto_completion_event_data.status;
  if (status != DAT_DTO_SUCCESS)
    patience.fail("a transfer failed with status " + std::to_string(status));
}

DAT_LMR_TRIPLET DatEnd::part(std::size_t length) const {
  return {context_, 0, reinterpret_cast<DAT_VADDR>(bytes_.data()), length};
}

void DatEnd::listen() {
  check(dat_psp_create(ia_, kPort, requests_, DAT_PSP_CONSUMER_FLAG, &psp_), "dat_psp_create");
}

void DatEnd::accept() {
  const auto request = next(requests_);
  check(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, ep_, sizeof target_,
                      &target_),
        "dat_cr_accept");
  if (next(connect_).event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
    patience.fail("no connection");
}

void DatEnd::connect(const std::string& host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  check(dat_ep_connect(ep_, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), kPort, kDatLimit, 0,
                       nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
  const auto event = next(connect_);
  const auto& data = event.event_data.connect_event_data;
  if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED ||
      data.private_data_size != sizeof target_)
    patience.fail("no connection: event " + std::to_string(event.event_number));
  std::memcpy(&target_, data.private_data, sizeof target_);
}

void DatEnd::send() {
  auto from = part(kMessageSize);
  check(dat_ep_post_send(ep_, 1, &from, no_cookie(), DAT_COMPLETION_SUPPRESS_FLAG),
        "dat_ep_post_send");
}

void DatEnd::post_receive() {
  auto into = part(kMessageSize);
  check(dat_ep_post_recv(ep_, 1, &into, no_cookie(), DAT_COMPLETION_DEFAULT_FLAG),
        "dat_ep_post_recv");
}

void DatEnd::receive() {
  await_dto(recv_);
  post_receive();
}

void DatEnd::write() {
  auto from = part(kWriteSize);
  check(dat_ep_post_rdma_write(ep_, 1, &from, no_cookie(), &target_, DAT_COMPLETION_DEFAULT_FLAG),
        "dat_ep_post_rdma_write");
}

void DatEnd::await_end() {
  next(connect_);
}

}  // namespace stp::bench
