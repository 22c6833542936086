// SPDX-License-Identifier: BSD-3-Clause
// Errors as the user sees them: the cause and the remedy.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace stp::files {

// The connection is lost, and with it all transfers on it.
struct LinkFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The same, because the other side has closed it.
struct Closed : LinkFailure {
  Closed() : LinkFailure("the other side closed the connection; what it printed says why") {}
};
// The same, and a retry would fail again.
struct FinalFailure : LinkFailure {
  using LinkFailure::LinkFailure;
};
// The text of the link or of an address is none: the command line or STP_LINK is wrong.
struct WrongUsage : FinalFailure {
  using FinalFailure::FinalFailure;
};
// One file has failed; the next ones can still succeed.
struct FileFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A file is not as it was when its turn came; the next try can still succeed.
struct FileChanged : std::runtime_error {
  FileChanged() : std::runtime_error("it changed while it was sent") {}
};
// A signal asked the program to end.
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("interrupted") {}
};

// The text of a positive errno. Safe to call from any thread.
std::string error_text(int error);

// A file cannot be read, for that positive errno.
FileFailure unreadable(int error);

// For the negative errno that a call or an event of the managed API gave.
LinkFailure link_failure(int result);  // opening the link; throws WrongUsage itself
LinkFailure lost_link(int result);     // a link that was there
// `why`: what is known of the cause; "": nothing. For EHOSTUNREACH, st_strerror() knows it. Throws
// WrongUsage itself for an address that is none: no retry makes it one.
LinkFailure connect_failure(int result, const std::string& peer, const std::string& why);
// For people who wait for an answer.
std::string silent_until_now(const std::string& peer, const std::string& why);
// The peer's host has answered, but its program has not: for as long as this one waits, or else its
// host has fallen silent. `why`: as above.
LinkFailure unaccepted_failure(const std::string& peer, bool waited, const std::string& why);
// The other program speaks another version, or is not one of ours (0).
FinalFailure other_receiver(const std::string& peer, std::uint16_t version);
LinkFailure wrong_sender(std::uint16_t version);
LinkFailure listen_failure(int result, const std::string& address);  // or throws WrongUsage
// An error of a connection; Closed if the peer closed it. `trouble`: of its link.
[[noreturn]] void throw_connection_failure(int result, const std::string& trouble);

}  // namespace stp::files
