// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of FI_EP_MSG: one that listens, and one that is a connection of the managed API.
//
// A message of up to kShortMost bytes lands in a buffer of the receiving endpoint and is copied
// from there. So receives need no registered memory and may have several segments. A longer one is
// read into the memory of the receive (wire.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "libst/libfabric/endpoint.h"
#include "libst/libfabric/wire.h"

namespace stp::fi {

class Domain;
class Ep;
class Eq;
class Fabric;

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
  void drop_gone();

  Fabric& fabric_;
  FabricLink& link_;
  const std::unique_ptr<fi_info, FreeInfo> info_;
  Address name_;
  Eq* eq_ = nullptr;
  stm_listener_t listener_ = nullptr;
  static constexpr std::size_t kFew = 128;
  std::map<fid_t, std::unique_ptr<Connreq>> undecided_;
  std::size_t look_at_ = kFew;  // so many of them
  std::uint64_t rejected_ = 0;  // requests
};

// Takes the request out of `handle`, for an endpoint to be made from it, which then owns it.
// nullptr: not a request.
std::unique_ptr<Connreq> take_request(fid_t handle);

// A shared receive context: receives for all endpoints bound to it.
class Srx final : public MessageEnd {
 public:
  static int open(Domain& domain, const fi_rx_attr* attr, void* context, fid_ep*& out);

  // ---- under the link's mutex ----
  Matching& matching() { return matching_; }
  [[nodiscard]] std::size_t rx_size() const { return rx_size_; }
  void use(Ep& by) { users_.push_back(&by); }
  void unuse(Ep& by) { std::erase(users_, &by); }

  int close();
  ssize_t cancel(void* context);
  ssize_t receive(const Inbound& inbound) override;

 private:
  Srx(Domain& domain, const fi_rx_attr* attr, void* context);

  Domain& domain_;
  FabricLink& link_;
  Matching matching_;
  const std::size_t rx_size_;
  std::vector<Ep*> users_;
};

// An endpoint that is a connection.
class Ep final : public AnyEndpoint, public SendingConnection, public Source {
 public:
  static int open(Domain& domain, const fi_info& info, void* context, fid_ep*& out);

  // ---- events: under the link's mutex ----
  void connection_event(const stm_event_t& event) override;
  void not_dialed(int status) override;
  void arrived(RxBuffer& buffer, const stm_event_t& event) override;
  // The peer reads the message announced first.
  void serve(const stm_event_t& event) override;
  void part_done(Op& op, int status) override;
  void look_again() override;
  void pull(const Message& message, Receive&& receive) override;
  void done_with(Message& message) override;

  // ---- calls ----
  int get_option(int name, void* value, std::size_t* length) override;
  int get_name(void* address, std::size_t* length) override;
  int get_peer(void* address, std::size_t* length) override;
  int connect(const void* address, const void* data, std::size_t length) override;
  int accept(const void* data, std::size_t length) override;
  int shutdown(std::uint64_t flags) override;

  ssize_t receive(const Inbound& inbound) override;
  ssize_t send(const Outbound& message) override;

 private:
  enum class State { kNew, kConnecting, kUp, kShutDown };
  struct Arrival {
    RxBuffer* buffer;
    std::size_t length;
    MessageKind kind;
  };

  Ep(Domain& domain, const fi_info& info, void* context);

  int bind_other(fid_t other, std::uint64_t flags) override;
  int enable() override;
  [[nodiscard]] bool has_begun() const override { return state_ != State::kNew || ended_; }
  [[nodiscard]] const Matching& inbox() const override {
    return srx_ != nullptr ? srx_->matching() : matching_;
  }
  [[nodiscard]] Matching& inbox() { return srx_ != nullptr ? srx_->matching() : matching_; }
  [[nodiscard]] bool lingers() const override;
  void end_connections(LinkLock& lock) override;
  int way_to(fi_addr_t, SendingConnection*& way) override;
  void tell_of(const Op& write, std::byte* note) const override;
  int post(Op& op) override;
  int send_note(Op& op) override;
  // After the last note, if the program has shut it down.
  void end_if_told();

  // What a connection needs, before there is one.
  int prepare(std::unique_ptr<RxBlock>& block);
  void use_block(std::unique_ptr<RxBlock> block);
  void ended(int status);
  [[nodiscard]] bool is_up() const { return state_ == State::kUp && !ended_; }

  // A status: it is not on its way.
  int begin_read(Op& op);
  void begin_to_read(Op& op);
  void has_read(Op& op);
  ssize_t send_short(const Request& request);
  // Copies the message into the peer's ring, as a part of `op`. False: it would have to wait.
  bool send_at_once(const Request& request, Op& op, unsigned flags);
  ssize_t announce(const Request& request);
  // The message is on its way, or given up because of that error.
  ssize_t sent(Op& op, int error);
  // One announced message waits, or is read, at a time. What a peer has written is told when the
  // program's queue has room.
  [[nodiscard]] bool may_take(MessageKind kind) const;
  void take(const Arrival& arrival);
  void take_held();
  // Something that a peer has written waits to be told.
  [[nodiscard]] bool holds_written() const;

  Srx* srx_ = nullptr;
  State state_ = State::kNew;
  Address peer_;
  std::unique_ptr<Connreq> request_;
  bool accepts_ = false;  // the peer has asked for the connection

  std::unique_ptr<RxBlock> block_;
  std::deque<Arrival> held_;     // one that may not be taken yet, and those behind it
  bool takes_held_ = false;      // now
  bool is_announced_ = false;    // a message by the peer, which has not been read
  Op* waits_to_read_ = nullptr;  // that message, if nothing to read it into is left now
  FabricLink::Lack lack_;        // of what it needs
  std::deque<Op*> announced_;    // by this side, not requested yet
  std::deque<Op*> sends_;        // not reported yet, in posting order
};

}  // namespace stp::fi
