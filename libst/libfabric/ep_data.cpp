// SPDX-License-Identifier: BSD-3-Clause
// Messages of FI_EP_MSG.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {

ssize_t Ep::send(const Outbound& message) {
  Request request{
      .segments = {}, .context = message.context, .flags = message.flags, .data = message.data};
  if (read_segments(message.iov, message.desc, message.count, request.segments) != 0)
    return -FI_EINVAL;
  LinkLock lock(link_.mutex());
  const auto has_room = finds_place(lock);
  if (!is_up()) return -FI_ENOTCONN;
  if (!has_room || has_to_wait(request.flags, *this)) return -FI_EAGAIN;
  const auto length = request.segments.length;
  if (length > ((request.flags & FI_INJECT) != 0 ? kInjectMost : kMostMessage)) return -FI_EMSGSIZE;
  // Who has read an announced message has it in the memory of its receive.
  const auto delivered = (request.flags & FI_DELIVERY_COMPLETE) != 0;
  return length <= kShortMost && !delivered ? send_short(request) : announce(request);
}

ssize_t Ep::send_short(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  const auto copied = with_data || (request.flags & FI_INJECT) != 0;
  const auto& segments = request.segments;
  const auto flags = (request.flags & FI_FENCE) != 0 ? unsigned{STM_FENCE} : 0;
  if ((request.flags & kUntold) != 0 && send_at_once(request, at_once_, flags | STM_QUIET)) {
    reports_.sent(nullptr, FI_SEND | FI_MSG, request.flags);
    return 0;
  }
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  op.owner = this;
  if ((copied || !is_registered(segments)) && send_at_once(request, op, flags)) return sent(op, 0);
  const auto room = segments.length + kTrailer;
  auto error =
      copied ? link_.slots_for(room).take(op.span) : link_.span_of(segments, true, op.span);
  if (error != 0) return sent(op, error);
  if (copied) gather(segments, op.span.data);
  if (with_data) store64(op.span.data + segments.length, request.data);
  const auto kind = with_data ? MessageKind::kData : MessageKind::kPlain;
  return sent(op,
              send_part(op, kind, op.span, segments.length + (with_data ? kTrailer : 0), flags));
}

ssize_t Ep::sent(Op& op, int error) {
  if (error == 0) sends_.push_back(&op);
  return started(op, error);
}

bool Ep::send_at_once(const Request& request, Op& op, unsigned flags) {
  const auto& segments = request.segments;
  std::array<std::byte, kTrailer> trailer;
  std::array<iovec, kSegments + 1> parts;
  auto* end = std::copy_n(segments.iov.begin(), segments.count, parts.begin());
  auto kind = MessageKind::kPlain;
  if ((request.flags & FI_REMOTE_CQ_DATA) != 0) {
    kind = MessageKind::kData;
    store64(trailer.data(), request.data);
    *end++ = {trailer.data(), trailer.size()};
  }
  return SendingConnection::send_at_once(op, flags, static_cast<std::uint32_t>(kind), nullptr, 0,
                                         parts.data(),
                                         static_cast<std::size_t>(end - parts.begin()));
}

// Two parts: the announcement, and that the peer has read the message.
ssize_t Ep::announce(const Request& request) {
  const auto with_data = (request.flags & FI_REMOTE_CQ_DATA) != 0;
  auto& op = begin(request, Direction::kSend, FI_SEND | FI_MSG);
  auto error = take_announced(op, *this, request);
  if (error != 0) return sent(op, error);
  store64(op.note.data, request.segments.length);
  store64(op.note.data + 8, with_data ? request.data : 0);
  const auto kind = with_data ? MessageKind::kAnnouncedData : MessageKind::kAnnounced;
  error = send_part(op, kind, op.note, kAnnouncement, op.stm_flags);
  if (error == 0) {
    op.parts = 2;
    announced_.push_back(&op);
  }
  return sent(op, error);
}

void Ep::serve(const stm_event_t& event) {
  if (announced_.empty() || event.length > std::max<std::size_t>(announced_.front()->length, 1)) {
    stm_refuse_read(connection_, event.request);
    break_off("it reads what was not announced");
    return;
  }
  auto& op = *announced_.front();
  announced_.pop_front();
  const auto error = serve_announced(op, event.request, event.length);
  if (error != 0) part_done(op, error);
}

// Messages that come, and receives.

namespace {

bool is_announced(MessageKind kind) {
  return kind == MessageKind::kAnnounced || kind == MessageKind::kAnnouncedData;
}

// The header of FI_EP_RDM that says the same.
Head head_of(MessageKind kind, const std::byte* data, std::size_t length) {
  Head head{.length = is_announced(kind) ? load64(data) : length};
  if (kind == MessageKind::kAnnouncedData) head.data = load64(data + 8);
  if (kind == MessageKind::kData) head.data = load64(data + (head.length -= kTrailer));
  if (kind == MessageKind::kData || kind == MessageKind::kAnnouncedData) head.flags = kWithData;
  return head;
}

// The oldest message goes to the receive, or that waits.
int post(Matching& matching, const Inbound& inbound) {
  if (matching.receives() >= kMostPosted) return -FI_EAGAIN;
  Receive receive;
  read_receive(inbound, {}, receive);
  if (auto message = matching.take_message(receive))
    static_cast<Ep*>(message->from)->deliver(std::move(*message), std::move(receive));
  else
    matching.add(std::move(receive));
  return 0;
}

}  // namespace

ssize_t Ep::receive(const Inbound& inbound) {
  if (inbound.count > kSegments) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  if (srx_ != nullptr) return -FI_EINVAL;
  if (ended_ && held_.empty() && matching_.has_none(false)) return -FI_ENOTCONN;
  return fi::post(matching_, inbound);
}

void Ep::arrived(RxBuffer& buffer, const stm_event_t& event) {
  if (!has_brought(event)) return;
  const Arrival arrival{&buffer, static_cast<std::size_t>(event.length),
                        static_cast<MessageKind>(event.tag)};
  if (!is_legal(arrival.kind, buffer.data, arrival.length))
    return break_off("a message is none of the protocol");
  const auto written = arrival.kind == MessageKind::kWritten;
  const auto in_turn = written ? !holds_written() : held_.empty();
  if (in_turn && may_take(arrival.kind)) return take(arrival);
  if (in_turn && written) link_.await(*this);
  held_.push_back(arrival);
}

bool Ep::holds_written() const {
  return std::ranges::find(held_, MessageKind::kWritten, &Arrival::kind) != held_.end();
}

bool Ep::may_take(MessageKind kind) const {
  if (kind == MessageKind::kWritten) return !reports_.are_full();
  return !is_announced_ || !is_announced(kind);
}

void Ep::take(const Arrival& arrival) {
  auto& buffer = *arrival.buffer;
  if (arrival.kind == MessageKind::kWritten) {
    reports_.tell_written(load64(buffer.data), load64(buffer.data + 8), FI_ADDR_NOTAVAIL);
    return lend(buffer);
  }
  const auto head = head_of(arrival.kind, buffer.data, arrival.length);
  const auto land_at_once = [&](const Receive& receive) {
    land(head, buffer.data, receive, FI_ADDR_NOTAVAIL);
    lend(buffer);
  };
  if (!is_announced(arrival.kind) && inbox().serve(head, {}, land_at_once)) return;
  Message message{.from = this,
                  .announced = is_announced(arrival.kind),
                  .head = head,
                  .copy = {},
                  .lies = buffer.data,
                  .buffer = &buffer};
  is_announced_ = is_announced_ || message.announced;
  if (auto receive = inbox().take_receive(message, 0))
    deliver(std::move(message), std::move(*receive));
  else
    inbox().add(std::move(message));
}

void Ep::done_with(Message& message) {
  lend(*message.buffer);
}

// The sender waits for being read, even where the receive has no room, or cannot be written: else
// it would take the next read for this one.
void Ep::pull(const Message& message, Receive&& receive) {
  auto& op = begin_receive(message, std::move(receive));
  op.owner = this;
  op.parts = 1;
  link_.watch(*this);
  begin_to_read(op);
}

// Where what it needs is used up, it waits until other operations under way have given that back.
void Ep::begin_to_read(Op& op) {
  auto error = begin_read(op);
  if (!ended_ && link_.comes_back(error)) {
    waits_to_read_ = &op;
    link_.await(*this);
    lack_ = link_.lack();
    return;
  }
  if (error != 0) {
    op.status = error;
    op.length = 0;
    error = begin_read(op);
  }
  if (error != 0) part_done(op, error);
}

int Ep::begin_read(Op& op) {
  const auto landing = op.landing;
  auto error = find_place(op);
  if (error == 0) error = read_part(op, std::max<std::size_t>(op.length, 1));
  if (error == 0) return 0;
  op.span.release();  // as before
  op.landing = landing;
  return error;
}

// ---- shared receive contexts ----

namespace {

fi_ops srx_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return object_of<Srx, fid_ep>(id).close(); }); },
    .bind = refuse,
    .control = [](fid_t, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_ep srx_ep_calls{
    .size = sizeof(fi_ops_ep),
    .cancel =
        [](fid_t id, void* context) {
          return guarded([&] { return object_of<Srx, fid_ep>(id).cancel(context); });
        },
    .getopt = refuse,
    .setopt = refuse,
    .tx_ctx = refuse,
    .rx_ctx = refuse,
    .rx_size_left = refuse,
    .tx_size_left = refuse,
};

}  // namespace

Srx::Srx(Domain& domain, const fi_rx_attr* attr, void* context)
    : MessageEnd({.fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &srx_object_calls},
                  .ops = &srx_ep_calls,
                  .cm = nullptr,
                  .msg = &msg_calls,
                  .rma = nullptr,
                  .tagged = nullptr,
                  .atomic = nullptr,
                  .collective = nullptr},
                 kMsgOffer, {}),
      domain_(domain),
      link_(domain.link()),
      rx_size_(attr != nullptr && attr->size != 0 ? attr->size : kRxSize) {
  domain_.use();
}

int Srx::open(Domain& domain, const fi_rx_attr* attr, void* context, fid_ep*& out) {
  if (attr != nullptr && attr->size > kMostRxSize) return -FI_EINVAL;
  out = new Srx(domain, attr, context);
  return 0;
}

int Srx::close() {
  {
    const LinkLock lock(link_.mutex());
    if (!users_.empty()) return -FI_EBUSY;
  }
  domain_.unuse();
  delete this;
  return 0;
}

// The queue of an endpoint that is bound to it tells of that.
ssize_t Srx::cancel(void* context) {
  const LinkLock lock(link_.mutex());
  const auto teller = std::ranges::find_if(users_, &Ep::tells_of_receives);
  if (teller == users_.end()) return -FI_ENOCQ;
  const auto receive = matching_.cancel(context);
  if (!receive) return -FI_ENOENT;
  (*teller)->give_up(*receive, -ECANCELED);
  return 0;
}

ssize_t Srx::receive(const Inbound& inbound) {
  if (inbound.count > kSegments) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  return fi::post(matching_, inbound);
}

}  // namespace stp::fi
