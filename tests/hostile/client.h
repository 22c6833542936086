// SPDX-License-Identifier: BSD-3-Clause
// A client of stpd that implements the socket's protocol itself, for honest and for hostile
// programs. It checks nothing and keeps all that it receives, so tests can use everything that stpd
// shares with a client.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libst/ipc/client_page.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"
#include "libst/os/unique_fd.h"
#include "stp/channel/rings.h"
#include "tests/host/any_message.h"

namespace stp::hostile {

using host::Reply;
using host::Request;
using ipc::RequestKind;
using ipc::SharedMemory;
using os::UniqueFd;

inline constexpr std::size_t kPage = 4'096;
// One Bufx, and the longest STU that a client here asks for.
inline constexpr unsigned kBufferLog2 = 14;
inline constexpr std::size_t kBuffer = std::size_t{1} << kBufferLog2;

// Memory that stpd accepts: sealed against shrinking, with all pages allocated.
UniqueFd shareable(std::size_t bytes);

struct Channel {
  std::uint64_t vc = 0;
  std::uint32_t bell = 0;
  UniqueFd fd;  // the descriptor of `memory`
  std::shared_ptr<SharedMemory> memory;
  UserChannel rings;

  [[nodiscard]] explicit operator bool() const { return memory != nullptr; }
  [[nodiscard]] ChannelControl& control() const {
    return *reinterpret_cast<ChannelControl*>(memory->data());
  }
};

class Client {
 public:
  // Connects to stpd and says hello; see ok(). `says_mapped`: also that it has mapped its page.
  explicit Client(const std::string& socket, bool says_mapped = true);
  [[nodiscard]] bool ok() const { return page_ != nullptr; }

  static Request request(RequestKind kind, std::uint64_t endpoint = 0);
  // Returns the result of the reply, or -ECONNRESET if stpd has disconnected. The reply is in
  // reply() and its descriptors are in fds().
  int ask(const Request& request, std::span<const int> fds = {});
  int ask(RequestKind kind, std::uint64_t endpoint = 0) { return ask(request(kind, endpoint)); }
  // It has mapped its page (0), or the channel of a connection. Keeps the reply before.
  int say_mapped(std::uint64_t vc);
  // Sends any bytes with any descriptors, and does not wait for an answer. Returns false if it
  // could not be sent.
  bool send_raw(std::span<const std::byte> bytes, std::span<const int> fds) const;

  // `credits`: entries of its transmit queues. Returns 0 if it was refused.
  std::uint64_t open_endpoint(std::uint32_t credits = 64);
  int listen(std::uint64_t endpoint, std::uint32_t uport);
  // The station at an IPv4 or IPv6 address; 0: the link reaches none there.
  std::uint64_t resolve(const std::string& address);
  // `station`: 0 is the link itself.
  Channel connect(std::uint64_t endpoint, std::uint32_t uport, std::uint64_t station = 0);
  Channel accept(std::uint64_t endpoint);  // empty if no connection waits
  // Waits a few seconds for a connection.
  Channel await_accept(std::uint64_t endpoint);
  // The two ends of a connection of this client to itself.
  struct Ends {
    Channel out, in;
    std::uint64_t caller = 0, listener = 0;  // endpoints
  };
  Ends connect_to_itself(std::uint32_t uport, std::uint32_t credits = 64);
  int map(std::uint64_t endpoint, Direction direction, std::uint32_t base, int fd,
          std::size_t bytes, std::uint64_t& region);
  int alloc_mx(std::uint64_t region, std::uint16_t& mx);
  void ring(const Channel& channel) const;

  [[nodiscard]] const Reply& reply() const { return reply_; }
  [[nodiscard]] std::vector<UniqueFd>& fds() { return fds_; }
  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] ipc::ClientPage& page() const {
    return *reinterpret_cast<ipc::ClientPage*>(page_->data());
  }
  [[nodiscard]] const SharedMemory& page_memory() const { return *page_; }
  [[nodiscard]] int page_fd() const { return page_fd_.get(); }
  [[nodiscard]] int bell() const { return bell_.get(); }
  [[nodiscard]] std::uint64_t mac() const { return mac_; }
  void hang_up() { socket_.reset(); }

 private:
  Channel take_channel();

  UniqueFd socket_, page_fd_, bell_;
  std::shared_ptr<SharedMemory> page_;
  std::uint64_t mac_ = 0;
  Reply reply_{};
  std::vector<UniqueFd> fds_;
};

}  // namespace stp::hostile
