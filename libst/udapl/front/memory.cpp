// SPDX-License-Identifier: BSD-3-Clause
// PZ, LMR and RMR.
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {
namespace {

DAT_RETURN pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  if (!ia) return bad_handle();
  if (out == nullptr) return bad_parameter();
  std::shared_ptr<Pz> pz;
  const auto result = Pz::create(*ia, pz);
  if (result == Result::kSuccess) *out = publish(ia_handle, pz);
  return to_dat(result);
}

DAT_RETURN pz_free(DAT_PZ_HANDLE handle) {
  return free_object(find_pz(handle), handle);
}

DAT_RETURN pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* out) {
  const auto pz = find_pz(handle);
  if (!pz) return bad_handle();
  if (out == nullptr || (mask & ~DAT_PZ_FIELD_ALL) != 0) return bad_parameter();
  out->ia_handle = consumers_ia(pz->ia());
  return DAT_SUCCESS;
}

DAT_RETURN lmr_free(DAT_LMR_HANDLE handle) {
  return free_object(front::find_lmr(handle), handle);
}

DAT_RETURN lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* out) {
  const auto lmr = front::find_lmr(handle);
  if (!lmr) return bad_handle();
  if (out == nullptr || (mask & ~DAT_LMR_FIELD_ALL) != 0) return bad_parameter();
  const auto& attr = lmr->attr();
  *out = {};
  out->ia_handle = consumers_ia(lmr->ia());
  out->mem_type = DAT_MEM_TYPE_VIRTUAL;
  out->region_desc.for_va = attr.start;
  out->length = out->registered_size = attr.length;
  out->pz_handle = lmr->pz().handle();
  out->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(attr.privileges);
  out->lmr_context = lmr->context();
  out->rmr_context = lmr->rmr_context();
  out->registered_address = lmr->base();
  fill_own(attr, *out);
  return DAT_SUCCESS;
}

// Memory is coherent, so there is nothing to synchronize.
DAT_RETURN lmr_sync(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  if (!find_ia(ia_handle)) return bad_handle();
  if (segments == nullptr && count != 0) return bad_parameter();
  return DAT_SUCCESS;
}

DAT_RETURN rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* out) {
  const auto pz = find_pz(pz_handle);
  if (!pz) return bad_handle();
  if (out == nullptr) return bad_parameter();
  std::shared_ptr<Rmr> rmr;
  const auto result = Rmr::create(pz->ia(), pz, rmr);
  if (result == Result::kSuccess) *out = publish(pz->ia().handle(), rmr);
  return to_dat(result);
}

DAT_RETURN rmr_free(DAT_RMR_HANDLE handle) {
  return free_object(find_rmr(handle), handle);
}

DAT_RETURN rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* out) {
  const auto rmr = find_rmr(handle);
  if (!rmr) return bad_handle();
  if (out == nullptr || (mask & ~DAT_RMR_FIELD_ALL) != 0) return bad_parameter();
  Rmr::Param param{};
  if (const auto result = rmr->query(param); result != Result::kSuccess) return to_dat(result);
  *out = {};
  out->ia_handle = consumers_ia(rmr->ia());
  out->pz_handle = handle_of(param.pz);
  out->lmr_triplet.virtual_address = param.triplet.address;
  out->lmr_triplet.segment_length = static_cast<DAT_SEG_LENGTH>(param.triplet.length);
  out->lmr_triplet.lmr_context = param.triplet.context;
  out->mem_priv = static_cast<DAT_MEM_PRIV_FLAGS>(param.privileges);
  out->rmr_context = param.context;
  fill_own(*out);
  return DAT_SUCCESS;
}

}  // namespace

DAT_RETURN create_lmr(DAT_IA_HANDLE ia_handle, const LmrRequest& request, const LmrResult& out) {
  const auto ia = find_ia(ia_handle);
  const auto pz = find_pz(request.pz);
  if (!ia || !pz) return bad_handle();
  if (out.handle == nullptr) return bad_parameter();
  if (request.type == DAT_MEM_TYPE_SHARED_VIRTUAL) return error(DAT_MODEL_NOT_SUPPORTED);
  Lmr::Attr attr{request.region.for_va, request.length, static_cast<unsigned>(request.privileges),
                 request.zero_based};
  if (request.type == DAT_MEM_TYPE_LMR) {
    const auto other = front::find_lmr(request.region.for_lmr_handle);
    if (!other) return bad_handle();
    attr.start = other->attr().start;
    attr.length = other->attr().length;
  }
  std::shared_ptr<Lmr> lmr;
  if (const auto result = Lmr::create(*ia, pz, attr, lmr); result != Result::kSuccess)
    return to_dat(result);
  *out.handle = publish(ia_handle, lmr);
  if (out.lmr_context != nullptr) *out.lmr_context = lmr->context();
  if (out.rmr_context != nullptr) *out.rmr_context = lmr->rmr_context();
  if (out.length != nullptr) *out.length = attr.length;
  if (out.address != nullptr) *out.address = lmr->base();
  return DAT_SUCCESS;
}

DAT_RETURN bind_rmr(DAT_RMR_HANDLE handle, const BindRequest& request, DAT_RMR_CONTEXT* out) {
  const auto rmr = find_rmr(handle);
  const auto ep = find<Ep, Object::Kind::kEp>(request.ep);
  if (!rmr || !ep) return bad_handle();
  if (request.triplet == nullptr) return bad_parameter();
  const auto& triplet = *request.triplet;
  std::uint32_t context = 0;
  const auto result =
      rmr->bind({triplet.virtual_address, triplet.segment_length, triplet.lmr_context},
                static_cast<unsigned>(request.privileges), request.zero_based, *ep,
                request.cookie.as_64, static_cast<Flags>(request.flags), context);
  if (result == Result::kSuccess && out != nullptr) *out = context;
  return to_dat(result);
}

void fill_memory(DAT_PROVIDER& table) {
  table.pz_create_func = pz_create;
  table.pz_free_func = pz_free;
  table.pz_query_func = pz_query;
  table.lmr_free_func = lmr_free;
  table.lmr_query_func = lmr_query;
  table.lmr_sync_rdma_read_func = lmr_sync;
  table.lmr_sync_rdma_write_func = lmr_sync;
  table.rmr_create_func = rmr_create;
  table.rmr_free_func = rmr_free;
  table.rmr_query_func = rmr_query;
}

}  // namespace stp::udapl::front
