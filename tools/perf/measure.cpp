// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/measure.h"

#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/histogram.hpp>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tools/json/json.h"
#include "tools/perf/commands.h"

namespace stp::perf {
namespace {

constexpr auto kBetweenWords = std::chrono::seconds(1);

}  // namespace

Stretch::Stretch(std::chrono::duration<double> length, bool quiet, const char* name)
    : end_(begin_ + std::chrono::duration_cast<Clock::duration>(length)),
      next_word_(begin_ + kBetweenWords),
      name_(name),
      speaks_(!quiet && ::isatty(STDERR_FILENO) == 1) {}

Stretch::~Stretch() {
  if (has_spoken_) std::fputs("\r\033[K", stderr);
}

bool Stretch::past(std::uint64_t operations) {
  const auto now = Clock::now();
  if (speaks_ && now >= next_word_) say(operations, now);
  return now >= end_;
}

double Stretch::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Stretch::say(std::uint64_t operations, Clock::time_point now) {
  next_word_ = now + kBetweenWords;
  has_spoken_ = true;
  std::fprintf(stderr, "\r\033[K%s: %.0f of %.0f s, %" PRIu64 " operations", name_, seconds(),
               std::chrono::duration<double>(end_ - begin_).count(), operations);
}

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

int open_instruction_counter() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.inherit = 1;
  attr.exclude_kernel = 1;  // what an ordinary user may count
  attr.exclude_hv = 1;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

Usage operator-(const Usage& later, const Usage& earlier) {
  Usage difference{later.user_seconds - earlier.user_seconds,
                   later.system_seconds - earlier.system_seconds, std::nullopt};
  if (later.instructions && earlier.instructions)
    difference.instructions = *later.instructions - *earlier.instructions;
  return difference;
}

UsageMeter::UsageMeter() : counter_(open_instruction_counter()) {}

UsageMeter::~UsageMeter() {
  if (counter_ >= 0) ::close(counter_);
}

Usage UsageMeter::now() const {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  Usage usage{seconds(used.ru_utime), seconds(used.ru_stime), std::nullopt};
  std::uint64_t count = 0;
  if (counter_ >= 0 && ::read(counter_, &count, sizeof count) == sizeof count)
    usage.instructions = count;
  return usage;
}

std::optional<double> TurnTimes::working() const {
  if (all <= std::chrono::nanoseconds(0)) return std::nullopt;
  return std::chrono::duration<double>(all - idle) / std::chrono::duration<double>(all);
}

TurnTimes operator-(const TurnTimes& later, const TurnTimes& earlier) {
  return {later.all - earlier.all, later.idle - earlier.idle};
}

namespace {

namespace bh = boost::histogram;
// From 10 ns to 100 s. Each bin is half a percent wider than the one before.
constexpr double kFrom = 0.01, kTo = 1e8;
constexpr unsigned kBins = 4606;

}  // namespace

struct Histogram::Bins {
  using Axis = bh::axis::regular<double, bh::axis::transform::log>;
  bh::histogram<std::tuple<Axis>, bh::dense_storage<std::uint64_t>> counts =
      bh::make_histogram_with(bh::dense_storage<std::uint64_t>(), Axis(kBins, kFrom, kTo));
};

Histogram::Histogram() : bins_(std::make_unique<Bins>()) {}
Histogram::~Histogram() = default;

void Histogram::add(std::chrono::nanoseconds time) {
  const Time value = time;
  bins_->counts(value.count());
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += value;
  ++count_;
}

Histogram::Time Histogram::mean() const {
  return count_ == 0 ? Time{} : sum_ / static_cast<double>(count_);
}

Histogram::Time Histogram::percentile(double percent) const {
  if (count_ == 0) return {};
  const auto rank = std::max(std::ceil(static_cast<double>(count_) * percent / 100), 1.0);
  // The smallest and the largest value are known exactly, and the outermost bins have no centre.
  if (rank <= 1) return min_;
  if (rank >= static_cast<double>(count_)) return max_;
  std::uint64_t seen = 0;
  for (auto&& bin : bh::indexed(bins_->counts, bh::coverage::all)) {
    seen += *bin;
    if (static_cast<double>(seen) >= rank) return std::clamp(Time(bin.bin(0).center()), min_, max_);
  }
  return max_;
}

namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[256];
  std::va_list values;
  va_start(values, pattern);
  const auto length = std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return {text, length < 0 ? 0 : std::min(static_cast<std::size_t>(length), sizeof text - 1)};
}

double each(double amount, double count) {
  return count > 0 ? amount / count : 0;
}

std::uint64_t all_operations(const Result& result) {
  return result.operations + result.peer_operations;
}

double rate(const Result& result) {
  return each(static_cast<double>(all_operations(result)), result.seconds);
}

double bytes_per_second(const Result& result) {
  return rate(result) * static_cast<double>(result.size);
}

double gbit_per_second(const Result& result) {
  return bytes_per_second(result) * 8 / 1e9;
}

// User bytes a second in the direction that has more.
double bytes_one_way(const Result& result) {
  const auto most = std::max(result.operations, result.peer_operations);
  return each(static_cast<double>(most), result.seconds) * static_cast<double>(result.size);
}

// The rate of the slower side's link, in 10^6 bits a second; 0: not known.
std::uint32_t slower_link(const Result& result) {
  std::uint32_t rate = 0;
  for (const auto& side : {result.here, result.peer})
    if (side && side->megabits != 0)
      rate = rate == 0 ? side->megabits : std::min(rate, side->megabits);
  return rate;
}

// nullopt: the link's rate is not known, or it is none: some drivers name any number.
std::optional<double> share_of_link(const Result& result) {
  const auto rate = slower_link(result);
  if (rate == 0 || result.latency != nullptr) return std::nullopt;
  const auto share = bytes_one_way(result) * 8 / 1e6 / rate;
  return share <= 1 ? std::optional(share) : std::nullopt;
}

void add_or_null(Json& json, const char* name, std::optional<double> value) {
  value ? json.value(name, *value) : json.null(name);
}

void add_side(Json& json, const char* name, const std::optional<Side>& side,
              std::uint64_t operations) {
  if (!side) {
    json.null(name);
    return;
  }
  const auto& usage = side->usage;
  const auto count = static_cast<double>(operations);
  json.object(name).value("cpu_s", usage.cpu_seconds());
  json.value("user_s", usage.user_seconds).value("system_s", usage.system_seconds);
  json.value("cpu_us_per_operation", each(usage.cpu_seconds() * 1e6, count));
  if (usage.instructions) {
    json.value("instructions_per_operation", each(static_cast<double>(*usage.instructions), count));
  } else {
    json.null("instructions_per_operation");
  }
  add_or_null(json, "working", side->turns.working());
  side->memcpy_rate != 0 ? json.value("memcpy_bytes_s", side->memcpy_rate)
                         : json.null("memcpy_bytes_s");
  json.end();
}

void add_latency(Json& json, const Histogram& latency) {
  json.object("round_trip_us").value("min", latency.min().count());
  json.value("mean", latency.mean().count()).value("p50", latency.percentile(50).count());
  json.value("p99", latency.percentile(99).count());
  json.value("p99.9", latency.percentile(99.9).count()).value("max", latency.max().count()).end();
}

std::string side_text(const char* who, const Result& result, const Side& side) {
  const auto& usage = side.usage;
  const auto count = static_cast<double>(all_operations(result));
  auto text = format("%s: CPU %.0f %%, of it in the kernel %.0f %%, %.3f us each", who,
                     100 * each(usage.cpu_seconds(), result.seconds),
                     100 * each(usage.system_seconds, usage.cpu_seconds()),
                     each(usage.cpu_seconds() * 1e6, count));
  if (usage.instructions)
    text +=
        format(", %.0f instructions each", each(static_cast<double>(*usage.instructions), count));
  return text + '\n';
}

std::string rate_text(std::uint64_t bytes) {
  return format("%.2f GB/s", static_cast<double>(bytes) / 1e9);
}

// What the figure may be compared with.
std::string control_text(const Result& result) {
  std::string text;
  if (result.here && result.peer && result.here->memcpy_rate != 0 && result.peer->memcpy_rate != 0)
    text += "memcpy of as many bytes: here " + rate_text(result.here->memcpy_rate) + ", peer " +
            rate_text(result.peer->memcpy_rate) + '\n';
  if (const auto share = share_of_link(result))
    text += format("link: %.3g Gbit/s, of which these bytes are %.1f %%\n",
                   slower_link(result) / 1e3, 100 * *share);
  return text;
}

}  // namespace

std::string text_of_size(std::uint64_t size) {
  constexpr const char* kUnits[] = {"", "K", "M", "G"};
  std::size_t unit = 0;
  while (size >= 1024 && size % 1024 == 0 && unit + 1 < std::size(kUnits)) size /= 1024, ++unit;
  return std::to_string(size) + kUnits[unit];
}

std::string text_of(const Result& result) {
  const auto is_copy = result.what == result.operation;
  auto text = result.what + (is_copy ? "" : " of " + result.operation) + ", " +
              text_of_size(result.size) + " bytes";
  if (result.latency == nullptr && !is_copy)
    text += format(", window %u, %u connection%s%s", result.window, result.connections,
                   result.connections == 1 ? "" : "s", result.bidirectional ? ", both ways" : "");
  text += format(": %" PRIu64 " in %.2f s%s\n", all_operations(result), result.seconds,
                 result.prolonged ? ", which was prolonged until one was complete" : "");
  if (const auto* const latency = result.latency) {
    text += format("round trip us: p50 %.2f, p99 %.2f, p99.9 %.2f, min %.2f, mean %.2f, max %.2f\n",
                   latency->percentile(50).count(), latency->percentile(99).count(),
                   latency->percentile(99.9).count(), latency->min().count(),
                   latency->mean().count(), latency->max().count());
  } else {
    text += format("%.3f Gbit/s, %.3f GB/s, %.0f a second\n", gbit_per_second(result),
                   gbit_per_second(result) / 8, rate(result));
  }
  if (result.here) text += side_text("here", result, *result.here);
  if (result.peer) text += side_text("peer", result, *result.peer);
  text += control_text(result);
  if (const auto limit = limit_of(result); !limit.name.empty())
    text += "limit: " + limit.name + " (" + limit.reason + ")\n";
  return text;
}

std::string json_of(const Result& result) {
  Json json;
  json.object().value("test", result.what).value("operation", result.operation);
  json.value("link", result.link).value("size", result.size).value("window", result.window);
  json.value("connections", result.connections).value("bidirectional", result.bidirectional);
  json.value("seconds", result.seconds).value("operations", all_operations(result));
  if (result.latency != nullptr) {
    add_latency(json, *result.latency);
  } else {
    json.value("gbit_s", gbit_per_second(result)).value("per_second", rate(result));
  }
  add_side(json, "here", result.here, all_operations(result));
  add_side(json, "peer", result.peer, all_operations(result));
  const auto link = slower_link(result);
  link != 0 ? json.value("link_mbit_s", link) : json.null("link_mbit_s");
  add_or_null(json, "share_of_link", share_of_link(result));
  const auto limit = limit_of(result);
  limit.name.empty() ? json.null("limit") : json.value("limit", limit.name);
  limit.name.empty() ? json.null("limit_reason") : json.value("limit_reason", limit.reason);
  return json.end().text();
}

namespace {

constexpr double kAlways = 0.9, kMostly = 0.5;

// One side of a stream, with what it takes to judge it.
struct Role {
  const Side& side;
  std::string name;
  bool receives;  // user bytes
};

std::vector<Role> roles_of(const Result& result) {
  const bool from_peer = result.operation == "get" || result.operation == "read";
  if (result.bidirectional)
    return {{*result.here, "this side", true}, {*result.peer, "peer", true}};
  return {{*result.here, from_peer ? "receiver" : "sender", from_peer},
          {*result.peer, from_peer ? "sender" : "receiver", !from_peer}};
}

// The share of the time that a side worked. One that sleeps uses the CPU for nothing else.
std::optional<double> working_share(const Result& result, const Side& side) {
  if (result.sleeps) return each(side.usage.cpu_seconds(), result.seconds);
  return side.turns.working();
}

// Where a side that always works spends most of its time.
Limit limit_of(const Role& role, double working, const Result& result) {
  const auto& [usage, turns, memcpy_rate, megabits] = role.side;
  const auto busy = format("it works %.0f %% of the time", 100 * working);
  const auto kernel = each(usage.system_seconds, usage.cpu_seconds());
  const auto copy =
      role.receives ? each(bytes_one_way(result), static_cast<double>(memcpy_rate)) : 0;
  const auto possessive = role.name + "'s ";
  if (kernel >= kMostly)
    return {possessive + "system calls", busy + format(", %.0f %% in the kernel", 100 * kernel)};
  if (copy >= kMostly)
    return {possessive + "copy",
            busy + format(", one memcpy of the bytes takes %.0f %% of it", 100 * copy)};
  return {role.name, busy + format(", %.0f %% in the kernel", 100 * kernel)};
}

}  // namespace

Limit limit_of(const Result& result) {
  if (result.latency != nullptr || !result.here || !result.peer) return {};
  const auto link = share_of_link(result);
  if (link && *link >= kAlways) return {"link", format("%.0f %% of its rate", 100 * *link)};
  const auto roles = roles_of(result);
  for (const auto& role : roles) {
    const auto has = each(role.side.usage.cpu_seconds(), result.seconds);
    if (!result.sleeps && has < kAlways)
      return {"too few CPUs", format("%s polls, but has a CPU for %.0f %% of the time only",
                                     role.name.c_str(), 100 * has)};
  }
  std::vector<double> working;
  for (const auto& role : roles) {
    const auto share = working_share(result, role.side);
    if (!share) return {};
    working.push_back(*share);
  }
  const auto shares = format("%s works %.0f %%, %s %.0f %% of the time", roles[0].name.c_str(),
                             100 * working[0], roles[1].name.c_str(), 100 * working[1]);
  if (working[0] >= kAlways && working[1] >= kAlways) return {"both sides", shares};
  if (working[0] < kAlways && working[1] < kAlways) return {"neither side", shares};
  const std::size_t at = working[0] >= kAlways ? 0 : 1;
  return limit_of(roles[at], working[at], result);
}

namespace {

// Returns the number of copies between two readings of the clock: about ten microseconds of work.
std::uint64_t batch_of(std::uint64_t size) {
  return std::max<std::uint64_t>((std::uint64_t{1} << 18) / size, 1);
}

class Copier {
 public:
  Copier(std::uint64_t size, std::uint64_t working_set)
      : size_(size), from_(working_set), to_(working_set) {
    std::fill(from_.begin(), from_.end(), std::byte{0x5a});
  }
  void copy() {
    if (at_ + size_ > from_.size()) at_ = 0;
    std::memcpy(to_.data() + at_, from_.data() + at_, size_);
    // Keeps the compiler from removing the copy, which nobody reads.
    asm volatile("" : : "r"(to_.data()) : "memory");
    at_ += size_;
  }

 private:
  std::uint64_t size_, at_ = 0;
  std::vector<std::byte> from_, to_;
};

}  // namespace

Result measure_copy(std::uint64_t size, std::uint64_t working_set, const Pace& pace,
                    const UsageMeter& usage) {
  Copier copier(size, std::max(size, working_set));
  const auto batch = batch_of(size);
  const auto run = [&](Stretch&& stretch) {
    std::uint64_t copies = 0;
    do {
      for (std::uint64_t i = 0; i < batch; ++i) copier.copy();
      copies += batch;
    } while (!stretch.past(copies));
    Result result;
    result.seconds = stretch.seconds();
    result.operations = copies;
    return result;
  };
  run(Stretch(pace.warm_up, pace.quiet, "warming up"));
  const auto before = usage.now();
  auto result = run(Stretch(pace.measure, pace.quiet, "measuring"));
  result.here = Side{.usage = usage.now() - before};
  result.what = "memcpy";
  result.operation = "memcpy";
  result.size = size;
  return result;
}

std::uint64_t copy_rate(const Plan& plan, const UsageMeter& usage) {
  constexpr std::uint64_t kSmallest = 4096, kLargestCopied = 16 << 20;
  constexpr Pace kShort{std::chrono::milliseconds(10), std::chrono::milliseconds(40), true};
  if (plan.test != Test::kStream || plan.size < kSmallest) return 0;
  const auto result = measure_copy(std::min(plan.size, kLargestCopied), 0, kShort, usage);
  return static_cast<std::uint64_t>(bytes_per_second(result));
}

}  // namespace stp::perf
