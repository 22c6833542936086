// SPDX-License-Identifier: BSD-3-Clause
#include "tools/trace/pcapng_writer.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

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
    const auto length = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
    add(length);
    std::memcpy(bytes_.data() + sizeof(std::uint32_t), &length, sizeof length);
    return bytes_;
  }

 private:
  void append(const void* data, std::size_t size) {
    const auto* const from = static_cast<const std::byte*>(data);
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
  const auto& description = interface.finish();
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

struct PcapngWriter::State {
  State(service::UniqueFd opened, const Options& options);

  void put(const void* data, std::size_t size, std::uint64_t& at);
  void run();
  bool drain();
  bool give_up(ssize_t written);
  [[nodiscard]] bool at_limit() const {
    return frames >= max_frames || std::chrono::steady_clock::now() >= until;
  }

  service::UniqueFd file;
  const std::uint64_t max_frames;
  const std::chrono::steady_clock::time_point until;
  const std::chrono::milliseconds farewell;
  std::vector<std::byte> ring;
  // Positions count on and wrap only in the ring. It holds whole blocks from tail to head.
  std::atomic<std::uint64_t> head{0}, tail{0};
  std::atomic<std::uint64_t> frames{0}, dropped{0};
  std::atomic<std::uint64_t> file_size{0};  // of whole blocks
  std::atomic<int> error{0};
  // closed: no frame is accepted any more. stopping: the writer shall end. finished: it has ended.
  std::atomic<bool> closed{false}, stopping{false}, finished{false};
  std::mutex mutex;  // never held during file operations
  std::condition_variable filling, ended;
};

PcapngWriter::State::State(service::UniqueFd opened, const Options& options)
    : file(std::move(opened)),
      max_frames(options.max_frames),
      until(options.duration == kNever
                ? std::chrono::steady_clock::time_point::max()
                : std::chrono::steady_clock::now() + std::chrono::nanoseconds(options.duration)),
      farewell(options.farewell),
      ring(options.ring_bytes) {}

std::unique_ptr<PcapngWriter> PcapngWriter::create(const std::string& path, Options options,
                                                   std::string& error) {
  service::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const auto header = file_header(options);
  const auto written = file ? ::write(file.get(), header.data(), header.size()) : -1;
  if (written != static_cast<ssize_t>(header.size())) {
    error = path + ": " + std::strerror(written < 0 ? errno : ENOSPC);
    return nullptr;
  }
  auto state = std::make_shared<State>(std::move(file), options);
  state->file_size = header.size();
  return std::unique_ptr<PcapngWriter>(new PcapngWriter(std::move(state)));
}

std::unique_ptr<PcapngWriter> PcapngWriter::create(service::UniqueFd file, const Options& options) {
  auto state = std::make_shared<State>(std::move(file), options);
  const auto header = file_header(options);
  std::uint64_t at = 0;
  state->put(header.data(), header.size(), at);
  state->head = at;
  return std::unique_ptr<PcapngWriter>(new PcapngWriter(std::move(state)));
}

PcapngWriter::PcapngWriter(std::shared_ptr<State> state) : state_(std::move(state)) {
  std::thread([shared = state_] {
    // If the file is a pipe whose reader ends, write() shall fail instead of ending the program.
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    shared->run();
  }).detach();
}

PcapngWriter::~PcapngWriter() {
  finish();
  std::unique_lock lock(state_->mutex);
  state_->ended.wait_until(lock, finished_since_ + state_->farewell, [this] { return finished(); });
}

void PcapngWriter::finish() {
  if (finished_since_ == std::chrono::steady_clock::time_point())
    finished_since_ = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->filling.notify_one();
}

bool PcapngWriter::finished() const {
  return state_->finished.load(std::memory_order_acquire);
}
bool PcapngWriter::is_overdue() const {
  return finished_since_ != std::chrono::steady_clock::time_point() && !finished() &&
         std::chrono::steady_clock::now() >= finished_since_ + state_->farewell;
}
std::uint64_t PcapngWriter::frames() const {
  return state_->frames;
}
std::uint64_t PcapngWriter::dropped() const {
  return state_->dropped;
}
std::uint64_t PcapngWriter::written_bytes() const {
  return state_->file_size;
}
int PcapngWriter::error() const {
  return state_->error;
}

void PcapngWriter::State::put(const void* data, std::size_t size, std::uint64_t& at) {
  const auto place = at % ring.size();
  const auto first = std::min(size, ring.size() - place);
  if (first != 0) std::memcpy(ring.data() + place, data, first);
  if (first != size)
    std::memcpy(ring.data(), static_cast<const std::byte*>(data) + first, size - first);
  at += size;
}

void PcapngWriter::frame(Time time, Bytes head, Bytes rest, Way way) {
  auto& state = *state_;
  if (state.error.load(std::memory_order_relaxed) != 0) {
    state.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (state.closed.load(std::memory_order_relaxed)) return;
  if (state.frames.load(std::memory_order_relaxed) >= state.max_frames) return;
  const auto size = head.size() + rest.size();
  const auto length = sizeof(PacketHead) + padded(size) + sizeof(PacketTail);
  auto at = state.head.load(std::memory_order_relaxed);
  const auto used = at - state.tail.load(std::memory_order_acquire);
  if (length > state.ring.size() - used) {
    state.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const PacketHead packet{.length = static_cast<std::uint32_t>(length),
                          .time_high = static_cast<std::uint32_t>(time >> 32),
                          .time_low = static_cast<std::uint32_t>(time),
                          .captured = static_cast<std::uint32_t>(size),
                          .original = static_cast<std::uint32_t>(size)};
  const PacketTail tail{.flags = static_cast<std::uint32_t>(way),
                        .length = static_cast<std::uint32_t>(length)};
  constexpr std::array<std::byte, 3> kPadding{};
  state.put(&packet, sizeof packet, at);
  state.put(head.data(), head.size(), at);
  state.put(rest.data(), rest.size(), at);
  state.put(kPadding.data(), padded(size) - size, at);
  state.put(&tail, sizeof tail, at);
  state.head.store(at, std::memory_order_release);
  state.frames.fetch_add(1, std::memory_order_relaxed);
  // Notified once per filled half, so that a busy link does not cost a system call per frame.
  const auto half = state.ring.size() / 2;
  if (used < half && used + length >= half) state.filling.notify_one();
}

void PcapngWriter::State::run() {
  bool last = false;
  while (drain() && !last) {
    std::unique_lock lock(mutex);
    last = closed || stopping;  // closed for a whole interval: no frame is being added any more
    closed = closed || at_limit();
    // Waits without a condition, because a half full ring ends the wait too.
    if (!stopping) filling.wait_for(lock, std::chrono::nanoseconds(kFlushInterval));
    last = last || stopping;
  }
  closed = true;
  file.reset();
  std::lock_guard const guard(mutex);
  finished.store(true, std::memory_order_release);
  ended.notify_all();
}

// Returns false if the file accepts no more.
bool PcapngWriter::State::drain() {
  const auto from = tail.load(std::memory_order_relaxed);
  const auto size = head.load(std::memory_order_acquire) - from;
  if (size == 0) return true;
  const auto place = from % ring.size();
  const auto first = std::min<std::size_t>(size, ring.size() - place);
  std::array<iovec, 2> parts{{{ring.data() + place, first}, {ring.data(), size - first}}};
  const auto written = ::writev(file.get(), parts.data(), 2);
  if (written != static_cast<ssize_t>(size)) return give_up(written);
  file_size += size;
  tail.store(from + size, std::memory_order_release);
  return true;
}

// After an error such as a full disk, cuts the file so that the earlier frames stay readable.
bool PcapngWriter::State::give_up(ssize_t written) {
  error = written < 0 ? -errno : -ENOSPC;
  [[maybe_unused]] const auto cut = ::ftruncate(file.get(), static_cast<off_t>(file_size.load()));
  return false;
}

}  // namespace stp::trace
