// SPDX-License-Identifier: BSD-3-Clause
// Service points, connection requests, connecting and disconnecting.
#include <arpa/inet.h>
#include <net/if.h>

#include <array>

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/service_point.h"
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {
namespace {

auto find_psp(DAT_HANDLE h) {
  return find<ServicePoint, Object::Kind::kPsp>(h);
}
auto find_rsp(DAT_HANDLE h) {
  return find<ServicePoint, Object::Kind::kRsp>(h);
}

// The host as it is written in names; "": an address of another kind. `ipv4`: 0 if it has none.
std::string host_at(DAT_IA_ADDRESS_PTR address, std::uint32_t& ipv4) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    ipv4 = ntohl(ip.s_addr);
    return ::inet_ntop(AF_INET, &ip, text.data(), text.size());
  }
  if (address->sa_family != AF_INET6) return "";
  const auto& six = *reinterpret_cast<const sockaddr_in6*>(address);
  ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  std::array<char, IF_NAMESIZE> interface {};
  const bool scoped = six.sin6_scope_id != 0 && IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr) &&
                      ::if_indextoname(six.sin6_scope_id, interface.data()) != nullptr;
  return std::string("[") + text.data() + (scoped ? "%" : "") + interface.data() + "]";
}

DAT_RETURN ep_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
                      DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS,
                      DAT_CONNECT_FLAGS flags) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  if (address == nullptr || !is_data(size, data)) return bad_parameter();
  if (flags == kMultipath) return error(DAT_MODEL_NOT_SUPPORTED);
  std::uint32_t ipv4 = 0;
  const auto host = host_at(address, ipv4);
  if (host.empty()) return error(DAT_INVALID_ADDRESS);
  return to_dat(ep->connect(host, ipv4, qual, timeout, bytes(data, size)));
}

DAT_RETURN ep_dup_connect(DAT_EP_HANDLE handle, DAT_EP_HANDLE other_handle, DAT_TIMEOUT timeout,
                          DAT_COUNT size, const DAT_PVOID data, DAT_QOS) {
  const auto ep = find_ep(handle), other = find_ep(other_handle);
  if (!ep || !other) return bad_handle();
  if (!is_data(size, data)) return bad_parameter();
  return to_dat(ep->dup_connect(*other, timeout, bytes(data, size)));
}

DAT_RETURN ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG) return bad_parameter();
  return to_dat(ep->disconnect(flags == DAT_CLOSE_ABRUPT_FLAG));
}

DAT_RETURN psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd_handle,
                      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  const auto evd = find_evd(evd_handle);
  if (!ia || !evd) return bad_handle();
  if (out == nullptr) return bad_parameter();
  if (flags != DAT_PSP_CONSUMER_FLAG) return error(DAT_MODEL_NOT_SUPPORTED);
  std::shared_ptr<ServicePoint> psp;
  const auto result = ServicePoint::create_psp(*ia, qual, evd, psp);
  if (result == Result::kSuccess) *out = publish(ia_handle, psp);
  return to_dat(result);
}

DAT_RETURN psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* qual, DAT_EVD_HANDLE evd_handle,
                          DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  const auto evd = find_evd(evd_handle);
  if (!ia || !evd) return bad_handle();
  if (out == nullptr || qual == nullptr) return bad_parameter();
  if (flags != DAT_PSP_CONSUMER_FLAG) return error(DAT_MODEL_NOT_SUPPORTED);
  std::shared_ptr<ServicePoint> psp;
  const auto result = ServicePoint::create_psp_any(*ia, evd, psp);
  if (result != Result::kSuccess) return to_dat(result);
  *qual = psp->conn_qual();
  *out = publish(ia_handle, psp);
  return DAT_SUCCESS;
}

DAT_RETURN psp_free(DAT_PSP_HANDLE handle) {
  return free_object(find_psp(handle), handle);
}

DAT_RETURN psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM* out) {
  const auto psp = find_psp(handle);
  if (!psp) return bad_handle();
  if (out == nullptr || (mask & ~DAT_PSP_FIELD_ALL) != 0) return bad_parameter();
  *out = {consumers_ia(psp->ia()), psp->conn_qual(), handle_of(psp->evd()), DAT_PSP_CONSUMER_FLAG};
  return DAT_SUCCESS;
}

DAT_RETURN rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle,
                      DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  const auto evd = find_evd(evd_handle);
  const auto ep = find_ep(ep_handle);
  if (!ia || !evd || !ep) return bad_handle();
  if (out == nullptr) return bad_parameter();
  std::shared_ptr<ServicePoint> rsp;
  const auto result = ServicePoint::create_rsp(*ia, qual, evd, ep, rsp);
  if (result == Result::kSuccess) *out = publish(ia_handle, rsp);
  return to_dat(result);
}

DAT_RETURN rsp_free(DAT_RSP_HANDLE handle) {
  return free_object(find_rsp(handle), handle);
}

DAT_RETURN rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM* out) {
  const auto rsp = find_rsp(handle);
  if (!rsp) return bad_handle();
  if (out == nullptr || (mask & ~DAT_RSP_FIELD_ALL) != 0) return bad_parameter();
  *out = {consumers_ia(rsp->ia()), rsp->conn_qual(), handle_of(rsp->evd()), handle_of(rsp->ep())};
  return DAT_SUCCESS;
}

DAT_RETURN cr_query(DAT_CR_HANDLE handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM* out) {
  const auto cr = find_cr(handle);
  if (!cr) return bad_handle();
  if (out == nullptr || (mask & ~DAT_CR_FIELD_ALL) != 0) return bad_parameter();
  auto& shell = shell_of(handle);
  const auto& data = cr->data();
  shell.remote = address_of(data.ipv4);
  *out = {reinterpret_cast<DAT_IA_ADDRESS_PTR>(&shell.remote), cr->remote_port(),
          static_cast<DAT_COUNT>(data.bytes.size()), const_cast<std::byte*>(data.bytes.data()),
          handle_of(cr->reserved())};
  return DAT_SUCCESS;
}

DAT_RETURN cr_accept(DAT_CR_HANDLE handle, DAT_EP_HANDLE ep_handle, DAT_COUNT size,
                     const DAT_PVOID data) {
  const auto cr = find_cr(handle);
  std::shared_ptr<Ep> ep;
  if (!cr || !find_optional<Ep, Object::Kind::kEp>(ep_handle, ep)) return bad_handle();
  if (!is_data(size, data)) return bad_parameter();
  return decided(handle, cr->accept(ep, bytes(data, size)));
}

DAT_RETURN cr_handoff(DAT_CR_HANDLE handle, DAT_CONN_QUAL qual) {
  const auto cr = find_cr(handle);
  return cr ? decided(handle, cr->handoff(qual)) : bad_handle();
}

}  // namespace

void fill_connect(DAT_PROVIDER& table) {
  table.ep_connect_func = ep_connect;
  table.ep_dup_connect_func = ep_dup_connect;
  table.ep_disconnect_func = ep_disconnect;
  table.psp_create_func = psp_create;
  table.psp_create_any_func = psp_create_any;
  table.psp_free_func = psp_free;
  table.psp_query_func = psp_query;
  table.rsp_create_func = rsp_create;
  table.rsp_free_func = rsp_free;
  table.rsp_query_func = rsp_query;
  table.cr_query_func = cr_query;
  table.cr_accept_func = cr_accept;
  table.cr_handoff_func = cr_handoff;
}

}  // namespace stp::udapl::front
