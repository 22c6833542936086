// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/kept_messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace stp::port {

KeptMessages::KeptMessages(UdpSocket& socket)
    : socket_(socket), can_(socket.kept_bytes() != 0), length_(socket.kept_bytes()) {}

void KeptMessages::note_long(std::size_t bytes, From from, Time now) {
  if (now - since_ > kSoon) {
    since_ = now;
    came_ = 0;
  }
  came_ += bytes;
  last_long_ = now;
  last_from_ = from;
  much_ = can_ && came_ >= kMuch;
}

void KeptMessages::settle_some(Time now) {
  if (!keeps_) return begin(now);
  if (socket_was_ != socket_.times_replaced()) return forget();
  const bool late = now - last_long_ > kWhile;
  for (unsigned i = 0; i < kAtOnce && !sizes_.empty(); ++i) {
    if (!late && bytes_ <= length_.bytes() && sizes_.size() <= length_.messages()) break;
    if (!take_out(now)) return;
  }
  if (late && sizes_.empty()) forget();
}

// What has been read so far has left the queue.
void KeptMessages::begin(Time now) {
  much_ = false;
  if (now < again_ || (last_from_ != From::kThisHost && socket_.is_of_nic()) ||
      !socket_.reads_each_once()) {
    again_ = std::max(again_, now + kAgain);
    return;
  }
  keeps_ = true;
  socket_was_ = socket_.times_replaced();
}

void KeptMessages::let_go(Time now) {
  if (keeps_ && socket_was_ != socket_.times_replaced()) forget();
  while (!sizes_.empty() && take_out(now)) continue;
  forget();
}

// Takes out the oldest one. False: all is as if nothing had been kept.
bool KeptMessages::take_out(Time now) {
  UdpSocket::Attempts attempts;
  for (;;) {
    // Its length, without its bytes.
    const auto size = ::recv(socket_.fd(), nullptr, 0, MSG_TRUNC | MSG_DONTWAIT);
    const int error = size < 0 ? errno : 0;
    if (error != 0 && socket_.is_of_earlier(error, attempts, now)) continue;
    if (size == static_cast<ssize_t>(sizes_.front())) break;
    // Reports come faster than they are read; or it is not the one that it must be: this kernel
    // does otherwise.
    if (!UdpSocket::may_be_reported(error)) can_ = false;
    forget();
    return false;
  }
  bytes_ -= sizes_.front();
  sizes_.pop_front();
  return true;
}

void KeptMessages::forget() {
  if (!sizes_.empty()) socket_.read_from_begin();
  sizes_.clear();
  bytes_ = 0;
  keeps_ = much_ = false;
}

}  // namespace stp::port
