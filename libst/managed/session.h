// SPDX-License-Identifier: BSD-3-Clause
// What an open connection works with: its channel to the Node, its session with the peer, and
// regions by key.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "libst/client/backend.h"
#include "libst/managed/memory.h"
#include "libst/managed/queue.h"
#include "libst/managed/staging.h"
#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/ring_queue.h"
#include "stp/base/state_machine.h"
#include "stp/channel/rings.h"
#include "stp/transfer/sequencer.h"

namespace stp::managed {

struct Operation;

// Owns the channel of a connection: the Virtual Connection, the rings that it shares with the Node,
// and the requests to the Node about it. It promises that, once let_go() is true, no frame of the
// connection reads memory any more.
class Channel {
 public:
  explicit Channel(client::Backend& backend) : backend_(backend) {}

  // The channel that a request to connect or to accept has made. `gatherer`: who takes its news.
  void take(const client::GivenChannel& given, std::shared_ptr<ipc::SharedMemory> memory,
            std::uint32_t gatherer);
  [[nodiscard]] bool is_taken() const { return vc_ != kNoneId; }
  [[nodiscard]] std::uint32_t number() const { return number_; }

  [[nodiscard]] ChannelState state() const { return rings_.state(); }
  // kFailed: why; a negative errno.
  [[nodiscard]] int error() const { return rings_.error() < 0 ? rings_.error() : -ECONNABORTED; }
  // What the Node knows of the Virtual Connection. Returns 0 or a negative errno.
  int query(ask::VcInfo::Reply& info) const;

  // All that the Sequencer requests goes this way from now on.
  void lead(Sequencer& sequencer) { sequencer.write_to(rings_); }
  // Brings what the next calls read into the caches.
  void fetch_ahead() const { rings_.fetch_ahead(); }
  // There are headers that have not been received.
  [[nodiscard]] bool readable() const { return rings_.readable(); }
  // Gives the Sequencer everything that the Node has to say.
  void receive(Sequencer& sequencer, Time now);
  // Gives the Node the requests of the Sequencer, as far as there is room. Returns true if there
  // were some: the caller then tells the backend.
  bool send(Sequencer& sequencer, Time now) {
    const bool any = sequencer.transmit(rings_, now);
    is_used(rings_.places_sent());
    if (any) backend_.ring(number_);
    return any;
  }

  // Closes the Virtual Connection: at once, or after all requests. The peer learns of `option`.
  void close(bool at_once, const ipc::WireOption& option);
  [[nodiscard]] bool let_go() const;
  // Closes it before the Virtual Connection is open, so that nothing was sent on it. Another one
  // may be taken.
  void drop();
  // No news of it are wanted any more.
  void leave() { rings_.leave(); }

 private:
  // A connection that never has much outstanding has few pages of its rings. From this many
  // requests or headers in a row on it is in use, and gets the others at once.
  static constexpr std::uint32_t kInUse = 16;
  void is_used(std::uint32_t count) {
    if (count >= kInUse && !in_use_) [[unlikely]]
      touch_pages();
  }
  void touch_pages();

  client::Backend& backend_;
  std::uint32_t number_ = 0;
  bool in_use_ = false;
  // What the Sequencer was told of loss. At first nothing: no path has such a Block.
  std::uint32_t cts_repeated_ = 0;
  unsigned path_block_ = ~0U;
  std::uint32_t steps_ = 0;
  UserChannel rings_;
  VcId vc_ = kNoneId;  // no operation needs what follows
  std::shared_ptr<ipc::SharedMemory> memory_;
};

// Messages without a round trip. Each side opens a ring of slots to its peer (docs/protocol.md,
// 9.31). A short message goes into the next slot, with its number in the order of all messages, if
// the peer has taken the previous message from that slot. A longer one takes several consecutive
// slots, if the peer allows that (9.41). Messages in the other direction carry how many slots a
// side has taken, and so do separate notices. EagerOut owns this side's use of the peer's ring,
// EagerIn this side's ring.

// The header of a message in its slot.
struct EagerHead {
  std::uint32_t message = 0, length = 0, tag = 0, taken = 0;
};
inline constexpr std::size_t kEagerHead = 16;
// The most slots of a message: what this side sends, and what it allows its peer.
inline constexpr std::uint32_t kEagerSpan = 8;
static_assert(kEagerSpan <= kEagerSlots / 2, "a message leaves room for the next one");
// The key of the ring, which is opened implicitly. Keys of the program's regions are higher.
inline constexpr std::uint32_t kEagerKey = 1;

// The slots that a message of that length takes.
constexpr std::uint64_t eager_slots(std::uint64_t length) {
  return (kEagerHead + length + kEagerSlot - 1) / kEagerSlot;
}
// The longest message in that many slots.
constexpr std::uint64_t eager_most(std::uint32_t slots) {
  return slots * kEagerSlot - kEagerHead;
}
// The slots from `first` on, as bits.
constexpr std::uint32_t eager_bits(std::uint32_t first, std::uint32_t slots) {
  return ((1U << slots) - 1) << first;
}
// Where a message of that many slots begins, if the ring of `size` slots, a power of two, is used
// up to `position`: positions count all slots so far. A message does not wrap around the end of the
// ring. It leaves out the slots that are too few for it.
constexpr std::uint32_t eager_place(std::uint32_t position, std::uint32_t slots,
                                    std::uint32_t size = kEagerSlots) {
  const auto left = size - (position & (size - 1));
  return slots <= left ? position : position + left;
}
// Where a ring of kEagerSlots slots begins, if the one before it is used up to `position`.
constexpr std::uint32_t eager_begin(std::uint32_t position) {
  return (position + kEagerSlots - 1) / kEagerSlots * kEagerSlots;
}

void encode(const EagerHead& head, std::byte* slot);
EagerHead decode_eager(const std::byte* slot);

class EagerIn;

// The pages of a ring. Those that nobody needs go back to the system, unless the ring keeps them.
class RingPages {
 public:
  // Where they are.
  void lie_in(const RingMemory& ring) {
    if (ring.keepers != nullptr) of_ = &ring;
  }
  [[nodiscard]] bool go_back() const { return of_ != nullptr; }
  // So many of them are not needed now.
  void give_back(std::byte* first, std::uint32_t count);
  // None is needed any more.
  void leave();

 private:
  const RingMemory* of_ = nullptr;   // nullptr: they stay
  RingKeepers* keeps_by_ = nullptr;  // it is one of these
};

// The bytes of a message: a header, then parts.
struct Pieces {
  const void* head = nullptr;
  std::size_t head_length = 0;
  std::span<const iovec> parts;

  // Of all; beyond the longest message of a ring that is not the exact length.
  [[nodiscard]] std::uint64_t length() const;
  // A part that is not empty is nowhere.
  [[nodiscard]] bool lacks_some() const {
    return std::ranges::any_of(
        parts, [](const iovec& part) { return part.iov_base == nullptr && part.iov_len != 0; });
  }
  void copy_to(std::byte* to) const;
};

// The sending side: uses the slots in turn. The bytes of a message leave from its slot's cell if
// they are few, else from pages that all connections share.
class EagerOut {
 public:
  explicit EagerOut(SendPages* pages = nullptr) : pages_(pages) {}
  // Asks the peer for its ring. A `small` one will do: it grows once it is used.
  void ask(Sequencer& sequencer, bool small = false);
  // The same, once there is a message for it: the peer need not have memory for it before.
  void ask_later() { asks_later_ = true; }
  // A message of that length waits for the peer's answer. As a Write it would wait for a receive
  // instead, and the peer's program may post none before it has sent a message itself.
  [[nodiscard]] bool opens_for(Sequencer& sequencer, std::uint64_t length) {
    if (length > eager_most(kEagerSpan)) return false;
    if (asks_later_) ask(sequencer, true);
    if (is_small() && !was_refused_) grow(sequencer);
    return is_asked_;
  }
  // The ring has fewer slots than it may have, and has not been replaced.
  [[nodiscard]] bool is_small() const { return span_ != 0 && size_ < kEagerSlots && !has_grown_; }
  // The peer's answer. If it opens no ring, messages go as Writes.
  void on_answer(const Completion& c);
  // The peer has revoked a region, perhaps this one.
  void on_revoked(const RemoteRegion& region) {
    if (region.r_id == ring_.r_id) close();
  }
  // Puts the message of `operation`, which has those bytes, into the next slots; has_room() was
  // true. The message carries what `in` has to tell. Returns an error, and closes, if the ring is
  // no longer usable.
  int send(Sequencer& sequencer, const Staging& staging, Operation& operation, const Pieces& bytes,
           EagerIn& in, bool quiet);
  // Whether a message of that length can go through the ring now.
  [[nodiscard]] bool has_room(std::uint64_t length) const {
    return has_slots(length) && (fits_cell(length) || has_pages(length));
  }
  // It could, if there were pages that it can leave from; and there may be some soon.
  [[nodiscard]] bool lacks_pages(std::uint64_t length) const {
    return !fits_cell(length) && has_slots(length) && !has_pages(length) &&
           held_pages_ < kMostHeld && !pages_->is_refused();
  }
  void want_pages() { pages_->want(); }
  // `span`: the most slots of a message that the peer allows.
  void open(std::uint64_t span) {
    span_ = static_cast<std::uint16_t>(std::clamp<std::uint64_t>(span, 1, kEagerSpan));
  }
  void close() { span_ = 0; }
  [[nodiscard]] bool is_open() const { return span_ != 0; }
  // The longest message that goes through the ring.
  [[nodiscard]] std::uint64_t most() const { return is_open() ? eager_most(span_) : 0; }
  // Returns the first slot of the message.
  std::uint32_t use(std::uint64_t length) {
    STP_ASSERT(has_room(length), "slots are used that are free");
    const auto slots = static_cast<std::uint32_t>(eager_slots(length));
    const auto place = eager_place(sent_, slots, size_);
    sent_ = place + slots;
    ends_[messages_++ % kEagerSlots] = sent_;
    const auto slot = place & (size_ - 1);
    in_flight_ |= eager_bits(slot, slots);
    if (!fits_cell(length)) places_[slot] = pages_->take(slots);
    return slot;
  }
  // Where the message of that slot leaves from.
  [[nodiscard]] std::byte* source(const Staging& staging, std::uint32_t slot,
                                  std::uint64_t length) const {
    return fits_cell(length) ? staging.cell_out(slot) : pages_->at(places_[slot]);
  }
  // The put of a message is complete: the bytes of its slots may be reused.
  void delivered(std::uint32_t slot, std::uint64_t length) {
    const auto slots = static_cast<std::uint32_t>(eager_slots(length));
    const auto bits = eager_bits(slot, slots);
    STP_ASSERT((in_flight_ & bits) == bits, "the put of a message completes once");
    in_flight_ &= ~bits;
    if (!fits_cell(length)) free_pages(slot);
  }
  // The same, where the peer may say so before the bytes have left: its frames would bring it what
  // others send from the pages next. These are held until the Node has taken all requests.
  void delivered(const Sequencer& sequencer, std::uint32_t slot, std::uint64_t length) {
    if (!fits_cell(length) && !sequencer.has_left(sequencer.requests())) [[unlikely]]
      hold_pages(sequencer, slot);
    delivered(slot, length);
  }
  // Gives back those that are held and that nobody reads any more.
  void free_held(const Sequencer& sequencer) {
    if (held_pages_ != 0) [[unlikely]]
      free_left(sequencer);
  }
  // The peer's program has received the message that ends at that position.
  [[nodiscard]] bool has_taken(std::uint32_t ring_end) const {
    return static_cast<std::int32_t>(taken_ - ring_end) >= 0;
  }
  [[nodiscard]] std::uint32_t sent() const { return sent_; }
  // The peer reports how many slots it has taken in total. Reports may overtake each other.
  void taken(std::uint32_t count) {
    if (static_cast<std::int32_t>(count - taken_) <= 0 || sent_ - count > kEagerSlots) return;
    taken_ = count;
    while (messages_taken_ != messages_ && has_taken(ends_[messages_taken_ % kEagerSlots]))
      ++messages_taken_;
  }
  [[nodiscard]] const RemoteRegion& ring() const { return ring_; }
  [[nodiscard]] std::uint32_t messages_taken() const { return messages_taken_; }
  // What the peer has taken has arrived. Each message was one Block.
  // protocol: 9.27
  void confirm(Sequencer& sequencer) {
    if (span_ == 0) return;
    if (old_ring_ != wire::kNoId) [[unlikely]]
      return confirm_old(sequencer);
    sequencer.puts_arrived(ring_, messages_taken_ - first_message_);
    if (is_small() && static_cast<std::int32_t>(messages_ - grows_at_) >= 0) [[unlikely]]
      grow(sequencer);
  }
  // The connection has ended, and no frame of it is under way.
  void leave() {
    for (std::uint32_t slot = 0; slot < kEagerSlots; ++slot) free_pages(slot);
    for (; !held_.empty(); held_.pop_front()) pages_->give_back(held_.front().place);
    held_pages_ = 0;
  }

 private:
  // A small ring grows after so many messages; and where the peer has refused that, again.
  static constexpr std::uint32_t kFew = 8, kMore = 256;
  // With so many pages held, messages of some length are Writes.
  static constexpr std::uint64_t kMostHeld = 2 * kEagerSlots;
  struct Held {
    std::uint64_t requests = 0;  // once so many have left
    SendPages::Place place;
  };
  void hold_pages(const Sequencer& sequencer, std::uint32_t slot);
  void free_left(const Sequencer& sequencer);
  void grow(Sequencer& sequencer);
  void confirm_old(Sequencer& sequencer);
  void free_left_out();
  static bool fits_cell(std::uint64_t length) { return kEagerHead + length <= kEagerCell; }
  [[nodiscard]] bool has_slots(std::uint64_t length) const {
    const auto slots = eager_slots(length);
    if (slots > span_) return false;
    const auto count = static_cast<std::uint32_t>(slots);
    const auto place = eager_place(sent_, count, size_);
    return place + count - taken_ <= size_ &&
           (in_flight_ & eager_bits(place & (size_ - 1), count)) == 0;
  }
  [[nodiscard]] bool has_pages(std::uint64_t length) const {
    return held_pages_ < kMostHeld && pages_->has(static_cast<std::uint32_t>(eager_slots(length)));
  }
  void free_pages(std::uint32_t slot) {
    auto& place = places_[slot];
    if (place.count != 0) pages_->give_back(std::exchange(place, {}));
  }

  RemoteRegion ring_;
  std::uint16_t span_ = 0;   // 0: closed
  bool is_asked_ = false;    // and has not answered
  bool asks_later_ = false;  // it is not asked yet
  bool grows_ = false;       // the peer is asked for a larger one
  bool was_refused_ = false;
  bool has_grown_ = false;            // once: a peer that lies has no endless number of rings
  std::uint32_t size_ = kEagerSlots;  // slots of the ring
  std::uint32_t grows_at_ = kFew;
  std::uint32_t first_message_ = 0;  // in the present ring
  std::uint32_t begin_ = 0;          // where that begins, as slots are counted
  // The R_id of the one before it, while messages are there that the peer has not taken.
  std::uint32_t old_ring_ = wire::kNoId;
  std::uint32_t sent_ = 0, taken_ = 0;
  std::uint32_t in_flight_ = 0;  // bit per slot
  SendPages* pages_;
  std::uint32_t messages_ = 0, messages_taken_ = 0;
  std::array<std::uint32_t, kEagerSlots> ends_{};       // where those end that are not taken
  std::array<SendPages::Place, kEagerSlots> places_{};  // of a message, by its slot
  RingQueue<Held> held_;
  std::uint64_t held_pages_ = 0;
  // With these a line, so that what follows in a connection stays in as few lines.
  [[maybe_unused]] std::array<std::byte, kCacheLine - sizeof held_ - sizeof held_pages_> fills_{};
};
static_assert(kEagerSlots + kSmallSlots < 32);

// The receiving side: messages that have arrived and wait to be matched.
class EagerIn {
 public:
  struct Arrived {
    std::uint32_t slot = 0;
    EagerHead head;
  };
  // The peer asks for the ring. Returns false if it has asked before.
  bool ask(std::uint32_t request) {
    if (served_ != 0 || asked_ != 0) return false;
    asked_ = request;
    return true;
  }
  // It has not been answered.
  [[nodiscard]] bool is_asked() const { return asked_ != 0; }
  // The answer, if the peer has no ring yet, and a small one will do. Returns false if it needs
  // another one.
  bool serve_small(Sequencer& sequencer, const Staging& staging, EndpointId endpoint,
                   std::uint64_t least);
  [[nodiscard]] bool has_small() const { return small_ != 0; }
  // The session waits for memory: for this ring, or for pages that a message can leave from.
  [[nodiscard]] bool session_waits() const { return session_waits_; }
  bool wait(bool waits) { return std::exchange(session_waits_, waits); }
  // The answer, with memory for the ring. Returns false if the peer does not ask any more.
  bool serve(Sequencer& sequencer, const RingMemory& ring, EndpointId endpoint);
  void refuse(Sequencer& sequencer) { sequencer.refuse(std::exchange(asked_, 0)); }
  [[nodiscard]] const RingMemory& ring() const { return ring_; }
  // Whether the peer's request `number` got the ring.
  [[nodiscard]] bool is_served_as(std::uint32_t number) const {
    return number == served_ || (number == small_ && small_ != 0);
  }
  // `length` bytes have arrived at `offset` of the ring that request got. Returns false if they are
  // not a valid message.
  bool arrived(std::uint32_t request, std::uint64_t offset, std::uint64_t length, EagerHead& out);
  // The bytes of a message.
  [[nodiscard]] const std::byte* bytes(const Arrived& arrived) const {
    return at(arrived.slot) + kEagerHead;
  }
  // Whether messages wait.
  [[nodiscard]] bool any() const { return waiting_ != 0; }
  [[nodiscard]] const Arrived* find(std::uint32_t message) const {
    for (auto left = waiting_; left != 0; left &= left - 1) {
      const auto& arrived = slots_[static_cast<std::size_t>(std::countr_zero(left))];
      if (arrived.head.message == message) return &arrived;
    }
    return nullptr;
  }
  // Whether its slots follow those of the message taken last.
  [[nodiscard]] bool in_turn(const Arrived& arrived) const {
    const auto place = place_of(arrived);
    if (arrived.slot < kEagerSlots) return place % kEagerSlots == arrived.slot;
    return !has_grown_ && place % kSmallSlots == arrived.slot - kEagerSlots;
  }
  void take(const Arrived& arrived) {
    STP_ASSERT((waiting_ >> arrived.slot & 1) != 0 && in_turn(arrived),
               "a message that is taken has arrived, and is the next one in the ring");
    const auto slots = static_cast<std::uint32_t>(eager_slots(arrived.head.length));
    waiting_ &= ~(1U << arrived.slot);
    occupied_ &= ~eager_bits(arrived.slot, slots);
    const auto place = place_of(arrived);
    if (arrived.slot < kEagerSlots && !has_grown_) [[unlikely]] {
      has_grown_ = true;
      rested_ = eager_begin(taken_);
    }
    taken_ = place + slots;
  }
  [[nodiscard]] std::uint32_t taken() const { return taken_; }
  // Returns the count to report to the peer now.
  std::uint32_t tell() {
    rest();  // the peer may write there from now on
    return told_ = taken_;
  }
  // Pages of the ring go back.
  void be_frugal() {
    is_frugal_ = true;
    own_pages_.lie_in(ring_);
  }
  // Where it is.
  void lies_in(const RingMemory& ring) {
    ring_ = ring;
    if (is_frugal_) own_pages_.lie_in(ring_);
  }
  // Gives back the pages of what is taken.
  void rest() {
    if (own_pages_.go_back() && rested_ != taken_) [[unlikely]]
      give_back_pages();
  }
  // The connection has ended, and the peer cannot write any more: the ring is the caller's.
  RingMemory leave() {
    own_pages_.leave();
    return std::exchange(ring_, {});
  }
  // Reports it in a notice.
  void tell(Sequencer& sequencer) { sequencer.notify(tell()); }
  // Enough is unreported to send a notice.
  [[nodiscard]] bool should_tell() const {
    return taken_ - told_ >= (has_grown_ ? kEagerSlots : kSmallSlots) / 2;
  }
  [[nodiscard]] bool has_untold() const { return taken_ != told_; }

 private:
  [[nodiscard]] std::uint32_t place_of(const Arrived& arrived) const {
    const auto slots = static_cast<std::uint32_t>(eager_slots(arrived.head.length));
    if (arrived.slot >= kEagerSlots) return eager_place(taken_, slots, kSmallSlots);
    return eager_place(has_grown_ ? taken_ : eager_begin(taken_), slots);
  }
  // Slots of the small ring are counted behind those of the other one.
  [[nodiscard]] std::byte* at(std::uint32_t slot) const {
    return slot < kEagerSlots ? ring_.slot(slot) : small_ring_ + (slot - kEagerSlots) * kEagerSlot;
  }

  void give_back_pages();

  std::array<Arrived, kEagerSlots + kSmallSlots> slots_;
  RingMemory ring_;
  std::byte* small_ring_ = nullptr;
  RingPages own_pages_;
  std::uint32_t rested_ = 0;  // the pages of slots before that have been given back
  std::uint32_t asked_ = 0;   // number of the peer's request that is not answered; 0: none
  std::uint32_t small_ = 0;   // of the one that got the small ring
  std::uint32_t served_ = 0;  // of the one that got the other one
  // Each turn looks at the rest, and at what stands behind a session in its connection: all of it
  // is in one cache line.
  bool is_frugal_ = false;
  bool has_grown_ = false;  // a message in the other ring was taken
  bool session_waits_ = false;
  // Bits per slot: the first ones of the messages that wait, and all of theirs.
  std::uint32_t waiting_ = 0, occupied_ = 0;
  std::uint32_t taken_ = 0, told_ = 0;  // slots, with those that were left out
};

// Contexts that a connection gives to its Sequencer. Those of operations have OperationList::kMark.
namespace context {
inline constexpr Context kHelloOut = 1, kHelloIn = 2;
// Receives of the connection's own count from here.
inline constexpr Context kFirstReceive = 16;
// A receive from a pool: this bit, and the number of its message.
inline constexpr Context kMessageMark = Context{1} << 62;
// A region of the peer's: this bit, and its key.
inline constexpr Context kKeyMark = Context{1} << 63;
}  // namespace context

// Message 1 of each side is the handshake's. The program's messages are counted from 1. 0: none.
constexpr std::uint32_t program_message(std::uint32_t message) {
  return message > 0 ? message - 1 : 0;
}

// What an open connection exchanges messages with: the Sequencer, and the eager rings of both
// sides. A message takes one of two ways, a Write or slots of a ring. Both ways share the numbers
// of the Sequencer, so the order of messages is known. A session begins when the Virtual Connection
// is open.
struct Session {
  Session(const SequencerConfig& config, const Staging& memory, EndpointId of)
      : staging(memory), endpoint(of), eager_out(memory.pages), sequencer(config) {}

  // What each operation uses stands last.
  const Staging staging;
  const EndpointId endpoint;
  EagerOut eager_out;
  EagerIn eager_in;  // at its end
  Sequencer sequencer;

  // The link has let go of the rings. Returns this side's.
  RingMemory leave_rings() {
    eager_out.leave();
    return eager_in.leave();
  }
  void wait_for_pages() {
    eager_out.want_pages();
    eager_in.wait(true);
  }
  // The peer's next message, if it has arrived in the ring; else nullptr.
  [[nodiscard]] const EagerIn::Arrived* arrived() const {
    return eager_in.any() ? eager_in.find(sequencer.expected_message()) : nullptr;
  }
  // Bytes have arrived in a region. Returns false if the region is the ring, and they break its
  // rules.
  bool on_arrived(const Completion& c) {
    if (!eager_in.is_served_as(c.request)) return true;  // a put with Interrupt
    EagerHead head;
    if (!eager_in.arrived(c.request, c.offset, c.length, head)) return false;
    taken(head.taken);
    return true;
  }
  // The peer has taken so many slots in all: what stood there has arrived.
  void taken(std::uint32_t slots) {
    eager_out.taken(slots);
    eager_out.confirm(sequencer);
  }
  // Where the peer's Write for `receive` lands. An empty message needs a place too, although
  // nothing is written there.
  [[nodiscard]] Landing landing(const PostedReceive& receive) const {
    if (!receive.memory) return hello_landing();
    return receive.memory->landing(endpoint, receive.ptr, receive.length);
  }
  [[nodiscard]] Landing hello_landing() const {
    return staging.memory->landing(endpoint, staging.hello_in(), kHelloSize);
  }
};

// Regions by key: PeerRegions has those of the peer that this side uses, ServedRegions those of
// this side that the peer uses.
//
// The life of a region of the peer's:
//
//   Asked --- opened ---> Open --- revoked ---> Closed
//     '----- refused ----------------------------^

enum class PeerRegionState : std::uint8_t { kAsked, kOpen, kClosed };

enum class PeerRegionEvent : std::uint8_t {
  kOpened,   // the peer serves it
  kRefused,  // the peer does not serve it, or was not asked
  kRevoked,  // the peer has revoked it
};

inline constexpr Transition<PeerRegionState, PeerRegionEvent> kPeerRegionTransitions[] = {
    {PeerRegionState::kAsked, PeerRegionEvent::kOpened, PeerRegionState::kOpen},
    {PeerRegionState::kAsked, PeerRegionEvent::kRefused, PeerRegionState::kClosed},
    {PeerRegionState::kOpen, PeerRegionEvent::kRevoked, PeerRegionState::kClosed},
};

struct alignas(kCacheLine) PeerRegion {
  using State = PeerRegionState;
  using Event = PeerRegionEvent;
  Machine<kPeerRegionTransitions> state;
  int status = 0;  // kClosed: the reason
  RemoteRegion region;
  unsigned operations = 0;  // under way: the entry stays in place while there are any
};

// Asks the peer for a region when its key is first used, and keeps at most kMost of them. An entry
// that no operation uses gives way to a new one.
class PeerRegions {
 public:
  static constexpr std::size_t kMost = 64;

  // Brings the region used last into the caches.
  void fetch_ahead() const {
    if (recent_.second != nullptr) fetch_lines(recent_.second, recent_.second + 1);
  }
  // The region of that key. nullptr: all kMost entries are in use.
  PeerRegion* find(Sequencer& sequencer, std::uint32_t key) {
    if (recent_.first == key && recent_.second != nullptr) return recent_.second;
    return look_up(sequencer, key);
  }
  // The peer's answer.
  void on_answer(const Completion& c);
  void on_revoked(const RemoteRegion& region);
  void clear() {
    recent_ = {};
    regions_.clear();
  }

 private:
  PeerRegion* look_up(Sequencer& sequencer, std::uint32_t key);
  void make_room(Sequencer& sequencer);

  std::map<std::uint32_t, PeerRegion> regions_;     // by key
  std::pair<std::uint32_t, PeerRegion*> recent_{};  // the one found last; nullptr: none
};

class ServedRegions {
 public:
  // Serves the region that the peer requests, under the key `request.tag`.
  void serve(Sequencer& sequencer, const Completion& request, const Landing& landing,
             const RegionTerms& terms);
  // The peer has ended a region.
  void on_ended(std::uint32_t number) { keys_.erase(number); }
  // Whether the peer uses the region of that key.
  [[nodiscard]] bool serves(std::uint32_t key) const;
  void revoke(Sequencer& sequencer, std::uint32_t key);
  void clear() { keys_.clear(); }

 private:
  std::map<std::uint32_t, std::uint32_t> keys_;  // by number
};

}  // namespace stp::managed
