// Line charts as SVG. Private.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tercel/util/span.h"

namespace tercel::recsys {

/** Points (x, y) of a line; it is interrupted where y is not finite. */
struct ChartSeries {
  std::string name;
  size_t color = 0;     ///< a number of the series' owner: equal ones have one colour
  bool dashed = false;  ///< for a second line of a colour
  bool marks = false;   ///< whether each point is marked, with a title of its numbers
  std::vector<std::pair<double, double>> points;
};

struct ChartOptions {
  std::string title, x_label, y_label;
  bool diagonal = false;  ///< both axes have one range, and a line shows where x = y
};

/** A figure with an svg element and a legend, well-formed XML; empty if no series has a point. */
std::string line_chart(Span<ChartSeries> series, const ChartOptions& options);

/** The same line with at most `count` points: means of neighbouring ones. */
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, size_t count);

/** Colour of a number: "#0072b2". */
std::string chart_color(size_t number);

}  // namespace tercel::recsys
