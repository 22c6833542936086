// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/tracer.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "stp/wire/big_endian.h"
#include "stp/wire/ethernet.h"

namespace stp::stpd {
namespace {

constexpr std::uint16_t kEtherTypeArp = 0x0806;
constexpr unsigned kMostLost = 4;  // most writers that are left behind, each with its buffer

bool is_arp(Bytes head) {
  constexpr std::size_t kTypeAt = 12;
  const auto type_at = [&](std::size_t at) -> std::uint16_t {
    return head.size() < at + 2 ? std::uint16_t{0} : wire::load16(head.data() + at);
  };
  const auto type = type_at(kTypeAt);
  return (type == wire::kVlanEtherType ? type_at(kTypeAt + wire::kVlanSize) : type) ==
         kEtherTypeArp;
}

bool is_stp(Bytes head) {
  wire::LinkHeader link;
  Bytes payload;
  // Includes malformed STP frames: one looks for them in a trace.
  return wire::unwrap(head, link, payload) != DropReason::kNotStp;
}

}  // namespace

Tracer::Tracer(service::LinkShards& shards, port::Tap* beside, Log log)
    : shards_(shards), beside_(beside), log_(std::move(log)) {}

Tracer::~Tracer() {
  stop();
}

// Returns whether a new trace may begin. A writer that was told to finish and does not is blocked
// by its file; a few such writers may be left behind.
bool Tracer::has_let_go() {
  if (!writer_ || writer_->finished()) return true;
  if (!writer_->is_overdue() || lost_writers_ == kMostLost) return false;
  ++lost_writers_;
  log_("the file of the last trace blocks: stpd abandons it");
  return true;
}

int Tracer::start(const service::TraceOrder& order, service::ClientId by, service::UniqueFd& file) {
  if (!has_let_go()) return -EBUSY;
  stop();  // ends a trace that has reached its own limit
  trace::PcapngWriter::Options options{.interface = shards_.first().port().info().link,
                                       .program = "stpd " STP_VERSION};
  if (order.max_frames != 0) options.max_frames = order.max_frames;
  if (order.nanoseconds != 0) options.duration = order.nanoseconds;
  options.snap_length = order.snap;
  if (order.buffer != 0)
    options.ring_bytes = std::bit_ceil(
        std::clamp(order.buffer, service::kLeastTraceBuffer, service::kMostTraceBuffer));
  auto writer = trace::PcapngWriter::create(std::move(file), options);
  if (!writer) return -ENOMEM;
  tap_.reset();
  writer_ = std::move(writer);
  tap_.emplace(*writer_);
  // A link over UDP or IP carries nothing else.
  everything_ = order.everything != 0 || shards_.first().port().info().internet;
  owner_ = order.stays != 0 ? 0 : by;
  running_ = true;
  shards_.set_tap(this);
  log_("trace started by client " + std::to_string(by));
  return 0;
}

int Tracer::stop() {
  if (!running_) return writer_ ? 0 : -ENOENT;
  running_ = false;
  shards_.set_tap(beside_);
  writer_->finish();
  log_("trace ended: " + std::to_string(writer_->frames()) + " frames, " +
       std::to_string(writer_->dropped()) + " dropped");
  return 0;
}

int Tracer::status(service::AdminEntry& out) {
  if (!writer_) return -ENOENT;
  out.finished = writer_->finished() ? 1 : 0;
  if (out.finished != 0) stop();
  out.error = writer_->error();
  out.frames = writer_->frames();
  out.dropped = writer_->dropped();
  out.written_bytes = writer_->written_bytes();
  return 0;
}

void Tracer::client_gone(service::ClientId client) {
  if (running_ && owner_ == client) stop();
}

void Tracer::frame(Bytes head, Bytes rest, bool sent) {
  if (beside_ != nullptr) beside_->frame(head, rest, sent);
  if (everything_ || is_stp(head) || is_arp(head)) tap_->frame(head, rest, sent);
}

}  // namespace stp::stpd
