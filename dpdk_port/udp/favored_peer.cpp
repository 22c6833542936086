// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/favored_peer.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

namespace stp::port {

FavoredPeer::FavoredPeer(UdpSocket& socket, bool alone) : link_(socket) {
  if (!alone || !socket.has_ports()) return;
  wake_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (wake_fd_ < 0 || watch(link_)) return;
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

// The former one has its place at the port until it is empty.
void FavoredPeer::favor(const RecentGoal::Address& at, Time now) {
  if (former_ || (failed_ != kNever && now - failed_ < kAgain)) return;
  if (socket_) return make_room();
  socket_ = link_.toward(at.address, at.own);
  if (socket_ && !watch(*socket_)) socket_.reset();
  failed_ = socket_ ? kNever : now;
  if (!socket_) return;
  own_ = at.own;
  since_ = now;
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
  lead_ = 0;
}

void FavoredPeer::begin_again() {
  leave();
  if (wake_fd_ >= 0) watch(link_);
}

}  // namespace stp::port
