// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <stdlib.h>

namespace stp::test {

// A private directory for one test, removed with its content.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    auto text = (std::filesystem::temp_directory_path() / "stp-test-XXXXXX").string();
    if (::mkdtemp(text.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = text;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      all.push_back(entry.path().filename().string());
    return all;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    std::error_code ignored;
    const auto size = std::filesystem::file_size(path_ / name, ignored);
    std::string all(ignored ? 0 : size, '\0');
    in.read(all.data(), static_cast<std::streamsize>(all.size()));
    all.resize(static_cast<std::size_t>(in.gcount()));
    return all;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace stp::test
