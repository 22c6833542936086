// SPDX-License-Identifier: BSD-3-Clause
// A live Node whose users make the same decisions as the trace's users.
#pragma once

#include <set>

#include "stp/channel/user_side.h"
#include "tools/replay/play/plan.h"
#include "tools/replay/play/subject.h"
#include "tools/replay/play/unseen.h"

namespace stp::replay {

// Memory for a Node: zeroed and page-aligned.
class PageMemory {
 public:
  PageMemory() = default;
  // Throws std::bad_alloc.
  explicit PageMemory(std::size_t size);
  [[nodiscard]] MutableBytes all() const { return {bytes_.get(), bytes_.get_deleter().size}; }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Unmap> bytes_;
};

// Which bytes of a piece of memory are known. As long as none is, it needs none itself.
class KnownBytes {
 public:
  KnownBytes() = default;
  explicit KnownBytes(std::size_t size) : bits_((size + 7) / 8), size_(size) {}
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool has(std::size_t at) const {
    return (bits_.all()[at / 8] & bit(at)) != std::byte{0};
  }
  void add(std::size_t at) { bits_.all()[at / 8] |= bit(at); }
  void forget(std::size_t from, std::size_t length);

 private:
  static std::byte bit(std::size_t at) { return std::byte{1} << (at % 8); }
  PageMemory bits_;
  std::size_t size_ = 0;
};

class NodeSubject final : public Subject {
 public:
  NodeSubject(const std::deque<Recorded>& trace, const MacAddr& station, Renaming& names,
              Output output);

  // Why the trace cannot be played: "" if it can.
  [[nodiscard]] const std::string& refused() const { return refused_; }
  // Texts about requests of the trace's users that the Node refused.
  [[nodiscard]] const std::vector<std::string>& troubles() const { return troubles_; }
  // Texts about what the trace does not show.
  [[nodiscard]] std::vector<std::string> notes() const;

  [[nodiscard]] bool wants_credit() const override { return true; }
  void advance(std::int64_t now) override;
  void deliver(std::size_t at, Bytes frame) override;
  bool decide(std::size_t at) override;

 private:
  class Keys final : public Random {
   public:
    std::uint32_t next() override { return state_ = state_ * 1'664'525 + 1'013'904'223; }

   private:
    std::uint32_t state_ = 0x53545021;
  };
  // Adjacent receive buffers, mapped as one.
  struct Landing {
    std::uint64_t start = 0;  // linear address of the first byte
    RegionId region = kNoneId;
    PageMemory memory;
    KnownBytes known;                           // bytes whose value is known from the trace
    std::map<std::uint16_t, std::uint16_t> mx;  // live Mx by the trace's Mx
  };
  struct User {
    std::shared_ptr<UserPlan> plan;
    EndpointId endpoint = kNoneId;
    std::vector<Landing> landings;
    PageMemory transmit_memory;
    std::uint64_t sent = 0;
    bool listening = false;

    // The Landing of a linear address, or nullptr if it is in no mapped buffer.
    Landing* landing_of(std::uint64_t address);
  };
  struct Vc {
    VcId id = kNoneId;
    User* user = nullptr;
    UserChannel channel;
    bool closing = false;
    // The newest grants, by operation, R_id and B_num.
    std::map<std::tuple<wire::Op, std::uint32_t, std::uint32_t>, wire::Header> grants;
  };

  void make_user(const std::shared_ptr<UserPlan>& plan);
  void open_port(User& user);
  bool has_room();
  void map_memory(User& user);
  RegionId map(const User& user, Direction direction, std::uint64_t first,
               const PageMemory& memory);
  void welcome_by(const wire::Header& rc, Welcome welcome);
  void pump();
  void read_queues();
  void connect(std::size_t at);
  void welcome(std::size_t at);
  void close(Vc& vc, const wire::Frame& rd);
  void forget_gone(std::size_t at);
  bool decide_now(std::size_t at);
  void request(Vc& vc, std::size_t at);
  void forget_bytes(Vc& vc, const wire::Header& grant);
  bool is_owed(const wire::Frame& sent) const;
  bool fill_data(Vc& vc, std::size_t at, SendEntry& entry);
  std::uint16_t live_mx(Vc& vc, const wire::Header& h);
  void prepare_get(std::size_t at);
  void learn_data(std::size_t at);
  Vc* vc_of(std::uint16_t own_port);
  std::byte* channel_of(const User& user);
  void trouble(std::size_t at, const std::string& what);

  const std::deque<Recorded>& trace_;
  Plan plan_;
  Shortage shortage_;
  GivenUp given_up_;
  MacAddr station_;
  Renaming& names_;
  Output output_;
  Keys keys_;
  Node node_;
  static constexpr Time kLongestGap = 3600 * kSecond;
  Time now_ = 0;      // the Node's
  Time skipped_ = 0;  // how far the trace's clock is ahead of now_
  std::vector<std::unique_ptr<User>> users_;
  std::vector<PageMemory> channels_;  // by cookie
  std::map<std::uint16_t, Vc> vcs_;   // by live Port
  std::set<std::size_t> requested_;   // STUs that were requested with the first of their Block
  std::vector<std::string> troubles_;
  std::string refused_;
  // GETs that the Node answers and the trace's station did not, by requester, R_id and G_num.
  std::map<std::tuple<MacAddr, std::uint16_t, std::uint32_t, std::uint32_t>, std::size_t>
      unanswered_;
  std::vector<std::uint64_t> torn_;      // frames of Blocks that lack STUs
  std::vector<std::uint64_t> no_slot_;   // frames that found no Slot at the station
  std::vector<std::uint64_t> ignored_;   // frames of connections that the station has given up
  std::map<std::size_t, bool> decided_;  // frames decided early, and whether that succeeded
};

}  // namespace stp::replay
