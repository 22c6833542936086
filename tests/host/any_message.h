// SPDX-License-Identifier: BSD-3-Clause
// Requests and replies of any kind, for tests that choose the kind while they run, or send what no
// client library sends: one struct with all fields that some kind has. A message takes those that
// its kind has, by name.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "libst/host/service.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"

namespace stp::host {

struct Request {
  std::uint32_t version;
  ipc::RequestKind kind;
  std::uint32_t shard, reserved;
  std::uint64_t endpoint, vc, region, mac, cursor, index, from;
  ipc::WireConfig config;
  std::uint32_t uport, ipv4;
  std::uint8_t ip[16];
  char zone[ipc::kTextSize];
  std::uint32_t udp_port, direction, base, permissions, mx, at_once, admit;
  ipc::WireOption option;
  std::uint32_t segment_count, piece_count;
  ipc::Piece pieces[ipc::kMaxPieces];
  ipc::Segment segments[ipc::kMaxSegments];
  ipc::TraceOrder trace;
};

struct Reply {
  std::uint32_t version;
  std::int32_t result;
  ipc::RequestKind kind;
  std::uint64_t vc, endpoint, region, mac;
  ipc::WireConfig config;
  std::uint32_t channel;       // its bell
  std::uint64_t channel_size;  // bytes to map
  std::uint32_t mx, max_stu, mtu, ipv4, megabits, shards, udp_port, peer_udp_port, ipv6;
  std::uint32_t state, error, local_port, remote_port, local_key, remote_key;
  std::uint32_t local_bufsize, remote_bufsize, local_max_stu, remote_max_stu;
  std::uint32_t local_slots, remote_slots, peer_uport;
  ipc::WireOption option;
  char text[ipc::kTextSize];  // whatever text it has, also of a refusal
  std::uint64_t value, age;
  struct {
    std::uint64_t next, round_trip, rx_control, rx_data_bytes, tx_control, tx_data_bytes;
    std::uint64_t bytes, frames, dropped, written_bytes;
    std::uint32_t pid, uid, uport, passive, accepted, credit, connectionless, yields;
    std::uint32_t direction, base, count, mx_count, bufsize, unmapping;
    std::uint32_t clients, connections, regions, link_up, administrator, finished, shown, trusted;
    std::int32_t error;
    char device[64], driver[32], trouble[ipc::kLongTextSize];
    std::uint64_t used[ipc::kMaxBudgets], most[ipc::kMaxBudgets];
  } admin;
};

#define STP_TAKE_FROM(from, from_name, to, to_name)                            \
  if constexpr (                                                               \
      requires { (from).from_name; } && requires { (to).to_name; }) {          \
    static_assert(sizeof((from).from_name) == sizeof((to).to_name), #to_name); \
    std::memcpy(&(to).to_name, &(from).from_name, sizeof((to).to_name));       \
  }
#define STP_TAKE(name) STP_TAKE_FROM(from, name, to, name)

// The fields that both have, of a request of any kind and of one kind.
template <typename From, typename To>
void take_request_fields(const From& from, To& to) {
  // clang-format off
  STP_TAKE(reserved) STP_TAKE(endpoint) STP_TAKE(vc) STP_TAKE(region) STP_TAKE(mac)
  STP_TAKE(cursor) STP_TAKE(index) STP_TAKE(from) STP_TAKE(config) STP_TAKE(uport) STP_TAKE(ipv4)
  STP_TAKE(ip) STP_TAKE(zone) STP_TAKE(udp_port) STP_TAKE(direction) STP_TAKE(base)
  STP_TAKE(permissions) STP_TAKE(mx) STP_TAKE(at_once) STP_TAKE(admit) STP_TAKE(option)
  STP_TAKE(segment_count) STP_TAKE(piece_count) STP_TAKE(pieces) STP_TAKE(segments)
  STP_TAKE(trace)
  // clang-format on
}

// An unknown kind has no body.
inline ipc::RequestMessage message_of(const Request& request) {
  ipc::RequestMessage message;
  switch (request.kind) {
    case ipc::RequestKind::kNone:
      break;
#define STP_FROM_ANY(Name, ...)          \
  case ipc::RequestKind::k##Name: {      \
    ask::Name body{};                    \
    take_request_fields(request, body);  \
    message = ipc::RequestMessage(body); \
    break;                               \
  }
      STP_REQUESTS(STP_FROM_ANY)
#undef STP_FROM_ANY
  }
  message.head = {.version = request.version,
                  .kind = request.kind,
                  .shard = request.shard,
                  .reserved = request.reserved};
  return message;
}

inline Request request_of(const ipc::RequestMessage& message) {
  Request request{};
  ipc::dispatch(message, [&](const auto& body) {
    take_request_fields(body, request);
    return 0;
  });
  request.version = message.head.version;
  request.kind = message.head.kind;
  request.shard = message.head.shard;
  return request;
}

// The bytes of a message, to send them in some other way.
inline std::vector<std::byte> bytes_of(const ipc::RequestMessage& message) {
  const auto size =
      ipc::rule_of(message.head.kind) == nullptr ? sizeof message.head : ipc::size_of(message.head);
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &message.head, sizeof message.head);
  std::memcpy(bytes.data() + sizeof message.head, &message.body, size - sizeof message.head);
  return bytes;
}
inline std::vector<std::byte> bytes_of(const Request& request) {
  return bytes_of(message_of(request));
}

template <typename From>
void take_fields(const From& from, Reply& to) {
  // clang-format off
  STP_TAKE(vc) STP_TAKE(endpoint) STP_TAKE(region) STP_TAKE(mac) STP_TAKE(config) STP_TAKE(mx)
  STP_TAKE(max_stu) STP_TAKE(mtu) STP_TAKE(ipv4) STP_TAKE(megabits) STP_TAKE(shards)
  STP_TAKE(udp_port) STP_TAKE(peer_udp_port) STP_TAKE(ipv6) STP_TAKE(state) STP_TAKE(error)
  STP_TAKE(local_port) STP_TAKE(remote_port) STP_TAKE(local_key) STP_TAKE(remote_key)
  STP_TAKE(local_bufsize) STP_TAKE(remote_bufsize) STP_TAKE(local_max_stu)
  STP_TAKE(remote_max_stu) STP_TAKE(local_slots) STP_TAKE(remote_slots) STP_TAKE(peer_uport)
  STP_TAKE(option) STP_TAKE(age) STP_TAKE(value)
  STP_TAKE_FROM(from, waiting, to, value)
  STP_TAKE_FROM(from, changes, to, value)
  STP_TAKE_FROM(from, text, to, text)
  STP_TAKE_FROM(from, link, to, text)
  STP_TAKE_FROM(from, peer, to, text)
  STP_TAKE_FROM(from, name, to, text)
      // clang-format on
      if constexpr (requires { from.first; }) to.value = from.first;
  if constexpr (requires { from.channel; }) {
    to.vc = from.channel.vc;
    to.channel = from.channel.bell;
    to.channel_size = from.channel.size;
  }
  if constexpr (requires { from.facts; }) take_fields(from.facts, to);
}

template <typename From, typename To>
void take_admin_fields(const From& from, To& to) {
  // clang-format off
  STP_TAKE(next) STP_TAKE(round_trip) STP_TAKE(rx_control) STP_TAKE(rx_data_bytes)
  STP_TAKE(tx_control) STP_TAKE(tx_data_bytes) STP_TAKE(bytes) STP_TAKE(frames) STP_TAKE(dropped)
  STP_TAKE(written_bytes) STP_TAKE(pid) STP_TAKE(uid) STP_TAKE(uport) STP_TAKE(passive)
  STP_TAKE(accepted) STP_TAKE(credit) STP_TAKE(connectionless) STP_TAKE(yields)
  STP_TAKE(direction) STP_TAKE(base)
  STP_TAKE(count) STP_TAKE(mx_count) STP_TAKE(bufsize) STP_TAKE(unmapping) STP_TAKE(clients)
  STP_TAKE(connections) STP_TAKE(regions) STP_TAKE(link_up) STP_TAKE(administrator)
  STP_TAKE(finished) STP_TAKE(shown) STP_TAKE(trusted) STP_TAKE(error) STP_TAKE(device)
  STP_TAKE(driver) STP_TAKE(trouble) STP_TAKE(used) STP_TAKE(most)
  STP_TAKE_FROM(from, steering, to, trouble)
      // clang-format on
      if constexpr (requires { from.trace; }) take_admin_fields(from.trace, to);
}
#undef STP_TAKE
#undef STP_TAKE_FROM

inline Reply reply_of(const ipc::ReplyMessage& message) {
  Reply reply{};
  reply.version = message.head.version;
  reply.result = message.head.result;
  reply.kind = message.head.kind;
  if (reply.result != 0) {
    ipc::set_text(reply.text, message.why());
    return reply;
  }
  switch (reply.kind) {
    case ipc::RequestKind::kNone:
      break;
#define STP_TO_ANY(Name, ...)                                \
  case ipc::RequestKind::k##Name:                            \
    take_fields(message.as<ask::Name>(), reply);             \
    take_admin_fields(message.as<ask::Name>(), reply.admin); \
    break;
      STP_REQUESTS(STP_TO_ANY)
#undef STP_TO_ANY
  }
  return reply;
}

// ---- what takes messages, for these

inline int send_request(int socket, const Request& request, std::span<const int> fds) {
  const auto message = message_of(request);
  if (ipc::rule_of(request.kind) != nullptr) return send_request(socket, message, fds);
  return ::send(socket, &message.head, sizeof message.head, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

inline int receive_reply(int socket, Reply& reply, std::vector<os::UniqueFd>& fds) {
  ipc::ReplyMessage message;
  const auto error = receive_reply(socket, message, fds);
  if (error == 0) reply = reply_of(message);
  return error;
}

inline void handle(Service& service, ClientId client, const ipc::RequestMessage& request,
                   Attachments& attachments, Reply& reply) {
  ipc::ReplyMessage message;
  service.drive()->handle(client, request, attachments, message);
  reply = reply_of(message);
}

}  // namespace stp::host
