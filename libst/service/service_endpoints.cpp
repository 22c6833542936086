// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include "libst/service/limits.h"
#include "libst/service/new_entry.h"
#include "libst/service/service_impl.h"
#include "libst/service/wire_config.h"
#include "stp/base/assert.h"

namespace stp::service {

int Service::Impl::open_endpoint(Client& client, const Request& request, Reply& reply) {
  EndpointConfig config;
  if (const auto error = from_wire(request.config, config); error != 0) return error;
  // A Key keeps other hosts out, so only privileged clients may choose it.
  if (config.key != 0 && !client.privileged) return -EPERM;
  if (config.port != 0 && !may_listen(client, config.port)) return -EACCES;
  if (client.use->endpoints >= quotas.endpoints)
    return over_quota("max-endpoints", quotas.endpoints);
  Endpoint made;
  if (const auto error = reserve(client, Resource::kEndpoints, 1, made.place); error != 0)
    return error;
  if (const auto error = reserve(client, Resource::kTableBytes, 0, made.tables); error != 0)
    return error;
  NewEntry entry(client.endpoints, std::move(made));
  NewEntry owner(endpoint_owner, client.id);
  EndpointId id = kNoneId;
  if (const auto error = node.open_endpoint(config, id, client.id); error != 0) return error;
  entry.enter(id).one = {client.use->endpoints, 1};
  owner.enter(id);
  reply.endpoint = id;
  if (const auto error = node.endpoint_config(id, config); error != 0) return error;
  reply.config = to_wire(config);
  return 0;
}

int Service::Impl::configure(Client& client, const Request& request, Reply& reply) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  EndpointConfig config, now;
  if (const auto error = from_wire(request.config, config); error != 0) return error;
  if (const auto error = node.endpoint_config(request.endpoint, now); error != 0) return error;
  if (config.key != 0 && config.key != now.key && !client.privileged) return -EPERM;
  if (config.port != 0 && config.port != now.port && !may_listen(client, config.port))
    return -EACCES;
  if (const auto error = node.configure(request.endpoint, config); error != 0) return error;
  return endpoint_config(client, request, reply);
}

int Service::Impl::endpoint_config(Client& client, const Request& request, Reply& reply) const {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  EndpointConfig config;
  if (const auto error = node.endpoint_config(request.endpoint, config); error != 0) return error;
  reply.endpoint = request.endpoint;
  reply.config = to_wire(config);
  return 0;
}

bool Service::Impl::may_listen(const Client& client, std::uint32_t on) const {
  return port_rules.permit(on, client.identity.uid, client.identity.groups);
}

int Service::Impl::listen(Client& client, const Request& request) {
  auto* const endpoint = client.endpoint(request.endpoint);
  if (endpoint == nullptr) return -EBADF;
  if (!may_listen(client, request.uport)) return -EACCES;
  if (const auto error = node.listen(request.endpoint, request.uport); error != 0) return error;
  endpoint->listening = true;
  const auto error = restock(client, request.endpoint, *endpoint);
  // With one channel in stock the endpoint listens, for fewer connections at a time.
  if (error == 0 || endpoint->unaccepted != 0) return 0;
  endpoint->listening = false;
  node.unlisten(request.endpoint);
  return error;
}

int Service::Impl::unlisten(Client& client, EndpointId id) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->listening) return -EINVAL;
  drop_backlog(client, id, *endpoint);
  endpoint->listening = false;
  return node.unlisten(id);
}

int Service::Impl::close_endpoint(Client& client, EndpointId id) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->regions != 0) return -EBUSY;
  if (endpoint->in_use != 0) return -EBUSY;
  end_endpoint(client, id, *endpoint);
  return 0;
}

// From here on the client's requests do not find the endpoint. Its connections end later.
void Service::Impl::end_endpoint(Client& client, EndpointId id, Endpoint& endpoint) {
  endpoint.ending = true;
  if (endpoint.listening) drop_backlog(client, id, endpoint);
  if (!endpoint.gone.empty()) forget_later({.client = client.id, .endpoint = id, .mxs = {}});
  erase_if_ended(client, id);
}

void Service::Impl::erase_if_ended(Client& client, EndpointId id) {
  const auto at = client.endpoints.find(id);
  if (at == client.endpoints.end()) return;
  const auto& endpoint = at->second;
  if (!endpoint.ending) return;
  // The Node stops listening even if it answers -EBUSY. After it has closed the endpoint, events of
  // the endpoint's connections and regions may still be queued.
  const auto closed = node.close_endpoint(id) != -EBUSY;
  if (!closed || endpoint.channels != 0 || endpoint.regions != 0 || !endpoint.gone.empty()) return;
  STP_ASSERT(endpoint.in_use == 0 && endpoint.unaccepted == 0,
             "an endpoint without a channel has no connection");
  STP_ASSERT(endpoint.tables.amount() <= client.table_bytes,
             "the tables of an endpoint are counted with its client");
  client.table_bytes -= endpoint.tables.amount();
  client.endpoints.erase(at);
  endpoint_owner.erase(id);
}

}  // namespace stp::service
