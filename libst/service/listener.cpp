// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace stp::service {

UniqueFd Listener::end() {
  if (socket_) file_.remove();
  watched_ = false;
  return std::exchange(socket_, {});
}

void Listener::watch(int epoll, std::uint64_t key) {
  epoll_ = epoll;
  key_ = key;
  watched_ = false;
  resume();
}

void Listener::pause() {
  accepts_from_ = Clock::now() + kPause;
  if (watched_) watched_ = ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr) != 0;
}

void Listener::resume() {
  if (watched_ || !socket_) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key_;
  watched_ = ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_.get(), &event) == 0;
}

void Listener::resume_if_due() {
  if (Clock::now() >= accepts_from_) resume();
}

UniqueFd Listener::accept(int& error) const {
  UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  error = socket ? 0 : errno;
  return socket;
}

bool Listener::starved(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace stp::service
