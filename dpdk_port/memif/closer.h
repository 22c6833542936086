// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that a peer has a part in, and the threads that close them and unmap memory.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <memory>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

namespace stp::port::memif {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Does `work` in a thread that nobody waits for, and that handles no signal of the program. False:
// there is no thread to be had.
template <typename Work>
bool in_background(Work work) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// Closes descriptors and unmaps memory that a peer has a part in. The kernel makes whoever lets go
// of them last wait, and the peer decides for how long: for a socket that lingers, for a file whose
// server does not answer, for the pages of a large file. So a thread that nobody waits for does it.
//
// There is one Closer for each path of a control socket: peers at one path delay each other only.
class Closer {
 public:
  // While so many wait, no message of a peer is received, and no client is accepted.
  static constexpr std::size_t kMost = 64;

  Closer();
  // Waits a little, so that mostly nothing is left when a link has been closed. What takes longer,
  // the thread closes afterwards.
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  // These never wait.
  void close(FileDescriptor file);
  void unmap(std::span<std::byte> memory);
  // Those that wait, and the one that is being closed.
  [[nodiscard]] std::size_t waiting() const;
  // Also makes the thread if that was impossible before.
  [[nodiscard]] bool is_full();

 private:
  struct State;
  struct Work;
  void add(Work work);
  const std::shared_ptr<State> state_;  // the thread has it too
};

// A descriptor that a Closer closes.
class SharedDescriptor {
 public:
  SharedDescriptor() = default;
  SharedDescriptor(FileDescriptor file, std::shared_ptr<Closer> closer)
      : file_(std::move(file)), closer_(std::move(closer)) {}
  SharedDescriptor(SharedDescriptor&&) noexcept = default;
  SharedDescriptor& operator=(SharedDescriptor&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~SharedDescriptor() {
    if (file_) closer_->close(std::move(file_));
  }
  [[nodiscard]] int get() const { return file_.get(); }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(file_); }
  [[nodiscard]] const std::shared_ptr<Closer>& closer() const { return closer_; }

 private:
  FileDescriptor file_;
  std::shared_ptr<Closer> closer_;
};

}  // namespace stp::port::memif
