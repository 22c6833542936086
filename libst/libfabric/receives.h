// SPDX-License-Identifier: BSD-3-Clause
// Receives that wait for messages, and messages that wait for receives. Both in order: a message
// goes to the receive posted first that fits, and a receive gets the oldest message that fits.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "libst/libfabric/address.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/wire.h"

namespace stp::fi {

struct Message;
struct Receive;

// The connection that has brought a message.
class Source {
 public:
  // Reads an announced message into that receive.
  virtual void pull(const Message& message, Receive&& receive) = 0;
  // The bytes of the message are not needed any more.
  virtual void done_with(Message& message) = 0;

 protected:
  ~Source() = default;
};

// What the peers of one host have at an endpoint.
struct OfHost {
  std::size_t connections = 0;
  std::size_t left = 0;  // bytes of messages that wait and whose connection has ended
  std::size_t kept = 0;  // of those that wait in copies, of connections that are there
  std::size_t lanes = 0, buffers = 0;  // of those that all share
};

// What a message that waits costs beside its bytes.
inline constexpr std::size_t kCostOfMessage = 512;

// A buffer of FI_MULTI_RECV: it is the program's again when it is used up and all that came is
// told.
struct Shared {
  std::size_t busy = 0;  // messages on their way into it
  bool used_up = false;
};

struct Receive {
  void* context = nullptr;
  std::uint64_t flags = 0;
  Segments segments{};
  Address source{};  // without a port: any
  bool tagged = false;
  std::uint64_t tag = 0, ignore = 0;
  std::shared_ptr<Shared> shared{};  // of a buffer of FI_MULTI_RECV
};

// A message that has arrived, or that is announced. What its kind of endpoint tells of it in
// another way than by a header is in `head` nevertheless.
struct Message {
  Source* from = nullptr;  // nullptr: its connection has ended
  Address source{};        // of FI_EP_RDM
  bool announced = false;
  Head head;
  std::unique_ptr<std::byte[]> copy;    // its bytes
  const std::byte* lies = nullptr;      // where they are, if there is no copy
  RxBuffer* buffer = nullptr;           // that came with it, and is not lent to the peer again
  std::shared_ptr<OfHost> left_by{};    // whose host's it is since its connection has ended
  bool laned = false;                   // they are in a lane
  std::uint64_t place = 0;              // there
  bool landed = false;                  // they are in the memory of the receive
  std::array<std::byte, kTail> tail{};  // of an announced message: its last bytes

  [[nodiscard]] const std::byte* bytes() const { return copy ? copy.get() : lies; }
  [[nodiscard]] bool tagged() const { return (head.flags & kTagged) != 0; }
};

[[nodiscard]] inline bool fits(const Receive& receive, const Head& head, const Address& source) {
  if (receive.source.port != 0 && receive.source != source) return false;
  return !receive.tagged || ((receive.tag ^ head.tag) & ~receive.ignore) == 0;
}
[[nodiscard]] inline bool fits(const Receive& receive, const Message& message) {
  return fits(receive, message.head, message.source);
}

// What it costs while it waits.
[[nodiscard]] std::size_t cost_of(const Message& message);
// Its bytes no longer lie in a buffer of the connection.
void copy_out(Message& message);

// Messages of one kind, with tags or without, that wait for receives. A peer can leave ten
// thousands that nobody receives. So a receive does not look at all of them: once they are many,
// they are found by their tags and senders, and a receive that takes several tags goes on where the
// last one like it has stopped.
class Early {
 public:
  [[nodiscard]] bool empty() const { return all_.empty(); }
  void add(Message&& message);
  // The oldest one for that receive; nullptr: none.
  [[nodiscard]] const Message* find(const Receive& receive);
  std::optional<Message> take(const Receive& receive);
  // One of that connection that has a buffer of it; nullptr: none. The caller copies it out of
  // there at once.
  [[nodiscard]] Message* take_from_buffer(const Source& from);
  // Shows `look` those of that connection. True: the message waits no more.
  template <class Look>
  void of(const Source& from, Look look) {
    for (auto number = next_of(from, 0); number;) {
      const auto here = all_.find(*number);
      number = next_of(from, *number + 1);
      const auto gone = look(here->second);
      if (gone || here->second.buffer == nullptr) buffered_.erase({&from, here->first});
      if (gone)
        erase(here);
      else if (here->second.from != &from)
        connections_.erase({&from, here->first});
    }
  }
  void clear();
  // Of so many it looks at each.
  static constexpr std::size_t kFew = 32;

 private:
  using Number = std::uint64_t;  // counts those that have come
  using All = std::map<Number, Message>;
  // What receives like that have looked at: up to `next`.
  struct Looked {
    std::uint64_t tag = 0, ignore = 0;
    Address source{};
    Number next = 0;
  };
  // Without tags, all have the same.
  static std::uint64_t tag_of(const Message& message) {
    return message.tagged() ? message.head.tag : 0;
  }
  void index(const All::value_type& entry);
  void erase(All::iterator at);
  All::iterator place_of(const Receive& receive);
  All::iterator by_tag(std::uint64_t tag);
  All::iterator by_source(const Receive& receive);
  All::iterator by_mask(const Receive& receive);
  Looked& looked_at(const Receive& receive);
  // The first one of that connection with that number or a higher one; nullopt: none.
  [[nodiscard]] std::optional<Number> next_of(const Source& from, Number number) const;

  All all_;
  Number next_ = 1;
  bool indexed_ = false;  // the following have all of them
  std::set<std::pair<std::uint64_t, Number>> tags_;
  std::set<std::tuple<Address, std::uint64_t, Number>> sources_;
  // Of those whose connection is there. Addresses are what peers say, so any number of connections
  // may have the same.
  std::set<std::pair<const Source*, Number>> connections_;
  std::set<std::pair<const Source*, Number>> buffered_;  // that have a buffer: indexed or not
  std::array<Looked, 8> looked_{};
  std::size_t replaced_ = 0;  // of those
};

class Matching {
 public:
  // The receive for that message, which is none of the waiting ones any more. A buffer of
  // FI_MULTI_RECV gives a part, and stays while `least` bytes are left.
  std::optional<Receive> take_receive(const Message& message, std::size_t least);
  // The part of such a buffer for that message. The buffer is used up if fewer than `least` bytes,
  // or none, are left.
  static Receive part_of(Receive& whole, const Message& message, std::size_t least);
  // Lets `land` have the receive for a message with that header, where it lies, if all of the
  // message has room there. False: the message goes by take_receive().
  template <class Land>
  bool serve(const Head& head, const Address& source, Land land) {
    auto& waiting = receives_for((head.flags & kTagged) != 0);
    for (auto each = waiting.begin(); each != waiting.end(); ++each) {
      if (!fits(*each, head, source)) continue;
      if (each->shared || each->segments.length < head.length) return false;
      land(*each);
      spare_.splice(spare_.begin(), waiting, each);
      return true;
    }
    return false;
  }
  // Whether its receive would be a buffer of FI_MULTI_RECV.
  [[nodiscard]] bool goes_to_shared(const Message& message) const;
  // The oldest message for that receive.
  std::optional<Message> take_message(const Receive& receive);
  [[nodiscard]] const Message* find_message(const Receive& receive) {
    return messages_for(receive.tagged).find(receive);
  }
  // As those of Early.
  [[nodiscard]] Message* take_from_buffer(const Source& from);

  void add(Receive&& receive) { add_place(receive.tagged) = std::move(receive); }
  // The place of a new last receive, with what an earlier one has left there.
  Receive& add_place(bool tagged);
  // No message waits for a receive.
  [[nodiscard]] bool has_none(bool tagged) { return messages_for(tagged).empty(); }
  void add(Message&& message);
  // The receive of that context that was posted first.
  std::optional<Receive> cancel(const void* context);
  // All receives that name that sender.
  std::list<Receive> take_receives_from(const Address& source);
  // All receives. The messages stay.
  std::list<Receive> take_receives();
  // The same, and no message stays.
  std::list<Receive> clear();
  [[nodiscard]] std::size_t receives() const { return tagged_.size() + plain_.size(); }
  // Whether there are fewer than `most`, of which there are never more. So there are where one of
  // their places is left.
  [[nodiscard]] bool has_room(std::size_t most) const {
    return !spare_.empty() || receives() < most;
  }

  // FI_CLAIM: a message waits for the receive of that context alone.
  void claim(const void* context, Message&& message);
  std::optional<Message> take_claimed(const void* context);

  // That connection of a peer of `host` has ended: what it has announced is gone, what it has
  // brought is copied.
  void forget(const Source& from, const std::shared_ptr<OfHost>& host);
  // Nothing that came on that connection is wanted any more.
  void drop(const Source& from);
  // Of messages that wait and whose connection has ended: their bytes, and what each of them costs.
  [[nodiscard]] std::size_t left_bytes() const { return left_bytes_; }

 private:
  struct Claimed {
    const void* context;
    Message message;
  };
  std::list<Receive>& receives_for(bool tagged) { return tagged ? tagged_ : plain_; }
  Early& messages_for(bool tagged) { return tagged ? early_tagged_ : early_; }

  std::list<Receive> tagged_, plain_;
  Early early_tagged_, early_;
  std::list<Claimed> claimed_;
  std::size_t left_bytes_ = 0;
  std::list<Receive> spare_;  // places of receives, to be used again
};

}  // namespace stp::fi
