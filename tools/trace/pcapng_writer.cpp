// SPDX-License-Identifier: BSD-3-Clause
#include "tools/trace/pcapng_writer.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace stp::trace {
namespace {

// Block types, option codes and constants of the pcapng format. Numbers are in the writer's own
// byte order: the byte-order magic tells readers which.
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kMajorVersion = 1, kMinorVersion = 0;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kUserApplication = 4;  // in a section header
constexpr std::uint16_t kInterfaceName = 2;    // in an interface description
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint8_t kNanoseconds = 9;   // 10^-9
constexpr std::uint16_t kPacketFlags = 2;  // in an enhanced packet

constexpr std::size_t padded(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

// A block under construction: type, room for its length, body.
class Block {
 public:
  explicit Block(std::uint32_t type) {
    add(type);
    add(std::uint32_t{0});
  }
  template <typename Number>
  void add(Number number) {
    append(&number, sizeof number);
  }
  void option(std::uint16_t code, const void* value, std::size_t size) {
    add(code);
    add(static_cast<std::uint16_t>(size));
    append(value, size);
    bytes_.resize(padded(bytes_.size()));
  }
  // The length stands at both ends of a block.
  const std::vector<std::byte>& finish() {
    add(std::uint32_t{kEndOfOptions});
    auto const length = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
    add(length);
    std::memcpy(bytes_.data() + sizeof(std::uint32_t), &length, sizeof length);
    return bytes_;
  }

 private:
  void append(const void* data, std::size_t size) {
    auto const* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> file_header(const PcapngWriter::Options& options) {
  Block section(kSectionHeader);
  section.add(kByteOrderMagic);
  section.add(kMajorVersion);
  section.add(kMinorVersion);
  section.add(~std::uint64_t{0});  // length of the section: not known
  section.option(kUserApplication, options.program.data(), options.program.size());

  Block interface(kInterfaceDescription);
  interface.add(kLinkTypeEthernet);
  interface.add(std::uint16_t{0});
  interface.add(std::uint32_t{0});  // frames are not cut
  interface.option(kInterfaceName, options.interface.data(), options.interface.size());
  interface.option(kTimeResolution, &kNanoseconds, sizeof kNanoseconds);

  auto header = section.finish();
  auto const& description = interface.finish();
  header.insert(header.end(), description.begin(), description.end());
  return header;
}

struct PacketHead {
  std::uint32_t type = kEnhancedPacket;
  std::uint32_t length;
  std::uint32_t interface = 0;
  std::uint32_t time_high, time_low;
  std::uint32_t captured, original;
};
static_assert(sizeof(PacketHead) == 28);

struct PacketTail {
  std::uint16_t flags_code = kPacketFlags, flags_size = sizeof(std::uint32_t);
  std::uint32_t flags;
  std::uint32_t end_of_options = kEndOfOptions;
  std::uint32_t length;
};
static_assert(sizeof(PacketTail) == 16);

}  // namespace

std::unique_ptr<PcapngWriter> PcapngWriter::create(const std::string& path, Options options,
                                                   std::string& error) {
  service::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  std::unique_ptr<PcapngWriter> writer;
  if (file)
    writer = create(std::move(file), options, error);
  else
    error = std::strerror(errno);
  if (!writer) error = path + ": " + error;
  return writer;
}

std::unique_ptr<PcapngWriter> PcapngWriter::create(service::UniqueFd file, const Options& options,
                                                   std::string& error) {
  auto const header = file_header(options);
  auto const written = ::write(file.get(), header.data(), header.size());
  if (written != static_cast<ssize_t>(header.size())) {
    if (written >= 0) errno = ENOSPC;
    error = std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<PcapngWriter> writer(new PcapngWriter(std::move(file), options));
  writer->file_size_ = header.size();
  writer->thread_ = std::thread([self = writer.get()] { self->run(); });
  return writer;
}

PcapngWriter::PcapngWriter(service::UniqueFd file, const Options& options)
    : file_(std::move(file)),
      max_frames_(options.max_frames),
      until_(options.duration == kNever
                 ? std::chrono::steady_clock::time_point::max()
                 : std::chrono::steady_clock::now() + std::chrono::nanoseconds(options.duration)),
      ring_(options.ring_bytes) {}

PcapngWriter::~PcapngWriter() {
  finish();
  thread_.join();
}

void PcapngWriter::finish() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  filling_.notify_one();
}

void PcapngWriter::put(const void* data, std::size_t size, std::uint64_t& at) {
  auto const place = at % ring_.size();
  auto const first = std::min(size, ring_.size() - place);
  if (first != 0) std::memcpy(ring_.data() + place, data, first);
  if (first != size)
    std::memcpy(ring_.data(), static_cast<const std::byte*>(data) + first, size - first);
  at += size;
}

void PcapngWriter::frame(Time time, Bytes head, Bytes rest, Way way) {
  if (error_.load(std::memory_order_relaxed) != 0) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (closed_.load(std::memory_order_relaxed)) return;
  if (frames_.load(std::memory_order_relaxed) >= max_frames_) return;
  auto const size = head.size() + rest.size();
  auto const length = sizeof(PacketHead) + padded(size) + sizeof(PacketTail);
  auto at = head_.load(std::memory_order_relaxed);
  auto const used = at - tail_.load(std::memory_order_acquire);
  if (length > ring_.size() - used) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  PacketHead const packet{.length = static_cast<std::uint32_t>(length),
                          .time_high = static_cast<std::uint32_t>(time >> 32),
                          .time_low = static_cast<std::uint32_t>(time),
                          .captured = static_cast<std::uint32_t>(size),
                          .original = static_cast<std::uint32_t>(size)};
  PacketTail const tail{.flags = static_cast<std::uint32_t>(way),
                        .length = static_cast<std::uint32_t>(length)};
  constexpr std::array<std::byte, 3> kPadding{};
  put(&packet, sizeof packet, at);
  put(head.data(), head.size(), at);
  put(rest.data(), rest.size(), at);
  put(kPadding.data(), padded(size) - size, at);
  put(&tail, sizeof tail, at);
  head_.store(at, std::memory_order_release);
  frames_.fetch_add(1, std::memory_order_relaxed);
  // Once per filling, so that a busy link does not cost a system call per frame.
  auto const half = ring_.size() / 2;
  if (used < half && used + length >= half) filling_.notify_one();
}

void PcapngWriter::run() {
  std::unique_lock lock(mutex_);
  bool last = false;
  while (drain() && !last) {
    last = closed_ || stopping_;  // closed a whole interval ago: no frame is on its way any more
    closed_ = closed_ || at_limit();
    // No condition: half a ring full ends the wait, too.
    if (!stopping_) filling_.wait_for(lock, std::chrono::nanoseconds(kFlushInterval));
    last = last || stopping_;
  }
  closed_ = true;
  file_.reset();
  finished_.store(true, std::memory_order_release);
}

bool PcapngWriter::at_limit() const {
  return frames_ >= max_frames_ || std::chrono::steady_clock::now() >= until_;
}

// False: the file takes no more.
bool PcapngWriter::drain() {
  auto const tail = tail_.load(std::memory_order_relaxed);
  auto const size = head_.load(std::memory_order_acquire) - tail;
  if (size == 0) return true;
  auto const place = tail % ring_.size();
  auto const first = std::min<std::size_t>(size, ring_.size() - place);
  std::array<iovec, 2> parts{{{ring_.data() + place, first}, {ring_.data(), size - first}}};
  auto const written = ::writev(file_.get(), parts.data(), 2);
  if (written != static_cast<ssize_t>(size)) return give_up(written);
  file_size_ += size;
  tail_.store(tail + size, std::memory_order_release);
  return true;
}

// A full disk, say: the frames before stay readable.
bool PcapngWriter::give_up(ssize_t written) {
  error_ = written < 0 ? -errno : -ENOSPC;
  [[maybe_unused]] auto const cut = ::ftruncate(file_.get(), static_cast<off_t>(file_size_.load()));
  return false;
}

}  // namespace stp::trace
