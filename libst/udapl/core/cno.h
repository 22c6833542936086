// SPDX-License-Identifier: BSD-3-Clause
// A Consumer Notification Object: reports which of several EVDs has new events.
#pragma once

#include <deque>
#include <functional>

#include "libst/udapl/core/evd.h"

namespace stp::udapl {

class Cno : public Object {
 public:
  // Called once, with the EVD's handle, from a thread of the IA. Empty: no agent.
  using Agent = std::function<void(void*)>;

  explicit Cno(Ia& ia) : Object(Kind::kCno, ia) {}
  ~Cno() override;
  static Result create(Ia& ia, Agent agent, std::shared_ptr<Cno>& out);
  // Also makes a descriptor that is readable while a trigger waits.
  static Result create_with_fd(Ia& ia, int& fd, std::shared_ptr<Cno>& out);
  Result free();
  Result modify_agent(Agent agent);
  // `evd`: the handle of the EVD that triggered.
  Result wait(std::uint32_t timeout, void*& evd);
  // Takes the next trigger without waiting. kQueueEmpty: there is none.
  Result take_trigger(void*& evd);
  // Whether an agent from create() or modify_agent() is set and no trigger has used it up.
  [[nodiscard]] bool has_agent();
  [[nodiscard]] int fd() const { return fd_; }

  // ---- under the IA's mutex ----
  void trigger(const std::shared_ptr<Evd>& evd);
  void forget(const Evd& evd);
  void abort();
  void abandon() override;

 private:
  void* next();

  Agent agent_;
  int fd_ = -1;
  std::deque<std::shared_ptr<Evd>> triggered_;
  std::deque<Progress::Waiter*> waiters_;
};

}  // namespace stp::udapl
