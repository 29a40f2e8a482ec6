#include "tercel/data/vocabulary.h"

#include <limits>
#include <utility>

#include "tercel/data/random_access_file.h"
#include "tercel/data/token_table_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/cursor.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr std::string_view kMagic = "TRCLVOC\1";

void put_number(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

// LEB128: seven bits per byte, low ones first; only the shortest form, so that equal vocabularies give equal files.
uint64_t read_number(ByteCursor& cursor, std::string_view what) {
  const int64_t start = cursor.position();
  uint64_t value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    const auto byte = cursor.read<uint8_t>(what);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) {
      if (byte == 0 && shift > 0) cursor.fail_at(start, str_cat({what, " in its shortest form"}), "zeros at its end");
      return value;
    }
  }
  cursor.fail_at(start, str_cat({what, " below 2^63"}), "a larger one");
}

std::string_view read_text(ByteCursor& cursor, std::string_view what) {
  const size_t length = cursor.check_count(read_number(cursor, what), 1, what);
  return cursor.text(length, what);
}

}  // namespace

struct Vocabulary::Field {
  std::string name;
  TokenTable ids;
};

Vocabulary::Vocabulary() = default;
Vocabulary::Vocabulary(Vocabulary&&) noexcept = default;
Vocabulary& Vocabulary::operator=(Vocabulary&&) noexcept = default;
Vocabulary::~Vocabulary() = default;

void Vocabulary::add_field(std::string name, Span<std::string_view> categories) {
  auto field = std::make_unique<Field>();
  field->name = std::move(name);
  int64_t id = 0;
  for (const std::string_view category : categories) {
    ++id;
    TERCEL_CHECK(!category.empty() && category.size() <= TokenTable::kMaxLength, ValueError, "vocabulary: field '",
                 printable(field->name), "': expected categories of 1 to ", TokenTable::kMaxLength, " bytes, found ",
                 category.size(), " at id ", id);
    TERCEL_CHECK(field->ids.find(category) == 0, ValueError, "vocabulary: field '", printable(field->name),
                 "': expected every category once, found '", printable(category), "' again at id ", id);
    TERCEL_ASSERT(field->ids.add(category, id));
  }
  fields_.push_back(std::move(field));
}

int64_t Vocabulary::num_fields() const { return static_cast<int64_t>(fields_.size()); }

const std::string& Vocabulary::name(int64_t field) const { return fields_.at(static_cast<size_t>(field))->name; }

int64_t Vocabulary::size(int64_t field) const { return fields_.at(static_cast<size_t>(field))->ids.size() + 1; }

int64_t Vocabulary::find(int64_t field, std::string_view category) const {
  if (category.empty() || category.size() > TokenTable::kMaxLength) return 0;
  return fields_[static_cast<size_t>(field)]->ids.find(category);
}

std::vector<std::string_view> Vocabulary::categories(int64_t field) const {
  std::vector<std::string_view> result(static_cast<size_t>(size(field) - 1));
  fields_[static_cast<size_t>(field)]->ids.for_each(
      [&](std::string_view category, int64_t id) { result[static_cast<size_t>(id - 1)] = category; });
  return result;
}

std::string vocabulary_to_bytes(const Vocabulary& vocabulary) {
  std::string out(kMagic);
  put_number(out, static_cast<uint64_t>(vocabulary.num_fields()));
  for (int64_t f = 0; f < vocabulary.num_fields(); ++f) {
    put_text(out, vocabulary.name(f));
    const std::vector<std::string_view> categories = vocabulary.categories(f);
    put_number(out, categories.size());
    for (const std::string_view category : categories) put_text(out, category);
  }
  const uint64_t sum = checksum(out.data(), out.size());
  out.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return out;
}

Vocabulary vocabulary_from_bytes(std::string_view bytes, const std::string& name) {
  const std::string shown = printable(name);
  ByteCursor whole(bytes, {shown});
  if (!bytes.starts_with(kMagic)) {
    const bool other_version = bytes.size() >= kMagic.size() && bytes.starts_with(kMagic.substr(0, kMagic.size() - 1));
    whole.fail("a vocabulary, which starts with the bytes TRCLVOC 01",
               other_version ? str_cat({"version ", int{static_cast<unsigned char>(bytes[kMagic.size() - 1])},
                                        " of the format: made by another version of Tercel"})
                             : "something else");
  }
  whole.skip(kMagic.size(), "magic");
  if (whole.remaining() < sizeof(uint64_t)) whole.fail("fields and a checksum", "the end of the file");
  const size_t content = whole.remaining() - sizeof(uint64_t);
  ByteCursor cursor = whole.sub(content, "fields");
  const auto sum = whole.read<uint64_t>("checksum");
  if (sum != checksum(bytes.data(), kMagic.size() + content))
    whole.fail_at(whole.position() - static_cast<int64_t>(sizeof(sum)), "the checksum of the content",
                  "another one: the file is damaged");

  Vocabulary vocabulary;
  // The smallest field: an empty name and no categories.
  const size_t num_fields = cursor.check_count(read_number(cursor, "number of fields"), 2, "number of fields");
  for (size_t f = 0; f < num_fields; ++f) {
    cursor.set_record(static_cast<int64_t>(f));
    std::string field_name(read_text(cursor, "name of a field"));
    const size_t count = cursor.check_count(read_number(cursor, "number of categories"), 2, "number of categories");
    std::vector<std::string_view> categories;
    categories.reserve(count);
    for (size_t i = 0; i < count; ++i) categories.push_back(read_text(cursor, "category"));
    try {
      vocabulary.add_field(std::move(field_name), categories);
    } catch (const ValueError& error) {
      throw DataError(shown + ": " + error.what());
    }
  }
  cursor.expect_end("the last field");
  return vocabulary;
}

void save_vocabulary(const Vocabulary& vocabulary, const std::string& path) {
  write_file_atomically(path, vocabulary_to_bytes(vocabulary));
}

Vocabulary load_vocabulary(const std::string& path) {
  return vocabulary_from_bytes(read_data_file(path, std::numeric_limits<int64_t>::max()), path);
}

}  // namespace tercel::data
