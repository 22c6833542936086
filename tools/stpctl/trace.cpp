// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/commands.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "dpdk_port/link/start_thread.h"
#include "libst/ipc/requests.h"
#include "libst/os/write_alone.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/json/json.h"
#include "tools/stpctl/ending.h"
#include "tools/stpctl/snapshot.h"

namespace stp::stpctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookInterval = std::chrono::milliseconds(100);
// How long stpctl waits until the daemon has written the frames that it still holds.
constexpr auto kWriteOut = std::chrono::seconds(10);
constexpr double kNanoseconds = 1e9;

[[noreturn]] void refuse(int error) {
  switch (error) {
    case -EPERM:
      throw Failure(
          "only an administrator may trace, because frames hold the data of all users: root, the "
          "user of stpd, or a member of its --admin-group");
    case -EBUSY:
      throw Failure("a trace is running already: `stpctl trace stop` ends it");
    case -ENOENT:
      throw Failure("there was no trace since the daemon started");
    case -ENOMEM:
      throw Failure("the daemon has no memory for the buffer: take a smaller --buffer");
    case -EAGAIN:
      throw Failure("the daemon cannot trace: " + std::string(NoThread::kText));
    case -EINVAL:
      throw Failure("the daemon writes to regular files only: name one with --out");
    default:
      throw Failure(std::string("the daemon cannot trace: ") + std::strerror(-error));
  }
}

ipc::TraceState status_of(DaemonClient& daemon) {
  ask::TraceStatus::Reply reply{};
  if (const auto error = daemon.ask(ask::TraceStatus{}, reply); error != 0) refuse(error);
  return reply.trace;
}

// Checks first that no trace is running, so that it does not empty the file for nothing.
void begin(DaemonClient& daemon, const Options& options, bool stays) {
  ask::TraceStatus::Reply status{};
  const auto known = daemon.ask(ask::TraceStatus{}, status);
  if (known != 0 && known != -ENOENT) refuse(known);
  if (known == 0 && status.trace.finished == 0) refuse(-EBUSY);
  // The daemon empties it, unless it has it for something else.
  const auto file = os::open_to_write_alone(options.out, os::Before::kStays, O_NONBLOCK);
  if (!file) throw Failure(options.out + ": " + os::why_not_to_write(errno));
  ask::TraceStart request{};
  request.trace.max_frames = options.frames;
  request.trace.nanoseconds = static_cast<std::uint64_t>(options.seconds * kNanoseconds);
  request.trace.snap = options.snap;
  request.trace.buffer = options.buffer;
  request.trace.everything = options.everything ? 1 : 0;
  request.trace.stays = stays ? 1 : 0;
  const int fd = file.get();
  ipc::Nothing none;
  const auto error = daemon.ask(request, none, 0, {&fd, 1});
  if (error == -ETXTBSY)
    throw Failure("--out " + options.out +
                  ": the daemon has this file already, as its configuration, as its log or as one "
                  "that a link of it writes or reads: name another one");
  if (error != 0) refuse(error);
}

// Waits until the daemon has written everything, for at most kWriteOut.
ipc::TraceState await_file(DaemonClient& daemon) {
  const auto until = Clock::now() + kWriteOut;
  for (;;) {
    const auto status = status_of(daemon);
    if (status.finished != 0 || Clock::now() >= until) return status;
    ::usleep(std::chrono::microseconds(kLookInterval).count());
  }
}

void stop(DaemonClient& daemon) {
  ipc::Nothing none;
  if (const auto error = daemon.ask(ask::TraceStop{}, none); error != 0) refuse(error);
}

// Why frames are missing, and the remedy.
std::string of_the_missing(const ipc::TraceState& status) {
  if (status.error != 0)
    return std::string(" (the file takes no more: ") + std::strerror(-status.error) + ")";
  return status.dropped != 0 ? " (the disk is slower than the link: see --snap and --buffer)" : "";
}

void report(const Options& options, const ipc::TraceState& status) {
  if (options.json) {
    Json json;
    json.object().value("running", status.finished == 0).value("frames", status.frames);
    json.value("dropped", status.dropped).value("bytes", status.written_bytes);
    status.error != 0 ? json.value("error", std::strerror(-status.error)) : json.null("error");
    std::puts(json.end().text().c_str());
    return;
  }
  std::printf("%s: %ju frames, %ju bytes in the file, %ju frames dropped%s\n",
              status.finished != 0 ? "ended" : "running", std::uintmax_t{status.frames},
              std::uintmax_t{status.written_bytes}, std::uintmax_t{status.dropped},
              of_the_missing(status).c_str());
}

std::string remedy_of(int error) {
  if (error == -ENOSPC || error == -EDQUOT) return ": make room, or name an --out elsewhere";
  if (error == -EFBIG) return ": raise the daemon's limit of file sizes (ulimit -f, LimitFSIZE)";
  return {};
}

void check_file(const ipc::TraceState& status) {
  if (status.error != 0)
    throw Failure(std::string("the file ends early: ") + std::strerror(-status.error) +
                  remedy_of(status.error));
  if (status.finished == 0)
    throw Failure("the daemon has not written all frames yet: see `stpctl trace status` later");
}

void finish(DaemonClient& daemon, const Options& options) {
  stop(daemon);
  const auto status = await_file(daemon);
  report(options, status);
  check_file(status);
}

}  // namespace

void trace(const Options& options) {
  DaemonClient daemon(options.sockets.front());
  watch_for_interrupts();
  let_interrupts_in();
  begin(daemon, options, false);
  if (!options.json) cli::say("stpctl", "tracing to " + options.out + "; Ctrl-C ends it");
  while (status_of(daemon).finished == 0 && sleep_until(Clock::now() + kLookInterval)) {
  }
  finish(daemon, options);
}

void trace_start(const Options& options) {
  DaemonClient daemon(options.sockets.front());
  begin(daemon, options, true);
  report(options, status_of(daemon));
}

void trace_stop(const Options& options) {
  DaemonClient daemon(options.sockets.front());
  finish(daemon, options);
}

void trace_status(const Options& options) {
  DaemonClient daemon(options.sockets.front());
  ask::TraceStatus::Reply reply{};
  const auto error = daemon.ask(ask::TraceStatus{}, reply);
  if (error != 0 && error != -ENOENT) refuse(error);
  if (error == 0) return report(options, reply.trace);
  reply.trace.finished = 1;
  if (options.json) return report(options, reply.trace);
  cli::print(
      "none: nobody has started a trace since the daemon started; that of --pcap counts as "
      "trace_frames (stpctl stats)");
}

void add_trace(cli::App& trace, Options& options) {
  trace
      .add_option("--out", options.out,
                  "File to write, which has to be named; it is created or overwritten")
      ->type_name("FILE");
  trace.add_option("--for", options.seconds, "End after this many seconds")
      ->type_name("SECONDS")
      ->between(kLeastSeconds, kMostSeconds)
      ->default_str("no limit");
  trace.add_option("--frames", options.frames, "End after this many frames")
      ->positive()
      ->default_str("no limit");
  trace.add_flag("--all", options.everything, "Capture all frames, not only STP and ARP");
  trace
      .add_option("--snap", options.snap,
                  "Keep only the first BYTES of each frame; stp-replay check needs 80, over UDP or "
                  "IP 128")
      ->between(ipc::kLeastSnap, ipc::kMostSnap)
      ->type_name("BYTES")
      ->default_str("whole frames");
  trace
      .add_option("--buffer", options.buffer,
                  "How far the file may be behind, in the daemon's memory, as 256M")
      ->size()
      ->between(ipc::kLeastTraceBuffer, ipc::kMostTraceBuffer)
      ->type_name("SIZE")
      ->default_str("64M");
}

std::string check_trace(const Options& options) {
  if (options.out == "-")
    return "--out -: a trace goes into a regular file, not to standard output; name one";
  return options.out.empty() ? "trace needs --out FILE" : "";
}

}  // namespace stp::stpctl
