#include <algorithm>
#include <cmath>
#include <utility>

#include "tercel/data/label_rule_impl.h"
#include "tercel/data/text_number_impl.h"

namespace tercel::data {

std::vector<LabelRule::Condition> LabelRule::parse(const std::vector<std::string>& texts) {
  constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"<=", Comparison::AtMost}, {">=", Comparison::AtLeast}, {"<", Comparison::Less},
      {">", Comparison::Above},   {"=", Comparison::Equal},
  };
  std::vector<Condition> conditions;
  for (const std::string& text : texts) {
    Condition condition{Comparison::Text, text, 0};
    for (const auto& [sign, comparison] : kOperators) {
      if (!text.starts_with(sign)) continue;
      std::string_view rest = std::string_view(text).substr(sign.size());
      while (rest.starts_with(' ')) rest.remove_prefix(1);
      if (parse_number(rest, condition.number))
        condition.comparison = comparison;
      else if (comparison == Comparison::Equal && !rest.empty())
        condition.text = rest;
      break;
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

LabelRule::LabelRule(const std::vector<std::string>& positive, const std::vector<std::string>& negative)
    : texts_(positive), positive_(parse(positive)), negative_(parse(negative)) {
  for (const auto* conditions : {&positive_, &negative_})
    for (const Condition& condition : *conditions) has_texts_ |= condition.comparison == Comparison::Text;
}

bool LabelRule::matches(const Condition& condition, std::string_view label, bool is_number, double number) {
  if (condition.comparison == Comparison::Text) return condition.text == label;
  if (!is_number) return false;
  switch (condition.comparison) {
    case Comparison::Less: return number < condition.number;
    case Comparison::AtMost: return number <= condition.number;
    case Comparison::Above: return number > condition.number;
    case Comparison::AtLeast: return number >= condition.number;
    default: return number == condition.number;
  }
}

bool LabelRule::holds(size_t condition, std::string_view label) const {
  double number = 0;
  const bool is_number = parse_number(label, number);
  return matches(positive_[condition], label, is_number, number);
}

LabelRule::Meaning LabelRule::of(std::string_view label) const {
  double number = 0;
  const bool is_number = parse_number(label, number) && !std::isnan(number);
  const auto any = [&](const std::vector<Condition>& conditions) {
    return std::any_of(conditions.begin(), conditions.end(),
                       [&](const Condition& c) { return matches(c, label, is_number, number); });
  };
  if (any(positive_)) return Meaning::One;
  if (!has_texts_ && !is_number) return Meaning::NoNumber;
  if (negative_.empty()) return label.empty() ? Meaning::Unknown : Meaning::Zero;
  return any(negative_) ? Meaning::Zero : Meaning::Unknown;
}

}  // namespace tercel::data
