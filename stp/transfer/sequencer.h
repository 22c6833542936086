// SPDX-License-Identifier: BSD-3-Clause
// The managed layer: drives the sequences of docs/protocol.md section 9 for one connection, with
// recovery, on top of level 0. It is a user of a channel like any other: headers from the Schedule
// Header Queue come in, requests for the transmit queue go out, time is an argument.
//
//   while (user.receive(entry)) sequencer.receive(entry, now);
//   if (now >= sequencer.next_deadline()) sequencer.expire(now);
//   while (user.writable() && sequencer.transmit(entry, now)) user.send(entry);
//   while (sequencer.next_completion(c)) ...
//
// The connection's endpoint must have been opened with EndpointConfig::recover, so that the Node
// asks again for Blocks without progress. Memory is named by Bufx addresses that the caller mapped;
// it belongs to an operation until that operation's completion.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "stp/channel/layout.h"
#include "stp/types.h"
#include "stp/wire/header.h"
#include "stp/wire/tiling.h"

namespace stp {

// Chosen by the caller, given back with the completion.
using Context = std::uint64_t;

// Where a peer's data may land: memory mapped for receiving, and an Mx that covers it.
struct Landing {
  std::uint16_t mx = 0;
  Address at;
  std::uint64_t length = 0;
};

// A peer's memory that stays open for Put, Get and FetchOp.
struct RemoteRegion {
  std::uint32_t r_id = wire::kNoId;
  std::uint16_t mx = 0;
  Address at;
  std::uint64_t length = 0;
  std::uint32_t window = 0;  // Put Blocks that may be unacknowledged
  // Where its owner serves regions by name: what it said of this one.
  std::uint64_t base = 0;
  std::uint32_t access = 0;
};

// What the owner of a region says of it to whoever asked for it by name.
struct RegionTerms {
  std::uint64_t base = 0;
  std::uint32_t access = 0;
};

// A write of the peer that waits for a receive.
struct Offer {
  std::uint64_t length = 0;
  std::uint32_t message = 0;
};

struct Completion {
  enum class Kind : std::uint8_t {
    kWrite,          // all of a write is in the peer's memory
    kReceive,        // a posted receive has been filled by a peer's write
    kRead,           // all of a read has arrived
    kServe,          // a read that this side answered is in the peer's memory
    kRegion,         // the peer opened the region that was asked for: see `region`
    kPut,            // a put is in the peer's memory
    kGet,            // a get has arrived
    kFetch,          // what the peer's memory held before is in the landing, in host order
    kReadRequest,    // the peer wants to read `length` bytes: serve_read() or refuse(`request`)
    kRegionRequest,  // the peer wants a region of `length` bytes: serve_region() or refuse()
    kEnded,          // the peer ended the region `request` that this side had opened
    kRevoked,        // `region` of the peer's is open no more
    kArrived,        // a put with kInterrupt is in the region `request`, from `offset` on
    kNotice,         // `tag` is what the peer gave notify()
  };
  Kind kind;
  int status = 0;  // 0, or a negative errno: -ECONNREFUSED the peer refused,
                   // (no receive long enough, no such region), -ETIMEDOUT no answer,
                   // -ECANCELED ended by either side, or why the connection ended
  Context context = 0;
  std::uint64_t length = 0;   // bytes
  std::uint32_t request = 0;  // kReadRequest, kRegionRequest: names it in the answer
  std::uint32_t tag = 0;      // kReceive: what the writer gave along; kRegionRequest: the name
  std::uint32_t message = 0;  // kWrite, kReceive: Message Sequence Number; 0: none
  std::uint64_t offset = 0;   // kArrived
  RemoteRegion region;        // kRegion
};

struct SequencerConfig {
  unsigned local_bufsize = 14, remote_bufsize = 14;
  unsigned send_stu_log2 = 10, receive_stu_log2 = 10;  // STU sizes of the two directions
  unsigned max_block = 20;         // exponent: longest Block granted or asked for
  std::uint32_t cts_window = 4;    // Blocks granted, or wanted, at once
  std::uint32_t remote_slots = 0;  // the peer's, all of them; 0: not known
};

struct WriteOptions {
  std::uint32_t tag = 0;
  std::uint16_t flags = 0;  // wire::flag::kInterrupt, kOrder
  Time patience = 0;        // with an answer that stays away, where more than is usual
};

struct PutOptions {
  std::uint16_t flags = 0;  // wire::flag::kInterrupt, kOrder
  // Nobody waits for its completion. It comes with that of a later Put, or after
  // confirm_puts(), or when the peer has been asked a millisecond later.
  bool quiet = false;
};

// Calls that begin something return 0, or -EINVAL, -EAGAIN (too much outstanding), -ENOTCONN. Those
// that answer a request (serve_read, serve_region, refuse) return -ECANCELED where it is none any
// more: its peer may take it back at any time.
class Sequencer {
 public:
  explicit Sequencer(const SequencerConfig& config);
  ~Sequencer();
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  // --- operations
  int write(Context context, Address source, std::uint64_t length,
            const WriteOptions& options = {});
  int post_receive(Context context, const Landing& landing);  // in order of posting
  int read(Context context, const Landing& landing);
  int serve_read(std::uint32_t request, Context context, Address source, std::uint64_t length);
  // `length` bytes that stay open for Puts (of `window` Blocks at once), Gets and FetchOps.
  // With a `name` (not 0) the peer may serve a longer one, and say what it is.
  int request_region(Context context, std::uint64_t length, std::uint32_t window,
                     std::uint32_t name = 0);
  int serve_region(std::uint32_t request, const Landing& landing, std::uint32_t window,
                   const RegionTerms& terms = {});
  // Ends a region that was served as `request`.
  int close_region(std::uint32_t request);
  int refuse(std::uint32_t request);
  // A put that fails, but for cancel(), has lost its region: it is ended. From then on put() and
  // end_region() return -EACCES, even before the completions (kPut, kRevoked) have told.
  int put(Context context, const RemoteRegion& region, std::uint64_t offset, Address source,
          std::uint64_t length, const PutOptions& options = {});
  // Somebody waits for the quiet Puts after all: asks the peer about them.
  void confirm_puts();
  int get(Context context, const RemoteRegion& region, std::uint64_t offset,
          const Landing& landing);
  // `landing` has room for the 8-byte old value, 8-aligned.
  int fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
            wire::Function function, std::uint64_t operand, std::uint64_t compare,
            const Landing& landing);
  int end_region(const RemoteRegion& region);
  // Ends the operation of that context at both sides; its completion says -ECANCELED. A put all of
  // which has been sent goes on; of another, what has been sent arrives before it completes.
  int cancel(Context context);
  int no_operation();
  // 32 bits for the peer's user, in a NOP: they may get lost.
  int notify(std::uint32_t word);

  // --- messages that arrive by other ways than a write share the order of the writes
  // The number of the next message to send, which is thereby taken.
  std::uint32_t take_message();
  // Which message of the peer's is next.
  [[nodiscard]] std::uint32_t expected_message() const;
  // The expected one has come otherwise.
  void pass_message();
  // Writes wait for a receive.
  [[nodiscard]] bool has_offers() const;
  // The write whose turn it is, when no receive is posted for it.
  std::optional<Offer> waiting();
  // Refuses that one.
  void refuse_waiting();

  // --- a message may be given its receive ahead of its turn, which then passes over it
  // The first write beyond the one whose turn it is that waits for a receive.
  std::optional<Offer> waiting_ahead();
  // Begins that one.
  void receive_ahead(Context context, const Landing& landing);

  // --- headers, requests, time
  void receive(const ReceivedEntry& entry, Time now);
  bool transmit(SendEntry& out, Time now);
  [[nodiscard]] Time next_deadline() const;
  void expire(Time now);
  // What UserChannel::taken() says. Completions that give back memory which the peer may still have
  // written to wait until the Node has taken the request that forbids it.
  void taken(std::uint32_t count, Time now = 0);
  // The Node has taken nothing for 30 s though requests wait: the peer has no Slot free for them.
  // Nothing can end while they wait, so the connection is to be ended, which fail() then tells.
  [[nodiscard]] bool is_stuck() const;
  // What UserChannel::cts_repeated() says: from it Block sizes are chosen.
  void observe_loss(std::uint32_t cts_repeated);
  // The connection has ended: everything outstanding completes with `error`. Frames on their way
  // may still read what was being sent, and the peer may take them for good: that memory keeps its
  // bytes until UserChannel::done() says that the frames have left.
  void fail(int error);
  bool next_completion(Completion& out);
  [[nodiscard]] bool has_completion() const;
  // transmit() has something.
  [[nodiscard]] bool has_request() const;
  // So it has, or completions wait for taken().
  [[nodiscard]] bool waits_for_node() const;
  // Operations that have no completion yet.
  [[nodiscard]] std::size_t outstanding() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stp
