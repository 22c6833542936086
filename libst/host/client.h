// SPDX-License-Identifier: BSD-3-Clause
// What a Service knows about one client: endpoints, regions, channels, Mx, the credit of its bell,
// and what is left of objects that have ended; and how it is all removed when the client leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "libst/host/budgets.h"
#include "libst/host/service.h"
#include "libst/ipc/client_page.h"
#include "libst/ipc/shared_memory.h"
#include "libst/ipc/socket.h"
#include "libst/os/unique_fd.h"
#include "stp/base/assert.h"
#include "stp/base/state_machine.h"
#include "stp/channel/layout.h"
#include "stp/node/node.h"
#include "stp/types.h"

namespace stp::host {

class Bells;
struct BellGroup;
class Connections;
class Endpoints;
class Regions;

// What is left of endpoints, regions and connections that have ended: records that Removal
// removes one at a time. Whoever ends such an object adds it here.

// Exactly one of the three objects is named.
struct Leftover {
  ClientId client = 0;
  EndpointId endpoint = kNoneId;  // has ended: its regions can no longer be asked about
  RegionId region = kNoneId;      // has gone: so have its Mx
  VcId vc = kNoneId;              // has gone: so have its Mx
};

using Leftovers = std::deque<Leftover>;

// An entry of a std::map whose key is not known yet. The constructor allocates it, so that nothing
// can fail once the Node has made the object that the entry describes.
template <typename Map>
class NewEntry {
 public:
  template <typename... Arguments>
  explicit NewEntry(Map& map, Arguments&&... of_value) : map_(map) {
    one_.try_emplace(typename Map::key_type{}, std::forward<Arguments>(of_value)...);
  }
  // Call before enter().
  [[nodiscard]] typename Map::mapped_type& value() { return one_.begin()->second; }
  // Puts it into the map; call once, with a key that the map does not have.
  typename Map::mapped_type& enter(typename Map::key_type key) {
    auto entry = one_.extract(one_.begin());
    entry.key() = key;
    const auto result = map_.insert(std::move(entry));
    STP_ASSERT(result.inserted, "the Node does not use an id again");
    return result.position->second;
  }

 private:
  Map& map_;
  Map one_;
};

// Limits how often a client may ring its doorbell without need. Each ring takes a turn of the
// polling thread, so a client that keeps ringing would keep the thread awake. The service ignores
// the bell of such a client for a while, longer each time. It still finds the client's requests
// whenever something else wakes the thread.
class BellCredit {
 public:
  // The client rang and there was something new in one of its queues. Rings may overtake each
  // other, so some of them find an empty queue.
  void rang_with_reason() {
    left_ = std::min(left_ + kForEach, kMost);
    pause_ = kShortest;
  }
  // The client rang and all its queues were empty. Returns true if its credit is now used up: its
  // bell is ignored from now on.
  bool rang_in_vain(Time now) {
    if (silent_) return false;
    STP_ASSERT(left_ <= kMost && pause_ >= kShortest && pause_ <= kLongest,
               "a client's credit and its pause stay within their bounds");
    if (left_ > 0) --left_;
    if (left_ > 0) return false;
    silent_ = true;
    until_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongest);
    return true;
  }
  [[nodiscard]] bool silent() const { return silent_; }
  // kNever: the client is not silenced.
  [[nodiscard]] Time silent_until() const { return silent_ ? until_ : kNever; }
  void listen_again() {
    silent_ = false;
    left_ = std::max(left_, kAgain);
  }

  static constexpr Time kShortest = 20 * kMillisecond, kLongest = 320 * kMillisecond;
  static constexpr unsigned kMost = 64;  // useless rings in a row before the first silence

 private:
  static constexpr unsigned kForEach = 8, kAgain = 4;

  unsigned left_ = kMost;
  bool silent_ = false;
  Time until_ = 0;
  Time pause_ = kShortest;
};

// The index of a channel in its client's table.
using Bell = std::uint32_t;

// The memory of a channel. Knows where its control words are, so that a ring reads nothing else.
class ChannelMemory {
 public:
  ChannelMemory& operator=(std::shared_ptr<ipc::SharedMemory> memory) {
    memory_ = std::move(memory);
    control_ = memory_ ? reinterpret_cast<ChannelControl*>(memory_->data()) : nullptr;
    return *this;
  }
  [[nodiscard]] explicit operator bool() const { return memory_ != nullptr; }
  [[nodiscard]] ipc::SharedMemory* operator->() const { return memory_.get(); }
  [[nodiscard]] const std::shared_ptr<ipc::SharedMemory>& shared() const { return memory_; }
  [[nodiscard]] ChannelControl& control() const { return *control_; }

 private:
  std::shared_ptr<ipc::SharedMemory> memory_;
  ChannelControl* control_ = nullptr;
};

// What each Put reads is in its first cache line.
struct alignas(kCacheLine) Channel {
  ChannelMemory memory;
  VcId vc = kNoneId;            // kNoneId: spare, or its connection is not accepted yet
  std::uint32_t rung_head = 0;  // head of the transmit queue at the last ring
  bool closing = false;         // the client has asked to close it
  bool to_wake = false;         // a thread that sleeps on it is about to be woken (bells.h)
  EndpointId endpoint = kNoneId;
  std::shared_ptr<ipc::SharedMemory> offered;  // takes its place when the client has mapped it
  std::uint32_t copied = 0;                    // headers that are in `offered` already
  Reservation held, port;                      // `port`: of those that this shard has
  Counted one, counted_bytes, counted_slots;

  [[nodiscard]] ChannelControl& control() const { return memory.control(); }
};

// The channels of one client by their bell numbers, and the connections that use them. A bell
// number is free again when its channel is removed; numbers stay small, because the client's page
// has a bit for each.
class ChannelTable {
 public:
  // Gives the channel a bell number. An exception (no memory) changes nothing.
  Bell add(std::unique_ptr<Channel> channel);
  // Call when no connection uses the channel. Cannot fail.
  std::unique_ptr<Channel> remove(Bell number);
  // From now on the connection uses the channel: it is accepted, or the client has begun it.
  void put_to_use(VcId vc, Bell number);
  // The connection has ended.
  void end_use(VcId vc);

  // nullptr: no channel has this number.
  [[nodiscard]] Channel* at(Bell number) const {
    return number < channels_.size() ? channels_[number].get() : nullptr;
  }
  // nullptr: the client has no such connection.
  [[nodiscard]] Channel* of(VcId vc) const {
    const auto found = in_use_.find(vc);
    return found == in_use_.end() ? nullptr : channels_[found->second].get();
  }
  // All numbers are below this one.
  [[nodiscard]] std::uint32_t numbers() const {
    return static_cast<std::uint32_t>(channels_.size());
  }
  [[nodiscard]] std::size_t count() const { return channels_.size() - free_.size(); }

 private:
  std::vector<std::unique_ptr<Channel>> channels_;  // by bell number
  std::vector<Bell> free_;
  std::unordered_map<VcId, Bell> in_use_;
};

// The Mx of one client: the region of each, and the connection that alone may use it, if any. An Mx
// ends with either of them. Its record is removed later, one at a time, because a region may have
// thousands.
class MxRecords {
 public:
  struct Record {
    RegionId region = kNoneId;
    VcId vc = kNoneId;  // kNoneId: all connections of the region's endpoint
    Reservation held;
    Counted one;
  };

  // Takes the place of the record of an earlier Mx of this number, which has ended. An exception
  // (no memory) leaves no record of `mx`.
  void add(std::uint16_t mx, Record record);
  // Does nothing if there is no record.
  void remove(std::uint16_t mx);
  // Removes one record of the region or connection. False: there is none.
  bool remove_one_of_region(RegionId region);
  bool remove_one_of_connection(VcId vc);

  [[nodiscard]] std::size_t count_of_region(RegionId region) const;
  [[nodiscard]] std::size_t count_of_connection(VcId vc) const;
  [[nodiscard]] bool empty() const { return records_.empty(); }

 private:
  using Set = std::unordered_set<std::uint16_t>;
  std::unordered_map<std::uint16_t, Record> records_;
  std::unordered_map<RegionId, Set> of_region_;  // no set is empty
  std::unordered_map<VcId, Set> of_connection_;  // no set is empty
};

struct Endpoint {
  bool listening = false;
  bool low = false;                   // its stock is filled in coming turns
  bool ending = false;                // closed by the client; erased when all its objects have gone
  std::uint32_t unaccepted = 0;       // spare channels, and those of connections not accepted yet
  std::uint32_t channels = 0;         // all channels
  std::uint32_t in_use = 0;           // connections that the client holds and has not closed
  std::uint32_t regions = 0;          // regions that the Node still uses
  std::unordered_set<RegionId> gone;  // regions that the client may still ask about
  Reservation held;                   // with its Bufx tables
  Counted one, counted_tables;
};

//   bound ──unmap──► unbinding ──gone──► gone
//
// unbinding: frames may still read the memory. gone: the Node has forgotten the region; the client
// may still ask about it.
enum class RegionState { kBound, kUnbinding, kGone };
enum class RegionEvent { kUnmap, kGone };
inline constexpr Transition<RegionState, RegionEvent> kRegionTransitions[] = {
    {RegionState::kBound, RegionEvent::kUnmap, RegionState::kUnbinding},
    {RegionState::kUnbinding, RegionEvent::kGone, RegionState::kGone},
};

struct Region {
  Machine<kRegionTransitions> state;
  EndpointId endpoint = kNoneId;
  std::shared_ptr<void> keep;  // keeps the memory mapped until the region has gone
  // As in the request.
  Direction direction = Direction::kTransmit;
  std::uint32_t base = 0;
  std::uint64_t bytes = 0;
  Reservation held;
  Counted one, counted_bytes;
};

// Whom the service is about to wake (bells.h).
struct WakesDue {
  bool page = false;
  std::deque<Bell> channels;  // each once
  // Of connections that are over: they go when their threads are woken.
  std::deque<std::unique_ptr<Channel>> over;
  bool waits = false;  // for its turn
};

// What a Service knows about one client. The Service looks up every id of a request here, so a
// client reaches only its own objects.
struct Client {
  ClientId id = 0;
  bool privileged = false;
  ipc::ClientIdentity identity;
  Payer payer;
  Reservation held;
  // What the program uses on all shards: its quotas limit this.
  std::shared_ptr<ProgramUse> use = std::make_shared<ProgramUse>();
  bool leaving = false;
  // How far the removal of the client has come.
  Bell next_bell = 0;
  EndpointId next_endpoint = kNoneId;
  RegionId next_region = kNoneId;
  std::shared_ptr<ipc::SharedMemory> page_memory;
  std::shared_ptr<ipc::SharedMemory> offered_page;  // takes its place when the client has mapped it
  Reservation files, mapping;                       // for the page that is offered
  // An eventfd that the client writes to wake a sleeping service. The service never reads it,
  // writes it or changes its flags. Empty for a client in this process.
  os::UniqueFd bell_file;
  BellGroup* bell_group = nullptr;  // that it is in
  Reservation bell_paid;            // files of both
  BellCredit bell_credit;
  ipc::Doorbells::Progress rung;
  WakesDue wakes;
  std::shared_ptr<ipc::Torn> torn = std::make_shared<ipc::Torn>(false);

  ChannelTable channels;
  std::map<EndpointId, Endpoint> endpoints;
  std::map<RegionId, Region> regions;
  MxRecords mxs;

  [[nodiscard]] ipc::ClientPage& page() const {
    return *reinterpret_cast<ipc::ClientPage*>(page_memory->data());
  }
  // nullptr: not an object of this client, or no longer.
  Endpoint* endpoint(EndpointId id_of) {
    const auto at = endpoints.find(id_of);
    return at == endpoints.end() || at->second.ending ? nullptr : &at->second;
  }
  Region* region(RegionId id_of) {
    const auto at = regions.find(id_of);
    return at == regions.end() ? nullptr : &at->second;
  }
  [[nodiscard]] bool empty() const {
    return endpoints.empty() && regions.empty() && mxs.empty() && channels.count() == 0 &&
           !wakes.waits;
  }

  // Wakes a thread that sleeps on the page: for a connection to accept, a change of the link, or
  // any gathered channel. That thread wakes the others.
  void wake() const;
  // The same for the threads that sleep on the channel, or on the page if it is gathered.
  void wake(const Channel& channel) const;
  // Sets the channel's bit in the page, if it is gathered.
  void tell_news(Bell number) const;
};

// Names a channel to the Node: the client in the upper half, the bell number in the lower.
constexpr std::uint64_t cookie_of(ClientId client, Bell number) {
  return std::uint64_t{client} << 32 | number;
}
constexpr ClientId client_in(std::uint64_t cookie) {
  return static_cast<ClientId>(cookie >> 32);
}
constexpr Bell bell_in(std::uint64_t cookie) {
  return static_cast<Bell>(cookie);
}

// The clients of one Service: who they are, their ids, and what their users pay for their places.
// A client that leaves stays in the table until nothing of it is left. The number of places bounds
// the number of clients, so loops over them are short.
class ClientTable {
 public:
  explicit ClientTable(Allowances& allow) : allow_(allow) { spare_.reserve(kSpare); }

  // Adds a client that belongs to no user: only the totals limit it. `privileged`: may choose Keys.
  // nullptr: there is no memory for its page (errno).
  Client* add(bool privileged);
  enum class Place {
    kOwn,       // pays for its place, its socket and its process descriptor
    kOperator,  // in one of the few places reserved for operators, which cost nothing
    kKnown      // the program has paid on another shard; pays for its page and its bell only
  };
  // Adds the program of a user. nullptr: as above, or the user has as many as it may (errno EDQUOT,
  // `why` has the text).
  Client* add(const ipc::ClientIdentity& identity, Place place, std::string& why);

  // nullptr: there is no such client.
  [[nodiscard]] Client* find(ClientId id) {
    const auto at = clients_.find(id);
    return at == clients_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] const Client* find(ClientId id) const {
    return const_cast<ClientTable*>(this)->find(id);
  }
  [[nodiscard]] std::size_t size() const { return clients_.size(); }
  [[nodiscard]] auto begin() { return clients_.begin(); }
  [[nodiscard]] auto end() { return clients_.end(); }
  [[nodiscard]] auto begin() const { return clients_.begin(); }
  [[nodiscard]] auto end() const { return clients_.end(); }

  // Removes a client that leaves, if nothing is left of it.
  void forget_if_empty(Client& client);
  // A client needs its page no more. One that nobody else has is for the next client.
  void take_back(std::shared_ptr<ipc::SharedMemory> page);

 private:
  // Pages that are kept: to map or unmap one may have to wait for threads that do so with memory of
  // programs (os::MappingTurn), and the link would wait as well.
  static constexpr std::size_t kSpare = 64;

  ClientId unused_id();
  std::shared_ptr<ipc::SharedMemory> make_page();

  Allowances& allow_;
  std::unordered_map<ClientId, Client> clients_;
  std::vector<std::shared_ptr<ipc::SharedMemory>> spare_;
  ClientId last_ = 0;
};

// Returns the next unused id after `last`, which may wrap around. Never 0.
template <typename Clients>
ClientId next_client_id(ClientId last, const Clients& in_use) {
  do {
    ++last;
  } while (last == 0 || in_use.contains(last));
  return last;
}

// Pays for the memory with which the Node tracks incoming data: the budget of each client's user
// pays for what the client's endpoints take. A client's part may outlive the client for some turns.
class WindowAccounts final : public WindowBudget {
 public:
  explicit WindowAccounts(ClientTable& clients) : clients_(clients) {}

  bool hold(std::uint64_t owner, std::uint64_t before, std::uint64_t bytes) override;

 private:
  ClientTable& clients_;
  std::unordered_map<ClientId, Reservation> held_;  // none is empty
};

// Removes what has ended, a slice in each turn: a client that leaves may have thousands of objects,
// and no other client should wait until all of them are removed. Also ends the clients that took
// away memory in use.
class Removal {
 public:
  // Throws std::system_error if the process may not have one more file.
  Removal(ClientTable& clients, Bells& bells, Connections& connections, Regions& regions,
          Endpoints& endpoints, Leftovers& leftovers);

  // Begins to remove the client, once: its requests and bells are no longer heard.
  void begin(Client& client);
  // Begins to remove the clients that took away pages which they had lent: the data in those pages
  // is lost, so such a client cannot go on.
  void expel_torn() {
    if (const auto tears = ipc::MemoryGuard::tears(); tears != seen_tears_) expel(tears);
  }
  // One slice, for all clients together. Returns true if there was work; there may be more.
  bool go_on() { return (!leaving_.empty() || !leftovers_.empty()) && remove_some(); }

  // Returns the clients that expel_torn() has removed, one by one.
  std::optional<ClientId> next_expelled();
  // Readable when there is one.
  [[nodiscard]] int expelled_fd() const { return expelled_fd_.get(); }

 private:
  void expel(std::uint64_t tears);
  bool remove_some();
  bool remove_one_of(Client& client);
  bool remove_one_of(const Leftover& leftover, Client& client);

  ClientTable& clients_;
  Bells& bells_;
  Connections& connections_;
  Regions& regions_;
  Endpoints& endpoints_;
  Leftovers& leftovers_;
  std::deque<ClientId> leaving_;  // clients with something left to remove
  std::deque<ClientId> expelled_;
  os::UniqueFd expelled_fd_;
  std::uint64_t seen_tears_ = 0;
};

}  // namespace stp::host
