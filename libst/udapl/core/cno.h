// SPDX-License-Identifier: BSD-3-Clause
// A Consumer Notification Object: tells which of several EVDs has something new.
#pragma once

#include <deque>
#include <functional>

#include "libst/udapl/core/evd.h"

namespace stp::udapl {

class Cno : public Object {
 public:
  // Called once, with the EVD's handle, from a thread of the IA; empty: nobody.
  using Agent = std::function<void(void*)>;

  explicit Cno(Ia& ia) : Object(Kind::kCno, ia) {}
  ~Cno() override;
  static Result create(Ia& ia, Agent agent, std::shared_ptr<Cno>& out);
  // With a descriptor that is readable while a trigger waits.
  static Result create_with_fd(Ia& ia, int& fd, std::shared_ptr<Cno>& out);
  Result free();
  Result modify_agent(Agent agent);
  // `evd`: the handle of the one that triggered.
  Result wait(std::uint32_t timeout, void*& evd);
  // The next trigger, without waiting: kQueueEmpty where there is none.
  Result take_trigger(void*& evd);
  // Of those that create() or modify_agent() gave, and that no trigger has used up.
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
