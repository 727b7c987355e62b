#pragma once

#include "lib/plan/check/check_findings.hpp"
#include "lib/plan/check/check_messages.hpp"

namespace hips::plan {

/// For a plan that claims to use neighbours only: finds messages whose ends are not neighbours in `topology`,
/// or not by the NICs that the two ends name.
void check_links(const Plan& plan, const StepTable& table, const Messages& messages, const Topology& topology,
                 Findings& findings);

/// Notes unequal loads of NIC directions, and many messages that arrive at one NIC in one stage.
void note_loads(const Plan& plan, const CheckLayout& layout, Findings& findings);

}  // namespace hips::plan
