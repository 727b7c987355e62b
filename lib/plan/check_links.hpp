#pragma once

#include "lib/plan/check_findings.hpp"
#include "lib/plan/check_messages.hpp"

namespace hips::plan {

/// Finds messages of a plan that says it talks to neighbours only, but whose ends are no neighbours in
/// `topology`, or not by the NICs that the two ends name.
void check_links(const Plan& plan, const StepTable& table, const Messages& messages, const Topology& topology,
                 Findings& findings);

/// Notes where the NIC directions do not carry the same, and where many messages meet at one NIC in one
/// stage.
void note_loads(const Plan& plan, const CheckLayout& layout, Findings& findings);

}  // namespace hips::plan
