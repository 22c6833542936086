// SPDX-License-Identifier: BSD-3-Clause
// The name of a process, for messages to people.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

#include "stp/base/printable.h"

namespace stp::port {

inline std::string program_name(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name.empty() ? "a program" : printable(name);  // whoever runs it has chosen the name
}

}  // namespace stp::port
