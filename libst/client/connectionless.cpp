// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of st_endpoint (libst document, section 8). The Port belongs to the endpoint as a
// connection does, and ends with it. The first call that needs the Port opens it, because options
// can be set until then.
#include "libst/client/connection.h"
#include "libst/client/error.h"
#include "libst/include/stp/st.h"

namespace stp::client {

int Endpoint::not_connectionless() const {
  return connectionless_ ? 0
                         : fail(-EOPNOTSUPP,
                                "st_create made this endpoint: st_utx and st_urx need one of "
                                "st_endpoint");
}

int Endpoint::open_port(Handle& out) {
  if (const auto error = not_connectionless(); error != 0) return error;
  if ((out = port_.load(std::memory_order_acquire)) != 0) return 0;
  std::lock_guard const one_at_a_time(opening_);
  if ((out = port_.load(std::memory_order_acquire)) != 0) return 0;
  auto asking = request(RequestKind::kOpenPort);
  Reply made{};
  Payload payload;
  auto error = backend_->exchange(asking, payload, made);
  if (error == -EADDRINUSE)
    return fail(error, "Port " + std::to_string(config().port) + " of this link is in use");
  if (error != 0) return error;
  const auto port =
      std::make_shared<Connection>(shared_from_this(), made, std::move(payload.memory));
  error = port->wait_open(kNever);
  if (error != 0) port->abandon();
  if (error == 0) error = hand_out(port, out);
  if (error == 0) port_.store(out, std::memory_order_release);
  return error;
}

// Port and Key are known once the Port is open, so asking for them opens it. From then on peers
// that the program tells them can reach it.
int Endpoint::get_connectionless(const OptionRule& rule, std::uint32_t& value) {
  const bool name = rule.option == ST_OPT_PORT_LOCAL || rule.option == ST_OPT_KEY_LOCAL;
  value = get_option(rule);
  if (rule.option == ST_OPT_MAXSTU_LOCAL) value = std::min(value, backend_->max_stu());
  if (!name) return 0;
  Handle port = 0;
  if (const auto error = open_port(port); error != 0) return error;
  const auto open = find<Connection>(port);
  if (!open) return -ECANCELED;
  Reply info{};
  if (const auto error = open->info(info); error != 0) return error;
  value = info.*rule.connection;
  return 0;
}

}  // namespace stp::client
