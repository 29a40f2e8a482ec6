#include "tercel/recsys/prediction_file.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "tercel/io/npy.h"
#include "tercel/io/npy_records.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

using data::TableValues;
using data::ValueType;

/** Quoted where the text has separators of CSV. */
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/** CSV by a function, which may write to a file or to the standard output. */
class CsvText final : public PredictionWriter {
 public:
  CsvText(FunctionRef<void(std::string_view)> write, const std::vector<std::string>& names, const IdColumn& id)
      : write_(write), columns_(names.size()), id_(id) {
    if (!id.name.empty()) header_ = csv_field(id.name) + ",";
    for (size_t c = 0; c < names.size(); ++c) header_ += csv_field(names[c]) + (c + 1 < names.size() ? "," : "\n");
  }

  void write(const Predictions& predictions) override {
    std::string text = std::exchange(header_, {});
    const auto put = [&text](float value) {
      char number[32];
      text.append(number, static_cast<size_t>(std::snprintf(number, sizeof(number), "%.9g", double{value})));
    };
    for (size_t row = 0; row < static_cast<size_t>(predictions.rows); ++row) {
      if (!id_.name.empty()) {
        switch (id_.type) {
          case ValueType::I64: text += std::to_string(predictions.ids.integers[row]); break;
          case ValueType::F32: put(predictions.ids.floats[row]); break;
          case ValueType::Text: text += csv_field(predictions.ids.texts[row]); break;
        }
        text += ',';
      }
      for (size_t c = 0; c < columns_; ++c) {
        put(predictions.probabilities[row * columns_ + c]);
        text += c + 1 < columns_ ? ',' : '\n';
      }
    }
    write_(text);
  }
  void commit() override {
    if (!header_.empty()) write_(std::exchange(header_, {}));
  }

 private:
  FunctionRef<void(std::string_view)> write_;
  size_t columns_;
  IdColumn id_;
  std::string header_;  // that is not written yet
};

class CsvFile final : public PredictionWriter {
 public:
  CsvFile(const std::string& path, const std::vector<std::string>& names, const IdColumn& id)
      : file_(path), append_{&file_}, text_(append_, names, id) {}

  void write(const Predictions& predictions) override { text_.write(predictions); }
  void commit() override {
    text_.commit();
    file_.commit();
  }

 private:
  struct Append {
    AtomicFile* file;
    void operator()(std::string_view text) const { file->write(text); }
  };

  AtomicFile file_;
  Append append_;
  CsvText text_;
};

/** Probabilities alone. */
class NpyFile final : public PredictionWriter {
 public:
  NpyFile(const std::string& path, size_t columns)
      : file_(path, columns == 1 ? DimVector() : DimVector{static_cast<int64_t>(columns)}) {}

  void write(const Predictions& predictions) override { file_.write(predictions.probabilities); }
  void commit() override { file_.commit(); }

 private:
  io::NpyWriter file_;
};

template <class T>
void append_bytes(std::vector<char>& to, const T* values, size_t count) {
  const auto* const bytes = reinterpret_cast<const char*>(values);
  to.insert(to.end(), bytes, bytes + count * sizeof(T));
}

std::vector<io::NpyField> fields_of(const std::vector<std::string>& names, io::NpyField id) {
  std::vector<io::NpyField> fields{std::move(id)};
  for (const std::string& name : names) fields.push_back({name, "<f4", sizeof(float)});
  return fields;
}

/** Numbers and probabilities, as records. */
class NumberRecords final : public PredictionWriter {
 public:
  NumberRecords(const std::string& path, const std::vector<std::string>& names, const IdColumn& id)
      : columns_(names.size()),
        type_(id.type),
        file_(path, fields_of(names, {id.name, id.type == ValueType::I64 ? "<i8" : "<f4",
                                      id.type == ValueType::I64 ? int64_t{sizeof(int64_t)} : int64_t{sizeof(float)}})) {
  }

  void write(const Predictions& predictions) override {
    std::vector<char> records;
    for (size_t row = 0; row < static_cast<size_t>(predictions.rows); ++row) {
      if (type_ == ValueType::I64)
        append_bytes(records, &predictions.ids.integers[row], 1);
      else
        append_bytes(records, &predictions.ids.floats[row], 1);
      append_bytes(records, predictions.probabilities.data() + row * columns_, columns_);
    }
    file_.write(records.data(), predictions.rows);
  }
  void commit() override { file_.commit(); }

 private:
  size_t columns_;
  ValueType type_;
  io::NpyRecordWriter file_;
};

/** Texts and probabilities, as records, whose size is known at the end. */
class TextRecords final : public PredictionWriter {
 public:
  TextRecords(std::string path, std::vector<std::string> names, std::string id)
      : path_(std::move(path)), names_(std::move(names)), id_(std::move(id)) {
    const AtomicFile writable(path_);  // what forbids the file is known before the first row
  }

  void write(const Predictions& predictions) override {
    for (const std::string& text : predictions.ids.texts) {
      TERCEL_CHECK(is_utf8(text), DataError, printable(path_), ": row ", ends_.size(),
                   ": expected an id in UTF-8, found '", printable(text), "'");
      texts_ += text;
      ends_.push_back(texts_.size());
      // Bytes that begin a code point.
      longest_ = std::max<int64_t>(longest_, std::count_if(text.begin(), text.end(), [](char c) {
                                     return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
                                   }));
    }
    probabilities_.insert(probabilities_.end(), predictions.probabilities.begin(), predictions.probabilities.end());
  }

  void commit() override {
    const std::string type = "<U" + std::to_string(longest_);
    io::NpyRecordWriter file(path_, fields_of(names_, {id_, type, longest_ * int64_t{sizeof(char32_t)}}));
    size_t begin = 0;
    std::vector<char> record;
    for (size_t row = 0; row < ends_.size(); ++row) {
      std::u32string points = io::code_points(std::string_view(texts_).substr(begin, ends_[row] - begin));
      begin = ends_[row];
      points.resize(static_cast<size_t>(longest_));  // NumPy's texts end in zeros
      record.clear();
      append_bytes(record, points.data(), points.size());
      append_bytes(record, probabilities_.data() + row * names_.size(), names_.size());
      file.write(record.data(), 1);
    }
    file.commit();
  }

 private:
  std::string path_;
  std::vector<std::string> names_;
  std::string id_;
  std::string texts_;  // all ids
  std::vector<size_t> ends_;
  std::vector<float> probabilities_;
  int64_t longest_ = 1;  // code points of an id
};

class ParquetFile final : public PredictionWriter {
 public:
  ParquetFile(const std::string& path, const std::vector<std::string>& names, const IdColumn& id)
      : columns_(names.size()), has_ids_(!id.name.empty()), file_(path, table_columns(names, id)) {}

  void write(const Predictions& predictions) override {
    const auto rows = static_cast<size_t>(predictions.rows);
    std::vector<std::vector<float>> parts(columns_, std::vector<float>(rows));
    for (size_t c = 0; c < columns_; ++c)
      for (size_t row = 0; row < rows; ++row) parts[c][row] = predictions.probabilities[row * columns_ + c];
    std::vector<TableValues> values;
    if (has_ids_) values.push_back(predictions.ids);
    for (const std::vector<float>& part : parts) values.emplace_back().floats = part;
    file_.write(values);
  }
  void commit() override { file_.commit(); }

 private:
  static std::vector<data::TableColumn> table_columns(const std::vector<std::string>& names, const IdColumn& id) {
    std::vector<data::TableColumn> columns;
    if (!id.name.empty()) columns.push_back({id.name, id.type});
    for (const std::string& name : names) columns.push_back({name, ValueType::F32});
    return columns;
  }

  size_t columns_;
  bool has_ids_;
  data::ParquetTableWriter file_;
};

void check_id(const std::vector<std::string>& names, const IdColumn& id) {
  TERCEL_CHECK(std::find(names.begin(), names.end(), id.name) == names.end(), ConfigError, "predict: the ids' column '",
               printable(id.name), "' has the name of a column of probabilities");
}

}  // namespace

PredictionWriter::~PredictionWriter() = default;

std::vector<std::string> prediction_names(Span<Head> heads) {
  if (heads.size() == 1 && heads[0].columns == 1) return {"probability"};
  std::vector<std::string> names;
  for (const Head& head : heads)
    for (int64_t column = 0; column < head.columns; ++column)
      names.push_back("probability/" + head.name + (head.columns == 1 ? "" : "/" + std::to_string(column)));
  return names;
}

std::unique_ptr<PredictionWriter> make_prediction_file(PredictionFormat format, const std::string& path,
                                                       const std::vector<std::string>& names, const IdColumn& id) {
  check_id(names, id);
  switch (format) {
    case PredictionFormat::Npy:
      if (id.name.empty()) return std::make_unique<NpyFile>(path, names.size());
      if (id.type == ValueType::Text) return std::make_unique<TextRecords>(path, names, id.name);
      return std::make_unique<NumberRecords>(path, names, id);
    case PredictionFormat::Parquet: return std::make_unique<ParquetFile>(path, names, id);
    case PredictionFormat::Csv: break;
  }
  return std::make_unique<CsvFile>(path, names, id);
}

std::unique_ptr<PredictionWriter> make_prediction_text(FunctionRef<void(std::string_view)> write,
                                                       const std::vector<std::string>& names, const IdColumn& id) {
  check_id(names, id);
  return std::make_unique<CsvText>(write, names, id);
}

}  // namespace tercel::recsys
