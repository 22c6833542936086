// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <set>
#include <thread>

#include "dpdk_port/link/start_thread.h"
#include "stp/base/caught.h"
#include "tools/files/channel.h"
#include "tools/files/failure.h"
#include "tools/files/metadata.h"
#include "tools/files/remover.h"

namespace stp::files {

unsigned Turns::usual() {
  return std::max(1U, std::thread::hardware_concurrency() / 2);
}

Turns::Turns(unsigned at_once, Clock::duration slice) : slice_(slice), free_(at_once) {}

// Of the host whose last slice is the longest ago, the one that waits longest.
const Turns::Work* Turns::next() const {
  const auto first = std::min_element(
      waiting_.begin(), waiting_.end(),
      [](const Work* one, const Work* other) { return one->host_->had < other->host_->had; });
  return first == waiting_.end() ? nullptr : *first;
}

// A host that comes anew is behind those that wait, or one that comes again and again would be
// served before them.
Turns::Work::Work(const WorkFor& whom) : whom_(whom), turns_(whom.turns) {
  const Lock lock(turns_.mutex_);
  const auto [found, is_new] = turns_.hosts_.try_emplace(whom.host);
  host_ = &found->second;
  if (is_new) host_->had = turns_.slices_;
  ++host_->works;
}

Turns::Work::~Work() {
  const Lock lock(turns_.mutex_);
  stop();
  if (--host_->works == 0) turns_.hosts_.erase(whom_.host);
}

void Turns::Work::stop() {
  if (has_slice_) ++turns_.free_;
  has_slice_ = false;
  turns_.waiting_.remove(this);
  turns_.changed_.notify_all();
}

bool Turns::Work::go_on() {
  if (has_slice_ && Clock::now() - began_ < turns_.slice_) return true;
  return whom_.attend() && await_slice();
}

bool Turns::Work::await_slice() {
  Lock lock(turns_.mutex_);
  stop();
  turns_.waiting_.push_back(this);
  auto attend_at = Clock::now() + kAttention;
  while (turns_.free_ == 0 || turns_.next() != this) {
    if (lock.wait_until(turns_.changed_, attend_at)) continue;
    if (turns_.free_ != 0 && turns_.next() == this) break;
    lock.unlock();
    if (!whom_.attend()) return false;
    lock.lock();
    attend_at = Clock::now() + kAttention;
  }
  turns_.waiting_.remove(this);
  --turns_.free_;
  host_->had = ++turns_.slices_;
  has_slice_ = true;
  began_ = Clock::now();
  turns_.changed_.notify_all();  // more may be free
  return true;
}

namespace {

using Clock = std::chrono::steady_clock;

// The names of a path below the receiver's directory; none: that itself.
std::optional<std::vector<std::string>> accepted_or_root(const std::string& path) {
  if (path.empty()) return std::vector<std::string>();
  return accepted_path(path);
}

}  // namespace

std::string text_of(Leave why) {
  switch (why) {
    case Leave::kNo:
      break;
    case Leave::kSilent:
      return "it was silent while others waited for its place";
    case Leave::kCompares:
      return "its files take long to compare, its host has more than its share of the places, and "
             "others wait for one";
    case Leave::kSlow:
      return "it is slow, its host has more than its share of the places, and others wait for one";
  }
  return "";
}

void FileReceiver::serve() {
  try {
    serve_messages();
  } catch (const LinkFailure& failure) {
    // Complete files stay. The answers can no longer be sent.
    answers_.clear();
    const auto name = files_.name_under_way();
    files_.settle();
    files_.complain_of_the_rest();
    const auto closed = dynamic_cast<const Closed*>(&failure) != nullptr;
    if (closed) read_last_words();
    if (closed && name.empty() && !sender_stopped_) return;
    ++broken_;
    throw LinkFailure((name.empty() ? "" : name + ": ") +
                      (closed && sender_stopped_
                           ? "the sender was stopped by a signal before all had come; it may send "
                             "it again"
                           : failure.what()));
  }
}

void FileReceiver::serve_messages() {
  Message message;
  for (;;) {
    await(message);
    const auto understood = handle(message);
    files_.collect();
    flush();
    if (!understood)
      throw LinkFailure("the sender has another version; use the same on both sides");
    channel_.done_with(message);
  }
}

void FileReceiver::await(Message& message) {
  presence_.hear();
  auto since = Clock::now();
  while (!channel_.receive(message, kAttention)) {
    if (context_.stop) give_up(Reason::kStopped, "");
    leave_if_asked();
    look_at_way(Clock::now() - since);
    if (Clock::now() - since >= patience())
      give_up(Reason::kTimeout, "nothing came from the sender for as long as --idle-timeout says" +
                                    (way_.empty() ? "; see what holds it up" : ": " + way_));
    files_.collect();
    if (files_.is_settling()) {
      since = Clock::now();
      presence_.hear();
    }
    // A slow sender's files do not wait for each other.
    if (Clock::now() - since >= kAttention) files_.begin_to_settle();
    flush();
  }
  presence_.hear(message.bytes.size());
  if (context_.stop) give_up(Reason::kStopped, "");
  leave_if_asked();
}

// Work for a sender that has gone ends: channel_.look() throws.
bool FileReceiver::attend() {
  if (context_.stop) return false;
  presence_.work();
  leave_if_asked();
  channel_.look();
  return true;
}

// Asks once: later, when nothing is sent any more, the link may know nothing of the way.
void FileReceiver::look_at_way(Duration silence) {
  const bool stuck = silence >= std::min<Duration>(kStuck, patience());
  if (stuck && !has_looked_) way_ = channel_.trouble();
  has_looked_ = stuck;
}

Duration FileReceiver::patience() const {
  return files_.is_compared() ? std::max(kDiskPatience, context_.idle_timeout)
                              : context_.idle_timeout;
}

void FileReceiver::leave_if_asked() {
  const Leave why = presence_.leave;
  if (why != Leave::kNo) give_up(Reason::kTimeout, text_of(why), EUSERS);
}

void FileReceiver::give_up(Reason reason, const std::string& why, int error) {
  files_.end(reason, error);
  flush();
  if (reason == Reason::kStopped) throw Stopped();
  throw LinkFailure(why);
}

bool FileReceiver::handle(const Message& message) {
  switch (message.tag) {
    case MessageTag::kOffers:
      return files_.offers(message.bytes);
    case MessageTag::kPack:
      return files_.pack(message.bytes);
    case MessageTag::kChanged:
      return files_.changed(message.bytes);
    case MessageTag::kList:
      list(message.bytes);
      return true;
    case MessageTag::kRemove:
      return remove(message.bytes);
    case MessageTag::kNames:
      return false;
    case MessageTag::kContent:
      files_.content(message.bytes);
      return true;
    case MessageTag::kNotes: {
      const auto notes = decode_notes(message.bytes);
      return !notes.empty() && std::all_of(notes.begin(), notes.end(),
                                           [this](const Note& note) { return told(note); });
    }
  }
  return false;
}

namespace {

bool is_of_stop(const Note& note) {
  return note.kind == NoteKind::kAbandon && note.reason == Reason::kStopped;
}

}  // namespace

bool FileReceiver::told(const Note& note) {
  sender_stopped_ = sender_stopped_ || is_of_stop(note);
  return is_of_stop(note) || files_.told(note);
}

// What has arrived before the end and was not read yet. Content comes too late.
void FileReceiver::read_last_words() {
  Message message;
  try {
    while (channel_.receive(message, Duration::zero())) {
      if (message.tag != MessageTag::kNotes) continue;
      const auto notes = decode_notes(message.bytes);
      sender_stopped_ = sender_stopped_ || std::ranges::any_of(notes, is_of_stop);
    }
  } catch (const LinkFailure&) {
    // There are no more.
  }
}

void FileReceiver::list(std::span<const std::byte> path) {
  flush();
  Directory directory;
  const auto reason = reason_against_removal(path, directory);
  if (reason.reason != Reason::kNone) return say(reason);
  const auto answer = [this](std::span<const std::byte> names) {
    presence_.hear();
    channel_.send(MessageTag::kNames, names);
  };
  if (directory)
    list_names(directory->get(), answer);
  else
    answer(std::to_array({std::byte{1}}));
}

bool FileReceiver::remove(std::span<const std::byte> message) {
  const auto texts = take_removal(message);
  if (texts.size() < 2) return false;
  Directory directory;
  const auto& path = texts.front();
  auto answer = reason_against_removal(std::as_bytes(std::span(path)), directory);
  // It is there: so this makes nothing, but lets the user write into it.
  if (directory) DirectoriesBelow(context_.directory).open(*accepted_or_root(path), directory);
  Removal removal;
  for (std::size_t i = 1; i < texts.size() && answer.reason == Reason::kNone && directory; ++i) {
    // A name of one component, and not one of our own.
    const auto name = accepted_path(texts[i]);
    if (!name || name->size() != 1) return false;
    presence_.hear();
    const auto before = removal.removed;
    remove_all(directory, texts[i], context_.stop, removal);
    if (removal.removed != before)
      context_.progress.say("deleted " + path + (path.empty() ? "" : "/") + texts[i]);
  }
  if (removal.error != 0) answer = result_of(removal.error);
  answer.kind = NoteKind::kRemoved;
  answer.have = removal.removed;
  say(answer);
  return true;
}

// A directory that is missing is none, and no reason.
Note FileReceiver::reason_against_removal(std::span<const std::byte> path,
                                          Directory& directory) const {
  Note note;
  const auto names =
      accepted_or_root(std::string(reinterpret_cast<const char*>(path.data()), path.size()));
  const DirectoriesBelow below(context_.directory);
  int error = 0;
  if (!context_.allow_delete || context_.to_stdout)
    note = because(Reason::kKeeps);
  else if (!names)
    note = because(Reason::kName);
  else if (error = below.look(*names, directory); error != 0 && error != -ENOENT)
    note = result_of(error == -EAGAIN ? -EACCES : error);
  note.kind = NoteKind::kRemoved;
  return note;
}

void FileReceiver::say(const Note& note) {
  const auto bytes = encode(note);
  if (answers_.size() + bytes.size() > Channel::kControlRoom) flush();
  answers_.insert(answers_.end(), bytes.begin(), bytes.end());
}

void FileReceiver::flush() {
  if (answers_.empty()) return;
  channel_.send(MessageTag::kNotes, answers_);
  answers_.clear();
}

namespace {

constexpr std::size_t kWaitingRequests = 16;

}  // namespace

bool has_more_than_its_share(const std::vector<std::string>& hosts, const std::string& host,
                             const std::string& newcomer) {
  std::set<std::string> all(hosts.begin(), hosts.end());
  all.insert(newcomer);
  const auto its = static_cast<std::size_t>(std::count(hosts.begin(), hosts.end(), host));
  return its > std::max<std::size_t>(1, hosts.size() / all.size());
}

namespace {

std::size_t count_of(const std::vector<std::string>& hosts, const std::string& host) {
  return static_cast<std::size_t>(std::count(hosts.begin(), hosts.end(), host));
}

// Of those of a host with more than its share, which keeps more places than the newcomer's host
// had: or two hosts would take a place from each other for ever. Whoever has just come has shown
// nothing yet.
std::optional<std::size_t> slowest(const std::vector<Placed>& placed,
                                   const std::vector<std::string>& hosts,
                                   const std::string& newcomer, Duration patience) {
  const auto rate = [](const Placed& one) {
    return static_cast<double>(one.bytes) / std::chrono::duration<double>(one.age).count();
  };
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto& host = placed[i].host;
    if (placed[i].age < patience || !has_more_than_its_share(hosts, host, newcomer) ||
        count_of(hosts, host) <= count_of(hosts, newcomer) + 1)
      continue;
    if (!found || rate(placed[i]) < rate(placed[*found])) found = i;
  }
  return found;
}

}  // namespace

// A sender that is silent because it waits for work of ours is not asked, unless its host has more
// than its share: reading a file of terabytes takes long, and whoever sends such files may have
// several places.
std::optional<Leaver> who_gives_way(const std::vector<Placed>& placed, const Newcomer& newcomer,
                                    Duration patience) {
  std::vector<std::string> hosts;
  for (const auto& one : placed) hosts.push_back(one.host);
  std::optional<Leaver> most_silent;
  auto longest = patience;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto& one = placed[i];
    const auto silence =
        has_more_than_its_share(hosts, one.host, newcomer.host) ? one.silence : one.idleness;
    if (silence <= longest) continue;
    longest = silence;
    most_silent = {i, one.idleness > patience ? Leave::kSilent : Leave::kCompares};
  }
  if (most_silent || newcomer.waits < 2 * patience) return most_silent;
  hosts.push_back(newcomer.host);
  if (has_more_than_its_share(hosts, newcomer.host, newcomer.host)) return std::nullopt;
  hosts.pop_back();
  const auto found = slowest(placed, hosts, newcomer.host, patience);
  return found ? std::optional(Leaver{*found, Leave::kSlow}) : std::nullopt;
}

std::size_t next_of(const std::vector<std::string>& waiting,
                    const std::vector<std::string>& placed) {
  const auto next = std::ranges::min_element(
      waiting, {}, [&](const std::string& host) { return count_of(placed, host); });
  return static_cast<std::size_t>(next - waiting.begin());
}

std::size_t one_too_many(const std::vector<std::string>& waiting,
                         const std::vector<std::string>& placed) {
  const auto most = std::max_element(waiting.rbegin(), waiting.rend(),
                                     [&](const std::string& one, const std::string& other) {
                                       return count_of(placed, one) + count_of(waiting, one) <
                                              count_of(placed, other) + count_of(waiting, other);
                                     });
  return static_cast<std::size_t>(waiting.rend() - most) - 1;
}

Receiver::Receiver(const std::string& address, ReceiverContext& context)
    : context_(context), requests_(link_, kWaitingRequests) {
  const auto error = ::stm_listen(link_.domain(), address.c_str(), requests_.handle(), 0,
                                  kWaitingRequests, &listener_);
  if (error != 0) throw listen_failure(error, address);
}

Receiver::~Receiver() {
  reap(true);
  for (const auto& each : waiting_) ::stm_connection_close(each.request);
  ::stm_listener_close(listener_);
}

bool Receiver::run(bool once) {
  bool begun = false;
  while (!context_.stop && !(once && begun)) {
    take_request();
    reap(false);
    while (!context_.stop && begin_next()) begun = true;
  }
  reap(true);
  const Lock lock(mutex_);
  return failures_ == 0 && (files_ != 0 || !once);
}

// The listener has one more place than may wait here: so a host without a place gets in.
void Receiver::take_request() {
  const auto event = requests_.next(kAttention);
  const auto asks = event && event->kind == STM_REQUEST;
  if (asks)
    waiting_.push_back(
        {event->connection, managed::station_of(event->connection), Presence::now()});
  drop_gone();
  if (!asks || waiting_.empty() || waiting_.back().request != event->connection) return;
  if (has_enough_of(waiting_.back().host()))
    refuse(waiting_.size() - 1, "a sender is refused: its host has as many as --per-peer allows");
  else if (waiting_.size() == kWaitingRequests)
    refuse(one_too_many(hosts_that_wait(), hosts_with_places()),
           "a sender is refused: too many wait, and its host has more than others");
}

// Those that wait no more neither count for their host nor take a place from anybody. One that
// asked and went before its host was known (its host is "") is among them.
void Receiver::drop_gone() {
  std::erase_if(waiting_, [](const Waiting& each) {
    stm_connection_info_t info{};
    info.size = sizeof info;
    if (::stm_connection_query(each.request, &info) == 0 && info.state == STM_REQUESTED)
      return false;
    ::stm_connection_close(each.request);
    return true;
  });
}

bool Receiver::has_enough_of(const std::string& peer) const {
  return count_of(hosts_with_places(), peer) + count_of(hosts_that_wait(), peer) >
         context_.most_per_peer;
}

void Receiver::refuse(std::size_t waiting, const char* why) {
  const auto at = waiting_.begin() + static_cast<std::ptrdiff_t>(waiting);
  Channel::refuse(at->request);
  complain_of(at->station, why);
  waiting_.erase(at);
}

std::vector<std::string> Receiver::hosts_that_wait() const {
  std::vector<std::string> hosts;
  for (const auto& each : waiting_) hosts.push_back(each.host());
  return hosts;
}

std::vector<std::string> Receiver::hosts_with_places() const {
  std::vector<std::string> hosts;
  for (const auto& place : places_)
    if (!place.done) hosts.push_back(place.host);
  return hosts;
}

bool Receiver::begin_next() {
  drop_gone();
  if (waiting_.empty()) return false;
  const auto at = waiting_.begin() +
                  static_cast<std::ptrdiff_t>(next_of(hosts_that_wait(), hosts_with_places()));
  if (places_.size() >= context_.most_senders) {
    ask_one_to_leave({at->host(), Presence::now() - at->since});
    return false;
  }
  const auto next = std::move(*at);
  waiting_.erase(at);
  begin(next.request, next.station);
  return true;
}

// Asks only one sender at a time, since one waiting sender needs one place.
void Receiver::ask_one_to_leave(const Newcomer& newcomer) {
  std::vector<Placed> placed;
  for (const auto& place : places_) {
    if (place.presence.leave != Leave::kNo) return;
    placed.push_back({place.host, place.presence.silence(), place.presence.idleness(),
                      Presence::now() - place.since, place.presence.bytes});
  }
  if (const auto leaves = who_gives_way(placed, newcomer, context_.idle_under_pressure))
    std::next(places_.begin(), static_cast<std::ptrdiff_t>(leaves->number))->presence.leave =
        leaves->why;
}

void Receiver::begin(stm_connection_t request, const std::string& station) {
  auto& place = places_.emplace_back(station);
  try {
    place.thread = start_thread([this, request, &place] {
      serve(request, place.station, place.presence);
      place.done = true;
    });
  } catch (const NoThread& none) {
    places_.pop_back();
    Channel::refuse(request);
    complain_of(station, std::string("a sender is refused: ") + none.what());
  }
}

void Receiver::complain_of(const std::string& station, const std::string& what) {
  context_.progress.complain(from_station(station) + what);
}

void Receiver::serve(stm_connection_t request, const std::string& station, Presence& presence) {
  unsigned files = 0, failures = 0;
  try {
    const auto attend = [&] {
      if (context_.stop) throw Stopped();
      const Leave why = presence.leave;
      if (why != Leave::kNo) throw LinkFailure(text_of(why));
      if (presence.silence() > context_.idle_timeout)
        throw LinkFailure("it takes no answers; see what holds it up");
    };
    Channel channel(link_, request, attend, {&context_.reserve});
    FileReceiver receiver(channel, context_, presence, station);
    const auto count = [&] {
      files = receiver.files();
      failures = receiver.failures();
    };
    try {
      receiver.serve();
    } catch (...) {
      count();
      throw;
    }
    count();
  } catch (const Stopped&) {
    // main() reports the stop once.
  } catch (const std::exception& failure) {
    complain_of(station, what_of(failure));
    ++failures;
  }
  const Lock lock(mutex_);
  files_ += files;
  failures_ += failures;
}

void Receiver::reap(bool all) {
  places_.remove_if([all](Place& place) {
    if (!all && !place.done) return false;
    place.thread.join();
    return true;
  });
}

}  // namespace stp::files
