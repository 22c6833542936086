// SPDX-License-Identifier: BSD-3-Clause
// Checks completions against the ledger.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tools/sim/managed.h"

namespace stp::sim {

const char* ManagedParty::name_of(Kind kind) {
  static constexpr std::array kNames{"write",  "receive", "read", "serve",
                                     "region", "put",     "get",  "fetch"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "request";
}

void ManagedParty::on_completion(const Completion& c) {
  switch (c.kind) {
    case Kind::kReadRequest:
    case Kind::kRegionRequest:
      if (!stopping_) requests_.push_back({c.request, c.length, c.kind == Kind::kRegionRequest});
      return;
    case Kind::kEnded:
      return on_region_ended(c);
    case Kind::kRevoked:
      return region_is_lost(c.region.length);
    case Kind::kArrived:
    case Kind::kNotice:
      return;
    default:
      break;
  }
  const auto found = pending_.find(c.context);
  if (found == pending_.end())
    return run_.verdict.fail("an operation completed that was not under way");
  const auto p = found->second;
  pending_.erase(found);
  run_.trace.note(run_.now(), [&] { return describe(c.context, p, "ends", c.status); });
  expect(c.kind == p.kind, "an operation completed as something else");
  check_status(p, c.status);
  switch (p.kind) {
    case Kind::kWrite:
      check_write(p, c.status);
      break;
    case Kind::kReceive:
      check_receive(p, c);
      break;
    case Kind::kRead:
      check_read(p, c.status);
      break;
    case Kind::kServe:
      check_serve(p, c.status);
      break;
    case Kind::kRegion:
      if (c.status == 0) check_region(c);
      break;
    case Kind::kPut:
      check_put(p, c.status);
      break;
    case Kind::kGet:
      check_get(p, c.status);
      break;
    default:
      check_fetch(p, c.status);
      break;
  }
  release(p);
}

std::string ManagedParty::describe(Context context, const Pending& p, const char* what,
                                   int status) const {
  return std::string(name_of(p.kind)) + " " + std::to_string(context) + " of " +
         std::to_string(p.length) + " bytes " + what + ": " + std::to_string(status);
}

void ManagedParty::check_status(const Pending& p, int status) {
  if (stopping_ || status == 0) return;
  const bool cancelled = status == -ECANCELED && ledger_.cancels + ledger_.dropped > 0;
  const bool refused =
      status == -ECONNREFUSED && ledger_.refusals + ledger_.cancels + ledger_.dropped > 0;
  const bool left = p.kind == Kind::kReceive && status == -ECANCELED;
  if (cancelled || refused || left || !ledger_.unexplained.empty()) return;
  ledger_.unexplained =
      std::string("a ") + name_of(p.kind) + " failed without a reason: " + std::to_string(status);
}

// Gives the memory back to the program, which overwrites it: a later access finds other bytes.
void ManagedParty::release(const Pending& p) {
  if (p.region != 0 && p.kind != Kind::kRegion)
    if (const auto region = regions_.find(p.region); region != regions_.end())
      --region->second.users;
  if (!p.lot) return;
  const bool sends = p.kind == Kind::kWrite || p.kind == Kind::kServe || p.kind == Kind::kPut;
  if (sends && stopping_) return;  // frames may still be sent from it
  if (!sends)
    run_.verdict.require(receive_memory_->intact_around(*p.lot),
                         "bytes were written outside what was granted");
  (sends ? *transmit_memory_ : *receive_memory_).give_back(*p.lot);
}

// Whether the bytes of a pending operation are in memory, even if the program has not looked yet.
bool ManagedParty::holds(Kind kind, std::uint64_t pattern, std::uint64_t length) const {
  if (state() != State::kOpen) return true;  // the connection has ended: unknown
  return std::any_of(pending_.begin(), pending_.end(), [&](const auto& entry) {
    const auto& p = entry.second;
    return p.kind == kind && p.length >= length &&
           has_pattern(receive_memory_->bytes(*p.lot).first(length), pattern);
  });
}

void ManagedParty::check_write(const Pending& p, int status) {
  if (status != 0) {
    ++writes_failed_;
    return;
  }
  expect(ledger_.writes[p.tag].received || ledger_.dropped > 0 ||
             peer_->holds(Kind::kReceive, p.pattern, p.length),
         "a write is said to be complete before its bytes are there");
}

void ManagedParty::check_receive(const Pending& p, const Completion& c) {
  if (c.status != 0 || !honest_) return;
  const auto truth = ledger_.writes.find(c.tag);
  if (truth == ledger_.writes.end()) return expect(false, "a receive names a write nobody began");
  expect(!truth->second.received, "a write was received twice");
  truth->second.received = true;
  expect(c.length == truth->second.length, "a write was received with the wrong length");
  if (c.length > p.length) return expect(false, "a receive says it holds more than it can");
  auto filled = *p.lot;
  filled.length = c.length;
  expect(has_pattern(receive_memory_->bytes(filled), ledger_.pattern(c.tag)),
         "a write was received with the wrong bytes");
  expect(receive_memory_->intact_around(filled), "a write wrote beyond its end");
}

void ManagedParty::check_read(const Pending& p, int status) {
  if (status != 0) return;
  expect(has_pattern(receive_memory_->bytes(*p.lot), p.pattern),
         "a read arrived with the wrong bytes");
  ledger_.reads[p.length].arrived = true;
}

void ManagedParty::check_serve(const Pending& p, int status) {
  if (status != 0) return;
  expect(ledger_.reads[p.length].arrived || ledger_.cancels > 0 ||
             peer_->holds(Kind::kRead, p.pattern, p.length),
         "a read is said to be complete before its bytes are there");
}

void ManagedParty::check_region(const Completion& c) {
  if (stopping_) return;
  expect(ledger_.regions.contains(c.region.length), "a region was opened that nobody wanted");
  if (ledger_.regions.contains(c.region.length)) regions_[c.region.length] = {c.region, 0};
}

bool ManagedParty::region_holds(std::uint64_t length, std::size_t at, std::size_t size,
                                std::uint64_t pattern) const {
  if (state() != State::kOpen) return true;
  return std::any_of(served_.begin(), served_.end(), [&](const auto& entry) {
    return entry.second.length == length &&
           has_pattern(receive_memory_->bytes(entry.second.lot).subspan(at, size), pattern);
  });
}

// The Sequencer has ended the region.
void ManagedParty::lose_region(std::uint64_t length) {
  if (regions_.erase(length) != 0) ledger_.regions[length].end();
}

// The Sequencer has ended the region by itself. Only a lying peer can cause that.
void ManagedParty::region_is_lost(std::uint64_t length) {
  if (!regions_.contains(length)) return;
  if (ledger_.unexplained.empty()) ledger_.unexplained = "a region was lost without a reason";
  lose_region(length);
}

void ManagedParty::check_put(const Pending& p, int status) {
  auto& truth = ledger_.regions[p.region];
  auto& slot = truth.slot(p.slot);
  if (status != 0) {  // the bytes may still arrive, so the slot has no known content
    slot.pattern.reset();
    if (!p.cancelled) lose_region(p.region);
    return;
  }
  slot = {p.pattern, false};
  expect(peer_->region_holds(p.region, truth.slot_offset(p.slot), truth.slot_size(), p.pattern),
         "a put is said to be complete before its bytes are there");
}

void ManagedParty::check_get(const Pending& p, int status) {
  auto& slot = ledger_.regions[p.region].slot(p.slot);
  slot.busy = false;
  if (status == 0 && slot.pattern)
    expect(has_pattern(receive_memory_->bytes(*p.lot), *slot.pattern),
           "a get arrived with the wrong bytes");
}

void ManagedParty::check_fetch(const Pending& p, int status) {
  auto& truth = ledger_.regions[p.region];
  if (status != 0) return truth.fetch_failed(p.fetch);
  std::uint64_t before = 0;
  std::memcpy(&before, receive_memory_->bytes(*p.lot).data(), sizeof before);
  expect(truth.fetched(p.fetch, before), "a FetchOp was carried out more than once");
}

}  // namespace stp::sim
