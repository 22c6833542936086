// SPDX-License-Identifier: BSD-3-Clause
// Two ends of the C++ API in one thread, each with a domain of its own on the link `loop`.
#pragma once

#include <gtest/gtest.h>
#include <stp/managed.hpp>

#include <string>

namespace stp::test {

inline constexpr std::chrono::seconds kPatience{30};

template <typename EventQueue>
class CppEnds : public testing::Test {
 protected:
  // A connection that has been asked for.
  Connection ask(const std::string& private_data = "") {
    auto connection = make_connection(there_domain_, connection_attr(there_));
    connect(connection, "127.0.0.1:4700", kPatience, private_data);
    return connection;
  }
  static AnyEvent await_event(EventQueue& at) {
    for (;;)
      if (auto event = at.next(kPatience)) return std::move(*event);
  }
  void connect_both(stm_pool_t pool = nullptr) {
    client_ = ask();
    auto event = await_event(here_);
    server_ = std::move(std::get<Request>(event).connection);
    auto attr = connection_attr(here_);
    attr.pool = pool;
    accept(server_, attr);
    ASSERT_TRUE(std::holds_alternative<Connected>(await_event(here_)));
    ASSERT_TRUE(std::holds_alternative<Connected>(await_event(there_)));
  }

  Domain here_domain_ = open_domain("loop"), there_domain_ = open_domain("loop");
  EventQueue here_{here_domain_, 100}, there_{there_domain_, 100};
  Listener listener_ = listen(here_domain_, ":4700", here_);
  Connection server_, client_;
};

}  // namespace stp::test
