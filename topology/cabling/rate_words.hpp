#pragma once

#include <string_view>

namespace hips::topology {

/// The rate that people write in lists and labels, one direction, in bytes/s: "100Gb", "100G", "100 Gb/s", "25GbE", "400gbps", Arista's "100g-2" and "forced 100gfull",
/// "25GBASE-CR", "4xEDR", "EDR" (which is 4xEDR), or a number: of Mb/s from 1000 on, of Gb/s below. 0 if it is none of these.
double rate_of_words(std::string_view text);

}  // namespace hips::topology
