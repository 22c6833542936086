// SPDX-License-Identifier: BSD-3-Clause
// One Node for each address on an interface: two that believe to be the same station answer each
// other's peers, and break each other's connections.
#pragma once

#include <memory>
#include <string>

#include "stp/types.h"

namespace stp::port {

class InterfaceOwner {
 public:
  // Owns this address there for as long as the object lives: an abstract Unix socket says so to all
  // programs of the network namespace, and ends with the program. nullptr: `error` names the
  // program that does already.
  static std::unique_ptr<InterfaceOwner> claim(const std::string& interface, int index,
                                               const MacAddr& mac, std::string& error);
  ~InterfaceOwner();
  InterfaceOwner(const InterfaceOwner&) = delete;
  InterfaceOwner& operator=(const InterfaceOwner&) = delete;

 private:
  explicit InterfaceOwner(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace stp::port
