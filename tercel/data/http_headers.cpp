#include "tercel/data/http_headers_impl.h"

#include <algorithm>
#include <charconv>

namespace tercel::data {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' || text.back() == '\n'))
    text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/** The number that a text is, or -1: digits only, that fit in 64 bits. */
int64_t number_of(std::string_view text) {
  int64_t value = -1;
  if (text.empty() || text.front() == '-') return -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

/** "0-99/1000"; '*' stands for what is not known: the size, or the range where there is none. */
void read_range(std::string_view text, HttpResponse& response) {
  response.range_begin = response.total = -1;
  const size_t slash = text.find('/'), dash = text.find('-');
  if (slash == std::string_view::npos) return;
  const std::string_view range = text.substr(0, slash), size = text.substr(slash + 1);
  const int64_t total = size == "*" ? -1 : number_of(size);
  if (total < 0 && size != "*") return;
  if (range == "*") {
    response.total = total;
    return;
  }
  if (dash > slash) return;
  const int64_t begin = number_of(range.substr(0, dash)), last = number_of(range.substr(dash + 1));
  if (begin < 0 || last < begin || (total >= 0 && last >= total)) return;
  response.range_begin = begin;
  response.total = total;
}

}  // namespace

void read_http_header(std::string_view line, HttpResponse& response) {
  if (line.starts_with("HTTP/")) {
    response = {};
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return;
    // "206 Partial Content"; the text may be missing.
    const std::string_view words = trimmed(line.substr(blank));
    const int64_t code = number_of(words.substr(0, words.find(' ')));
    if (code <= 999) response.status = std::max<long>(0, code);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "etag") response.etag = value;
  if (name == "last-modified") response.last_modified = value;
  if (name == "content-encoding" && lower(value) != "identity") response.content_encoding = value;
  if (name == "content-length") response.content_length = number_of(value);
  constexpr std::string_view unit = "bytes ";
  if (name == "content-range" && lower(value.substr(0, unit.size())) == unit)
    read_range(trimmed(value.substr(unit.size())), response);
}

}  // namespace tercel::data
