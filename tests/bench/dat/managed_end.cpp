// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/dat/managed_end.h"

#include <chrono>

namespace stp::bench {
namespace {

constexpr std::size_t kQueue = 256;
constexpr auto kLimit = std::chrono::microseconds(Patience::kLimit).count();

}  // namespace

ManagedEnd::ManagedEnd(const std::string& link, bool sleep)
    : domain_(open_domain(link.c_str())),
      queue_(make_queue(domain_, kQueue)),
      memory_(register_memory(domain_, bytes_.data(), 2 * kWriteSize, STM_REMOTE_WRITE)),
      sleep_(sleep) {}

stm_event_t ManagedEnd::next() {
  stm_event_t event{};
  if (sleep_) {
    checked(stm_queue_wait(queue_, 1, &event, 1, kLimit), "stm_queue_wait");
    return event;
  }
  while (checked(stm_queue_poll(queue_, &event, 1), "stm_queue_poll") == 0) patience.look();
  return event;
}

void ManagedEnd::await(unsigned kind) {
  while (counts_[kind] == 0) {
    const auto event = next();
    if (event.status != 0) patience.fail(st_strerror(event.status));
    ++counts_[event.kind];
    if (event.kind == STM_REQUEST) connection_ = Connection(event.connection);
  }
  --counts_[kind];
}

void ManagedEnd::await_end() {
  for (auto kind = 0U; kind != STM_DISCONNECTED && kind != STM_FAILED;) kind = next().kind;
}

// Posts a receive before its message can arrive.
void ManagedEnd::begin() {
  checked(stm_receive(connection_, 0, memory_, bytes_.data(), kMessageSize), "stm_receive");
  await(STM_CONNECTED);
}

void ManagedEnd::listen() {
  listener_ = stp::listen(domain_, ":3000", queue_);
}

void ManagedEnd::accept() {
  await(STM_REQUEST);
  auto opened = open_region(memory_, bytes_.data() + kWriteSize, kWriteSize, STM_REMOTE_WRITE);
  region_ = std::move(opened.region);
  const auto attr = connection_attr(queue_);
  checked(stm_accept(connection_, &attr, &opened.remote, sizeof opened.remote), "stm_accept");
  begin();
}

void ManagedEnd::connect(const std::string& host) {
  connection_ = make_connection(domain_, connection_attr(queue_));
  checked(stm_connect(connection_, (host + ":3000").c_str(), kLimit, nullptr, 0), "stm_connect");
  begin();
  checked(stm_private_data(connection_, &remote_, sizeof remote_), "stm_private_data");
}

void ManagedEnd::send() {
  checked(stm_send(connection_, 0, STM_QUIET, 0, memory_, bytes_.data(), kMessageSize), "stm_send");
}

void ManagedEnd::receive() {
  await(STM_RECEIVE);
  checked(stm_receive(connection_, 0, memory_, bytes_.data(), kMessageSize), "stm_receive");
}

void ManagedEnd::write() {
  checked(stm_put(connection_, 0, 0, memory_, bytes_.data(), kWriteSize, remote_.key, 0),
          "stm_put");
}

}  // namespace stp::bench
