// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/srq.h"

#include "libst/udapl/front/front.h"

namespace stp::udapl::front {
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
  const auto srq = find_srq(handle);
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
