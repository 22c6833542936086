// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/telemetry.h"

#include <rte_eal.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <mutex>

#include "dpdk_port/dpdk/eal.h"
#include "stp/base/mutex.h"

namespace stp::port {
namespace {

struct Telemetry {
  // Held during calls of a source, so none is destroyed meanwhile.
  Mutex mutex{LockRank::kTelemetry};
  std::vector<TelemetrySource*> list STP_GUARDED_BY(mutex);
};

Telemetry& telemetry() {
  static Telemetry& all = *new Telemetry;  // never destroyed: DPDK's thread may call until the end
  return all;
}

// ---- DPDK has renamed these

void add_number(rte_tel_data* data, const char* name, std::uint64_t value) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
  rte_tel_data_add_dict_uint(data, name, value);
#else
  rte_tel_data_add_dict_u64(data, name, value);
#endif
}

void start_numbers(rte_tel_data* data) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
  rte_tel_data_start_array(data, RTE_TEL_UINT_VAL);
#else
  rte_tel_data_start_array(data, RTE_TEL_U64_VAL);
#endif
}

void append_number(rte_tel_data* data, std::uint64_t value) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
  rte_tel_data_add_array_uint(data, value);
#else
  rte_tel_data_add_array_u64(data, value);
#endif
}

// ---- questions

void put_row(const TelemetryRow& row, rte_tel_data* data) {
  rte_tel_data_start_dict(data);
  for (const auto& [name, value] : row) {
    if (const auto* const number = std::get_if<std::uint64_t>(&value))
      add_number(data, name.c_str(), *number);
    else
      rte_tel_data_add_dict_string(data, name.c_str(), std::get<std::string>(value).c_str());
  }
}

// Parses up to two numbers, as in "7,0". False: something else.
bool parse_numbers(const char* text, std::array<std::optional<unsigned>, 2>& out) {
  if (text == nullptr) return true;
  const std::string_view all(text);
  const char* at = all.data();
  const char* const end = at + all.size();
  for (auto& number : out) {
    if (at == end) return true;
    unsigned value = 0;
    const auto [stop, failure] = std::from_chars(at, end, value);
    if (failure != std::errc{}) return false;
    number = value;
    at = stop == end || *stop != ',' ? stop : stop + 1;
  }
  return at == end;
}

// Answers for the link named at place `link_at` of `params`.
template <typename Answer>
int ask(const char* params, std::size_t link_at, Answer&& answer) try {
  std::array<std::optional<unsigned>, 2> numbers;
  if (!parse_numbers(params, numbers)) return -EINVAL;
  Telemetry& all = telemetry();
  const Lock lock(all.mutex);
  const auto link = numbers[link_at].value_or(0);
  if (link >= all.list.size()) return -ENODEV;
  return answer(*all.list[link], numbers[0]);
} catch (const std::exception&) {
  return -ENOMEM;  // this is called from C
}

int tell_links(const char*, const char*, rte_tel_data* data) {
  rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
  Telemetry& all = telemetry();
  const Lock lock(all.mutex);
  for (auto* const source : all.list) rte_tel_data_add_array_string(data, source->name().c_str());
  return 0;
}

int tell_link(const char*, const char* params, rte_tel_data* data) {
  return ask(params, 0, [&](TelemetrySource& source, auto) {
    put_row(source.link(), data);
    return 0;
  });
}

int tell_stats(const char*, const char* params, rte_tel_data* data) {
  return ask(params, 0, [&](TelemetrySource& source, auto) {
    put_row(source.stats(), data);
    return 0;
  });
}

int tell_connections(const char*, const char* params, rte_tel_data* data) {
  return ask(params, 0, [&](TelemetrySource& source, auto) {
    start_numbers(data);
    for (const auto port : source.connections(RTE_TEL_MAX_ARRAY_ENTRIES)) append_number(data, port);
    return 0;
  });
}

int tell_connection(const char*, const char* params, rte_tel_data* data) {
  return ask(params, 1, [&](TelemetrySource& source, std::optional<unsigned> port) {
    if (!port || *port > 0xffff) return -EINVAL;
    const auto row = source.connection(static_cast<std::uint16_t>(*port));
    if (!row) return -ENOENT;
    put_row(*row, data);
    return 0;
  });
}

// A registered command stays until the process ends.
void register_commands() {
  rte_telemetry_register_cmd("/stp/links", tell_links, "Returns the links. No parameters");
  rte_telemetry_register_cmd("/stp/link", tell_link, "Returns a link. Parameter: int link");
  rte_telemetry_register_cmd("/stp/stats", tell_stats,
                             "Returns the counters of a link. Parameter: int link");
  rte_telemetry_register_cmd("/stp/connections", tell_connections,
                             "Returns local Ports of connections. Parameter: int link");
  rte_telemetry_register_cmd("/stp/connection", tell_connection,
                             "Returns a connection. Parameters: int port, int link");
}

}  // namespace

std::string telemetry_socket() {
  if (!telemetry_enabled()) return "";
  const std::string path = std::string(rte_eal_get_runtime_dir()) + "/dpdk_telemetry.v2";
  std::error_code failure;
  return std::filesystem::exists(path, failure) ? path : "";
}

std::string telemetry_trouble() {
  if (!telemetry_enabled() || !eal_runs() || !telemetry_socket().empty()) return "";
  return "there is no telemetry: DPDK could make no directory for its socket in " +
         parent_of_runtime_directories() +
         ", perhaps because that is another user's, or others may write in it; name one of this "
         "user in RUNTIME_DIRECTORY";
}

PublishedSource::PublishedSource(TelemetrySource& source) : source_(source) {
  static std::once_flag once;
  std::call_once(once, register_commands);
  Telemetry& all = telemetry();
  const Lock lock(all.mutex);
  all.list.push_back(&source_);
}

PublishedSource::~PublishedSource() {
  Telemetry& all = telemetry();
  const Lock lock(all.mutex);
  std::erase(all.list, &source_);
}

}  // namespace stp::port
