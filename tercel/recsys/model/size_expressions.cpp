#include <algorithm>
#include <cctype>
#include <limits>
#include <vector>

#include "tercel/recsys/model/config_impl.h"
#include "tercel/recsys/model/size_expressions_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kNames[] = {"slots", "dense", "labels", "hotness", "slot"};
constexpr int kMaxDepth = 100;

/** Evaluates one text, by recursive descent. */
class Expression {
 public:
  Expression(std::string_view text, const std::string& path, const data::Schema& schema)
      : text_(text), path_(path), schema_(schema) {}

  int64_t value() {
    ++at_;  // '='
    const int64_t result = sum();
    if (at_ < text_.size()) refuse("unexpected '", text_.substr(at_, 1), "'");
    return result;
  }

 private:
  int64_t sum() {
    if (++depth_ > kMaxDepth) refuse("too many parentheses", {}, {});
    int64_t total = product();
    while (take('+'))
      if (__builtin_add_overflow(total, product(), &total)) refuse("overflows", {}, {});
    --depth_;
    return total;
  }

  int64_t product() {
    int64_t total = factor();
    while (take('*'))
      if (__builtin_mul_overflow(total, factor(), &total)) refuse("overflows", {}, {});
    return total;
  }

  int64_t factor() {
    if (take('(')) {
      const int64_t inner = sum();
      expect(')');
      return inner;
    }
    skip_blanks();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    skip_blanks();
    if (word.empty()) refuse("expected a number or a name", {}, {});
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return number(word);
    if (word == "slots") return schema_.slot_num();
    if (word == "dense") return schema_.dense_dim;
    if (word == "labels") return schema_.label_dim;
    if (word == "hotness") return most_keys();
    if (word == "slot") return slot();
    refuse(str_cat({"unknown name '", word, "'"}), known_names(word, kNames), {});
  }

  int64_t number(std::string_view word) {
    int64_t total = 0;
    for (const char digit : word) {
      if (digit < '0' || digit > '9') refuse("expected a number but found '", word, "'");
      if (__builtin_mul_overflow(total, 10, &total) || __builtin_add_overflow(total, digit - '0', &total))
        refuse("overflows", {}, {});
    }
    return total;
  }

  int64_t most_keys() const {
    int64_t most = 1;
    for (const data::Slot& slot : schema_.slots) most = std::max(most, slot.hotness);
    return most;
  }

  /** "slot(NAME)"; the name may have any character but ')'. */
  int64_t slot() {
    expect('(');
    const size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) refuse("expected ')'", {}, {});
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end + 1;
    skip_blanks();
    std::vector<std::string_view> known;
    for (size_t s = 0; s < schema_.slots.size(); ++s) {
      if (schema_.slots[s].name == name) return static_cast<int64_t>(s);
      known.push_back(schema_.slots[s].name);
    }
    refuse(str_cat({"the model reads a slot '", printable(name), "', which the dataset does not have"}),
           known_names(name, known), "; another one is written as =slot(NAME)");
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip_blanks();
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse("expected '", std::string(1, c), "'");
  }
  [[noreturn]] void refuse(std::string_view what, std::string_view middle, std::string_view end) const {
    throw_error<ConfigError>({path_, ": in '", printable(text_), "': ", what, middle, end});
  }

  std::string_view text_;
  const std::string& path_;
  const data::Schema& schema_;
  size_t at_ = 0;
  int depth_ = 0;
};

void replace(Json& value, const std::string& path, const data::Schema& schema) {
  if (value.is_string() && value.get_ref<const std::string&>().starts_with('=')) {
    const std::string text = value.get<std::string>();
    value = Expression(text, path, schema).value();
  } else if (value.is_object()) {
    for (const auto& [key, entry] : value.items()) replace(entry, path + "." + key, schema);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) replace(value[i], path, schema);
  }
}

}  // namespace

Json with_sizes(Json layers, const data::Schema& schema) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = layer_name(layers[i]);
    replace(layers[i], name.empty() ? str_cat({"layers[", i, "]"}) : "layers." + name, schema);
  }
  return layers;
}

}  // namespace tercel::recsys
