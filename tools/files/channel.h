// SPDX-License-Identifier: BSD-3-Clause
// One connection between stp-send and stp-recv, on the objects of the managed API.
#pragma once

#include <stp/managed.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/files/depth.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"

namespace stp::files {

// How long a program waits before it checks whether it was asked to end.
inline constexpr Duration kAttention = std::chrono::milliseconds(100);
// How long nothing arrives until a program says why, if the link knows it.
inline constexpr Duration kStuck = std::chrono::seconds(3);

// The buffers of a link's memory: an STU always fits into one.
inline constexpr unsigned kBufferLog2 = 16;
inline constexpr std::size_t kBuffer = std::size_t{1} << kBufferLog2;

// C++ owners of objects of the managed API: a domain on the chosen link, queues, registered memory.
class FileLink {
 public:
  FileLink();  // LinkFailure
  ~FileLink() { ::stm_domain_close(domain_); }
  FileLink(const FileLink&) = delete;
  FileLink& operator=(const FileLink&) = delete;
  [[nodiscard]] stm_domain_t domain() const { return domain_; }
  // Length of the longest STU of the link, in bytes.
  [[nodiscard]] std::size_t stu() const;
  // What is wrong with the link, and the remedy; "": nothing is known.
  [[nodiscard]] std::string trouble() const;
  // 0, or why there is no link any more: st_strerror() has the text.
  [[nodiscard]] int error() const;

 private:
  stm_domain_t domain_ = nullptr;
};

class Queue {
 public:
  Queue(FileLink& link, std::size_t capacity);  // LinkFailure
  ~Queue() { ::stm_queue_destroy(queue_); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  [[nodiscard]] stm_queue_t handle() const { return queue_; }
  // nullopt: `wait` has passed. LinkFailure: the link is gone.
  std::optional<stm_event_t> next(Duration wait);

 private:
  stm_queue_t queue_ = nullptr;
};

// Zeroed memory that a link can read and write.
class Buffers {
 public:
  Buffers(FileLink& link, std::size_t size);  // LinkFailure
  ~Buffers() { ::stm_memory_release(memory_); }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  [[nodiscard]] stm_memory_t handle() const { return memory_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Unmap> mapping_;
  std::span<std::byte> bytes_;
  stm_memory_t memory_ = nullptr;
};

struct Message {
  MessageTag tag{};
  std::span<const std::byte> bytes;
  std::size_t place = 0;  // of the buffer that it lies in: see Channel::done_with
};

// One connection between stp-send and stp-recv: messages in order, each with a tag.
class Channel {
 public:
  // Messages under way in each direction, and so buffers: enough to read the disk meanwhile...
  static constexpr std::size_t kDepth = 8;
  // ...and steps by which those of content become more on long paths. The managed layer has 63
  // Writes under way at most (protocol 9.32).
  static constexpr std::array<std::size_t, 3> kMoreContent{8, 16, 30}, kMoreReceives{8, 16, 32};

  // Timeout: a peer that takes no message for so long counts as gone.
  static constexpr Duration kPatience = std::chrono::seconds(60);
  // Timeouts: a program that may have to wait for a core before it accepts, and a host that does
  // not answer at all, at none of its addresses.
  struct Patience {
    Duration receiver = std::chrono::seconds(30), host = std::chrono::seconds(10);
  };
  // Called from time to time while a function waits. An exception from it ends the wait.
  using Attend = std::function<void()>;
  using Tell = std::function<void(const std::string& line)>;

  // All functions throw LinkFailure once the connection is lost, Closed when the peer closed it.
  // The sender of files: connects, and waits for the answer. It gets only control messages. `tell`:
  // nobody has answered for kStuck, and the link knows why.
  Channel(FileLink& link, const std::string& peer, Attend attend, const Patience& patience,
          const Tell& tell = {}, Growth growth = {});
  // The receiver of files: takes a request. It sends only control messages.
  Channel(FileLink& link, stm_connection_t request, Attend attend, Growth growth = {});
  // Tells the peer that it has too many connections, or that there are too many in all.
  static void refuse(stm_connection_t request);
  // Waits a short time until the messages under way have been sent.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The longest message other than content.
  static constexpr std::size_t kControlRoom = std::size_t{16} << 10;

  // At most kControlRoom bytes, which are copied. Waits for a place: LinkFailure after kPatience.
  void send(MessageTag tag, std::span<const std::byte> bytes);
  // Handles what has happened meanwhile.
  void look();
  // send() would not wait.
  bool ready_to_send();
  // A message of content may always be as long as that.
  [[nodiscard]] std::size_t content_room() const { return chunk_; }
  // Messages of content that may be under way.
  [[nodiscard]] std::size_t depth() const { return dialed_ ? content_.size() : received_.size(); }
  // Of the sender: a buffer of content_room() bytes or more, and no more than kChunk. The caller
  // fills it and sends what it filled. Empty: none is free yet.
  std::span<std::byte> content_buffer(Duration wait);
  void send_content(MessageTag tag, std::span<const std::byte> filled);
  // The next message; false: none is there yet. Returns early if something else happens.
  bool receive(Message& message, Duration wait);
  // Any thread: ends a wait in receive() early. Takes one place of the queue, however often it is
  // called: messages need the others.
  void wake() {
    if (!woken_.exchange(true) && ::stm_queue_post(queue_.handle(), 0) != 0) woken_ = false;
  }
  // Releases the buffer of a message for the next one.
  void done_with(const Message& message);

  // What the link knows to be wrong with the way to the peer, and the remedy; "": nothing. Any
  // thread.
  [[nodiscard]] std::string trouble() const;
  // For how long messages have been under way without one that reached the peer; 0: none is.
  [[nodiscard]] Duration stuck() const;

  // Content bytes that have reached the peer.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }

 private:
  static_assert(kControlRoom >= sizeof(std::uint16_t) + kMaxMetadata);
  struct Sent {
    std::size_t length = 0;  // of content
    TimePoint at;
    bool busy = false;
    bool last = false;  // it took the last place for content
  };
  // A buffer of one message.
  struct Place {
    stm_memory_t memory = nullptr;
    std::span<std::byte> bytes;
    TimePoint posted_at{};  // of a receive
  };
  using Places = std::vector<Place>;

  static std::size_t chunk_for(const FileLink& link);
  [[nodiscard]] stm_connection_attr_t attributes() const;
  void post_receive(std::size_t place);
  void post_send(MessageTag tag, const Place& place, std::size_t number, std::size_t length);
  // Waits at most so long for one event. False: none came.
  bool step(Duration wait);
  void handle(const stm_event_t& event);
  void check_ended() const;
  [[nodiscard]] Duration farewell() const;
  // The connection has ended with that error, or the link below it has.
  [[noreturn]] void fail(int error) const;
  void await_connection(const std::string& peer, const Patience& patience, const Tell& tell);
  // Whether who has accepted is an stp-recv.
  [[nodiscard]] bool is_greeted() const;
  [[nodiscard]] int reason_of_refusal();
  [[nodiscard]] bool host_has_answered() const;
  // Both of sent_.
  [[nodiscard]] std::optional<std::size_t> free_control() const { return free_place(0, kDepth); }
  [[nodiscard]] std::optional<std::size_t> free_content() const {
    return free_place(kDepth, sent_.size());
  }
  [[nodiscard]] std::optional<std::size_t> free_place(std::size_t first, std::size_t end) const;
  // Bytes of the buffers at first.
  [[nodiscard]] std::size_t first_memory() const;
  void make_places();
  // More of content, one step. False: there is no memory, or there are enough.
  bool grow(Places& places, std::span<const std::size_t> steps);
  void grow_content();
  void grow_receives();
  void has_sent(Sent& sent, int status);
  void has_come(const stm_event_t& event);

  // Limit of all content under way, in STUs, where they are long: the usual length of a driver's
  // receive ring (512 frames), less room for control operations. Where they are short, the
  // receiver's Node limits what is on the wire (protocol 10.8).
  static constexpr std::size_t kStusUnderWay = 384;

  const bool dialed_;  // of the sender of files
  const Attend attend_;
  const Growth growth_;
  FileLink& link_;
  const std::size_t chunk_;  // of content
  Share share_;
  Buffers memory_;
  std::vector<std::unique_ptr<Buffers>> more_memory_;
  Places received_, control_, content_;
  Queue queue_;
  stm_connection_t connection_ = nullptr;
  bool connected_ = false, ended_ = false;
  bool broken_ = false;  // a message is missing
  std::atomic<bool> woken_ = false;
  int reason_ = 0;
  TimePoint dialed_at_;
  std::uint16_t other_version_ = 0;  // of a receiver that has refused for that
  std::vector<Sent> sent_;           // kDepth for control messages first, then those for content
  std::uint64_t delivered_ = 0;
  std::size_t under_way_ = 0;  // messages
  TimePoint moved_at_;         // when the last one arrived, or the first left
  Path path_;
  Inflow inflow_;
  bool short_ = false;      // of places for content: more were of use
  bool no_memory_ = false;  // for more places
  std::deque<Message> arrived_;
};

}  // namespace stp::files
