// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/commands.h"

#include <cstdio>
#include <string>

#include "dpdk_port/link/inventory.h"
#include "dpdk_port/link/owners.h"
#include "libst/ipc/requests.h"
#include "tools/json/json.h"
#include "tools/stpctl/table.h"

namespace stp::stpctl {
namespace {

std::string text_or_dash(const std::optional<unsigned>& number) {
  return number ? std::to_string(*number) : "-";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string text_of(const port::Inventory& inventory) {
  Table table({"LINK", "USABLE", "STATE", "DRIVER", "MTU>", "MBIT/S>", "NOTE"});
  for (const auto& each : inventory.candidates)
    table.row({each.link, each.usable ? "yes" : "no", or_dash(each.state), or_dash(each.driver),
               text_or_dash(each.mtu), text_or_dash(each.megabits), each.note});
  auto text = table.text();
  for (const auto& pages : inventory.hugepages)
    text += "hugepages of " + short_bytes(pages.kilobytes << 10) + ": " +
            std::to_string(pages.total) + ", free " + std::to_string(pages.free) + "\n";
  return text;
}

std::string json_of(const port::Inventory& inventory) {
  Json json;
  json.object().array("links");
  for (const auto& each : inventory.candidates) {
    json.object()
        .value("link", each.link)
        .value("kind", port::name_of(each.kind))
        .value("name", each.name)
        .value("usable", each.usable)
        .value("note", each.note)
        .value("state", each.state)
        .value("driver", each.driver);
    each.mtu ? json.value("mtu", *each.mtu) : json.null("mtu");
    each.megabits ? json.value("mbit_per_s", *each.megabits) : json.null("mbit_per_s");
    json.end();
  }
  json.end().array("hugepages");
  for (const auto& pages : inventory.hugepages)
    json.object()
        .value("kilobytes", pages.kilobytes)
        .value("total", pages.total)
        .value("free", pages.free)
        .end();
  return json.end().end().text() + "\n";
}

}  // namespace

void devices(const Options& options) {
  port::InventoryRoots roots;
  roots.sockets = ipc::kSocketDirectory;
  roots.sockets.pop_back();  // its slash
  roots.reach = port::probe_socket;
  roots.owner = port::InterfaceOwner::find;
  const auto inventory = port::take_inventory(roots);
  std::fputs((options.json ? json_of(inventory) : text_of(inventory)).c_str(), stdout);
}

}  // namespace stp::stpctl
