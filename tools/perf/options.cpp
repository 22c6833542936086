// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/commands.h"

#include <cstdlib>

#include "tools/cli/app.h"

namespace stp::perf {
namespace {

constexpr int kUsageError = 2;
constexpr char kExitStatus[] =
    "Exit status: 0 for success, 1 if the measurement failed, 2 for a wrong command line.\n";
constexpr double kLongest = 86'400;
constexpr std::uint64_t kBandwidthSize = 1 << 20, kRateSize = 8;
constexpr std::uint32_t kBandwidthWindow = 16, kRateWindow = 256;

class Parser {
 public:
  Parser() : app_("Measures what Scheduled Transfers cost on a link.", "stp-perf") {
    app_.set_version_flag("--version", "stp-perf " STP_VERSION);
    app_.add_option("--link", options_.setup.link,
                    std::string("The link: loop, ") + cli::kLinksToOthers + cli::kLinkOptions)
        ->type_name("LINK")
        ->default_str("STP_LINK, else the stpd of this machine if it runs, else loop");
    app_.add_option("--buffer", options_.setup.buffer_log2,
                    "Buffers of 2^N bytes: 13 for STUs of 8 KiB (MTU 9000)")
        ->between(12, 24)
        ->default_str("that of libst");
    app_.add_option("--cpu", cpu_, "Run on this CPU only")->default_str("any");
    app_.add_flag("--json", options_.json, "One line of JSON instead of text");
    app_.add_flag("-q,--quiet", options_.pace.quiet, "Print no progress");
    app_.footer(
        "Without HOST:PORT, client and server are two threads of one program, as loop needs it.\n" +
        std::string(kExitStatus) +
        "Examples: stp-perf --link loop latency\n"
        "          stp-perf --link iface:eth0 server\n"
        "          stp-perf --link iface:eth0 bandwidth --size 64M 10.9.0.2:3000");
    app_.require_subcommand(1, 1);
    add_server();
    add_latency();
    add_bandwidth();
    add_rate();
    add_raw();
    add_memcpy();
  }

  std::optional<Options> parse(int argc, char** argv, int& exit_status) {
    if (const auto status = app_.parse_or_report(argc, argv, kUsageError)) {
      exit_status = *status;
      return std::nullopt;
    }
    if (const auto wrong = complete(); !wrong.empty()) {
      exit_status = cli::usage_error("stp-perf", wrong, kUsageError);
      return std::nullopt;
    }
    return options_;
  }

 private:
  cli::App* command(const char* name, const char* text, Command which, const char* example) {
    auto* const sub = app_.add_subcommand(name, text);
    sub->footer("Options of all commands: stp-perf --help\n\n" +
                (kExitStatus + ("Example: stp-perf " + std::string(example))));
    sub->fallthrough();
    sub->final_callback([this, which] { options_.command = which; });
    return sub;
  }
  void add_pace(cli::App* sub) {
    sub->add_option("--seconds", seconds_, "Seconds to measure")
        ->type_name("SECONDS")
        ->between(0.001, kLongest)
        ->capture_default_str();
    sub->add_option("--warm-up", warm_up_, "Seconds to run before the measurement")
        ->type_name("SECONDS")
        ->between(0.0, kLongest)
        ->capture_default_str();
  }
  void add_size(cli::App* sub, const char* text, const char* limits, const char* normally) {
    sub->add_option("--size", size_, text)
        ->size()
        ->type_name("BYTES")
        ->limits(limits)
        ->default_str(normally);
  }
  void add_test(cli::App* sub, const char* operations, const char* normally, const char* sizes,
                const char* usual_size) {
    sub->add_option("peer", options_.peer, "HOST:PORT of an stp-perf server")
        ->type_name("HOST:PORT");
    add_size(sub, "Bytes of each operation, as 4096, 64K or 1M", sizes, usual_size);
    sub->add_option("--op", operation_, "Operation")->type_name(operations)->default_str(normally);
    sub->add_flag("--sleep", options_.plan.sleeps, "Wait in the kernel, not in a loop");
    add_pace(sub);
  }
  void add_streams(cli::App* sub, std::uint32_t usual_window) {
    sub->add_option("--window", window_, "Operations outstanding on each connection")
        ->between(1U, kMostOutstanding)
        ->default_str(std::to_string(usual_window));
    sub->add_option("--connections", options_.plan.connections, "Number of connections")
        ->between(1U, kMostConnections)
        ->capture_default_str();
    sub->add_flag("--bidirectional", options_.plan.bidirectional, "The server sends as well");
  }

  void add_server() {
    auto* const sub = command("server", "Serve clients until Ctrl-C", Command::kServer,
                              "--link iface:eth0 server --port :3000");
    sub->add_option("--port", options_.port, "Port to listen on; level0 also uses the next one")
        ->type_name(":PORT")
        ->capture_default_str();
    sub->add_flag("--once", options_.once, "End after the first client");
  }
  void add_latency() {
    add_test(command("latency", "Round trips, one after the other", Command::kLatency,
                     "--link iface:eth0 latency --op write 10.9.0.2:3000"),
             "put|get|write|fetch|level0", "put",
             "8 to 1G of put and level0, up to 1G of get and write, 8 of fetch", "8");
  }
  void add_bandwidth() {
    auto* const sub =
        command("bandwidth", "Large operations, several outstanding", Command::kBandwidth,
                "--link iface:eth0 bandwidth --size 64M 10.9.0.2:3000");
    add_test(sub, "put|get|write|read|level0", "write", "1 to 1G", "1M");
    add_streams(sub, kBandwidthWindow);
  }
  void add_rate() {
    auto* const sub = command("rate", "Small operations, many outstanding", Command::kRate,
                              "--link iface:eth0 rate --connections 100 10.9.0.2:3000");
    add_test(sub, "put|get|write|read|fetch|level0", "put", "1 to 1G, 8 of fetch", "8");
    add_streams(sub, kRateWindow);
  }
  void add_raw() {
    auto* const sub = command("raw", "Bare frames on the same link", Command::kRaw,
                              "--link iface:eth0 raw --one-way --size 1500");
    sub->add_flag("--serve", options_.serve, "Serve the other side until Ctrl-C");
    sub->add_flag("--one-way", options_.one_way, "Bandwidth instead of round trips");
    add_size(sub, "Bytes of a frame without its Ethernet header", "46 to the MTU", "64");
    add_pace(sub);
  }
  void add_memcpy() {
    auto* const sub = command("memcpy", "Copies of the same size", Command::kMemcpy,
                              "memcpy --size 1M --working-set 64M");
    add_size(sub, "Bytes of each copy, as 4096, 64K or 1M", "1 or more", "8");
    sub->add_option("--working-set", working_set_,
                    "Size of the source and of the destination, copied in turn")
        ->size()
        ->type_name("BYTES")
        ->limits("that of --size or more")
        ->default_str("that of --size");
    add_pace(sub);
  }

  // What is wrong with the peer, or where to listen, before the link is opened; "": nothing.
  [[nodiscard]] std::string of_name() const {
    const bool serves = options_.command == Command::kServer;
    const auto& name = serves ? options_.port : options_.peer;
    const auto wrong = name.empty() ? "" : cli::reason_against_name(name);
    if (wrong.empty()) return {};
    return (serves ? "listening on " : "connecting to ") + name + ": " + wrong;
  }

  // Returns "" or what is wrong.
  std::string complete() {
    using Seconds = std::chrono::duration<double>;
    auto& plan = options_.plan;
    options_.cpu = cpu_;
    options_.pace.measure = Seconds(seconds_);
    options_.pace.warm_up = Seconds(warm_up_);
    options_.pace.quiet |= options_.json;
    if (options_.setup.link.empty()) {
      const auto* const link = std::getenv("STP_LINK");
      options_.setup.link = link == nullptr ? "" : link;
    }
    const bool bandwidth = options_.command == Command::kBandwidth;
    const bool rate = options_.command == Command::kRate;
    const auto operation = operation_named(operation_.value_or(bandwidth ? "write" : "put"));
    if (!operation) return "there is no operation '" + *operation_ + "'; there are" + operations();
    if (bandwidth && *operation == Operation::kFetch)
      return "bandwidth does not measure fetch: write rate --op fetch";
    plan.operation = *operation;
    plan.test = bandwidth || rate ? Test::kStream : Test::kLatency;
    plan.size = size_.value_or(options_.command == Command::kRaw ? 64
                               : bandwidth                       ? kBandwidthSize
                                                                 : kRateSize);
    plan.window = window_.value_or(bandwidth ? kBandwidthWindow : rate ? kRateWindow : 1);
    const bool measures_stp = bandwidth || rate || options_.command == Command::kLatency;
    if (auto wrong = of_name(); !wrong.empty()) return wrong;
    if (measures_stp) return complaint(plan);
    if (options_.command == Command::kMemcpy && plan.size == 0) return "--size 0: write 1 or more";
    options_.working_set = working_set_.value_or(plan.size);
    if (options_.command == Command::kMemcpy && options_.working_set < plan.size)
      return "--working-set " + std::to_string(options_.working_set) +
             " holds no copy: write --size (" + std::to_string(plan.size) +
             ") or more, or leave the option out";
    if (options_.command == Command::kRaw && options_.setup.link.empty())
      return "raw needs a --link: iface:NAME, memif:PATH, pci:ADDRESS or vdev:DEVICE";
    return "";
  }

  cli::App app_;
  Options options_;
  std::optional<unsigned> cpu_;
  std::optional<std::string> operation_;
  std::optional<std::uint64_t> size_, working_set_;
  std::optional<std::uint32_t> window_;
  double seconds_ = 2, warm_up_ = 0.5;
};

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_status) {
  return Parser().parse(argc, argv, exit_status);
}

}  // namespace stp::perf
