// SPDX-License-Identifier: BSD-3-Clause
// The object behind st_connect and st_accept: one Virtual Connection and its channel. Also the Port
// of a connectionless endpoint: a channel without a peer.
#pragma once

#include <deque>

#include "libst/client/endpoint.h"
#include "stp/base/mutex.h"
#include "stp/channel/rings.h"

namespace stp::client {

inline constexpr std::uint64_t kAnyone = 0;

// Takes headers from a Schedule Header Queue: the oldest, or the oldest of one sender. Headers of
// other senders before it are set aside, in order, for later calls. Not thread-safe.
class Inbox {
 public:
  // The most headers set aside.
  static constexpr std::size_t kMostAside = 4096;

  // Returns 1 and the oldest header from `sender` (a MAC address, or kAnyone); 0: there is none;
  // -ENOBUFS: too many headers of others are set aside to search the queue further.
  int take(UserChannel& channel, std::uint64_t sender, ReceivedEntry& out);

 private:
  std::deque<ReceivedEntry> aside_;
};

// Functions return 0 or a negative errno. Thread-safe.
class Connection {
 public:
  static constexpr Kind kKind = Kind::kConnection;

  // `peer`: its station, as MacAddr::to_u64; 0: it has none. `asked`: the peer waits for a
  // decision.
  Connection(std::shared_ptr<Endpoint> endpoint, const GivenChannel& given, std::uint64_t peer,
             bool asked, std::shared_ptr<SharedMemory> memory);

  // Waits until the peer has answered. Returns at once on an accepted connection, and on one that
  // waits for this side's decision.
  int wait_open(Time deadline);
  // Accept or reject a connection that the peer asks for. A rejected one is over.
  int admit(const OptionPayload& option) { return decide(true, option); }
  int reject(const OptionPayload& option) { return decide(false, option); }

  // What to send: a header, its payload, and for DATA the position of the bytes.
  struct Sending {
    wire::Header header;
    const void* payload = nullptr;
    std::uint32_t length = 0, bufx = 0, offset = 0;
    std::uint64_t destination = 0;  // MAC address; connectionless only
  };
  // Blocks while the transmit queue is full.
  int send(const Sending& what);
  // Returns 1 if the header has a payload, which is copied to `payload` unless that is nullptr.
  // `sender`: in: whose header to take; nullptr or kAnyone: the oldest one; out: its sender.
  int receive(wire::Header& header, void* payload, Time deadline, std::uint64_t* sender = nullptr);
  // Waits until the link no longer reads the memory of anything sent before.
  int flush();
  int info(VcFacts& out) const;
  int free_mx(std::uint16_t mx);
  // Three steps. begin_close, before the handle is retired: wakes threads that wait here, and waits
  // until what is queued has been sent; `sent`: 0, or why some was not. -EINTR: a signal handler
  // ran, and nothing is closed. -EBADF: another thread closes it. close, after the handle has been
  // retired: asks to disconnect. end_close waits for the peer's confirmation, with a timeout.
  int begin_close(int& sent);
  // After -EINTR: whether st_delete, which another thread has called meanwhile, has left this one
  // to be closed by its own call.
  bool goes_with_endpoint();
  int close(bool at_once);
  void end_close(Time deadline);
  // It is not closed after all.
  void go_on() { ended_ = false; }
  // Removes the connection from its endpoint. Call after the handle has been retired, if there is
  // nothing to disconnect.
  void forget();
  // Disconnects a connection that was never handed out.
  void abandon();

  // Timeout for the peer's confirmation.
  static constexpr Time kClosePatience = kSecond;

  // Returns, once, why the connection has ended without a call of this side; 0: it has not ended,
  // or the reason was returned before.
  int take_end();
  [[nodiscard]] Endpoint& endpoint() const { return *endpoint_; }
  [[nodiscard]] VcId vc() const { return vc_; }
  void set_handle(Handle handle) { handle_ = handle; }

 private:
  int decide(bool admit, const OptionPayload& option);
  [[gnu::noinline]] int send_later(Sending what);
  bool try_send(const Sending& what);  // false: the transmit queue is full
  int check(const Sending& what) const;
  int check_data(const Sending& what) const;
  static int check_destination(const Sending& what);
  [[nodiscard]] int over() const;
  [[nodiscard]] int why_over() const;
  [[nodiscard]] int end_of_channel() const;
  int learn_peer();
  int wait_flushed(bool closing);
  int unsent();
  int disconnect(bool at_once);

  const std::shared_ptr<Endpoint> endpoint_;
  Backend& backend_;
  const VcId vc_;
  const std::uint32_t bell_;
  const MacAddr peer_;  // zero: it is connectionless
  const std::shared_ptr<SharedMemory> memory_;
  const unsigned bufsize_;       // of this side
  unsigned remote_bufsize_ = 0;  // of the peer: set by wait_open()
  unsigned send_stu_log2_ = 0;
  UserChannel channel_;
  Mutex sending_, receiving_;  // one for each direction of the channel
  Inbox inbox_ STP_GUARDED_BY(receiving_);
  std::uint32_t refused_ STP_GUARDED_BY(sending_) = 0;      // at the last flush
  std::uint32_t over_budget_ STP_GUARDED_BY(sending_) = 0;  // part of refused_
  std::atomic<bool> ended_{false};                          // closed by this side, or being closed
  std::atomic<bool> end_told_{false};
  std::atomic<bool> asked_;  // the peer has asked for it; no decision yet
  Handle handle_ = 0;
};

}  // namespace stp::client
