// SPDX-License-Identifier: BSD-3-Clause
// What endpoints of either kind are: the calls of libfabric, their operations from begin to
// completion, and their connections.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include "libst/libfabric/address.h"
#include "libst/libfabric/info.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"
#include "libst/libfabric/receives.h"
#include "libst/libfabric/wire.h"

namespace stp::fi {

class AnyEndpoint;
class Domain;
class Eq;

// ---- connections ----

// A connection of an endpoint.
class Connection : public Owner {
 public:
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Ends it: what is under way completes. Its events are still to be taken.
  void close() {
    if (connection_ != nullptr) stm_connection_close(std::exchange(connection_, nullptr));
  }

 protected:
  explicit Connection(AnyEndpoint& of, stm_connection_t connection = nullptr)
      : connection_(connection), of_(of) {}
  ~Connection() = default;

  [[nodiscard]] stm_connection_attr_t attributes();
  // Begins to connect, with that private data. 0 or a status of the managed API.
  int dial(const Address& peer, std::vector<std::byte> data);
  // The peer's next message may land there.
  void lend(RxBuffer& buffer) {
    if (ended_ || connection_ == nullptr) return;
    const auto& block = *buffer.block;
    stm_receive(connection_, reinterpret_cast<std::uintptr_t>(&buffer), block.memory, buffer.data,
                block.size);
  }
  // Sends the first `size` bytes of `from`, as a part of the operation. A status: it is not sent.
  template <class Kind>
  int send_part(Op& op, Kind kind, const Span& from, std::size_t size, unsigned flags = 0) {
    return stm_send(connection_, reinterpret_cast<std::uintptr_t>(&op), flags,
                    static_cast<std::uint32_t>(kind), from.memory, from.data, size);
  }
  // Reads what the peer's program serves, into the operation's memory from `offset` on.
  int read_part(Op& op, std::size_t length, std::size_t offset = 0) {
    return stm_read(connection_, reinterpret_cast<std::uintptr_t>(&op), 0, op.span.memory,
                    op.span.data + offset, length);
  }
  // Whether that event has brought a message to look at.
  bool has_brought(const stm_event_t& event) {
    if (event.status == -EMSGSIZE) break_off("a message is longer than a buffer");
    return event.status == 0 && !ended_ && !broken_;
  }
  // The reason of the connection's end; `otherwise`: the event names none.
  int reason_of_end(const stm_event_t& event, int otherwise);
  // Neither side has ended it, nor has its link. What is left of its events may be still to be
  // taken.
  [[nodiscard]] bool is_there() const;
  // The peer violates the protocol. What else comes of it is no other offence.
  void break_off(const char* why);

  stm_connection_t connection_;
  bool ended_ = false, broken_ = false;
  AnyEndpoint& of_;
};

// One on which operations begin.
class SendingConnection : public Connection {
 public:
  // Begins the operation, once the connection is up. A status: it has not begun.
  virtual int post(Op& op) = 0;
  // The operation is to begin here, and may take steps that the managed API does not know of.
  void add_steps(Op& op) {
    op.owner = this;
    op.in_steps = true;
    ++in_steps_;
  }
  // It is over.
  void end_steps() { --in_steps_; }
  // What is fenced has to wait for some of these.
  [[nodiscard]] bool is_in_steps() const { return in_steps_ != 0; }
  // The peer may have to be told of each access.
  [[nodiscard]] virtual bool tells_accesses() const { return false; }
  void look_again() override;
  // Messages that no operation stands for may be under way.
  [[nodiscard]] bool is_sending() const {
    return has_sent_at_once_ && !ended_ && connection_ != nullptr && sends_quietly(connection_);
  }

 protected:
  explicit SendingConnection(AnyEndpoint& of) : Connection(of) { at_once_.owner = this; }
  ~SendingConnection() = default;

  // Copies a short message into the peer's ring: then its bytes are the program's again. False: it
  // would have to wait.
  bool send_at_once(Op& op, unsigned flags, std::uint32_t kind, const void* head,
                    std::size_t length, const iovec* parts, std::size_t count) {
    if (stm_send_short(connection_, reinterpret_cast<std::uintptr_t>(&op), flags, kind, head,
                       length, parts, count) != 0)
      return false;
    if (&op == &at_once_) has_sent_at_once_ = true;
    return true;
  }
  // Begins a write, a read or an atomic operation.
  int begin_access(Op& op);
  // A part is done. True: it was the last one. After the put of a write with a note, the note
  // follows: a message that no receive is needed for. Only what is written is told, and in the
  // order of the writes.
  bool end_part(Op& op, int status);
  // Answers the read of a message that the operation has announced. An empty one is read as one
  // byte of any value.
  int serve_announced(Op& op, std::uint32_t request, std::uint64_t length);
  // The operation is done but for its note, which waits for those in front of it.
  void add_note(Op& op);
  // Sends the note. A status.
  virtual int send_note(Op& op) = 0;
  [[nodiscard]] bool owes_notes() const { return !notes_.empty(); }

  Op at_once_;  // stands for all that no operation of their own stands for

 private:
  void send_notes();

  bool has_sent_at_once_ = false;
  LastWord last_word_;
  std::list<Op*> notes_;      // whose notes wait, in posting order
  std::size_t in_steps_ = 0;  // operations
};

// ---- calls ----

// A message to send, as a program's call gives it.
struct Outbound {
  const iovec* iov = nullptr;
  void** desc = nullptr;
  std::size_t count = 0;
  void* context = nullptr;
  std::uint64_t flags = 0, data = 0;
  fi_addr_t to = FI_ADDR_UNSPEC;
  bool tagged = false;
  std::uint64_t tag = 0;
};

// A receive to post, as a program's call gives it.
struct Inbound {
  const iovec* iov = nullptr;
  void** desc = nullptr;
  std::size_t count = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;
  fi_addr_t from = FI_ADDR_UNSPEC;
  bool tagged = false;
  std::uint64_t tag = 0, ignore = 0;
};

// What has the calls of FI_MSG: an endpoint, or a shared receive context.
class MessageEnd : public fid_ep {
 public:
  MessageEnd(const MessageEnd&) = delete;
  MessageEnd& operator=(const MessageEnd&) = delete;

  virtual ssize_t send(const Outbound&) { return -FI_ENOSYS; }
  virtual ssize_t receive(const Inbound& inbound) = 0;
  // The flags of calls without a flags argument.
  [[nodiscard]] std::uint64_t tx_flags() const { return op_flags_.tx; }
  [[nodiscard]] std::uint64_t rx_flags() const { return op_flags_.rx; }
  [[nodiscard]] const Offer& offer() const { return offer_; }

 protected:
  MessageEnd(const fid_ep& calls, const Offer& offer, const OpFlags& flags)
      : fid_ep(calls), offer_(offer), op_flags_(flags) {}
  ~MessageEnd() = default;

  const Offer& offer_;
  OpFlags op_flags_;
};

extern fi_ops_msg msg_calls;
extern fi_ops_atomic atomic_calls;
// As a domain's call. -FI_EOPNOTSUPP: it is not offered; -FI_EINVAL: there is no such thing.
int query_atomic(fi_datatype type, fi_op op, fi_atomic_attr* attr, std::uint64_t flags);
// 0, or what is wrong with the flags of a receive. `known`: those of its kind; receives of
// FI_EP_RDM may look for messages that have come, too.
int check_receive(const Offer& offer, std::uint64_t flags, std::uint64_t known);

// An endpoint of either kind.
class AnyEndpoint : public MessageEnd {
 public:
  // ---- for its connections: under the link's mutex ----
  [[nodiscard]] FabricLink& link() const { return link_; }
  // A peer has broken the protocol.
  void broken_off(const char* why) { inform_seldom(++broken_off_, "a peer is broken off", why); }
  [[nodiscard]] Matching& matching() { return matching_; }
  void deliver(Message&& message, Receive&& receive);
  // The bytes of a message go to that receive, which has room for them, and the program is told.
  // `from`: its sender in the address vector.
  void land(const Head& head, const std::byte* bytes, const Receive& receive, fi_addr_t from) {
    const auto& first = receive.segments.iov[0];
    if (head.length <= first.iov_len && head.length != 0)
      std::memcpy(first.iov_base, bytes, head.length);
    else
      scatter(bytes, receive.segments, head.length);
    reports_.received(receive.flags, [&](Completion& told) {
      auto flags = FI_RECV | (receive.tagged ? FI_TAGGED : FI_MSG);
      if ((head.flags & kWithData) != 0) flags |= FI_REMOTE_CQ_DATA;
      told.succeed({.op_context = receive.context,
                    .flags = flags,
                    .len = head.length,
                    .buf = nullptr,
                    .data = head.data,
                    .tag = head.tag},
                   from);
    });
  }
  [[nodiscard]] bool tells_of_receives() const { return reports_.has_rx_queue(); }
  // The receive waits no longer.
  void give_up(const Receive& receive, int status);
  // The message has not arrived whole, and never will.
  void lose(const Message& message, const Receive& receive, int status);
  // The operation that reads an announced message into that receive.
  Op& begin_receive(const Message& message, Receive&& receive);
  // Finds the memory that it reads into: one byte at least.
  int find_place(Op& op);
  // It is done.
  void received(Op& op);
  // A message that was sent, a write, read or atomic operation is done.
  virtual void finish(Op& op);

  // ---- calls ----
  int close();
  int bind(fid_t other, std::uint64_t flags);
  int control(int command, void* argument);
  virtual int get_option(int name, void* value, std::size_t* length) = 0;
  virtual int set_option(int, const void*, std::size_t) { return -FI_ENOPROTOOPT; }
  ssize_t cancel(void* context);
  ssize_t size_left(bool tx);
  int set_name(const void* address, std::size_t length);
  virtual int get_name(void* address, std::size_t* length) = 0;
  virtual int get_peer(void*, std::size_t*) { return -FI_ENOSYS; }
  virtual int connect(const void*, const void*, std::size_t) { return -FI_ENOSYS; }
  virtual int accept(const void*, std::size_t) { return -FI_ENOSYS; }
  virtual int shutdown(std::uint64_t) { return -FI_ENOSYS; }

  ssize_t write(const Request& request, fi_addr_t to, const Target& target);
  ssize_t read(const Request& request, fi_addr_t to, const Target& target);
  ssize_t fetch(const Request& request, fi_addr_t to, const Target& target,
                const Function& function);

 protected:
  AnyEndpoint(Domain& domain, const fi_info& info, const Offer& offer, fi_ops_tagged* tagged_calls,
              void* context);
  virtual ~AnyEndpoint() = default;
  // -FI_EINVAL: it cannot have the sizes of that info.
  static int check_sizes(const fi_info& info);

  // The call bind() for objects that endpoints of this kind alone have.
  virtual int bind_other(fid_t other, std::uint64_t flags) = 0;
  virtual int enable() = 0;
  // Its name is known to peers.
  [[nodiscard]] virtual bool has_begun() const = 0;
  // What a close waits for: what was injected and has not arrived.
  [[nodiscard]] virtual bool lingers() const = 0;
  // Ends its connections: whatever was posted completes, and nothing refers to it afterwards.
  virtual void end_connections(LinkLock& lock) = 0;
  // The connection to that peer. A libfabric error: there is none.
  virtual int way_to(fi_addr_t to, SendingConnection*& way) = 0;
  // In the address vector.
  [[nodiscard]] virtual fi_addr_t number_of(const Address&) const { return FI_ADDR_NOTAVAIL; }
  // Where its receives are.
  [[nodiscard]] virtual const Matching& inbox() const { return matching_; }
  // Fills in what the peer is told of a write with immediate data.
  virtual void tell_of(const Op& write, std::byte* note) const = 0;
  // The operation is no longer outstanding.
  virtual void leaves(const Op& op);

  // Of the places, those that are taken.
  [[nodiscard]] std::size_t taken() const { return outstanding_ - placeless_; }
  [[nodiscard]] bool has_place() const {
    static_assert(kMostTxSize <= kMostPosted);
    return outstanding_ < tx_size_ || (taken() < tx_size_ && outstanding_ < kMostPosted);
  }
  // The same. If all are taken, it makes progress first: of many threads that send, only one may
  // read the queue meanwhile (Open MPI), and the others would keep it from the mutex and its core.
  [[nodiscard]] bool finds_place(LinkLock& lock) {
    if (has_place()) return true;
    link_.poll_for_place(lock);
    return has_place();
  }
  // What is fenced waits for all that was posted before to that peer. The managed API does not know
  // of the steps to come.
  [[nodiscard]] static bool has_to_wait(std::uint64_t flags, const SendingConnection& way) {
    return (flags & FI_FENCE) != 0 && way.is_in_steps();
  }
  // Where an access with those flags may begin. A libfabric error: it may not.
  int may_access(LinkLock& lock, std::uint64_t flags, fi_addr_t to, SendingConnection*& way);
  Op& begin(const Request& request, Direction direction, std::uint64_t kind);
  // Begins it on a connection, unless there is an error.
  ssize_t start(Op& op, SendingConnection& way, int error) {
    return started(op, error != 0 ? error : way.post(op));
  }
  // It is on its way, or given up because of that error.
  ssize_t started(Op& op, int error);
  // Finds the bytes that the operation sends or writes: the program's, or a copy. A status.
  int take_bytes(Op& op, const Request& request);
  // The same of a message to be announced, and the memory of its header.
  int take_announced(Op& op, SendingConnection& way, const Request& request);
  // Completes a receive: of what has arrived, of what is to come, or of what never will.
  void tell(Outcome& told, Shared* shared);
  [[nodiscard]] Outcome outcome_of(const Message& message, const Receive& receive) const;

  Domain& domain_;
  FabricLink& link_;
  Eq* eq_ = nullptr;
  Reports reports_;
  const bool counts_accesses_;  // of peers: FI_RMA_EVENT
  bool enabled_ = false, closing_ = false;
  const std::uint32_t format_;
  Address name_;
  Matching matching_;
  std::size_t tx_size_, rx_size_;  // places that a program may count on
  std::size_t outstanding_ = 0, injected_ = 0;
  std::size_t placeless_ = 0;  // of those that are outstanding

 private:
  // `noted`: the peer is told of it when it is done.
  void access(Op& op, SendingConnection& way, Action action, const Target& target,
              bool noted = false);

  std::uint64_t broken_off_ = 0;  // peers
};

// A message has to land somewhere, and the call does not say where.
inline bool lacks_landing(const Inbound& inbound) {
  return lacks_some(inbound.iov, inbound.count) && (inbound.flags & (FI_PEEK | FI_DISCARD)) == 0;
}
// What a program's call says. `source`: the sender that it names.
void read_receive(const Inbound& inbound, const Address& source, Receive& out);
// Tells a program the value of an option.
int tell_option(std::size_t option, void* value, std::size_t* length);

inline AnyEndpoint& endpoint_of(fid_ep* ep) {
  return *static_cast<AnyEndpoint*>(ep);
}
inline AnyEndpoint& endpoint_of(fid_t id) {
  return object_of<AnyEndpoint, fid_ep>(id);
}

}  // namespace stp::fi
