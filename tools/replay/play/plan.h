// SPDX-License-Identifier: BSD-3-Clause
// What the users at one station have to be like for a trace to come out as it did: whom they listen
// to and connect to, with which sizes, and which memory they grant.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "stp/node.h"
#include "tools/replay/play/recording.h"

namespace stp::replay {

// One endpoint: of a connection that the station asks for, or of a UPort that it listens on.
struct UserPlan {
  EndpointConfig config;
  std::optional<std::uint32_t> listens;  // on this UPort
  // Receive buffers that its CTS, MRA and GET name.
  std::uint64_t first_bufx = ~std::uint64_t{0}, end_bufx = 0;
  std::uint64_t sent_bytes = 0;  // of its own DATA

  [[nodiscard]] bool receives() const { return first_bufx < end_bufx; }
};

// What happens to an RC.
enum class Welcome { kAccept, kRefuse, kIgnore };

class Plan {
 public:
  Plan(const std::deque<Recorded>& trace, const MacAddr& station);

  [[nodiscard]] bool sends(std::size_t at) const;
  [[nodiscard]] bool receives(std::size_t at) const;
  std::vector<std::shared_ptr<UserPlan>>& users() { return users_; }
  // Whose Port it is; nullptr: that of no connection which began in this trace.
  std::shared_ptr<UserPlan> user_of(std::uint16_t own_port) const;
  [[nodiscard]] Welcome welcome(std::size_t at) const;
  // The frames of one DATA request, from its first; empty: not a request (a Node's answer to a
  // GET), or none that a Node can be asked for.
  [[nodiscard]] std::vector<std::size_t> request_at(std::size_t at) const;
  // DATA that answers the GET at that place, from there on.
  [[nodiscard]] std::vector<std::size_t> answer_to(std::size_t at) const;
  [[nodiscard]] std::optional<std::uint16_t> vlan() const;

 private:
  void find_users();
  void note_grant(const Decoded& frame);
  [[nodiscard]] const wire::Header& header(std::size_t at) const {
    return trace_[at].decoded.frame.header;
  }
  [[nodiscard]] bool answers_get(std::size_t at) const;

  const std::deque<Recorded>& trace_;
  MacAddr station_;
  std::vector<std::shared_ptr<UserPlan>> users_;
  std::map<std::uint16_t, std::shared_ptr<UserPlan>> by_port_;
  std::map<std::uint32_t, std::shared_ptr<UserPlan>> by_uport_;
  std::map<std::size_t, Welcome> welcomes_;
  // (peer's Port, R_id, G_num) of the GETs that the station was asked.
  std::set<std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>> gets_;
};

}  // namespace stp::replay
