// SPDX-License-Identifier: BSD-3-Clause
// What the checker knows of one connection, and all connections of a trace for which frames may
// still arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stp/wire/header.h"

namespace stp::replay {

// A map that keeps only its newest entries. The checker's memory must be bounded, however long or
// hostile a file is.
template <typename Key, typename Value, std::size_t kCapacity, typename Hash = std::hash<Key>>
class Recent {
 public:
  Value* find(const Key& key) {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &at->second->second;
  }
  // Replaces an entry with the same key.
  Value& put(const Key& key, Value value) {
    erase(key);
    if (order_.size() == kCapacity) {
      index_.erase(order_.front().first);
      order_.pop_front();
      forgot_ = true;
    }
    order_.emplace_back(key, std::move(value));
    index_[key] = std::prev(order_.end());
    return order_.back().second;
  }
  // As find(). The entry counts as new then.
  Value* find_again(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return nullptr;
    order_.splice(order_.end(), order_, at->second);
    return &at->second->second;
  }
  void erase(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return;
    order_.erase(at->second);
    index_.erase(at);
  }
  template <typename OfKey>
  void erase_if(OfKey&& of_key) {
    for (auto at = order_.begin(); at != order_.end();) {
      const auto next = std::next(at);
      if (of_key(at->first)) {
        index_.erase(at->first);
        order_.erase(at);
      }
      at = next;
    }
  }
  // Whether entries have been dropped: a missing key may have been there.
  [[nodiscard]] bool forgot() const { return forgot_; }
  [[nodiscard]] bool empty() const { return order_.empty(); }
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  auto begin() { return order_.begin(); }  // oldest first
  auto end() { return order_.end(); }

 private:
  using Order = std::list<std::pair<Key, Value>>;
  Order order_;
  std::unordered_map<Key, typename Order::iterator, Hash> index_;
  bool forgot_ = false;
};

enum class Kind { kTransfer, kRegion, kRing };

template <typename Value>
// The requests or grants of one side. Each kind makes room only for its own, so that regions stay
// known, however many Transfers there are meanwhile.
class ByKind {
 public:
  using Newest = Recent<std::uint32_t, Value, 512>;

  Value* find(std::uint32_t id) {
    for (auto& kept : kinds_)
      if (auto* const value = kept.find(id)) return value;
    return nullptr;
  }
  // As find(). The entry counts as new then.
  Value* find_again(std::uint32_t id) {
    for (auto& kept : kinds_)
      if (auto* const value = kept.find_again(id)) return value;
    return nullptr;
  }
  Value& put(std::uint32_t id, Value value) {
    for (auto& kept : kinds_) kept.erase(id);
    return kinds_[static_cast<std::size_t>(value.kind())].put(id, std::move(value));
  }
  [[nodiscard]] bool forgot() const {
    return kinds_[0].forgot() || kinds_[1].forgot() || kinds_[2].forgot();
  }
  Newest& transfers() { return kinds_[static_cast<std::size_t>(Kind::kTransfer)]; }

 private:
  std::array<Newest, 3> kinds_;
};

// The words of the managed layer in option payloads and messages (docs/managed-wire.md).
namespace managed {

// protocol: 9.30, 9.31, 9.34
inline constexpr std::uint32_t kHelloMagic = 0x53544d48, kNoticeMark = 0x53544d4e,
                               kEndMark = 0x53544d45;
inline constexpr std::uint32_t kHelloHead = 12, kEagerHead = 16;
enum HelloKind : std::uint32_t { kRequest = 1, kAccept = 2, kReject = 3 };
enum EndReason : std::uint32_t { kBrokenOff = 1, kNoReceive = 2 };

// The name of the region for short messages.
// protocol: 9.29
inline constexpr std::uint32_t kRingName = 1;

}  // namespace managed

using TraceTime = std::int64_t;
inline constexpr TraceTime kNotYet = std::numeric_limits<TraceTime>::min();

// Tries of one request.
struct Tries {
  TraceTime first = kNotYet, last = kNotYet;
  std::uint64_t first_frame = 0;
  unsigned count = 0;
  bool answered = false;
  bool too_soon = false, too_often = false;  // has been reported
};

// One question for the peer's state, by its Sync.
struct Question {
  TraceTime asked = kNotYet;  // first
  std::uint64_t used = 0;     // Slots used at the peer when it was last asked
  Tries tries;
  bool own_rs = false;  // an RS of a Node: no id, no Block
  // What the question was about. several: the same Sync was used for different questions.
  std::uint32_t r_id = wire::kNoId, b_num = wire::kNoId;
  bool several = false;
};

// RTS, RTR or RMR, by I_id.
struct Request {
  wire::Op op = wire::Op::kRequestToSend;
  std::uint64_t t_len = 0;
  unsigned max_block = 0;
  std::uint32_t cts_req = 0;
  std::uint32_t word = 0;   // first of the option payload: number of a message, name of a region
  std::uint32_t least = 0;  // region: the second word: the length that will do; 0: t_len
  std::optional<bool> heeds_parts;  // bit 30 of the second; nullopt: the capture does not have it
  bool over = false;
  bool granted = false;     // by a CTS or MRA
  Tries tries;              // RTS
  std::uint64_t begun = 0;  // managed: earlier Writes of its side

  [[nodiscard]] Kind kind() const {
    return op == wire::Op::kRequestMemoryRegion ? Kind::kRegion : Kind::kTransfer;
  }
};

// STU_nums. Their memory is that of how many there are, not of how large the largest one is: a
// hostile file may have one of each Block, the last.
class StuNumbers {
 public:
  void add(std::uint16_t number) {
    constexpr unsigned kBits = 64;
    auto& word = words_[number / kBits];
    const auto bit = std::uint64_t{1} << number % kBits;
    if ((word & bit) == 0) ++size_;
    word |= bit;
  }
  [[nodiscard]] std::uint32_t size() const { return size_; }

 private:
  std::unordered_map<std::uint16_t, std::uint64_t> words_;
  std::uint32_t size_ = 0;
};

struct Block {
  // Of a Put, known only after STU 0 was seen. Until then `tile` is the place of its tile 0.
  std::optional<std::uint64_t> start;
  std::optional<std::uint64_t> tile;
  std::uint64_t length = 0;  // at most
  bool exact = false;        // `length` is exact
  std::uint16_t mx = 0;
  TraceTime granted = kNotYet;
  std::uint64_t granted_end = 0;       // so much of `length` has been granted (13.19)
  bool heeded = false;                 // the sender has said that it sends no more than that
  std::optional<std::uint16_t> flags;  // Order and Silent of its first STU
  std::optional<std::uint32_t> last;   // STU_num of the STU with Last
  StuNumbers seen;
  std::unordered_map<std::uint32_t, std::size_t> sums;  // of bytes, by STU_num
  bool slot_counted = false;

  [[nodiscard]] bool whole() const { return last && seen.size() == *last + 1; }
};

// A Transfer or region, at the side that receives its DATA, by R_id.
struct Landing {
  std::uint32_t i_id = 0;
  bool region = false;
  std::optional<std::uint64_t> t_len;
  std::optional<unsigned> blocksize;
  std::uint64_t start = 0;   // region
  std::uint32_t b_win = 0;   // region
  std::uint16_t mx = 0;      // region
  bool ring = false;         // region: of short messages (managed)
  std::uint64_t span = 1;    // ring: the most slots of a message
  std::uint32_t slots = 16;  // ring
  // Managed: the tag of a Write; the Block of a ring that carried its length.
  std::optional<std::uint32_t> tag;
  std::optional<std::pair<std::uint32_t, std::uint64_t>> told_length;
  std::uint32_t not_asked = 0;  // managed, region: Blocks without Send_state since one with it
  std::uint32_t b_seq = 0;      // the highest in an RSR
  TraceTime b_seq_told = kNotYet;
  TraceTime sender_ended = kNotYet;  // END or EA of the side that sends the DATA
  bool over = false;
  bool unknown = false;                 // never granted, and that has been reported
  bool partial = false;                 // an earlier part of its life may have been forgotten
  std::optional<std::uint32_t> faulty;  // the last Block with a reported fault
  // The number of RS about it since its last progress, and the time of the first.
  std::uint32_t asked = 0;
  TraceTime asked_since = kNotYet;
  bool asked_too_often = false;  // has been reported
  Recent<std::uint32_t, Block, 2048> blocks;

  [[nodiscard]] Kind kind() const {
    return ring ? Kind::kRing : region ? Kind::kRegion : Kind::kTransfer;
  }
  // Whether a Block that is not in `blocks` may have been granted or sent.
  [[nodiscard]] bool forgot() const { return partial || blocks.forgot(); }
};

// How far a Block, or a B_seq, is ahead of the complete Blocks. The numbers of Put Blocks wrap
// modulo 2^32.
// protocol: 9.11
inline std::int64_t ahead_of(const Landing& landing, std::uint32_t b_num) {
  if (landing.region) return static_cast<std::int32_t>(b_num - landing.b_seq);
  return std::int64_t{b_num} - landing.b_seq;
}

struct GetRequest {
  wire::Header header;
  Tries tries;
  Block answer;
  bool taken_back = false;
  bool faulty = false;                 // a fault of its answer has been reported
  std::optional<std::uint64_t> value;  // of a FetchOp
};

struct Ending {
  Tries tries;
};

// What one side of a managed connection has sent.
struct Messages {
  struct Missing {
    std::uint64_t frame = 0;
    TraceTime at = kNotYet;
  };
  Recent<std::uint32_t, std::uint64_t, 8192> known;  // the RTS or Block of each number
  Recent<std::uint32_t, Missing, 64> missing;        // numbers that were skipped
  std::uint32_t newest = 0;
  std::uint64_t writes = 0;
  // Slots of the peer's ring: those used so far, and those used up to the end of each Block (of the
  // ring with that R_id).
  std::uint32_t eager = 0;
  // Where the last ring that replaced another begins, and where the messages of that ended.
  std::uint32_t eager_begin = 0, eager_before = 0;
  Recent<std::uint64_t, std::uint32_t, 64> eager_ends;
  std::uint32_t taken = 0;  // slots of this side's ring, as counted by this side
  bool uncounted = false;   // some of its DATA was not judged: `eager` may be too low
};

// Kept separately, so that an idle connection needs little memory.
struct Traffic {
  Recent<std::uint32_t, Question, 256> questions;  // asked by this side
  ByKind<Request> requests;                        // made by this side
  ByKind<Landing> landings;                        // where this side receives
  // When the last granted of its Blocks that are complete was granted: earlier ones have been
  // passed.
  TraceTime passed = kNotYet;
  Recent<std::uint32_t, GetRequest, 256> gets;  // made by this side
  Recent<std::uint64_t, Ending, 128> ends;      // sent by this side: D_id, S_id
  std::optional<std::uint32_t> newest_get;
  std::unique_ptr<Messages> messages;
  // A G_num that was skipped and may still arrive.
  std::optional<std::uint32_t> skipped_get;
  std::uint64_t skipped_frame = 0;
  TraceTime skipped_at = kNotYet;
};

// The option payload of a side's first RD.
using LastWords = std::array<std::byte, wire::kOptionSize>;

// A CA for RCs of another length gives another Key, if its sender keeps nothing of them.
// protocol: 13.20
struct LengthOffer {
  std::uint32_t key = 0;
  unsigned asked = 0;  // the I_Max_STU that it answers
};

struct Side {
  MacAddr mac;
  std::uint16_t port = 0;
  std::optional<std::uint32_t> key;
  std::optional<std::uint32_t> wrong_key;    // the last wrong Key used for this side
  std::vector<LengthOffer> other_lengths;    // its peer has not shown which one it has taken
  bool after_rd = false, no_credit = false;  // has been reported
  bool sized = false;                        // the next three are known
  unsigned bufsize = 0, max_stu = 0;
  std::uint32_t slots = 0;
  TraceTime rd = kNotYet, da = kNotYet, dc = kNotYet;  // when it first sent one
  TraceTime heard = kNotYet;                           // its last frame
  TraceTime answered = kNotYet;                        // its last answer to a frame of its peer
  Tries disconnecting;
  unsigned hasty = 0;                        // repeats of it that seem to come too soon
  std::unique_ptr<LastWords> last_words;     // nullptr: none
  std::uint64_t slots_used = 0;              // at the other side
  std::optional<std::uint64_t> slots_limit;  // slots_used may reach this
  std::unique_ptr<Traffic> traffic;

  Traffic& with_traffic() {
    if (!traffic) traffic = std::make_unique<Traffic>();
    return *traffic;
  }
};

// What the checker knows of one connection: two sides, and what each has asked, granted and sent.
struct Connection {
  std::array<Side, 2> sides;
  bool complete = false;   // seen from its RC on
  bool scheduled = false;  // saw an operation that connectionless endpoints do not use
  bool managed = false;    // it began with a request (9.30) of side `asker`
  bool accepted = false;
  unsigned asker = 0;
  bool mute = false;   // not understood: no faults are reported
  bool lossy = false;  // the capture is known to lack frames of it
  TraceTime closed = kNotYet;
  // Whether it is in the table's list of ending connections.
  bool ending = false;

  // Otherwise the two sides may be connectionless endpoints.
  [[nodiscard]] bool certain() const { return complete || scheduled; }
  // Whether a side's RD, DA and DC have all been seen.
  [[nodiscard]] bool disconnected() const {
    bool any = false;
    for (unsigned s = 0; s < 2; ++s) {
      if (sides[s].rd == kNotYet) continue;
      if (sides[1 - s].da == kNotYet || sides[s].dc == kNotYet) return false;
      any = true;
    }
    return any;
  }
};

// One end: a station and its Port.
struct EndName {
  std::uint64_t mac = 0;
  std::uint16_t port = 0;
  friend auto operator<=>(const EndName&, const EndName&) = default;
};
struct EndHash {
  std::size_t operator()(const EndName& end) const {
    return std::hash<std::uint64_t>()((end.mac << 16 ^ end.port) * 0x9e3779b97f4a7c15);
  }
};

inline EndName end_of(const Side& side) {
  return {side.mac.to_u64(), side.port};
}
// The side of a connection that has this end, and the other.
inline Side& side_at(Connection& c, const EndName& end) {
  return c.sides[end_of(c.sides[0]) == end ? 0 : 1];
}
inline const Side& side_at(const Connection& c, const EndName& end) {
  return c.sides[end_of(c.sides[0]) == end ? 0 : 1];
}
inline const Side& peer_of(const Connection& c, const EndName& end) {
  return c.sides[end_of(c.sides[0]) == end ? 1 : 0];
}

// All connections of a trace for which frames may still arrive.
class ConnectionTable {
 public:
  // Called with each connection that is forgotten.
  using Farewell = std::function<void(Connection&)>;
  explicit ConnectionTable(Farewell farewell) : farewell_(std::move(farewell)) {}

  // The connection between two ends in either order, or nullptr.
  Connection* find(const EndName& a, const EndName& b);
  // The newest connection with this end, or nullptr.
  Connection* of_end(const EndName& end);
  Connection& add(Connection connection);
  // A frame of the connection was seen at `now`. Removes connections that have been silent for too
  // long.
  void touch(Connection& connection, TraceTime now);
  void remove(Connection& connection);
  void clear();  // calls the Farewell for all connections
  // Whether connections have been dropped to make room for others.
  [[nodiscard]] bool forgot() const { return forgot_; }

 private:
  struct Place;
  using List = std::list<Place>;
  struct Place : Connection {
    TraceTime touched = kNotYet;
    List::iterator self;
  };
  struct Pair {
    EndName low, high;
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  struct PairHash {
    std::size_t operator()(const Pair& pair) const {
      return EndHash()(pair.low) * 31 + EndHash()(pair.high);
    }
  };
  static Pair pair_of(const EndName& a, const EndName& b);
  void forget(List& list, List::iterator place);
  void forget_oldest(List& list) { forget(list, list.begin()); }
  List& list_of(const Connection& connection) { return connection.ending ? ending_ : live_; }

  Farewell farewell_;
  bool forgot_ = false;
  List live_, ending_;  // the least recently used first
  std::unordered_map<Pair, Place*, PairHash> by_pair_;
  std::unordered_map<EndName, Place*, EndHash> by_end_;
};

}  // namespace stp::replay
