#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tercel/recsys/report/html_impl.h"
#include "tercel/recsys/report/line_chart_impl.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

constexpr double kWidth = 560, kHeight = 320;
constexpr double kLeft = 64, kRight = 12, kTop = 12, kBottom = 44;  // margins

/** Whether a point has a place: differences of larger numbers overflow. */
bool is_drawable(double value) { return std::abs(value) < 1e300; }

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /** Makes it wider than a point. */
  void widen() {
    // Relative to the numbers: ticks between neighbouring doubles would not end.
    if (high - low > 1e-9 * std::max(std::abs(low), std::abs(high))) return;
    const double room = low == 0 ? 1 : std::abs(low) * 0.05;
    low -= room;
    high += room;
  }
};

/** About `count` round numbers in a range. */
std::vector<double> ticks_of(const Range& range, int count) {
  const double rough = (range.high - range.low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / power;
  const double step = power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  // By whole multiples: a sum of steps would drift.
  for (double n = std::ceil(range.low / step - 1e-9); n * step <= range.high + step * 1e-9; ++n)
    ticks.push_back(n * step);
  return ticks;
}

std::string tick_text(double value) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e15 && value == std::floor(value))
    return format_count(static_cast<int64_t>(value));
  return number_text(std::abs(value) < 1e-300 ? 0 : value, 6);
}

/** Maps values to positions in the svg. */
struct Axes {
  Range x, y;

  double at_x(double value) const { return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); }
  double at_y(double value) const {
    return kHeight - kBottom - (value - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  }
  std::string point(double px, double py) const {
    return number_text(std::round(at_x(px) * 100) / 100, 7) + "," + number_text(std::round(at_y(py) * 100) / 100, 7);
  }
};

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return "<line x1=\"" + number_text(x1, 7) + "\" y1=\"" + number_text(y1, 7) + "\" x2=\"" + number_text(x2, 7) +
         "\" y2=\"" + number_text(y2, 7) + "\" class=\"" + style + "\"/>\n";
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + number_text(x, 7) + "\" y=\"" + number_text(y, 7) + "\" text-anchor=\"" + anchor + "\">" +
         escape_html(text) + "</text>\n";
}

std::string grid(const Axes& axes, const ChartOptions& options) {
  std::string svg;
  for (const double tick : ticks_of(axes.x, 6)) {
    const double x = axes.at_x(tick);
    svg += line(x, kTop, x, kHeight - kBottom, "grid") + label(x, kHeight - kBottom + 16, "middle", tick_text(tick));
  }
  for (const double tick : ticks_of(axes.y, 5)) {
    const double y = axes.at_y(tick);
    svg += line(kLeft, y, kWidth - kRight, y, "grid") + label(kLeft - 6, y + 4, "end", tick_text(tick));
  }
  svg += label((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", options.x_label);
  svg += "<text transform=\"translate(13," + number_text((kTop + kHeight - kBottom) / 2) +
         ") rotate(-90)\" text-anchor=\"middle\">" + escape_html(options.y_label) + "</text>\n";
  return svg;
}

std::string drawn(const ChartSeries& series, const Axes& axes) {
  const std::string stroke =
      " stroke=\"" + chart_color(series.color) + "\"" + (series.dashed ? " stroke-dasharray=\"6 4\"" : "");
  std::string svg, points;
  const auto finish = [&] {
    if (!points.empty()) svg += "<polyline class=\"curve\"" + stroke + " points=\"" + points + "\"/>\n";
    points.clear();
  };
  for (const auto& [x, y] : series.points) {
    if (!is_drawable(y)) {
      finish();
      continue;
    }
    points += (points.empty() ? "" : " ") + axes.point(x, y);
  }
  finish();
  for (const auto& [x, y] : series.points) {
    // A line of one point is only visible by its mark.
    if ((!series.marks && series.points.size() > 1) || !is_drawable(y)) continue;
    svg += "<circle r=\"3\" fill=\"" + chart_color(series.color) + "\" cx=\"" + number_text(axes.at_x(x), 7) +
           "\" cy=\"" + number_text(axes.at_y(y), 7) + "\"><title>" +
           escape_html(series.name + ": " + tick_text(x) + ", " + number_text(y)) + "</title></circle>\n";
  }
  return svg;
}

std::string legend(Span<ChartSeries> series) {
  std::string html = "<figcaption>";
  for (const ChartSeries& one : series) {
    if (one.points.empty()) continue;
    html += "<span class=\"key\"><span class=\"" + std::string(one.dashed ? "line dashed" : "line") +
            "\" style=\"border-color:" + chart_color(one.color) + "\"></span>" + escape_html(one.name) + "</span> ";
  }
  return html + "</figcaption>\n";
}

}  // namespace

std::string chart_color(size_t number) {
  // Okabe and Ito's, which people who are colour-blind distinguish, without yellow.
  static constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                            "#56b4e9", "#e69f00", "#555555"};
  return kColors[number % std::size(kColors)];
}

std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points, size_t count) {
  if (points.size() <= count) return points;
  std::vector<std::pair<double, double>> out;
  for (size_t i = 0; i < count; ++i) {
    const size_t first = i * points.size() / count, end = (i + 1) * points.size() / count;
    double x = 0, y = 0;
    for (size_t p = first; p < end; ++p) {
      x += points[p].first;
      y += points[p].second;
    }
    out.emplace_back(x / static_cast<double>(end - first), y / static_cast<double>(end - first));
  }
  return out;
}

std::string line_chart(Span<ChartSeries> series, const ChartOptions& options) {
  Axes axes;
  for (const ChartSeries& one : series)
    for (const auto& [x, y] : one.points)
      if (is_drawable(x) && is_drawable(y)) {
        axes.x.take(x);
        axes.y.take(y);
      }
  if (!(axes.x.low <= axes.x.high)) return {};
  if (options.diagonal) {
    axes.x.take(0);
    axes.x.take(axes.y.high);
    axes.y = axes.x;
  }
  axes.x.widen();
  axes.y.widen();
  std::string html = "<figure>\n<h3>" + escape_html(options.title) + "</h3>\n<svg viewBox=\"0 0 " +
                     number_text(kWidth) + " " + number_text(kHeight) + "\" role=\"img\" aria-label=\"" +
                     escape_html(options.title) + "\">\n";
  html += grid(axes, options);
  if (options.diagonal)
    html += line(axes.at_x(axes.x.low), axes.at_y(axes.x.low), axes.at_x(axes.x.high), axes.at_y(axes.x.high), "equal");
  for (const ChartSeries& one : series) html += drawn(one, axes);
  return html + "</svg>\n" + legend(series) + "</figure>\n";
}

}  // namespace tercel::recsys
