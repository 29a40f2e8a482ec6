#include "cli/help_text.h"

#include <algorithm>

namespace tercel::cli {

namespace {

constexpr size_t kHelpWidth = 110;
constexpr size_t kNameWidth = 26;

}  // namespace

std::string help_entry(const std::string& name, std::string_view text) {
  std::string out = "  " + name;
  if (name.size() + 2 > kNameWidth) {
    out += '\n' + std::string(kNameWidth + 2, ' ');
  } else {
    out += std::string(kNameWidth - name.size(), ' ');
  }
  size_t column = kNameWidth + 2;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column + end > kHelpWidth && column > kNameWidth + 2) {
      out.back() = '\n';
      out += std::string(kNameWidth + 2, ' ');
      column = kNameWidth + 2;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(end);
    if (!text.empty()) {
      out += ' ';
      ++column;
      text.remove_prefix(1);
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  return out + '\n';
}

std::string help_of(const OptionField& field, const void* options) {
  std::string text = std::string(field.help) + " (" + option_type_text(field);
  const std::string value = option_text(field, options);
  if (!value.empty() && !field.rules.required && value != "[]") text += "; default " + value;
  return text + ")";
}

std::string help_of(OptionTable table, const void* defaults, const std::string& prefix) {
  std::string text;
  for (const OptionField& field : table) {
    const std::string name = prefix + std::string(field.name);
    if (field.type->kind == OptionKind::Struct)
      text += help_of(field.type->nested(), field.locate(const_cast<void*>(defaults)), name + ".");
    else
      text += help_entry(name, help_of(field, defaults));
  }
  return text;
}

}  // namespace tercel::cli
