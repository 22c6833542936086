// SPDX-License-Identifier: BSD-3-Clause
// Information about a connection from the managed API; zeros if there is no connection.
#pragma once

#include <stp/managed.h>

namespace stp::udapl {

inline stm_connection_info_t info_of(stm_connection_t connection) {
  stm_connection_info_t info{};
  info.size = sizeof info;
  if (connection == nullptr || stm_connection_query(connection, &info) != 0) return {};
  return info;
}

}  // namespace stp::udapl
