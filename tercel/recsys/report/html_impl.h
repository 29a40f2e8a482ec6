// Text in HTML. Private.
#pragma once

#include <string>
#include <string_view>

namespace tercel::recsys {

/** Text for content and attributes of HTML and XML: control characters and invalid UTF-8 are shown as \xNN. */
std::string escape_html(std::string_view text);
/** At most `digits` significant digits: "0.7871", "1e-07"; a dash for NaN. */
std::string number_text(double value, int digits = 5);

}  // namespace tercel::recsys
