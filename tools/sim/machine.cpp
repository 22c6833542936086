// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/machine.h"

namespace stp::sim {
namespace {

constexpr unsigned kSteerings = 3;
constexpr std::size_t kLastOfSender = 11;  // the last byte of the sender's address
constexpr Time kBell = 200;                // ns, until a Node sees what another one has handed over

}  // namespace

Machine::Machine(Run& run, const HostConfig& config, unsigned nodes, const Host::Accept& accept)
    : run_(run) {
  if (nodes > 1) steering_ = static_cast<Steering>(run.dice.below(kSteerings));
  for (unsigned node = 0; node < nodes; ++node) {
    Host::Place place{node, steering_ == Steering::kOneQueue, [this, node] { wake_others(node); }};
    hosts_.push_back(std::make_unique<Host>(run, config, std::move(place), accept));
  }
  boot();
}

void Machine::plug_in(Wire& wire) {
  uplink_.emplace(wire);
  for (const auto& host : hosts_) host->plug_in(*uplink_);
}

unsigned Machine::queue_of(const Frame& frame) const {
  switch (steering_) {
    case Steering::kByPort:
      return Shards::port_of(frame) % static_cast<unsigned>(hosts_.size());
    case Steering::kBySender:
      return std::to_integer<unsigned>(frame[kLastOfSender]) % static_cast<unsigned>(hosts_.size());
    default:
      return port::Crossing::kOwner;
  }
}

void Machine::receive(const Frame& frame) {
  host(queue_of(frame)).receive(frame);
}

void Machine::wake_others(unsigned node) {
  for (const auto& host : hosts_)
    if (host != hosts_[node]) run_.clock.after(kBell, [at = host.get()] { at->poke(); });
}

void Machine::go_down() {
  for (const auto& host : hosts_) host->go_down();
  crossing_.reset();
}

void Machine::boot() {
  const auto nodes = static_cast<unsigned>(hosts_.size());
  if (nodes > 1) {
    const auto room =
        wire::kMaxHeadSize + (std::size_t{1} << config().node.max_stu) + wire::kAppendSize;
    crossing_ = std::make_shared<port::Crossing>(nodes, room);
  }
  for (const auto& host : hosts_) host->boot(crossing_);
}

void Machine::retire() {
  const auto count = crossing_ ? crossing_->count() : 0;
  for (unsigned from = 0; from < count; ++from)
    for (unsigned to = 0; to < count; ++to)
      run_.verdict.require(crossing_->ring(from, to).waiting() == 0,
                           "a frame for another Node was never taken");
  for (const auto& host : hosts_) host->retire();
}

}  // namespace stp::sim
