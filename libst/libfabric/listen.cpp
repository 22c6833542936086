// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/listen.h"

#include <arpa/inet.h>

#include <cerrno>
#include <random>
#include <string>

#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

// Where a port is chosen: those that IANA leaves to whoever wants one.
constexpr std::uint16_t kFirstDynamic = 49'152, kLastDynamic = 65'535;
constexpr int kTries = 256;

}  // namespace

int listen_at(const Link& link, sockaddr_in& name, Acceptor& acceptor, stm_listener_t& listener) {
  const auto listen_on = [&](std::uint16_t port) {
    const auto text = ":" + std::to_string(port);
    const auto error = stm_listen(link.domain(), text.c_str(), link.queue(),
                                  reinterpret_cast<std::uintptr_t>(&acceptor), 0, &listener);
    if (error == 0) name.sin_port = htons(port);
    return error;
  };
  auto port = ntohs(name.sin_port);
  if (port != 0) {
    const auto error = listen_on(port);
    return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "port " + std::to_string(port), error);
  }
  // Programs begin at different ones.
  std::random_device seed;
  port = static_cast<std::uint16_t>(kFirstDynamic + seed() % (kLastDynamic - kFirstDynamic + 1));
  auto error = -EADDRINUSE;
  for (int i = 0; i < kTries && error == -EADDRINUSE; ++i) {
    error = listen_on(port);
    port = port == kLastDynamic ? kFirstDynamic : static_cast<std::uint16_t>(port + 1);
  }
  return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "any port", error);
}

}  // namespace stp::fi
