#include "tercel/data/file_list.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "tercel/data/random_access_file.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string resolved(const std::string& list, int64_t line, std::string_view name) {
  std::string from_here(name);
  // In a store a request is made for each name: those of a list there are beside it, and are looked for when opened.
  if (is_url(from_here)) return from_here;
  std::string from_list = join_path(parent_path(list), name);
  if (is_url(list)) return from_list;
  if (exists(from_here)) return from_here;
  if (exists(from_list)) return from_list;
  const std::string also = from_list == from_here ? "" : str_cat({" nor at '", printable(from_list), "'"});
  throw_error<DataError>({printable(list), ": line ", line, ": expected the path of a file, found nothing at '",
                          printable(from_here), "'", also});
}

}  // namespace

std::vector<std::string> read_file_list(const std::string& path) {
  SequentialReader file(open_data_file(path));
  LineReader lines(file, size_t{64} << 10);
  std::string_view line;
  TERCEL_CHECK(lines.next(line), DataError, printable(path),
               ": line 1: expected the number of files, found an empty file");
  const std::string_view text = trimmed(line);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  TERCEL_CHECK(error == std::errc() && end == text.data() + text.size() && count > 0, DataError, printable(path),
               ": line 1: expected the number of files, at least 1, found '", printable(text.substr(0, 40)), "'");
  std::vector<std::string> paths;
  for (int64_t i = 0; i < count; ++i) {
    TERCEL_CHECK(lines.next(line), DataError, printable(path), ": line ", i + 2, ": expected ", count,
                 " paths of files after line 1, found ", i);
    TERCEL_CHECK(!line.empty(), DataError, printable(path), ": line ", i + 2,
                 ": expected the path of a file, found an empty line");
    paths.push_back(resolved(path, i + 2, line));
  }
  return paths;
}

void write_file_list(const std::string& path, const std::vector<std::string>& files) {
  std::string text = str_cat({files.size(), "\n"});
  for (const std::string& file : files) {
    TERCEL_CHECK(!file.empty() && file.find_first_of("\r\n") == std::string::npos, ValueError, printable(path),
                 ": a file list cannot hold the name '", printable(file), "'");
    text += file;
    text += '\n';
  }
  write_file_atomically(path, text);
}

}  // namespace tercel::data
