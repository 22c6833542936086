// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/host.h"

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
    config.granted_limit = (config.granted_limit + crossing->count() - 1) / crossing->count();
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

void Host::abort_all() {
  for (auto& [cookie, end] : ends_) end->abort();
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

}  // namespace stp::sim
