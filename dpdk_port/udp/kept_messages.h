// SPDX-License-Identifier: BSD-3-Clause
// Messages of a link's socket that have been read, and that the kernel keeps a while longer. A
// sender on this host copies what is next into the memory that they give back. If this CPU has just
// read that, its caches have each line, and the sender's CPU must first take it away from them: so
// it copies two to three times faster into memory that was read some megabytes before (KeptLength).
// While much comes, messages are read without being taken out of the queue (MSG_PEEK), and the
// oldest ones are taken out later. Not where a NIC writes them, which needs no lines of anybody, as
// far as that is known: what comes from an address of the link's own, or a loopback one, has no NIC
// written, and of the rest the kernel tells of the first message alone (UdpSocket::is_of_nic).
#pragma once

#include <cstddef>
#include <cstdint>

#include "dpdk_port/udp/kept_length.h"
#include "dpdk_port/udp/udp_socket.h"
#include "stp/base/ring_queue.h"
#include "stp/types.h"

namespace stp::port {

class KeptMessages {
 public:
  // It begins where so many bytes have come in long messages within that time.
  static constexpr std::size_t kMuch = 512 << 10;
  static constexpr Time kSoon = kMillisecond;
  // How long messages are kept while no long one comes.
  static constexpr Time kWhile = 2 * kMillisecond;
  // So many of those that are too many go at a time: more than a call reads.
  static constexpr unsigned kAtOnce = 8;
  // How long nothing is kept if a NIC writes them, or the kernel cannot do it.
  static constexpr Time kAgain = 10 * kMillisecond;

  explicit KeptMessages(UdpSocket& socket);

  // Whether the call that reads leaves them in the queue, from settle() on that has said so.
  [[nodiscard]] bool are_kept() const { return keeps_; }
  // Of whom a message is.
  enum class From { kThisHost, kUnknown };
  // A message was read so; `long_one`: several datagrams that the kernel had joined.
  void have_read(std::size_t bytes, bool long_one, From from, Time now) {
    if (long_one) note_long(bytes, from, now);
    if (!keeps_) return;
    sizes_.push_back(static_cast<std::uint32_t>(bytes));
    bytes_ += bytes;
    ++total_;
    length_.came(bytes, now);
  }
  // Takes out those that have been kept for long enough. Once the messages of a call have been
  // dealt with, and when a call has found none.
  void settle(Time now) {
    if (keeps_ || much_) settle_some(now);
  }
  // Takes out all, so that the socket is readable only if a message is new.
  void let_go(Time now);

  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  void note_long(std::size_t bytes, From from, Time now);
  void settle_some(Time now);
  void begin(Time now);
  bool take_out(Time now);
  void forget();

  UdpSocket& socket_;
  bool can_;
  bool keeps_ = false;
  bool much_ = false;  // has come lately
  From last_from_ = From::kUnknown;
  unsigned socket_was_ = 0;
  KeptLength length_;
  RingQueue<std::uint32_t> sizes_;
  std::size_t bytes_ = 0;
  std::size_t came_ = 0;  // of long messages since
  Time since_ = 0, last_long_ = 0, again_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace stp::port
