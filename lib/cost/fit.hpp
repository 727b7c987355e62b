#pragma once

#include <span>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"
#include "lib/cost/loads.hpp"
#include "lib/cost/select.hpp"

namespace hips::cost {

/// What a call took, and what the model counts in it.
struct FitSample {
  double seconds = 0;
  double fixed_seconds = 0;  ///< of the model's terms that are not fitted: handling of messages
  double num_hops = 0;       ///< one after the other
  double link_bytes = 0;     ///< of the busiest link, as if all had the rate of the fastest NIC
  double reduced_bytes = 0;  ///< by the rank that folds most
};

/// The model's three constants, as times say they are.
struct Fit {
  double hop_seconds = 0;              ///< alpha
  double seconds_per_byte = 0;         ///< beta, of the fastest NIC in one direction
  double reduce_seconds_per_byte = 0;  ///< gamma
  bool gamma_told = false;  ///< are plans among the samples that fold more, or less, for each byte sent?
  double median_error = 0;  ///< of half of the samples the model is at most so far off, relatively
};

/// What the model counts in a call of `volume` by a plan that took `seconds`.
FitSample fit_sample(const Topology& topology, Medium medium, const PlanBuilder& builder, Volume volume,
                     double seconds);

/// Alpha, beta and gamma by least squares of relative errors, none below zero.
///
/// One plan folds as many bytes for each that it sends whatever the size, so that gamma is part of beta then;
/// with plans of several kinds it is told apart. The model of plans has no term for folding: for that, fit
/// without gamma, and the rate is what is left of it while ranks fold.
///
/// Shapes   samples of at least two sizes.
/// Units    seconds, bytes.
/// Cost     five small systems of equations.
/// Errors   kInvalidArgument: fewer than two samples, or times that do not grow with the size, so that they
///          say nothing of the rate; says what to measure instead.
/// Source   Hockney 1994 for alpha and beta; Thakur, Rabenseifner and Gropp 2005 for gamma.
Result<Fit> fit(std::span<const FitSample> samples, bool with_gamma = true);

/// The topology with the fitted rate for its fastest NICs and the fitted latency for each hop; other levels
/// and links keep their share of it. Rates and latencies have three digits.
Topology fitted(Topology topology, const Fit& fit);

}  // namespace hips::cost
