// SPDX-License-Identifier: BSD-3-Clause
// Two programs that detect puts only by polling their memory. The watcher polls the last byte of
// each put; when it has arrived, all other bytes must be there. It clears them and puts the number
// of the round into the writer's memory, which the writer polls. Sizes, alignments and the number
// of puts per round vary. Without --call, neither makes a call while it polls.
#include <sched.h>
#include <stp/managed.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUsage =
    R"(usage: polled_writes watch|write HOST [--seconds N] [--length N] [--call] [--yield]
The link is that of STP_LINK. HOST: of the watcher, who ignores it.
  --seconds N  the writer's; it ends then [5]
  --length N   of the only put of each round; without it sizes vary. Both sides
  --call       poll the queue while waiting
  --yield      give the core away while waiting
)";

constexpr std::size_t kParts = 16, kPart = 12 * 1024, kArena = kParts * kPart;
constexpr std::uint64_t kSources = 32;  // rounds whose bytes the writer keeps
constexpr std::size_t kQueue = 4096;
constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kWord = sizeof(std::uint64_t);

struct Settings {
  bool watches = false, calls = false, yields = false;
  std::string host;
  std::size_t length = 0;
  int seconds = 5;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what);
}

struct Range {
  std::size_t at, length;
};

// The ranges of the puts of a round, which both sides know. Each range is in a separate part.
std::vector<Range> ranges_of(std::uint64_t round, std::size_t length) {
  if (length != 0) return {{0, length}};
  std::mt19937_64 random(round);
  constexpr std::size_t kLongest[] = {8, 64, 700, 9'000, kPart - 64};
  std::vector<Range> ranges(1 + random() % kParts);
  for (std::size_t part = 0; part < ranges.size(); ++part) {
    const auto longest = kLongest[random() % std::size(kLongest)];
    ranges[part] = {part * kPart + random() % 64, 1 + random() % longest};
  }
  return ranges;
}

// Never 0, and different from one round to the next.
std::uint8_t byte_of(std::uint64_t round, std::size_t at) {
  return static_cast<std::uint8_t>(1 + (round * 29 + at + at / 251) % 255);
}

class Side {
 public:
  explicit Side(const Settings& settings)
      : settings_(settings),
        domain_(stp::open_domain()),
        queue_(stp::make_queue(domain_, kQueue)),
        bytes_(settings.watches ? kArena + kWord : kSources * kArena),
        words_(kSources),
        bytes_memory_(
            stp::register_memory(domain_, bytes_.data(), bytes_.size(), STM_REMOTE_WRITE)),
        words_memory_(
            stp::register_memory(domain_, words_.data(), kSources * kWord, STM_REMOTE_WRITE)) {}

  void watch();
  void write();

 private:
  stm_event_t next();
  void await(unsigned kind);
  void await_puts();
  void put(stm_memory_t memory, const void* bytes, std::size_t length, std::uint64_t address);
  void count(const stm_event_t& event);
  template <typename Seen>
  void look_for(const char* what, std::uint64_t round, Seen seen);
  void connect();
  void put_round(std::uint64_t round);
  // Whether the writer has made its last put: a word behind the arena says so.
  [[nodiscard]] bool goes() const { return ends_with({kArena, kWord}); }
  bool watch_round(std::uint64_t round);
  [[nodiscard]] bool ends_with(const Range& range) const {
    return __atomic_load_n(&bytes_[range.at + range.length - 1], __ATOMIC_ACQUIRE) != 0;
  }
  void check(const Range& range, std::uint64_t round) const;
  void check_rest() const;
  void tell_figures(std::uint64_t rounds);

  const Settings settings_;
  const stp::Domain domain_;
  const stp::Queue queue_;
  std::vector<std::uint8_t> bytes_;
  // At the writer, [0] is the round that the watcher has seen. At the watcher, what it puts there.
  std::vector<std::uint64_t> words_;
  const stp::Memory bytes_memory_, words_memory_;
  stp::OpenRegion word_;  // the writer's
  stp::Connection connection_;
  stm_remote_t theirs_{};
  std::size_t under_way_ = 0;
  bool ended_ = false;
  bool last_ = false;  // the last put of the writer is under way
  std::vector<double> times_;
};

stm_event_t Side::next() {
  stm_event_t event{};
  const auto limit = std::chrono::microseconds(kPatience).count();
  if (stp::checked(stm_queue_wait(queue_, 1, &event, 1, limit), "stm_queue_wait") != 1)
    fail("no event comes");
  count(event);
  return event;
}

void Side::count(const stm_event_t& event) {
  // The watcher goes when it has seen the last put, whose acknowledgement may be lost.
  const bool answered_by_going = last_ && event.kind == STM_PUT && event.status == -ENOTCONN;
  if (event.status != 0 && !answered_by_going)
    fail("event " + std::to_string(event.kind) + ": " + st_strerror(event.status));
  if (event.kind == STM_PUT) --under_way_;
  ended_ |= event.kind == STM_DISCONNECTED;
}

void Side::await(unsigned kind) {
  for (;;) {
    const auto event = next();
    if (event.kind == STM_REQUEST) connection_ = stp::Connection(event.connection);
    if (event.kind == kind) return;
  }
}

void Side::await_puts() {
  while (under_way_ != 0) next();
}

void Side::put(stm_memory_t memory, const void* bytes, std::size_t length, std::uint64_t address) {
  stp::checked(stm_put(connection_, 0, 0, memory, bytes, length, theirs_.key, address), "stm_put");
  ++under_way_;
}

// Polls without a call, unless --call is set.
template <typename Seen>
void Side::look_for(const char* what, std::uint64_t round, Seen seen) {
  const auto deadline = Clock::now() + kPatience;
  for (unsigned looks = 1; !seen(); ++looks) {
    if (settings_.calls) {
      stm_event_t event{};
      if (stp::checked(stm_queue_poll(queue_, &event, 1), "stm_queue_poll") == 1) count(event);
    }
    if (settings_.yields && looks % 256 == 0) ::sched_yield();
    if (looks % 4096 == 0 && Clock::now() > deadline) {
      if (under_way_ != 0) next();  // reports the cause if it can
      fail(std::string(what) + " of round " + std::to_string(round) + " does not come");
    }
  }
}

// ---- the writer ----

void Side::put_round(std::uint64_t round) {
  if (round % kSources == 0) await_puts();
  auto* const source = bytes_.data() + round % kSources * kArena;
  const auto ranges = ranges_of(round, settings_.length);
  for (const auto& range : ranges) {
    for (auto at = range.at; at < range.at + range.length; ++at) source[at] = byte_of(round, at);
    put(bytes_memory_, source + range.at, range.length, range.at);
  }
}

// On a busy machine resolving the address may take longer than one call waits.
void Side::connect() {
  const auto opened_at = Clock::now();
  const auto limit = std::chrono::microseconds(kPatience).count();
  const auto peer = settings_.host + ":3000";
  int error = 0;
  do {
    error = stm_connect(connection_, peer.c_str(), limit, &word_.remote, sizeof word_.remote);
  } while (error == -EHOSTUNREACH && Clock::now() - opened_at < kPatience);
  stp::checked(error, "stm_connect");
  await(STM_CONNECTED);
  stp::checked(stm_private_data(connection_, &theirs_, sizeof theirs_), "stm_private_data");
}

void Side::write() {
  word_ = stp::open_region(words_memory_, words_.data(), kWord, STM_REMOTE_WRITE);
  connection_ = stp::make_connection(domain_, stp::connection_attr(queue_));
  connect();
  const auto end = Clock::now() + std::chrono::seconds(settings_.seconds);
  std::uint64_t round = 1;
  for (; Clock::now() < end; ++round) {
    const auto begin = Clock::now();
    put_round(round);
    look_for("the answer", round,
             [&] { return __atomic_load_n(&words_[0], __ATOMIC_ACQUIRE) == round; });
    times_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  await_puts();
  words_[1] = ~std::uint64_t{0};
  last_ = true;
  put(words_memory_, &words_[1], kWord, kArena);
  await_puts();
  tell_figures(round - 1);
  if (!ended_) await(STM_DISCONNECTED);
}

void Side::tell_figures(std::uint64_t rounds) {
  std::sort(times_.begin(), times_.end());
  const auto at = [&](double part) {
    return times_[static_cast<std::size_t>(part * static_cast<double>(times_.size() - 1))];
  };
  std::printf("%llu rounds, us: median %.1f, 99%% %.1f, longest %.1f\n",
              static_cast<unsigned long long>(rounds), at(0.5), at(0.99), at(1));
}

// ---- the watcher ----

void Side::check(const Range& range, std::uint64_t round) const {
  for (auto at = range.at; at < range.at + range.length; ++at)
    if (bytes_[at] != byte_of(round, at))
      fail("round " + std::to_string(round) + ": byte " + std::to_string(at - range.at) + " of " +
           std::to_string(range.length) + " at " + std::to_string(range.at) + " is " +
           std::to_string(bytes_[at]) + ", not " + std::to_string(byte_of(round, at)));
}

// Checks that no cleared byte has been written again.
void Side::check_rest() const {
  for (std::size_t at = 0; at < kArena; ++at)
    if (bytes_[at] != 0)
      fail("byte " + std::to_string(at) + ", which nothing is put to, is " +
           std::to_string(bytes_[at]));
}

// In every other round it polls only the last put: the earlier ones must be there as well.
bool Side::watch_round(std::uint64_t round) {
  const auto ranges = ranges_of(round, settings_.length);
  for (const auto& range : ranges) {
    if (round % 2 == 1 && &range != &ranges.back()) continue;
    look_for("the last byte", round, [&] { return ends_with(range) || goes(); });
    if (!ends_with(range)) return false;
    check(range, round);
  }
  for (const auto& range : ranges) {
    check(range, round);
    std::memset(&bytes_[range.at], 0, range.length);
  }
  if (settings_.length == 0) check_rest();
  if (round % kSources == 0) await_puts();
  words_[round % kSources] = round;
  put(words_memory_, &words_[round % kSources], kWord, 0);
  return true;
}

void Side::watch() {
  auto opened = stp::open_region(bytes_memory_, bytes_.data(), bytes_.size(), STM_REMOTE_WRITE);
  const auto listener = stp::listen(domain_, ":3000", queue_);
  std::puts("listening");
  std::fflush(stdout);
  await(STM_REQUEST);
  stp::checked(stm_private_data(connection_, &theirs_, sizeof theirs_), "stm_private_data");
  const auto attr = stp::connection_attr(queue_);
  stp::checked(stm_accept(connection_, &attr, &opened.remote, sizeof opened.remote), "stm_accept");
  await(STM_CONNECTED);
  std::uint64_t round = 1;
  while (watch_round(round)) ++round;
  check_rest();
  // The watcher disconnects: the writer sees each word that is put to it before that put is
  // acknowledged here.
  await_puts();
  stp::checked(stm_disconnect(connection_, STM_GRACEFUL), "stm_disconnect");
  await(STM_DISCONNECTED);
  std::printf("%llu rounds seen\n", static_cast<unsigned long long>(round - 1));
}

// ---- command line ----

std::size_t number(const char* text) {
  char* end = nullptr;
  const auto value = std::strtoul(text, &end, 10);
  if (*end != '\0' || value == 0 || value > kPart) fail(std::string(text) + " is not in 1..12288");
  return value;
}

Settings parse(int argc, char** argv) {
  if (argc < 3) fail(kUsage);
  Settings settings;
  settings.watches = std::strcmp(argv[1], "watch") == 0;
  settings.host = argv[2];
  for (int i = 3; i < argc; ++i) {
    const auto option = std::string(argv[i]);
    if (option == "--call")
      settings.calls = true;
    else if (option == "--yield")
      settings.yields = true;
    else if (option == "--length" && i + 1 < argc)
      settings.length = number(argv[++i]);
    else if (option == "--seconds" && i + 1 < argc)
      settings.seconds = static_cast<int>(number(argv[++i]));
    else
      fail(kUsage);
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto settings = parse(argc, argv);
    Side side(settings);
    if (settings.watches)
      side.watch();
    else
      side.write();
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "polled_writes: %s\n", problem.what());
    return 1;
  }
}
