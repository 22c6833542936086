// SPDX-License-Identifier: BSD-3-Clause
// Two programs that speak level 0: one sends Transfers with RTS and DATA, the other grants Blocks
// with CTS.
#include <algorithm>
#include <deque>
#include <map>

#include "tools/sim/session.h"

namespace stp::sim {
namespace {

// What both sides of a level-0 session must see: the Transfers, one after the other.
struct Level0Plan {
  std::uint64_t session = 0;
  std::vector<std::uint64_t> lengths;
  std::size_t received = 0;  // Transfers whose bytes the receiver found to be correct

  [[nodiscard]] std::uint64_t pattern(std::size_t transfer) const {
    return session << 20 | transfer;
  }
};

class Level0Receiver;

class Level0Sender : public Party {
 public:
  Level0Sender(Run& run, const SessionConfig& config, Level0Plan& plan)
      : Party(run, config), plan_(plan) {}

  void receive(const ReceivedEntry& entry, Time now) override;
  void work(Time) override {}
  bool transmit(SendEntry& out, Time now) override;
  [[nodiscard]] Time next_deadline() const override { return ask_at_; }
  void expire(Time now) override;
  [[nodiscard]] bool wants_close() const override { return current_ == plan_.lengths.size(); }
  // Called before a Transfer counts as sent.
  void confirm_with(const Level0Receiver& receiver) { receiver_ = &receiver; }
  [[nodiscard]] std::size_t finished() const { return current_; }
  [[nodiscard]] Time since() const { return since_; }

 protected:
  void begin(Time now) override { next(now); }
  void stop(int error, Time now) override;

 private:
  [[nodiscard]] std::uint32_t i_id() const { return static_cast<std::uint32_t>(current_) + 1; }
  [[nodiscard]] std::uint64_t length() const { return plan_.lengths[current_]; }
  void next(Time now);
  void begin_transfer(Time now);
  void request();
  void send_block(const wire::Header& cts);
  void ask_later(Time now);

  Level0Plan& plan_;
  const Level0Receiver* receiver_ = nullptr;
  std::size_t current_ = 0;
  std::optional<Lot> source_;
  std::uint32_t r_id_ = wire::kNoId;
  unsigned blocksize_ = 0;
  std::deque<SendEntry> requests_;
  Time ask_at_ = kNever, pause_ = 0, since_ = 0;
};

class Level0Receiver : public Party {
 public:
  Level0Receiver(Run& run, const SessionConfig& config, Level0Plan& plan)
      : Party(run, config), plan_(plan) {}

  void receive(const ReceivedEntry& entry, Time now) override;
  void work(Time) override {}
  bool transmit(SendEntry& out, Time now) override;
  [[nodiscard]] Time next_deadline() const override { return kNever; }
  void expire(Time) override {}
  [[nodiscard]] bool wants_close() const override { return false; }
  // Whether all bytes are in memory, even if the program has not looked yet.
  [[nodiscard]] bool has(std::size_t transfer) const;

 protected:
  void begin(Time) override {}
  void stop(int error, Time now) override;

 private:
  struct Transfer {
    std::uint32_t i_id = 0, r_id = 0;
    std::uint64_t length = 0;
    Lot landing;
    std::uint32_t granted = 0, arrived = 0, blocks = 0;
    std::vector<bool> has;
  };
  void on_request(const wire::Header& rts);
  void on_block(const wire::Header& data);
  void grant(Transfer& transfer);
  void finish(Transfer& transfer);

  Level0Plan& plan_;
  unsigned blocksize_ = 0, window_ = 0;
  std::uint32_t newest_ = 0;                          // the last I_id that was taken on
  std::map<std::uint32_t, Transfer> transfers_;       // not yet complete, by R_id
  std::map<std::uint32_t, std::uint32_t> completed_;  // Blocks, by R_id
  std::deque<SendEntry> requests_;
};

class Level0Session : public Session {
 public:
  Level0Session(Run& run, const SessionConfig& config);
  Party& client() override { return sender_; }
  Party& server() override { return receiver_; }
  [[nodiscard]] std::string overdue(Time now) override;
  void check(bool reliable) override;

 private:
  Run& run_;
  const SessionConfig config_;
  Level0Plan plan_;
  Level0Sender sender_;
  Level0Receiver receiver_;
};

using wire::Op;

constexpr Time kFirstLevel0Pause = 10 * kMillisecond;
constexpr unsigned kMaxBlocks = 64;  // of one Transfer, so that a run stays short

SendEntry request_of(Op op) {
  SendEntry entry{};
  entry.header.op_flags = wire::op_flags(op);
  return entry;
}

std::uint64_t blocks_of(std::uint64_t length, unsigned blocksize) {
  return length == 0 ? 1 : (length + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
}

bool pop(std::deque<SendEntry>& queue, SendEntry& out) {
  if (queue.empty()) return false;
  out = queue.front();
  queue.pop_front();
  return true;
}

// --- sender

void Level0Sender::next(Time now) {
  since_ = now;
  r_id_ = wire::kNoId;
  if (current_ < plan_.lengths.size()) begin_transfer(now);
}

void Level0Sender::begin_transfer(Time now) {
  source_ = transmit_memory_->take(length(), 1, dice_);
  fill_pattern(transmit_memory_->bytes(*source_), plan_.pattern(current_));
  pause_ = kFirstLevel0Pause;
  request();
  ask_later(now);
}

void Level0Sender::request() {
  auto entry = request_of(Op::kRequestToSend);
  entry.header.param = 2;
  entry.header.mx = static_cast<std::uint16_t>(workload_.max_block);
  entry.header.set_t_len(length());
  entry.header.d_id = wire::kNoId;
  entry.header.s_id = i_id();
  requests_.push_back(entry);
}

void Level0Sender::ask_later(Time now) {
  ask_at_ = now + pause_;
  pause_ = std::min(2 * pause_, kSecond);
}

// Repeats the RTS until a CTS has arrived; later asks with RS how much the receiver has.
void Level0Sender::expire(Time now) {
  ask_later(now);
  if (!requests_.empty()) return;  // they wait for Slots
  if (r_id_ == wire::kNoId) return request();
  auto entry = request_of(Op::kRequestState);
  entry.header.sync = dice_.next();
  entry.header.b_num = wire::kNoId;
  entry.header.d_id = r_id_;
  entry.header.s_id = i_id();
  requests_.push_back(entry);
}

void Level0Sender::receive(const ReceivedEntry& entry, Time now) {
  const auto& h = entry.header;
  if (wants_close() || h.d_id != i_id()) return;
  if (h.op() == Op::kClearToSend) {
    if (r_id_ == wire::kNoId) {
      r_id_ = h.s_id;
      blocksize_ = h.param;
      pause_ = kFirstLevel0Pause;
      ask_later(now);
    }
    if (h.s_id == r_id_ && h.param == blocksize_) send_block(h);
  } else if (h.op() == Op::kRequestStateResponse && h.s_id == r_id_ &&
             h.offset == blocks_of(length(), blocksize_)) {
    expect(receiver_->has(current_),
           "a Transfer is said to be complete before its bytes are there");
    transmit_memory_->give_back(*source_);  // overwrites the bytes: no repeat may need them
    source_.reset();
    requests_.clear();
    ask_at_ = kNever;
    ++current_;
    next(now);
  }
}

// Sends the Block, or its end from the STU that holds the byte F_Offset.
void Level0Sender::send_block(const wire::Header& cts) {
  const auto from = std::uint64_t{cts.b_num} << blocksize_;
  if (from > length() || (from == length() && length() != 0)) return;
  const auto size = std::min(std::uint64_t{1} << blocksize_, length() - from);
  const auto stu = stu_size_log2(info_.remote_max_stu, info_.local_max_stu, info_.remote_bufsize);
  const auto start = Address{cts.bufx, cts.offset}.linear(info_.remote_bufsize);
  const auto first = ((start + cts.sync) >> stu) - (start >> stu);
  const auto skipped = first == 0 ? 0 : (((start >> stu) + first) << stu) - start;
  if (skipped > size) return;
  auto entry = request_of(Op::kData);
  const auto to = Address::from_linear(start + skipped, info_.remote_bufsize);
  auto source = *source_;
  source.start += from + skipped;
  const auto address = transmit_memory_->address(source);
  entry.header.param = static_cast<std::uint16_t>(first);
  entry.header.mx = cts.mx;
  entry.header.bufx = to.bufx;
  entry.header.offset = to.offset;
  entry.header.sync = dice_.next();
  entry.header.b_num = cts.b_num;
  entry.header.d_id = cts.s_id;
  entry.header.s_id = i_id();
  entry.length = static_cast<std::uint32_t>(size - skipped);
  entry.bufx = address.bufx;
  entry.offset = address.offset;
  requests_.push_back(entry);
}

bool Level0Sender::transmit(SendEntry& out, Time) {
  return pop(requests_, out);
}

void Level0Sender::stop(int, Time) {
  ask_at_ = kNever;
}

// --- receiver

void Level0Receiver::receive(const ReceivedEntry& entry, Time) {
  if (entry.header.op() == Op::kRequestToSend) on_request(entry.header);
  if (entry.header.op() == Op::kData) on_block(entry.header);
}

void Level0Receiver::on_request(const wire::Header& rts) {
  if (rts.s_id <= newest_) return;  // a repeated RTS: the Node repeats its grants
  const auto length = rts.t_len();
  if (length > receive_memory_->largest()) return;
  const auto landing = receive_memory_->take(length, 1, dice_);
  if (!landing) return;
  newest_ = rts.s_id;
  blocksize_ = static_cast<unsigned>(dice_.between(wire::kMinBlocksize, rts.mx));
  while (blocks_of(length, blocksize_) > kMaxBlocks) ++blocksize_;
  window_ = static_cast<unsigned>(dice_.between(1, 4));
  const auto r_id = dice_.next() | 1;
  const auto blocks = static_cast<std::uint32_t>(blocks_of(length, blocksize_));
  auto& transfer = transfers_[r_id] = {rts.s_id, r_id, length, *landing,
                                       0,        0,    blocks, std::vector<bool>(blocks)};
  while (transfer.granted < std::min(transfer.blocks, window_)) grant(transfer);
}

void Level0Receiver::grant(Transfer& transfer) {
  auto entry = request_of(Op::kClearToSend);
  auto place = transfer.landing;
  place.start += std::size_t{transfer.granted} << blocksize_;
  const auto at = receive_memory_->address(place);
  entry.header.param = static_cast<std::uint16_t>(blocksize_);
  entry.header.mx = mx_;
  entry.header.bufx = at.bufx;
  entry.header.offset = at.offset;
  entry.header.b_num = transfer.granted++;
  entry.header.d_id = transfer.i_id;
  entry.header.s_id = transfer.r_id;
  requests_.push_back(entry);
}

void Level0Receiver::on_block(const wire::Header& data) {
  const auto found = transfers_.find(data.d_id);
  if (found == transfers_.end())
    return expect(!completed_.contains(data.d_id), "a Block was delivered twice");
  auto& transfer = found->second;
  if (data.b_num >= transfer.granted)
    return expect(false, "a Block was delivered that was not granted");
  if (transfer.has[data.b_num]) return expect(false, "a Block was delivered twice");
  auto place = transfer.landing;
  place.start += std::size_t{data.b_num} << blocksize_;
  expect(Address{data.bufx, data.offset} == receive_memory_->address(place),
         "a Block's header names the wrong place");
  transfer.has[data.b_num] = true;
  if (transfer.granted < transfer.blocks) grant(transfer);
  if (++transfer.arrived == transfer.blocks) finish(transfer);
}

void Level0Receiver::finish(Transfer& transfer) {
  const auto number = transfer.i_id - 1;
  expect(transfer.length == plan_.lengths[number] &&
             has_pattern(receive_memory_->bytes(transfer.landing), plan_.pattern(number)),
         "a Transfer arrived with the wrong bytes");
  run_.verdict.require(receive_memory_->intact_around(transfer.landing),
                       "a Transfer wrote outside what was granted");
  plan_.received = std::max<std::size_t>(plan_.received, transfer.i_id);
  receive_memory_->give_back(transfer.landing);
  completed_[transfer.r_id] = transfer.blocks;
  transfers_.erase(transfer.r_id);
}

bool Level0Receiver::has(std::size_t transfer) const {
  for (const auto& [r_id, t] : transfers_)
    if (t.i_id == transfer + 1)
      return has_pattern(receive_memory_->bytes(t.landing), plan_.pattern(transfer));
  return plan_.received > transfer;
}

bool Level0Receiver::transmit(SendEntry& out, Time) {
  return pop(requests_, out);
}

void Level0Receiver::stop(int, Time) {
  for (const auto& [r_id, transfer] : transfers_) {
    run_.verdict.require(receive_memory_->intact_around(transfer.landing),
                         "a Transfer wrote outside what was granted");
    receive_memory_->give_back(transfer.landing);
  }
  transfers_.clear();
}

// --- session

Level0Session::Level0Session(Run& run, const SessionConfig& config)
    : run_(run), config_(config), sender_(run, config, plan_), receiver_(run, config, plan_) {
  sender_.confirm_with(receiver_);
  plan_.session = config.number;
  for (unsigned i = 0; i < config.workload.operations; ++i)
    plan_.lengths.push_back(
        run.dice.chance(kAlways / 10) ? 0 : run.dice.magnitude(1, config.workload.longest));
}

std::string Level0Session::overdue(Time now) {
  if (sender_.state() != Party::State::kOpen || now - sender_.since() < config_.workload.patience)
    return {};
  return "Transfer " + std::to_string(sender_.finished()) + " of a level-0 session never ends";
}

void Level0Session::check(bool reliable) {
  if (reliable)
    run_.verdict.require(sender_.finished() == plan_.lengths.size() && sender_.error() == 0,
                         "a level-0 session was cut short without a reason");
}

}  // namespace

std::unique_ptr<Session> level0_session(Run& run, const SessionConfig& config) {
  return std::make_unique<Level0Session>(run, config);
}

}  // namespace stp::sim
