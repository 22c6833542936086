// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/host.h"

#include <cerrno>

#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/layout.h"

namespace stp::sim {
namespace {

constexpr std::size_t kStock = 4;
constexpr Time kTurn = 200;  // ns, of the loop that drives the Node

}  // namespace

Host::Host(Run& run, const HostConfig& config, Place place, Accept accept)
    : run_(run),
      config_(config),
      place_(std::move(place)),
      accept_(std::move(accept)),
      keys_(run.dice.fork()),
      dice_(run.dice.fork()) {
  if (config_.lies != 0) liar_.emplace(config_.lies, run.dice.fork());
}

void Host::plug_in(Uplink& uplink) {
  uplink_ = &uplink;
  uplink.add_user([this] { poke(); });
}

void Host::boot(const std::shared_ptr<port::Crossing>& crossing) {
  auto config = config_.node;
  if (crossing) {
    seat_.emplace(crossing, place_.node);
    config.shards = &crossing->shards();
    config.shard = place_.node;
    const auto part = [&](std::uint64_t all) {
      return (all + crossing->count() - 1) / crossing->count();
    };
    config.granted_limit = part(config.granted_limit);
    config.granted_most = part(config.granted_most);
  }
  node_ = std::make_unique<Node>(config, keys_);
  head_.resize(node_->frame_room());
  up_ = true;
  node_->open_endpoint(config_.endpoint, listener_);
  node_->listen(listener_, uport());
  stock();
  pauses_left_ = config_.pauses.count;
  plan_pause();
}

void Host::go_down() {
  up_ = false;
  ++life_;
  for (auto& [cookie, end] : ends_)
    if (auto* const application = end->application()) application->lost();
  node_.reset();  // before what it refers to
  seat_.reset();
  ends_.clear();
  mappings_.clear();
  ports_.clear();
  unread_.clear();
  paused_ = false;
  stocked_ = 0;
  timer_ = kNever;
}

std::uint64_t Host::new_end() {
  const auto cookie = next_cookie_++;
  const ChannelGeometry geometry{config_.endpoint.slots, config_.endpoint.credits};
  ends_.emplace(cookie, std::make_unique<End>(*this, cookie, geometry));
  return cookie;
}

void Host::stock() {
  while (!retiring_ && stocked_ < kStock) {
    const auto cookie = new_end();
    node_->stock(listener_, ends_.at(cookie)->channel(), cookie);
    ++stocked_;
  }
}

End* Host::find(std::uint64_t cookie) const {
  const auto found = ends_.find(cookie);
  return found == ends_.end() ? nullptr : found->second.get();
}

End* Host::connect(const MacAddr& peer, std::uint32_t uport, Application& application,
                   VcInfo& out) {
  const auto cookie = new_end();
  auto& end = *ends_.at(cookie);
  VcId id = kNoneId;
  if (node_->connect(listener_, peer, uport, end.channel(), cookie, id, run_.now()) != 0) {
    ends_.erase(cookie);
    return nullptr;
  }
  node_->vc_info(id, out);
  end.attach(id, application);
  poke();
  return &end;
}

void Host::open_port(Application& application) {
  auto config = config_.endpoint;
  config.connectionless = true;
  const auto cookie = new_end();
  auto& end = *ends_.at(cookie);
  VcId id = kNoneId;
  run_.verdict.require(
      node_->open_endpoint(config, ports_.emplace_back()) == 0 &&
          node_->open_port(ports_.back(), end.channel(), cookie, id, run_.now()) == 0,
      "a connectionless endpoint cannot be opened");
  end.attach(id, application);
}

void Host::close_unused_ports() {
  std::erase_if(ports_, [this](EndpointId id) { return node_->close_endpoint(id) == 0; });
}

// Plans the loop's next turn. It finds the Node idle unless a frame arrives before it.
// protocol: 6.17
void Host::look_again() {
  if (config_.never_idle) return;
  run_.clock.after(kTurn, [this, life = life_, received = ++received_] {
    if (life != life_ || received != received_ || paused_) return;
    node_->idle();
    settle();
  });
}

void Host::plan_pause() {
  const auto& pauses = config_.pauses;
  if (pauses_left_ == 0) return;
  --pauses_left_;
  run_.clock.after(dice_.between(pauses.every / 2, pauses.every), [this, &pauses, life = life_] {
    if (life != life_) return;
    paused_ = true;
    run_.clock.after(dice_.between(pauses.shortest, pauses.longest), [this, life] {
      if (life == life_) resume();
    });
  });
}

// Reads the frames that arrived during the pause before it handles timers, like a link's turn.
void Host::resume() {
  paused_ = false;
  take_over();
  for (; !unread_.empty(); unread_.pop_front()) take(unread_.front());
  if (run_.now() >= node_->next_deadline()) node_->expire(run_.now());
  timer_ = kNever;
  settle();
  plan_pause();
}

void Host::poke() {
  if (settling_ || !up_ || paused_) return;
  settling_ = true;
  run_.clock.after(0, [this] { settle(); });
}

void Host::settle() {
  settling_ = false;
  if (!up_ || paused_) return;
  take_over();
  drain_events();
  send();
  drain_events();
  set_timer();
}

void Host::drain_events() {
  Event event{};
  while (node_->next_event(event)) handle(event);
}

void Host::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kNews:  // for users that collect doorbells: none here
      return;
    case Event::Kind::kWake:
      if (auto* const end = find(event.cookie))
        end->wake(config_.reaction == 0 ? 0 : dice_.between(0, config_.reaction));
      return;
    case Event::Kind::kAcceptReady:
      return accept_all();
    case Event::Kind::kStockLow:
      return stock();
    case Event::Kind::kVcOver:
      return;  // the channel's state says so too
    case Event::Kind::kVcGone: {
      auto* const end = find(event.cookie);
      if (end == nullptr) return run_.verdict.fail("a channel went that the Node did not have");
      if (auto* const application = end->application()) application->gone();
      ends_.erase(event.cookie);
      return close_unused_ports();
    }
    case Event::Kind::kRegionGone:
      run_.verdict.require(mappings_.erase(event.id) == 1, "a region went that was not mapped");
      return close_unused_ports();
  }
}

void Host::accept_all() {
  for (VcId id = kNoneId; node_->accept(listener_, id) == 0;) {
    VcInfo info{};
    node_->vc_info(id, info);
    --stocked_;
    auto& end = *ends_.at(info.cookie);
    end.attach(id, accept_(*this, end, info));
  }
}

void Host::set_timer() {
  const auto deadline = node_->next_deadline();
  if (deadline >= timer_) return;
  timer_ = deadline;
  run_.clock.at(deadline, [this, deadline, life = life_] {
    if (life != life_ || timer_ != deadline || paused_) return;
    timer_ = kNever;
    take_over();
    node_->expire(run_.now());
    settle();
  });
}

std::uint32_t Host::free_bufx(Direction direction, std::uint32_t count) const {
  const auto& e = config_.endpoint;
  auto at = direction == Direction::kReceive ? e.rx_bufx_base : e.tx_bufx_base;
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [id, m] : mappings_)
      if (m.direction == direction && at < m.bufx + m.count && m.bufx < at + count) {
        at = m.bufx + m.count;
        moved = true;
      }
  }
  return at;
}

RegionId Host::map(EndpointId endpoint, Direction direction, const std::shared_ptr<Memory>& memory,
                   unsigned copies, std::uint32_t& bufx) {
  const std::vector<MutableBytes> pieces(copies, memory->all());
  const auto count =
      static_cast<std::uint32_t>(memory->all().size() >> config_.endpoint.bufsize) * copies;
  bufx = free_bufx(direction, count);
  RegionId region = kNoneId;
  if (const auto error = node_->map(endpoint, direction, bufx, pieces, region); error != 0)
    run_.verdict.fail("memory cannot be mapped: " + std::to_string(error));
  mappings_[region] = {memory, direction, bufx, count};
  return region;
}

void Host::unmap(RegionId region) {
  if (node_->unmap(region) != 0) run_.verdict.fail("a region cannot be unmapped");
  poke();
}

void Host::retire() {
  drain_events();
  retiring_ = true;
  for (std::uint64_t cookie = 0; node_->unstock(listener_, cookie); --stocked_) ends_.erase(cookie);
  auto& verdict = run_.verdict;
  verdict.require(node_->close_endpoint(listener_) == 0, "an endpoint cannot be closed");
  verdict.require(ports_.empty(), "a Node keeps a connectionless endpoint");
  verdict.require(ends_.empty(), "a Node keeps a channel");
  verdict.require(mappings_.empty(), "a Node keeps user memory");
  verdict.require(node_->vc_count() == 0, "a Node keeps a connection");
  verdict.require(node_->next_deadline() == kNever, "a Node with nothing left waits for something");
  TxFrame frame{.head = head_.data(), .attached = {}, .token = {}};
  verdict.require(node_->transmit({&frame, 1}, run_.now()) == 0,
                  "a Node with nothing left has something to say");
}

// --- the frames of a Host: from the cable to its Node and back, and to and from the other Nodes of
// its machine

namespace {

constexpr std::size_t kDescriptors = 1024;  // of the receive ring; further frames are lost
constexpr Time kFullRing = kMillisecond;    // after it a sender looks again whether there is room

}  // namespace

void Host::receive(const Frame& frame) {
  if (!up_) return run_.trace.fault(run_.now(), Fault::kHostDown, frame);
  if (!paused_) return take(frame);
  if (unread_.size() == kDescriptors) return run_.trace.fault(run_.now(), Fault::kOverflow, frame);
  unread_.push_back(frame);
}

void Host::take(const Frame& frame) {
  run_.trace.received(run_.now(), frame);
  if (liar_) liar_->overhear(frame);
  if (hand_over(frame)) return;
  const Bytes bytes(frame);
  const LoopedFrame marked{.head = bytes, .attached = {}, .marked = true};
  if (frame.marked)
    node_->receive_apart({&marked, 1}, run_.now());
  else
    node_->receive({&bytes, 1}, run_.now());
  look_again();
  poke();
}

// True: the frame belongs to another Node of the machine.
bool Host::hand_over(const Frame& frame) {
  if (!seat_) return false;
  const auto owner = seat_->owner_of(frame);
  if (owner == seat_->shard()) return false;
  if (!seat_->give(owner, frame, {}, false)) run_.trace.fault(run_.now(), Fault::kOverflow, frame);
  seat_->publish();
  place_.wake_others();
  return true;
}

// Takes what other Nodes have handed over.
void Host::take_over() {
  if (!seat_) return;
  port::NodeEngine engine(*node_);
  if (seat_->deliver(engine, run_.now()) == 0) return;
  look_again();
  poke();
  place_.wake_others();
}

// Gives the wire one frame at a time.
void Host::send() {
  if (place_.one_queue && place_.node != port::Crossing::kOwner) return give_to_first();
  if (uplink_->busy()) return;
  if (liar_) {
    if (auto old = liar_->replay(); !old.empty()) {
      run_.trace.fault(run_.now(), Fault::kLie, old);
      const auto size = old.size();
      return uplink_->send(place_.node, size, [old = std::move(old)] { return old; });
    }
  }
  others_turn_ = !others_turn_;
  if (others_turn_ && send_for_another()) return;
  if (!send_own() && !others_turn_) send_for_another();
}

// The wire reads the frame, and the user's memory with it, until it asks for the content.
bool Host::send_own() {
  TxFrame frame{.head = head_.data(), .attached = {}, .token = {}};
  if (node_->transmit({&frame, 1}, run_.now()) == 0) return false;
  const auto size = frame.head_length + frame.attached.size();
  head_.resize(frame.head_length);
  const auto content = [this, token = frame.token, attached = frame.attached,
                        may_be_marked = frame.may_be_marked, life = life_] {
    if (life != life_) return Frame{};
    Frame whole(std::move(head_));
    whole.may_be_marked = may_be_marked;
    whole.insert(whole.end(), attached.begin(), attached.end());
    head_ = Frame(node_->frame_room());
    node_->transmitted(token);
    return sent(std::move(whole));
  };
  uplink_->send(place_.node, size, content);
  return true;
}

// A frame of a Node that has no queue of its own.
bool Host::send_for_another() {
  if (!place_.one_queue) return false;
  Frame frame;
  seat_->take_for_link(1, [&](Bytes bytes) { frame.assign(bytes.begin(), bytes.end()); });
  if (frame.empty()) return false;
  place_.wake_others();
  const auto size = frame.size();
  uplink_->send(place_.node, size, [this, frame = std::move(frame), life = life_] {
    return life == life_ ? sent(frame) : Frame{};
  });
  return true;
}

// Gives a burst to the first Node, which has the queue.
void Host::give_to_first() {
  for (std::size_t given = 0; given < port::kBurst; ++given) {
    if (!seat_->may_send(run_.now())) {
      run_.clock.after(kFullRing, [this] { poke(); });
      break;
    }
    TxFrame frame{.head = head_.data(), .attached = {}, .token = {}};
    if (node_->transmit({&frame, 1}, run_.now()) == 0) break;
    const auto head = Bytes(head_).first(frame.head_length);
    if (!seat_->give_to_link(head, frame.attached))
      run_.trace.fault(run_.now(), Fault::kOverflow, head);
    node_->transmitted(frame.token);
    seat_->publish();
    place_.wake_others();
    poke();  // there may be more
  }
}

Frame Host::sent(Frame frame) {
  if (liar_ && liar_->mutate(frame)) run_.trace.fault(run_.now(), Fault::kLie, frame);
  run_.trace.sent(run_.now(), frame);
  return frame;
}

bool Application::send(UserChannel& to, Time now) {
  bool any = false;
  SendEntry request{};
  for (; to.writable() && transmit(request, now); any = true) to.send(request);
  return any;
}

void End::attach(VcId id, Application& application) {
  id_ = id;
  application_ = &application;
  user_ = UserChannel(channel_.data());
  user_.begin_sleep();  // never ends: so the Node sends every wake-up
  wake(0);
}

void End::wake(Time delay) {
  const auto when = host_.run().now() + delay;
  if (when >= next_run_) return;
  next_run_ = when;
  auto& host = host_;
  host.run().clock.at(when, [&host, when, cookie = cookie_, life = host.life()] {
    auto* const end = host.life() == life ? host.find(cookie) : nullptr;
    if (end == nullptr || end->next_run_ != when) return;
    end->next_run_ = kNever;
    end->run();
  });
}

void End::run() {
  if (closed_ || application_ == nullptr || user_.state() == ChannelState::kConnecting) return;
  const auto now = host_.run().now();
  VcInfo info{};
  if (!opened_ && user_.state() != ChannelState::kFailed && host_.node().vc_info(id_, info) == 0) {
    opened_ = true;
    application_->opened(*this, info, now);
  }
  ReceivedEntry entry;
  while (opened_ && user_.receive(entry)) application_->receive(entry, now);
  // Handles what arrived before the end first: both may be seen at the same time.
  if (opened_) application_->work(now);
  if (!end_if_over(now)) serve(now);
  host_.poke();
}

bool End::end_if_over(Time now) {
  switch (user_.state()) {
    case ChannelState::kOpen:
      return false;
    case ChannelState::kFailed:
      close(false, user_.error() != 0 ? user_.error() : -EIO, now);
      return true;
    default:
      close(false, -EPIPE, now);
      return true;
  }
}

void End::serve(Time now) {
  if (now >= application_->next_deadline()) application_->expire(now);
  application_->work(now);
  if (application_->send(user_, now)) host_.node().kick(id_);
  application_->work(now);
  if (application_->wants_close()) return close(false, 0, now);
  if (const auto next = application_->next_deadline(); next != kNever)
    wake(next > now ? next - now : 0);
}

void End::abort() {
  if (!closed_ && application_ != nullptr) close(true, 0, host_.run().now());
}

void End::close(bool at_once, int error, Time now) {
  closed_ = true;
  host_.node().close(id_, at_once, now);
  application_->ended(error, now);
  host_.poke();
}

namespace {

using namespace wire;

// Where the Schedule Header begins, in frames as this project sends them without a tag.
std::size_t header_at(const Frame& frame) {
  const bool snap = load16(frame.data() + kEthernetSize - 2) <= kMax8023Length;
  return kEthernetSize + (snap ? kSnapSize : 0);
}

bool long_enough(const Frame& frame) {
  return frame.size() >= kEthernetSize && frame.size() >= header_at(frame) + kHeaderSize;
}

}  // namespace

void Liar::keep(const Frame& frame) {
  if (kept_.size() < kKept)
    kept_.push_back(frame);
  else
    kept_[next_kept_++ % kKept] = frame;
}

void Liar::overhear(const Frame& frame) {
  if (!long_enough(frame)) return;
  const auto at = header_at(frame) + 4 * dice_.below(kHeaderSize / 4);
  const auto word = load32(frame.data() + at);
  if (words_.size() < kKept)
    words_.push_back(word);
  else
    words_[next_word_++ % kKept] = word;
}

std::uint32_t Liar::invent(std::uint32_t truth) {
  switch (dice_.below(6)) {
    case 0:
      return dice_.next();
    case 1:
      return truth + 1;
    case 2:
      return truth - 1;
    case 3:
      return dice_.chance(kAlways / 2) ? 0 : ~0U;
    case 4:
      return truth ^ 1U << dice_.below(32);
    default:
      return words_.empty() ? 0 : words_[dice_.below(words_.size())];
  }
}

void Liar::change_field(Frame& frame) {
  auto* const header = frame.data() + header_at(frame);
  if (dice_.chance(kAlways / 2)) {
    auto* const field = header + 2 * dice_.below(kHeaderSize / 2);
    store16(field, static_cast<std::uint16_t>(invent(load16(field))));
  } else {
    auto* const field = header + 4 * dice_.below(kHeaderSize / 4);
    store32(field, invent(load32(field)));
  }
}

void Liar::change_length(Frame& frame) {
  if (dice_.chance(kAlways / 2))
    frame.resize(dice_.between(1, frame.size()));
  else
    frame.resize(frame.size() + dice_.between(1, 64));
}

// Half of the changed frames get a correct checksum: it does not protect against its sender.
void Liar::repair_checksum(Frame& frame) {
  const auto at = header_at(frame);
  auto* const cksum = frame.data() + at + at::kCksum;
  if (load16(cksum) == 0) return;
  store16(cksum, 0);
  Checksum sum;
  sum.add(Bytes(frame).subspan(at));
  store16(cksum, sum.wire_value());
}

bool Liar::mutate(Frame& frame) {
  keep(frame);
  if (!dice_.chance(lies_) || !long_enough(frame)) return false;
  if (dice_.chance(kAlways / 8)) {
    change_length(frame);
    return true;
  }
  for (auto changes = dice_.between(1, 2); changes > 0; --changes) change_field(frame);
  if (dice_.chance(kAlways / 2)) repair_checksum(frame);
  return true;
}

Frame Liar::replay() {
  if (kept_.empty() || !dice_.chance(lies_ / 4)) return {};
  auto frame = kept_[dice_.below(kept_.size())];
  if (long_enough(frame) && dice_.chance(kAlways / 2)) change_field(frame);
  return frame;
}

}  // namespace stp::sim
