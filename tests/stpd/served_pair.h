// SPDX-License-Identifier: BSD-3-Clause
// A daemon without its program, and two well-behaved clients that are connected to each other.
#pragma once

#include <sys/eventfd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_socket.h"

namespace stp::stpd {

struct Side {
  explicit Side(const std::string& path, std::uint32_t shard = 0) : client(path) {
    EXPECT_EQ(client.ask(ipc::RequestKind::kHello), 0);
    client.shard = shard;
    EXPECT_EQ(client.ask(ipc::RequestKind::kHello), 0);
    page = ipc::SharedMemory::adopt(client.fds.at(0).release(), 0, sizeof(ipc::ClientPage));
    bell = std::move(client.fds.at(1));
    EXPECT_EQ(client.say_mapped(), 0);
    EXPECT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
    endpoint = client.reply.endpoint;
  }
  void take_channel() {
    number = client.reply.channel;
    memory = ipc::SharedMemory::adopt(client.fds.at(0).release(), 0, client.reply.channel_size);
    EXPECT_EQ(client.say_mapped(client.reply.vc), 0);
    channel = UserChannel(memory->data());
  }
  void send(std::uint32_t value) {
    SendEntry entry{};
    entry.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
    entry.header.sync = value;
    EXPECT_TRUE(channel.send(entry));
    ring();
  }
  void ring() {
    reinterpret_cast<ipc::ClientPage*>(page->data())->bells.ring(number);
    ::eventfd_write(bell.get(), 1);
  }

  RawClient client;
  std::shared_ptr<ipc::SharedMemory> page, memory;
  os::UniqueFd bell;
  EndpointId endpoint = kNoneId;
  std::uint32_t number = 0;
  UserChannel channel;
};

// Two clients that are connected to each other.
class Pair {
 public:
  explicit Pair(const std::string& path, std::uint32_t shard_of_alice = 0,
                std::uint32_t shard_of_bob = 0, std::uint32_t uport = 3'000) {
    alice.emplace(path, shard_of_alice);
    bob.emplace(path, shard_of_bob);
    alice->client.uport = bob->client.uport = uport;
    connect();
  }
  // Returns whether a header of each client reaches the other.
  bool talks(std::uint32_t value) {
    return passes(*alice, *bob, value) && passes(*bob, *alice, value + 1);
  }

  std::optional<Side> alice, bob;

 private:
  static bool passes(Side& from, Side& to, std::uint32_t value) {
    ReceivedEntry received;
    from.send(value);
    return host::eventually([&] { return to.channel.receive(received); }) &&
           received.header.sync == value;
  }
  void connect() {
    ASSERT_EQ(bob->client.ask(ipc::RequestKind::kListen, bob->endpoint), 0);
    ASSERT_EQ(alice->client.ask(ipc::RequestKind::kConnect, alice->endpoint), 0);
    alice->take_channel();
    ASSERT_TRUE(host::eventually(
        [&] { return bob->client.ask(ipc::RequestKind::kAccept, bob->endpoint) != -EAGAIN; }));
    ASSERT_EQ(bob->client.reply.result, 0);
    bob->take_channel();
    ASSERT_TRUE(host::eventually([&] { return alice->channel.state() == ChannelState::kOpen; }));
  }
};

struct StartedSocket : ServedSocket {
  StartedSocket() { start(); }
};

class ServedPair : public StartedSocket, public Pair {
 public:
  ServedPair() : Pair(path) {}

  // Returns whether these two are the only clients left, and both are still served.
  bool is_alone() {
    return alice->client.ask(ipc::RequestKind::kHello) == 0 &&
           bob->client.ask(ipc::RequestKind::kHello) == 0 &&
           host::eventually([&] { return client_count() == 2; });
  }
};

}  // namespace stp::stpd
