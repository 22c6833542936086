// SPDX-License-Identifier: BSD-3-Clause
// The operations of a connection: what was posted, in its order, and when it begins and completes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/managed/memory.h"
#include "libst/managed/queue.h"
#include "libst/managed/session.h"
#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/ring_queue.h"

namespace stp::managed {

// A posted operation of any kind except a receive. With its place in the list it takes two cache
// lines.
struct Operation {
  enum class Kind : std::uint8_t { kSend, kRead, kServe, kPut, kGet, kFetch };
  Kind kind = Kind::kSend;
  wire::Function function = wire::Function::kGet;  // kFetch
  // After the start:
  bool begun : 1 = false, cancelled : 1 = false;
  bool eager : 1 = false;  // by the ring
  unsigned flags = 0;      // STM_QUIET, ...
  std::uint64_t context = 0;
  Memory* memory = nullptr;  // counts this operation in `uses` while it is outstanding
  void* ptr = nullptr;
  std::size_t length = 0;
  std::uint32_t tag = 0;
  std::uint32_t key = 0;  // kPut, kGet, kFetch
  std::uint64_t address = 0;
  unsigned* remote_uses = nullptr;  // kPut, kGet, kFetch: incremented while it is under way
  std::uint64_t write = 0;          // kSend, kServe: number among all Writes; 0: none
  std::uint64_t posted = 0;         // position among operations and receives
  std::uint64_t id = 0;             // in its OperationList; 0: complete
  // What one kind alone has.
  struct Eager {
    std::uint32_t message = 0, slot = 0;
    std::uint32_t ring_end = 0;  // the position behind it, see eager_place()
  };
  struct Operands {
    std::uint64_t operand, compare;
  };
  union {
    Eager sent{};           // by the ring
    Operands operands;      // kFetch
    std::uint32_t request;  // kServe
  };

  // As one that nobody has posted, but for what every post says: kind, flags, context and bytes.
  void clear() {
    begun = cancelled = eager = false;
    memory = nullptr;
    tag = key = 0;
    function = wire::Function::kGet;
    address = 0;
    write = posted = id = 0;
    remote_uses = nullptr;
    sent = {};
  }
  [[nodiscard]] Address source() const { return memory != nullptr ? memory->at(ptr) : Address{}; }
  // For memory that the link uses a copy of: see Memory.
  void fetch() const {
    if (memory != nullptr) memory->fetch(ptr, length);
  }
  void store() const {
    const bool lands = kind == Kind::kRead || kind == Kind::kGet || kind == Kind::kFetch;
    if (lands && memory != nullptr) memory->store(ptr, length);
  }
};

// The outstanding operations of a connection, in the order of posting. Each has a number that is
// never used again. Places are reused, so posting seldom allocates, and operations never move.
class OperationList {
 public:
  // The number of places: the most operations at a time.
  static constexpr std::size_t kMost = std::size_t{1} << 16;

  OperationList() = default;
  OperationList(const OperationList&) = delete;
  OperationList& operator=(const OperationList&) = delete;
  ~OperationList() { forget(); }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Numbers have this bit, and are below twice its value.
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 60;
  // The next operation to be added, to be filled in where it will stay. Until then it is nobody's.
  Operation& draft() {
    if (free_ == nullptr) grow();
    return *free_;
  }
  // Adds the draft.
  Operation& add();
  Operation& add(const Operation& operation) {
    draft() = operation;
    return add();
  }
  void remove(Operation& operation);
  // The first `count`, which have started.
  void remove_oldest(std::size_t count);
  // nullptr: the operation is complete.
  [[nodiscard]] Operation* find(std::uint64_t id) const {
    const auto place = id % kPlaces;
    // A free place has number 0.
    if (id == 0 || place >= places_) return nullptr;
    auto& chunk = place < kChunk ? *first_chunk_ : *chunks_[place / kChunk - 1];
    auto& found = chunk[place % kChunk];
    return found.id == id ? &found : nullptr;
  }
  // Brings the oldest operation, or where the next one will be, into the caches.
  void fetch_ahead() const {
    const auto* const next = first_ != nullptr ? first_ : free_;
    if (next != nullptr) fetch_lines(next, next + 1);
  }
  // nullptr: none.
  [[nodiscard]] Operation* oldest() const { return first_; }
  [[nodiscard]] static Operation* next(const Operation& operation) {
    return static_cast<const Node&>(operation).next;
  }
  // The oldest operation that has not started; nullptr: none.
  [[nodiscard]] Operation* waiting() const { return waiting_; }
  // The operation has started. Others may still wait in front of it.
  void begun(Operation& operation) {
    STP_ASSERT(!operation.begun && waiting_ != nullptr, "what begins has waited");
    operation.begun = true;
    // Mostly it was posted last.
    if (&operation == waiting_ && waiting_ == last_)
      waiting_ = nullptr;
    else
      pass_begun();
  }
  // Drops all operations and their holds on memory.
  void forget();

 private:
  // Number: mark | use of the place | place.
  static constexpr std::uint64_t kPlaces = kMost;
  static constexpr std::size_t kChunk = 4;  // most connections have few at a time
  struct alignas(kCacheLine) Node : Operation {
    std::uint64_t next_id = 0;
    Node *previous = nullptr, *next = nullptr;
  };
  static_assert(sizeof(Node) == 2 * kCacheLine);
  using Chunk = std::array<Node, kChunk>;
  void grow();
  void pass_begun() {
    while (waiting_ != nullptr && waiting_->begun) waiting_ = waiting_->next;
  }

  std::unique_ptr<Chunk> first_chunk_;
  std::size_t places_ = 0;
  Node* free_ = nullptr;  // linked by `next`
  Node *first_ = nullptr, *last_ = nullptr, *waiting_ = nullptr;
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // those behind the first one
};

// The Writes under way on a connection. The peer's Node remembers the newest ones. While the oldest
// unconfirmed Write is among them, a lost confirmation can always be repeated.
// protocol: 9.32
class WriteWindow {
 public:
  static constexpr std::uint64_t kMost = 64;
  // A message that found no room in the ring begins while the oldest Write is among the newest 30.
  // The other Writes are left to what the peer reads: it may have to read what it received earlier,
  // and what lies in the ring, before it has a receive for this message.
  static constexpr std::uint64_t kMostMessages = 30;

  // The oldest one under way is among the newest 63.
  [[nodiscard]] bool may_begin() const { return open_ >> (kMost - 1) == 0; }
  [[nodiscard]] bool may_begin_message() const { return open_ >> (kMostMessages - 1) == 0; }
  // Whether a Write is under way.
  [[nodiscard]] bool any() const { return open_ != 0; }
  // Returns the number of the new Write, counted from 1.
  std::uint64_t begin() {
    STP_ASSERT(may_begin(), "a Write begins within the window");
    open_ = open_ << 1 | 1;
    return ++last_;
  }
  // The Write was confirmed or given up.
  void complete(std::uint64_t write) {
    STP_ASSERT(last_ - write < kMost, "a Write under way is among the newest");
    const auto bit = std::uint64_t{1} << (last_ - write);
    STP_ASSERT((open_ & bit) != 0, "a Write completes once");
    open_ &= ~bit;
  }

 private:
  std::uint64_t open_ = 0;  // bit n: Write number last_ - n is under way
  std::uint64_t last_ = 0;
};

// Owns the outstanding operations of a connection: everything posted except receives. It promises
// that they begin in the order of posting, that each completes exactly once, and that at most
// WriteWindow::kMost Writes are open. What the peer reads begins although messages in front of it
// wait: the peer's program may need it before it can receive them.
class Operations {
 public:
  Operations(Reports& reports, PeerRegions& regions) : reports_(reports), regions_(regions) {}

  // The operation that is posted next, to be filled in.
  [[nodiscard]] Operation& draft() { return list_.draft(); }
  // Adds it. `posted`: its place in the order of operations and receives. Returns false if there
  // are too many, or if its completion would have no place in the queue.
  [[nodiscard]] bool post(std::uint64_t posted) {
    if (list_.size() >= OperationList::kMost || !reports_.sends().reserve()) return false;
    auto& added = list_.add();
    added.posted = posted;
    // Two steps: both fields have just been written, and one load of both would wait for that.
    if (added.kind != Operation::Kind::kServe) return true;
    if ((added.flags & STM_FENCE) == 0) answers_.push_back(&added);
    return true;
  }
  // The same for a message, whose bytes go into the peer's ring. -EAGAIN: it would have to wait,
  // and is not added; -ENOBUFS: as where post() is false.
  int send_at_once(Session& session, const Pieces& bytes, std::uint64_t posted);
  // Begins as many operations as may begin now.
  void begin(Session& session) {
    begin_in_order(session);
    if (!answers_.empty()) begin_answers(session);
  }
  void on_completion(Session& session, const Completion& c);
  // The same for the puts that the Sequencer tells of first.
  void complete_puts(Session& session);
  // Asks for confirmation of quiet operations, because somebody waits for their end.
  void confirm_quiet(Session& session) const {
    if (!list_.empty()) session.sequencer.confirm_puts();
  }

  void fetch_ahead() const { list_.fetch_ahead(); }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  // Counts those with STM_QUIET.
  [[nodiscard]] std::uint32_t quiet() const;
  [[nodiscard]] bool uses(const Memory& memory) const;
  // Counts the quiet and lazy operations that use the memory.
  [[nodiscard]] unsigned quiet_uses(const Memory& memory) const;
  // The oldest operation with that context that is not cancelled yet, or nullptr.
  [[nodiscard]] Operation* find(std::uint64_t context) const;
  // `session`: nullptr before the connection is open. Returns 0, or why the operation goes on.
  int cancel(Session* session, Operation& operation);

  // The connection has ended: completes all of them with `status`.
  void flush(int status);
  // The domain has ended: drops them, and they never complete.
  void forget() {
    answers_.clear();
    list_.forget();
  }

 private:
  void begin_in_order(Session& session);
  void begin_answers(Session& session);
  void has_begun(Operation& operation, int error);
  // It does not wait among the answers any more.
  void forget_answer(const Operation& operation) {
    if (!answers_.empty() && answers_.front() == &operation)
      answers_.pop_front();
    else
      erase_if(answers_, [&](const auto* answer) { return answer == &operation; });
  }
  int try_begin(Session& session, Operation& operation);
  int begin_send(Session& session, Operation& operation);
  int begin_write(Session& session, Operation& operation);
  int begin_remote(Session& session, Operation& operation);
  int access(Session& session, const Operation& operation, const RemoteRegion& region);
  std::size_t complete_oldest(std::span<const PutDone> puts);
  void on_put(Session& session, const PutDone& put);
  void complete_other(Session& session, const Operation& operation, const PutDone& put);
  [[nodiscard]] bool goes_by_ring(const Session& session, std::uint64_t length) const;
  // It would, if there were pages for it.
  [[nodiscard]] bool lacks_pages(const Session& session, std::uint64_t length) const;
  [[nodiscard]] bool saves_time(std::uint64_t length) const;
  void prepare_ring(Session& session, std::uint64_t length) const;
  [[nodiscard]] bool may_be_quiet(const Operation& operation) const;
  // Completes the operation. Its place may be reused at once.
  void complete(Operation& operation, int status, std::uint64_t length = 0,
                std::uint32_t message = 0);

  Reports& reports_;
  PeerRegions& regions_;
  RingQueue<Operation*> answers_;  // what the peer reads and has not begun, except behind a fence
  OperationList list_;
  WriteWindow writes_;
};

}  // namespace stp::managed
