// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/channel.h"

#include <stp/st.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "tools/files/failure.h"
#include "tools/files/note.h"

namespace stp::files {
FileLink::FileLink() {
  stm_domain_attr_t attributes{};
  attributes.size = sizeof attributes;
  attributes.buffer_log2 = kBufferLog2;
  if (const auto error = ::stm_domain_open(&attributes, &domain_); error != 0)
    throw link_failure(error);
}

std::size_t FileLink::stu() const {
  constexpr std::uint32_t kAround = 40 + 64;  // the Schedule Header and the appended 64 bytes
  stm_domain_info_t info{};
  info.size = sizeof info;
  const auto known = ::stm_domain_query(domain_, &info) == 0 && info.mtu > kAround;
  return known ? std::bit_floor(info.mtu - kAround) : 1;
}

int FileLink::error() const {
  stm_link_info_t info{};
  info.size = sizeof info;
  return ::stm_link_query(domain_, &info);
}

std::string FileLink::trouble() const {
  stm_link_info_t info{};
  info.size = sizeof info;
  return ::stm_link_query(domain_, &info) == 0 ? info.trouble : "";
}

Queue::Queue(FileLink& link, std::size_t capacity) {
  const auto error = ::stm_queue_create(link.domain(), capacity, &queue_);
  if (error != 0) throw lost_link(error);
}

std::optional<stm_event_t> Queue::next(Duration wait) {
  stm_event_t event{};
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(wait).count();
  const auto found = wait == Duration::zero()
                         ? ::stm_queue_poll(queue_, &event, 1)
                         : ::stm_queue_wait(queue_, 1, &event, 1, microseconds);
  if (found > 0) return event;
  if (found == 0 || found == -EWOULDBLOCK || found == -EINTR) return std::nullopt;
  throw lost_link(found);
}

void Buffers::Unmap::operator()(void* memory) const {
  ::munmap(memory, size);
}

Buffers::Buffers(FileLink& link, std::size_t size) {
  // Aligned to a whole buffer: maps one buffer more and uses the aligned part.
  const auto all = size + kBuffer;
  auto* const memory =
      ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw LinkFailure("no memory for buffers: " + error_text(errno));
  mapping_ = {memory, Unmap{all}};
  auto* aligned = memory;
  auto room = all;
  bytes_ = {static_cast<std::byte*>(std::align(kBuffer, size, aligned, room)), size};
  const auto error =
      ::stm_memory_register(link.domain(), bytes_.data(), size, STM_LOCAL_WRITE, &memory_);
  if (error != 0) throw lost_link(error);
}

namespace {

using Greeting = std::array<std::byte, 6>;
constexpr Greeting greeting(char kind) {
  return {std::byte{'S'},
          std::byte{'T'},
          std::byte{'P'},
          static_cast<std::byte>(kind),
          std::byte{kFilesVersion >> 8},
          std::byte{kFilesVersion & 0xff}};
}
constexpr auto kGreeting = greeting('F');
// A receiver answers with this greeting when it serves enough senders of that host.
constexpr auto kEnough = greeting('E');

// Returns the version in a greeting, or 0 if it is no greeting.
std::uint16_t version_in(const Greeting& greeting) {
  const auto known = std::equal(kGreeting.begin(), kGreeting.begin() + 4, greeting.begin());
  return known ? get_big_endian<std::uint16_t>(&greeting[4]) : std::uint16_t{0};
}

// What is longer goes by a Write, which takes two round trips.
constexpr std::size_t kMostInRing = 32'752;

// Places of a queue: for each message under way, and for what becomes of the connection.
constexpr std::size_t kEvents = 128;

// Content begins at a whole buffer, so that each STU lies in one.
constexpr std::size_t room_of(std::size_t chunk) {
  return (chunk + kBuffer - 1) / kBuffer * kBuffer;
}

constexpr Duration kFarewell = std::chrono::seconds(2),
                   kShortFarewell = std::chrono::milliseconds(300);

constexpr std::int64_t microseconds(Duration wait) {
  return std::chrono::duration_cast<std::chrono::microseconds>(wait).count();
}

}  // namespace

Channel::Channel(FileLink& link, const std::string& peer, Attend attend, const Patience& patience,
                 const Tell& tell, Growth growth)
    : dialed_(true),
      attend_(std::move(attend)),
      growth_(std::move(growth)),
      link_(link),
      chunk_(chunk_for(link)),
      share_(growth_.reserve),
      memory_(link, first_memory()),
      queue_(link, kEvents) {
  make_places();
  const auto attr = attributes();
  auto error = ::stm_connection_create(link.domain(), &attr, &connection_);
  if (error != 0) throw lost_link(error);
  try {
    for (std::size_t place = 0; place < kDepth; ++place) post_receive(place);
    dialed_at_ = std::chrono::steady_clock::now();
    error = ::stm_connect(connection_, peer.c_str(), microseconds(patience.receiver),
                          kGreeting.data(), kGreeting.size());
    if (error != 0) throw connect_failure(error, peer, st_strerror(error));
    await_connection(peer, patience, tell);
    if (!is_greeted()) throw connect_failure(-EPROTO, peer, "");
  } catch (...) {
    ::stm_connection_close(connection_);
    throw;
  }
}

Channel::Channel(FileLink& link, stm_connection_t request, Attend attend, Growth growth)
    : dialed_(false),
      attend_(std::move(attend)),
      growth_(std::move(growth)),
      link_(link),
      chunk_(chunk_for(link)),
      share_(growth_.reserve),
      memory_(link, first_memory()),
      queue_(link, kEvents),
      connection_(request) {
  make_places();
  Greeting said{};
  const auto length = ::stm_private_data(connection_, said.data(), said.size());
  if (length != static_cast<int>(said.size()) || said != kGreeting) {
    ::stm_reject(connection_, kGreeting.data(), kGreeting.size());
    throw wrong_sender(length == static_cast<int>(said.size()) ? version_in(said) : 0);
  }
  const auto attr = attributes();
  if (const auto error = ::stm_accept(connection_, &attr, kGreeting.data(), kGreeting.size());
      error != 0) {
    ::stm_connection_close(connection_);
    fail(error);
  }
  connected_ = true;
  for (std::size_t place = 0; place < kDepth; ++place) post_receive(place);
}

Channel::~Channel() {
  try {
    if (!ended_ && ::stm_disconnect(connection_, STM_GRACEFUL) == 0) {
      const auto until = std::chrono::steady_clock::now() + farewell();
      while (!ended_ && std::chrono::steady_clock::now() < until) step(kAttention);
    }
  } catch (const LinkFailure&) {
    // The peer is gone and needs no farewell.
  }
  ::stm_connection_close(connection_);
}

// What a sender still had to say is in vain when it is stopped.
Duration Channel::farewell() const {
  if (!dialed_) return kFarewell;
  try {
    attend_();
    return kFarewell;
  } catch (const Stopped&) {
    return kShortFarewell;
  }
}

std::size_t Channel::chunk_for(const FileLink& link) {
  // With shorter messages the time between them counts: at STUs of 1 KiB, 48 KiB took half as long
  // again.
  constexpr std::size_t kLeast = std::size_t{128} << 10;
  return std::clamp(link.stu() * kStusUnderWay / kDepth, kLeast, kChunk);
}

std::size_t Channel::first_memory() const {
  return kDepth * (dialed_ ? room_of(chunk_) + 2 * kControlRoom : kChunk + kControlRoom);
}

void Channel::make_places() {
  auto left = memory_.bytes();
  const auto make = [&](Places& places, std::size_t size, std::size_t room) {
    for (std::size_t i = 0; i < kDepth; ++i, left = left.subspan(room))
      places.push_back({memory_.handle(), left.first(size)});
  };
  if (dialed_) {
    make(content_, chunk_, room_of(chunk_));
    make(received_, kControlRoom, kControlRoom);
  } else {
    make(received_, kChunk, kChunk);
  }
  make(control_, kControlRoom, kControlRoom);
  sent_.resize(control_.size() + content_.size());
}

// Without memory for more it goes on with what it has.
bool Channel::grow(Places& places, std::span<const std::size_t> steps) {
  auto has = kDepth;
  for (; !steps.empty() && has != places.size(); steps = steps.subspan(1)) has += steps.front();
  if (no_memory_ || steps.empty() || !share_.take(steps.front() * kChunk)) return false;
  try {
    auto& memory =
        *more_memory_.emplace_back(std::make_unique<Buffers>(link_, steps.front() * kChunk));
    for (auto left = memory.bytes(); !left.empty(); left = left.subspan(kChunk))
      places.push_back({memory.handle(), left.first(kChunk)});
    return true;
  } catch (const LinkFailure&) {
    share_.give_back(steps.front() * kChunk);
    no_memory_ = true;
    return false;
  }
}

// What is under way took the last place of fewer, and tells nothing of how many there are now.
void Channel::grow_content() {
  short_ = false;
  if (!grow(content_, kMoreContent)) return;
  for (auto& sent : sent_) sent.last = false;
  sent_.resize(control_.size() + content_.size());
}

void Channel::grow_receives() {
  const auto first = received_.size();
  grow(received_, kMoreReceives);
  for (auto place = first; place < received_.size(); ++place) post_receive(place);
}

stm_connection_attr_t Channel::attributes() const {
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = queue_.handle();
  return attr;
}

void Channel::refuse(stm_connection_t request) {
  ::stm_reject(request, kEnough.data(), kEnough.size());
}

int Channel::reason_of_refusal() {
  Greeting said{};
  const auto length = ::stm_private_data(connection_, said.data(), said.size());
  if (length != static_cast<int>(said.size())) return -EPROTO;
  other_version_ = version_in(said);
  return said == kEnough ? -EUSERS : -EPROTO;
}

// Any program may accept; an stp-recv says along that it is one.
bool Channel::is_greeted() const {
  Greeting said{};
  const auto length = ::stm_private_data(connection_, said.data(), said.size());
  return length == static_cast<int>(said.size()) && said == kGreeting;
}

void Channel::await_connection(const std::string& peer, const Patience& patience,
                               const Tell& tell) {
  const auto begin = std::chrono::steady_clock::now();
  const auto until = begin + std::min(patience.receiver, patience.host);
  bool told = !tell;
  while (!connected_) {
    attend_();
    const auto answered = host_has_answered();
    if (ended_ && reason_ == -ETIMEDOUT && answered)
      throw unaccepted_failure(
          peer, std::chrono::steady_clock::now() - dialed_at_ >= patience.receiver, trouble());
    if (ended_ && other_version_ != 0) throw other_receiver(peer, other_version_);
    if (ended_) throw connect_failure(reason_, peer, trouble());
    if (!answered && std::chrono::steady_clock::now() > until)
      throw connect_failure(-ETIMEDOUT, peer, trouble());
    if (!told && !answered && std::chrono::steady_clock::now() - begin >= kStuck) {
      const auto why = trouble();
      if (told = !why.empty(); told) tell(silent_until_now(peer, why));
    }
    step(kAttention);
  }
}

bool Channel::host_has_answered() const {
  stm_connection_info_t info{};
  info.size = sizeof info;
  return ::stm_connection_query(connection_, &info) == 0 && info.peer_port != 0;
}

std::string Channel::trouble() const {
  stm_peer_info_t info{};
  info.size = sizeof info;
  return ::stm_peer_query(connection_, &info) == 0 ? info.trouble : "";
}

void Channel::post_receive(std::size_t place) {
  auto& to = received_[place];
  to.posted_at = growth_.now();
  const auto error = ::stm_receive(connection_, place, to.memory, to.bytes.data(), to.bytes.size());
  if (error == -EAGAIN) throw LinkFailure("no place for a message that may come");
  if (error != 0 && !ended_) fail(error);
}

Duration Channel::stuck() const {
  if (under_way_ == 0) return Duration::zero();
  return std::chrono::steady_clock::now() - moved_at_;
}

std::optional<std::size_t> Channel::free_place(std::size_t first, std::size_t end) const {
  for (auto place = first; place < end; ++place)
    if (!sent_[place].busy) return place;
  return std::nullopt;
}

void Channel::post_send(MessageTag tag, const Place& place, std::size_t number,
                        std::size_t length) {
  const auto is_content = number >= kDepth;
  const auto error = ::stm_send(connection_, number, 0, static_cast<std::uint32_t>(tag),
                                place.memory, place.bytes.data(), length);
  if (error != 0) {
    while (step(Duration::zero())) {
    }
    // The peer may have said why it ends. Whoever sends content reads that before the next one.
    if (is_content && !arrived_.empty()) return;
    check_ended();
    fail(error);
  }
  sent_[number] = {is_content ? length : 0, growth_.now(), true, false};
  sent_[number].last = is_content && !free_content();
  if (under_way_++ == 0) moved_at_ = std::chrono::steady_clock::now();
}

void Channel::send(MessageTag tag, std::span<const std::byte> bytes) {
  auto number = free_control();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!number) {
    check_ended();
    attend_();
    if (std::chrono::steady_clock::now() > until)
      throw LinkFailure("the other side takes no more messages; see what holds it up");
    step(kAttention);
    number = free_control();
  }
  const auto& place = control_[*number];
  std::memcpy(place.bytes.data(), bytes.data(), bytes.size());
  post_send(tag, place, *number, bytes.size());
}

void Channel::look() {
  while (step(Duration::zero())) {
  }
  check_ended();
}

bool Channel::ready_to_send() {
  look();
  return free_control().has_value();
}

std::span<std::byte> Channel::content_buffer(Duration wait) {
  while (step(Duration::zero())) {
  }
  auto number = free_content();
  if (!number && short_) {
    grow_content();
    number = free_content();
  }
  if (!number && step(wait)) number = free_content();
  if (arrived_.empty()) check_ended();  // else the peer may have said why it ends
  if (!number || ended_) return {};
  return content_[*number - kDepth].bytes;
}

void Channel::send_content(MessageTag tag, std::span<const std::byte> filled) {
  const auto place = std::find_if(content_.begin(), content_.end(), [&](const Place& each) {
    return each.bytes.data() == filled.data();
  });
  const auto number = static_cast<std::size_t>(place - content_.begin());
  post_send(tag, *place, kDepth + number, filled.size());
}

bool Channel::receive(Message& message, Duration wait) {
  if (arrived_.empty()) step(wait);
  if (arrived_.empty()) {
    check_ended();
    return false;
  }
  message = arrived_.front();
  arrived_.pop_front();
  return true;
}

void Channel::done_with(const Message& message) {
  post_receive(message.place);
}

void Channel::fail(int error) const {
  if (const auto gone = link_.error(); gone != 0) throw lost_link(gone);
  throw_connection_failure(error, trouble());
}

void Channel::check_ended() const {
  if (!ended_) return;
  if (reason_ == 0) throw Closed();
  fail(reason_);
}

bool Channel::step(Duration wait) {
  const auto event = queue_.next(wait);
  if (event) handle(*event);
  return event.has_value();
}

void Channel::handle(const stm_event_t& event) {
  switch (event.kind) {
    case STM_CONNECTED:
      connected_ = true;
      break;
    case STM_SEND:
      has_sent(sent_[event.context], event.status);
      break;
    case STM_RECEIVE:
      has_come(event);
      break;
    case STM_REFUSED:
      ended_ = true;
      reason_ = reason_of_refusal();
      break;
    case STM_FAILED:
      ended_ = true;
      reason_ = event.status;
      break;
    case STM_DISCONNECTED:
      ended_ = true;
      break;
    case STM_USER:
      woken_ = false;
      break;
    default:
      break;
  }
}

void Channel::has_sent(Sent& sent, int status) {
  if (status == 0) {
    const auto took = growth_.now() - sent.at;
    delivered_ += sent.length;
    path_.took(sent.length > kMostInRing ? took / 2 : took);
    short_ = short_ || (sent.last && path_.has_room(took));
  }
  sent.busy = false;
  --under_way_;
  moved_at_ = std::chrono::steady_clock::now();
}

void Channel::has_come(const stm_event_t& event) {
  // After a failed receive, later messages must not be taken for the next one. Failures other
  // than -EMSGSIZE are followed by the end of the connection.
  if (event.status != 0) broken_ = true;
  if (event.status == -EMSGSIZE) {
    ended_ = true;
    reason_ = -EPROTO;
  }
  if (broken_) return;
  arrived_.push_back({static_cast<MessageTag>(event.tag),
                      received_[event.context].bytes.first(event.length), event.context});
  const auto now = growth_.now();
  // It was granted after its receive was posted.
  if (event.length > kMostInRing) path_.took(now - received_[event.context].posted_at);
  // More would wait for this program instead.
  const auto keeps_up = arrived_.size() <= received_.size() / 2;
  const auto room = received_.size() * kChunk;
  if (inflow_.fills(room, event.length, now, path_) && keeps_up && !dialed_) grow_receives();
}

}  // namespace stp::files
