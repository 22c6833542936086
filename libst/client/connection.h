// SPDX-License-Identifier: BSD-3-Clause
// What st_connect and st_accept make: one Virtual Connection and its channel; or the Port of a
// connectionless endpoint, which is a channel without a peer.
#pragma once

#include "libst/client/endpoint.h"
#include "libst/client/inbox.h"
#include "stp/channel/user_side.h"

namespace stp::client {

// Functions return 0 or a negative errno. Any thread may call any of them.
class Connection {
 public:
  static constexpr Kind kKind = Kind::kConnection;

  Connection(std::shared_ptr<Endpoint> endpoint, const Reply& made,
             std::shared_ptr<SharedMemory> memory);

  // Until the peer has answered; needs no time on an accepted connection, nor on one that the peer
  // has asked for and that waits for the decision.
  int wait_open(Time deadline);
  // The decision. A rejected one is over.
  int admit(const OptionPayload& option) { return decide(true, option); }
  int reject(const OptionPayload& option) { return decide(false, option); }

  // What to send: a header, its payload, and for DATA where the bytes stand.
  struct Sending {
    wire::Header header;
    const void* payload = nullptr;
    std::uint32_t length = 0, bufx = 0, offset = 0;
    std::uint64_t destination = 0;  // MAC address; connectionless only
  };
  // Blocks while the transmit queue is full.
  int send(const Sending& what);
  // 1: with payload; it is copied to `payload` if that is not nullptr. `sender`: whose header;
  // where it is nullptr or names kAnyone, the oldest. Whose it was is put there.
  int receive(wire::Header& header, void* payload, Time deadline, std::uint64_t* sender = nullptr);
  // Until the link no longer reads the memory of anything sent before.
  int flush();
  int info(Reply& reply) const;
  int free_mx(std::uint16_t mx);
  // Its handle has been retired. begin_close wakes who waits here, sends what is queued and asks
  // to disconnect; end_close waits for the peer's confirmation, for a while.
  int begin_close();
  void end_close(Time deadline);
  // Its handle has been retired, and nothing of it is left to end.
  void forget();
  // For one that nobody has seen.
  void abandon();

  // How long to wait for a peer's confirmation.
  static constexpr Time kClosePatience = kSecond;

  // Why the connection has ended of itself, told once; 0: it has not, or that was told.
  int take_end();
  [[nodiscard]] Handle handle() const { return handle_; }
  [[nodiscard]] Endpoint& endpoint() const { return *endpoint_; }
  [[nodiscard]] VcId vc() const { return vc_; }
  void set_handle(Handle handle) { handle_ = handle; }

 private:
  int decide(bool admit, const OptionPayload& option);
  bool try_send(const Sending& what);  // false: the transmit queue is full
  int check(const Sending& what) const;
  int check_data(const Sending& what) const;
  static int check_destination(const Sending& what);
  [[nodiscard]] int over() const;
  [[nodiscard]] int why_over() const;
  [[nodiscard]] int end_of_channel() const;
  int learn_peer();
  int wait_flushed(bool closing);
  int disconnect(bool at_once);

  const std::shared_ptr<Endpoint> endpoint_;
  Backend& backend_;
  const VcId vc_;
  const std::uint32_t bell_;
  const std::shared_ptr<SharedMemory> memory_;
  const unsigned bufsize_;       // of this side
  unsigned remote_bufsize_ = 0;  // known from the start or once the peer has answered
  unsigned send_stu_log2_ = 0;
  UserChannel channel_;
  std::mutex sending_, receiving_;  // the channel's two ends
  Inbox inbox_;                     // under receiving_
  std::uint32_t refused_ = 0;       // as of the last flush; under sending_
  std::uint32_t over_budget_ = 0;   // of those
  std::atomic<bool> ended_{false};  // closed by this side
  std::atomic<bool> end_told_{false};
  std::atomic<bool> asked_;  // the peer has asked for it, and nobody has decided
  Handle handle_ = 0;
};

}  // namespace stp::client
