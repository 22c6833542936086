// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/endpoints.h"

#include <cerrno>
#include <string>

#include "libst/service/new_entry.h"
#include "libst/service/wire_config.h"
#include "stp/base/assert.h"

namespace stp::service {

int Endpoints::open(Client& client, const Request& request, Reply& reply) {
  EndpointConfig config;
  if (const auto error = from_wire(request.config, config); error != 0) return error;
  // A Key keeps other hosts out, so only privileged clients may choose it.
  if (config.key != 0 && !client.privileged) return -EPERM;
  if (config.port != 0 && !may_listen(client, config.port)) return no_rule(client, config.port);
  if (client.use->endpoints >= allow_.quotas().endpoints)
    return allow_.over_quota("max-endpoints", allow_.quotas().endpoints);
  NewEntry entry(client.endpoints);
  auto& made = entry.value();
  if (const auto error = allow_.reserve(client.payer, Resource::kEndpoints, 1, made.place);
      error != 0)
    return error;
  if (const auto error = allow_.reserve(client.payer, Resource::kTableBytes, 0, made.tables);
      error != 0)
    return error;
  NewEntry owner(owners_, client.id);
  EndpointId id = kNoneId;
  if (const auto error = node_.open_endpoint(config, id, client.id); error != 0) return error;
  entry.enter(id).one = {client.use->endpoints, 1};
  owner.enter(id);
  reply.endpoint = id;
  if (const auto error = node_.endpoint_config(id, config); error != 0) return error;
  reply.config = to_wire(config);
  return 0;
}

int Endpoints::configure(Client& client, const Request& request, Reply& reply) {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  EndpointConfig config, now;
  if (const auto error = from_wire(request.config, config); error != 0) return error;
  if (const auto error = node_.endpoint_config(request.endpoint, now); error != 0) return error;
  if (config.key != 0 && config.key != now.key && !client.privileged) return -EPERM;
  if (config.port != 0 && config.port != now.port && !may_listen(client, config.port))
    return no_rule(client, config.port);
  if (const auto error = node_.configure(request.endpoint, config); error != 0) return error;
  return this->config(client, request, reply);
}

int Endpoints::config(Client& client, const Request& request, Reply& reply) const {
  if (client.endpoint(request.endpoint) == nullptr) return -EBADF;
  EndpointConfig config;
  if (const auto error = node_.endpoint_config(request.endpoint, config); error != 0) return error;
  reply.endpoint = request.endpoint;
  reply.config = to_wire(config);
  return 0;
}

bool Endpoints::may_listen(const Client& client, std::uint32_t on) const {
  return rules_.permit(on, client.identity.uid, client.identity.groups);
}

int Endpoints::no_rule(const Client& client, std::uint32_t port) {
  return allow_.forbidden("no --listen rule of stpd gives port " + std::to_string(port) +
                          " to uid " + std::to_string(client.identity.uid) +
                          ": add one, then SIGHUP");
}

int Endpoints::listen(Client& client, const Request& request) {
  auto* const endpoint = client.endpoint(request.endpoint);
  if (endpoint == nullptr) return -EBADF;
  if (!may_listen(client, request.uport)) return no_rule(client, request.uport);
  if (const auto error = node_.listen(request.endpoint, request.uport); error != 0) return error;
  endpoint->listening = true;
  const auto error = connections_.restock(client, request.endpoint, *endpoint);
  // With one channel in stock the endpoint listens, for fewer connections at a time.
  if (error == 0 || endpoint->unaccepted != 0) return 0;
  endpoint->listening = false;
  node_.unlisten(request.endpoint);
  return error;
}

int Endpoints::unlisten(Client& client, EndpointId id) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->listening) return -EINVAL;
  connections_.drop_backlog(client, id, *endpoint);
  endpoint->listening = false;
  return node_.unlisten(id);
}

int Endpoints::close(Client& client, EndpointId id) {
  auto* const endpoint = client.endpoint(id);
  if (endpoint == nullptr) return -EBADF;
  if (endpoint->regions != 0) return -EBUSY;
  if (endpoint->in_use != 0) return -EBUSY;
  end(client, id, *endpoint);
  return 0;
}

ClientId Endpoints::owner_of(EndpointId id) const {
  const auto at = owners_.find(id);
  return at == owners_.end() ? 0 : at->second;
}

void Endpoints::end(Client& client, EndpointId id, Endpoint& endpoint) {
  endpoint.ending = true;
  if (endpoint.listening) connections_.drop_backlog(client, id, endpoint);
  if (!endpoint.gone.empty()) leftovers_.push_back({.client = client.id, .endpoint = id});
  erase_if_ended(client, id);
}

void Endpoints::erase_if_ended(Client& client, EndpointId id) {
  const auto at = client.endpoints.find(id);
  if (at == client.endpoints.end()) return;
  const auto& endpoint = at->second;
  if (!endpoint.ending) return;
  // The Node stops listening even if it answers -EBUSY. After it has closed the endpoint, events of
  // the endpoint's connections and regions may still be queued.
  const auto closed = node_.close_endpoint(id) != -EBUSY;
  if (!closed || endpoint.channels != 0 || endpoint.regions != 0 || !endpoint.gone.empty()) return;
  STP_ASSERT(endpoint.in_use == 0 && endpoint.unaccepted == 0,
             "an endpoint without a channel has no connection");
  client.endpoints.erase(at);
  owners_.erase(id);
}

}  // namespace stp::service
