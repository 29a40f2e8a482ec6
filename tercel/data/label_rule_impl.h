// Which labels mean 1 and which mean 0. Private.
//
// Note [Labels]
// A rule is a list of conditions. "<4", "<=4", ">4", ">=4" and "=4" compare numbers where a number follows; any other
// text is the label itself, and so is TEXT of "=TEXT".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/text_format.h"

namespace tercel::data {

class LabelRule {
 public:
  enum class Meaning : uint8_t { Zero, One, NoNumber, Unknown };

  LabelRule(const std::vector<std::string>& positive, const std::vector<std::string>& negative);

  bool is_empty() const { return positive_.empty(); }
  /** NoNumber: the label is no number, and all conditions are comparisons. Unknown: no condition is about it. */
  Meaning of(std::string_view label) const;
  /** Conditions for 1, as given. */
  const std::vector<std::string>& positive() const { return texts_; }
  /** Whether the condition for 1 holds. */
  bool holds(size_t condition, std::string_view label) const;

 private:
  enum class Comparison : uint8_t { Text, Less, AtMost, Above, AtLeast, Equal };
  struct Condition {
    Comparison comparison = Comparison::Text;
    std::string text;
    double number = 0;
  };
  static std::vector<Condition> parse(const std::vector<std::string>& texts);
  static bool matches(const Condition& condition, std::string_view label, bool is_number, double number);

  std::vector<std::string> texts_;
  std::vector<Condition> positive_, negative_;
  bool has_texts_ = false;
};

}  // namespace tercel::data
