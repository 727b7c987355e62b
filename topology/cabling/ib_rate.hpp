#pragma once

#include <string_view>

namespace hips::topology {

/// The data rate of an InfiniBand link, one direction, in bytes/s: of "4x" and "EDR" 100 Gb/s. The encoding on the wire (8 of 10
/// bits, 64 of 66) is left out. 0 if the width or the speed is not known, such as "???".
double ib_rate(std::string_view width, std::string_view speed);

/// The same of one word: "4xEDR". 0 if it is no such word.
double ib_rate(std::string_view word);

}  // namespace hips::topology
