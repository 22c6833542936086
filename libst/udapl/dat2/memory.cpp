// SPDX-License-Identifier: BSD-3-Clause
// PZ, LMR and RMR.
#include "libst/udapl/core/rmr.h"
#include "libst/udapl/dat2/front.h"

namespace stp::udapl::dat2 {
namespace {

auto find_rmr(DAT_HANDLE h) {
  return find<Rmr, Object::Kind::kRmr>(h);
}

DAT_RETURN pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* out) {
  auto const ia = find_ia(ia_handle);
  if (!ia) return bad_handle();
  if (out == nullptr) return bad_parameter();
  std::shared_ptr<Pz> pz;
  auto const result = Pz::create(*ia, pz);
  if (result == Result::kSuccess) *out = publish(ia_handle, pz);
  return to_dat(result);
}

DAT_RETURN pz_free(DAT_PZ_HANDLE handle) {
  return free_object(find_pz(handle), handle);
}

DAT_RETURN pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* out) {
  auto const pz = find_pz(handle);
  if (!pz) return bad_handle();
  if (out == nullptr || (mask & ~DAT_PZ_FIELD_ALL) != 0) return bad_parameter();
  out->ia_handle = consumers_ia(pz->ia());
  return DAT_SUCCESS;
}

DAT_RETURN lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                      DAT_VLEN length, DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
                      DAT_VA_TYPE va_type, DAT_LMR_HANDLE* out, DAT_LMR_CONTEXT* lmr_context,
                      DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                      DAT_VADDR* registered_address) {
  auto const ia = find_ia(ia_handle);
  auto const pz = find_pz(pz_handle);
  if (!ia || !pz) return bad_handle();
  if (out == nullptr) return bad_parameter();
  if (type == DAT_MEM_TYPE_SHARED_VIRTUAL) return error(DAT_MODEL_NOT_SUPPORTED);
  Lmr::Attr attr{region.for_va, length, static_cast<unsigned>(privileges),
                 va_type == DAT_VA_TYPE_ZB};
  if (type == DAT_MEM_TYPE_LMR) {
    auto const other = dat2::find_lmr(region.for_lmr_handle);
    if (!other) return bad_handle();
    attr.start = other->attr().start;
    attr.length = other->attr().length;
  }
  std::shared_ptr<Lmr> lmr;
  if (auto const result = Lmr::create(*ia, pz, attr, lmr); result != Result::kSuccess)
    return to_dat(result);
  *out = publish(ia_handle, lmr);
  if (lmr_context != nullptr) *lmr_context = lmr->context();
  if (rmr_context != nullptr) *rmr_context = lmr->rmr_context();
  if (registered_length != nullptr) *registered_length = attr.length;
  if (registered_address != nullptr) *registered_address = lmr->base();
  return DAT_SUCCESS;
}

DAT_RETURN lmr_free(DAT_LMR_HANDLE handle) {
  return free_object(dat2::find_lmr(handle), handle);
}

DAT_RETURN lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* out) {
  auto const lmr = dat2::find_lmr(handle);
  if (!lmr) return bad_handle();
  if (out == nullptr || (mask & ~DAT_LMR_FIELD_ALL) != 0) return bad_parameter();
  auto const& attr = lmr->attr();
  *out = {};
  out->ia_handle = consumers_ia(lmr->ia());
  out->mem_type = DAT_MEM_TYPE_VIRTUAL;
  out->region_desc.for_va = attr.start;
  out->length = out->registered_size = attr.length;
  out->pz_handle = lmr->pz().handle();
  out->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(attr.privileges);
  out->va_type = attr.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
  out->lmr_context = lmr->context();
  out->rmr_context = lmr->rmr_context();
  out->registered_address = lmr->base();
  return DAT_SUCCESS;
}

// Memory is coherent here.
DAT_RETURN lmr_sync(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  if (!find_ia(ia_handle)) return bad_handle();
  if (segments == nullptr && count != 0) return bad_parameter();
  return DAT_SUCCESS;
}

DAT_RETURN rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* out) {
  auto const pz = find_pz(pz_handle);
  if (!pz) return bad_handle();
  if (out == nullptr) return bad_parameter();
  std::shared_ptr<Rmr> rmr;
  auto const result = Rmr::create(pz->ia(), pz, rmr);
  if (result == Result::kSuccess) *out = publish(pz->ia().handle(), rmr);
  return to_dat(result);
}

DAT_RETURN rmr_free(DAT_RMR_HANDLE handle) {
  return free_object(find_rmr(handle), handle);
}

DAT_RETURN rmr_bind(DAT_RMR_HANDLE handle, DAT_LMR_HANDLE lmr_handle,
                    const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS privileges,
                    DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
                    DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* out) {
  auto const rmr = find_rmr(handle);
  auto const ep = find<Ep, Object::Kind::kEp>(ep_handle);
  if (!rmr || !ep || (lmr_handle != DAT_HANDLE_NULL && !dat2::find_lmr(lmr_handle)))
    return bad_handle();
  if (triplet == nullptr) return bad_parameter();
  std::uint32_t context = 0;
  auto const result =
      rmr->bind({triplet->virtual_address, triplet->segment_length, triplet->lmr_context},
                static_cast<unsigned>(privileges), va_type == DAT_VA_TYPE_ZB, *ep, cookie.as_64,
                static_cast<Flags>(flags), context);
  if (result == Result::kSuccess && out != nullptr) *out = context;
  return to_dat(result);
}

DAT_RETURN rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* out) {
  auto const rmr = find_rmr(handle);
  if (!rmr) return bad_handle();
  if (out == nullptr || (mask & ~DAT_RMR_FIELD_ALL) != 0) return bad_parameter();
  Rmr::Param param{};
  if (auto const result = rmr->query(param); result != Result::kSuccess) return to_dat(result);
  *out = {};
  out->ia_handle = consumers_ia(rmr->ia());
  out->pz_handle = handle_of(param.pz);
  out->lmr_triplet = {param.triplet.address, static_cast<DAT_SEG_LENGTH>(param.triplet.length),
                      param.triplet.context};
  out->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(param.privileges);
  out->rmr_context = param.context;
  out->rmr_scope = DAT_RMR_SCOPE_EP;
  return DAT_SUCCESS;
}

}  // namespace

void fill_memory(DAT_PROVIDER& table) {
  table.pz_create_func = pz_create;
  table.pz_free_func = pz_free;
  table.pz_query_func = pz_query;
  table.lmr_create_func = lmr_create;
  table.lmr_free_func = lmr_free;
  table.lmr_query_func = lmr_query;
  table.lmr_sync_rdma_read_func = lmr_sync;
  table.lmr_sync_rdma_write_func = lmr_sync;
  table.rmr_create_func = rmr_create;
  table.rmr_create_for_ep_func = rmr_create;
  table.rmr_free_func = rmr_free;
  table.rmr_bind_func = rmr_bind;
  table.rmr_query_func = rmr_query;
}

}  // namespace stp::udapl::dat2
