// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/plan.h"

#include <algorithm>
#include <array>
#include <span>

namespace stp::perf {
namespace {

constexpr unsigned char kVersion = 3;
constexpr std::array<const char*, 6> kNames{"put", "get", "write", "read", "fetch", "level0"};
enum : unsigned char { kBidirectional = 1, kSleeps = 2 };

template <typename Number>
unsigned char* store(unsigned char* to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    *to++ = static_cast<unsigned char>(number >> 8 * (sizeof number - 1 - i));
  return to;
}

template <typename Number>
const unsigned char* load(const unsigned char* from, Number& number) {
  number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = static_cast<Number>(number << 8 | *from++);
  return from;
}

}  // namespace

void encode(const Plan& plan, std::span<unsigned char, kPlanSize> out) {
  auto* at = out.data();
  *at++ = kVersion;
  *at++ = static_cast<unsigned char>(plan.test);
  *at++ = static_cast<unsigned char>(plan.operation);
  *at++ = static_cast<unsigned char>((plan.bidirectional ? kBidirectional : 0) |
                                     (plan.sleeps ? kSleeps : 0));
  at = store(at, plan.size);
  at = store(at, plan.window);
  store(at, plan.connections);
}

std::optional<Plan> decode_plan(std::span<const unsigned char, kPlanSize> bytes) {
  if (bytes[0] != kVersion || bytes[1] > 1 || bytes[2] >= kNames.size()) return std::nullopt;
  Plan plan;
  plan.test = static_cast<Test>(bytes[1]);
  plan.operation = static_cast<Operation>(bytes[2]);
  plan.bidirectional = (bytes[3] & kBidirectional) != 0;
  plan.sleeps = (bytes[3] & kSleeps) != 0;
  const auto* at = load(bytes.data() + 4, plan.size);
  at = load(at, plan.window);
  load(at, plan.connections);
  if (!complaint(plan).empty()) return std::nullopt;
  return plan;
}

const char* name_of(Operation operation) {
  return kNames[static_cast<std::size_t>(operation)];
}

std::optional<Operation> operation_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Operation>(found - kNames.begin());
}

std::string operations() {
  std::string names;
  for (const auto* const name : kNames) names.append(" ").append(name);
  return names;
}

std::size_t places_for_events(const Plan& plan) {
  constexpr std::size_t kOwnNews = 4, kControl = 64;
  // Messages and Reads cause an event on both sides.
  const bool two_sided = plan.operation == Operation::kWrite || plan.operation == Operation::kRead;
  const auto outstanding = std::size_t{plan.window} * (two_sided ? 2 : 1);
  return plan.connections * (outstanding + kOwnNews) + kControl;
}

namespace {

std::string wrong_size(const Plan& plan, const std::string& remedy) {
  return "--size " + std::to_string(plan.size) + ": write " + remedy;
}

}  // namespace

std::string complaint(const Plan& plan) {
  if (plan.size > kLargest) return wrong_size(plan, "1G or less");
  if (plan.window == 0 || plan.window > kMostOutstanding)
    return "--window " + std::to_string(plan.window) + ": write 1 to 4096";
  if (plan.connections == 0 || plan.connections > kMostConnections)
    return "--connections " + std::to_string(plan.connections) + ": write 1 to 60000";
  const bool one_way = plan.operation == Operation::kPut || plan.operation == Operation::kLevel0;
  if (plan.operation == Operation::kFetch && plan.size != 8)
    return wrong_size(plan, "8, or leave the option out: fetch has 8 bytes");
  if (plan.test == Test::kLatency) {
    if (plan.operation == Operation::kRead) return "latency does not measure read: use get";
    if (one_way && plan.size < kSmallestPing)
      return wrong_size(plan, "8 or more, because each ping has its number in it");
    if (plan.operation == Operation::kPut && plan.sleeps)
      return "a put causes no event at the peer, so --sleep needs another operation: --op write";
    return "";
  }
  if (plan.operation == Operation::kLevel0 && plan.window > kMostLevel0Blocks)
    return "--window " + std::to_string(plan.window) + ": write 1 to 1024 for level0";
  if (plan.operation == Operation::kLevel0 && plan.sleeps && plan.connections > 1)
    return "--connections " + std::to_string(plan.connections) +
           ": with --sleep, level0 has one connection only: leave out one of the options";
  if (places_for_events(plan) > kMostEvents)
    return "too many outstanding operations: their events exceed 2^20; use fewer connections or a "
           "smaller window";
  if (plan.size == 0) return wrong_size(plan, "1 or more");
  return "";
}

namespace {

template <std::size_t Size>
std::optional<std::array<unsigned char, Size>> private_data(stm_connection_t connection) {
  std::array<unsigned char, Size> data{};
  if (stm_private_data(connection, data.data(), Size) != static_cast<int>(Size))
    return std::nullopt;
  return data;
}

}  // namespace

std::array<unsigned char, Greeting::kSize> Greeting::encoded() const {
  std::array<unsigned char, kSize> data{};
  encode(plan, std::span(data).first<kPlanSize>());
  stm_remote_encode(&remote, data.data() + kPlanSize);
  return data;
}

std::optional<Greeting> Greeting::of(stm_connection_t connection) {
  const auto data = private_data<kSize>(connection);
  if (!data) return std::nullopt;
  const auto plan = decode_plan(std::span(*data).first<kPlanSize>());
  if (!plan) return std::nullopt;
  Greeting greeting{*plan, {}};
  stm_remote_decode(data->data() + kPlanSize, &greeting.remote);
  return greeting;
}

namespace {

constexpr std::string_view kBusy = "STPB";
constexpr std::size_t kBusyHead = kBusy.size() + sizeof(std::uint32_t);

}  // namespace

std::string Busy::encoded() const {
  std::string data(kBusy);
  for (int shift = 24; shift >= 0; shift -= 8)
    data += static_cast<char>(static_cast<unsigned char>(seconds >> shift));
  return data + station.substr(0, kMostOfStation);
}

std::optional<Busy> Busy::of(stm_connection_t connection) {
  std::array<char, kBusyHead + kMostOfStation> data{};
  const auto length = stm_private_data(connection, data.data(), data.size());
  if (length < static_cast<int>(kBusyHead) ||
      !std::string_view(data.data(), data.size()).starts_with(kBusy))
    return std::nullopt;
  Busy busy;
  for (auto at = kBusy.size(); at < kBusyHead; ++at)
    busy.seconds = busy.seconds << 8 | static_cast<unsigned char>(data[at]);
  const auto end = std::min(static_cast<std::size_t>(length), data.size());
  busy.station.assign(data.begin() + kBusyHead, data.begin() + static_cast<std::ptrdiff_t>(end));
  return busy;
}

std::array<unsigned char, STM_REMOTE_SIZE> encoded(const stm_remote_t& remote) {
  std::array<unsigned char, STM_REMOTE_SIZE> data{};
  stm_remote_encode(&remote, data.data());
  return data;
}

std::optional<stm_remote_t> remote_of(stm_connection_t connection) {
  const auto data = private_data<STM_REMOTE_SIZE>(connection);
  if (!data) return std::nullopt;
  stm_remote_t remote{};
  stm_remote_decode(data->data(), &remote);
  return remote;
}

}  // namespace stp::perf
