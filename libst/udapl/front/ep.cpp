// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <net/if.h>

#include <array>

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/service_point.h"
#include "libst/udapl/core/srq.h"
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {

// --- endpoints: create, query, modify, free

namespace {

// Supported: reliable connections with best effort, without named attributes.
DAT_RETURN check_model(const DAT_EP_ATTR& attr) {
  if (attr.service_type != DAT_SERVICE_TYPE_RC || attr.qos != DAT_QOS_BEST_EFFORT)
    return error(DAT_MODEL_NOT_SUPPORTED);
  const auto named = attr.ep_transport_specific_count != 0 || attr.ep_provider_specific_count != 0;
  return named ? bad_parameter() : to_dat(Result::kSuccess);
}

// An attribute of 0 takes the provider's default, except for the numbers of RDMA reads.
EpAttr to_core(const DAT_EP_ATTR* given) {
  EpAttr attr;
  if (given == nullptr) return attr;
  const auto take = [](auto& to, auto from) {
    if (from != 0) to = static_cast<std::remove_reference_t<decltype(to)>>(from);
  };
  take(attr.max_message_size, given->max_message_size);
  take(attr.max_rdma_size, given->max_rdma_size);
  take(attr.max_recv_dtos, given->max_recv_dtos);
  take(attr.max_request_dtos, given->max_request_dtos);
  take(attr.max_recv_iov, given->max_recv_iov);
  take(attr.max_request_iov, given->max_request_iov);
  take(attr.max_rdma_read_iov, given->max_rdma_read_iov);
  take(attr.max_rdma_write_iov, given->max_rdma_write_iov);
  take(attr.soft_watermark, given->srq_soft_hw);
  attr.max_rdma_read_in = given->max_rdma_read_in;
  attr.max_rdma_read_out = given->max_rdma_read_out;
  attr.recv_flags = static_cast<Flags>(given->recv_completion_flags);
  attr.request_flags = static_cast<Flags>(given->request_completion_flags);
  return attr;
}

DAT_EP_ATTR to_dat_attr(const EpAttr& attr) {
  DAT_EP_ATTR out{};
  out.service_type = DAT_SERVICE_TYPE_RC;
  out.max_message_size = static_cast<DAT_SEG_LENGTH>(attr.max_message_size);
  out.max_rdma_size = static_cast<DAT_SEG_LENGTH>(attr.max_rdma_size);
  out.qos = DAT_QOS_BEST_EFFORT;
  out.recv_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(attr.recv_flags);
  out.request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(attr.request_flags);
  out.max_recv_dtos = attr.max_recv_dtos;
  out.max_request_dtos = attr.max_request_dtos;
  out.max_recv_iov = attr.max_recv_iov;
  out.max_request_iov = attr.max_request_iov;
  out.max_rdma_read_in = attr.max_rdma_read_in;
  out.max_rdma_read_out = attr.max_rdma_read_out;
  out.srq_soft_hw = attr.soft_watermark < 0 ? DAT_HW_DEFAULT : attr.soft_watermark;
  out.max_rdma_read_iov = attr.max_rdma_read_iov;
  out.max_rdma_write_iov = attr.max_rdma_write_iov;
  return out;
}

DAT_EP_STATE to_dat_state(EpState state) {
  switch (state) {
    case EpState::kUnconnected:
      return DAT_EP_STATE_UNCONNECTED;
    case EpState::kReserved:
      return DAT_EP_STATE_RESERVED;
    case EpState::kPassivePending:
      return DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
    case EpState::kActivePending:
      return DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
    case EpState::kCompletionPending:
      return DAT_EP_STATE_COMPLETION_PENDING;
    case EpState::kConnected:
      return DAT_EP_STATE_CONNECTED;
    case EpState::kDisconnectPending:
      return DAT_EP_STATE_DISCONNECT_PENDING;
    case EpState::kDisconnected:
      break;
  }
  return DAT_EP_STATE_DISCONNECTED;
}

bool find_evds(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
               Ep::Parts& parts) {
  constexpr auto kEvd = Object::Kind::kEvd;
  return find_optional<Evd, kEvd>(recv, parts.recv) &&
         find_optional<Evd, kEvd>(request, parts.request) &&
         find_optional<Evd, kEvd>(connect, parts.connect);
}

DAT_RETURN make(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz, Ep::Parts& parts,
                const DAT_EP_ATTR* attr, DAT_EP_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  parts.pz = find_pz(pz);
  if (!ia || !parts.pz) return bad_handle();
  if (out == nullptr) return bad_parameter();
  if (attr != nullptr)
    if (const auto result = check_model(*attr); result != DAT_SUCCESS) return result;
  std::shared_ptr<Ep> ep;
  const auto result = Ep::create(*ia, parts, to_core(attr), ep);
  if (result == Result::kSuccess) *out = publish(ia_handle, ep);
  return to_dat(result);
}

DAT_RETURN create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
                  DAT_EVD_HANDLE connect, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* out) {
  Ep::Parts parts;
  if (!find_evds(recv, request, connect, parts)) return bad_handle();
  return make(ia, pz, parts, attr, out);
}

DAT_RETURN create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
                           DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq,
                           const DAT_EP_ATTR* attr, DAT_EP_HANDLE* out) {
  Ep::Parts parts;
  parts.srq = find_srq(srq);
  if (!parts.srq || !find_evds(recv, request, connect, parts)) return bad_handle();
  if (attr == nullptr) return bad_parameter();
  auto without_iov = *attr;
  without_iov.max_recv_iov = 0;  // ignored
  return make(ia, pz, parts, &without_iov, out);
}

DAT_RETURN free_ep(DAT_EP_HANDLE handle) {
  return free_object(find_ep(handle), handle);
}

DAT_RETURN reset(DAT_EP_HANDLE handle) {
  const auto ep = find_ep(handle);
  return ep ? to_dat(ep->reset()) : bad_handle();
}

DAT_RETURN query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM* out) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  if (out == nullptr || (mask & ~DAT_EP_FIELD_ALL) != 0) return bad_parameter();
  Ep::Param param{};
  if (const auto result = ep->query(param); result != Result::kSuccess) return to_dat(result);
  auto& shell = shell_of(handle);
  shell.remote = address_of(param.remote_ipv4, param.remote_udp_port);
  *out = {};
  out->ia_handle = consumers_ia(ep->ia());
  out->ep_state = to_dat_state(param.state);
  out->local_ia_address_ptr = local_address(ep->ia());
  out->remote_ia_address_ptr = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&shell.remote);
  out->local_port_qual = param.local_qual;
  out->remote_port_qual = param.remote_qual;
  out->pz_handle = handle_of(param.parts.pz);
  out->recv_evd_handle = handle_of(param.parts.recv);
  out->request_evd_handle = handle_of(param.parts.request);
  out->connect_evd_handle = handle_of(param.parts.connect);
  out->srq_handle = handle_of(param.parts.srq);
  out->ep_attr = to_dat_attr(param.attr);
  return DAT_SUCCESS;
}

// Takes the attributes that the mask names from `given`, and the others from the EP.
DAT_EP_ATTR merge(const EpAttr& now, const DAT_EP_ATTR& given, DAT_EP_PARAM_MASK mask) {
  auto attr = to_dat_attr(now);
  const auto take = [&](DAT_EP_PARAM_MASK field, auto member) {
    if ((mask & field) != 0) attr.*member = given.*member;
  };
  take(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &DAT_EP_ATTR::service_type);
  take(DAT_EP_FIELD_EP_ATTR_QOS, &DAT_EP_ATTR::qos);
  take(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &DAT_EP_ATTR::srq_soft_hw);
  take(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &DAT_EP_ATTR::max_message_size);
  take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &DAT_EP_ATTR::max_rdma_size);
  take(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &DAT_EP_ATTR::recv_completion_flags);
  take(DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &DAT_EP_ATTR::request_completion_flags);
  take(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &DAT_EP_ATTR::max_recv_dtos);
  take(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &DAT_EP_ATTR::max_request_dtos);
  take(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &DAT_EP_ATTR::max_recv_iov);
  take(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &DAT_EP_ATTR::max_request_iov);
  take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &DAT_EP_ATTR::max_rdma_read_in);
  take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, &DAT_EP_ATTR::max_rdma_read_out);
  take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, &DAT_EP_ATTR::max_rdma_read_iov);
  take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &DAT_EP_ATTR::max_rdma_write_iov);
  return attr;
}

DAT_RETURN modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* given) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  constexpr auto kFixed = DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_SRQ_HANDLE |
                          DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
                          DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL;
  if (given == nullptr || (mask & (kFixed | ~DAT_EP_FIELD_ALL)) != 0) return bad_parameter();
  const auto named = [&](DAT_EP_PARAM_MASK field, DAT_HANDLE value) {
    return (mask & field) != 0 ? value : DAT_HANDLE_NULL;
  };
  Ep::Parts parts;
  if (!find_evds(named(DAT_EP_FIELD_RECV_EVD_HANDLE, given->recv_evd_handle),
                 named(DAT_EP_FIELD_REQUEST_EVD_HANDLE, given->request_evd_handle),
                 named(DAT_EP_FIELD_CONNECT_EVD_HANDLE, given->connect_evd_handle), parts) ||
      !find_optional<Pz, Object::Kind::kPz>(named(DAT_EP_FIELD_PZ_HANDLE, given->pz_handle),
                                            parts.pz))
    return bad_handle();
  Ep::Param now{};
  if (const auto result = ep->query(now); result != Result::kSuccess) return to_dat(result);
  const auto merged = merge(now.attr, given->ep_attr, mask);
  if (const auto result = check_model(merged); result != DAT_SUCCESS) return result;
  const auto attr = to_core(&merged);
  return to_dat(ep->modify(parts, &attr));
}

DAT_RETURN get_status(DAT_EP_HANDLE handle, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle,
                      DAT_BOOLEAN* request_idle) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  EpState now{};
  bool recv = false, request = false;
  if (const auto result = ep->status(now, recv, request); result != Result::kSuccess)
    return to_dat(result);
  if (state != nullptr) *state = to_dat_state(now);
  if (recv_idle != nullptr) *recv_idle = recv ? DAT_TRUE : DAT_FALSE;
  if (request_idle != nullptr) *request_idle = request ? DAT_TRUE : DAT_FALSE;
  return DAT_SUCCESS;
}

DAT_RETURN recv_query(DAT_EP_HANDLE handle, DAT_COUNT* buffers, DAT_COUNT* span) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  if (buffers == nullptr && span == nullptr) return bad_parameter();
  return to_dat(ep->recv_query(buffers, span));
}

DAT_RETURN set_watermark(DAT_EP_HANDLE handle, DAT_COUNT soft, DAT_COUNT hard) {
  const auto ep = find_ep(handle);
  return ep ? to_dat(ep->set_watermarks(soft, hard)) : bad_handle();
}

}  // namespace

void fill_ep(DAT_PROVIDER& table) {
  table.ep_create_func = create;
  table.ep_create_with_srq_func = create_with_srq;
  table.ep_free_func = free_ep;
  table.ep_reset_func = reset;
  table.ep_query_func = query;
  table.ep_modify_func = modify;
  table.ep_get_status_func = get_status;
  table.ep_recv_query_func = recv_query;
  table.ep_set_watermark_func = set_watermark;
}

// Sends, receives and RDMA.

namespace {

// Sends and receives.
template <auto kPost>
DAT_RETURN post(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                DAT_COMPLETION_FLAGS flags) {
  const HeldEp ep(handle);
  if (!ep) return bad_handle();
  const Segments segments(iov, count);
  if (!segments.valid()) return bad_parameter();
  return to_dat((ep.operator->()->*kPost)(segments.get(), cookie.as_64, static_cast<Flags>(flags)));
}

RmrTriplet to_core(const DAT_RMR_TRIPLET& remote) {
  return {address_in(remote), remote.segment_length, remote.rmr_context};
}

// RDMA write and read.
template <auto kPost>
DAT_RETURN post_rdma(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov,
                     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                     DAT_COMPLETION_FLAGS flags) {
  const HeldEp ep(handle);
  if (!ep) return bad_handle();
  const Segments segments(iov, count);
  if (!segments.valid() || remote == nullptr) return bad_parameter();
  return to_dat((ep.operator->()->*kPost)(segments.get(), cookie.as_64, to_core(*remote),
                                          static_cast<Flags>(flags)));
}

}  // namespace

void fill_transfer(DAT_PROVIDER& table) {
  table.ep_post_send_func = post<&Ep::post_send>;
  table.ep_post_recv_func = post<&Ep::post_recv>;
  table.ep_post_rdma_write_func = post_rdma<&Ep::post_rdma_write>;
  table.ep_post_rdma_read_func = post_rdma<&Ep::post_rdma_read>;
}

// --- service points, connection requests, connecting and disconnecting

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

// What stands behind a host for its UDP port. Many consumers put the qualifier there: then it is
// none.
std::string udp_port_at(const Ia& ia, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual) {
  // Where both families have it.
  const auto port = ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  const bool is_named = port != 0 && port != qual && ia.info().udp_port != 0;
  return is_named ? "/" + std::to_string(port) : "";
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
  return to_dat(ep->connect(host + udp_port_at(ep->ia(), address, qual), ipv4, qual, timeout,
                            bytes(data, size)));
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
  shell.remote = address_of(data.ipv4, cr->remote_udp_port());
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

namespace {

DAT_RETURN create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* attr,
                  DAT_SRQ_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  const auto pz = find_pz(pz_handle);
  if (!ia || !pz) return bad_handle();
  if (attr == nullptr || out == nullptr) return bad_parameter();
  std::shared_ptr<Srq> srq;
  const auto result =
      Srq::create(*ia, pz, {attr->max_recv_dtos, attr->max_recv_iov, attr->low_watermark}, srq);
  if (result == Result::kSuccess) *out = publish(ia_handle, srq);
  return to_dat(result);
}

DAT_RETURN free_srq(DAT_SRQ_HANDLE handle) {
  return free_object(find_srq(handle), handle);
}

DAT_RETURN post_recv(DAT_SRQ_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov,
                     DAT_DTO_COOKIE cookie) {
  const HeldSrq srq(handle);
  if (!srq) return bad_handle();
  const Segments segments(iov, count);
  if (!segments.valid()) return bad_parameter();
  return to_dat(srq->post(segments.get(), cookie.as_64));
}

DAT_RETURN resize_srq(DAT_SRQ_HANDLE handle, DAT_COUNT max_recv_dtos) {
  const auto srq = find_srq(handle);
  return srq ? to_dat(srq->resize(max_recv_dtos)) : bad_handle();
}

DAT_RETURN set_lw(DAT_SRQ_HANDLE handle, DAT_COUNT low_watermark) {
  const auto srq = find_srq(handle);
  return srq ? to_dat(srq->set_low_watermark(low_watermark)) : bad_handle();
}

DAT_RETURN query(DAT_SRQ_HANDLE handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* out) {
  const auto srq = find_srq(handle);
  if (!srq) return bad_handle();
  if (out == nullptr || (mask & ~DAT_SRQ_FIELD_ALL) != 0) return bad_parameter();
  Srq::Param param{};
  if (const auto result = srq->query(param); result != Result::kSuccess) return to_dat(result);
  *out = {consumers_ia(srq->ia()),  DAT_SRQ_STATE_OPERATIONAL, srq->pz().handle(),
          param.attr.max_recv_dtos, param.attr.max_recv_iov,   param.attr.low_watermark,
          param.available,          param.outstanding};
  return DAT_SUCCESS;
}

}  // namespace

void fill_srq(DAT_PROVIDER& table) {
  table.srq_create_func = create;
  table.srq_free_func = free_srq;
  table.srq_post_recv_func = post_recv;
  table.srq_resize_func = resize_srq;
  table.srq_set_lw_func = set_lw;
  table.srq_query_func = query;
}

}  // namespace stp::udapl::front
