#include "transports/inproc/network.hpp"

#include <utility>

#include "transports/inproc/fabric.hpp"

namespace hips::inproc {

namespace {

/// The transport over one NIC of the fabric.
class InprocTransport final : public transport::Transport {
 public:
  InprocTransport(std::shared_ptr<Fabric> fabric, PortIdx port) : fabric_(std::move(fabric)), port_(port) {}
  ~InprocTransport() override { fabric_->remove_port(port_); }
  InprocTransport(const InprocTransport&) = delete;
  InprocTransport& operator=(const InprocTransport&) = delete;

  [[nodiscard]] const transport::Limits& query() const override { return fabric_->limits(port_); }
  Result<transport::Address> open(transport::PeerId peer) override { return fabric_->open(port_, peer); }
  Status connect(transport::PeerId peer, std::span<const std::byte> address) override {
    return fabric_->connect(port_, peer, address);
  }
  void close(transport::PeerId peer) override { fabric_->close(port_, peer); }
  Result<transport::Region> register_memory(const transport::MemoryDesc& memory) override {
    return fabric_->register_memory(port_, memory);
  }
  void deregister(transport::MemoryId memory) override { fabric_->deregister(port_, memory); }
  Result<std::span<std::byte>> attach(transport::PeerId peer,
                                      const transport::RemoteRegion& region) override {
    return fabric_->attach(port_, peer, region);
  }
  std::size_t post(std::span<const transport::WorkRequest> requests) override {
    return fabric_->post(port_, requests);
  }
  std::size_t poll(std::span<transport::Event> events) override { return fabric_->poll(port_, events); }
  transport::Armed arm() override { return fabric_->arm(port_); }
  void disarm() override { fabric_->disarm(port_); }

 private:
  std::shared_ptr<Fabric> fabric_;
  PortIdx port_;
};

}  // namespace

Result<std::unique_ptr<Network>> Network::create(const Options& options) {
  if (Status status = Fabric::validate(options, options.faults); !status.ok()) return fail(std::move(status));
  return std::unique_ptr<Network>(new Network(std::make_shared<Fabric>(options)));
}

Network::Network(std::shared_ptr<Fabric> fabric) : fabric_(std::move(fabric)) {}
Network::~Network() = default;

std::unique_ptr<transport::Transport> Network::make_transport(Rank rank, Rail rail) {
  return std::make_unique<InprocTransport>(fabric_, fabric_->add_port(rank, rail));
}

void Network::step() {
  fabric_->step();
}
Status Network::set_faults(const Faults& faults) {
  return fabric_->set_faults(faults);
}
void Network::kill(Rank rank) {
  fabric_->kill(rank);
}
void Network::take_down(Rank rank, Rail rail) {
  fabric_->take_down(rank, rail);
}
std::uint64_t Network::trace_hash() const {
  return fabric_->trace_hash();
}
std::size_t Network::num_outstanding() const {
  return fabric_->num_outstanding();
}

}  // namespace hips::inproc
