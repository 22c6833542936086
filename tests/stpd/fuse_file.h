// SPDX-License-Identifier: BSD-3-Clause
// A file whose close() is never answered, nor a poll(): a FUSE file system of one file, implemented
// here, that answers no FLUSH and no POLL. Its server is another process, which always ends with
// the test and so releases the threads that wait for it.
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "libst/os/unique_fd.h"
#include "tests/temporary_directory.h"

namespace stp::test {

class FuseFile {
 public:
  FuseFile() {
    const auto path = directory_.path();
    std::array<int, 2> said{};
    shared_ = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (shared_ == MAP_FAILED || ::pipe2(said.data(), O_CLOEXEC) != 0) {
      why_not_ = std::strerror(errno);
      return;
    }
    os::UniqueFd const told(said[0]);
    os::UniqueFd says(said[1]);
    server_ = ::fork();
    if (server_ == 0) Server{*shared_, path.c_str(), says.get()}.run();
    says.reset();
    int error = EIO;
    if (::read(told.get(), &error, sizeof error) != sizeof error) error = EIO;
    if (error != 0) {
      why_not_ = std::string("cannot mount a FUSE file system: ") + std::strerror(error);
      return;
    }
    // It is mounted only in the server's mount namespace.
    const auto inside = "/proc/" + std::to_string(server_) + "/root" + path + "/file";
    file_.reset(::open(inside.c_str(), O_RDWR | O_CLOEXEC));
    if (!file_) why_not_ = std::string("the FUSE file: ") + std::strerror(errno);
  }
  ~FuseFile() {
    end();
    file_.reset();
    ::munmap(shared_, sizeof(Shared));
  }
  FuseFile(const FuseFile&) = delete;
  FuseFile& operator=(const FuseFile&) = delete;

  // Returns why the file could not be made; empty: it was made.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] int fd() const { return file_.get(); }
  [[nodiscard]] unsigned flushes() const { return shared_->flushes; }
  [[nodiscard]] unsigned polls() const { return shared_->polls; }
  // Ends the server, and so releases who waits for it.
  void end() {
    if (server_ <= 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
    server_ = -1;
  }
  // From now on the server answers nothing at all.
  void fall_silent() { shared_->silent = true; }

 private:
  struct Shared {
    std::atomic<unsigned> flushes, polls;
    std::atomic<bool> silent;
  };

  // Runs in a child of a program with threads, so it uses only system calls and the stack.
  struct Server {
    Shared& shared;
    const char* path;
    int says;
    int device = -1;

    [[noreturn]] void run() {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto error = mount();
      [[maybe_unused]] const auto put = ::write(says, &error, sizeof error);
      if (error == 0) serve();
      ::_exit(0);
    }

    int mount() {
      device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
      if (device < 0) return errno;
      std::array<char, 96> options{};
      std::snprintf(options.data(), options.size(),
                    "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
      const auto mounted =
          ::unshare(CLONE_NEWNS) == 0 &&
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
          ::mount("stp-test", path, "fuse", MS_NOSUID | MS_NODEV, options.data()) == 0;
      return mounted ? 0 : errno;
    }

    void serve() {
      alignas(8) std::array<char, FUSE_MIN_READ_BUFFER + 4'096> buffer;
      for (;;) {
        const auto got = ::read(device, buffer.data(), buffer.size());
        if (got < 0 && errno == ENODEV) return;
        if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
        fuse_in_header in;
        std::memcpy(&in, buffer.data(), sizeof in);
        if (!shared.silent) answer(in);
      }
    }

    static fuse_attr attributes(std::uint64_t node) {
      fuse_attr attr{};
      attr.ino = node;
      attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666;
      attr.nlink = 1;
      attr.size = 1 << 20;
      return attr;
    }

    void answer(const fuse_in_header& in) {
      constexpr std::uint64_t kFileNode = 2;
      switch (in.opcode) {
        case FUSE_INIT: {
          fuse_init_out out{};
          out.major = FUSE_KERNEL_VERSION;
          out.minor = 31;
          out.max_write = 4'096;
          return reply(in, out);
        }
        case FUSE_LOOKUP: {
          fuse_entry_out out{};
          out.nodeid = kFileNode;
          out.entry_valid = 1'000;
          out.attr = attributes(kFileNode);  // not cached: each query goes to the server
          return reply(in, out);
        }
        case FUSE_GETATTR: {
          fuse_attr_out out{};
          out.attr = attributes(in.nodeid);
          return reply(in, out);
        }
        case FUSE_OPEN:
          return reply(in, fuse_open_out{});
        case FUSE_FLUSH:
          ++shared.flushes;
          return;
        case FUSE_POLL:
          ++shared.polls;
          return;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
          return;
        default:
          return refuse(in);
      }
    }

    template <typename Body>
    void reply(const fuse_in_header& in, const Body& body) {
      std::array<char, sizeof(fuse_out_header) + sizeof(Body)> message;
      const fuse_out_header out{.len = message.size(), .error = 0, .unique = in.unique};
      std::memcpy(message.data(), &out, sizeof out);
      std::memcpy(message.data() + sizeof out, &body, sizeof body);
      [[maybe_unused]] const auto put = ::write(device, message.data(), message.size());
    }
    void refuse(const fuse_in_header& in) {
      const fuse_out_header out{.len = sizeof out, .error = -ENOSYS, .unique = in.unique};
      [[maybe_unused]] const auto put = ::write(device, &out, sizeof out);
    }
  };

  TemporaryDirectory directory_;
  std::string why_not_;
  Shared* shared_ = nullptr;
  pid_t server_ = -1;
  os::UniqueFd file_;
};

}  // namespace stp::test
