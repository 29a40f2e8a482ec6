// Maps the categories of every field to keys.
//
// docs/formats/vocabulary.md has the bytes of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** Name of the vocabulary's file in a dataset's folder. */
constexpr std::string_view kVocabularyFile = "vocabulary.bin";

/** Per field, ids from 1 for the categories it knows; 0 stands for all others: rare, unseen and missing ones. */
class TERCEL_API Vocabulary {
 public:
  Vocabulary();
  Vocabulary(Vocabulary&&) noexcept;
  Vocabulary& operator=(Vocabulary&&) noexcept;
  ~Vocabulary();

  /** A field whose categories get the ids 1, 2, ...; ValueError for an empty or repeated category. */
  void add_field(std::string name, Span<std::string_view> categories);

  int64_t num_fields() const;
  const std::string& name(int64_t field) const;
  /** Number of ids, 0 included. */
  int64_t size(int64_t field) const;
  /** Id of a category (any bytes); 0 if the field does not have it. */
  int64_t find(int64_t field, std::string_view category) const;
  /** The categories by id, from 1 on; valid while the vocabulary lives. */
  std::vector<std::string_view> categories(int64_t field) const;

 private:
  struct Field;
  std::vector<std::unique_ptr<Field>> fields_;
};

/** Content of a vocabulary file. */
TERCEL_API std::string vocabulary_to_bytes(const Vocabulary& vocabulary);

/** Reverse of vocabulary_to_bytes(); DataError, which starts with `name`, for damaged bytes. */
TERCEL_API Vocabulary vocabulary_from_bytes(std::string_view bytes, const std::string& name);

/** Writes a vocabulary file, atomically. */
TERCEL_API void save_vocabulary(const Vocabulary& vocabulary, const std::string& path);
/** Reads a file of save_vocabulary(). DataError for a damaged file. */
TERCEL_API Vocabulary load_vocabulary(const std::string& path);

}  // namespace tercel::data
