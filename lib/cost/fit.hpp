#pragma once

#include <span>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/loads.hpp"
#include "lib/cost/select.hpp"
#include "lib/plan/plan_builder.hpp"

namespace hips::cost {

/// The measured time of a call, and what the cost model counts in it.
struct FitSample {
  double seconds = 0;
  double fixed_seconds = 0;  ///< of the model's terms that are not fitted: overhead per message
  double num_hops = 0;       ///< of the longest chain
  double link_bytes = 0;     ///< of the busiest link, scaled to the rate of the fastest NIC
  double reduced_bytes = 0;  ///< by the rank that reduces most
};

/// The three constants of the cost model, fitted to measured times.
struct Fit {
  double hop_seconds = 0;              ///< alpha
  double seconds_per_byte = 0;         ///< beta, of the fastest NIC in one direction
  double reduce_seconds_per_byte = 0;  ///< gamma
  bool has_gamma = false;              ///< the samples have plans that reduce different amounts per byte sent
  double median_error = 0;             ///< relative; half of the samples have at most this error
};

/// Counts what the model knows about a call of `volume` by a plan that took `seconds`.
FitSample fit_sample(const Topology& topology, Medium medium, const PlanBuilder& builder, Volume volume,
                     double seconds);

/// Fits alpha, beta and gamma by least squares of relative errors; none is below zero.
///
/// One plan reduces the same number of bytes per byte sent at any size, so gamma is then part of beta. Plans
/// of several kinds separate the two. The cost model of plans has no term for reductions: to fit its
/// constants, fit without gamma; beta then includes the time of reductions.
///
/// Shapes   samples of at least two sizes.
/// Units    seconds, bytes.
/// Cost     five small systems of equations.
/// Errors   kInvalidArgument: fewer than two samples, or times that do not grow with the size and so do not
///          determine the rate; says what to measure instead.
/// Source   Hockney 1994 for alpha and beta; Thakur, Rabenseifner and Gropp 2005 for gamma.
Result<Fit> fit(std::span<const FitSample> samples, bool with_gamma = true);

/// Sets the fitted rate for the topology's fastest NICs and the fitted latency for each hop. Other levels and
/// links keep their rate relative to the fastest. Rates and latencies are rounded to three digits.
Topology fitted(Topology topology, const Fit& fit);

}  // namespace hips::cost
