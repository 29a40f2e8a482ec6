// Any lines are the headers of an answer, whose numbers can be; what comes before the last status line has no effect.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tercel/data/http_headers_impl.h"

namespace {

using tercel::data::HttpResponse;

void expect(bool holds) {
  if (!holds) std::abort();
}

HttpResponse read(const std::vector<std::string_view>& lines, size_t first) {
  HttpResponse response;
  for (size_t i = first; i < lines.size(); ++i) tercel::data::read_http_header(lines[i], response);
  return response;
}

bool is_trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  return text.empty() ||
         (text.front() != ' ' && text.front() != '\t' && blank.find(text.back()) == std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> lines;
  size_t last_status = 0;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
    if (line.starts_with("HTTP/")) last_status = lines.size();
    lines.push_back(line);
    rest.remove_prefix(line.size());
  }
  const HttpResponse all = read(lines, 0), last = read(lines, last_status);
  expect(all.status == last.status && all.etag == last.etag && all.last_modified == last.last_modified);
  expect(all.content_length == last.content_length && all.range_begin == last.range_begin && all.total == last.total);
  expect(all.status >= 0 && all.status <= 999 && all.received == 0);
  expect(all.content_length >= -1 && all.range_begin >= -1 && all.total >= -1);
  expect(all.total < 0 || all.range_begin < all.total);
  expect(is_trimmed(all.etag) && is_trimmed(all.last_modified));
  return 0;
}
