#include "sim/engine/fluid.h"

#include <algorithm>

#include "sim/core/error.h"
#include "sim/engine/fluid_core.h"

namespace medley {

FluidSystem::FluidSystem(FineTime start) : core_(std::make_unique<FluidCore>(start)) {}
FluidSystem::~FluidSystem() = default;

std::uint32_t FluidSystem::add_resource(double capacity) {
  return core_->add_resource(capacity);
}

void FluidSystem::set_capacity(std::uint32_t resource, double capacity) {
  core_->set_capacity(resource, capacity);
}

double FluidSystem::capacity(std::uint32_t resource) const {
  MEDLEY_CHECK(resource < core_->resources_.size(), "no such resource");
  return core_->resources_[resource].capacity;
}

std::size_t FluidSystem::resources() const {
  return core_->resources_.size();
}

FluidHandle FluidSystem::start(const FluidActivity& activity) {
  return core_->start(activity);
}

bool FluidSystem::running(FluidHandle handle) const {
  return core_->running(handle);
}

double FluidSystem::cancel(FluidHandle handle) {
  return core_->cancel(handle);
}

void FluidSystem::set_bound(FluidHandle handle, double bound) {
  core_->set_bound(handle, bound);
}

double FluidSystem::remaining(FluidHandle handle) const {
  return core_->remaining(handle);
}

double FluidSystem::rate(FluidHandle handle) const {
  return core_->rate(handle);
}

std::size_t FluidSystem::active() const {
  return core_->active_;
}

void FluidSystem::solve() {
  core_->solve();
}

bool FluidSystem::needs_solve() const {
  return core_->needs_solve();
}

FineTime FluidSystem::now() const {
  return core_->now_;
}

FineTime FluidSystem::next_completion() const {
  return core_->timers_.top_time();
}

void FluidSystem::advance(FineTime time) {
  core_->advance(time);
}

void FluidSystem::take_completions(std::vector<FluidCompletion>& out) {
  core_->take_completions(out);
}

double FluidSystem::use(std::uint32_t resource) const {
  return core_->use(resource);
}

FluidUse FluidSystem::account(std::uint32_t resource) const {
  return core_->account(resource);
}

void FluidSystem::stalled(std::vector<std::uint64_t>& tags) const {
  core_->stalled(tags);
}

std::string FluidSystem::certificate(double tolerance) const {
  return core_->certificate(tolerance);
}

const FluidCounters& FluidSystem::counters() const {
  return core_->counters_;
}

}  // namespace medley
