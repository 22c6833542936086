// SPDX-License-Identifier: BSD-3-Clause
// Derives from a trace what the users of one station must do: where they listen and connect, their
// sizes, and which memory they grant.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "stp/node/node.h"
#include "tools/replay/check/endpoint.h"
#include "tools/replay/play/recording.h"

namespace stp::replay {

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

 private:
  using OpenRequests = std::map<std::pair<MacAddr, std::uint32_t>, std::size_t>;
  void note_connection(std::size_t at, OpenRequests& open);
  void note_request(std::size_t at);
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

}  // namespace stp::replay
