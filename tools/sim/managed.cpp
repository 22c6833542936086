// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace stp::sim {
namespace {

constexpr std::uint32_t kMaxCtsWindow = 6;

}  // namespace

void ManagedParty::begin(Time) {
  const auto window = static_cast<std::uint32_t>(dice_.between(1, kMaxCtsWindow));
  sequencer_.emplace(sequencer_config(info_, workload_.max_block, window));
  sequencer_->write_to(end_->ring());
}

void ManagedParty::receive(const ReceivedEntry& entry, Time now) {
  sequencer_->receive(entry, now);
}

bool ManagedParty::send(UserChannel& to, Time now) {
  return sequencer_->transmit(to, now);
}

Time ManagedParty::next_deadline() const {
  return sequencer_ ? std::min(sequencer_->next_deadline(), look_again_) : kNever;
}

void ManagedParty::expire(Time now) {
  if (now >= look_again_) look_again_ = kNever;
  if (now >= sequencer_->next_deadline()) sequencer_->expire(now);
}

void ManagedParty::take_completions() {
  for (Completion c{}; sequencer_->next_completion(c);) on_completion(c);
}

void ManagedParty::work(Time now) {
  sequencer_->taken(end_->taken(), now);
  sequencer_->observe_path(end_->cts_repeated(), end_->path_block(), end_->steps());
  take_completions();
  serve_all(now);
  post_receives(now);
  cancel_some();
  while (begun_ < workload_.operations && begin_something(now)) {
  }
  cancel_left_receives();
  take_completions();
  const bool was_idle = idle_since_ != kNever, was_quiet = std::exchange(was_quiet_, quiet());
  if (idle() != was_idle) idle_since_ = was_idle ? kNever : now;
  if (idle() != was_idle || quiet() != was_quiet) peer_->poke();  // the peer may wait for that
}

bool ManagedParty::idle() const {
  return state() == State::kOpen && begun_ == workload_.operations && requests_.empty() &&
         wanted_receives_.empty() && under_way(Kind::kReceive) == pending_.size() &&
         std::none_of(served_.begin(), served_.end(), [this](const auto& served) {
           const auto truth = ledger_.regions.find(served.second.length);
           return truth != ledger_.regions.end() && truth->second.ended();
         });
}

bool ManagedParty::wants_close() const {
  return closes_ && quiet() && peer_->quiet();
}

std::size_t ManagedParty::under_way(Kind kind) const {
  return static_cast<std::size_t>(std::count_if(
      pending_.begin(), pending_.end(), [kind](const auto& p) { return p.second.kind == kind; }));
}

// Cancels receives that were meant for writes that failed. All other receives must be filled.
void ManagedParty::cancel_left_receives() {
  if (!idle() || !peer_->idle() || under_way(Kind::kReceive) > peer_->writes_failed_) return;
  for (auto& [context, p] : pending_) sequencer_->cancel(context);
}

std::string ManagedParty::overdue(Time now) const {
  if (state() != State::kOpen) return {};
  const auto late = [&](Time since) { return since != kNever && now - since > workload_.patience; };
  for (const auto& [context, p] : pending_)
    if (late(p.since) && (p.kind != Kind::kReceive || late(idle_since_)))
      return describe(context, p, "never ends", 0);
  return {};
}

void ManagedParty::stop(int error, Time) {
  if (!sequencer_) return;
  stopping_ = true;
  sequencer_->fail(error != 0 ? error : -ECANCELED);
  take_completions();
  expect(pending_.empty(), "an operation has no completion though its connection has ended");
  expect(sequencer_->outstanding() == 0, "operations are outstanding on a connection that ended");
  // Answers to Gets may still be in flight and read the regions, so their bytes are kept.
  for (auto& [request, served] : served_) {
    close_region(served);
    const auto bytes = receive_memory_->bytes(served.lot);
    served.last.assign(bytes.begin(), bytes.end());
  }
  for (const auto& [context, p] : pending_)
    if (p.lot && p.kind == Kind::kReceive) receive_memory_->give_back(*p.lot);
}

bool ManagedParty::memory_intact() const {
  return Party::memory_intact() &&
         std::all_of(served_.begin(), served_.end(), [this](const auto& entry) {
           const auto& [lot, length, last] = entry.second;
           return std::ranges::equal(receive_memory_->bytes(lot), last) &&
                  receive_memory_->intact_around(lot);
         });
}

void ManagedParty::forget() {
  for (const auto& [context, p] : pending_)
    if (p.kind == Kind::kFetch) ledger_.regions[p.region].fetch_failed(p.fetch);
}

ManagedSession::ManagedSession(Run& run, const SessionConfig& config)
    : run_(run),
      honest_(config.honest),
      client_(run, config, ledger_),
      server_(run, config, ledger_) {
  ledger_.session = config.number;
  constexpr std::size_t kWhoCloses = 3;
  const auto who = run.dice.below(kWhoCloses);
  client_.meet(server_, who != 1);
  server_.meet(client_, who != 0);
}

std::string ManagedSession::overdue(Time now) {
  const auto late = client_.overdue(now);
  return late.empty() ? server_.overdue(now) : late;
}

void ManagedSession::check(bool reliable) {
  if (!honest_) return;
  for (const auto& [length, region] : ledger_.regions)
    run_.verdict.require(region.totals_right(), "FetchOps do not add up to what was asked for");
  if (!reliable) return;
  if (!ledger_.unexplained.empty()) run_.verdict.fail(ledger_.unexplained);
  for (const auto* const party : {&client_, &server_})
    run_.verdict.require(party->error() == 0 || party->error() == -EPIPE,
                         "a connection was cut short without a reason");
}

// --- the operations that a program begins

namespace {

constexpr unsigned kMaxRegions = 2;  // that one program requests in a session
constexpr Rate kHalf = kAlways / 2, kTenth = kAlways / 10;
constexpr std::uint64_t kMaxWindow = 8;

}  // namespace

bool ManagedParty::begin_something(Time now) {
  const auto active = std::count_if(pending_.begin(), pending_.end(), [](const auto& p) {
    return p.second.kind != Kind::kReceive && p.second.kind != Kind::kServe;
  });
  if (static_cast<unsigned>(active) >= workload_.at_once) return false;
  if (dice_.chance(kTenth)) sequencer_->no_operation();
  switch (dice_.below(8)) {
    case 0:
    case 1:
    case 2:
      return begin_write(now);
    case 3:
      return begin_read(now);
    case 4:
      return dice_.chance(kTenth * 3) && end_some_region() ? true : begin_region(now);
    default:
      return begin_on_region(now);
  }
}

bool ManagedParty::started(int error, Context context, Pending pending, Time now) {
  if (error != 0) {
    if (error != -EACCES || !regions_.contains(pending.region))
      run_.verdict.fail("an operation cannot begin: " + std::to_string(error));
    release(pending);
    region_is_lost(pending.region);
    return false;
  }
  pending.since = now;
  pending.cancel = dice_.chance(workload_.cancels);
  run_.trace.note(now, [&] { return describe(context, pending, "begins", error); });
  pending_.emplace(context, pending);
  ++begun_;
  return true;
}

std::uint64_t ManagedParty::draw_length() {
  const auto stu = std::uint64_t{1} << info_.remote_max_stu;
  if (dice_.chance(kTenth)) return 0;
  if (dice_.chance(kTenth * 2) && stu < workload_.longest)  // about the size of an STU
    return std::min<std::uint64_t>(stu + dice_.between(0, 2) - 1, workload_.longest);
  return dice_.magnitude(1, workload_.longest);
}

Landing ManagedParty::landing(const Lot& lot) const {
  return {mx_, receive_memory_->address(lot), lot.length};
}

bool ManagedParty::begin_write(Time now) {
  Pending p;
  p.kind = Kind::kWrite;
  p.length = draw_length();
  p.lot = transmit_memory_->take(p.length, 1, dice_);
  if (!p.lot) return false;
  const auto context = ledger_.new_context();
  p.tag = static_cast<std::uint32_t>(context);
  p.pattern = ledger_.pattern(context);
  fill_pattern(transmit_memory_->bytes(*p.lot), p.pattern);
  ledger_.writes[p.tag].length = p.length;
  WriteOptions options;
  options.tag = p.tag;
  if (dice_.chance(kTenth)) options.flags |= wire::flag::kInterrupt;
  if (dice_.chance(kTenth)) options.flags |= wire::flag::kOrder;
  peer_->want_receive(p.length);
  return started(sequencer_->write(context, transmit_memory_->address(*p.lot), p.length, options),
                 context, p, now);
}

bool ManagedParty::begin_read(Time now) {
  Pending p;
  p.kind = Kind::kRead;
  p.length = dice_.magnitude(1, workload_.longest);
  if (ledger_.reads.contains(p.length)) return begin_write(now);
  p.lot = receive_memory_->take(p.length, 1, dice_);
  if (!p.lot) return begin_write(now);
  const auto context = ledger_.new_context();
  p.pattern = ledger_.pattern(context);
  ledger_.reads[p.length] = {p.pattern, false};
  return started(sequencer_->read(context, landing(*p.lot)), context, p, now);
}

bool ManagedParty::begin_region(Time now) {
  if (regions_begun_ == kMaxRegions || workload_.longest < 2 * RegionTruth::kWords * kWord)
    return begin_write(now);
  const auto size = RegionTruth::draw_slot_size(workload_.longest, dice_);
  const auto length = RegionTruth::length_of(size);
  if (ledger_.regions.contains(length)) return begin_write(now);
  ++regions_begun_;
  const auto context = ledger_.new_context();
  ledger_.regions[length].open(size, ledger_.pattern(context));
  Pending p;
  p.kind = Kind::kRegion;
  p.length = p.region = length;
  const auto window = static_cast<std::uint32_t>(dice_.between(1, kMaxWindow));
  return started(sequencer_->request_region(context, length, window), context, p, now);
}

bool ManagedParty::end_some_region() {
  for (const auto& [length, region] : regions_) {
    if (region.users != 0) continue;
    const auto error = sequencer_->end_region(region.remote);
    run_.verdict.require(error == 0 || error == -EACCES, "a region cannot be ended");
    if (error != 0)
      region_is_lost(length);
    else
      lose_region(length);
    ++begun_;
    return true;
  }
  return false;
}

bool ManagedParty::begin_on_region(Time now) {
  if (regions_.empty()) return begin_region(now);
  auto& region =
      std::next(regions_.begin(), static_cast<std::ptrdiff_t>(dice_.below(regions_.size())))
          ->second;
  switch (dice_.below(3)) {
    case 0:
      return begin_put(region, now);
    case 1:
      return begin_get(region, now);
    default:
      return begin_fetch(region, now);
  }
}

std::optional<std::size_t> ManagedParty::idle_slot(RegionTruth& truth) {
  const auto first = dice_.below(RegionTruth::kSlots);
  for (std::size_t i = 0; i < RegionTruth::kSlots; ++i) {
    const auto index = (first + i) % RegionTruth::kSlots;
    if (!truth.slot(index).busy) return index;
  }
  return std::nullopt;
}

bool ManagedParty::begin_put(OpenRegion& region, Time now) {
  auto& truth = ledger_.regions[region.remote.length];
  const auto slot = idle_slot(truth);
  if (!slot) return begin_write(now);
  Pending p;
  p.kind = Kind::kPut;
  p.length = truth.slot_size();
  p.region = region.remote.length;
  p.slot = *slot;
  p.lot = transmit_memory_->take(p.length, 1, dice_);
  if (!p.lot) return false;
  const auto context = ledger_.new_context();
  p.pattern = ledger_.pattern(context);
  fill_pattern(transmit_memory_->bytes(*p.lot), p.pattern);
  truth.slot(*slot).busy = true;
  ++region.users;
  std::uint16_t flags = 0;
  if (dice_.chance(kTenth)) flags |= wire::flag::kInterrupt;
  return started(sequencer_->put(context, region.remote, truth.slot_offset(*slot),
                                 transmit_memory_->address(*p.lot), p.length,
                                 {.flags = flags, .quiet = context % 4 == 0}),
                 context, p, now);
}

bool ManagedParty::begin_get(OpenRegion& region, Time now) {
  auto& truth = ledger_.regions[region.remote.length];
  const auto slot = idle_slot(truth);
  if (!slot) return begin_write(now);
  Pending p;
  p.kind = Kind::kGet;
  p.length = truth.slot_size();
  p.region = region.remote.length;
  p.slot = *slot;
  p.lot = receive_memory_->take(p.length, 1, dice_);
  if (!p.lot) return begin_write(now);
  truth.slot(*slot).busy = true;
  ++region.users;
  const auto context = ledger_.new_context();
  return started(sequencer_->get(context, region.remote, truth.slot_offset(*slot), landing(*p.lot)),
                 context, p, now);
}

bool ManagedParty::begin_fetch(OpenRegion& region, Time now) {
  auto& truth = ledger_.regions[region.remote.length];
  Pending p;
  p.kind = Kind::kFetch;
  p.length = kWord;
  p.region = region.remote.length;
  p.lot = receive_memory_->take(kWord, kWord, dice_);
  if (!p.lot) return begin_write(now);
  const auto context = ledger_.new_context();
  p.fetch = truth.draw_fetch(dice_, context);
  ++region.users;
  return started(sequencer_->fetch(context, region.remote, p.fetch.word * kWord, p.fetch.function,
                                   p.fetch.operand, p.fetch.compare, landing(*p.lot)),
                 context, p, now);
}

void ManagedParty::cancel_some() {
  std::vector<Context> wanted;
  for (auto& [context, p] : pending_)
    if (p.cancel && dice_.chance(kHalf)) wanted.push_back(context);
  for (const auto context : wanted) {
    auto& p = pending_.at(context);
    p.cancel = false;
    p.cancelled = true;
    ++ledger_.cancels;
    const auto error = sequencer_->cancel(context);
    run_.verdict.require(error == 0 || error == -ENOENT, "cancel fails");
  }
}

// --- completions, checked against the ledger

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

// --- the peer's operations, served

namespace {

constexpr Rate kPutOff = kAlways / 5;
constexpr Time kLongestPutOff = 2 * kMillisecond;
constexpr std::uint64_t kMaxServeWindow = 8;

}  // namespace

void ManagedParty::want_receive(std::uint64_t length) {
  wanted_receives_.push_back(length);
  poke();
}

// Posts receives at once, or a little late so that the write has to wait.
void ManagedParty::post_receives(Time now) {
  while (!wanted_receives_.empty()) {
    if (dice_.chance(kPutOff)) {
      look_again_ = now + dice_.magnitude(1, kLongestPutOff);
      return;
    }
    const auto needed = wanted_receives_.front();
    auto length = dice_.between(needed, receive_memory_->largest());
    const bool too_short = needed > 0 && dice_.chance(workload_.refusals);
    if (too_short) length = dice_.between(0, needed - 1);
    Pending p;
    p.kind = Kind::kReceive;
    p.lot = receive_memory_->take(length, 1, dice_);
    if (!p.lot) {
      if (drop_receive()) continue;
      look_again_ = now + kLongestPutOff;
      return;
    }
    if (too_short) ++ledger_.refusals;
    p.length = length;
    p.since = now;
    wanted_receives_.pop_front();
    const auto context = ledger_.new_context();
    run_.verdict.require(sequencer_->post_receive(context, landing(*p.lot)) == 0,
                         "a receive cannot be posted");
    pending_.emplace(context, p);
  }
}

// Cancels the oldest receive if the peer has no write left for it: a refused write leaves its
// receive behind.
bool ManagedParty::drop_receive() {
  if (under_way(Kind::kReceive) == 0 || peer_->under_way(Kind::kWrite) > wanted_receives_.size())
    return false;
  const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                   [](const auto& p) { return p.second.kind == Kind::kReceive; });
  ++ledger_.dropped;
  sequencer_->cancel(oldest->first);
  take_completions();
  return true;
}

void ManagedParty::serve_all(Time now) {
  while (!requests_.empty()) {
    const auto request = requests_.front();
    if (dice_.chance(workload_.refusals)) {
      ++ledger_.refusals;
      sequencer_->refuse(request.number);
    } else if (!(request.region ? serve_region(request) : serve_read(request, now))) {
      if (!drop_receive()) look_again_ = now + kLongestPutOff;  // no lot is free now
      return;
    }
    requests_.pop_front();
  }
}

bool ManagedParty::serve_read(const Request& request, Time now) {
  const auto truth = ledger_.reads.find(request.length);
  if (truth == ledger_.reads.end() || request.length > transmit_memory_->largest()) {
    expect(false, "a read is asked for that nobody began");
    sequencer_->refuse(request.number);
    return true;
  }
  Pending p;
  p.kind = Kind::kServe;
  p.length = request.length;
  p.pattern = truth->second.pattern;
  p.lot = transmit_memory_->take(p.length, 1, dice_);
  if (!p.lot) return false;
  p.since = now;
  fill_pattern(transmit_memory_->bytes(*p.lot), p.pattern);
  const auto context = ledger_.new_context();
  const auto error =
      sequencer_->serve_read(request.number, context, transmit_memory_->address(*p.lot), p.length);
  if (error == 0)
    pending_.emplace(context, p);
  else  // the reader has cancelled it meanwhile
    transmit_memory_->give_back(*p.lot);
  expect(error == 0 || (error == -ECANCELED && ledger_.cancels > 0), "a read cannot be served");
  return true;
}

bool ManagedParty::serve_region(const Request& request) {
  const auto truth = ledger_.regions.find(request.length);
  if (truth == ledger_.regions.end() || request.length > receive_memory_->largest()) {
    expect(false, "a region is asked for that nobody wants");
    sequencer_->refuse(request.number);
    return true;
  }
  const auto lot = receive_memory_->take(request.length, kWord, dice_);
  if (!lot) return false;
  const auto memory = receive_memory_->bytes(*lot);
  std::memset(memory.data(), 0, RegionTruth::kWords * kWord);
  auto& region = truth->second;
  for (std::size_t slot = 0; slot < RegionTruth::kSlots; ++slot)
    fill_pattern(memory.subspan(region.slot_offset(slot), region.slot_size()),
                 *region.slot(slot).pattern);
  const auto window = static_cast<std::uint32_t>(dice_.between(1, kMaxServeWindow));
  const auto error = sequencer_->serve_region(request.number, landing(*lot), window);
  if (error == 0)
    served_[request.number] = {*lot, request.length, {}};
  else
    receive_memory_->give_back(*lot);
  expect(error == 0 || (error == -ECANCELED && ledger_.cancels > 0), "a region cannot be opened");
  return true;
}

// Called when the peer can no longer change the region.
void ManagedParty::close_region(const Served& served) {
  std::array<std::uint64_t, RegionTruth::kWords> words{};
  std::memcpy(words.data(), receive_memory_->bytes(served.lot).data(), sizeof words);
  ledger_.regions[served.length].close(words);
  run_.verdict.require(receive_memory_->intact_around(served.lot),
                       "something wrote outside the region that was opened");
}

void ManagedParty::on_region_ended(const Completion& c) {
  const auto found = served_.find(c.request);
  if (found == served_.end()) return expect(false, "a region ended that was not open");
  if (stopping_) return;  // stop() closes all of them
  close_region(found->second);
  receive_memory_->give_back(found->second.lot);
  served_.erase(found);
}

}  // namespace stp::sim
