// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/greeting.h"

#include <span>

namespace stp::perf {
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
