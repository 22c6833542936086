// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/connection.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "tools/files/failure.h"

namespace stp::files {
namespace {
// Headers that may wait unread: every Block of a window, its repeats, and the control operations.
constexpr unsigned kSlots = 8 * kDepth;
constexpr unsigned kMaxStu = 16;  // as long as the link allows
}  // namespace

Endpoint::Endpoint(const char* address) {
  if (auto const error = st_create(address, &handle_); error != 0) {
    handle_ = nullptr;
    throw address != nullptr && error == -EINVAL ? listen_failure(error, address)
                                                 : link_failure(error);
  }
  try {
    set(ST_OPT_BUFSIZE_LOCAL, kBufsize);
    set(ST_OPT_MAXSTU_LOCAL, kMaxStu);
    set(ST_OPT_RX_SLOTS, kSlots);
  } catch (...) {
    close();
    throw;
  }
}

void Endpoint::set(int option, unsigned value) {
  if (auto const error = st_setopt(handle_, option, &value); error != 0)
    throw_connection_failure(error, "configuring the endpoint failed");
}

void Endpoint::close() {
  // Handles are never dereferenced: closing one a second time is an error code, no more.
  if (handle_ != nullptr) st_delete(handle_);
}

void MappedMemory::Unmap::operator()(void* memory) const {
  ::munmap(memory, size);
}

MappedMemory::MappedMemory(Endpoint& endpoint, int direction, std::size_t size, std::uint32_t base)
    : base_(base) {
  constexpr auto kAlign = std::size_t{1} << kBufsize;
  auto const rounded = (size + kAlign - 1) / kAlign * kAlign;
  auto* const memory =
      ::mmap(nullptr, rounded + kAlign, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  reserved_ = std::unique_ptr<void, Unmap>(memory, Unmap{rounded + kAlign});
  auto* start = memory;
  auto room = rounded + kAlign;
  start = std::align(kAlign, rounded, start, room);
  bytes_ = {static_cast<std::byte*>(start), rounded};
  auto const error = st_map(endpoint.handle(), direction, start, static_cast<int>(rounded),
                            static_cast<int>(base), -1, &handle_, nullptr);
  if (error != 0) throw_connection_failure(error, "mapping memory failed");
}

MappedMemory::~MappedMemory() {
  st_unmap(handle_);
}

Connection::Connection(Endpoint& endpoint, const std::string& peer) {
  auto const error = st_connect(endpoint.handle(), peer.c_str(), &handle_);
  if (error != 0) throw connect_failure(error, peer);
}

Connection::~Connection() {
  st_close(handle_);
}

unsigned Connection::option(int option) const {
  unsigned value = 0;
  auto const error = st_getopt(handle_, option, &value);
  if (error != 0) throw_connection_failure(error, "asking the connection failed");
  return value;
}

unsigned Connection::stu_log2(bool to_peer) const {
  return std::min({option(ST_OPT_MAXSTU_LOCAL), option(ST_OPT_MAXSTU_REMOTE),
                   option(to_peer ? ST_OPT_BUFSIZE_REMOTE : ST_OPT_BUFSIZE_LOCAL)});
}

unsigned Connection::block_log2(bool to_peer) const {
  return std::min(stu_log2(to_peer) + kBlockStusLog2, kMaxBlockLog2);
}

int Connection::alloc_mx(const MappedMemory& memory) {
  int mx = 0;
  auto const error = st_mx_alloc(handle_, memory.handle(), &mx);
  if (error != 0) throw_connection_failure(error, "allocating an Mx failed");
  return mx;
}

void Connection::send(const st_header_t& header) {
  auto copy = header;
  auto const error = st_tx(handle_, &copy, nullptr, 0, 0, 0);
  if (error != 0) throw_connection_failure(error, "sending failed");
}

void Connection::send(const st_header_t& header, const Note& note) {
  auto copy = header;
  auto bytes = encode(note);
  auto const error = st_tx(handle_, &copy, bytes.data(), 0, 0, 0);
  if (error != 0) throw_connection_failure(error, "sending failed");
}

void Connection::send_block(const st_header_t& header, std::size_t length, std::uint32_t bufx,
                            std::uint32_t offset) {
  auto copy = header;
  auto const error = st_tx(handle_, &copy, nullptr, static_cast<int>(length),
                           static_cast<int>(bufx), static_cast<int>(offset));
  if (error != 0) throw_connection_failure(error, "sending a Block failed");
}

bool Connection::receive(Message& message, Duration wait) {
  auto const microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(std::max(wait, Duration::zero()));
  timeval timeout{};
  timeout.tv_sec = static_cast<time_t>(microseconds.count() / 1'000'000);
  timeout.tv_usec = static_cast<suseconds_t>(microseconds.count() % 1'000'000);
  std::array<std::uint8_t, ST_APPEND_SIZE> payload{};
  auto const result = st_rx(handle_, &message.header, payload.data(), &timeout);
  if (result == -EWOULDBLOCK || result == -EINTR) return false;
  if (result < 0) throw_connection_failure(result, "receiving failed");
  message.note.reset();
  if (result == 1 && message.op() != ST_OP_DATA) {
    NoteBytes bytes;
    std::copy_n(payload.begin(), bytes.size(), bytes.begin());
    message.note = decode(bytes);
  }
  return true;
}

void Connection::flush() {
  auto const error = st_flush(handle_);
  if (error != 0) throw_connection_failure(error, "flushing failed");
}

}  // namespace stp::files
