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

}  // namespace stp::udapl::front
