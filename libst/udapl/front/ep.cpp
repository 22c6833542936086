// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: create, query, modify, free.
#include "libst/udapl/core/ep.h"
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {
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
  shell.remote = address_of(param.remote_ipv4);
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
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  const Segments segments(iov, count);
  if (!segments.valid()) return bad_parameter();
  return to_dat(((*ep).*kPost)(segments.get(), cookie.as_64, static_cast<Flags>(flags)));
}

RmrTriplet to_core(const DAT_RMR_TRIPLET& remote) {
  return {address_in(remote), remote.segment_length, remote.rmr_context};
}

// RDMA write and read.
template <auto kPost>
DAT_RETURN post_rdma(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov,
                     DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                     DAT_COMPLETION_FLAGS flags) {
  const auto ep = find_ep(handle);
  if (!ep) return bad_handle();
  const Segments segments(iov, count);
  if (!segments.valid() || remote == nullptr) return bad_parameter();
  return to_dat(
      ((*ep).*kPost)(segments.get(), cookie.as_64, to_core(*remote), static_cast<Flags>(flags)));
}

}  // namespace

void fill_transfer(DAT_PROVIDER& table) {
  table.ep_post_send_func = post<&Ep::post_send>;
  table.ep_post_recv_func = post<&Ep::post_recv>;
  table.ep_post_rdma_write_func = post_rdma<&Ep::post_rdma_write>;
  table.ep_post_rdma_read_func = post_rdma<&Ep::post_rdma_read>;
}

}  // namespace stp::udapl::front
