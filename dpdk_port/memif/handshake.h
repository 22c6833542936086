// SPDX-License-Identifier: BSD-3-Clause
// How two sides agree on their memory and their two rings, and what they then have. One of these
// for each connection of the control socket.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "dpdk_port/memif/control_socket.h"
#include "dpdk_port/memif/ring.h"

namespace stp::port::memif {

struct Settings {
  std::string socket;
  bool serves = false;  // makes the socket
  std::uint32_t id = 0;
  unsigned log2_ring = 10;  // the client's choice, as is the next
  std::uint32_t buffer = 2048;
};

class Handshake {
 public:
  enum class Progress { kWaits, kConnected, kEnded };
  static constexpr std::size_t kMostRegions = 16;

  // The client's, on a socket that has just been connected.
  static std::unique_ptr<Handshake> ask(FileDescriptor socket, const Settings& settings);
  // The server's, with a client that has said which interface it wants.
  static std::unique_ptr<Handshake> answer(FileDescriptor socket);

  // Deals with what the peer has said. After kConnected: with its end.
  Progress go_on();
  // Why it ended.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  // This side ends it, and says why.
  void end(const std::string& reason);

  [[nodiscard]] Sender& sender() { return sender_; }
  [[nodiscard]] Receiver& receiver() { return receiver_; }
  [[nodiscard]] bool broken() const { return sender_.broken() || receiver_.broken(); }

  Handshake(FileDescriptor socket, bool serves) : socket_(std::move(socket)), serves_(serves) {}

 private:
  enum Which : std::size_t { kClientRing, kServerRing, kRings };

  bool obey(const Message& message, FileDescriptor attached);
  bool fail(const std::string& reason);
  // The client's part.
  [[nodiscard]] std::size_t ring_room() const;
  bool make_memory(std::string& error);
  bool greet(const Hello& hello);
  bool send_next();
  int next_message(Message& message) const;
  // The server's part.
  bool add_region(const AddRegion& said, const FileDescriptor& file);
  bool add_ring(const AddRing& said);
  bool connect();

  FileDescriptor socket_;
  const bool serves_;
  Settings settings_;
  bool connected_ = false;
  std::string reason_;
  enum Step : unsigned { kInit, kAddRegion, kAddClientRing, kAddServerRing, kConnect, kAll };
  unsigned sent_ = 0;  // of the client's steps
  FileDescriptor file_;
  std::array<FileDescriptor, kRings> interrupts_;
  Regions regions_;
  std::array<Ring, kRings> rings_;
  std::array<bool, kRings> has_ring_{};
  Sender sender_;
  Receiver receiver_;
};

}  // namespace stp::port::memif
