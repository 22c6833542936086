// SPDX-License-Identifier: BSD-3-Clause
// The part of a Node that a link uses; tests substitute a script. One virtual call per burst has no
// measurable cost.
#pragma once

#include <span>

#include "stp/node/node.h"

namespace stp::port {

class Engine {
 public:
  virtual void receive(std::span<const Bytes> burst, Time now) = 0;
  virtual void receive_looped(std::span<const LoopedFrame> burst, Time now) = 0;
  virtual void receive_apart(std::span<const LoopedFrame> burst, Time now) = 0;
  virtual std::size_t transmit(std::span<TxFrame> frames, Time now) = 0;
  virtual void transmitted(std::span<const TxToken> tokens) = 0;
  [[nodiscard]] virtual Time next_deadline() const = 0;
  virtual void expire(Time now) = 0;

 protected:
  ~Engine() = default;
};

class NodeEngine final : public Engine {
 public:
  explicit NodeEngine(Node& node) : node_(node) {}
  void receive(std::span<const Bytes> burst, Time now) override { node_.receive(burst, now); }
  void receive_looped(std::span<const LoopedFrame> burst, Time now) override {
    node_.receive_looped(burst, now);
  }
  void receive_apart(std::span<const LoopedFrame> burst, Time now) override {
    node_.receive_apart(burst, now);
  }
  std::size_t transmit(std::span<TxFrame> frames, Time now) override {
    return node_.transmit(frames, now);
  }
  void transmitted(std::span<const TxToken> tokens) override {
    for (const TxToken& token : tokens) node_.transmitted(token);
  }
  [[nodiscard]] Time next_deadline() const override { return node_.next_deadline(); }
  void expire(Time now) override { node_.expire(now); }

 private:
  Node& node_;
};

}  // namespace stp::port
