// SPDX-License-Identifier: BSD-3-Clause
// Two programs that speak level 0: one sends Transfers with RTS and DATA, the other grants Blocks
// with CTS.
#pragma once

#include <deque>
#include <map>

#include "tools/sim/session.h"

namespace stp::sim {

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

}  // namespace stp::sim
