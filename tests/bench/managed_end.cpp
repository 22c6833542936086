// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/managed_end.h"

namespace stp::bench {
namespace {

constexpr std::size_t kQueue = 256;

}  // namespace

ManagedEnd::ManagedEnd(const std::string& link) : bytes_(2 * kWriteSize) {
  domain_ = open_domain(link.c_str());
  stm_queue_t queue = nullptr;
  checked(stm_queue_create(domain_, kQueue, &queue), "stm_queue_create");
  queue_ = Queue(queue);
  stm_memory_t memory = nullptr;
  checked(stm_memory_register(domain_, bytes_.data(), bytes_.size(), STM_REMOTE_WRITE, &memory),
          "stm_memory_register");
  memory_ = Memory(memory);
}

stm_connection_attr_t ManagedEnd::attr() const {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = queue_;
  return attr;
}

stm_event_t ManagedEnd::await(unsigned kind) {
  stm_event_t event{};
  for (;;) {
    if (counts_[kind] != 0) return --counts_[kind], event;
    if (checked(stm_queue_poll(queue_, &event, 1), "stm_queue_poll") == 0) continue;
    checked(event.status, "an operation");
    ++counts_[event.kind];
    if (event.kind == STM_REQUEST) connection_ = Connection(event.connection);
  }
}

// A receive is always there before the message.
void ManagedEnd::begin() {
  checked(stm_receive(connection_, 0, memory_, bytes_.data(), kMessageSize), "stm_receive");
  await(STM_CONNECTED);
  stm_connection_info_t info{};
  info.size = sizeof info;
  stm_event_t event;
  while (info.eager == 0) {
    stm_queue_poll(queue_, &event, 0);
    checked(stm_connection_query(connection_, &info), "stm_connection_query");
  }
}

void ManagedEnd::accept() {
  stm_listener_t listener = nullptr;
  checked(stm_listen(domain_, ":3000", queue_, 0, 0, &listener), "stm_listen");
  await(STM_REQUEST);
  stm_region_t region = nullptr;
  checked(stm_region_open(memory_, bytes_.data() + kWriteSize, kWriteSize, STM_REMOTE_WRITE,
                          nullptr, 0, &region, &remote_),
          "stm_region_open");
  region_ = Region(region);
  auto const mine = attr();
  checked(stm_accept(connection_, &mine, &remote_, sizeof remote_), "stm_accept");
  begin();
}

void ManagedEnd::connect(const std::string& host) {
  auto const mine = attr();
  stm_connection_t connection = nullptr;
  checked(stm_connection_create(domain_, &mine, &connection), "stm_connection_create");
  connection_ = Connection(connection);
  checked(stm_connect(connection_, (host + ":3000").c_str(), -1, nullptr, 0), "stm_connect");
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
