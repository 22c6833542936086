// SPDX-License-Identifier: BSD-3-Clause
// A live Node whose users make the same decisions as the trace's users.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "stp/channel/rings.h"
#include "stp/node/node.h"
#include "tools/replay/check/endpoint.h"
#include "tools/replay/play/subject.h"
#include "tools/replay/play/unseen.h"

namespace stp::replay {

// Derives from a trace what the users of one station must do: where they listen and connect, their
// sizes, and which memory they grant.

// One endpoint: for a connection that the station requests, for a UPort on which it listens, or
// without connections.
struct UserPlan {
  EndpointConfig config;
  std::optional<std::uint32_t> listens;  // on this UPort
  // Runs of receive buffers that its CTS, MRA and GET name: the first buffer of each run, and the
  // one after its last. Runs that are close to each other are merged.
  std::map<std::uint64_t, std::uint64_t> granted;
  std::uint64_t sent_bytes = 0;  // of its own DATA

  // Adds buffers. All buffers of one Mx go into one run.
  void grant(std::uint16_t mx, std::uint64_t first, std::uint64_t end);

 private:
  std::map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> by_mx_;
};

// The most waiting requests of one user.
inline constexpr std::uint32_t kCredits = 1024;

// The bytes that a CTS, MRA or GET covers, with a limit for hostile traces.
std::uint64_t granted_bytes(const wire::Header& h);

// Whether it is a GET that is answered by DATA.
bool asks_for_answer(const wire::Header& h);

// What happens to an RC.
enum class Welcome { kAccept, kRefuse, kIgnore };

class Plan {
 public:
  Plan(const std::deque<Recorded>& trace, const MacAddr& station);

  [[nodiscard]] bool sends(std::size_t at) const;
  [[nodiscard]] bool receives(std::size_t at) const;
  std::vector<std::shared_ptr<UserPlan>>& users() { return users_; }
  // The user that requests a connection with that Key.
  [[nodiscard]] std::shared_ptr<UserPlan> asker(std::uint32_t key) const;
  [[nodiscard]] Welcome welcome(std::size_t at) const;
  // Whether the RD at that place is answered by a DA with the same names.
  [[nodiscard]] bool is_answered(std::size_t at) const;
  // Whether a GET is soon cancelled, or its connection ends.
  [[nodiscard]] bool is_given_up(std::size_t get) const;
  [[nodiscard]] bool is_answered_whole(std::size_t get) const;
  // Whether DATA with the ids of the GET at that place goes to the memory that the GET names.
  [[nodiscard]] bool is_answer(std::size_t at, const wire::Header& data) const;
  // Whether DATA belongs to a Block with missing STUs, for which no request can be made.
  [[nodiscard]] bool is_torn(std::size_t at) const;
  // Frames that the station had sent before the RD at that place arrived, but that are captured
  // after it.
  [[nodiscard]] std::vector<std::size_t> on_its_way(std::size_t at) const;
  // Returns the station's RD if its user had closed the connection before this frame arrived: the
  // station does not answer the frame and sends the RD next.
  [[nodiscard]] const wire::Frame* closed_before(std::size_t at) const;
  // The frames of one DATA request, from its first. Empty if it is no request (a Node's answer to a
  // GET), or none that a Node can carry out.
  [[nodiscard]] std::vector<std::size_t> request_at(std::size_t at) const;
  // The later DATA that answers the GET at that place.
  [[nodiscard]] std::vector<std::size_t> answer_to(std::size_t at) const;
  [[nodiscard]] std::optional<std::uint16_t> vlan() const;
  // Whether the station pads its RC and CA.
  // protocol: 13.20
  [[nodiscard]] bool pads() const;

 private:
  using OpenRequests = std::map<std::pair<MacAddr, std::uint32_t>, std::size_t>;
  void note_connection(std::size_t at, OpenRequests& open);
  void note_request(std::size_t at);
  // The DA to the RD at that place, with its names, if it follows within so many nanoseconds.
  [[nodiscard]] std::optional<std::size_t> answer_to_rd(std::size_t at, std::int64_t within) const;
  void find_endpoints();
  void learn_sizes(std::uint16_t port, UserPlan& user) const;
  [[nodiscard]] const wire::Header& header(std::size_t at) const {
    return trace_[at].decoded.frame.header;
  }
  [[nodiscard]] Line line(std::size_t at) const { return line_of(trace_[at], station_); }
  // The GET that the DATA at that place answers.
  [[nodiscard]] std::optional<std::size_t> get_of(std::size_t at) const;
  // Known for the part of the trace that has been read so far.
  [[nodiscard]] bool at_endpoint(std::size_t at) const;

  const std::deque<Recorded>& trace_;
  MacAddr station_;
  std::vector<std::shared_ptr<UserPlan>> users_;
  std::map<std::uint16_t, std::shared_ptr<UserPlan>> by_port_;  // changes along the trace
  std::map<std::uint32_t, std::shared_ptr<UserPlan>> by_key_;   // of its RC
  std::map<std::uint32_t, std::shared_ptr<UserPlan>> by_uport_;
  std::map<std::size_t, Welcome> welcomes_;
  std::map<Line, unsigned> peer_bufsizes_;
  // Places of GETs to the station, by requester, R_id and G_num.
  std::map<std::tuple<Line, std::uint32_t, std::uint32_t>, std::vector<std::size_t>> gets_;
};

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
