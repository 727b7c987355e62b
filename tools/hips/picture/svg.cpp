#include "tools/hips/picture/svg.hpp"

#include <fmt/format.h>

#include "tools/hips/picture/drawable.hpp"
#include "tools/hips/picture/drawing.hpp"
#include "tools/hips/picture/label.hpp"
#include "tools/hips/picture/overview_drawing.hpp"

namespace hips::picture {

Result<std::string> topology_svg(const topology::TopologyFile& file) {
  auto drawing = needs_overview(file) ? draw_overview(file) : draw(file);
  if (drawing && drawing->width > kMostWidth) drawing = draw_overview(file);
  if (!drawing) return fail(drawing.error());
  // Characters of 16 px in bold are up to 10 px wide.
  const std::string title =
      shortened(file.topology.name, static_cast<std::size_t>((drawing->width - 48) / 10));
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"wiring\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n<style>\n"
      "  :root {{ color-scheme: light dark; }} .page {{ fill: #ffffff; }}\n"
      "  @media (prefers-color-scheme: dark) {{ .page {{ fill: #14171d; }} }}{3}"
      "  .wiring .title {{ font-size: 16px; font-weight: 600; text-anchor: start; }}\n</style>\n"
      "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n"
      "<text class=\"title\" x=\"24\" y=\"30\">{2}</text>\n{4}</svg>\n",
      drawing->width, drawing->height, xml_text(title), kDrawingStyle, drawing->elements);
}

}  // namespace hips::picture
