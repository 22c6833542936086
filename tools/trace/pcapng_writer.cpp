// SPDX-License-Identifier: BSD-3-Clause
// The memory of a trace's ring.
#include "tools/trace/pcapng_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "dpdk_port/link/start_thread.h"
#include "libst/os/write_alone.h"
#include "stp/base/mutex.h"

namespace stp::trace {

// Pages that are there once they are used: the writer's thread makes them so, and the polling
// thread does not wait for it.
class RingMemory {
 public:
  explicit RingMemory(std::size_t size)
      : bytes_(static_cast<std::byte*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        size_(bytes_ == MAP_FAILED ? 0 : size) {}
  ~RingMemory() {
    if (size_ != 0) ::munmap(bytes_, size_);
  }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  void populate() {
#ifdef MADV_POPULATE_WRITE
    ::madvise(bytes_, size_, MADV_POPULATE_WRITE);
#endif
  }
  [[nodiscard]] std::byte* data() {
    return bytes_;
  }
  [[nodiscard]] std::size_t size() const {
    return size_;
  }

 private:
  std::byte* const bytes_;
  const std::size_t size_;
};

namespace {

// Block types, option codes and constants of the pcapng format. Numbers are in the writer's own
// byte order: the byte-order magic tells readers which.
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kInterfaceStatistics = 5;
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
constexpr std::uint16_t kDropCount = 4;    // likewise: frames dropped in front of it
constexpr std::uint16_t kReceived = 4;     // in interface statistics
constexpr std::uint16_t kDropped = 5;      // likewise

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
  interface.add(options.snap_length);
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

struct PacketFlags {
  std::uint16_t code = kPacketFlags, size = sizeof(std::uint32_t);
  std::uint32_t flags;
};
static_assert(sizeof(PacketFlags) == 8);

struct PacketLoss {
  std::uint16_t code = kDropCount, size = sizeof(std::uint64_t);
  std::array<std::uint32_t, 2> count{};  // in the order of this machine, as one number
};
static_assert(sizeof(PacketLoss) == 12);

struct PacketEnd {
  std::uint32_t end_of_options = kEndOfOptions;
  std::uint32_t length;
};
static_assert(sizeof(PacketEnd) == 8);

std::vector<std::byte> statistics(std::uint64_t frames, std::uint64_t dropped) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto time =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  const auto received = frames + dropped;
  Block block(kInterfaceStatistics);
  block.add(std::uint32_t{0});  // of interface 0
  block.add(static_cast<std::uint32_t>(time >> 32));
  block.add(static_cast<std::uint32_t>(time));
  block.option(kReceived, &received, sizeof received);
  block.option(kDropped, &dropped, sizeof dropped);
  return block.finish();
}

}  // namespace

struct PcapngWriter::State {
  State(os::UniqueFd opened, const Options& options);

  void put(const void* data, std::size_t size, std::uint64_t& at);
  void run();
  bool drain();
  [[nodiscard]] std::uint64_t end_of_block(std::uint64_t begin);
  bool write_piece(std::uint64_t from, std::uint64_t end);
  [[nodiscard]] int write_bytes(std::uint64_t from, std::uint64_t end, std::uint64_t& written);
  void keep_blocks(std::uint64_t from, std::uint64_t end);
  void write_statistics();
  bool give_up(int why);
  // After an error the file lacks what was in the ring.
  [[nodiscard]] std::uint64_t frames() const { return error == 0 ? taken : in_file; }
  [[nodiscard]] std::uint64_t lacking() const {
    return dropped + (error == 0 ? 0 : taken - in_file);
  }
  [[nodiscard]] bool at_limit() const {
    return taken >= max_frames || std::chrono::steady_clock::now() >= until;
  }

  os::UniqueFd file;
  const std::uint64_t max_frames;
  const std::size_t longest;  // as much of a frame is kept
  const std::chrono::steady_clock::time_point until;
  const std::chrono::milliseconds farewell;
  RingMemory ring;
  // Positions count on and wrap only in the ring. It holds whole blocks from tail to head.
  std::atomic<std::uint64_t> head{0}, tail{0};
  std::atomic<std::uint64_t> taken{0}, in_file{0};  // frames that came into the ring, the file
  std::atomic<std::uint64_t> dropped{0};            // frames that did not come into the ring
  std::uint64_t blocks_before_frames = 0;           // of those in the ring: the file's header
  bool empties = false;                             // the file, before it writes there
  std::uint64_t lost = 0;  // dropped since the last frame that was taken; of the polling thread
  std::atomic<std::uint64_t> file_size{0};  // of whole blocks
  std::atomic<int> error{0};
  // closed: no frame is accepted any more. stopping: the writer shall end. finished: it has ended.
  std::atomic<bool> closed{false}, stopping{false}, finished{false};
  Mutex mutex;  // never held during file operations
  std::condition_variable_any filling, ended;
};

PcapngWriter::State::State(os::UniqueFd opened, const Options& options)
    : file(std::move(opened)),
      max_frames(options.max_frames),
      longest(options.snap_length == 0 ? ~std::size_t{0} : options.snap_length),
      until(options.duration == kNever
                ? std::chrono::steady_clock::time_point::max()
                : std::chrono::steady_clock::now() + std::chrono::nanoseconds(options.duration)),
      farewell(options.farewell),
      ring(options.ring_bytes) {}

std::unique_ptr<PcapngWriter> PcapngWriter::create(const std::string& path, Options options,
                                                   std::string& error) {
  auto file = os::open_to_write_alone(path);
  const auto header = file_header(options);
  const auto written = file ? ::write(file.get(), header.data(), header.size()) : -1;
  if (written != static_cast<ssize_t>(header.size())) {
    error = path + ": " + os::why_not_to_write(written < 0 ? errno : ENOSPC);
    return nullptr;
  }
  auto state = std::make_shared<State>(std::move(file), options);
  if (state->ring.size() == 0) {
    error = "no memory for a trace's buffer of " + std::to_string(options.ring_bytes) + " bytes";
    return nullptr;
  }
  state->file_size = header.size();
  return std::unique_ptr<PcapngWriter>(new PcapngWriter(std::move(state)));
}

std::unique_ptr<PcapngWriter> PcapngWriter::create(os::UniqueFd file, const Options& options) {
  auto state = std::make_shared<State>(std::move(file), options);
  if (state->ring.size() == 0) return nullptr;
  const auto header = file_header(options);
  std::uint64_t at = 0;
  state->put(header.data(), header.size(), at);
  state->head = at;
  state->blocks_before_frames = 2;
  state->empties = true;
  return std::unique_ptr<PcapngWriter>(new PcapngWriter(std::move(state)));
}

PcapngWriter::PcapngWriter(std::shared_ptr<State> state) : state_(std::move(state)) {
  start_thread([shared = state_] {
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
  Lock lock(state_->mutex);
  const auto end = finished_since_ + state_->farewell;
  while (!finished() && lock.wait_until(state_->ended, end)) {
  }
}

void PcapngWriter::finish() {
  if (finished_since_ == std::chrono::steady_clock::time_point())
    finished_since_ = std::chrono::steady_clock::now();
  {
    Lock lock(state_->mutex);
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
  return state_->frames();
}
std::uint64_t PcapngWriter::dropped() const {
  return state_->lacking();
}
std::uint64_t PcapngWriter::written_bytes() const {
  return state_->file_size;
}
int PcapngWriter::error() const {
  return state_->error;
}

std::string why_it_ends_early(int error) {
  if (error == 0) return {};
  const std::string text = std::strerror(-error);
  if (error == -ENOSPC || error == -EDQUOT) return text + " (make room, or name another disk)";
  if (error == -EFBIG) return text + " (raise the limit of file sizes: ulimit -f, LimitFSIZE)";
  return text;
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
  const auto drop = [&state] {
    ++state.lost;
    state.dropped.fetch_add(1, std::memory_order_relaxed);
  };
  if (state.closed.load(std::memory_order_relaxed)) return;
  if (state.taken.load(std::memory_order_relaxed) >= state.max_frames) return;
  if (state.error.load(std::memory_order_relaxed) != 0) return drop();
  const auto size = head.size() + rest.size();
  const auto held = std::min(size, state.longest);
  const auto length = sizeof(PacketHead) + padded(held) + sizeof(PacketFlags) +
                      (state.lost == 0 ? 0 : sizeof(PacketLoss)) + sizeof(PacketEnd);
  auto at = state.head.load(std::memory_order_relaxed);
  const auto used = at - state.tail.load(std::memory_order_acquire);
  if (length > state.ring.size() - used) return drop();
  const PacketHead packet{.length = static_cast<std::uint32_t>(length),
                          .time_high = static_cast<std::uint32_t>(time >> 32),
                          .time_low = static_cast<std::uint32_t>(time),
                          .captured = static_cast<std::uint32_t>(held),
                          .original = static_cast<std::uint32_t>(size)};
  const PacketFlags flags{.flags = static_cast<std::uint32_t>(way)};
  const PacketEnd end{.length = static_cast<std::uint32_t>(length)};
  constexpr std::array<std::byte, 3> kPadding{};
  state.put(&packet, sizeof packet, at);
  const auto of_head = std::min(head.size(), held);
  state.put(head.data(), of_head, at);
  state.put(rest.data(), held - of_head, at);
  state.put(kPadding.data(), padded(held) - held, at);
  state.put(&flags, sizeof flags, at);
  if (state.lost != 0) {
    PacketLoss loss;
    std::memcpy(loss.count.data(), &state.lost, sizeof state.lost);
    state.put(&loss, sizeof loss, at);
    state.lost = 0;
  }
  state.put(&end, sizeof end, at);
  // Counted first, so that the writer never has more in the file than were taken.
  state.taken.fetch_add(1, std::memory_order_relaxed);
  state.head.store(at, std::memory_order_release);
  // Notified once per filled half, so that a busy link does not cost a system call per frame.
  const auto half = state.ring.size() / 2;
  if (used < half && used + length >= half) state.filling.notify_one();
}

void PcapngWriter::State::run() {
  bool last = false;
  ring.populate();
  // EINVAL: it is no regular file, and there is nothing to empty.
  if (empties && ::ftruncate(file.get(), 0) != 0 && errno != EINVAL) give_up(-errno);
  while (error == 0 && drain() && !last) {
    Lock lock(mutex);
    last = closed || stopping;  // closed for a whole interval: no frame is being added any more
    closed = closed || at_limit();
    // Waits without a condition, because a half full ring ends the wait too.
    if (!stopping) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kFlushInterval);
      lock.wait_until(filling, end);
    }
    last = last || stopping;
  }
  // What comes after an error is lacking, and counts.
  if (error == 0) {
    closed = true;
    write_statistics();
  }
  file.reset();
  const Lock guard(mutex);
  finished.store(true, std::memory_order_release);
  ended.notify_all();
}

// Writes what is in the ring by now, piece by piece, so that a slow file makes room soon. Returns
// false if the file accepts no more.
bool PcapngWriter::State::drain() {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  const auto all = head.load(std::memory_order_acquire);
  auto from = tail.load(std::memory_order_relaxed);
  while (from != all) {
    auto end = from;
    do {
      end = end_of_block(end);
    } while (end != all && end - from < kPiece);
    if (!write_piece(from, end)) return false;
    from = end;
  }
  return true;
}

// A block's length follows its type. Both are whole words, which the ring's end does not split.
std::uint64_t PcapngWriter::State::end_of_block(std::uint64_t begin) {
  std::uint32_t length = 0;
  std::memcpy(&length, ring.data() + (begin + sizeof length) % ring.size(), sizeof length);
  return begin + length;
}

// The piece has whole blocks.
bool PcapngWriter::State::write_piece(std::uint64_t from, std::uint64_t end) {
  auto written = from;
  const auto why = write_bytes(from, end, written);
  keep_blocks(from, written);
  return why == 0 || give_up(why);
}

// Returns 0 or a negative errno; `written` is how far it came.
int PcapngWriter::State::write_bytes(std::uint64_t from, std::uint64_t end,
                                     std::uint64_t& written) {
  for (written = from; written != end;) {
    const auto size = end - written;
    const auto place = written % ring.size();
    const auto first = std::min<std::size_t>(size, ring.size() - place);
    std::array<iovec, 2> parts{{{ring.data() + place, first}, {ring.data(), size - first}}};
    const auto result = ::writev(file.get(), parts.data(), 2);
    if (result == 0) return -ENOSPC;
    if (result < 0 && errno != EINTR) return -errno;
    if (result > 0) written += static_cast<std::uint64_t>(result);
  }
  return 0;
}

// Counts the blocks that are in the file as a whole, and makes room in the ring for others.
void PcapngWriter::State::keep_blocks(std::uint64_t from, std::uint64_t end) {
  auto kept = from;
  std::uint64_t blocks = 0;
  while (kept != end) {
    const auto next = end_of_block(kept);
    if (next > end) break;
    kept = next;
    ++blocks;
  }
  const auto others = std::min(blocks, blocks_before_frames);
  blocks_before_frames -= others;
  in_file += blocks - others;
  file_size += kept - from;
  tail.store(kept, std::memory_order_release);
}

// How many frames there were, and how many of them the file lacks.
void PcapngWriter::State::write_statistics() {
  const auto block = statistics(taken, dropped);
  for (std::size_t written = 0; written < block.size();) {
    const auto result = ::write(file.get(), block.data() + written, block.size() - written);
    if (result <= 0) {
      give_up(result < 0 ? -errno : -ENOSPC);
      return;
    }
    written += static_cast<std::size_t>(result);
  }
  file_size += block.size();
}

// After an error such as a full disk, cuts the file so that the earlier frames stay readable.
bool PcapngWriter::State::give_up(int why) {
  error = why;
  [[maybe_unused]] const auto cut = ::ftruncate(file.get(), static_cast<off_t>(file_size.load()));
  return false;
}

}  // namespace stp::trace
