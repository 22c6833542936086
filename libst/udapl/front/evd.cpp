// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {
namespace {

Cno::Agent agent_of(DAT_OS_WAIT_PROXY_AGENT agent) {
  if (agent.proxy_agent_func == nullptr) return {};
  return [agent](void* evd) { agent.proxy_agent_func(agent.instance_data, evd); };
}

DAT_RETURN create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  if (!ia) return bad_handle();
  if (out == nullptr) return bad_parameter();
  std::shared_ptr<Cno> cno;
  const auto result = Cno::create(*ia, agent_of(agent), cno);
  if (result != Result::kSuccess) return to_dat(result);
  *out = publish(ia_handle, cno);
  shell_of(*out).agent = agent;
  return DAT_SUCCESS;
}

DAT_RETURN free_cno(DAT_CNO_HANDLE handle) {
  return free_object(find_cno(handle), handle);
}

DAT_RETURN modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent) {
  const auto cno = find_cno(handle);
  if (!cno) return bad_handle();
  const auto result = cno->modify_agent(agent_of(agent));
  if (result == Result::kSuccess) shell_of(handle).agent = agent;
  return to_dat(result);
}

DAT_RETURN wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
  const auto cno = find_cno(handle);
  if (!cno) return bad_handle();
  if (evd == nullptr) return bad_parameter();
  *evd = DAT_HANDLE_NULL;
  return to_dat(cno->wait(timeout, *evd));
}

DAT_RETURN query(DAT_CNO_HANDLE handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* out) {
  const auto cno = find_cno(handle);
  if (!cno) return bad_handle();
  if (out == nullptr || (mask & ~DAT_CNO_FIELD_ALL) != 0) return bad_parameter();
  *out = {};
  out->ia_handle = consumers_ia(cno->ia());
  fill_own(*cno, cno->has_agent() ? shell_of(handle).agent : DAT_OS_WAIT_PROXY_AGENT{}, *out);
  return DAT_SUCCESS;
}

}  // namespace

void fill_cno(DAT_PROVIDER& table) {
  table.cno_create_func = create;
  table.cno_free_func = free_cno;
  table.cno_modify_agent_func = modify_agent;
  table.cno_wait_func = wait;
  table.cno_query_func = query;
}

namespace {

DAT_COUNT reason_of(AsyncReason reason) {
  switch (reason) {
    case AsyncReason::kSoftHighWatermark:
      return DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT;
    case AsyncReason::kLowWatermark:
      return DAT_SRQ_LOW_WATERMARK_EVENT;
    case AsyncReason::kOverflow:
      return DAT_EVD_OVERFLOW_ERROR;
    case AsyncReason::kCatastrophic:
      return DAT_IA_CATASTROPHIC_ERROR;
    case AsyncReason::kOther:
      break;
  }
  return DAT_EP_OTHER_ERROR;
}

void convert_request(const Event& event, const Ia& ia, DAT_CR_ARRIVAL_EVENT_DATA& data) {
  data.sp_handle.psp_handle = event.handle;
  data.local_ia_address_ptr = local_address(ia);
  data.conn_qual = event.conn_qual;
  data.cr_handle = event.cr;
}

void convert_dto(const Event& event, DAT_DTO_COMPLETION_EVENT_DATA& data) {
  data.ep_handle = event.handle;
  data.user_cookie.as_64 = event.cookie;
  data.status = static_cast<DAT_DTO_COMPLETION_STATUS>(event.status);
  data.transfered_length = static_cast<DAT_SEG_LENGTH>(event.length);
  fill_own(event, data);
}

// `evd`, of `ia`, may be no more: another thread has freed it.
void convert(const Event& event, DAT_EVD_HANDLE evd, const Ia& ia, DAT_EVENT& out) {
  out = {};
  out.event_number = static_cast<DAT_EVENT_NUMBER>(event.number);
  out.evd_handle = evd;
  auto& data = out.event_data;
  switch (event.number) {
    case EventNumber::kDtoCompletion:
      convert_dto(event, data.dto_completion_event_data);
      break;
    case EventNumber::kRmrBindCompletion:
      data.rmr_completion_event_data = {event.handle,
                                        {.as_64 = event.cookie},
                                        static_cast<DAT_DTO_COMPLETION_STATUS>(event.status)};
      break;
    case EventNumber::kConnectionRequest:
      convert_request(event, ia, data.cr_arrival_event_data);
      break;
    case EventNumber::kSoftware:
      data.software_event_data.pointer = event.pointer;
      break;
    case EventNumber::kEvdOverflow:
    case EventNumber::kIaCatastrophic:
    case EventNumber::kEpBroken:
    case EventNumber::kProviderInternalError:
      data.asynch_error_event_data = {event.handle, reason_of(event.reason)};
      break;
    default:
      data.connect_event_data = {event.handle, static_cast<DAT_COUNT>(event.private_size),
                                 const_cast<std::byte*>(event.private_data)};
  }
}

DAT_RETURN create(DAT_IA_HANDLE ia_handle, DAT_COUNT length, DAT_CNO_HANDLE cno_handle,
                  DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  std::shared_ptr<Cno> cno;
  if (!ia || !find_optional<Cno, Object::Kind::kCno>(cno_handle, cno)) return bad_handle();
  if (out == nullptr) return bad_parameter();
  std::shared_ptr<Evd> evd;
  const auto result = Evd::create(*ia, length, cno, static_cast<Flags>(flags), evd);
  if (result == Result::kSuccess) *out = publish(ia_handle, evd);
  return to_dat(result);
}

DAT_RETURN free_evd(DAT_EVD_HANDLE handle) {
  return free_object(find_evd(handle), handle);
}

DAT_RETURN wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT* out,
                DAT_COUNT* nmore) {
  const auto evd = find_evd(handle);
  if (!evd) return bad_handle();
  if (out == nullptr || nmore == nullptr) return bad_parameter();
  Event event;
  const auto result = evd->wait(timeout, threshold, event, *nmore);
  if (result == Result::kSuccess) convert(event, handle, evd->ia(), *out);
  return to_dat(result);
}

DAT_RETURN dequeue(DAT_EVD_HANDLE handle, DAT_EVENT* out) {
  const HeldEvd evd(handle);
  if (!evd) return bad_handle();
  if (out == nullptr) return bad_parameter();
  const Event* event = nullptr;
  const auto result = evd->look(event);
  if (result != Result::kSuccess) return to_dat(result);
  convert(*event, handle, evd->ia(), *out);
  evd->took();
  return DAT_SUCCESS;
}

DAT_RETURN post_se(DAT_EVD_HANDLE handle, const DAT_EVENT* event) {
  const auto evd = find_evd(handle);
  if (!evd) return bad_handle();
  if (event == nullptr || event->event_number != DAT_SOFTWARE_EVENT) return bad_parameter();
  return to_dat(evd->post_software(event->event_data.software_event_data.pointer));
}

DAT_RETURN resize_evd(DAT_EVD_HANDLE handle, DAT_COUNT length) {
  const auto evd = find_evd(handle);
  return evd ? to_dat(evd->resize(length)) : bad_handle();
}

DAT_RETURN modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno_handle) {
  const auto evd = find_evd(handle);
  std::shared_ptr<Cno> cno;
  if (!evd || !find_optional<Cno, Object::Kind::kCno>(cno_handle, cno)) return bad_handle();
  return to_dat(evd->modify_cno(cno));
}

template <bool kEnabled>
DAT_RETURN set_enabled(DAT_EVD_HANDLE handle) {
  const auto evd = find_evd(handle);
  return evd ? to_dat(evd->set_enabled(kEnabled)) : bad_handle();
}

template <bool kWaitable>
DAT_RETURN set_waitable(DAT_EVD_HANDLE handle) {
  const auto evd = find_evd(handle);
  return evd ? to_dat(evd->set_waitable(kWaitable)) : bad_handle();
}

DAT_EVD_STATE state_of(const Evd::Param& param) {
  unsigned state = param.enabled ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED;
  state |= param.waitable ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE;
  if ((param.config & kUnsignalled) != 0) state |= DAT_EVD_STATE_CONFIG_NOTIFY;
  if ((param.config & kSolicitedWait) != 0) state |= DAT_EVD_STATE_CONFIG_SOLICITED;
  if ((param.config & kEvdThreshold) != 0) state |= DAT_EVD_STATE_CONFIG_THRESHOLD;
  return static_cast<DAT_EVD_STATE>(state);
}

DAT_RETURN query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* out) {
  const auto evd = find_evd(handle);
  if (!evd) return bad_handle();
  if (out == nullptr || (mask & ~DAT_EVD_FIELD_ALL) != 0) return bad_parameter();
  Evd::Param param{};
  if (const auto result = evd->query(param); result != Result::kSuccess) return to_dat(result);
  *out = {consumers_ia(evd->ia()), param.length, state_of(param), handle_of(param.cno),
          static_cast<DAT_EVD_FLAGS>(param.streams)};
  return DAT_SUCCESS;
}

}  // namespace

void fill_evd(DAT_PROVIDER& table) {
  table.evd_create_func = create;
  table.evd_free_func = free_evd;
  table.evd_wait_func = wait;
  table.evd_dequeue_func = dequeue;
  table.evd_post_se_func = post_se;
  table.evd_resize_func = resize_evd;
  table.evd_modify_cno_func = modify_cno;
  table.evd_enable_func = set_enabled<true>;
  table.evd_disable_func = set_enabled<false>;
  table.evd_set_unwaitable_func = set_waitable<false>;
  table.evd_clear_unwaitable_func = set_waitable<true>;
  table.evd_query_func = query;
}

}  // namespace stp::udapl::front
