// SPDX-License-Identifier: BSD-3-Clause
// One managed connection: a channel of level 0 driven by a Sequencer. By subject:
//   connection.cpp   progress, the end          connect.cpp      connecting
//   operations.cpp   posting, starting          completions.cpp  completions of the Sequencer
//   receives.cpp     messages and receives      regions.cpp      keys: the peer's, and its own
//   arrivals.cpp     receives on arrival, and messages that wait for one
// Everything except the constructor is called under the domain's mutex.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "libst/managed/connection_state.h"
#include "libst/managed/domain.h"
#include "libst/managed/eager.h"
#include "libst/managed/farewell.h"
#include "libst/managed/hello.h"
#include "libst/managed/operation_list.h"
#include "libst/managed/pool.h"
#include "libst/managed/queue.h"
#include "libst/managed/write_window.h"
#include "stp/channel/user_side.h"

namespace stp::managed {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  static constexpr client::Kind kKind = client::Kind::kLink;
  static constexpr std::size_t kMaxOutstanding = OperationList::kMost;

  using State = ConnectionState;
  using Event = ConnectionEvent;
  // Where events go.
  struct Outlets {
    QueueUse events, sends, receives;
    std::shared_ptr<Pool> pool;
    std::uint64_t context = 0;
    std::uint64_t group = 0;     // of regions that the peer may access
    Time receive_wait = kNever;  // for a message that finds no receive
    bool on_arrival = false;     // receives are taken from the pool
  };

  explicit Connection(std::shared_ptr<Domain> domain) : domain_(std::move(domain)) {}
  ~Connection();

  // ---- connecting ----
  void connect(EndpointId endpoint, const client::Reply& made,
               std::shared_ptr<service::SharedMemory> memory, const Staging& staging, Hello hello,
               Time deadline);
  void expect(std::shared_ptr<Listener> listener, EndpointId endpoint, const client::Reply& made,
              std::shared_ptr<service::SharedMemory> memory, const Staging& staging);
  // Its request has not come, and other connections need its place.
  void give_up();
  [[nodiscard]] const MacAddr& peer_mac() const { return peer_mac_; }
  // -EAGAIN: the queues have no free places.
  int set_outlets(Outlets outlets);
  int accept(Outlets outlets, Hello hello);
  int reject(Hello hello);
  [[nodiscard]] const std::vector<std::byte>& private_data() const { return private_data_; }

  // ---- posting ----
  int post(const Operation& operation);
  int post_receive(PostedReceive receive);
  int set_watermark(std::uint64_t receives);
  int refuse_read(std::uint32_t request);
  int cancel(std::uint64_t context);
  // The program takes `memory` back. Returns true if an outstanding operation or matched
  // receive uses it: then the connection ends, and the caller asks again until it has released the
  // memory.
  bool withdraw(const Memory& memory);
  // Counts the quiet operations that have started and use the memory.
  [[nodiscard]] unsigned quiet_uses(const Memory& memory) const;
  // Asks for confirmation of quiet operations, because somebody waits for their end.
  void confirm_quiet_puts();

  // ---- progress ----
  // Three steps: look() detects the end, advance() handles everything that came before it,
  // conclude() reports the end. A domain runs each step for all its connections, so it reports no
  // end before what came earlier on another connection.
  void progress(Time now);
  bool look();  // true: it has ended, and that has not been handled
  void advance(Time now);
  void conclude(Time now);
  // Passes requests to the Node. Returns true if there were some: the caller then tells the
  // backend.
  bool pump(Time now);
  // The channel has unread headers from the Node.
  [[nodiscard]] bool has_headers() const { return channel_.readable(); }
  // The next turn must visit it again: what it waits for brings no news.
  [[nodiscard]] bool wants_another_look() const;
  // It is ending or has ended.
  [[nodiscard]] bool over() const { return state_ == State::kEnding || state_ == State::kEnded; }
  // It waits for a place in a queue, or for a receive.
  [[nodiscard]] bool waits_for_this_side() const;
  [[nodiscard]] std::uint32_t channel_number() const { return bell_; }
  [[nodiscard]] Agenda::Entry& entry() { return entry_; }
  [[nodiscard]] Time next_deadline() const;
  void revoke(const Access& access);

  // ---- the end ----
  int disconnect(bool abrupt, Farewell why = Farewell::kNone);
  void lose(int error) { end(error, STM_FAILED, error); }
  // Nobody holds it any more. It disappears when the link has released its memory.
  void abandon();
  // Drops the outstanding operations: they never complete.
  void forget_operations() { operations_.forget(); }
  [[nodiscard]] bool ending() const { return state_ == State::kEnding; }
  void go_on_ending();
  [[nodiscard]] bool gone() const { return state_ == State::kEnded; }

  void query(stm_connection_info_t& info) const;
  [[nodiscard]] State state() const { return state_.state(); }
  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return domain_; }
  void set_handle(Handle handle) { handle_ = handle; }
  [[nodiscard]] Handle handle() const { return handle_; }

 private:
  // Contexts of the Sequencer: these two are the connection's own, receives follow. Operations and
  // the other kinds below are marked by a bit.
  static constexpr Context kHelloOut = 1, kHelloIn = 2, kFirstReceive = 16;
  static constexpr Context kKeyMark = Context{1} << 63;
  // Identifies a receive from a pool by its message.
  static constexpr Context kMessageMark = Context{1} << 62;

  // A receive with its message. Its completion is reported after those of all receives before it.
  struct Matched {
    PostedReceive receive;
    stm_event_t told{};
    bool done = false;
  };
  // How it ends.
  struct Ending {
    int flushed = 0;
    std::uint32_t event = 0;
    int status = 0;
    // Messages that have arrived can still be received: their sender has seen them arrive.
    bool keeps_messages = false;
    bool has_flushed = false;
  };
  struct Remote {
    using State = RemoteState;
    using Event = RemoteEvent;
    Machine<kRemoteTransitions> state;
    int status = 0;  // kClosed: the reason
    RemoteRegion region;
    unsigned operations = 0;  // under way: the entry stays in place while there are any
  };

  // connect.cpp
  void take_channel(EndpointId endpoint, const client::Reply& made,
                    std::shared_ptr<service::SharedMemory> memory, const Staging& staging);
  bool opened(Time now);
  void say_hello(const Hello& hello, Time now);
  void on_hello(const Completion& c);
  void on_answer(const Hello& hello);
  void hello_sent(int status);
  void up();

  // connection.cpp
  bool move(Time now);  // true: call again at once, there is more
  void send_soon();
  void check_end(ChannelState state);
  // The peer's reason for the end; 0: none.
  [[nodiscard]] int peers_reason() const;
  void check_time(Time now);
  // Completes outstanding operations with `flushed`, then reports `event` (0: none).
  void end(int flushed, std::uint32_t event, int status);
  // No frame under way reads memory being sent.
  [[nodiscard]] bool let_go() const;
  void drop_behind_gap(int status);
  void flush(int status);
  void disconnect_channel(bool at_once);
  void release_outlets();
  void tell(std::uint32_t kind, int status);
  [[nodiscard]] stm_event_t event(std::uint32_t kind, int status, std::uint64_t context) const;
  void settle();

  // operations.cpp
  void begin_operations();
  enum class Begun : std::uint8_t { kYes, kLater };
  Begun begin(Operation& operation);
  [[nodiscard]] bool may_be_quiet(const Operation& operation) const;
  int try_begin(Operation& operation);
  int begin_remote(Operation& operation);
  int begin_send(Operation& operation);
  [[nodiscard]] bool goes_by_ring(std::uint64_t length) const;
  int begin_write(Operation& operation);
  int begin_eager(Operation& operation);
  int access(const Operation& operation, const RemoteRegion& region);
  // Completes the operation. Its place may be reused at once.
  void complete(Operation& operation, int status, std::uint64_t length = 0,
                std::uint32_t message = 0);
  [[nodiscard]] Operation* find_operation(std::uint64_t context) const;
  int cancel_operation(Operation& operation);

  // completions.cpp
  void on_completion(const Completion& c);
  void on_operation(const Completion& c);
  [[nodiscard]] static int status_of(const Operation& operation, const Completion& c);
  void on_read_request(const Completion& c);
  void tell_read_requests();

  // receives.cpp
  bool match();
  // Matches messages that came through the ring with receives, as far as there are any.
  bool match_arrived();
  [[nodiscard]] bool has_arrived() const;
  bool take_receive(std::uint32_t message, PostedReceive& out);
  [[nodiscard]] bool has_receive() const;
  [[nodiscard]] Landing landing_of(const PostedReceive& receive) const;
  bool match_eager(const EagerIn::Arrived& arrived);
  bool match_offer(const Offer& offer);
  void on_received(const Completion& c);
  [[nodiscard]] stm_event_t received(const PostedReceive& receive, int status) const;
  void conclude(Matched& matched, int status, std::uint64_t length, std::uint32_t message,
                std::uint32_t tag);
  void tell_received();
  void on_arrived(const Completion& c);
  void break_off();
  void tell_taken();

  // arrivals.cpp
  Context name_of(std::uint32_t message);
  // Of a receive from a pool: its message is later than the one due next.
  [[nodiscard]] bool is_ahead(Context id) const;
  bool match_ahead();
  [[nodiscard]] bool can_spare_receive(const Offer& offer) const;
  [[nodiscard]] std::uint64_t span() const;
  void watch_wait(Time now);
  void check_watermark();

  // regions.cpp
  Remote* remote(std::uint32_t key);
  void make_room_for_remote();
  void on_region(const Completion& c);
  void on_region_request(const Completion& c);
  void on_revoked(const RemoteRegion& region);
  void open_eager();

  const std::shared_ptr<Domain> domain_;
  Agenda::Entry entry_;
  Handle handle_ = 0;
  Machine<kConnectionTransitions> state_;
  ChannelState seen_ = ChannelState::kConnecting;
  int reason_ = 0;  // kEnding, kEnded
  Ending ending_;
  EndpointId endpoint_ = kNoneId;
  std::shared_ptr<Listener> listener_;  // of a connection that is not accepted or rejected yet
  Outlets outlets_;

  VcId vc_ = kNoneId;
  std::uint32_t bell_ = 0;
  std::shared_ptr<service::SharedMemory> channel_memory_;
  UserChannel channel_;
  MacAddr peer_mac_;
  std::uint16_t local_port_ = 0, peer_port_ = 0;
  std::optional<Sequencer> sequencer_;
  Time wait_until_ = kNever;  // deadline for an answer of the other side
  Staging staging_;
  Hello hello_;                 // to send
  bool hello_landing_ = false;  // the peer's hello is being received
  std::vector<std::byte> private_data_;

  std::uint64_t posted_ = kFirstReceive;  // operations and receives so far
  OperationList operations_;
  WriteWindow writes_;
  RingQueue<PostedReceive> receives_;         // in order
  std::map<std::uint64_t, Matched> matched_;  // by id, which is the order of the messages
  std::uint64_t last_message_ = 0;            // the last one matched, with a pool; in 64 bits
  Time starved_at_ = kNever;                  // a message has waited too long for a receive
  std::optional<std::uint64_t> watermark_;    // set by the program; has a place among the events
  Farewell farewell_ = Farewell::kNone;
  std::deque<Completion> read_requests_;           // not reported yet
  std::map<std::uint32_t, Remote> remotes_;        // by key
  std::map<std::uint32_t, std::uint32_t> served_;  // by number: the local key
  RemoteRegion eager_ring_;
  EagerOut eager_out_;
  EagerIn eager_in_;
  std::uint32_t eager_served_ = 0;  // number of our ring
};

}  // namespace stp::managed
