// SPDX-License-Identifier: BSD-3-Clause
// A file system of one file that never answers the FLUSH of a close(): a thread that closes a
// descriptor of that file waits, and cannot be killed, until the file system ends.
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

constexpr std::uint64_t kFileNode = 2;

// A child serves it: a process that ends while it waits for a FLUSH would never close the device.
class FileSystem {
 public:
  FileSystem(const std::string& where, std::chrono::steady_clock::time_point until)
      : device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
    if (!device_) throw Cannot("no /dev/fuse for this user");
    const auto options = "fd=" + std::to_string(device_.get()) +
                         ",rootmode=40000,user_id=" + std::to_string(::geteuid()) +
                         ",group_id=" + std::to_string(::getegid());
    if (::mount("hostile", where.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
      throw Cannot("it may not mount");
    const auto parent = ::getpid();
    child_ = ::fork();
    if (child_ == 0) {
      serve(parent, until);
      // Closing the device ends the connection, and waiting threads get an error.
      ::_exit(static_cast<int>(std::min<std::uint64_t>(unanswered_, 100)));
    }
    device_.reset();
  }
  // Waits for its end. Returns how many closes of its file waited.
  std::uint64_t end() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFEXITED(status) ? static_cast<std::uint64_t>(WEXITSTATUS(status)) : 0;
  }

 private:
  void serve(pid_t parent, std::chrono::steady_clock::time_point until) {
    std::vector<std::byte> request(1U << 17);
    while (std::chrono::steady_clock::now() < until) {
      pollfd ready{.fd = device_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20) != 1) continue;
      const auto size = ::read(device_.get(), request.data(), request.size());
      if (size < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
      fuse_in_header header;
      std::memcpy(&header, request.data(), sizeof header);
      answer(header, parent);
    }
  }

  template <typename Body>
  void reply(std::uint64_t unique, int error, const Body& body, std::size_t size) {
    struct {
      fuse_out_header header;
      Body body;
    } out{};
    out.header.len = static_cast<std::uint32_t>(sizeof out.header + size);
    out.header.error = error;
    out.header.unique = unique;
    out.body = body;
    [[maybe_unused]] const auto put = ::write(device_.get(), &out, out.header.len);
  }
  void reply_nothing(std::uint64_t unique, int error) { reply(unique, error, std::uint64_t{0}, 0); }

  static fuse_attr attributes(std::uint64_t node) {
    fuse_attr attr{};
    attr.ino = node;
    attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0666;
    attr.nlink = 1;
    attr.size = node == FUSE_ROOT_ID ? 0 : kBuffer;
    attr.blksize = kPage;
    return attr;
  }

  void answer(const fuse_in_header& header, pid_t parent) {
    switch (header.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_write = kPage;
        return reply(header.unique, 0, out, sizeof out);
      }
      case FUSE_LOOKUP: {
        fuse_entry_out out{};
        out.nodeid = kFileNode;
        out.attr = attributes(kFileNode);
        return reply(header.unique, 0, out, sizeof out);
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr = attributes(header.nodeid);
        return reply(header.unique, 0, out, sizeof out);
      }
      case FUSE_OPEN:
        return reply(header.unique, 0, fuse_open_out{}, sizeof(fuse_open_out));
      case FUSE_FLUSH:
        if (header.pid == static_cast<std::uint32_t>(parent))
          return reply_nothing(header.unique, 0);
        ++unanswered_;
        return;
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;  // requests without an answer
      case FUSE_RELEASE:
        return reply_nothing(header.unique, 0);
      default:
        return reply_nothing(header.unique, -ENOSYS);
    }
  }

  UniqueFd device_;
  pid_t child_ = -1;
  std::uint64_t unanswered_ = 0;
};

}  // namespace

void fuse(Attack& attack) {
  // The mount ends with this process.
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    throw Cannot("it may not have mounts of its own");
  std::string where = "/tmp/hostile-XXXXXX";
  if (::mkdtemp(where.data()) == nullptr) throw Cannot("no directory");
  FileSystem files(where, attack.until);
  std::uint64_t sent = 0;
  constexpr std::size_t kFiles = 4;
  for (std::size_t i = 0; i < kFiles; ++i) {
    const UniqueFd file(::open((where + "/file").c_str(), O_RDWR | O_CLOEXEC));
    // Later, stpd may have been delayed so long that the file system has ended.
    if (!file && i > 0) break;
    if (!file)
      throw Cannot(std::string("its own file system does not work: ") + std::strerror(errno));
    Client client(attack.socket);
    if (!client.ok()) continue;
    auto order = Client::request(i % 2 == 0 ? RequestKind::kMap : RequestKind::kTraceStart,
                                 client.open_endpoint());
    order.direction = static_cast<std::uint32_t>(Direction::kReceive);
    if (i % 2 == 0) {
      order.segment_count = order.piece_count = 1;
      order.segments[0] = {.fd_index = 0, .reserved = 0, .offset = 0, .length = kBuffer};
      order.pieces[0] = {.at = 0, .length = kBuffer};
    }
    const auto fd = file.get();
    sent += client.send_raw(std::as_bytes(std::span(&order, 1)), std::span(&fd, 1)) ? 1 : 0;
    if (i == 0) say_ready();
  }
  rest(attack);
  say("unanswered", files.end());
  ::umount2(where.c_str(), MNT_DETACH);
  ::rmdir(where.c_str());
  say("sent", sent);
}

}  // namespace stp::hostile
