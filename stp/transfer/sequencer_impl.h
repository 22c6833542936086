// SPDX-License-Identifier: BSD-3-Clause
// The implementation of Sequencer. Files by sequence: outbound.cpp (Write, sending side),
// incoming.cpp (Write and Read, receiving side), regions.cpp (opening them, End), puts.cpp,
// gets.cpp; repeats.cpp decides when to send something again.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "stp/base/ring_queue.h"
#include "stp/channel/doubt.h"
#include "stp/channel/retry.h"
#include "stp/channel/round_trip.h"
#include "stp/transfer/departures.h"
#include "stp/transfer/loss_estimate.h"
#include "stp/transfer/sequencer.h"
#include "stp/transfer/states.h"
#include "stp/wire/operation.h"

namespace stp {

// How long this layer waits: for the peer's Node to answer; for the peer's user or managed layer to
// act; for progress of a Transfer; and for a user that is said to know of it.
// protocol: 10.11, 10.17
inline constexpr Time kAnswerPatience = 10 * kSecond;
inline constexpr Time kUserPatience = 30 * kSecond;
inline constexpr Time kProgressPatience = 30 * kSecond;
inline constexpr Time kSeenPatience = 24 * 3600 * kSecond;

inline constexpr std::uint32_t kMaxAhead =
    4096;  // messages between the expected one and the newest

struct Outbound {
  Machine<kOutboundTransitions> state;
  Completion::Kind kind = Completion::Kind::kWrite;
  Context context = 0;
  Address source;
  std::uint64_t length = 0;
  WriteOptions options;
  std::uint32_t i_id = 0, answers = wire::kNoId;  // our id; the RTR that this answers
  std::uint32_t msn = 0;  // Message Sequence Number: writes take receives in this order
  std::uint32_t r_id = wire::kNoId;
  unsigned blocksize = 0;
  std::uint32_t b_seq = 0;
  std::uint32_t granted = 0;  // one past the highest Block granted so far
  Retry retry;                // RTS, later RS
  std::uint64_t queued = 0;   // number of its last request
  Time begun = 0;
  Time stalled_since = 0;

  // For the RTS and for the state of the data sent.
  [[nodiscard]] Time patience() const { return std::max(kUserPatience, options.patience); }
  [[nodiscard]] bool is_over(Time now) const {
    return state == OutboundState::kSending ? now - stalled_since >= kProgressPatience
                                            : now - begun >= kSeenPatience;
  }
  [[nodiscard]] std::uint64_t block_count() const {
    return length == 0 ? 1 : (length + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
  }
};

struct Incoming {
  Machine<kInboundTransitions> state;
  Completion::Kind kind = Completion::Kind::kReceive;
  Context context = 0;
  Landing landing;
  std::uint64_t length = 0;
  std::uint32_t i_id = 0, r_id = 0;  // the peer's id, ours
  unsigned blocksize = 0;
  std::uint32_t window = 1;
  std::uint32_t next = 0;        // the next Block to grant
  std::set<std::uint32_t> open;  // granted, not complete
  std::uint32_t tag = 0;
  std::uint32_t msn = 0;
  Time progress = 0;

  [[nodiscard]] std::uint64_t block_count() const {
    return length == 0 ? 1 : (length + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
  }
};

// An RTS that no posted receive fits yet.
struct WaitingOffer {
  std::uint32_t i_id, r_id;
  std::uint32_t msn;
  std::uint64_t length;
  unsigned max_block;
  std::uint32_t cts_wanted;
};

// Our RTR or RMR until it is answered.
struct Asked {
  bool region = false;
  Context context = 0;
  Landing landing;  // read
  std::uint64_t length = 0;
  std::uint32_t window = 0;  // region
  std::uint32_t name = 0;    // region
  Time begun = 0;
  Retry retry;
  std::uint64_t queued = 0;
};

// The peer's RTR or RMR: waiting for our user, or how it was answered.
struct PeerRequest {
  bool region = false;
  std::uint32_t i_id = 0;
  std::uint64_t length = 0;
  std::uint32_t window = 0;
  std::uint32_t name = 0;
};

struct PutBlock {
  Context context = 0;
  std::uint64_t total = 0;  // bytes of the whole put; set in its last Block
  bool last = false;        // the last Block of its put, or the last one sent of it
  Address source;
  std::uint64_t offset = 0;  // in the region
  std::uint32_t length = 0;
  std::uint16_t flags = 0;
  bool cancelled = false;  // the rest of its put is not sent
  bool quiet = false;      // nobody waits for its completion
};

// The Puts into one remote region.
struct PutStream {
  RemoteRegion region;
  std::uint32_t i_id = 0;      // of our RMR
  RingQueue<PutBlock> blocks;  // from B_seq on; the first `sent` of them have been sent
  std::uint32_t b_seq = 0, sent = 0;
  std::uint32_t unasked = 0;  // the last `unasked` of `sent`, covered by no question
  Time confirm_at = kNever;   // when to ask about them at the latest
  Retry retry;
  std::uint64_t queued = 0;
  Time stalled_since = 0;
  // The RS that waits for its RSR: the Block it asks about, and its Sync.
  struct Question {
    std::uint32_t b_num = 0, sync = 0;
  };
  std::optional<Question> question;
};

struct GetPiece {
  Context context = 0;
  Completion::Kind kind = Completion::Kind::kGet;
  std::uint64_t total = 0;
  bool last = false;  // of its get
  SendEntry request;
  std::uint32_t length = 0;
  bool done = false;
  int status = 0;
  Retry retry;
  std::uint64_t queued = 0;
};

struct Ending {
  std::optional<Completion> completion;  // to deliver when the peer has confirmed
  SendEntry request;
  Retry retry;
  std::uint64_t queued = 0;
};

struct Sequencer::Impl {
  explicit Impl(const SequencerConfig& sequencer_config) : config(sequencer_config) {}

  // --- sequencer.cpp
  Time tell_time(Time now);
  void dispatch(const ReceivedEntry& entry, Time now);
  void request(const wire::Header& header);
  void request(const SendEntry& entry);
  SendEntry& request();  // the same, to be filled: all of it is 0
  // The same without option payload. The caller fills in the header and where the bytes are.
  SendEntry& bare_request();
  void answer(const wire::Header& header);
  void answer(const SendEntry& entry);
  void complete_once_taken(const Completion& completion);
  void give_held();
  void complete(Completion::Kind kind, Context context, int status, std::uint64_t length = 0);
  void complete(const Outbound& out, int status);
  [[nodiscard]] static Completion completion_of(const PutBlock& block, int status);
  // A header without addresses: the Node fills in those of the peer.
  template <typename Operation>
  [[nodiscard]] static wire::Header header(const Operation& operation, std::uint16_t flags = 0) {
    return wire::to_header(operation, flags);
  }
  std::uint32_t new_id();
  Time interval() const { return std::max<Time>(4 * round_trip.smoothed(), kMillisecond); }
  void due_at(Time when) { deadline = std::min(deadline, when); }
  [[nodiscard]] bool waits_for_time() const;
  // Who must answer: the peer's Node or its user. kQuestion: a question that is repeated until
  // answered.
  enum class Answerer : std::uint8_t { kNode, kUser, kQuestion };
  bool again(Retry& retry, std::uint64_t queued, Answerer who, Time now, bool& gave_up);
  bool is_lost(std::uint64_t queued, Answerer who, Time now);
  void ask_whether_seen(Time now);
  void no_doubt();
  void on_slots(const wire::RequestStateResponse& rsr, Time now);
  void forget_requests(std::uint32_t d_id);

  // --- outbound.cpp
  int offer(Completion::Kind kind, std::uint32_t answers, Context context, Address source,
            std::uint64_t length, const WriteOptions& options);
  void send_offer(Outbound& out);
  void on_answer(const wire::RequestAnswer& ra, bool refused, Time now);
  void on_grant(const wire::ClearToSend& cts, Time now);
  void send_block(Outbound& out, const wire::ClearToSend& cts, bool repeated);
  [[nodiscard]] bool is_leaving(const wire::Data& data) const;
  void on_state(const wire::RequestStateResponse& rsr, bool refused, Time now);
  void outbound_state(Outbound& out, const wire::RequestStateResponse& rsr, bool refused, Time now);
  std::uint32_t ask_state(std::uint32_t r_id, std::uint32_t i_id, std::uint32_t b_num);
  void expire_outbound(Time now);

  // --- incoming.cpp
  void on_offer(const ReceivedEntry& entry, Time now);
  void enqueue(const WaitingOffer& offer);
  void skip(std::uint32_t msn, Time now);
  void next_message();
  bool known_offer(std::uint32_t i_id);
  void tell_seen(std::uint32_t i_id, std::uint32_t r_id);
  void begin(const WaitingOffer& offer, Completion::Kind kind, Context context,
             const Landing& landing, Time now);
  void match_receives(Time now);
  void grant(Incoming& in);
  void send_grant(const Incoming& in, std::uint32_t b_num);
  void on_block(const ReceivedEntry& entry, Time now);
  [[nodiscard]] Address place_of(const Incoming& in, std::uint32_t b_num) const;

  // --- ahead.cpp
  std::deque<WaitingOffer>::iterator first_ahead();

  void on_put(const ReceivedEntry& entry);
  void pass_stale();
  void finish(Incoming& in, int status);
  void remember_finished(std::uint32_t i_id, bool refused = false);
  void refuse(wire::Op answer, std::uint32_t i_id);
  bool over(std::uint32_t i_id, wire::Op answer);
  unsigned choose_blocksize(std::uint64_t length, unsigned max_block) const;
  void expire_incoming(Time now);

  // --- regions.cpp
  void send_ask(std::uint32_t i_id, Asked& what);
  void on_read_request(const wire::RequestToReceive& rtr);
  void on_region_request(const ReceivedEntry& entry);
  void on_region(const ReceivedEntry& entry);
  void on_end(const ReceivedEntry& entry, Time now);
  void on_end_ack(const wire::EndAck& ea);
  bool end_transfer(const wire::End& end);
  bool end_regions(const wire::End& end);
  bool end_remote(const wire::End& end);
  void end(std::uint32_t d_id, std::uint32_t s_id, std::optional<Completion> completion,
           std::uint32_t msn = 0);
  void expire_asked(Time now);
  void expire_endings(Time now);

  // --- cancel.cpp
  bool cancel_transfer(Context context);
  bool cancel_put(Context context);
  bool cancel_get(Context context);

  // --- puts.cpp
  void send_puts(PutStream& stream);
  [[nodiscard]] static bool must_ask(const PutStream& stream);
  void send_put(PutStream& stream, std::uint32_t index, bool asks);
  void ask_about(PutStream& stream);
  void confirm(PutStream& stream);
  void leave_asking(SendEntry& put);
  void put_state(PutStream& stream, const wire::RequestStateResponse& rsr, bool refused, Time now);
  void abandon(PutStream& stream, int status);
  void expire_puts(Time now);
  [[nodiscard]] PutStream* find_puts(std::uint32_t r_id);
  void forget_puts(std::uint32_t r_id);

  // --- gets.cpp
  void send_gets();
  bool on_get_answer(const wire::Data& data, Time now);
  void on_get_refused(const wire::Get& refused);
  int add_get(Context context, Completion::Kind kind, const RemoteRegion& region,
              std::uint64_t offset, const Landing& landing, const SendEntry& pattern);
  void release_get(const GetPiece& piece);
  void finish_gets();
  void expire_gets(Time now);

  SequencerConfig config;
  int ended = 0;   // why the connection ended
  Time clock = 0;  // time passed to the latest call
  Time deadline = kNever;
  RoundTrip round_trip;
  Doubt doubt;
  Retry question;              // the RS about unanswered requests, until its RSR
  std::uint64_t asked_as = 0;  // number of that RS
  bool in_doubt = false;       // a request is unanswered; the peer may or may not have seen it
  LossEstimate loss;
  std::uint32_t repeats = 0;  // CTS that the Node repeated
  std::uint32_t next_id = 1, next_sync = 1;

  struct Outgoing {
    SendEntry entry;
    std::uint64_t number = 0;
    bool may_not_ask = false;  // a short Put: leave_asking() decides
  };
  RingQueue<Outgoing> outbox;
  std::uint32_t puts_not_asked = 0;  // the last ones in the outbox that do not ask
  std::uint64_t last_number = 0;     // number of the request queued last
  struct HandedOut {
    std::uint64_t number = 0;
    wire::Op op{};
    std::uint32_t d_id = 0, b_num = 0;
    Address at;  // where it begins to land
  };
  RingQueue<HandedOut> in_ring;  // handed out by transmit(), not yet taken by the Node
  std::uint32_t taken_count = 0;
  std::uint64_t taken_number = 0;  // number of the last one taken
  Time taken_at = 0;               // or of the first one handed out since
  Departures departures;
  bool stuck = false;
  // Completions that wait until the Node has taken the given request and all before it: until then
  // the Node may use memory that the completion returns.
  RingQueue<std::pair<std::uint64_t, Completion>> held;
  RingQueue<Completion> completions;

  std::map<std::uint32_t, Outbound> outbound;          // by our I_id
  std::map<std::uint32_t, Incoming> incoming;          // by our R_id
  std::deque<std::pair<Context, Landing>> receives;    // posted, in order
  std::deque<WaitingOffer> waiting;                    // by MSN
  std::uint32_t expected_msn = 1;                      // of the write that the next receive takes
  std::set<std::uint32_t> skipped;                     // ended or started ahead of their turn
  std::uint32_t next_msn = 1;                          // of our next write
  std::deque<std::uint32_t> finished_order;            // I_ids of the peer's finished Transfers
  std::map<std::uint32_t, bool> finished;              // true: it was refused
  std::map<std::uint32_t, Asked> asked;                // our RTR and RMR, by our I_id
  std::map<std::uint32_t, PeerRequest> peer_requests;  // by a number of ours
  std::map<std::uint32_t, SendEntry> opened;           // MRA given, by the peer's I_id
  std::map<std::uint32_t, PutStream> puts;             // by the peer's R_id
  PutStream* recent_puts = nullptr;                    // found last
  bool may_wait_for_nothing = false;                   // all Puts of a region are answered
  std::deque<GetPiece> gets;                           // by G_num, from first_g_num on
  std::uint32_t first_g_num = 1;
  std::size_t gets_sent = 0;  // the number of `gets` sent, from the first on
  Time get_answered = 0;      // the last answer came then, of this G_num
  std::uint32_t newest_answered = 0;
  int get_status = 0;                       // of the pieces of one get so far
  std::map<std::uint32_t, Ending> endings;  // by our id
};

}  // namespace stp
