// SPDX-License-Identifier: BSD-3-Clause
// Whether another program has an address on an interface, a NIC, or a socket already.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "stp/types.h"

namespace stp::port {

// "stpd, pid 4711", for messages to people. Also if it has ended, but for a thread that cannot:
// that one keeps all of its descriptors open.
std::string program_of(pid_t pid);

// Ensures one Node per address on an interface: two Nodes with the same address would answer each
// other's peers and break each other's connections.
class InterfaceOwner {
 public:
  // Owns this address on the interface while the object lives. An abstract Unix socket announces it
  // to all programs of the network namespace, and ends with the program; a packet socket, which not
  // everybody may open, confirms it. nullptr: `error` names the program that owns it already.
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
  int mark_ = -1;
};

// Ensures one program per NIC. VFIO enforces this itself; uio gives a NIC to any number of
// programs, and the last one resets it under the others.
class PciOwner {
 public:
  // Owns the NIC while the object lives, among the programs of a network namespace, by a lock on
  // `file`: a file of the NIC in sysfs that only root may open. Not /dev/uio0, because closing it
  // stops the NIC. nullptr: `error` names the program that owns it.
  static std::unique_ptr<PciOwner> claim(const std::string& address, const std::string& file,
                                         std::string& error);
  ~PciOwner();
  PciOwner(const PciOwner&) = delete;
  PciOwner& operator=(const PciOwner&) = delete;

 private:
  explicit PciOwner(int fd) : fd_(fd) {}
  const int fd_;
};

// Whether a program still serves a Unix socket, or has left only its file behind.

// Returns 0 if a process has the socket at `path`, else an errno: ECONNREFUSED, nobody has it;
// ENOENT, ENAMETOOLONG, EACCES, ... Never waits, and the process does not notice it.
int probe_socket(const std::string& path);

// Why no socket can be at `path`: something else is there. `usual`: the whole path of a socket, for
// the remedy. "": a socket is there, or nothing.
std::string why_no_socket(const std::string& path, const std::string& usual);

// Removes the file at `path` if it is a socket that nobody has; leaves anything else. A killed
// server leaves its socket's file behind, where the next one could not bind.
void remove_stale_socket(const std::string& path);

}  // namespace stp::port
