// SPDX-License-Identifier: BSD-3-Clause
// What the users at one station have to be like for a trace to come out as it did: whom they listen
// to and connect to, with which sizes, and which memory they grant.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "stp/node/node.h"
#include "tools/replay/endpoint_sizes.h"
#include "tools/replay/play/recording.h"

namespace stp::replay {

// One endpoint: of a connection that the station asks for, of a UPort that it listens on, or one
// without connections.
struct UserPlan {
  EndpointConfig config;
  std::optional<std::uint32_t> listens;  // on this UPort
  // Receive buffers that its CTS, MRA and GET name: the first of a run, and the one behind it.
  // Runs that nearly touch are one.
  std::map<std::uint64_t, std::uint64_t> granted;
  std::uint64_t sent_bytes = 0;  // of its own DATA

  // An Mx is a part of one run, so all that is granted under it goes into one.
  void grant(std::uint16_t mx, std::uint64_t first, std::uint64_t end);

 private:
  std::map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> by_mx_;
};

// Requests that one user may have waiting.
inline constexpr std::uint32_t kCredits = 1024;

// Bytes that a CTS, MRA or GET speaks of; no more than need be believed.
std::uint64_t granted_bytes(const wire::Header& h);

// Whether it is a GET that DATA answers.
bool asks_for_answer(const wire::Header& h);

// What happens to an RC.
enum class Welcome { kAccept, kRefuse, kIgnore };

class Plan {
 public:
  Plan(const std::deque<Recorded>& trace, const MacAddr& station);

  [[nodiscard]] bool sends(std::size_t at) const;
  [[nodiscard]] bool receives(std::size_t at) const;
  std::vector<std::shared_ptr<UserPlan>>& users() { return users_; }
  // Who asks for a connection with that Key.
  [[nodiscard]] std::shared_ptr<UserPlan> asker(std::uint32_t key) const;
  [[nodiscard]] Welcome welcome(std::size_t at) const;
  // Whether the RD at that place is answered by a DA with its names.
  [[nodiscard]] bool is_answered(std::size_t at) const;
  // Whether a GET is soon taken back, or its connection ended.
  [[nodiscard]] bool is_given_up(std::size_t get) const;
  [[nodiscard]] bool is_answered_whole(std::size_t get) const;
  // Whether DATA of the ids of the GET at that place goes where that asked for it.
  [[nodiscard]] bool is_answer(std::size_t at, const wire::Header& data) const;
  // Whether DATA belongs to a Block of which the trace lacks STUs: no request can be made of it.
  [[nodiscard]] bool is_torn(std::size_t at) const;
  // What the station sends on a connection at whose end it arrives: it was on its way already.
  [[nodiscard]] std::vector<std::size_t> on_its_way(std::size_t at) const;
  // The RD, if the user of the connection has closed it when this frame arrives: the station leaves
  // the frame unanswered, and the RD is next.
  [[nodiscard]] const wire::Frame* closed_before(std::size_t at) const;
  // The frames of one DATA request, from its first; empty: not a request (a Node's answer to a
  // GET), or none that a Node can be asked for.
  [[nodiscard]] std::vector<std::size_t> request_at(std::size_t at) const;
  // DATA that answers the GET at that place, from there on.
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
  // The GET that DATA answers.
  [[nodiscard]] std::optional<std::size_t> get_of(std::size_t at) const;
  // As far as the trace has been looked at.
  [[nodiscard]] bool at_endpoint(std::size_t at) const;

  const std::deque<Recorded>& trace_;
  MacAddr station_;
  std::vector<std::shared_ptr<UserPlan>> users_;
  std::map<std::uint16_t, std::shared_ptr<UserPlan>> by_port_;  // whose it is, as the trace goes
  std::map<std::uint32_t, std::shared_ptr<UserPlan>> by_key_;   // of its RC
  std::map<std::uint32_t, std::shared_ptr<UserPlan>> by_uport_;
  std::map<std::size_t, Welcome> welcomes_;
  std::map<Line, unsigned> peer_bufsizes_;
  // Where the station was asked by a GET, by who asked, R_id and G_num.
  std::map<std::tuple<Line, std::uint32_t, std::uint32_t>, std::vector<std::size_t>> gets_;
};

}  // namespace stp::replay
