// SPDX-License-Identifier: BSD-3-Clause
// Traces that an administrator starts while stpd runs, one at a time. The administrator's program
// has opened the file, so stpd needs no permission for it. stpd never waits for the file. The
// Server's thread starts and stops traces; the polling threads pass in the frames.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "libst/service/link_shards.h"
#include "tools/trace/pcapng_tap.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::stpd {

class Tracer final : public service::TraceControl, private port::Tap {
 public:
  using Log = std::function<void(const std::string&)>;

  // `beside`: another tap that also sees every frame; may be null.
  Tracer(service::LinkShards& shards, port::Tap* beside, Log log);
  ~Tracer() override;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // -EBUSY: a trace is running, or the files of too many traces still block.
  int start(const service::TraceOrder& order, service::ClientId by,
            service::UniqueFd& file) override;
  int stop() override;
  int status(service::AdminEntry& out) override;
  void client_gone(service::ClientId client) override;

 private:
  void frame(Bytes head, Bytes rest, bool sent) override;
  bool has_let_go();

  service::LinkShards& shards_;
  port::Tap* const beside_;
  const Log log_;
  std::unique_ptr<trace::PcapngWriter> writer_;  // the latest trace
  std::optional<trace::PcapngTap> tap_;          // into it
  unsigned lost_writers_ = 0;                    // writers left behind because their file blocks
  bool everything_ = false;
  bool running_ = false;
  service::ClientId owner_ = 0;  // the trace ends when this client goes; 0: it stays
};

}  // namespace stp::stpd
