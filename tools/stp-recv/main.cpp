// SPDX-License-Identifier: BSD-3-Clause
// stp-recv --listen :PORT --out DIR: receives files from stp-send. A file appears under its name
// once it is complete and its content has been checked.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "dpdk_port/link/start_thread.h"
#include "libst/ipc/link_choice.h"
#include "libst/os/file_limit.h"
#include "libst/os/standard_streams.h"
#include "libst/os/unique_fd.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/files/failure.h"
#include "tools/files/metadata.h"
#include "tools/files/progress.h"
#include "tools/files/receiver.h"
#include "tools/files/signals.h"

namespace {

using namespace stp::files;

struct Options {
  [[nodiscard]] bool to_stdout() const { return directory == "-"; }

  std::string listen, directory, link;
  bool once = false, quiet = false, allow_delete = false;
  unsigned idle_seconds = 60;
  std::size_t per_peer = 8;
  std::optional<long> retry;
};

// What is wrong with a value, or which option would have no effect, and why; "": nothing.
std::string conflict_of(const Options& options, bool has_per_peer) {
  if (const auto why = stp::cli::reason_against_name(options.listen); !why.empty())
    return "\"" + options.listen + "\" is not an address to listen on: " + why + "; write :PORT";
  if (options.to_stdout() && options.allow_delete)
    return "--allow-delete is for a directory, and --out - is none; leave it out";
  if (options.once && has_per_peer)
    return "--per-peer has no effect with --once (or --out -), which serves one sender; leave it "
           "out";
  return {};
}

// Returns "" if files can be created in the directory, else the message for the user.
std::string reason_against(const std::string& directory) {
  stp::os::UniqueFd const opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (const auto error = errno; !opened)
    return "--out " + directory + ": " + error_text(error) +
           (error == EACCES ? "; name a directory that this user may write to"
                            : "; name a directory that exists");
  const auto name = temporary_name();
  stp::os::UniqueFd const file(
      ::openat(opened.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file)
    return "--out " + directory + ": no file can be made there: " + error_text(errno) +
           "; name a directory that this user may write to";
  ::unlinkat(opened.get(), name.c_str(), 0);
  return {};
}

// Waits a second between two tries.
class Patience {
 public:
  Patience(const std::atomic<bool>& stop, std::optional<long> seconds)
      : stop_(stop), seconds_(seconds) {}
  // Returns false if the time is over or the program is to end.
  bool wait() {
    constexpr auto kPause = std::chrono::seconds(1);
    if (seconds_ && Clock::now() - since_ >= std::chrono::seconds(*seconds_)) return false;
    for (const auto until = Clock::now() + kPause; Clock::now() < until && !stop_;)
      std::this_thread::sleep_for(kAttention);
    return !stop_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::atomic<bool>& stop_;
  const std::optional<long> seconds_;
  const Clock::time_point since_ = Clock::now();
};

// Returns nullptr if the program is to end. Throws the cause of the failure when the time is over.
std::unique_ptr<Receiver> open_receiver(const Options& options, ReceiverContext& context,
                                        std::optional<long> seconds) {
  Patience patience(context.stop, seconds);
  for (bool told = false;; told = true) {
    try {
      return std::make_unique<Receiver>(options.listen, context);
    } catch (const FinalFailure&) {
      throw;
    } catch (const LinkFailure& failure) {
      if (seconds && *seconds == 0) throw;
      if (!told) context.progress.complain(std::string(failure.what()) + "; waiting for it");
      if (context.stop) return nullptr;
      if (!patience.wait()) {
        if (context.stop) return nullptr;
        throw;
      }
    }
  }
}

bool receive(const Options& options, ReceiverContext& context, Signals& signals) {
  auto seconds = std::optional<long>(options.retry.value_or(0));
  bool complete = true;
  for (;;) {
    const auto receiver = open_receiver(options, context, seconds);
    if (!receiver) return complete;
    signals.take_time();  // what has come gets its names first
    context.progress.say("listening on " + options.listen + ", writing to " +
                         (context.to_stdout ? "standard output" : options.directory));
    try {
      return receiver->run(options.once) && complete;
    } catch (const LinkFailure& failure) {
      complete = false;
      seconds = options.retry ? options.retry : std::nullopt;
      if (options.once || (seconds && *seconds == 0)) throw;
      context.progress.complain(std::string(failure.what()) + "; waiting for it");
    }
  }
}

// Returns the exit status.
int receive(const Options& options, bool output_is_closed) {
  Signals signals("stp-recv");
  const auto to_stdout = options.to_stdout();
  Progress progress("stp-recv", options.quiet || to_stdout);
  ReceiverContext context{options.directory, progress, signals.stop()};
  context.idle_timeout = std::chrono::seconds(options.idle_seconds);
  context.most_per_peer = options.per_peer;
  context.to_stdout = to_stdout;
  context.allow_delete = options.allow_delete;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    context.descriptors = descriptors_within(limit.rlim_cur, context.most_senders);
  return progress.run(options.quiet, [&] {
    if (to_stdout && output_is_closed)
      throw std::runtime_error("--out -: standard output is closed: " + error_text(EBADF) +
                               "; redirect it, or name a directory");
    if (const auto reason = to_stdout ? "" : reason_against(options.directory); !reason.empty())
      throw std::runtime_error(reason);
    return receive(options, context, signals);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto closed = stp::os::hold_standard_streams(stp::os::ClosedOutput::kVanishes);
  Options options;
  stp::cli::App app("Receives files over Scheduled Transfers from stp-send.", "stp-recv");
  app.add_option("--listen", options.listen, "Port to listen on, as :3000")
      ->limits("1 to 4294967295")
      ->type_name(":PORT")
      ->required();
  app.add_option("--out", options.directory, "Directory for the files; - is standard output")
      ->type_name("DIR")
      ->required();
  stp::cli::add_link_option(app, options.link);
  app.add_option("--idle-timeout", options.idle_seconds,
                 "Seconds after which a silent sender is disconnected")
      ->type_name("SECONDS")
      ->between(1, 86'400)
      ->capture_default_str();
  const auto* const per_peer = app.add_option("--per-peer", options.per_peer,
                                              "Senders of one host at the same time, of 16 in all")
                                   ->between(1, 16)
                                   ->limits("1 to 16; not with --once")
                                   ->capture_default_str();
  app.add_option("--retry", options.retry, "Seconds to wait for a link that is missing or lost")
      ->type_name("SECONDS")
      ->between(0, 31'536'000)
      ->default_str("at the start 0; later for ever, with --once 0");
  app.add_flag("--once", options.once, "End after the first sender");
  app.add_flag("--allow-delete", options.allow_delete,
               "Let senders list and delete what is in the directory (stp-send --delete)");
  app.add_flag("-q,--quiet", options.quiet, "Print only errors");
  app.footer(
      "Exit status: 0 if all has arrived that senders offered, 1 if not, 2 for a wrong command "
      "line.\nExample: stp-recv --link iface:eth0 --listen :3000 --out /srv/incoming");
  app.set_version_flag("--version", "stp-recv " STP_VERSION);
  if (const auto status = app.parse_or_report(argc, argv, stp::cli::kWrongUsage))
    return stp::os::status_with_output("stp-recv", *status, EXIT_FAILURE);
  options.once = options.once || options.to_stdout();
  if (const auto wrong = conflict_of(options, !per_peer->empty()); !wrong.empty())
    return stp::cli::usage_error("stp-recv", wrong, stp::cli::kWrongUsage);

  if (!options.link.empty()) ::setenv("STP_LINK", options.link.c_str(), 1);
  if (options.retry.value_or(0) > 0) stp::ipc::wait_for_usual_stpd();
  stp::os::raise_file_limit();
  try {
    return receive(options, closed[STDOUT_FILENO]);
  } catch (const stp::NoThread& none) {
    stp::cli::say("stp-recv", none.what());
    return EXIT_FAILURE;
  }
}
