// SPDX-License-Identifier: BSD-3-Clause
// A link without a Node: it writes down what is requested of it, and refuses what the test says.
// For tests of a domain's mechanisms alone.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "libst/managed/domain.h"
#include "stp/channel/rings.h"
#include "tests/host/any_message.h"

namespace stp::managed {

class ScriptedLink final : public client::Backend {
 public:
  using Request = host::Request;
  using RequestKind = ipc::RequestKind;
  static constexpr ChannelGeometry kChannel{.slots = 8, .credits = 8};

  ScriptedLink() {
    welcome({}, ipc::SharedMemory::lend("stp-client", sizeof(client::ClientPage)));
    new (&page()) client::ClientPage;
  }
  int exchange(ipc::RequestMessage& message, client::Payload& payload,
               ipc::ReplyMessage& answer) override {
    const auto request = host::request_of(message);
    requests.push_back(request);
    if (const auto error = refuse ? refuse(request) : 0; error != 0) return error;
    ++names_;
    dispatch(message, [&]<typename R>(const R& /*request*/) {
      auto& reply = answer.begin<R>();
      if constexpr (requires { reply.endpoint; }) reply.endpoint = names_;
      if constexpr (requires { reply.region; }) reply.region = names_;
      if constexpr (requires { reply.channel; }) reply.channel.vc = names_;
      if constexpr (requires { reply.mx; }) reply.mx = static_cast<std::uint32_t>(names_);
      return 0;
    });
    if (request.kind != RequestKind::kAccept) return 0;
    return accept(payload, answer.body.as<ask::Accept::Reply>());
  }
  void rung(Time /*now*/) override { ++rings; }
  int attend(client::Condition condition, Time /*deadline*/) override {
    return condition() ? 0 : -EAGAIN;
  }
  Time look(std::uint32_t gatherer) override {
    looked_for = gatherer;
    return turn_time;
  }
  [[nodiscard]] int error() const override { return lost; }

  // The requests of that kind so far.
  [[nodiscard]] std::vector<Request> sent(RequestKind kind) const {
    std::vector<Request> all;
    for (const auto& request : requests)
      if (request.kind == kind) all.push_back(request);
    return all;
  }
  [[nodiscard]] std::size_t count(RequestKind kind) const { return sent(kind).size(); }

  std::vector<Request> requests;
  std::function<int(const Request&)> refuse;  // a negative errno; 0: granted
  std::deque<MacAddr> callers;                // stations whose connections wait for a listener
  std::vector<NodeChannel> accepted;          // the Node's ends of the connections it took
  std::vector<std::shared_ptr<ipc::SharedMemory>> channels;  // their memory
  std::uint32_t looked_for = 0;                              // whose news the last poll was to take
  Time turn_time = 0;                                        // of the next polls
  int lost = 0;                                              // why there is no link any more
  unsigned rings = 0;

 private:
  int accept(client::Payload& payload, ask::Accept::Reply& reply) {
    if (callers.empty()) return -EAGAIN;
    payload.memory = ipc::SharedMemory::lend("stp-channel", kChannel.size());
    reply.facts.mac = callers.front().to_u64();
    reply.channel.bell = static_cast<std::uint32_t>(accepted.size());
    accepted.emplace_back(payload.memory->data(), kChannel);
    channels.push_back(payload.memory);
    callers.pop_front();
    return 0;
  }

  std::uint64_t names_ = 0;
};

// A domain on it. Its thread does not run: only the test makes progress.
class OnScriptedLink : public testing::Test {
 protected:
  using Kind = ipc::RequestKind;

  OnScriptedLink() = default;
  ~OnScriptedLink() override {
    link->refuse = {};
    domain->close();
  }

  static std::shared_ptr<Domain> open(std::shared_ptr<ScriptedLink> link,
                                      unsigned buffer_log2 = kPageLog2) {
    stm_domain_attr_t attr{};
    attr.buffer_log2 = buffer_log2;
    return std::make_shared<Domain>(std::move(link), attr);
  }
  // Another endpoint of the domain.
  EndpointId endpoint() const {
    const Lock control(domain->control_mutex());
    EndpointId id = kNoneId;
    EXPECT_EQ(domain->open_endpoint(id), 0);
    return id;
  }
  // Those that the domain has now.
  std::vector<std::shared_ptr<Connection>> connections() const {
    const Lock guard(domain->mutex());
    return domain->connections();
  }
  // Memory of the test, not bound.
  std::shared_ptr<Memory> memory(unsigned access) {
    return std::make_shared<Memory>(domain, MutableBytes(bytes), access);
  }
  // The same, bound to all endpoints. nullptr: refused.
  std::shared_ptr<Memory> bound(unsigned access) {
    auto made = memory(access);
    return add(made) == 0 ? made : nullptr;
  }
  int add(const std::shared_ptr<Memory>& what) const {
    const Lock control(domain->control_mutex());
    return domain->add_memory(what);
  }

  std::shared_ptr<ScriptedLink> link = std::make_shared<ScriptedLink>();
  std::shared_ptr<Domain> domain = open(link);
  std::vector<std::byte> bytes = std::vector<std::byte>(10'000);
};

}  // namespace stp::managed
