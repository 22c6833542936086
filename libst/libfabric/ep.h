// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of FI_EP_MSG: one that listens, and one that is a connection of the managed API.
//
// A message of up to kShortMost bytes lands in a buffer of the receiving endpoint and is copied
// from there. So receives need no registered memory and may have several segments. A longer one is
// read into the memory of the receive (wire.h).
#pragma once

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "libst/libfabric/atomics.h"
#include "libst/libfabric/info.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/receives.h"
#include "libst/libfabric/wire.h"

namespace stp::fi {

class Domain;
class Eq;
class Fabric;
class Srx;

// A connection request. Decided by fi_accept of an endpoint made from it, by fi_reject, or when
// that endpoint or the passive one is closed.
struct Connreq : ::fid {
  stm_connection_t connection = nullptr;
  Address peer;
};

// A passive endpoint: listens, and turns connection requests into FI_CONNREQ events.
class Pep final : public fid_pep, public Acceptor {
 public:
  static int open(Fabric& fabric, const fi_info& info, void* context, fid_pep*& out);
  // nullptr: not a passive endpoint of this provider.
  static Pep* of(fid_t handle);

  // Lets an endpoint take over the name. -FI_EOPBADSTATE: the passive endpoint listens.
  int lend_name(const FabricLink& link, Address& out) const;
  void requested(stm_connection_t connection) override;

  int close();
  int bind(fid_t other, std::uint64_t flags);
  int listen();
  int reject(fid_t handle, const void* data, std::size_t length);
  int set_name(const void* address, std::size_t length);
  int get_name(void* address, std::size_t* length);
  [[nodiscard]] Address name() const;

 private:
  struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
  };
  Pep(Fabric& fabric, const fi_info& info, void* context);

  Fabric& fabric_;
  FabricLink& link_;
  const std::unique_ptr<fi_info, FreeInfo> info_;
  Address name_;
  Eq* eq_ = nullptr;
  stm_listener_t listener_ = nullptr;
  std::map<fid_t, std::unique_ptr<Connreq>> undecided_;
};

// Takes the request out of `handle`, for an endpoint to be made from it, which then owns it.
// nullptr: not a request.
std::unique_ptr<Connreq> take_request(fid_t handle);

class Ep final : public fid_ep, public Owner {
 public:
  static int open(Domain& domain, const fi_info& info, void* context, fid_ep*& out);

  // ---- events: under the link's mutex ----
  void connection_event(const stm_event_t& event) override;
  void not_dialed(int status) override;
  void arrived(RxBuffer& buffer, const stm_event_t& event) override;
  // The peer reads the message announced first.
  void serve(const stm_event_t& event) override;
  void part_done(Op& op, int status) override;
  // Matches arrived messages with receives.
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
  // The peer is that of the connection.
  ssize_t fetch(const Request& request, fi_addr_t, const Target& target, const Function& function);

  // The flags of calls without a flags argument.
  [[nodiscard]] std::uint64_t tx_flags() const { return op_flags_.tx; }
  [[nodiscard]] std::uint64_t rx_flags() const { return op_flags_.rx; }

 private:
  enum class State { kNew, kConnecting, kUp, kShutDown, kEnded };
  struct Arrival {
    RxBuffer* buffer;
    std::size_t length;
    MessageKind kind;
  };

  Ep(Domain& domain, const fi_info& info, void* context);

  int enable();
  int prepare(stm_connection_attr_t& attr, std::unique_ptr<RxBlock>& block);
  void use_block(std::unique_ptr<RxBlock> block);
  void post(RxBuffer& buffer);
  void ended(int status);
  // Ends the connection: the peer violates the protocol.
  void break_off(const char* why);
  // Waits until injected messages have arrived, the connection has ended, or a timeout has passed.
  void linger(LinkLock& lock);

  [[nodiscard]] int may_post(std::uint64_t flags) const;
  Op& begin(const Request& request, Direction direction, std::uint64_t kind);
  // Handles the status of a managed API call that is a part of `op`: gives `op` up if it has
  // failed.
  ssize_t posted(Op& op, int status);
  void finish(Op& op);
  // The operation is no longer outstanding.
  void leaves(const Op& op);
  [[nodiscard]] Receives& receives() const { return *receives_; }
  ssize_t send_short(const Request& request);
  // Copies the message into the peer's ring, as a part of `op`. False: it would have to wait.
  bool send_at_once(const Request& request, Op& op, unsigned flags);
  ssize_t announce(const Request& request);
  int tell_written(Op& op);
  void take_short(PostedReceive& receive, const Arrival& arrival);
  void take_announced(PostedReceive& receive, const Arrival& arrival);
  void tell_received(const PostedReceive& receive, Outcome outcome);

  Domain& domain_;
  FabricLink& link_;
  Eq* eq_ = nullptr;
  Reports reports_;
  Srx* srx_ = nullptr;
  OpFlags op_flags_;
  std::size_t tx_size_;

  State state_ = State::kNew;
  bool enabled_ = false, closing_ = false;
  const std::uint32_t format_;
  Address name_, peer_;
  std::unique_ptr<Connreq> request_;
  stm_connection_t connection_ = nullptr;

  Receives own_;
  Receives* receives_ = &own_;
  std::unique_ptr<RxBlock> block_;
  std::deque<Arrival> arrivals_;
  Op* reading_ = nullptr;      // an announced message that is being read
  std::deque<Op*> announced_;  // by this side, not requested yet
  std::deque<Op*> sends_;      // not reported yet, in posting order
  Op at_once_;                 // stands for all that was injected and copied at once
  bool has_injected_at_once_ = false;
  std::size_t outstanding_ = 0, injected_ = 0;
  std::size_t repeating_ = 0;  // atomic operations that may take further steps
};

extern fi_ops_cm ep_cm_calls;
extern fi_ops_msg ep_msg_calls;
extern fi_ops_rma ep_rma_calls;

inline Ep& ep_of(fid_ep* ep) {
  return *static_cast<Ep*>(ep);
}
inline Ep& ep_of(fid_t id) {
  return object_of<Ep, fid_ep>(id);
}

}  // namespace stp::fi
