// SPDX-License-Identifier: BSD-3-Clause
// Ensures one Node per address on an interface: two Nodes with the same address would answer each
// other's peers and break each other's connections.
#pragma once

#include <memory>
#include <string>

#include "stp/types.h"

namespace stp::port {

class InterfaceOwner {
 public:
  // Owns this address on the interface while the object lives. An abstract Unix socket announces it
  // to all programs of the network namespace, and ends with the program. nullptr: `error` names the
  // program that owns it already.
  static std::unique_ptr<InterfaceOwner> claim(const std::string& interface, int index,
                                               const MacAddr& mac, std::string& error);
  // The program that owns the address: "stpd, pid 4711"; "": none does.
  static std::string find(int index, const MacAddr& mac);
  // Lets go of who has asked: nobody else would, and a full queue keeps the next ones from asking.
  // Call a few times a second.
  void tend() const;
  ~InterfaceOwner();
  InterfaceOwner(const InterfaceOwner&) = delete;
  InterfaceOwner& operator=(const InterfaceOwner&) = delete;

 private:
  explicit InterfaceOwner(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace stp::port
