// SPDX-License-Identifier: BSD-3-Clause
// stpd on its own link, and stpctl that queries it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/stpd/program.h"
#include "tests/temporary_directory.h"

namespace stp::test {

struct Said {
  int exit_status;
  std::string text;
};

inline Said run(std::vector<std::string> arguments) {
  Program program(std::move(arguments));
  const auto status = program.wait();
  return {status, program.output()};
}

inline Said shell(const std::string& command) {
  return run({"/bin/sh", "-c", command});
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class StpctlFixture : public testing::Test {
 protected:
  StpctlFixture() { ::chmod(directory.path().c_str(), 0755); }  // others may ask, too

  std::unique_ptr<Program> serve(std::vector<std::string> more = {}, std::string link = "loop") {
    std::vector<std::string> arguments{STPD_PATH, "--link", std::move(link), "--socket", socket};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto stpd = std::make_unique<Program>(std::move(arguments));
    EXPECT_TRUE(stpd->says("stpd: ready\n")) << stpd->output();
    return stpd;
  }
  std::vector<std::string> command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {STPCTL_PATH, "--socket", socket});
    return arguments;
  }
  Said stpctl(std::vector<std::string> arguments) const {
    return run(command(std::move(arguments)));
  }

  // Whether another program accepts each line as JSON: jq, which begins at once, or else python3.
  bool is_json(const std::string& text) const {
    const auto path = directory.path() + "/text.json";
    std::FILE* const file = std::fopen(path.c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
    const auto said = shell("if command -v jq >/dev/null; then jq . <" + path +
                            " >/dev/null; else python3 -c 'import json, sys\n"
                            "for line in sys.stdin: json.loads(line)' <" +
                            path + "; fi");
    EXPECT_EQ(said.exit_status, 0) << said.text << text;
    return said.exit_status == 0 && !text.empty();
  }

  TemporaryDirectory directory;
  const std::string socket = directory.path() + "/stpd.sock";
};

}  // namespace stp::test
