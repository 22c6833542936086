// SPDX-License-Identifier: BSD-3-Clause
// Requests for reads and regions: what the peer asks this side's user for, what this side asks, and
// the terms of regions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "stp/channel/layout.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/puts.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/sequencer.h"
#include "stp/wire/big_endian.h"

namespace stp {

// What requests for a region by name carry: the first word of the RMR's option payload is the name
// (as a Message Sequence Number is in an RTS), the second one the length that will do, or 0; the
// option payload of the MRA holds the terms.
// protocol: 9.29
inline void store_name(SendEntry& entry, std::uint32_t name, std::uint32_t least) {
  if (name != 0) store_msn(entry, name, least);
}

inline std::uint32_t load_name(const ReceivedEntry& entry) {
  return load_msn(entry);
}

inline std::uint32_t load_least(const ReceivedEntry& entry) {
  if (entry.payload_length != wire::kOptionSize) return 0;
  return wire::load32(reinterpret_cast<const std::byte*>(entry.payload) + wire::kAbilitiesAt);
}

inline void store_terms(SendEntry& entry, const RegionTerms& terms) {
  entry.payload_length = wire::kOptionSize;
  auto* const at = reinterpret_cast<std::byte*>(entry.payload);
  wire::store64(at, terms.base);
  wire::store32(at + 8, terms.access);
}

inline RegionTerms load_terms(const ReceivedEntry& entry) {
  if (entry.payload_length != wire::kOptionSize) return {};
  const auto* const at = reinterpret_cast<const std::byte*>(entry.payload);
  return {wire::load64(at), wire::load32(at + 8)};
}

// What the peer asks this side's user for: reads and regions. Owns the requests that the user has
// not answered, of which it is told once, and the regions that it has opened, whose memory it gets
// back when they end. Both are bounded; more requests are refused.
class AsksIn {
 public:
  AsksIn(const SequencerConfig& config, Ids& ids, Outbox& outbox, Completions& completions,
         Endings& endings, Finished& finished)
      : config_(config),
        ids_(ids),
        outbox_(outbox),
        completions_(completions),
        endings_(endings),
        finished_(finished) {}

  // --- the user's answers. -ECANCELED: the request no longer exists.
  // The user serves a read of `length` bytes. Sets the peer's `i_id` of it.
  int take_read(std::uint32_t request, std::uint64_t length, std::uint32_t& i_id);
  int serve_region(std::uint32_t request, const Landing& landing, std::uint32_t window,
                   const RegionTerms& terms);
  int refuse(std::uint32_t request);
  // Ends a region opened as `request`.
  int close_region(std::uint32_t request);

  // --- headers of the peer
  void on_read_request(const wire::RequestToReceive& rtr);
  void on_region_request(const ReceivedEntry& entry);
  // The header of a Put Block that was sent to wake its receiver.
  void on_put(const ReceivedEntry& entry);
  // Our id of the open region that the peer asked for as `i_id`.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t i_id) const;
  // Ends a request or an open region. False: it is no open region.
  bool on_end(const wire::End& end);

  // The connection has ended: requests are gone.
  void fail() { requests_.clear(); }

 private:
  struct Request {
    bool region = false;
    std::uint32_t i_id = 0;
    std::uint64_t length = 0, least = 0;
    std::uint32_t window = 0;
    std::uint32_t name = 0;
  };

  const SequencerConfig& config_;
  Ids& ids_;
  Outbox& outbox_;
  Completions& completions_;
  Endings& endings_;
  Finished& finished_;
  std::map<std::uint32_t, Request> requests_;  // by a number of ours
  std::map<std::uint32_t, SendEntry> opened_;  // MRA sent, by the peer's I_id
};

// What this side asks the peer's user for: to read (RTR), and to open a region (RMR). Owns each
// request until it is answered, and repeats it. A read that is granted goes on as a Transfer, a
// region that is opened goes on among the Puts.
class AsksOut {
 public:
  AsksOut(const Clock& clock, Ids& ids, Outbox& outbox, Completions& completions, Repeats& repeats,
          Endings& endings, Puts& puts)
      : clock_(clock),
        ids_(ids),
        outbox_(outbox),
        completions_(completions),
        repeats_(repeats),
        endings_(endings),
        puts_(puts) {}

  int read(Context context, const Landing& landing);
  int request_region(Context context, std::uint64_t length, std::uint32_t window,
                     std::uint32_t name, std::uint32_t least = 0);
  // Takes the request of `context` back. False: there is none.
  bool cancel(Context context);

  // --- headers of the peer
  // RA: a read is seen or refused. False: it answers something else.
  bool on_answer(const wire::RequestAnswer& ra, bool refused);
  // An RTS of `length` bytes answers the read `i_id`: takes it out.
  struct Read {
    Context context = 0;
    Landing landing;
  };
  std::optional<Read> take_read(std::uint32_t i_id, std::uint64_t length);
  // MRA.
  void on_region(const ReceivedEntry& entry);

  void expire();
  // The connection has ended: all complete with `error`.
  void fail(int error);
  [[nodiscard]] std::size_t outstanding() const { return asked_.size(); }

 private:
  struct Asked {
    std::uint32_t i_id = 0;
    bool region = false;
    Context context = 0;
    Landing landing;  // read
    std::uint64_t length = 0;
    std::uint32_t window = 0;           // region
    std::uint32_t name = 0, least = 0;  // region
    Time begun = 0;
    Awaited awaited{Alarm::kAsksOut};

    [[nodiscard]] Completion::Kind kind() const {
      return region ? Completion::Kind::kRegion : Completion::Kind::kRead;
    }
  };

  Asked& create(Context context, std::uint64_t length);
  void begin(Asked& what);
  void send(Asked& what);
  // Ends it at the peer; it completes with `status` when the peer has confirmed.
  void end(const Asked& what, int status);

  const Clock& clock_;
  Ids& ids_;
  Outbox& outbox_;
  Completions& completions_;
  Repeats& repeats_;
  Endings& endings_;
  Puts& puts_;
  std::map<std::uint32_t, Asked> asked_;  // by our I_id
};

// What the users of both sides ask each other for.
struct Asks {
  Asks(const SequencerConfig& config, Clock& clock, Ids& ids, Outbox& outbox,
       Completions& completions, Repeats& repeats, Endings& endings, Puts& puts)
      : out(clock, ids, outbox, completions, repeats, endings, puts),
        in(config, ids, outbox, completions, endings, endings.finished()) {}

  // The connection has ended: what this side asked for completes with `error`.
  void fail(int error) {
    out.fail(error);
    in.fail();
  }

  AsksOut out;
  AsksIn in;
};

}  // namespace stp
