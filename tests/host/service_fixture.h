// SPDX-License-Identifier: BSD-3-Clause
// A Service over a TestPort, whose turns the test makes, and clients that send it requests.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "libst/host/service.h"
#include "libst/ipc/client_page.h"
#include "libst/ipc/requests.h"
#include "stp/channel/rings.h"
#include "tests/host/any_message.h"
#include "tests/host/test_port.h"

namespace stp::host {

inline ipc::WireConfig usual_config() {
  return ipc::to_wire(EndpointConfig{});
}

inline Request request_for(ipc::RequestKind kind) {
  Request request{};
  request.version = ipc::kProtocolVersion;
  request.kind = kind;
  return request;
}

class ServiceFixture : public testing::Test {
 protected:
  static constexpr std::uint32_t kUport = 3'000;
  static constexpr std::size_t kBuffer = std::size_t{1} << 14;

  explicit ServiceFixture(std::optional<std::uint64_t> granted = std::nullopt)
      : port(new test::TestPort), service(std::unique_ptr<port::Port>(port), granted, budgets) {
    alice = service.drive()->add_client(false);
    bob = service.drive()->add_client(false);
  }

  // The program of `client` leaves, and one of that user comes, whose place costs nothing.
  void come_as(ClientId& client, const ipc::ClientIdentity& identity) {
    service.drive()->remove_client(client);
    std::string why;
    client = service.drive()->add_client(identity, true, why);
    EXPECT_NE(client, 0U) << why;
  }

  int ask(ClientId client, const ipc::RequestMessage& request) {
    attachments.memory.reset();
    handle(service, client, request, attachments, reply);
    return reply.result;
  }
  int ask(ClientId client, const Request& request) { return ask(client, message_of(request)); }
  int ask(ClientId client, ipc::RequestKind kind) { return ask(client, request_for(kind)); }

  EndpointId open(ClientId client) {
    auto request = request_for(ipc::RequestKind::kOpenEndpoint);
    request.config = usual_config();
    EXPECT_EQ(ask(client, request), 0);
    return reply.endpoint;
  }
  int on_endpoint(ClientId client, ipc::RequestKind kind, EndpointId endpoint) {
    auto request = request_for(kind);
    request.endpoint = endpoint;
    request.uport = kUport;
    request.mac = port->info().mac.to_u64();
    request.config = usual_config();
    return ask(client, request);
  }
  int on_vc(ClientId client, ipc::RequestKind kind, VcId vc, bool at_once = false) {
    auto request = request_for(kind);
    request.vc = vc;
    request.at_once = at_once ? 1 : 0;
    return ask(client, request);
  }
  int on_region(ClientId client, ipc::RequestKind kind, RegionId region, VcId vc = kNoneId) {
    auto request = request_for(kind);
    request.region = region;
    request.vc = vc;
    request.permissions = permit::kData;
    return ask(client, request);
  }
  int map(ClientId client, EndpointId endpoint, Direction direction, MutableBytes memory,
          std::shared_ptr<void> keep = nullptr) {
    auto request = request_for(ipc::RequestKind::kMap);
    request.endpoint = endpoint;
    request.direction = static_cast<std::uint32_t>(direction);
    attachments.pieces = {memory};
    attachments.keep = std::move(keep);
    return ask(client, request);
  }

  void turn(int times = 10) {
    for (int i = 0; i < times; ++i) service.drive()->poll();
  }
  // If many connections are begun at once and stay silent, some are answered only when their RC is
  // repeated.
  // protocol: 5.39
  int accept_soon(ClientId of, EndpointId endpoint) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (int error = 0;; turn(1))
      if (error = on_endpoint(of, ipc::RequestKind::kAccept, endpoint);
          error != -EAGAIN || std::chrono::steady_clock::now() > end)
        return error;
  }

  struct End {
    VcId vc = kNoneId;
    std::uint32_t bell = 0;
    std::shared_ptr<ipc::SharedMemory> memory;
    UserChannel channel;
  };
  End take_end() const {
    return {reply.vc, reply.channel, attachments.memory, UserChannel(attachments.memory->data())};
  }
  // bob listens, alice connects, bob accepts.
  void connect() {
    alice_endpoint = open(alice);
    bob_endpoint = open(bob);
    ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kListen, bob_endpoint), 0);
    ASSERT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, alice_endpoint), 0);
    alice_end = take_end();
    turn();
    ASSERT_EQ(alice_end.channel.state(), ChannelState::kOpen);
    ASSERT_EQ(on_endpoint(bob, ipc::RequestKind::kAccept, bob_endpoint), 0);
    bob_end = take_end();
  }
  // alice sends bob one buffer of her memory, and the link keeps reading it. The result expires
  // when the service has released that memory. alice_region names it.
  std::weak_ptr<void> send_from_kept_memory() {
    connect();
    const auto source = std::make_shared<std::vector<std::byte>>(kBuffer, std::byte{0x5a});
    EXPECT_EQ(map(alice, alice_endpoint, Direction::kTransmit, *source, source), 0);
    alice_region = reply.region;
    EXPECT_EQ(map(bob, bob_endpoint, Direction::kReceive, destination), 0);
    EXPECT_EQ(on_region(bob, ipc::RequestKind::kAllocMx, reply.region), 0);
    const auto mx = static_cast<std::uint16_t>(reply.mx);
    SendEntry grant{};
    grant.header.op_flags = wire::op_flags(wire::Op::kClearToSend);
    grant.header.param = 14;
    grant.header.mx = mx;
    grant.header.d_id = 1;
    grant.header.s_id = 7;
    EXPECT_TRUE(bob_end.channel.send(grant));
    page_of(bob).bells.ring(bob_end.bell);
    turn();
    SendEntry data{};
    data.header.op_flags = wire::op_flags(wire::Op::kData);
    data.header.mx = mx;
    data.header.d_id = 7;
    data.length = kBuffer;
    port->keeps_frames = true;
    EXPECT_TRUE(alice_end.channel.send(data));
    page_of(alice).bells.ring(alice_end.bell);
    turn();
    EXPECT_EQ(destination[0], std::byte{0x5a});
    return source;
  }
  ipc::ClientPage& page_of(ClientId client) {
    EXPECT_EQ(ask(client, ipc::RequestKind::kHello), 0);
    return *reinterpret_cast<ipc::ClientPage*>(attachments.memory->data());
  }
  // Puts a No_Operation into the transmit queue and rings.
  bool send_nop(ClientId client, End& end, std::uint32_t value) {
    SendEntry entry{};
    entry.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
    entry.header.sync = value;
    if (!end.channel.send(entry)) return false;
    page_of(client).bells.ring(end.bell);
    return true;
  }

  test::TestPort* port;
  const std::shared_ptr<Budgets> budgets = std::make_shared<Budgets>();
  Service service;
  ClientId alice, bob;
  EndpointId alice_endpoint = kNoneId, bob_endpoint = kNoneId;
  End alice_end, bob_end;
  RegionId alice_region = kNoneId;
  std::vector<std::byte> destination = std::vector<std::byte>(kBuffer);
  Attachments attachments;
  Reply reply{};
};

}  // namespace stp::host
