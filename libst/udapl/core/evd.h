// SPDX-License-Identifier: BSD-3-Clause
// Events, and the objects that report them: EVDs and CNOs.
#pragma once

#include <stp/managed.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>

#include "libst/udapl/core/object.h"
#include "libst/udapl/core/ring.h"
#include "stp/base/mutex.h"

namespace stp::udapl {

using Deadline = std::chrono::steady_clock::time_point;

// One queue of the managed API feeds all EVDs of an IA. One of the waiting threads leads: it sleeps
// in the queue and dispatches events. The others sleep until it wakes them, and one of them leads
// when it leaves. So events are dispatched in order, and a single waiter has the latency of the
// managed API.
class Progress {
 public:
  using Handler = std::function<void(const stm_event_t&)>;
  struct Waiter {
    std::atomic<std::uint32_t> word{0};
  };

  explicit Progress(Handler handler) : handler_(std::move(handler)) {}
  void set_queue(stm_queue_t queue) { queue_ = queue; }
  [[nodiscard]] stm_queue_t queue() const { return queue_; }

  // Dispatches available events unless there is a leader. Under the lock.
  void poll();
  // Waits until done() returns true; calls it under the lock. Returns 0, -ETIMEDOUT or -EINTR.
  int wait(Lock& lock, Waiter& waiter, const std::function<bool()>& done, Deadline deadline);
  // Makes `waiter` check its condition again.
  void wake(Waiter& waiter);
  void wake_all();
  [[nodiscard]] bool idle() const { return waiters_.empty(); }

 private:
  int lead(Lock& lock, Deadline deadline);
  static int follow(Lock& lock, Waiter& waiter, Deadline deadline);
  void hand_over();

  const Handler handler_;
  stm_queue_t queue_ = nullptr;
  Waiter* leader_ = nullptr;
  std::list<Waiter*> waiters_;
};

// Events of an EVD. Numbers and statuses are those of both DAT interfaces.
enum class EventNumber : std::uint32_t {
  kNone = 0,
  kDtoCompletion = 0x00001,
  kRmrBindCompletion = 0x01001,
  kConnectionRequest = 0x02001,
  kEstablished = 0x04001,
  kPeerRejected = 0x04002,
  kNonPeerRejected = 0x04003,
  kAcceptCompletionError = 0x04004,
  kDisconnected = 0x04005,
  kBroken = 0x04006,
  kTimedOut = 0x04007,
  kUnreachable = 0x04008,
  kEvdOverflow = 0x08001,
  kIaCatastrophic = 0x08002,
  kEpBroken = 0x08003,
  kProviderInternalError = 0x08005,
  kSoftware = 0x10001,
};

enum class DtoStatus : std::uint32_t {
  kSuccess = 0,
  kFlushed = 1,
  kLocalLength = 2,
  kLocalProtection = 4,
  kRemoteAccess = 6,
  kRemoteResponder = 7,
  kTransport = 8,
  kReceiverNotReady = 9,
};

enum class Dto : std::uint8_t { kSend, kRdmaWrite, kRdmaRead, kReceive, kBind };

// Why an asynchronous error: of an EP, of an SRQ, of an EVD, of an IA.
enum class AsyncReason : std::uint8_t {
  kOther,
  kSoftHighWatermark,
  kLowWatermark,
  kOverflow,
  kCatastrophic
};

class Srq;

struct Event {
  EventNumber number = EventNumber::kNone;
  bool notify = true;      // unblocks a waiter, triggers the CNO
  void* handle = nullptr;  // EP, RMR, service point, or what the error is of
  // DTO, bind
  Dto dto = Dto::kSend;
  DtoStatus status = DtoStatus::kSuccess;
  AsyncReason reason = AsyncReason::kOther;
  std::uint64_t cookie = 0;
  std::uint64_t length = 0;
  // connection: the requester's view of what the peer sent along; request: its CR and qualifier
  const std::byte* private_data = nullptr;
  std::size_t private_size = 0;
  void* cr = nullptr;
  std::uint64_t conn_qual = 0;
  void* pointer = nullptr;  // software
  // A buffer of that SRQ: it counts as outstanding until the event is taken.
  std::shared_ptr<Srq> srq;

  // Whoever adds one to a queue fills in all of it.
  void clear() { srq.reset(); }
};

class Cno;

// An Event Dispatcher: a bounded queue of events of any streams, with at most one waiter.
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
  // dat_evd_dequeue: the oldest event, and that the consumer has it now.
  Result look(const Event*& event);
  void took();
  void push(Event&& event);
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

// A Consumer Notification Object: reports which of several EVDs has new events.
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
