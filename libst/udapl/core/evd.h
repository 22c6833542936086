// SPDX-License-Identifier: BSD-3-Clause
// An Event Dispatcher: a bounded queue of events of any streams, with at most one waiter.
#pragma once

#include <map>

#include "libst/udapl/core/event.h"
#include "libst/udapl/core/flags.h"
#include "libst/udapl/core/object.h"
#include "libst/udapl/core/progress.h"
#include "libst/udapl/core/result.h"
#include "libst/udapl/core/ring.h"

namespace stp::udapl {

class Cno;

class Evd : public Object {
 public:
  static constexpr int kMaxLength = 1 << 20;
  static constexpr std::uint32_t kForEver = ~0U;

  Evd(Ia& ia, int length, std::shared_ptr<Cno> cno, Flags streams)
      : Object(Kind::kEvd, ia), cno_(std::move(cno)), streams_(streams), length_(length) {}
  static Result create(Ia& ia, int length, const std::shared_ptr<Cno>& cno, Flags streams,
                       std::shared_ptr<Evd>& out);
  Result free();

  // dat_evd_wait, exactly as its manual page specifies. `timeout` in microseconds.
  Result wait(std::uint32_t timeout, int threshold, Event& event, int& nmore);
  Result dequeue(Event& event);
  Result post_software(void* pointer);
  Result resize(int length);
  Result modify_cno(const std::shared_ptr<Cno>& cno);
  Result set_enabled(bool enabled);
  Result set_waitable(bool waitable);

  struct Param {
    int length;
    bool enabled, waitable;
    std::shared_ptr<Cno> cno;
    Flags streams;
    Flags config;  // of the completion streams that feed it
  };
  Result query(Param& out);

  // ---- under the IA's mutex ----
  void push(Event event);
  // False: another event would overflow the queue.
  [[nodiscard]] bool has_place() const {
    return events_.size() < static_cast<std::size_t>(length_);
  }
  [[nodiscard]] Flags streams() const { return streams_; }
  // Attaches a completion stream with the EP attribute `flag`. kInvalidParameter: it cannot be
  // combined with the other streams.
  Result attach(Flags flag);
  void detach(Flags flag);
  // Attaches a stream of another type.
  Result attach_other();
  void detach_other();
  void abort();

 private:
  [[nodiscard]] Result check_wait(int threshold) const;
  [[nodiscard]] bool controlled() const;
  [[nodiscard]] bool allows(Flags flag) const;
  Event take();
  void overflow();

  Ring<Event> events_;
  std::shared_ptr<Cno> cno_;
  const Flags streams_;
  int length_;
  bool enabled_ = true, waitable_ = true, overflown_ = false;
  std::map<Flags, unsigned> completion_streams_;
  unsigned other_streams_ = 0;
  Progress::Waiter* waiter_ = nullptr;
  int threshold_ = 0;
  bool notified_ = false;  // since the waiter went to sleep
};

}  // namespace stp::udapl
