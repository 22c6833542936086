// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/failure.h"

#include <stp/st.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "dpdk_port/link/start_thread.h"
#include "stp/base/caught.h"
#include "tools/files/note.h"

namespace stp::files {

std::string error_text(int error) {
  const auto text = std::generic_category().message(error);
  return error == EMFILE ? text + " (raise ulimit -n)" : text;
}

FileFailure unreadable(int error) {
  return FileFailure("cannot read it: " + error_text(error));
}

LinkFailure link_failure(int result) {
  if (result == -EINVAL) throw WrongUsage(st_strerror(result));
  const std::string why = st_strerror(result);
  const auto text = "cannot open the link: " + why;
  // These have a remedy.
  if (NoThread::has_said(why) || why.ends_with(kNoMemoryLeft)) return LinkFailure(text);
  // The link may say that with another error, because it is not there.
  if (result == -EMFILE || why.find(std::strerror(EMFILE)) != std::string::npos)
    return LinkFailure(text + "; raise ulimit -n");
  return LinkFailure(text +
                     "; --link names another one (stpd:PATH, iface:NAME, udp:ADDRESS, ip:ADDRESS, "
                     "pci:ADDRESS, memif:PATH)");
}

LinkFailure lost_link(int result) {
  const std::string text = std::string("the link failed: ") + st_strerror(result);
  if (result == -ENOTCONN || result == -ETIMEDOUT) return LinkFailure(text);  // it has a remedy
  return LinkFailure(text + "; see that it or its stpd is still there");
}

namespace {

// Of a host with several addresses, the library tells how each was tried.
bool tells_tried(const std::string& why) {
  return why.starts_with("tried of ");
}

// Why a host that has answered may do so no more, as far as nothing is known.
std::string silence() {
  return "the link or its host is down; over UDP, a firewall may keep its port out";
}

}  // namespace

LinkFailure connect_failure(int result, const std::string& peer, const std::string& why) {
  switch (-result) {
    case ECONNREFUSED:
      return LinkFailure(peer + " refused the connection: nobody listens on that port; start " +
                         "stp-recv --listen there" + (tells_tried(why) ? "; " + why : ""));
    case ETIMEDOUT:
      if (tells_tried(why))
        return LinkFailure(peer + " does not answer; " + why + "; see that stp-recv and its stpd " +
                           "are running at one of them");
      if (!why.empty()) return LinkFailure(peer + " does not answer; the link says: " + why);
      return LinkFailure(peer + " does not answer; see that stp-recv and its stpd are running " +
                         "there, and that their link can be reached over this one: both on one "
                         "Ethernet, or both over UDP, with a UDP port that firewalls let in");
    case EHOSTUNREACH:
      return LinkFailure("cannot reach " + peer + ": " + why);
    case EPROTO:
      return LinkFailure("the program on " + peer + " is not an stp-recv of this version");
    case ENOTCONN:
      return LinkFailure("the program on " + peer + " has ended; start stp-recv --listen there");
    case EUSERS:
      return LinkFailure(peer + " takes no more senders from this host at once; wait until one " +
                         "has finished, or start stp-recv there with a higher --per-peer");
    case EINVAL:
      throw WrongUsage("\"" + peer + "\" is not a destination: " + why + "; write HOST:PORT");
    default:
      return LinkFailure("cannot connect to " + peer + ": " + st_strerror(result) +
                         "; see that the link and its stpd are there");
  }
}

std::string silent_until_now(const std::string& peer, const std::string& why) {
  return peer +
         (tells_tried(why) ? " has not answered yet; " : " does not answer; the link says: ") + why;
}

LinkFailure unaccepted_failure(const std::string& peer, bool waited, const std::string& why) {
  if (!waited) return LinkFailure(peer + " no longer answers; " + (why.empty() ? silence() : why));
  return LinkFailure(
      peer + " does not accept: its host answers, but the program there makes no progress; " +
      "check that it is an stp-recv and not stopped, and the load of its host");
}

FinalFailure other_receiver(const std::string& peer, std::uint16_t version) {
  return FinalFailure("stp-recv on " + peer + " speaks version " + std::to_string(version) +
                      " of the file protocol, this stp-send version " +
                      std::to_string(kFilesVersion) + "; install the same release on both sides");
}

LinkFailure wrong_sender(std::uint16_t version) {
  if (version == 0) return LinkFailure("refused a program that is not stp-send");
  return LinkFailure("a sender was refused: it speaks version " + std::to_string(version) +
                     " of the file protocol, this stp-recv version " +
                     std::to_string(kFilesVersion) + "; install the same release on both sides");
}

LinkFailure listen_failure(int result, const std::string& address) {
  switch (-result) {
    case EADDRINUSE:
      return LinkFailure("another program listens on " + address + "; choose another port");
    case EINVAL:
      throw WrongUsage("\"" + address + "\" is not an address to listen on: " +
                       st_strerror(result) + "; write :PORT");
    case EADDRNOTAVAIL:
      return LinkFailure("cannot listen on " + address + ": " + st_strerror(result) +
                         "; write :PORT, or name the link of that address");
    case EACCES:
      return LinkFailure("this user may not listen on " + address +
                         "; choose another port, or ask for a rule: stpd's option --listen");
    default:
      return LinkFailure("cannot listen on " + address + ": " + st_strerror(result) +
                         "; see that the link and its stpd are there");
  }
}

void throw_connection_failure(int result, const std::string& trouble) {
  switch (-result) {
    case ENOTCONN:
    case ESHUTDOWN:
    case ECANCELED:
      throw Closed();
    case ETIMEDOUT:
      throw LinkFailure("the other side no longer answers; " +
                        (trouble.empty() ? silence() : trouble));
    case EPROTO:
      throw LinkFailure("the other program has another version; use the same on both sides");
    default:
      throw LinkFailure("the connection was lost: " + error_text(-result) +
                        "; see that the link or its stpd is still there");
  }
}

}  // namespace stp::files
