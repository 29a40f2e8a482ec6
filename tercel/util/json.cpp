#include <cstddef>
#include <iterator>
#include <set>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel {

namespace {

// Exposes how far the parser has read, which nlohmann does not.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

[[noreturn]] void fail(JsonErrors errors, const std::string& message) {
  if (errors == JsonErrors::Config) throw ConfigError(message);
  throw DataError(message);
}

// Builds the value from the parser's events. nlohmann's own builder has no limits and keeps the last duplicate.
class Builder {
 public:
  Builder(std::string_view text, std::string_view name, JsonErrors errors, const JsonLimits& limits)
      : text_(text), name_(name), errors_(errors), limits_(limits), furthest_(text.data()) {}

  Json build() {
    if (static_cast<int64_t>(text_.size()) > limits_.max_bytes)
      fail(errors_, str_cat({printable(name_), ": expected at most ", format_bytes(limits_.max_bytes),
                             " of JSON, found ", format_bytes(static_cast<int64_t>(text_.size()))}));
    // nlohmann treats a NUL as the end and ignores the rest.
    if (const size_t zero = text_.find('\0'); zero != std::string_view::npos) {
      furthest_ = text_.data() + zero + 1;
      fail_here("expected text, found a zero byte");
    }
    const CountingIterator first(text_.data(), &furthest_);
    const CountingIterator last(text_.data() + text_.size(), &furthest_);
    Json::sax_parse(first, last, this);
    return std::move(root_);
  }

  // The interface that Json::sax_parse calls.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const Json::string_t&) { return add(value); }
  bool string(Json::string_t& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::value_t::object); }
  bool start_array(size_t) { return open(Json::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(Json::string_t& name) {
    if (!open_.back().keys.insert(name).second) fail_here("duplicate key \"" + name + "\"");
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 8: syntax error while ..."
    std::string_view reason = error.what();
    if (const size_t end = reason.find("] "); end != std::string_view::npos) reason.remove_prefix(end + 2);
    if (reason.starts_with("parse error at line"))
      reason.remove_prefix(std::min(reason.find(": "), reason.size() - 2) + 2);
    fail_here(reason);
  }

 private:
  struct Level {
    Json* value;
    std::set<std::string> keys;
  };

  [[noreturn]] void fail_here(std::string_view reason) const {
    int64_t line = 1;
    int64_t column = 0;
    for (const char* p = text_.data(); p < furthest_; ++p) {
      ++column;
      if (*p == '\n' && p + 1 < furthest_) {
        ++line;
        column = 0;
      }
    }
    fail(errors_, str_cat({printable(name_), ": line ", line, ", column ", column, ": ", printable(reason)}));
  }

  template <class Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }

  template <class Value>
  Json* place(Value&& value) {
    if (open_.empty()) {
      root_ = Json(std::forward<Value>(value));
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
    // Appended directly: ordered_map would search all keys first.
    auto& entries = static_cast<Json::object_t::Container&>(parent.get_ref<Json::object_t&>());
    return &entries.emplace_back(std::move(key_), Json(std::forward<Value>(value))).second;
  }

  bool open(Json::value_t type) {
    if (static_cast<int64_t>(open_.size()) >= limits_.max_depth)
      fail_here(str_cat({"expected at most ", limits_.max_depth, " nested lists and objects, found more"}));
    Json* const value = place(type);
    open_.push_back({value, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view name_;
  JsonErrors errors_;
  JsonLimits limits_;
  const char* furthest_;
  Json root_;
  std::string key_;
  std::vector<Level> open_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view name, JsonErrors errors, const JsonLimits& limits) {
  return Builder(text, name, errors, limits).build();
}

Json read_json_file(const std::string& path, JsonErrors errors, const JsonLimits& limits) {
  return parse_json(read_file(path, limits.max_bytes), path, errors, limits);
}

std::string dump_json(const Json& value) {
  const std::string text = value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  // U+007F to U+009F, which a terminal may obey, are in strings only. JSON escapes no others than those below U+0020.
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto code = static_cast<unsigned char>(text[i]);
    const bool is_pair = code == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_pair) code = static_cast<unsigned char>(text[++i]);
    if (!is_pair && code != 0x7F)
      out += static_cast<char>(code);
    else
      out += str_cat({"\\u00", "0123456789abcdef"[code >> 4], "0123456789abcdef"[code & 15]});
  }
  return out;
}

std::string dump_json_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string describe_json(const Json& value) {
  switch (value.type()) {
    case Json::value_t::array: return "a list";
    case Json::value_t::object: return "an object";
    case Json::value_t::string: return "\"" + printable(value.get_ref<const std::string&>()) + "\"";
    default: return dump_json_line(value);
  }
}

}  // namespace tercel
