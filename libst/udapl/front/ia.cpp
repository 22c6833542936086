// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/private_data.h"
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {
namespace {

constexpr DAT_COUNT kMany = 1 << 20;
constexpr std::uint32_t kAlignment = 64;
// The registered memory of a managed domain: 2^22 buffers of 4 KiB.
constexpr DAT_VLEN kMaxRegistered = DAT_VLEN{1} << 34;

DAT_RETURN open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async_handle,
                DAT_IA_HANDLE* ia_handle) {
  if (name == nullptr || async_handle == nullptr || ia_handle == nullptr) return bad_parameter();
  const auto* const registration = find_registration(name);
  if (registration == nullptr) return error(DAT_PROVIDER_NOT_FOUND);
  std::shared_ptr<Evd> async;
  if (!find_optional<Evd, Object::Kind::kEvd>(*async_handle, async)) return bad_handle();
  std::shared_ptr<Ia> ia;
  const auto own = async == nullptr;
  if (const auto result = Ia::open(registration->link, qlen, async, ia); result != Result::kSuccess)
    return to_dat(result);
  *ia_handle = add_shell(&registration->provider, ia);
  if (own) *async_handle = publish(*ia_handle, async);
  return DAT_SUCCESS;
}

DAT_RETURN close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags) {
  const auto ia = find_ia(handle);
  if (!ia) return bad_handle();
  if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG) return bad_parameter();
  const auto result = ia->close(flags == DAT_CLOSE_ABRUPT_FLAG);
  if (result == Result::kSuccess) drop_shells_of(*ia);
  return to_dat(result);
}

void fill(const Ia& ia, DAT_IA_ATTR& attr) {
  attr = {};
  copy_name(attr.vendor_name, "stp");
  attr.ia_address_ptr = local_address(ia);
  attr.max_eps = kMaxEps;
  attr.max_evds = attr.max_lmrs = attr.max_pzs = attr.max_rmrs = attr.max_srqs = kMany;
  attr.max_dto_per_ep = kMaxDtos;
  attr.max_rdma_read_per_ep_in = attr.max_rdma_read_per_ep_out = kMaxReads;
  attr.max_rdma_read_in = attr.max_rdma_read_out = kMany;
  attr.max_rdma_read_per_ep_in_guaranteed = attr.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
  attr.max_evd_qlen = Evd::kMaxLength;
  attr.max_iov_segments_per_dto = attr.max_iov_segments_per_rdma_read =
      attr.max_iov_segments_per_rdma_write = kMaxIov;
  // The field of 2.0 has 32 bits.
  attr.max_lmr_block_size =
      static_cast<DAT_SEG_LENGTH>(std::min<DAT_VLEN>(kMaxRegistered, ~DAT_SEG_LENGTH{0}));
  attr.max_lmr_virtual_address = attr.max_rmr_target_address = ~DAT_VADDR{0};
  attr.max_message_size = attr.max_rdma_size = DAT_SEG_LENGTH{kMaxMessage};
  attr.max_ep_per_srq = kMany;
  attr.max_recv_per_srq = Srq::kMaxReceives;
  fill_own(registration_of(ia.handle()), attr);
}

// The bytes of a message that one frame carries. Programs ask for it by the attribute name of
// InfiniBand's providers.
DAT_NAMED_ATTR* frame_payload(const Ia& ia) {
  constexpr std::uint32_t kHeaders = 104;  // protocol: 2.8
  static DAT_NAMED_ATTR known[] = {{"DAT_IB_TRANSPORT_MTU", "4096"},
                                   {"DAT_IB_TRANSPORT_MTU", "2048"},
                                   {"DAT_IB_TRANSPORT_MTU", "1024"},
                                   {"DAT_IB_TRANSPORT_MTU", "512"},
                                   {"DAT_IB_TRANSPORT_MTU", "256"}};
  const auto fits = std::find_if(std::begin(known), std::end(known) - 1, [&](const auto& attr) {
    return std::strtoul(attr.value, nullptr, 10) + kHeaders <= ia.info().mtu;
  });
  return fits;
}

void fill(const Ia& ia, const Registration& registration, DAT_PROVIDER_ATTR& attr) {
  std::memset(static_cast<void*>(&attr), 0, sizeof attr);
  // DAT declares the member const although the provider has to fill it.
  auto* const merging = const_cast<DAT_BOOLEAN*>(&attr.evd_stream_merging_supported[0][0]);
  std::fill_n(merging, sizeof attr.evd_stream_merging_supported / sizeof *merging, DAT_TRUE);
  // dat_ia_close finds the registration by these four.
  copy_name(attr.provider_name, registration.info.ia_name);
  attr.dapl_version_major = registration.info.dapl_version_major;
  attr.dapl_version_minor = registration.info.dapl_version_minor;
  attr.is_thread_safe = registration.info.is_thread_safe;
  attr.iov_ownership_on_return = DAT_IOV_CONSUMER;
  attr.dat_qos_supported = DAT_QOS_BEST_EFFORT;
  attr.completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(
      DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
      DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
      DAT_COMPLETION_EVD_THRESHOLD_FLAG);
  attr.max_private_data_size = DAT_COUNT{kMaxPrivateData};
  attr.ep_creator = DAT_PSP_CREATES_EP_NEVER;
  attr.pz_support = DAT_PZ_UNIQUE;
  attr.optimal_buffer_alignment = kAlignment;
  attr.srq_supported = attr.srq_ep_pz_difference_supported = DAT_TRUE;
  attr.srq_watermarks_supported = attr.srq_info_supported = attr.ep_recv_info_supported = 1;
  attr.dto_async_return_guaranteed = DAT_TRUE;
  attr.num_provider_specific_attr = 1;
  attr.provider_specific_attr = frame_payload(ia);
  fill_own(attr);
}

DAT_RETURN query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE* async, DAT_IA_ATTR_MASK ia_mask,
                 DAT_IA_ATTR* ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
                 DAT_PROVIDER_ATTR* provider_attr) {
  const auto ia = find_ia(handle);
  if (!ia) return bad_handle();
  if ((ia_mask != 0 && ia_attr == nullptr) || (provider_mask != 0 && provider_attr == nullptr) ||
      (ia_mask & ~DAT_IA_FIELD_ALL) != 0 || (provider_mask & ~DAT_PROVIDER_FIELD_ALL) != 0)
    return bad_parameter();
  if (async != nullptr) *async = handle_of(ia->async_evd());
  if (ia_attr != nullptr) fill(*ia, *ia_attr);
  if (provider_attr != nullptr) fill(*ia, registration_of(handle), *provider_attr);
  return DAT_SUCCESS;
}

}  // namespace

void fill_ia(DAT_PROVIDER& table) {
  table.ia_open_func = open;
  table.ia_close_func = close;
  table.ia_query_func = query;
}

}  // namespace stp::udapl::front
