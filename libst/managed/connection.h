// SPDX-License-Identifier: BSD-3-Clause
// One managed connection. It composes the mechanisms below: it runs its table of states, hands each
// completion to the mechanism that it concerns, and moves them all when its domain takes a turn.
// Everything except the constructor is called under the domain's mutex.
#pragma once

#include <optional>

#include "dpdk_port/link/link.h"
#include "libst/client/tries.h"
#include "libst/managed/domain.h"
#include "libst/managed/life.h"
#include "libst/managed/operations.h"
#include "libst/managed/queue.h"
#include "libst/managed/receives.h"
#include "libst/managed/session.h"
#include "stp/base/assert.h"

namespace stp::managed {

class alignas(kCacheLine) Connection : public std::enable_shared_from_this<Connection> {
 public:
  static constexpr client::Kind kKind = client::Kind::kManagedConnection;

  using State = ConnectionState;
  using Event = ConnectionEvent;

  explicit Connection(std::shared_ptr<Domain> domain);
  ~Connection();

  // ---- connecting ----
  // Whom to connect to. `silent`: until then the peer's host has to answer, unless another
  // connection shows that it is there. `others`: nullptr, or the host's addresses, of which `mac`
  // is the present one: the connection goes on to the next one by itself.
  struct Wanted {
    MacAddr mac;
    std::uint32_t uport = 0;
    Time silent = kNever, deadline = kNever;
    std::unique_ptr<client::Tries> others;
  };
  // Asks for a Virtual Connection. 0, or the error of the link.
  int connect(Wanted wanted, const Staging& staging, Hello hello);
  void expect(std::shared_ptr<Listener> listener, EndpointId endpoint, const MacAddr& peer,
              const client::GivenChannel& given, std::shared_ptr<ipc::SharedMemory> memory,
              const Staging& staging);
  // Its request has not come, and other connections need its place.
  void give_up() { end(failure(-ETIMEDOUT)); }
  [[nodiscard]] const MacAddr& peer_mac() const { return peer_mac_; }
  // How users name its station: by its MAC address until it has answered.
  [[nodiscard]] std::string peer_name() const {
    return peer_name_.empty() ? "[" + port::to_string(peer_mac_) + "]" : peer_name_;
  }
  // Which addresses of the peer were tried, and how that ended; "": it has one, or has answered.
  [[nodiscard]] std::string tried() const;
  // -EAGAIN: the queues have no free places.
  int set_outlets(Outlets outlets) { return reports_.open(std::move(outlets)); }
  int accept(Outlets outlets, const Hello& hello);
  int reject(const Hello& hello);
  [[nodiscard]] const std::vector<std::byte>& private_data() const {
    return handshake_.private_data();
  }

  // ---- posting ----
  // The operation that post() posts, to be filled in where it stays.
  [[nodiscard]] Operation& draft() { return operations_.draft(); }
  int post();
  // The same for a message with those bytes, which are copied. -EAGAIN: it would have to wait.
  int send_at_once(const Pieces& bytes);
  int post_receive(PostedReceive receive);
  int set_watermark(std::uint64_t receives);
  int refuse_read(std::uint32_t request);
  int cancel(std::uint64_t context);
  int withdraw(std::uint64_t context);
  // The program takes `memory` back. Returns true if an outstanding operation or matched
  // receive uses it: then the connection ends, and the caller asks again until it has released the
  // memory.
  bool withdraw(const Memory& memory);
  // Counts the quiet and lazy operations that use the memory.
  [[nodiscard]] unsigned quiet_uses(const Memory& memory) const {
    return operations_.quiet_uses(memory);
  }
  // Asks for confirmation of quiet operations, because somebody waits for their end.
  void confirm_quiet_puts();
  // Ends the peer's access to a region.
  void revoke(const Access& access);
  // The peer hears that the first of these requests for regions has named a wrong key. The others
  // have waited behind it.
  void refuse_key(const WrongKeys::Requests& requests);

  // ---- progress ----
  // Three steps: look() detects the end, advance() handles everything that came before it,
  // conclude() reports the end. A domain runs each step for all its connections, so it reports no
  // end before what came earlier on another connection.
  void progress(Time now);
  bool look();  // true: it has ended, and that has not been handled
  void advance(Time now);
  void conclude(Time now);
  // For many connections in turn: what they use is brought into the caches before, in steps, each
  // of which reads what the one before it has brought.
  static constexpr unsigned kFetchSteps = 1 + Sequencer::kFetchSteps;
  void fetch_ahead(unsigned step) const;
  // Passes requests to the Node. Returns true if there were some: the caller then tells the
  // backend.
  bool pump(Time now) {
    if (stage() >= ConnectionStage::kClosing) return false;  // the service may not read any more
    STP_ASSERT(session_, "a connection that has something to send is open");
    return channel_.send(session_->sequencer, now);
  }
  // The channel has unread headers from the Node.
  [[nodiscard]] bool has_headers() const { return channel_.readable(); }
  // The next turn must visit it again: what it waits for brings no news.
  [[nodiscard]] bool wants_another_look() const;
  // It is ending or has ended.
  [[nodiscard]] bool over() const { return stage() == ConnectionStage::kOver; }
  // It waits for a place in a queue, or for a receive.
  [[nodiscard]] bool waits_for_this_side() const;
  [[nodiscard]] std::uint32_t channel_number() const { return channel_.number(); }
  [[nodiscard]] Agenda::Entry& entry() { return entry_; }
  [[nodiscard]] Time next_deadline() const;

  // ---- the end ----
  int disconnect(bool abrupt, Farewell why = Farewell::kNone);
  void lose(int error) { end(failure(error)); }
  // Nobody holds it any more. It disappears when the link has released its memory.
  void abandon();
  // Drops the outstanding operations: they never complete.
  void forget_operations() { operations_.forget(); }
  [[nodiscard]] bool ending() const { return state_.allows(Event::kLetGo); }
  void go_on_ending();
  [[nodiscard]] bool gone() const { return facts().shown == STM_ENDED; }

  void query(stm_connection_info_t& info) const;
  // Nothing has been done with it.
  [[nodiscard]] bool is_new() const { return state_.allows(Event::kConnect); }
  [[nodiscard]] bool is_up() const { return facts().posting == Posting::kBegins; }
  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return domain_; }
  void set_handle(Handle handle) { reports_.set_handle(handle); }
  [[nodiscard]] Handle handle() const { return reports_.handle(); }

 private:
  // How it opens.
  void take_channel(EndpointId endpoint, const client::GivenChannel& given,
                    std::shared_ptr<ipc::SharedMemory> memory, const Staging& staging);
  int ask_for_channel(client::GivenChannel& given, std::shared_ptr<ipc::SharedMemory>& memory);
  // One with a session is open. That is asked first: `wanted_` would take a cache line more.
  [[nodiscard]] bool is_dialing() const {
    return !session_ && wanted_ && state_.allows(Event::kOpened);
  }
  bool dials_on(Time now, bool failed);
  void dial(Time now);
  void await_answer(Time now);
  bool opened(Time now);
  void decide(Event event, const Hello& hello);
  void on_hello(const Completion& c);
  void hello_sent(int status);
  void up();

  // Posting, progress, completions.

  [[nodiscard]] const ConnectionFacts& facts() const { return facts_of(state_.state()); }
  [[nodiscard]] ConnectionStage stage() const { return facts().stage; }
  // Up, or disconnecting gracefully.
  [[nodiscard]] bool exchanges_messages() const { return stage() == ConnectionStage::kExchanging; }
  [[nodiscard]] int cannot_post() const;
  bool move(Time now);  // true: call again at once, there is more
  // `now`: what Domain::time() has returned for this post; 0: it was not asked.
  void send_soon(Time now = 0);
  void has_posted(Time now);
  bool match();
  void on_completion(const Completion& c);
  void on_read_request(const Completion& c);
  void on_region_request(const Completion& c);
  void serve_ring();
  bool serve_region(const Completion& c);
  void on_region(const Completion& c);

  // How it ends.
  void settle();
  void check_channel();
  void check_time(Time now);
  // Completes what is outstanding, then reports the end. The peer is told `why`.
  void end(const End& end, Farewell why = Farewell::kNone);
  // The peer has broken the rules of messages.
  void on_breach(Receives::Breach breach);
  void flush(int status);
  void take_last();

  // Each operation needs a few words of most members. They are in seven cache lines, because a
  // member that has its words at the end stands before one that has them at the beginning. What no
  // operation needs fills the lines between.
  const std::shared_ptr<Domain> domain_;
  Agenda::Entry entry_;
  std::uint64_t posted_ = context::kFirstReceive;  // operations and receives so far

  EndpointId endpoint_ = kNoneId;
  std::string peer_name_;  // of its station; "": not known yet
  Reports reports_;        // at its end
  Machine<kConnectionTransitions> state_;
  ChannelState seen_ = ChannelState::kConnecting;  // at the last look()
  Channel channel_;                                // at its beginning
  PeerRegions peer_regions_;                       // at its end
  Operations operations_{reports_, peer_regions_};

  ServedRegions served_regions_;
  std::optional<Session> session_;  // once the Virtual Connection is open; at its end
  ReadRequests read_requests_;      // at its beginning
  std::unique_ptr<Wanted> wanted_;  // of one that connects, until the peer has answered
  Staging staging_;
  Receives receives_{reports_};  // at its end
  Ending ending_;
  Handshake handshake_;  // at its beginning

  std::shared_ptr<Listener> listener_;  // of a connection that is not accepted or rejected yet
  MacAddr peer_mac_;
  std::uint16_t local_port_ = 0, peer_port_ = 0;
};

}  // namespace stp::managed
