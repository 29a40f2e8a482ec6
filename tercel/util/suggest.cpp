#include "tercel/util/suggest.h"

#include <algorithm>
#include <vector>

#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel {

namespace {

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Edits that turn a into b: insert, delete, replace, swap of neighbours (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<size_t> rows(3 * columns);
  size_t* before = rows.data();
  size_t* last = before + columns;
  size_t* now = last + columns;
  for (size_t j = 0; j < columns; ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j < columns; ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]))
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view word, Span<std::string_view> known) {
  // Longer names are not typing errors; avoid quadratic time.
  constexpr size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view name : known) {
    if (name.size() > kLongest) continue;
    const size_t distance = edit_distance(word, name);
    // Replacing every letter is not a typing error: "ab" does not mean "cd".
    if (distance < best_distance && distance < std::max(word.size(), name.size())) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string known_names(std::string_view word, Span<std::string_view> known) {
  const std::string_view best = nearest_name(word, known);
  std::string out = best.empty() ? std::string(";") : "; did you mean '" + printable(best) + "'?";
  out += known.empty() ? " there are none" : " known: ";
  for (size_t i = 0; i < known.size(); ++i) {
    if (i > 0) out += ", ";
    out += known[i];
  }
  return out;
}

namespace detail {

void unknown_name(std::string_view what, std::string_view text, Span<std::string_view> known) {
  throw_error<ConfigError>({"unknown ", what, " '", printable(text), "'", known_names(text, known)});
}

}  // namespace detail

}  // namespace tercel
