// SPDX-License-Identifier: BSD-3-Clause
// A passive endpoint: listens, and turns connection requests into FI_CONNREQ events.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_endpoint.h>

#include <map>
#include <memory>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/op.h"

namespace stp::fi {

class Eq;
class Fabric;
class Link;

// A connection request. Decided by fi_accept of an endpoint made from it, by fi_reject, or when
// that endpoint or the passive one is closed.
struct Connreq : ::fid {
  stm_connection_t connection = nullptr;
  Address peer;
};

class Pep final : public fid_pep, public Acceptor {
 public:
  static int open(Fabric& fabric, const fi_info& info, void* context, fid_pep*& out);
  // nullptr: not a passive endpoint of this provider.
  static Pep* of(fid_t handle);

  // Lets an endpoint take over the name. -FI_EOPBADSTATE: the passive endpoint listens.
  int lend_name(const Link& link, Address& out) const;
  void requested(stm_connection_t connection) override;

  int close();
  int bind(fid_t other, std::uint64_t flags);
  int listen();
  int reject(fid_t handle, const void* data, std::size_t length);
  int set_name(const void* address, std::size_t length);
  int get_name(void* address, std::size_t* length);
  [[nodiscard]] Address name() const;

 private:
  struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
  };
  Pep(Fabric& fabric, const fi_info& info, void* context);

  Fabric& fabric_;
  Link& link_;
  const std::unique_ptr<fi_info, FreeInfo> info_;
  Address name_;
  Eq* eq_ = nullptr;
  stm_listener_t listener_ = nullptr;
  std::map<fid_t, std::unique_ptr<Connreq>> undecided_;
};

// Takes the request out of `handle`, for an endpoint to be made from it, which then owns it.
// nullptr: not a request.
std::unique_ptr<Connreq> take_request(fid_t handle);

}  // namespace stp::fi
