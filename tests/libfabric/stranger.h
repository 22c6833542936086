// SPDX-License-Identifier: BSD-3-Clause
// A program of the managed API in the place of an endpoint of the provider's.
#pragma once

#include <arpa/inet.h>
#include <stp/managed.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/libfabric/fi_fixture.h"

namespace stp::test {

class StrangeProgram {
 public:
  StrangeProgram(const StrangeProgram&) = delete;
  StrangeProgram& operator=(const StrangeProgram&) = delete;

  // The next event that is no completion of a send.
  stm_event_t next() {
    stm_event_t event{};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
    do {
      if (progress) progress();
      if (stm_queue_wait(queue_, 1, &event, 1, 1000) == 1 && event.kind != STM_SEND) return event;
    } while (std::chrono::steady_clock::now() < deadline);
    ADD_FAILURE() << "no event";
    return event;
  }
  // The connection ends, with that status.
  int ended() {
    for (;;) {
      const auto event = next();
      if (event.kind == STM_FAILED || event.kind == STM_DISCONNECTED || event.kind == 0)
        return event.status;
    }
  }
  // Ends the connection in good order.
  void leave() {
    EXPECT_EQ(stm_disconnect(connection_, STM_GRACEFUL), 0);
    EXPECT_EQ(ended(), 0);
    look(100);  // the endpoint hears of it, too
  }
  // What it has sent, as far as the peer has not taken it.
  [[nodiscard]] std::uint64_t outstanding() const {
    stm_connection_info_t info{};
    info.size = sizeof info;
    EXPECT_EQ(stm_connection_query(connection_, &info), 0);
    return info.operations;
  }
  // What comes within that many looks is dropped; nothing that the peer sends is received.
  void look(int times) {
    stm_event_t event{};
    for (int i = 0; i < times; ++i) {
      progress();
      stm_queue_wait(queue_, 1, &event, 1, 0);
    }
  }
  // What has come is dropped.
  void drop_all() {
    std::array<stm_event_t, 64> events{};
    while (stm_queue_poll(queue_, events.data(), events.size()) > 0) {
    }
  }
  // Lets the endpoint's side go on.
  std::function<void()> progress;

 protected:
  // Its memory has `size` bytes of `fill`.
  StrangeProgram(std::size_t size, char fill) : bytes_(size, fill) {
    stm_domain_attr_t attr{};
    attr.size = sizeof attr;  // and the link of all
    attr.slots = 64;          // as endpoints of the provider have
    EXPECT_EQ(stm_domain_open(&attr, &domain_), 0);
    EXPECT_EQ(stm_queue_create(domain_, 10'000, &queue_), 0);
    EXPECT_EQ(stm_memory_register(domain_, bytes_.data(), bytes_.size(), STM_LOCAL_WRITE, &memory_),
              0);
  }
  ~StrangeProgram() { stm_domain_close(domain_); }

  [[nodiscard]] stm_connection_attr_t attributes() const {
    stm_connection_attr_t attr{};
    attr.size = sizeof attr;
    attr.events = queue_;
    attr.flags = STM_FRUGAL;
    return attr;
  }
  // Connects to that port, as an endpoint does whose protocol begins with `magic`.
  void dial(std::uint16_t port, std::uint32_t magic, const std::string& word = {}) {
    const std::array<std::uint32_t, 3> own{htonl(magic), htonl(INADDR_LOOPBACK),
                                           htonl(4711U << 16 | 1)};
    const auto data = std::string(reinterpret_cast<const char*>(own.data()), sizeof own) + word;
    const auto attr = attributes();
    EXPECT_EQ(stm_connection_create(domain_, &attr, &connection_), 0);
    const auto name = "127.0.0.1:" + std::to_string(port);
    EXPECT_EQ(stm_connect(connection_, name.c_str(), -1, data.data(), data.size()), 0);
  }

  stm_domain_t domain_ = nullptr;
  stm_queue_t queue_ = nullptr;
  stm_memory_t memory_ = nullptr;
  stm_connection_t connection_ = nullptr;
  std::vector<char> bytes_;
};

}  // namespace stp::test
