// SPDX-License-Identifier: BSD-3-Clause
// The state of a device, its description, and the handling of one that was removed or needs a
// reset. DPDK reports events on its interrupt thread, which cannot close a device: the polling
// thread does.

#include <rte_dev.h>

#include <array>
#include <chrono>
#include <mutex>
#include <system_error>

#include "dpdk_port/dpdk/device.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

constexpr std::array kEvents{RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RMV,
                             RTE_ETH_EVENT_INTR_RESET};
// The interval of state checks without interrupts. A NIC may have to query its transceiver; for
// virtual devices it is a word in memory.
constexpr Time kLookAtNic = 100 * kMillisecond, kLook = 10 * kMillisecond;
// The interval of searches for a device that has gone.
constexpr Time kReturn = kSecond;

}  // namespace

// ---- what DPDK tells

void Device::watch_events() {
  for (const auto event : kEvents) rte_eth_dev_callback_register(port_, event, on_event, this);
  rte_dev_event_callback_register(spec_.name.c_str(), on_removal, this);
  // The kernel's event for NICs under uio; VFIO reports by itself.
  static std::once_flag listening;
  if (spec_.bus == "pci") std::call_once(listening, rte_dev_event_monitor_start);
}

void Device::unwatch_events() {
  rte_dev_event_callback_unregister(spec_.name.c_str(), on_removal, this);
  for (const auto event : kEvents) rte_eth_dev_callback_unregister(port_, event, on_event, this);
}

int Device::on_event(std::uint16_t, rte_eth_event_type event, void* device, void*) {
  auto& self = *static_cast<Device*>(device);
  if (event == RTE_ETH_EVENT_INTR_RMV) self.gone_ = true;
  if (event == RTE_ETH_EVENT_INTR_RESET) self.started_ = false;
  self.news_ |= event == RTE_ETH_EVENT_INTR_RMV     ? kRemoved
                : event == RTE_ETH_EVENT_INTR_RESET ? kNeedsReset
                                                    : kLinkChanged;
  return 0;
}

void Device::on_removal(const char*, rte_dev_event_type event, void* device) {
  if (event == RTE_DEV_EVENT_REMOVE) on_event(0, RTE_ETH_EVENT_INTR_RMV, device, nullptr);
}

// ---- what becomes of it

void Device::look(Time now) {
  look_at_ = now + (spec_.bus == "pci" ? kLookAtNic : kLook);
  const unsigned news = news_.exchange(0);
  if (watch_) watch_->look(now);
  if ((news & kRemoved) != 0) {
    let_go();
    return_at_ = now + kReturn;
  } else if ((news & kNeedsReset) != 0) {
    reset();
  }
  if (is_gone() && now >= return_at_) {
    return_at_ = now + kReturn;
    if (has_let_go() && come_back()) gone_ = false;
  }
  if (spec_.bus != "pci") return;
  state_ = find_state();
  megabits_ = find_speed();
}

// Under VFIO the kernel waits for this before it removes the NIC. A driver may wait seconds for
// registers that are not there any more, so another thread closes the NIC. Until has_let_go() only
// that thread uses it.
void Device::let_go() {
  gone_ = true;
  if (closing_.valid()) return;
  try {
    if (spec_.bus == "pci" && port_ != RTE_MAX_ETHPORTS)
      closing_ = std::async(std::launch::async, [this] { shut(); });
  } catch (const std::system_error&) {  // no thread is to be had
  }
  if (!closing_.valid()) shut();
  has_let_go();
}

// False: not yet.
bool Device::has_let_go() {
  if (closing_.valid()) {
    if (closing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    closing_.get();
  }
  port_ = RTE_MAX_ETHPORTS;
  probed_ = promiscuous_ = false;
  started_ = false;
  owner_.reset();
  return true;
}

void Device::reset() {
  std::string failure;
  gate_.close();
  if (rte_eth_dev_reset(port_) == 0 && configure(failure) && take_mtu(failure) &&
      take_mac(failure) && start(failure)) {
    return;
  }
  let_go();
}

// Restores the address that its peers know.
bool Device::come_back() {
  spec_.mac = mac_;
  std::string failure;
  if ((spec_.bus != "pci" || claim_nic(failure)) && probe(failure) && configure(failure) &&
      take_mtu(failure) && take_mac(failure) && start(failure)) {
    watch_events();
    return true;
  }
  let_go();
  return false;
}

// ---- states

LinkState Device::state_of_socket() const {
  const InterfaceWatch& interface = socket_->interface();
  if (!socket_->runs() && !socket_->obstacle().empty()) return LinkState::kTaken;
  const LinkState state = interface.state();
  if (state != LinkState::kUp) return state;
  if (!socket_->runs()) return LinkState::kDown;  // about to be used again
  if (socket_->refused_length() != 0 || interface.facts().mtu < mtu_) return LinkState::kMtu;
  return socket_->address_changed() ? LinkState::kMac : LinkState::kUp;
}

LinkState Device::find_state() const {
  if (is_gone()) return LinkState::kGone;
  if (watch_ && watch_->state() != LinkState::kUp) return watch_->state();
  rte_eth_link link{};
  const bool up =
      started_ && rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  if (!up) return LinkState::kNoCarrier;
  return watch_ && watch_->facts().mtu < mtu_ ? LinkState::kMtu : LinkState::kUp;
}

unsigned Device::find_speed() const {
  rte_eth_link link{};
  const bool known = carries_frames(state_) && rte_eth_link_get_nowait(port_, &link) == 0 &&
                     link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
  return known ? link.link_speed : 0;
}

// ---- words

std::string Device::trouble() const {
  const std::string& name = spec_.interface.empty() ? spec_.name : spec_.interface;
  switch (state()) {
    case LinkState::kDown:
      return "interface " + name + " is down: ip link set " + name + " up";
    case LinkState::kGone:
      if (!spec_.interface.empty()) {
        return "interface " + name + " has gone: one of that name is taken up when it is there";
      }
      return "device " + name +
             " has been removed; it is taken up again when it is back and bound to its DPDK driver";
    case LinkState::kNoCarrier:
      return name + " has no carrier: check the cable, and that the other end is up";
    case LinkState::kNoPeer:
      return trouble_of_peer();
    case LinkState::kTaken:
      return socket_->obstacle();
    case LinkState::kMtu:
      return trouble_of_mtu();
    case LinkState::kMac:
      return "interface " + name +
             " has another MAC address than this link, which new peers find: give it back (ip link "
             "set " +
             name + " address " + to_string(mac_) + "), or restart this program";
    case LinkState::kUnknown:
    case LinkState::kUp:
    case LinkState::kDuplicate:
      break;
  }
  return {};
}

std::string Device::trouble_of_mtu() const {
  const std::string& name = spec_.interface;
  const unsigned now = interface()->facts().mtu;
  const std::string wanted = std::to_string(mtu_);
  if (now < mtu_) {
    return "interface " + name + " has MTU " + std::to_string(now) + " and this link " + wanted +
           ": longer frames do not leave; ip link set " + name + " mtu " + wanted +
           ", or restart this program";
  }
  const std::string payload = std::to_string(socket_->refused_length() - wire::kEthernetSize);
  return "frames with " + payload + " bytes or more do not leave: what interface " + name +
         " leads to has a smaller MTU; make it " + wanted +
         " at both ends and between (ip link set DEVICE mtu " + wanted +
         "), or open this link with mtu= of the smallest";
}

std::string Device::trouble_of_peer() const {
  const bool serves = spec_.memif->makes_socket;
  const std::string& why = memif_->memif().obstacle();
  return "no memif " + std::string(serves ? "client" : "server") + " has opened " +
         spec_.memif->socket +
         ": start the program whose link has role=" + (serves ? "client" : "server") +
         " there, with id=" + std::to_string(spec_.memif->id) +
         (serves ? "" : "; this side looks for it") + (why.empty() ? "" : " (" + why + ")");
}

}  // namespace stp::port
