// SPDX-License-Identifier: BSD-3-Clause
// An Endpoint: its states and attributes, and itself. What says so happens under the IA's mutex.
#pragma once

#include <cstdint>

#include "libst/udapl/core/evd.h"
#include "libst/udapl/core/memory.h"
#include "libst/udapl/core/object.h"
#include "libst/udapl/core/private_data.h"
#include "libst/udapl/core/ring.h"
#include "libst/udapl/core/srq.h"
#include "stp/base/state_machine.h"

namespace stp::udapl {

// The states of an Endpoint.
//
//   Unconnected <--- unreserve ---.----------------------.
//    |     |  |                   |                      |
//    |     |  '---- reserve --> Reserved -- request --> PassivePending
//    |     | accept                                      |
//    |     '------------------------------.              | accept
//    | connect                            v              |
//    v                             CompletionPending <---'
//   ActivePending                         |
//    |                                    |
//    '---- establish ---> Connected <-----' establish
//
//   ActivePending, CompletionPending, Connected -- disconnect --> DisconnectPending
//   each of these four ---- end ----> Disconnected ---- reset ---> Unconnected
//
// Without effect: reset of an Unconnected one, disconnect of a DisconnectPending one, disconnect
// and end of a Disconnected one.
enum class EpState : std::uint8_t {
  kUnconnected,
  kReserved,
  kPassivePending,
  kActivePending,
  kCompletionPending,
  kConnected,
  kDisconnectPending,
  kDisconnected,
};

enum class EpInput : std::uint8_t {
  kReserve,     // an RSP is made with it
  kUnreserve,   // the RSP is freed, or its request rejected
  kRequest,     // a request came to its RSP
  kConnect,     // dat_ep_connect
  kAccept,      // dat_cr_accept
  kEstablish,   // both sides have said yes
  kDisconnect,  // dat_ep_disconnect
  kEnd,         // the connection is no more, or did not come about
  kReset,       // dat_ep_reset
};

inline constexpr Transition<EpState, EpInput> kEpTransitions[] = {
    {EpState::kUnconnected, EpInput::kReserve, EpState::kReserved},
    {EpState::kUnconnected, EpInput::kConnect, EpState::kActivePending},
    {EpState::kUnconnected, EpInput::kAccept, EpState::kCompletionPending},
    {EpState::kUnconnected, EpInput::kReset, EpState::kUnconnected},
    {EpState::kReserved, EpInput::kUnreserve, EpState::kUnconnected},
    {EpState::kReserved, EpInput::kRequest, EpState::kPassivePending},
    {EpState::kPassivePending, EpInput::kUnreserve, EpState::kUnconnected},
    {EpState::kPassivePending, EpInput::kAccept, EpState::kCompletionPending},
    {EpState::kActivePending, EpInput::kEstablish, EpState::kConnected},
    {EpState::kActivePending, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kActivePending, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kCompletionPending, EpInput::kEstablish, EpState::kConnected},
    {EpState::kCompletionPending, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kCompletionPending, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kConnected, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kConnected, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kDisconnectPending, EpInput::kDisconnect, EpState::kDisconnectPending},
    {EpState::kDisconnectPending, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kDisconnected, EpInput::kDisconnect, EpState::kDisconnected},
    {EpState::kDisconnected, EpInput::kEnd, EpState::kDisconnected},
    {EpState::kDisconnected, EpInput::kReset, EpState::kUnconnected},
};

// Attributes of Endpoints, and the limits of an IA.

inline constexpr int kMaxDtos = 65'536;  // of one kind on an EP
inline constexpr int kMaxReads = 256;
inline constexpr int kMaxEps = 65535;  // of an IA: a connection each, and each has a Port
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 30;

struct EpAttr {
  std::uint64_t max_message_size = kMaxMessage, max_rdma_size = kMaxMessage;
  Flags recv_flags = 0, request_flags = 0;
  int max_recv_dtos = 256, max_request_dtos = 256;
  int max_recv_iov = 16, max_request_iov = 16;
  int max_rdma_read_in = 16, max_rdma_read_out = 16;
  int max_rdma_read_iov = 16, max_rdma_write_iov = 16;
  int soft_watermark = -1;  // of buffers from the SRQ; negative: none
  // How long a message of the peer may wait for a receive, in microseconds.
  std::int64_t receive_wait = 30'000'000;
};

// False: beyond a limit, or an invalid combination.
[[nodiscard]] bool is_valid(const EpAttr& attr);

class Rmr;

class Ep : public Object {
 public:
  static constexpr int kUnknown = -2;  // DAT_VALUE_UNKNOWN

  // Any of the EVDs may be null.
  struct Parts {
    std::shared_ptr<Pz> pz;
    std::shared_ptr<Evd> recv, request, connect;
    std::shared_ptr<Srq> srq;
  };
  Ep(Ia& ia, Parts parts, const EpAttr& attr);
  ~Ep() override;
  // With an SRQ if `parts` has one.
  static Result create(Ia& ia, const Parts& parts, const EpAttr& attr, std::shared_ptr<Ep>& out);
  Result free();
  Result reset();

  struct Param {
    EpState state;
    Parts parts;
    EpAttr attr;
    std::uint32_t remote_ipv4;
    std::uint16_t remote_udp_port;  // 0: the usual one, or the link is none over UDP
    std::uint64_t local_qual, remote_qual;
  };
  Result query(Param& out);
  // For unconnected EPs only. Null parts and a null `attr` leave the current values.
  Result modify(const Parts& parts, const EpAttr* attr);
  Result status(EpState& state, bool& recv_idle, bool& request_idle);

  // `host` as the managed API names it. `timeout` in microseconds.
  Result connect(const std::string& host, std::uint32_t ipv4, std::uint64_t conn_qual,
                 std::uint32_t timeout, std::span<const std::byte> private_data);
  // Connects to the peer of `other`.
  Result dup_connect(Ep& other, std::uint32_t timeout, std::span<const std::byte> private_data);
  Result disconnect(bool abrupt);

  // dat_ep_recv_query; both may be null.
  Result recv_query(int* buffers, int* span);
  // Watermarks for the buffers that this EP has from its SRQ; negative: none. Exceeding the soft
  // one causes one asynchronous event, exceeding the hard one breaks the connection.
  Result set_watermarks(int soft, int hard);

  // ---- under the IA's mutex ----
  Result post_send(std::span<const LmrTriplet> segments, std::uint64_t cookie, Flags flags);
  Result post_rdma_write(std::span<const LmrTriplet> segments, std::uint64_t cookie,
                         const RmrTriplet& remote, Flags flags);
  Result post_rdma_read(std::span<const LmrTriplet> segments, std::uint64_t cookie,
                        const RmrTriplet& remote, Flags flags);
  Result post_recv(std::span<const LmrTriplet> segments, std::uint64_t cookie, Flags flags);

  // Returns false if `input` is not allowed in this state.
  bool enter(EpInput input);
  [[nodiscard]] EpState state() const { return state_.state(); }
  Result accept(stm_connection_t connection, std::span<const std::byte> private_data);
  void on_event(const stm_event_t& event);
  [[nodiscard]] const Pz& pz() const { return *parts_.pz; }
  [[nodiscard]] stm_connection_t connection() const { return connection_; }
  // Completes in the order of the requests, without sending a frame.
  Result post_bind(Rmr& rmr, std::uint64_t cookie, Flags flags);
  [[nodiscard]] Result check_request(Flags flags);
  void abandon() override;

 private:
  struct Request {
    Dto dto = Dto::kSend;
    Iov iov;
    std::uint64_t cookie = 0;
    Flags flags = 0;
    void* handle = nullptr;  // of the RMR
    bool done = false;
    DtoStatus status = DtoStatus::kSuccess;

    // Whoever adds one fills in the rest.
    void clear() { iov.clear(); }
  };

  Result attach();
  void detach();
  [[nodiscard]] Result check_parts() const;

  [[nodiscard]] stm_connection_attr_t connection_attr() const;
  void connection_event(const stm_event_t& event);
  void established();
  void ended(EventNumber number);
  void tell_connection(EventNumber number);
  void break_connection();
  void explain(int status);

  Request& add_request(Dto dto, std::uint64_t cookie, Flags flags);
  Result post(Dto dto, std::span<const LmrTriplet> segments, std::uint64_t cookie,
              const RmrTriplet& remote, Flags flags);
  Result begin_last_request(const RmrTriplet& remote);
  int begin(const Request& request, const RmrTriplet& remote);
  [[nodiscard]] unsigned managed_flags(const Request& request) const;
  void complete_request(const stm_event_t& event);
  void tell_requests();
  void tell_request(const Request& request);

  [[nodiscard]] int post_pending_receives();
  void complete_receive(const stm_event_t& event);
  void tell_receive(const Receive& receive, DtoStatus status, std::uint64_t length, bool solicited);
  void flush_receives();
  struct Allocation {
    int buffers = 0, span = 0;
  };
  [[nodiscard]] Allocation allocation() const;
  void watch_allocation();
  void passed_watermark(std::uint64_t buffers);

  Parts parts_;
  EpAttr attr_;
  Machine<kEpTransitions> state_;
  bool broken_ = false;
  bool explained_ = false;
  stm_connection_t connection_ = nullptr;
  PrivateData peer_data_;
  std::string host_;
  std::uint32_t remote_ipv4_ = 0;
  std::uint16_t remote_udp_port_ = 0;
  std::uint64_t remote_qual_ = 0;
  Ring<Request> requests_;           // in order
  std::uint64_t told_requests_ = 0;  // the number of the first request: contexts are numbers
  unsigned writes_ = 0, reads_ = 0;  // under way
  Ring<Receive> receives_;           // of an EP without SRQ
  std::size_t posted_ = 0;           // those of them that are posted on the connection
  int soft_ = -1, hard_ = -1;
};

}  // namespace stp::udapl
