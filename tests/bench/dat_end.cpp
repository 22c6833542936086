// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/dat_end.h"

#include <cstring>
#include <stdexcept>

#include "tests/bench/managed_end.h"

namespace stp::bench {
namespace {

using namespace udapl;

constexpr int kQueue = 256;
constexpr std::uint64_t kConnQual = 3000;
constexpr std::uint32_t kPatience = 20'000'000;

void check(Result result, const char* what) {
  if (result != Result::kSuccess) throw std::runtime_error(what);
}

}  // namespace

DatEnd::DatEnd(const std::string& link) : bytes_(2 * kWriteSize) {
  check(Ia::open(link, kQueue, async_, ia_), "dat_ia_open");
  recv_ = evd(kStreamDto);
  request_ = evd(kStreamDto);
  connect_ = evd(kStreamConnection);
  requests_ = evd(kStreamCr);
  check(Pz::create(*ia_, pz_), "dat_pz_create");
  check(Lmr::create(*ia_, pz_, {bytes_.data(), bytes_.size(), kAllPrivileges, false}, lmr_),
        "dat_lmr_create");
  check(Ep::create(*ia_, {pz_, recv_, request_, connect_, nullptr}, {}, ep_), "dat_ep_create");
  post_receive();
}

std::shared_ptr<Evd> DatEnd::evd(Flags streams) {
  std::shared_ptr<Evd> made;
  check(Evd::create(*ia_, kQueue, nullptr, streams, made), "dat_evd_create");
  return made;
}

Event DatEnd::next(Evd& from) {
  Event event;
  while (from.dequeue(event) != Result::kSuccess) {
  }
  if (event.status != DtoStatus::kSuccess) throw std::runtime_error("a transfer has failed");
  return event;
}

LmrTriplet DatEnd::part(std::size_t length) const {
  return {reinterpret_cast<std::uint64_t>(bytes_.data()), length, lmr_->context()};
}

void DatEnd::accept() {
  std::shared_ptr<ServicePoint> psp;
  check(ServicePoint::create_psp(*ia_, kConnQual, requests_, psp), "dat_psp_create");
  auto const request = next(*requests_);
  auto const cr = static_cast<Cr*>(static_cast<Object*>(request.cr));
  remote_ = {reinterpret_cast<std::uint64_t>(bytes_.data() + kWriteSize), kWriteSize,
             lmr_->rmr_context()};
  check(cr->accept(ep_, std::as_bytes(std::span(&remote_, 1))), "dat_cr_accept");
  next(*connect_);
}

void DatEnd::connect(const std::string& host) {
  check(ep_->connect(host, 0, kConnQual, kPatience, {}), "dat_ep_connect");
  auto const event = next(*connect_);
  if (event.number != EventNumber::kEstablished) throw std::runtime_error("not connected");
  std::memcpy(&remote_, event.private_data, sizeof remote_);
}

void DatEnd::send() {
  LmrTriplet const from[] = {part(kMessageSize)};
  check(ep_->post_send(from, 0, kSuppress), "dat_ep_post_send");
}

void DatEnd::post_receive() {
  LmrTriplet const into[] = {part(kMessageSize)};
  check(ep_->post_recv(into, 0, 0), "dat_ep_post_recv");
}

void DatEnd::receive() {
  next(*recv_);
  post_receive();
}

void DatEnd::write() {
  LmrTriplet const from[] = {part(kWriteSize)};
  check(ep_->post_rdma_write(from, 0, remote_, 0), "dat_ep_post_rdma_write");
}

}  // namespace stp::bench
