#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/hips/compare/report.hpp"
#include "tools/hips/compare/theory.hpp"

namespace hips::compare {
namespace {

struct Published {
  std::string_view where, what;
};

/// Figures from the papers, for comparison.
constexpr std::array kPublished{
    Published{"HiPS, NetAI 2018, calculated", "-73 % against flat PS, -75 % against a ring"},
    Published{"HiPS, NS-3, VGG", "BCube -37.5 to -61.9 %, torus -49.6 to -66.4 %"},
    Published{"Wang, Geng, Li, ToN 2021, 9 servers with 2 RNICs, BCube(3,1), MNIST and VGG-19",
              "-18.7 to -56.4 % against ring in a ring and mesh in a Fat-Tree"},
    Published{"the same, 16 to 1024 servers", "HiPS on BCube loses 6.5 %, a ring on BCube 44.6 %"},
};

const TheoryRow& row(const Theory& theory, std::string_view scheme) {
  return *std::ranges::find_if(theory.rows,
                               [&](const TheoryRow& row) { return row.scheme.starts_with(scheme); });
}

/// The relative change from `theirs` to `ours`: "-50.0 %".
std::string change(double ours, double theirs) {
  return fmt::format("{:+.1f} %", 100 * (ours / theirs - 1));
}

}  // namespace

std::string theory_text(const Theory& theory) {
  const TheoryInput& input = theory.input;
  std::string out = fmt::format(
      "N = {} servers, n = {}, K = d = {}, W = {:.1f} MB, B = {:g} Gb/s, {:g} us a step, P = {}\n\n",
      theory.servers, input.radix, input.nics, input.bytes / 1e6, input.bytes_per_s * 8e-9,
      input.hop_seconds * 1e6, input.leaders);
  std::size_t scheme = 0, formula = 0;
  for (const TheoryRow& row : theory.rows) {
    scheme = std::max(scheme, row.scheme.size());
    formula = std::max(formula, row.formula.size());
  }
  const double ring = row(theory, "flat ring, 1 NIC").gst_seconds;
  out += fmt::format("  {:<{}}  {:>10}  {:<{}}  {:>9}  {:>11}  {:>9}  {:>12}\n", "scheme", scheme, "steps",
                     "bandwidth term", formula, "seconds", "pipelined", "GST", "/ 1-NIC ring");
  for (const TheoryRow& row : theory.rows) {
    out += fmt::format("  {:<{}}  {:>10}  {:<{}}  {:>9}  {:>2}{:>9}  {:>9}  {:>12.3f}\n", row.scheme, scheme,
                       row.steps, row.formula, formula, duration_text(row.barrier_seconds),
                       row.at_most ? "<=" : "", duration_text(row.bandwidth_seconds),
                       duration_text(row.gst_seconds), row.gst_seconds / ring);
  }
  const TheoryRow& hips = row(theory, "HiPS BCube, mesh");
  out += "\nHiPS BCube, mesh per level, with these parameters (GST):\n";
  for (const char* baseline :
       {"flat PS,", "flat PS, one co", "flat mesh", "flat ring, 1", "flat ring, all"}) {
    const TheoryRow& other = row(theory, baseline);
    out += fmt::format("  {:>9} against {}\n", change(hips.gst_seconds, other.gst_seconds), other.scheme);
  }
  out += "\nPublished:\n";
  for (const Published& published : kPublished)
    out += fmt::format("  {}: {}\n", published.where, published.what);
  out += fmt::format(
      "\nWith equal NICs the bandwidth term of HiPS equals that of a ring over all K NICs. Against a ring "
      "over one "
      "NIC it\ngains 1 - 1/K ({:.1f} % here; 75 %, as published, for K = 4). HiPS itself saves steps: 2K "
      "instead of "
      "2(N-1), each of\none switch hop. The bandwidth term is the sum over stages of the busiest NIC "
      "direction; "
      "pipelined segments\noverlap the stages. GST is latency plus bandwidth term, without overlap.\n",
      100 * (1 - 1 / static_cast<double>(input.nics)));
  return out;
}

std::string theory_json(const Theory& theory) {
  using Json = nlohmann::ordered_json;
  const TheoryInput& input = theory.input;
  Json json = {{"format", "hips-compare-theory"},
               {"version", 1},
               {"servers", theory.servers},
               {"radix", input.radix},
               {"nics", input.nics},
               {"leaders", input.leaders},
               {"bytes", input.bytes},
               {"bytes_per_s", input.bytes_per_s},
               {"hop_seconds", input.hop_seconds}};
  json["schemes"] = Json::array();
  for (const TheoryRow& row : theory.rows) {
    json["schemes"].push_back({{"scheme", row.scheme},
                               {"num_steps", row.steps},
                               {"formula", row.formula},
                               {"barrier_seconds", row.barrier_seconds},
                               {"bandwidth_seconds", row.bandwidth_seconds},
                               {"bandwidth_is_at_most", row.at_most},
                               {"gst_seconds", row.gst_seconds}});
  }
  json["published"] = Json::array();
  for (const Published& published : kPublished)
    json["published"].push_back({{"where", published.where}, {"what", published.what}});
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hips::compare
