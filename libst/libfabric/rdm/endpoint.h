// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of FI_EP_RDM, and their connections.
#pragma once

#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libst/libfabric/address.h"
#include "libst/libfabric/endpoint.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/rdm/landing.h"
#include "libst/libfabric/wire.h"

namespace stp::fi {
class Eq;
}  // namespace stp::fi

namespace stp::fi::rdm {

class Endpoint;

// A connection that an endpoint has made to a peer: its messages, writes and reads go there.
class Outgoing final : public SendingConnection {
 public:
  Outgoing(Endpoint& endpoint, const Address& peer);
  ~Outgoing();

  // Begins to connect. 0 or a status of the managed API.
  int dial();
  // What was posted and has not begun is given up.
  void give_up(int status);
  [[nodiscard]] bool is_up() const { return up_ && !ended_; }
  [[nodiscard]] const Address& peer() const { return peer_; }

  int post(Op& op) override;
  // Before it is up, that is not known.
  [[nodiscard]] bool tells_accesses() const override { return !up_ || peer_counts_; }
  // No operation of the provider stands for that message.
  bool send_at_once(const Head& head, const Outbound& message);
  // Short messages wait for others, to leave with them (outgoing.cpp). So many on their way to the
  // peer have found no room in its ring that there is time for it.
  [[nodiscard]] bool gathers() const {
    return is_up() && takes_several_ && (gathered_ != nullptr || late_ >= kMostLate);
  }
  [[nodiscard]] bool takes_several() const { return takes_several_; }
  // Those that wait; nullptr: none.
  [[nodiscard]] Op* gathered() const { return gathered_; }
  void gather(Op& first) { gathered_ = &first; }
  // They leave now. A status: they wait further.
  int send_gathered();
  // The peer has lent a lane.
  [[nodiscard]] bool has_lane() const { return is_up() && lane_.is_open(); }
  // And it has room for a message of that length.
  [[nodiscard]] bool has_lane_for(std::size_t length) const {
    return is_up() && lane_.has_room(length);
  }
  // How many bytes of it go with its header.
  [[nodiscard]] std::size_t rest(std::size_t length) const { return lane_.rest(length); }

  void connection_event(const stm_event_t& event) override;
  void not_dialed(int status) override;
  void dialed() override;
  void arrived(RxBuffer& buffer, const stm_event_t& event) override;
  void serve(const stm_event_t& event) override;
  void part_done(Op& op, int status) override;
  void look_again() override;
  void leave() override;

 private:
  static constexpr std::size_t kMostLate = 2;
  struct Read {
    std::uint32_t request;
    std::uint64_t length;
  };
  struct Pull {
    Op* op;
    std::uint64_t length;
  };

  int send_note(Op& op) override;
  // Operations that wait for the connection, or for what the peer does.
  [[nodiscard]] bool has_waiting() const {
    return !waiting_.empty() || !announced_.empty() || !pulls_.empty() || !asks_.empty() ||
           gathered_ != nullptr;
  }
  // It can be posted now: an operation may wait for what the peer says when it accepts.
  [[nodiscard]] bool may_begin(const Op& op) const {
    return up_ || (dialed_ && op.action == Action::kMessage);
  }
  void fails_before_up(Op& op);
  int begin(Op& op);
  int begin_several(Op& op);
  // Of the late ones.
  void one_arrived();
  int begin_parts(Op& op);
  int begin_laned(Op& op);
  void pulled(const Head& head);
  void flush();
  // Accesses that the peer's program makes: one at a time, and each in steps.
  int begin_ask(Op& op);
  int ask(Op& op);
  int go_on_asking(Op& op, bool& done);
  void ask_done(Op& op, int status);
  void never_asked(Op& op, int status);
  void asked(Op& op);
  void answered(const Head& head);
  void give_up_asking(int status);
  void pair();
  void answer(const Pull& pull, const Read& read);
  // The operation is complete: tells so to a peer that counts accesses. True: that is on its way.
  bool tell_access(Op& op);

  Endpoint& endpoint_;
  const Address peer_;
  bool dialed_ = false, up_ = false;
  bool peer_counts_ = false;      // accesses to its memory
  bool takes_several_ = false;    // messages as one
  std::size_t late_ = 0;          // messages under way that have found no room, or several as one
  Op* gathered_ = nullptr;        // has not begun
  std::vector<RxBuffer*> words_;  // where those of the peer land
  std::deque<Op*> waiting_;       // for the connection to be up
  std::uint32_t last_id_ = 0;
  std::unordered_map<std::uint32_t, Op*> announced_;  // not pulled yet
  std::deque<Pull> pulls_;                            // that wait for their reads
  std::deque<Read> reads_;                            // that wait for their pulls
  std::deque<Op*> asks_;                              // the first is under way
  std::uint32_t asks_made_ = 0;                       // the number of its step
  std::size_t ask_offset_ = 0;                        // so many of its bytes are done
  bool awaits_answer_ = false, may_read_ = false;
  Span question_;
  LaneOut lane_;
};

// A message of which not all parts have come.
struct Assembly {
  Message message;
  std::optional<Receive> receive;  // where it goes, if it is awaited
  std::size_t arrived = 0;         // bytes
};

// A connection that a peer has made to an endpoint: the peer's messages come on it. Nothing that
// comes is trusted: what the protocol does not permit ends the connection.
class Incoming final : public Connection, public Source {
 public:
  // What the peer has said that it does.
  struct Knows {
    bool lanes = false;    // it may be lent one
    bool several = false;  // it sends several messages as one
  };
  // `source`: what the peer says that its address is.
  Incoming(Endpoint& endpoint, stm_connection_t connection, std::shared_ptr<OfHost> host,
           const Address& source, const Knows& knows);
  ~Incoming();

  // 0 or a status of the managed API: then it has to be closed.
  int accept();
  // What was to be read and has not begun is given up.
  void give_up(int status);
  [[nodiscard]] const Address& source() const { return source_; }
  // Nothing is heard of the peer. If it has gone, its end tells of that, after what it has sent.
  void tell_silent(int status) {
    if (!end_) return;
    end_->kind = STM_FAILED;
    end_->status = status;
  }

  void pull(const Message& message, Receive&& receive) override;
  void done_with(Message& message) override;

  void connection_event(const stm_event_t& event) override;
  void not_dialed(int) override {}
  void arrived(RxBuffer& buffer, const stm_event_t& event) override;
  void serve(const stm_event_t& event) override;
  void part_done(Op& op, int status) override;
  void look_again() override;
  void tell() override;

 private:
  // A message, in its buffer.
  struct Arrived {
    RxBuffer* buffer;
    Kind kind;
    std::size_t size;
    std::size_t at = 0;  // of several messages: where the next one lies
  };
  // An announced message to be read, and its last bytes.
  struct Pending {
    Op* op;
    std::size_t spare;  // so many of its bytes need not be read
    std::array<std::byte, kTail> tail;
  };
  struct Reading {
    Op* op;
    std::size_t length;
  };

  void came();
  // A short message that a receive waits for goes there at once: nothing else is made of it.
  bool take_at_once(RxBuffer& buffer, const stm_event_t& event);
  void arrived_otherwise(RxBuffer& buffer, const stm_event_t& event);
  fi_addr_t sender();
  void find_sender();
  // One buffer more, which gets a message.
  int add_buffer();
  // The peer has sent one more message: one buffer more for others, if that is due.
  void sends_more();
  void post(RxBuffer& buffer);
  // False: the bytes of a lane that it needs have not arrived, or it asks and has not taken the
  // answers to what it asked before, or the program has to read its queue first, or to receive
  // some of what has come.
  bool take(Arrived& arrived);
  bool take_several(Arrived& arrived);
  // One of several.
  bool take_one(const Head& head, const std::byte* bytes);
  void take(Kind kind, Message&& message, RxBuffer& buffer, std::size_t size);
  bool take_laned(Message&& message, RxBuffer& buffer, std::size_t size);
  void lend_lane();
  void lane_done(std::uint64_t place);
  void tell_peer(Kind kind, const Head& head);
  // The message goes to its receive, or waits for one.
  void match(Message&& message);
  void take_first(Message&& message, RxBuffer& buffer);
  void take_more(const Head& head, RxBuffer& buffer, std::size_t length);
  void take_part(const RxBuffer& buffer, std::size_t length);
  void hold(const Arrived& message);
  bool take_held();
  [[nodiscard]] bool waits_for_program() const;
  void end(const stm_event_t& event);
  void read_next();
  bool read_done(Op& op, int status);
  // The bytes to leave out, so that no other read has the same length. Nothing: each is taken.
  [[nodiscard]] std::optional<std::size_t> free_length(const Pending& pending) const;
  // What a peer asks this program for.
  void access(const Head& head, const std::byte* more);
  void serve_asked(std::uint32_t request, std::uint64_t length);
  int read(Op& op, const Pending& pending, std::size_t length);
  void keep(Message&& message);
  void keep_more();
  // Whether further messages may wait in copies.
  [[nodiscard]] bool may_keep() const;
  void wait_for_host();
  void count_kept(std::size_t bytes) {
    kept_ += bytes;
    host_->kept += bytes;
  }
  void uncount_kept(std::size_t bytes) {
    kept_ -= bytes;
    host_->kept -= bytes;
  }

  Endpoint& endpoint_;
  const std::shared_ptr<OfHost> host_;
  const Address source_;
  std::vector<RxBuffer*> buffers_;
  std::size_t in_use_ = 0;  // of the buffers: they are not posted
  bool waits_for_host_ = false;
  std::size_t brought_ = 0;  // messages, while it has not all the buffers that it may have
  std::optional<Assembly> assembly_;
  std::size_t kept_ = 0;        // bytes of messages that wait for receives in copies
  std::list<Pending> waiting_;  // reads to begin
  std::vector<Reading> reading_;
  FabricLink::Lack lack_;  // of memory for them
  // What the peer may read now, of memory that this program accesses.
  struct Asked {
    std::uint64_t key, address, length;
  };
  std::optional<Asked> asked_;
  // Bytes of answers, and of what it reads, that it has not taken.
  std::size_t answering_ = 0;
  std::optional<LaneIn> lane_;
  std::deque<Arrived> held_;  // one that cannot be taken yet, and those behind it
  bool tells_ = false;        // what is free of the lane, later
  bool may_lend_;             // a lane, at its first message of some length
  // Of several that come as one, what may not be kept holds up those behind it.
  static constexpr std::size_t kLeastForSeveral = 4 * kBuffer;
  const bool several_;   // messages may come as one
  bool leaves_ = false;  // nothing more comes
  bool up_ = false;
  // Its end, while the first of what is held waits for the program to read its queue.
  std::optional<stm_event_t> end_;
  fi_addr_t sender_ = FI_ADDR_NOTAVAIL;  // in the address vector, when that had this version
  std::uint64_t sender_as_of_ = 0;
};

// Losses that no operation of the program tells of. The program hears of a lost message by its next
// call that names the peer, once. Of a peer that is not heard any more each receive tells that
// names it, until the peer connects, or the program sends to it: a program that goes on after an
// error (Open MPI's collective operations) would else wait for ever for a peer that waits, too. If
// what it has sent does not reach the peer either, its next call tells, too: Open MPI looks whether
// a call has failed, but in MPI_Comm_dup not whether an operation has.
// `since` is when the peer's address got into the address vector (Av::has_since): who takes it out
// and inserts it again hears of nothing older.
class Losses {
 public:
  // A message to the peer, which was complete for the program, or injected.
  void add_sent(const Address& peer, int status, std::uint64_t since) {
    of(peer, since).sent = status;
  }
  // Nothing is heard of the peer any more, so a message of it may be lost.
  void add_silence(const Address& peer, int status, std::uint64_t since) {
    of(peer, since).silent = status;
  }
  // The program has sent to it since, and no connection to it could be made.
  void add_unreached(const Address& peer, int status) {
    const auto found = of_.find(peer);
    if (found != of_.end() && std::exchange(found->second.tried, false))
      found->second.sent = status;
  }
  // Forgets those of peers that are not in the vector, or only again: `has_since` tells.
  template <class HasSince>
  void forget_removed(HasSince has_since) {
    std::erase_if(of_,
                  [&](const auto& each) { return has_since(each.first) != each.second.since; });
  }
  // The peer is heard again.
  void end_silence(const Address& peer) {
    const auto found = of_.find(peer);
    if (found == of_.end()) return;
    found->second.silent = 0;
    found->second.tried = false;
    forget_if_told(found);
  }

  [[nodiscard]] bool empty() const { return of_.empty(); }
  // For who sends to the peer, or receives from it. A status; 0: there is nothing to tell.
  int take_for_send(const Address& peer) {
    if (of_.empty()) return 0;
    if (const auto status = take_sent(peer); status != 0) return status;
    const auto found = of_.find(peer);
    if (found != of_.end() && std::exchange(found->second.silent, 0) != 0)
      found->second.tried = true;
    return 0;
  }
  int take_for_receive(const Address& peer) {
    if (of_.empty()) return 0;
    if (const auto status = take_sent(peer); status != 0) return status;
    const auto found = of_.find(peer);
    return found == of_.end() ? 0 : found->second.silent;
  }

 private:
  struct Loss {
    std::uint64_t since = 0;
    int sent = 0, silent = 0;  // statuses
    bool tried = false;        // it was silent, and the program has sent to it since
  };
  Loss& of(const Address& peer, std::uint64_t since) {
    auto& loss = of_[peer];
    if (loss.since != since) loss = {.since = since};
    return loss;
  }
  int take_sent(const Address& peer) {
    const auto found = of_.find(peer);
    if (found == of_.end()) return 0;
    const auto status = std::exchange(found->second.sent, 0);
    forget_if_told(found);
    return status;
  }
  void forget_if_told(std::map<Address, Loss>::iterator loss) {
    const auto& left = loss->second;
    if (left.sent == 0 && left.silent == 0 && !left.tried) of_.erase(loss);
  }

  std::map<Address, Loss> of_;
};

extern fi_ops_tagged tagged_calls;

// An endpoint of FI_EP_RDM. It listens at its port, and connects to a peer when it first sends
// there. It sends on the connections that it has made (Outgoing) and receives on those that peers
// have made (Incoming), so two endpoints that connect to each other at once do not meet.
class Endpoint final : public AnyEndpoint, public Acceptor {
 public:
  static int open(Domain& domain, const fi_info& info, void* context, fid_ep*& out);

  // ---- for its connections: under the link's mutex ----
  // Its address, as peers connect to it.
  [[nodiscard]] Address name() const { return link_.at_present(name_, format_); }
  [[nodiscard]] Buffers& buffers() { return buffers_; }
  // Where the headers land that peers send on the connections that it has made. Those of several
  // connections are registered together: through a stpd each registration costs milliseconds.
  [[nodiscard]] Buffers& words() { return words_; }
  [[nodiscard]] Lanes& lanes() { return lanes_; }
  [[nodiscard]] std::size_t most_kept() const { return most_kept_; }
  [[nodiscard]] bool may_keep(const OfHost& of) const { return places_.may_keep(of); }
  void requested(stm_connection_t connection) override;
  void clean_up() override;
  std::optional<Receive> receive_for(const Message& message) {
    return matching_.take_receive(message, least_left_);
  }
  // Whether the program can be told of that message now, if a peer may send any number of its kind.
  [[nodiscard]] bool may_tell(Kind kind, const Message& message) const {
    if (!reports_.are_full() || kind == Kind::kMore) return true;
    return kind != Kind::kWritten && !matching_.goes_to_shared(message);
  }
  [[nodiscard]] const Av& av() const { return *av_; }
  void finish(Op& op) override;
  // A message that was complete for the program has not arrived.
  void never_arrived(const Address& peer, int status);
  // A peer has written with immediate data.
  void written(const Message& message);
  // FI_RMA_EVENT: peers tell of each access.
  [[nodiscard]] bool counts_accesses() const { return counts_accesses_; }
  void accessed(const Head& head);
  [[nodiscard]] Domain& domain() const { return domain_; }
  // A message to that peer is lost, and no operation tells of it.
  void lost(const Address& peer, int status);
  // Operations with that peer fail. The log tells why.
  void tell_failed(const Address& peer, int status);
  // A connection of that peer has failed: it fell silent, or broke the connection off.
  void fell_silent(const Address& peer, int status);
  // A connection to it is up, or could not be made.
  void reached(const Address& peer) { losses_.end_silence(peer); }
  void not_reached(const Address& peer, int status) { losses_.add_unreached(peer, status); }
  // Connections that have ended are closed with the next call.
  void has_ended(const Outgoing& connection);
  void has_ended(const Incoming& connection);

  // ---- calls ----
  int get_option(int name, void* value, std::size_t* length) override;
  int set_option(int name, const void* value, std::size_t length) override;
  int get_name(void* address, std::size_t* length) override;

  // Sends a short message if nothing has to be waited for or looked at: 0. Otherwise nothing is
  // done.
  int send_at_once(const Outbound& message);
  ssize_t send(const Outbound& message) override;
  ssize_t receive(const Inbound& inbound) override;

 private:
  // So many bytes of messages may be under way that are complete for the program.
  static constexpr std::size_t kMostCopied = std::size_t{4} << 20;

  Endpoint(Domain& domain, const fi_info& info, void* context);
  int bind_other(fid_t other, std::uint64_t flags) override;
  int enable() override;
  [[nodiscard]] bool has_begun() const override { return enabled_; }
  [[nodiscard]] bool lingers() const override;
  void end_connections(LinkLock& lock) override;
  int way_to(fi_addr_t to, SendingConnection*& way) override;
  void tell_of(const Op& write, std::byte* note) const override;
  [[nodiscard]] fi_addr_t number_of(const Address& peer) const override;
  void leaves(const Op& op) override;
  void bury();

  // The connection to that peer, if it is the one sent to last, and nothing has to be looked at
  // before; else nullptr.
  [[nodiscard]] Outgoing* recent_to(fi_addr_t to) const {
    return to == recent_to_ && recent_as_of_ == av_->version() ? recent_ : nullptr;
  }
  // Something has to be looked at.
  void forget_recent() { recent_as_of_ = 0; }
  int connection_to(fi_addr_t to, Outgoing*& out);
  // A short message waits with others, in one operation (outgoing.cpp). False: it has to wait
  // alone.
  bool send_with_others(const Outbound& message, const Head& head, Outgoing& to);
  // The message has to wait, is long, or is complete later.
  ssize_t send_later(const Outbound& message, const Head& head, Outgoing& to);
  // Fills in what a message consists of that goes in parts. A status.
  int take_parts(Op& op, const Segments& segments, const Head& head);
  // start(), of a message whose bytes have been copied.
  ssize_t start_copied(Op& op, Outgoing& to, std::uint64_t flags, int error);
  void take_laned(Op& op, const Segments& segments, const Head& head, std::size_t rest);
  ssize_t announce(Op& op, Outgoing& to, const Request& request, const Head& head);
  ssize_t receive_specially(Receive&& receive);
  ssize_t peek(const Receive& receive);
  ssize_t claim(Receive&& receive);
  // Into a buffer of FI_MULTI_RECV, which waits for more.
  ssize_t receive_several(Receive&& receive);
  void discard(Message& message);
  // The peer is in the address vector: a call of the program may tell of what is lost.
  [[nodiscard]] bool can_name(const Address& peer) const;
  // Those of addresses that the vector does not have any more.
  void forget_losses();
  // Those that name that peer as their sender. False: there is none.
  bool give_up_receives(const Address& peer, int status);

  Av* av_ = nullptr;
  std::size_t least_left_;  // FI_OPT_MIN_MULTI_RECV
  const std::size_t most_kept_;
  Places places_{most_kept_};
  const bool directed_;  // FI_DIRECTED_RECV: receives name senders
  stm_listener_t listener_ = nullptr;

  Losses losses_;
  std::uint64_t losses_as_of_ = 0;  // the version of the address vector when they were sifted
  Buffers buffers_, words_;         // before the connections that have them
  Lanes lanes_;
  std::unordered_map<Address, std::unique_ptr<Outgoing>, HashAddress> outgoing_;
  Outgoing* recent_ = nullptr;  // of outgoing_, sent to last
  // Its number in the address vector, when that had this version. 0: it has to be found again.
  fi_addr_t recent_to_ = FI_ADDR_NOTAVAIL;
  std::uint64_t recent_as_of_ = 0;
  std::unordered_map<const Incoming*, std::unique_ptr<Incoming>> incoming_;
  std::vector<std::unique_ptr<Outgoing>> ended_outgoing_;
  std::vector<std::unique_ptr<Incoming>> ended_incoming_;
  std::uint64_t rejected_ = 0;  // peers
  std::uint64_t failed_ = 0;    // connections, with operations
  std::size_t part_slots_ = 0;  // of messages that go in parts
  std::size_t laned_ = 0;       // messages under way that are put into lanes
  std::size_t copied_ = 0;      // bytes of messages under way that have been reported
};

}  // namespace stp::fi::rdm
