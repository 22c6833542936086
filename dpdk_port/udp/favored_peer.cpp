// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/favored_peer.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

namespace stp::port {

FavoredPeer::FavoredPeer(UdpSocket& socket, Routes& routes, bool alone)
    : link_(socket), routes_(routes) {
  if (!alone || !socket.has_ports()) return;
  routes_.open();
  wake_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (wake_fd_ < 0) return;
  can_favor_ = watch(link_);
  if (can_favor_) return;
  ::close(wake_fd_);
  wake_fd_ = -1;
}

FavoredPeer::~FavoredPeer() {
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

bool FavoredPeer::watch(const UdpSocket& socket) const {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(wake_fd_, EPOLL_CTL_ADD, socket.fd(), &event) == 0;
}

void FavoredPeer::stop_watching() {
  ::epoll_ctl(wake_fd_, EPOLL_CTL_DEL, socket_->fd(), nullptr);
  is_watched_ = false;
}

bool FavoredPeer::prepare_to_sleep(Time now) {
  came_awake_ = 0;
  if (socket_ && !is_watched_) {
    is_watched_ = watch(*socket_);
    if (!is_watched_) {
      failed_ = now;
      leave();
    }
  }
  // What is left there is read first.
  if (former_) return false;
  is_asleep_ = true;
  return true;
}

// The former one has its place at the port until it is empty.
void FavoredPeer::favor(const RecentGoal::Address& at, Time now) {
  if (former_ || (failed_ != kNever && now - failed_ < kAgain)) return;
  if (socket_) return make_room();
  way_ = {at.address, at.own};
  interface_ = find_interface();
  bool for_good = false;
  if (interface_ != 0) socket_ = link_.toward(at.address, at.own, interface_, for_good);
  if (for_good) can_favor_ = false;
  if (socket_ && !watch(*socket_)) socket_.reset();
  failed_ = socket_ ? kNever : now;
  if (!socket_) return;
  is_watched_ = true;
  came_awake_ = 0;
  since_ = looked_ = now;
  was_empty_ = false;
  failures_ = 0;
  together_ = {};
  peer_.length = to_socket_address(at.address, socket_->family(), peer_.name);
  station_ = candidate_;
}

void FavoredPeer::make_room() {
  if (!socket_) return;
  socket_->hear_nobody();
  former_ = std::move(socket_);
  station_ = {};
}

void FavoredPeer::leave() {
  make_room();
  lead_ = crowded_ = 0;
}

void FavoredPeer::look_for_route(Time now) {
  looked_ = now;
  if (find_interface() != interface_) leave();
}

// Rules may give packets another way by the address that they come from, so the kernel is asked
// for that of the socket.
unsigned FavoredPeer::find_interface() {
  const InternetAddress at = link_.address(way_.from);
  return routes_.interface_to({way_.to, {at.ip, at.scope}});
}

void FavoredPeer::end() {
  leave();
  let_go();
  if (wake_fd_ >= 0) ::epoll_ctl(wake_fd_, EPOLL_CTL_DEL, link_.fd(), nullptr);
}

void FavoredPeer::begin_again() {
  if (wake_fd_ >= 0) watch(link_);
}

}  // namespace stp::port
