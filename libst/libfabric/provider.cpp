// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/provider.h"
#include "libst/include/stp/managed.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/info.h"

namespace stp::fi {
namespace {

constexpr std::uint32_t kVersion = FI_VERSION(0, 1);
// The newest API whose rules list_info keeps, whichever headers the provider is built with: what
// newer ones add to structures comes after what it reads. libfabric shows a provider to programs
// that ask for this version or an older one.
constexpr std::uint32_t kNewestApi = FI_VERSION(2, 6);
constexpr std::size_t kLeastBuffers = 4, kMostBuffers = 4096;
constexpr std::size_t kLongestConnect = std::size_t{24} * 3600 * 1000;

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info) {
  return guarded([&] { return list_info(version, node, service, flags, hints, info); });
}

int open_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
  return guarded([&] { return Fabric::open(*attr, context, *fabric); });
}

}  // namespace

fi_provider provider{.version = kVersion,
                     .fi_version = kNewestApi,
                     .context = {},
                     .name = "stp",
                     .getinfo = get_info,
                     .fabric = open_fabric,
                     .cleanup = [] {}};

void inform(fi_log_subsys subsystem, const std::string& text) {
  FI_INFO(&provider, subsystem, "%s\n", text.c_str());
}

// Of the first ten times, then of each that doubles the number.
static bool is_told(std::uint64_t count) {
  return count <= 10 || std::has_single_bit(count);
}

void inform_seldom(std::uint64_t count, const std::string& what, const std::string& why) {
  if (!is_told(count)) return;
  inform(FI_LOG_EP_CTRL, what + " (" + std::to_string(count) + " so far): " + why);
}

void warn_seldom(std::uint64_t count, const std::string& what, const std::string& why) {
  if (!is_told(count)) return;
  FI_WARN(&provider, FI_LOG_EP_CTRL, "%s (%llu so far): %s\n", what.c_str(),
          static_cast<unsigned long long>(count), why.c_str());
}

int explain(fi_log_subsys subsystem, const std::string& what, int status) {
  // A program tells the number alone, and that does not name what is used up.
  if (status == -EDQUOT) return complain(subsystem, what, status);
  inform(subsystem, what + ": " + st_strerror(status));
  return -error_of(status);
}

int complain(fi_log_subsys subsystem, const std::string& what, int status) {
  FI_WARN(&provider, subsystem, "%s: %s\n", what.c_str(), st_strerror(status));
  return -error_of(status);
}

static const char* why_failed(int status) {
  switch (status) {
    case -ETIMEDOUT:
      return "its host does not answer (stpctl ping; is there a firewall?)";
    case -ECONNRESET:
      return "it has broken the connection off (FI_LOG_LEVEL=info there)";
    case -ECONNREFUSED:
      return "nobody listens there, or no more connections are accepted";
    case -ENOTCONN:
      return "its program is gone, or has closed the endpoint";
    case -EPROTO:
      return "it does not speak the provider's protocol";
    default:
      return st_strerror(status);
  }
}

void tell_failed(std::uint64_t count, const std::string& peer, int status) {
  if (!is_told(count)) return;
  FI_WARN(&provider, FI_LOG_EP_CTRL,
          "the connection with %s has failed (%llu so far): %s. Its operations fail: %s\n",
          peer.c_str(), static_cast<unsigned long long>(count), why_failed(status),
          fi_strerror(error_of(status)));
}

void tell_unreachable(std::uint64_t count, const std::string& peer) {
  if (!is_told(count)) return;
  const auto given = parameters().connect_timeout;
  const auto time = given != 0 ? std::to_string(given) + " ms" : "4.5 s";
  FI_WARN(&provider, FI_LOG_EP_CTRL,
          "connecting to %s: no answer within %s (%llu so far): see whether its host is up and its "
          "link carries frames (stpctl links there), or wait longer (FI_STP_CONNECT_TIMEOUT, "
          "milliseconds)\n",
          peer.c_str(), time.c_str(), static_cast<unsigned long long>(count));
}

void define_parameters() {
  fi_param_define(&provider, "link", FI_PARAM_STRING,
                  "The link to use, as STP_LINK names it, which it replaces (default: STP_LINK, "
                  "else each stpd and interface that is found)");
  fi_param_define(&provider, "rx_buffers", FI_PARAM_SIZE_T,
                  "Short messages that wait in an endpoint until receives are posted, 4 to 4096 "
                  "(default: 32)");
  fi_param_define(&provider, "rdm_kept", FI_PARAM_SIZE_T,
                  "Bytes of messages of a peer that an endpoint of FI_EP_RDM keeps until receives "
                  "are posted; then the peer waits (default: 16777216)");
  fi_param_define(&provider, "connect_timeout", FI_PARAM_SIZE_T,
                  "Milliseconds in which a peer has to accept a connection (default: 0, as long as "
                  "its host is alive; a host that does not answer is given up after 4500)");
}

Parameters parameters() {
  Parameters known;
  char* link = nullptr;
  if (fi_param_get_str(&provider, "link", &link) == 0 && link != nullptr)
    known.link = link;
  else if (const auto* const given = std::getenv("STP_LINK"); given != nullptr)
    known.link = given;
  fi_param_get_size_t(&provider, "rx_buffers", &known.rx_buffers);
  fi_param_get_size_t(&provider, "rdm_kept", &known.rdm_kept);
  fi_param_get_size_t(&provider, "connect_timeout", &known.connect_timeout);
  known.connect_timeout = std::min(known.connect_timeout, kLongestConnect);
  known.rx_buffers = std::clamp(known.rx_buffers, kLeastBuffers, kMostBuffers);
  return known;
}

}  // namespace stp::fi

// What libfabric calls once it has loaded the file.
extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
  stp::fi::define_parameters();
  return &stp::fi::provider;
}
