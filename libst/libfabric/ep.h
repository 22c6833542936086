// SPDX-License-Identifier: BSD-3-Clause
// An endpoint of FI_EP_MSG: one connection of the managed API.
//
// A message of up to kShortMost bytes is one of the managed API's, which lands in a buffer of the
// receiving endpoint and is copied from there; so receives need no registered memory, may have
// several segments, and immediate data has its place behind the bytes. A longer one is announced by
// a short one; its receiver reads it into the memory of the receive (stm_read), one at a time, so
// that the sender knows which is meant.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/receives.h"
#include "libst/libfabric/wire.h"

namespace stp::fi {

class Cntr;
class Cq;
class Domain;
class Eq;
class Srx;
struct Connreq;

// A flag of ours: of fi_inject and the like, of which nothing is told, not even an error.
inline constexpr std::uint64_t kUntold = std::uint64_t{1} << 63;

// What a call asks for.
struct Request {
  Segments segments;
  void* context = nullptr;
  std::uint64_t flags = 0;  // FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_FENCE, kUntold
  std::uint64_t data = 0;
};

struct Target {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

// One atomic operation.
struct Function {
  fi_datatype type = FI_UINT64;
  fi_op op = FI_SUM;
  const void* operand = nullptr;
  const void* compare = nullptr;  // nullptr: it compares nothing
  void* result = nullptr;         // nullptr: the old value is not asked for
};

class Ep : public fid_ep {
 public:
  static int open(Domain& domain, const fi_info& info, void* context, fid_ep*& out);

  // ---- what happens to it: under the link's mutex ----
  void connection_event(const stm_event_t& event);
  void not_dialed(int status);
  void arrived(RxBuffer& buffer, const stm_event_t& event);
  // The peer reads the message that was announced first.
  void serve(const stm_event_t& event);
  void part_done(Op& op, int status);
  // Messages that have come, to receives.
  void match();

  // ---- calls ----
  int close();
  int bind(fid_t other, std::uint64_t flags);
  int control(int command, void* argument);
  int get_option(int name, void* value, std::size_t* length) const;
  ssize_t cancel(void* context);
  ssize_t size_left(bool tx);

  int set_name(const void* address, std::size_t length);
  int get_name(bool peer, void* address, std::size_t* length);
  int connect(const void* address, const void* data, std::size_t length);
  int accept(const void* data, std::size_t length);
  int shutdown(std::uint64_t flags);

  ssize_t receive(PostedReceive&& receive);
  ssize_t send(const Request& request);
  ssize_t write(const Request& request, const Target& target);
  ssize_t read(const Request& request, const Target& target);
  ssize_t fetch(const Request& request, const Target& target, const Function& function);

  // What calls without flags of their own have.
  [[nodiscard]] std::uint64_t tx_flags() const { return tx_flags_; }
  [[nodiscard]] std::uint64_t rx_flags() const { return rx_flags_; }

 private:
  enum class State { kNew, kConnecting, kUp, kShutDown, kEnded };
  struct Arrival {
    RxBuffer* buffer;
    std::size_t length;
    MessageKind kind;
  };

  Ep(Domain& domain, const fi_info& info, void* context);

  int bind_cq(fid_t other, std::uint64_t flags);
  int bind_cntr(fid_t other, std::uint64_t flags);
  int enable();
  int flags_of(std::uint64_t& flags, bool set);
  int prepare(stm_connection_attr_t& attr, std::unique_ptr<RxBlock>& block);
  void use_block(std::unique_ptr<RxBlock> block);
  void post(RxBuffer& buffer);
  void ended(int status);
  // The peer does not keep to the protocol.
  void break_off(const char* why);
  // Until what was injected has arrived, the connection has ended, or patience has.
  void linger(std::unique_lock<std::mutex>& lock);

  [[nodiscard]] int may_post() const;
  Op& begin(const Request& request, Direction direction, std::uint64_t kind);
  // Of the call of the managed API that is part of `op`: gives it up where that has failed.
  ssize_t posted(Op& op, int status);
  void finish(Op& op);
  // It is outstanding no more.
  void leaves(const Op& op);
  void complete(const Op& op);
  [[nodiscard]] Receives& receives() const { return *receives_; }
  ssize_t send_short(const Request& request);
  ssize_t announce(const Request& request);
  int tell_written(Op& op);
  void take_short(PostedReceive& receive, const Arrival& arrival);
  void take_announced(PostedReceive& receive, const Arrival& arrival);
  void tell_received(const PostedReceive& receive, const Op& outcome);

  Domain& domain_;
  Link& link_;
  Eq* eq_ = nullptr;
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  std::array<Cntr*, 4> counters_{};  // by Direction
  Srx* srx_ = nullptr;
  bool tx_selective_ = false, rx_selective_ = false;
  std::uint64_t tx_flags_, rx_flags_;
  std::size_t tx_size_;

  State state_ = State::kNew;
  bool enabled_ = false, closing_ = false;
  sockaddr_in name_{}, peer_{};
  std::unique_ptr<Connreq> request_;
  stm_connection_t connection_ = nullptr;

  Receives own_;
  Receives* receives_ = &own_;
  std::unique_ptr<RxBlock> block_;
  std::deque<Arrival> arrivals_;
  Op* reading_ = nullptr;      // an announced message that is being read
  std::deque<Op*> announced_;  // by us, not asked for yet
  std::deque<Op*> sends_;      // that are not told yet, as they were posted
  std::size_t outstanding_ = 0, injected_ = 0;
};

extern fi_ops_cm ep_cm_calls;
extern fi_ops_msg ep_msg_calls;
extern fi_ops_rma ep_rma_calls;
extern fi_ops_atomic ep_atomic_calls;

inline Ep& ep_of(fid_ep* ep) {
  return *static_cast<Ep*>(ep);
}

}  // namespace stp::fi
