// SPDX-License-Identifier: BSD-3-Clause
// Owners of what st_create, st_map, st_connect and st_accept give, and the sizes that a file
// Transfer uses on them.
#pragma once

#include <stp/st.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tools/files/grant_window.h"
#include "tools/files/note.h"

namespace stp::files {

inline constexpr unsigned kBufsize = 16;  // no STU is shortened by the end of a buffer
// Blocks of so many STUs: few enough that one lost frame repeats little, enough that a Block's
// headers cost nothing.
inline constexpr unsigned kBlockStusLog2 = 5;
inline constexpr unsigned kMaxBlockLog2 = 20;
// Buffers on either side: at most 32 MiB, at MTU 9000 8 MiB.
inline constexpr unsigned kDepth = 32;

class Endpoint {
 public:
  explicit Endpoint(const char* address);  // LinkFailure
  ~Endpoint() { close(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] st_ehandle_t handle() const { return handle_; }
  // From any thread: whoever waits on the endpoint or a connection of it is woken with an error.
  void close();

 private:
  void set(int option, unsigned value);
  st_ehandle_t handle_ = nullptr;
};

// Zeroed memory bound to consecutive Bufx entries.
class MappedMemory {
 public:
  MappedMemory(Endpoint& endpoint, int direction, std::size_t size, std::uint32_t base);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t bufx(std::size_t at) const {
    return base_ + static_cast<std::uint32_t>(at >> kBufsize);
  }
  [[nodiscard]] static std::uint32_t offset(std::size_t at) {
    return static_cast<std::uint32_t>(at & ((std::size_t{1} << kBufsize) - 1));
  }
  [[nodiscard]] st_mhandle_t handle() const { return handle_; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Unmap> reserved_;
  std::span<std::byte> bytes_;
  std::uint32_t base_;
  st_mhandle_t handle_ = nullptr;
};

// One entry of the Schedule Header Queue.
struct Message {
  st_header_t header{};
  std::optional<Note> note;

  [[nodiscard]] unsigned op() const { return ST_OP(header.op_flags); }
  [[nodiscard]] bool rejects() const { return (header.op_flags & ST_FLAG_REJECT) != 0; }
};

class Connection {
 public:
  explicit Connection(st_chandle_t handle) : handle_(handle) {}
  Connection(Endpoint& endpoint, const std::string& peer);  // LinkFailure
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Exponent of the STU size for Blocks to the peer (`to_peer`) or to this side.
  [[nodiscard]] unsigned stu_log2(bool to_peer) const;
  [[nodiscard]] unsigned block_log2(bool to_peer) const;
  [[nodiscard]] unsigned remote_bufsize() const { return option(ST_OPT_BUFSIZE_REMOTE); }
  [[nodiscard]] int alloc_mx(const MappedMemory& memory);

  // All throw LinkFailure once the connection is lost.
  void send(const st_header_t& header);
  void send(const st_header_t& header, const Note& note);
  void send_block(const st_header_t& header, std::size_t length, std::uint32_t bufx,
                  std::uint32_t offset);
  // False: `wait` passed (Duration::zero(): looks once).
  bool receive(Message& message, Duration wait);
  // Until the link has read all that was sent.
  void flush();

 private:
  [[nodiscard]] unsigned option(int option) const;
  st_chandle_t handle_ = nullptr;
};

}  // namespace stp::files
