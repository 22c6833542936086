// SPDX-License-Identifier: BSD-3-Clause
// The managed layer: runs the sequences of docs/protocol.md section 9 for one connection, with
// recovery, on top of level 0. It uses a channel like any other user: it reads headers from the
// Schedule Header Queue and fills requests into the transmit queue. The caller passes in the time.
//
//   const auto taken = user.taken();
//   while (user.receive(entry)) sequencer.receive(entry, now);
//   sequencer.taken(taken, now);
//   if (now >= sequencer.next_deadline()) sequencer.expire(now);
//   sequencer.transmit(user, now);
//   while (sequencer.next_completion(c)) ...
//
// Open the connection's endpoint with EndpointConfig::recover, so that the Node requests Blocks
// without progress again. Memory is named by Bufx addresses that the caller mapped. It belongs to
// an operation until the operation's completion.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "stp/channel/rings.h"
#include "stp/transfer/clock.h"
#include "stp/types.h"
#include "stp/wire/header.h"
#include "stp/wire/tiling.h"

namespace stp {

// Chosen by the caller, returned with the completion.
using Context = std::uint64_t;

// Memory where a peer's data may land: mapped for receiving, and covered by an Mx.
struct Landing {
  std::uint16_t mx = 0;
  Address at;
  std::uint64_t length = 0;
};

// Memory of a peer that is open for Put, Get and FetchOp.
struct RemoteRegion {
  std::uint32_t r_id = wire::kNoId;
  std::uint16_t mx = 0;
  Address at;
  std::uint64_t length = 0;
  std::uint32_t window = 0;  // the most unacknowledged Put Blocks
  // For regions served by name: what the owner said of this one.
  std::uint64_t base = 0;
  std::uint32_t access = 0;
};

// The owner's answer to a request for a region by name.
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
    kRegionRequest,  // the peer wants a region of `length` bytes, or of `offset` at least:
                     // serve_region() or refuse()
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
  std::uint32_t tag = 0;      // kReceive: the writer's tag; kRegionRequest: the name
  std::uint32_t message = 0;  // kWrite, kReceive: Message Sequence Number; 0: none
  std::uint64_t offset = 0;   // kArrived, kRegionRequest
  RemoteRegion region;        // kRegion, kRevoked; else it says nothing
};

struct SequencerConfig {
  unsigned local_bufsize = 14, remote_bufsize = 14;
  unsigned send_stu_log2 = 10, receive_stu_log2 = 10;  // STU sizes of the two directions
  unsigned max_block = 20;         // exponent: longest Block granted or asked for
  std::uint32_t cts_window = 4;    // Blocks granted, or wanted, at once
  std::uint32_t remote_slots = 0;  // the peer's, all of them; 0: not known

  // What the two Nodes of a connection have negotiated. Facts: a Node's VcInfo, or what stpd tells
  // of it.
  template <typename Facts>
  static SequencerConfig of(const Facts& facts) {
    return {.local_bufsize = facts.local_bufsize,
            .remote_bufsize = facts.remote_bufsize,
            .send_stu_log2 =
                stu_size_log2(facts.remote_max_stu, facts.local_max_stu, facts.remote_bufsize),
            .receive_stu_log2 =
                stu_size_log2(facts.local_max_stu, facts.remote_max_stu, facts.local_bufsize),
            .remote_slots = facts.remote_slots};
  }
};

struct WriteOptions {
  std::uint32_t tag = 0;
  std::uint16_t flags = 0;  // wire::flag::kInterrupt, kOrder
  Time patience = 0;        // how long to wait for a missing answer, if longer than usual
};

struct PutOptions {
  std::uint16_t flags = 0;  // wire::flag::kInterrupt, kOrder
  // Nobody waits for its completion. It comes with the completion of a later Put, after
  // confirm_puts(), or when the peer, asked a millisecond later, has answered.
  bool quiet = false;
  // The peer's user tells of its arrival, so puts_arrived() follows: fewer are asked about.
  bool told = false;
};

// A put that is complete: what its Completion says of it. Without first values, since many are made
// to be filled in.
struct PutDone {
  Context context;
  std::uint64_t length;
  int status;
};

// Calls that start an operation return 0, -EINVAL, -EAGAIN (too much outstanding), or -ENOTCONN.
// Calls that answer a request (serve_read, serve_region, refuse) return -ECANCELED if the request
// no longer exists: the peer may take it back at any time.
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
  // Asks for `length` bytes that stay open for Puts (`window` Blocks at once), Gets and FetchOps.
  // With a `name` (not 0) the peer may serve a longer region and describe it, or a shorter one of
  // `least` bytes at least, if that is not 0.
  int request_region(Context context, std::uint64_t length, std::uint32_t window,
                     std::uint32_t name = 0, std::uint32_t least = 0);
  int serve_region(std::uint32_t request, const Landing& landing, std::uint32_t window,
                   const RegionTerms& terms = {});
  // Ends a region served as `request`.
  int close_region(std::uint32_t request);
  int refuse(std::uint32_t request);
  // A put that fails, except by cancel(), ends its region. From then on put() and end_region()
  // return -EACCES, even before the completions (kPut, kRevoked) arrive.
  int put(Context context, const RemoteRegion& region, std::uint64_t offset, Address source,
          std::uint64_t length, const PutOptions& options = {});
  // The peer's user has told that all Blocks of the region before `b_seq` have arrived.
  void puts_arrived(const RemoteRegion& region, std::uint32_t b_seq);
  // Asks the peer about the quiet Puts now: somebody waits for them after all.
  void confirm_puts();
  int get(Context context, const RemoteRegion& region, std::uint64_t offset,
          const Landing& landing);
  // `landing` has room for the 8-byte old value, aligned to 8.
  int fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
            wire::Function function, std::uint64_t operand, std::uint64_t compare,
            const Landing& landing);
  int end_region(const RemoteRegion& region);
  // Ends the operation of `context` at both sides; its completion says -ECANCELED. A receive of
  // which the rest arrives before the Node has taken the END is complete. A put that has
  // been sent completely goes on. For any other put, the bytes already sent arrive before it
  // completes.
  int cancel(Context context);
  int no_operation();
  // Sends 32 bits to the peer's user, in a NOP. They may get lost.
  int notify(std::uint32_t word);

  // --- messages that arrive by other ways than a write share the order of the writes
  // Takes the number of the next message to send.
  std::uint32_t take_message();
  // The number of the peer's next message.
  [[nodiscard]] std::uint32_t expected_message() const;
  // The expected message arrived another way than as a write.
  void pass_message();
  // Whether writes wait for a receive.
  [[nodiscard]] bool has_offers() const;
  // The next write in order, if no receive is posted for it.
  std::optional<Offer> waiting();
  // Refuses the write of waiting().
  void refuse_waiting();

  // --- a message may be given its receive ahead of its turn, which then passes over it
  // The first write after the next one in order that waits for a receive.
  std::optional<Offer> waiting_ahead();
  // Starts the write of waiting_ahead().
  void receive_ahead(Context context, const Landing& landing);

  // --- brings what a Put and its answer need into the caches, in steps: each reads what the one
  // before it has brought
  static constexpr unsigned kFetchSteps = 3;
  void fetch_ahead(unsigned step) const;

  // --- headers, requests, time
  void receive(const ReceivedEntry& entry, Time now);
  bool transmit(SendEntry& out, Time now);
  // All, as far as there is room, without a copy. Returns true if there were some.
  bool transmit(UserChannel& to, Time now);
  // From now on all leaves by this last function, and `ring` stays where it is: a short put is
  // written there at once.
  void write_to(UserChannel& ring);
  [[nodiscard]] Time next_deadline() const { return clock_.deadline(); }
  void expire(Time now) {
    if (clock_.tell(now) >= clock_.deadline()) expire();
  }
  // Pass UserChannel::taken() as it was before receive() got all that had arrived. Completions that
  // return memory to which the peer may still have written wait until the Node has taken the
  // request that forbids it. What had arrived by then counts.
  void taken(std::uint32_t count, Time now = 0);
  // The same at other times: decides nothing about what may have arrived meanwhile.
  void left(std::uint32_t count, Time now);
  // The Node has taken nothing for 30 s although requests wait: the peer has no free Slot for them.
  // Nothing can finish meanwhile, so the caller must end the connection and call fail().
  [[nodiscard]] bool is_stuck() const;
  // Pass UserChannel::cts_repeated(), path_block() and steps(), after taken(). Block sizes are
  // chosen from the first two, and how many Blocks are granted at once. If the last one has
  // changed, what is received makes progress now.
  void observe_path(std::uint32_t cts_repeated, unsigned path_block, std::uint32_t steps);
  // The peer's user may stay away for as long as its Node answers, up to 24 hours.
  void be_patient();
  // The connection has ended: everything outstanding completes with `error`. Frames on their way
  // may still read the memory being sent, and the peer may accept them: keep its bytes until
  // UserChannel::done() says that the frames have left.
  void fail(int error);
  bool next_completion(Completion& out);
  [[nodiscard]] bool has_completion() const;
  // Puts whose completions come next, in their order; a caller of many takes these first. Returns
  // how many.
  std::size_t next_puts(std::span<PutDone> out);
  // Whether transmit() has a request.
  [[nodiscard]] bool has_request() const;
  // The same, or completions wait for taken().
  [[nodiscard]] bool waits_for_node() const;
  // How many requests there have been, and whether the Node has taken so many: what those send is
  // not read any more.
  [[nodiscard]] std::uint64_t requests() const;
  [[nodiscard]] bool has_left(std::uint64_t requests) const;
  // The number of operations without a completion.
  [[nodiscard]] std::size_t outstanding() const;

 private:
  struct Impl;
  void expire();

  std::unique_ptr<Impl> impl_;
  Clock& clock_;  // of impl_
};

}  // namespace stp
