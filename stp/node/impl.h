// SPDX-License-Identifier: BSD-3-Clause
// The implementation of Node. Each file of this folder holds one subject:
//   endpoints.cpp   endpoints and mapped memory        receive.cpp   frames, up to the operation
//   connect.cpp     connections made and ended         data.cpp      placing STUs
//   listen.cpp      the listener's side                state.cpp     Slots: RS and RSR
//   dial.cpp        RCs waiting for their turn         timers.cpp    retries, keep-alive
//   transmit.cpp    bursts to send                     request.cpp   checks on users' requests
//   whole_blocks.cpp  fast path for Blocks of one STU
//   one_sided.cpp   Get and FetchOp carried out        recover.cpp   Blocks requested again
//   connectionless.cpp  endpoints without peers
//   stranger.cpp    requesters that have not proved their address
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "stp/base/id_table.h"
#include "stp/base/timer_heap.h"
#include "stp/base/work_meter.h"
#include "stp/node/answers.h"
#include "stp/node/connection/closed_connections.h"
#include "stp/node/connection/port_table.h"
#include "stp/node/connection/refusals.h"
#include "stp/node/connection/strangers.h"
#include "stp/node/connection/unproven.h"
#include "stp/node/connection/vc_state.h"
#include "stp/node/departures.h"
#include "stp/node/memory/mx_table.h"
#include "stp/node/node.h"
#include "stp/node/objects.h"
#include "stp/node/pacing.h"
#include "stp/node/turns.h"
#include "stp/node/wake_ups.h"
#include "stp/wire/frame.h"

namespace stp {

struct Node::Impl {
  Impl(const NodeConfig& node_config, Random& node_random);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // --- endpoints.cpp
  int open_endpoint(const EndpointConfig& wanted, EndpointId& out, std::uint64_t owner);
  int configure(EndpointId id, const EndpointConfig& wanted);
  int close_endpoint(EndpointId id);
  int map(EndpointId endpoint, Direction direction, std::uint32_t base,
          std::span<const MutableBytes> pieces, RegionId& out);
  int unmap(RegionId id);
  void region_gone(Region& region);
  static BufxRange& range_of(Endpoint& endpoint, Direction direction);
  void stop_listening(Endpoint& endpoint);
  [[nodiscard]] bool has_port(const EndpointConfig& wanted) const {
    return wanted.port == 0 || vcs.has(wanted.port);
  }
  [[nodiscard]] bool is_live(const MxEntry& mx) const;
  int alloc_mx(RegionId region, VcId vc, std::uint8_t permissions, std::uint16_t& out);
  int free_mx(EndpointId endpoint, std::uint16_t mx);

  // --- listen.cpp
  int listen(EndpointId endpoint, std::uint32_t uport);
  int unlisten(EndpointId endpoint);
  int accept(EndpointId endpoint, VcId& out);
  int admit(VcId id, const OptionPayload& option, Time now);
  int refuse(VcId id, const OptionPayload& option, Time now);
  void on_request_connection(const wire::Frame& frame, Time now);
  Vc* make_passive(Endpoint& endpoint, const Requester& asker, const Strangers::Names& names,
                   Time now);
  void open_passive(Vc& vc, VcEvent how);
  void ask_user(Vc& vc, Time now);
  void end_undecided(Vc& vc, Time now);
  [[nodiscard]] static Time undecided_deadline(const Vc& vc);
  void answer_refusal(const Vc& vc, const OptionPayload& option, Time now);
  void send_refusal(const PeerName& to, std::uint32_t i_uport, std::uint32_t r_uport,
                    const OptionPayload& option);

  // --- stranger.cpp
  [[nodiscard]] bool is_spoofed(const wire::Frame& frame) const;
  bool must_prove(const Endpoint& endpoint, const MacAddr& from, Time now);
  bool is_proven(const Unproven::Entry& entry) const;
  void look_at_unproven(Time now);
  bool reclaim(Endpoint& endpoint, Time now);
  bool make_room_to_ask(Endpoint& endpoint, const PeerName& peer, Time now);
  void give_up_unproven(Vc& vc, Time now);
  void answer_unproven(Endpoint& endpoint, const Requester& asker, Time now);
  void on_unknown_port(const wire::Frame& frame, Time now);
  Vc* make_proven(const Requester& asker, const Strangers::Names& names, Time now);
  bool answer_stranger(const MacAddr& dst, std::initializer_list<wire::Header> headers,
                       bool checksum = false, const OptionPayload& option = {});

  // --- connect.cpp
  int connect(EndpointId endpoint, const MacAddr& peer, std::uint32_t uport, std::byte* channel,
              std::uint64_t cookie, VcId& out, Time now, const OptionPayload& option);
  int close(VcId id, bool at_once, Time now, const OptionPayload& option = {});
  [[nodiscard]] Vc* find_vc(VcId id) const { return vcs.find(id); }
  Vc* make_vc(Endpoint& endpoint, std::byte* channel, std::uint64_t cookie, Time now,
              const Strangers::Names& names = {});
  std::uint16_t choose_port(const Endpoint& endpoint, Time now);
  // Announced by a peer in its RC or CA.
  struct PeerSizes {
    std::uint16_t slots;
    std::uint32_t bufsize, max_stu;  // exponents
  };
  void adopt_peer(Vc& vc, const PeerName& name, const PeerSizes& sizes);
  // A closing connection drops its queued requests if no frame of them leaves for this long.
  static constexpr Time kDrainPatience = 30 * kSecond;
  void drain(Vc& vc, Time now);
  void begin_closing(Vc& vc, Time now);
  void stop_traffic(Vc& vc);
  void fail(Vc& vc, VcEvent why, int error, Time now);
  void forget(Vc& vc, Time now, bool remember = true);
  static bool leave_backlog(Vc& vc);
  void let_go(Vc& vc);
  void count_end(Vc& vc, Counter how);
  void on_connection_answer(const wire::Frame& frame, Time now);
  void on_request_disconnect(const wire::Frame& frame, Time now);
  void on_disconnect_answer(Vc& vc, Time now);
  void on_disconnect_complete(Vc& vc, Time now);
  void send_request_connection(const Vc& vc);
  [[nodiscard]] wire::Header connection_answer(const Vc& vc) const;
  void send_disconnect(const Vc& vc, wire::Op op);

  // --- dial.cpp
  using ListenerName = std::tuple<std::uint64_t, MacAddr, std::uint32_t>;  // owner, peer, UPort
  struct Dialing;
  void dial(Vc& vc, Time now);
  void dialed(Vc& vc, Time now);
  void hurry(Dialing& to, Time now);
  static ListenerName listener_of(const Vc& vc);

  // --- receive.cpp
  bool receive_expected(Bytes bytes, Bytes apart, Time now);
  void receive_frame(Bytes bytes, Bytes apart, Time now);
  void count_received(std::size_t frames, std::size_t bytes);
  void on_wrong_key(const Vc& vc, const wire::Frame& frame, Time now);
  void receive_on_vc(Vc& vc, const wire::Frame& frame, Time now);
  void deliver_control(Vc& vc, const wire::Frame& frame);
  void learn_from(Vc& vc, const wire::Header& h);
  void end_transfer(Vc& vc, const wire::End& end);
  static DropReason not_legal(const Vc& vc);
  bool deliver(Vc& vc, const MacAddr& from, const wire::Header& header, Bytes payload,
               NodeChannel::Place place, std::uint64_t length = 0);

  // --- data.cpp
  void on_data(Vc& vc, const wire::Frame& frame, Time now);
  static DropReason find_block(Vc& vc, const wire::Header& header, std::size_t length,
                               InboundBlock*& out);
  DropReason check_memory(const Vc& vc, const wire::Header& header, std::size_t length,
                          std::uint8_t permission, std::byte*& memory) const;
  void place_whole(Vc& vc, const wire::Frame& frame, InboundTransfer& region, std::byte* memory);
  bool place(Vc& vc, const wire::Frame& frame, InboundBlock& block, std::byte* memory);
  void count_stu(Vc& vc, std::size_t length);
  void write_end(const Vc& vc, std::uint16_t mx, const HeldEnd& end);
  void place_end(const Vc& vc, InboundBlock& block);
  void place_held(const Vc& vc, InboundTransfer& region, std::uint32_t first);
  static bool has_room_for_end(const Vc& vc, InboundTransfer& region, const wire::Header& header,
                               std::size_t length, bool holds);
  static std::size_t hold_end(const Vc& vc, InboundTransfer& region, const wire::Frame& frame,
                              bool holds);
  void deliver_block(Vc& vc, const MacAddr& from, const InboundBlock& block);

  // --- connectionless.cpp
  int open_port(EndpointId endpoint, std::byte* channel, std::uint64_t cookie, VcId& out, Time now);
  void receive_on_endpoint(Vc& vc, const wire::Frame& frame, Time now);
  void on_unscheduled_data(Vc& vc, const wire::Frame& frame, Time now);
  static int address_request(Vc& vc, const SendEntry& entry);

  // --- one_sided.cpp
  void on_get(Vc& vc, const wire::Frame& frame);
  DropReason check_get(const Vc& vc, const wire::Header& header, std::uint64_t length,
                       std::byte*& memory) const;
  void refuse_get(const Vc& vc, const wire::Header& header);
  void reply_get(Vc& vc, const wire::Header& header, Sending::Source source, std::uint64_t value);
  void on_fetch(Vc& vc, const wire::Frame& frame);
  bool take_reply(Vc& vc, Time now);

  // --- recover.cpp
  std::size_t recover_blocks(Vc& vc, Time now);  // returns the number of Blocks checked
  Time ask_in_silence(Vc& vc, GrantedBlock* first, Time now);
  bool ask_again(Vc& vc, InboundBlock& block, Time now);
  void ask_whether_seen(Vc& vc, Time now);
  void doubt_answered(Vc& vc, std::uint32_t sync, std::uint32_t slots, Time now);
  void expect_data(Vc& vc, Time now);
  void look_earlier(Vc& vc, Time now);

  // --- state.cpp
  void on_request_state(Vc& vc, const wire::Header& header);
  void on_state_response(Vc& vc, const wire::Frame& frame, Time now);
  void answer_state(Vc& vc, std::uint32_t sync, std::uint32_t b_num, std::uint32_t r_id,
                    std::uint32_t asker_id);
  void send_slot_question(Vc& vc);
  void repeat_proof(Vc& vc);
  // Reasons to send an RS: to learn the credit; to check that the peer is alive; to check that it
  // has seen what it was sent.
  enum class Ask : std::uint8_t { kCredit, kKeepAlive, kSilence };
  void ask_slots(Vc& vc, Ask why, Time now);
  void ask_again_later(Vc& vc, Time now);
  bool has_credit(Vc& vc, Time now);
  void spend_slot(Vc& vc, Time now);

  // --- timers.cpp
  void expire(Time now);
  std::size_t expire_vc(Vc& vc, Time now);  // returns the number of Blocks checked
  // Ended Transfers and connections are freed in slices: a few Blocks at once, the rest in later
  // turns.
  static constexpr std::size_t kTidiedAtOnce = 64, kTidiedInATurn = 1'024;
  void tidy();
  void tidy_later(InboundRemains remains);
  void tidy_later(Vc& vc);
  [[nodiscard]] bool untidy() const {
    return mxs.untidy() || pacing.untidy() || !remains.empty() || !untidy_vcs.empty();
  }
  [[nodiscard]] Time next_deadline() const;
  void set_timer(Vc& vc);
  [[nodiscard]] Time deadline_of(const Vc& vc) const;

  // --- request.cpp
  // 0: may be sent; otherwise a negative errno. Records grants and the number of a Block's first
  // STU.
  int check_request(Vc& vc, const SendEntry& entry, Time now);
  int check_control_request(Vc& vc, const SendEntry& entry, Time now);
  int check_get_request(Vc& vc, const wire::Header& header);
  static int check_data_request(Vc& vc, const SendEntry& entry);
  [[nodiscard]] static std::size_t work_of(const Vc& vc, const SendEntry& entry);
  [[nodiscard]] static std::uint32_t first_stu(const Vc& vc, const wire::Header& header);
  int check_grant_request(const Vc& vc, const wire::Header& header) const;

  // --- transmit.cpp
  std::size_t transmit(std::span<TxFrame> frames, Time now);
  void transmitted(const TxToken& token);
  std::size_t send_answers(std::span<TxFrame> frames);
  std::size_t send_held(std::span<TxFrame> frames, Time now);
  bool send_held(const Pacing::Grant& grant, TxFrame& frame, Time now);
  std::size_t send_next(std::span<TxFrame> frames, std::size_t& work, Time now);
  std::size_t send_from(Vc& vc, std::span<TxFrame> frames, std::size_t& work, Time now);
  bool take_request(Vc& vc, std::size_t& work, Time now);
  void count_refused(Vc& vc, int error);
  void reject_region(Vc& vc);
  void no_request(Vc& vc, Time now);
  bool refuse_request(Vc& vc, int error, Time now);
  void build_control(Vc& vc, TxFrame& frame);
  void emit_control(Vc& vc, const SendEntry& entry, const wire::Header& h, TxFrame& frame);
  void attach(Vc& vc, TxFrame& frame, RegionId region_id);
  void build_stu(Vc& vc, TxFrame& frame);
  wire::Header stu_header(Vc& vc, std::uint64_t at, bool last) const;
  static bool gather(const BufxRange& source, std::uint64_t from, std::size_t length,
                     std::byte* to);
  void finish_request(Vc& vc);
  void emit(TxFrame& frame, const MacAddr& dst, const wire::Header& header, bool checksum,
            Bytes payload, Bytes append, bool attach);

  // --- whole_blocks.cpp
  bool send_whole_block(Vc& vc, TxFrame& frame, Time now);

  // Queues a frame of the Node's own. These are small and leave before all user data except a frame
  // already being sent.
  void answer(const MacAddr& dst, const wire::Header& header, bool checksum = false,
              const OptionPayload& option = {});
  [[nodiscard]] wire::Header header_for(const Vc& vc, wire::Op op, std::uint16_t flags = 0) const {
    return addressed_to(vc, {.op_flags = wire::op_flags(op, flags)});
  }
  // A header for the peer of `vc`, with the fields of `operation`.
  template <typename Operation>
  [[nodiscard]] static wire::Header header_for(const Vc& vc, const Operation& operation,
                                               std::uint16_t flags = 0) {
    return addressed_to(vc, wire::to_header(operation, flags));
  }
  [[nodiscard]] static wire::Header addressed_to(const Vc& vc, wire::Header header);

  void event(Event::Kind kind, std::uint64_t id, std::uint64_t cookie = 0);

  NodeConfig config;
  Random& random;
  // protocol: 12.1
  void drop(DropReason why) { counters.add(counter_of(why)); }

  Counters counters;
  Pacing pacing{config.granted_limit, config.max_stu, vcs, counters};

  // The frame being received. Reused, because each frame overwrites all fields that are read.
  wire::Frame parsed;

  IdTable<Endpoint> endpoints{config.max_endpoints};
  IdTable<Region> regions{config.max_regions};
  MxTable mxs;
  std::map<std::uint32_t, Endpoint*> listeners;  // by UPort

  PortTable vcs{config.shards == nullptr ? PortShare{} : config.shards->share(config.shard)};
  std::map<PeerName, Vc*> by_peer;  // connections made by a peer's RC
  struct Dialing {
    std::set<VcId> sent, waiting;  // in the order of their creation
    Time hurried = 0;              // when the oldest of `sent` was repeated out of turn
  };
  std::map<ListenerName, Dialing> dialing;  // entries have unanswered RCs
  NodeDepartures departures;
  ClosedConnections closed;
  Refusals refusals;
  Unproven unproven;
  std::unique_ptr<Strangers> strangers;  // made with the first listener
  bool looped = false;                   // the frames being received came from this Node itself
  TimerHeap timers;

  Answers answers;
  std::map<std::uint64_t, Owner> owners;  // those with endpoints
  Turns turns;
  bool unfinished = false;             // one call could not do all the work
  Time seen = 0;                       // time of the latest call
  std::deque<InboundRemains> remains;  // of ended connections
  LinkedList<Vc, IsUntidy> untidy_vcs;
  std::deque<Event> events;
  WakeUps wake_ups{events};
};

}  // namespace stp
