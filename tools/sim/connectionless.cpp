// SPDX-License-Identifier: BSD-3-Clause
// Two programs without a connection. Each puts Blocks into the other's memory without grants and
// asks with Request_State whether they have arrived. The other program answers (protocol, section
// 11).
#include <algorithm>
#include <cstring>
#include <deque>
#include <list>

#include "stp/node/inbound/unscheduled.h"
#include "tools/sim/session.h"

namespace stp::sim {
namespace {

// A Block that is in flight, or whose name cannot be reused yet.
struct Parcel {
  std::uint32_t number = 0;  // distinguishes it from earlier Blocks of the same name
  std::uint32_t d_id = 0, b_num = 0;
  std::uint16_t flags = 0;
  bool append = false;
  Lot source, place;
  bool under_way = true;
  Time begun = 0, sent = 0;  // sent: last
  Time act_at = 0;           // when to ask for it, or to repeat it without need
  Time pause = 0;
  std::optional<Time> delivered;  // as its receiver knows
};

class Correspondent : public Party {
 public:
  using Party::Party;
  void write_to(Correspondent& peer) { peer_ = &peer; }

  void receive(const ReceivedEntry& entry, Time now) override;
  void work(Time) override {}
  bool transmit(SendEntry& out, Time now) override;
  [[nodiscard]] Time next_deadline() const override { return due_; }
  void expire(Time now) override;
  [[nodiscard]] bool wants_close() const override { return done_; }
  [[nodiscard]] bool memory_intact() const override;
  [[nodiscard]] bool all_confirmed() const { return confirmed_ == workload_.operations; }
  // Whether a Block that began before `time` is still in flight.
  [[nodiscard]] bool waits_since(Time time) const;

 protected:
  void map_memory() override;
  void begin(Time now) override;
  void stop(int error, Time now) override;

 private:
  // --- sender
  void begin_parcels(Time now);
  void begin_parcel(Time now);
  [[nodiscard]] bool can_begin() const;
  void choose_name(Parcel& parcel);
  void act(Parcel& parcel, Time now);
  void repeat(const Parcel& parcel);
  void ask(const Parcel& parcel);
  void on_answer(const wire::Header& rsr, Time now);
  void rest(Parcel& parcel, Time now);
  [[nodiscard]] static Time over_at(const Parcel& parcel);
  void schedule(Time now);
  [[nodiscard]] Parcel* find(std::uint32_t d_id, std::uint32_t b_num, std::uint32_t number);
  // --- receiver
  void on_block(const ReceivedEntry& entry, Time now);
  void answer(const wire::Header& question);
  // --- both
  [[nodiscard]] SendEntry request(wire::Op op, std::uint32_t sync) const;

  Correspondent* peer_ = nullptr;
  std::uint64_t mac_ = 0;
  std::optional<Arena> before_, after_;  // mapped around the landing, without an Mx
  std::list<Parcel> parcels_;
  std::uint32_t begun_ = 0, confirmed_ = 0;
  std::deque<SendEntry> requests_;
  Time heard_ = 0, due_ = kNever;
  bool done_ = false;
};

class ConnectionlessSession : public Session {
 public:
  ConnectionlessSession(Run& run, const SessionConfig& config);
  Party& client() override { return one_; }
  Party& server() override { return other_; }
  [[nodiscard]] std::string overdue(Time now) override;
  void check(bool reliable) override;

 private:
  Run& run_;
  const SessionConfig config_;
  Correspondent one_, other_;
};

using wire::Op;
namespace flag = wire::flag;

constexpr Time kFirstPause = 5 * kMillisecond;
// A name is not reused while the receiver remembers it, plus the longest delay of a frame.
constexpr Time kRest = UnscheduledBlocks::kMemory + kSecond;
constexpr Time kGiveUp = 60 * kSecond;
constexpr Time kLinger = 20 * kSecond;  // ends after this silence: there is no disconnect
// A program may handle one header this much later than another.
constexpr Time kLateLook = 100 * kMillisecond;
constexpr Rate kSome = kAlways / 5;
constexpr std::uint32_t kSpareNames = 2;  // few, so that they are used again

// Attaches an option payload. A number in the operation itself determines its content, so the
// receiver can check it.
void attach(SendEntry& entry, std::size_t length, std::uint64_t pattern) {
  entry.payload_length = static_cast<std::uint8_t>(length);
  fill_pattern(std::as_writable_bytes(std::span(entry.payload, length)), pattern);
}

bool has_attached(const ReceivedEntry& entry, std::size_t length, std::uint64_t pattern) {
  return entry.payload_length == length &&
         has_pattern(std::as_bytes(std::span(entry.payload, length)), pattern);
}

std::size_t option_length(std::uint32_t sync) {
  return sync % 2 == 0 ? 0 : wire::kOptionSize;
}

std::uint64_t pattern_of(const Parcel& parcel, std::uint64_t sender) {
  return sender << 32 | parcel.number;
}

void Correspondent::map_memory() {
  const auto guard = [this](std::optional<Arena>& arena) {
    arena.emplace(end_->host(), info_.endpoint, Direction::kReceive, 1, workload_.longest);
  };
  guard(before_);
  Party::map_memory();
  guard(after_);
  if (!honest_) receive_memory_->open_to_all();
}

bool Correspondent::memory_intact() const {
  return Party::memory_intact() && (!before_ || (before_->intact() && after_->intact()));
}

void Correspondent::begin(Time now) {
  mac_ = end_->host().config().node.mac.to_u64();
  heard_ = due_ = now;
}

void Correspondent::stop(int, Time) {
  due_ = kNever;
  for (auto* const guard : {&before_, &after_})
    if (*guard) (*guard)->unmap();
}

SendEntry Correspondent::request(Op op, std::uint32_t sync) const {
  SendEntry entry{};
  auto& h = entry.header;
  h.op_flags = wire::op_flags(op);
  h.d_port = peer_->info_.local_port;
  h.d_key = peer_->info_.local_key;
  h.sync = sync;
  entry.destination_mac = peer_->mac_;
  if (op != Op::kData) attach(entry, option_length(sync), sync);
  return entry;
}

Parcel* Correspondent::find(std::uint32_t d_id, std::uint32_t b_num, std::uint32_t number) {
  for (auto& parcel : parcels_)
    if (parcel.d_id == d_id && parcel.b_num == b_num && parcel.number == number) return &parcel;
  return nullptr;
}

bool Correspondent::waits_since(Time time) const {
  return state() == State::kOpen && std::any_of(parcels_.begin(), parcels_.end(), [&](auto& p) {
           return p.under_way && p.begun < time;
         });
}

// --- sender

void Correspondent::choose_name(Parcel& parcel) {
  const auto names = workload_.at_once + kSpareNames;
  const auto in_use = [&] {
    return std::any_of(parcels_.begin(), parcels_.end(), [&](const Parcel& other) {
      return other.d_id == parcel.d_id && other.b_num == parcel.b_num;
    });
  };
  auto name = static_cast<std::uint32_t>(dice_.below(names));
  do {
    name = (name + 1) % names;
    parcel.d_id = name % 2;
    parcel.b_num = name / 2;
  } while (in_use());
}

// take() always succeeds: there are more lots than names.
void Correspondent::begin_parcel(Time now) {
  Parcel parcel;
  const auto length = dice_.chance(kAlways / 10) ? 0 : dice_.magnitude(1, workload_.longest);
  choose_name(parcel);
  parcel.number = ++begun_;
  parcel.place = peer_->receive_memory_->take(length, 1, dice_).value();
  parcel.source = transmit_memory_->take(length, 1, dice_).value();
  fill_pattern(transmit_memory_->bytes(parcel.source), pattern_of(parcel, mac_));
  if (length > 0 && dice_.chance(kSome))
    parcel.flags = flag::kSilent;
  else if (dice_.chance(kSome))
    parcel.flags = flag::kSendState;
  for (const auto other : {flag::kInterrupt, flag::kOrder})
    if (dice_.chance(kSome)) parcel.flags |= other;
  parcel.append = (parcel.flags & flag::kSilent) == 0 && dice_.chance(kSome);
  parcel.begun = parcel.sent = now;
  parcel.pause = kFirstPause;
  parcel.act_at = now + parcel.pause;
  repeat(parcels_.emplace_back(parcel));
  if (dice_.chance(kSome)) requests_.push_back(request(Op::kNoOperation, dice_.next()));
}

bool Correspondent::can_begin() const {
  const auto under_way =
      std::count_if(parcels_.begin(), parcels_.end(), [](auto& p) { return p.under_way; });
  return begun_ < workload_.operations && under_way < workload_.at_once &&
         parcels_.size() < workload_.at_once + kSpareNames;
}

void Correspondent::begin_parcels(Time now) {
  if (peer_->state() == State::kWaiting) return;
  if (peer_->state() != State::kOpen) begun_ = workload_.operations;  // the peer has ended
  while (can_begin()) begin_parcel(now);
}

void Correspondent::repeat(const Parcel& parcel) {
  auto entry = request(Op::kData, dice_.next());
  auto& h = entry.header;
  h.op_flags |= parcel.flags;
  const auto to = peer_->receive_memory_->address(parcel.place);
  h.mx = peer_->mx_;
  h.bufx = to.bufx;
  h.offset = to.offset;
  h.d_id = parcel.d_id;
  h.b_num = parcel.b_num;
  h.s_id = parcel.number;
  if (parcel.append) attach(entry, wire::kAppendSize, parcel.number);
  const auto from = transmit_memory_->address(parcel.source);
  entry.bufx = from.bufx;
  entry.offset = from.offset;
  entry.length = static_cast<std::uint32_t>(parcel.source.length);
  requests_.push_back(entry);
}

void Correspondent::ask(const Parcel& parcel) {
  auto entry = request(Op::kRequestState, dice_.next());
  entry.header.d_id = parcel.d_id;
  entry.header.b_num = parcel.b_num;
  entry.header.s_id = parcel.number;
  requests_.push_back(entry);
}

bool Correspondent::transmit(SendEntry& out, Time now) {
  while (!requests_.empty()) {
    out = requests_.front();
    requests_.pop_front();
    if (out.header.op() != Op::kData) return true;
    auto* const parcel = find(out.header.d_id, out.header.b_num, out.header.s_id);
    if (parcel == nullptr) continue;  // it is over, and its bytes are gone
    parcel->sent = now;
    return true;
  }
  return false;
}

void Correspondent::act(Parcel& parcel, Time now) {
  if (!parcel.under_way) {
    parcel.act_at = kNever;
    return repeat(parcel);
  }
  if (now - parcel.begun > kGiveUp) return rest(parcel, now);
  parcel.pause = std::min(2 * parcel.pause, kSecond);
  parcel.act_at = now + dice_.between(parcel.pause / 2, parcel.pause);
  if (dice_.chance(kSome))
    repeat(parcel);
  else
    ask(parcel);
}

void Correspondent::on_answer(const wire::Header& rsr, Time now) {
  auto* const parcel = find(rsr.s_id, rsr.b_num, rsr.d_id);
  if (parcel == nullptr || !parcel->under_way) return;
  if (rsr.offset == 0) return repeat(*parcel);
  expect(has_pattern(peer_->receive_memory_->bytes(parcel->place), pattern_of(*parcel, mac_)) &&
             peer_->receive_memory_->intact_around(parcel->place),
         "a Block is said to be complete, and its bytes are not there");
  ++confirmed_;
  rest(*parcel, now);
}

// Sometimes repeats a confirmed Block: while the receiver remembers its name, or later.
void Correspondent::rest(Parcel& parcel, Time now) {
  parcel.under_way = false;
  parcel.act_at = dice_.chance(kSome) ? now + dice_.between(0, kRest) : kNever;
}

Time Correspondent::over_at(const Parcel& parcel) {
  return parcel.under_way || parcel.act_at != kNever ? kNever : parcel.sent + kRest;
}

void Correspondent::expire(Time now) {
  for (auto& parcel : parcels_)
    if (now >= parcel.act_at) act(parcel, now);
  std::erase_if(parcels_, [&](const Parcel& parcel) {
    if (now < over_at(parcel)) return false;
    transmit_memory_->give_back(parcel.source);
    peer_->receive_memory_->give_back(parcel.place);
    return true;
  });
  begin_parcels(now);
  schedule(now);
}

void Correspondent::schedule(Time now) {
  if (peer_->state() == State::kWaiting) {
    due_ = now + kFirstPause;
    return;
  }
  due_ = kNever;
  for (const auto& parcel : parcels_) due_ = std::min({due_, parcel.act_at, over_at(parcel)});
  if (can_begin()) due_ = now;
  if (begun_ < workload_.operations || !parcels_.empty()) return;
  due_ = heard_ + kLinger;
  done_ = now >= due_;
}

// --- receiver

void Correspondent::receive(const ReceivedEntry& entry, Time now) {
  if (honest_) heard_ = now;  // a lying peer could keep this side waiting forever
  const auto& h = entry.header;
  expect(entry.source_mac == peer_->mac_ && h.s_port == peer_->info_.local_port,
         "a header names the wrong sender");
  if (h.op() == Op::kData) {
    on_block(entry, now);
  } else {
    expect(has_attached(entry, option_length(h.sync), h.sync), "an option payload is not its own");
    if (h.op() == Op::kRequestState) answer(h);
    if (h.op() == Op::kRequestStateResponse) on_answer(h, now);
  }
  schedule(now);
}

// protocol: 11.5, 11.7
void Correspondent::on_block(const ReceivedEntry& entry, Time now) {
  const auto& h = entry.header;
  auto* const parcel = peer_->find(h.d_id, h.b_num, h.s_id);
  if (parcel == nullptr) return expect(false, "a Block was delivered that is not on its way");
  expect(!h.has(flag::kSilent), "a Block that ought to be silent was delivered");
  expect(Address{h.bufx, h.offset} == receive_memory_->address(parcel->place),
         "a Block's header names the wrong place");
  expect(has_pattern(receive_memory_->bytes(parcel->place), pattern_of(*parcel, peer_->mac_)),
         "a Block arrived with the wrong bytes");
  expect(receive_memory_->intact_around(parcel->place), "a Block wrote beyond its ends");
  expect(has_attached(entry, parcel->append ? wire::kAppendSize : 0, parcel->number),
         "an append is not its Block's");
  expect(!parcel->delivered || now + kLateLook >= *parcel->delivered + UnscheduledBlocks::kMemory,
         "a Block was delivered twice while its name was remembered");
  parcel->delivered = now;
  if (h.has(flag::kSendState)) answer(h);
}

// A Silent Block is not delivered, so the program looks whether its bytes are in memory.
void Correspondent::answer(const wire::Header& question) {
  const auto* const parcel = peer_->find(question.d_id, question.b_num, question.s_id);
  auto entry = request(Op::kRequestStateResponse, question.sync);
  auto& h = entry.header;
  h.d_id = question.s_id;
  h.s_id = question.d_id;
  h.b_num = question.b_num;
  const bool seen =
      parcel != nullptr && (parcel->flags & flag::kSilent) != 0 &&
      has_pattern(receive_memory_->bytes(parcel->place), pattern_of(*parcel, peer_->mac_));
  h.offset = seen || (parcel != nullptr && parcel->delivered) ? 1 : 0;
  requests_.push_back(entry);
}

ConnectionlessSession::ConnectionlessSession(Run& run, const SessionConfig& config)
    : run_(run), config_(config), one_(run, config), other_(run, config) {
  one_.write_to(other_);
  other_.write_to(one_);
}

std::string ConnectionlessSession::overdue(Time now) {
  if (now < config_.workload.patience) return {};
  const auto since = now - config_.workload.patience;
  return one_.waits_since(since) || other_.waits_since(since) ? "a Block is repeated forever" : "";
}

void ConnectionlessSession::check(bool reliable) {
  if (reliable)
    run_.verdict.require(one_.all_confirmed() && other_.all_confirmed(),
                         "Blocks to an endpoint never arrived");
}

}  // namespace

std::unique_ptr<Session> connectionless_session(Run& run, const SessionConfig& config) {
  return std::make_unique<ConnectionlessSession>(run, config);
}

}  // namespace stp::sim
