// SPDX-License-Identifier: BSD-3-Clause
// The station that most lone datagrams of a link go to has a socket of its own, at the same address
// and port as the link's and connected to it: so the kernel looks for no route and no neighbor for
// each datagram, neither to the station nor from it, and its calls tell and are told nothing but
// the datagram. What comes from that station arrives there; all others have the link's socket. It
// is for lone datagrams: many at a time are joined, and so come to the link's socket.
//
// Its socket is bound to the interface by which the kernel sends to the station, and so gets
// nothing that pretends to come from there and comes by another one.
//
// Only of a link with one shard: a connected socket gets all that a station sends, whatever shard
// it is for. Where the kernel refuses, everything goes on by the link's socket.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "dpdk_port/link/address.h"
#include "dpdk_port/udp/peers.h"
#include "dpdk_port/udp/routes.h"
#include "dpdk_port/udp/udp_socket.h"
#include "stp/types.h"
#include "stp/wire/layout.h"

namespace stp::port {

// How often an idle turn asks a socket for the answer to a lone datagram that has left by it. What
// a turn does besides takes more than half as long as a call that finds nothing, and a datagram
// that comes meanwhile waits for it: so turns in which an answer may come ask several times. Only
// for a while: the program may have something else to do.
class LoneAnswer {
 public:
  static constexpr unsigned kAsks = 4;
  static constexpr unsigned kTurns = 16;  // some 25 us

  void sent() { turns_ = kTurns; }
  [[nodiscard]] unsigned asks() const { return turns_ != 0 ? kAsks : 1; }
  // A turn has asked; `came`: something was there.
  void turn(bool came) {
    if (turns_ != 0) turns_ = came ? 0 : turns_ - 1;
  }

 private:
  unsigned turns_ = 0;  // that may still bring it
};

class FavoredPeer {
 public:
  // How many more lone datagrams a station gets than all others together before it is favored.
  static constexpr unsigned kEnough = 256;
  // How long nobody is favored after the kernel has refused, but may not the next time.
  static constexpr Time kAgain = kSecond;
  // How often the kernel is asked by which interface it sends to the station.
  static constexpr Time kLook = kSecond;
  // So many calls that send to it fail, with nothing from it in between, until it is favored no
  // more: anybody may forge what makes one fail.
  static constexpr unsigned kMostFailures = 4;
  // What comes from a station many at a time is joined at the link's socket, and would come one by
  // one by a socket of its own. So it is favored no more once it has sent so many at a time so
  // often, where so many datagrams that were alone make up for one such time; and is not favored
  // before they have. Two are many if one has a whole page: the kernel takes long to part them for
  // a socket that nothing is joined at.
  static constexpr unsigned kMany = 4, kCrowds = 4, kLone = 16;
  static constexpr std::size_t kLong = wire::kHeaderSize + 4096;  // bytes
  // So many times something has come since the thread last slept: so it polls, and the kernel need
  // not look at each datagram for who is to be woken, which takes it 0.2 us.
  static constexpr unsigned kAwake = 64;
  // How long a message of its socket tells whose it is: anybody's may have come there before it was
  // connected.
  static constexpr Time kSettled = 100 * kMillisecond;

  // `socket`: the link's. It and `routes` outlive this. `alone`: it is the only one.
  FavoredPeer(UdpSocket& socket, Routes& routes, bool alone);
  ~FavoredPeer();
  FavoredPeer(const FavoredPeer&) = delete;
  FavoredPeer& operator=(const FavoredPeer&) = delete;

  // A lone datagram has left for a station that the Node has a connection with.
  void sent(const MacAddr& to, const RecentGoal::Address& at, Time now) {
    if (!can_favor_) return;
    if (to != candidate_) {
      if (lead_ == 0) candidate_ = to;
      if (lead_ != 0) --lead_;
    } else if (lead_ < kEnough) {
      ++lead_;
    } else if (to != station_) {
      favor(at, now);
    }
  }

  // So many datagrams have come from a station joined, by the link's socket.
  void came_joined(const MacAddr& from, unsigned datagrams, std::size_t longest) {
    if ((datagrams >= kMany || is_long_pair({datagrams, longest})) && from == candidate_)
      lead_ -= std::min(lead_, kLone);
  }
  // So many have come at a time by its own. `continues`: nothing was found missing since others.
  void came(unsigned datagrams, std::size_t longest, bool continues) {
    if (datagrams != 0 && is_watched_ && !is_asleep_ && ++came_awake_ >= kAwake) stop_watching();
    if (!continues) together_ = {};
    together_.datagrams += datagrams;
    together_.longest = std::max(together_.longest, longest);
    if (datagrams >= kMany || is_long_pair(together_)) {
      crowded_ += kLone;
      together_ = {};
    }
    if (datagrams == 1 && crowded_ > 0) --crowded_;
    if (crowded_ >= kCrowds * kLone) leave();
  }

  // By the socket for it.
  LoneAnswer& answer() { return answer_; }

  // The socket for that station; nullptr: it has none.
  [[nodiscard]] UdpSocket* socket_to(const MacAddr& station) const {
    return station == station_ ? socket_.get() : nullptr;
  }
  // Those that datagrams may arrive at besides the link's; nullptr: there is none. What the station
  // that was favored before has sent is to be read until nothing is left, and let_go() ends that.
  [[nodiscard]] UdpSocket* socket() const { return socket_.get(); }
  [[nodiscard]] UdpSocket* former() const { return former_.get(); }
  void let_go() { former_.reset(); }
  // The address of this host that they are at, as the table of peers has it.
  [[nodiscard]] const OwnAddress& own() const { return way_.from; }
  // Earlier datagrams of the station may still be at the link's socket.
  [[nodiscard]] bool is_settled(Time now) const { return now - since_ >= kSettled; }
  // Whether each message of its socket is a datagram from peer(), and has nothing to tell besides.
  [[nodiscard]] bool is_plain(Time now) const { return is_settled(now) && !link_.tells_marks(); }
  struct SocketName {
    sockaddr_storage name{};
    socklen_t length = 0;
  };
  [[nodiscard]] const SocketName& peer() const { return peer_; }

  // Whether the last call found nothing on its socket.
  [[nodiscard]] bool was_empty() const { return was_empty_; }
  void note_empty(bool is_empty) {
    was_empty_ = is_empty;
    if (!is_empty) failures_ = 0;
  }
  // A call on its socket has failed.
  void failed() {
    if (++failures_ >= kMostFailures) leave();
  }

  // Once per turn.
  void look(Time now) {
    if (socket_ && now - looked_ >= kLook) look_for_route(now);
  }
  // Nobody is favored, until a station has kEnough anew.
  void leave();
  // The link's socket is about to be another one; and is it now, or has stayed.
  void end();
  void begin_again();
  // Messages of its socket tell of marks as those of the link's do.
  void tell_marks() const {
    if (socket_ && link_.tells_marks()) socket_->tell_marks();
  }

  // From a prepare_to_sleep() that has returned true until woke_up(), wake_fd() is readable
  // whichever socket a datagram has come to. False: not now.
  bool prepare_to_sleep(Time now);
  void woke_up() { is_asleep_ = false; }
  // The same as long as the link is open.
  [[nodiscard]] int wake_fd() const { return wake_fd_ < 0 ? link_.fd() : wake_fd_; }

 private:
  struct Together {
    unsigned datagrams = 0;
    std::size_t longest = 0;
  };
  static bool is_long_pair(const Together& all) {
    return all.datagrams > 1 && all.longest >= kLong;
  }
  void favor(const RecentGoal::Address& at, Time now);
  void make_room();
  unsigned find_interface();
  void look_for_route(Time now);
  bool watch(const UdpSocket& socket) const;
  void stop_watching();

  UdpSocket& link_;
  Routes& routes_;
  int wake_fd_ = -1;  // -1: the link's is enough
  bool can_favor_ = false;
  MacAddr candidate_, station_;
  unsigned lead_ = 0;  // of the candidate
  unsigned crowded_ = 0;
  Together together_;
  Time failed_ = kNever;
  Time since_ = 0, looked_ = 0;
  Peers::Route way_{};
  unsigned interface_ = 0;
  bool was_empty_ = false;
  bool is_watched_ = false, is_asleep_ = false;
  unsigned came_awake_ = 0;
  LoneAnswer answer_;
  unsigned failures_ = 0;  // in a row
  SocketName peer_;
  std::unique_ptr<UdpSocket> socket_, former_;
};

}  // namespace stp::port
