#include "tercel/recsys/exchange/named_tensors.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/hugectr/raw_values_impl.h"
#include "tercel/recsys/model_files.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

std::string keys_of(const EmbeddingTable& table) { return table.name() + ".keys"; }

/** Finds tensors by name, with messages that name the file. */
class Given {
 public:
  Given(Span<io::NamedTensor> tensors, const std::string& path)
      : tensors_(tensors), path_(path), file_(printable(path)) {}

  const Tensor& find(const std::string& name, const std::string& sizes) const {
    const auto* const found = std::find_if(tensors_.begin(), tensors_.end(),
                                           [&name](const io::NamedTensor& tensor) { return tensor.name == name; });
    TERCEL_CHECK(found != tensors_.end(), DataError, file_, ": expected a tensor '", printable(name), "' ", sizes,
                 ", found none of that name");
    return found->tensor;
  }

  /** That of a name and these sizes, whose numbers are finite. */
  Tensor numbers(const std::string& name, IntSpan sizes) const {
    const Tensor& found = find(name, str_cat({sizes}));
    TERCEL_CHECK(found.is_floating_point() && found.sizes() == sizes, DataError, file_, ": tensor '", printable(name),
                 "': expected ", sizes, " of floating-point numbers, found ", found.sizes(), " of ",
                 to_string(found.dtype()));
    hugectr::check_finite(path_, found, str_cat({"tensor '", printable(name), "'"}));
    return found;
  }

  const std::string& file() const { return file_; }

 private:
  Span<io::NamedTensor> tensors_;
  std::string path_, file_;  // as it is, and for messages
};

struct TableContent {
  EmbeddingTable* table;
  Tensor keys, vectors;
};

/** Of a table that grows: any number of rows, with their keys. */
TableContent growing_content(EmbeddingTable& table, const Given& given) {
  const std::string name = keys_of(table);
  const Tensor keys = contiguous(given.find(name, "of int64"));  // that of a .pt file may be a view
  TERCEL_CHECK(keys.dim() == 1 && keys.dtype() == kInt64, DataError, given.file(), ": tensor '", printable(name),
               "': expected [rows] of int64, found ", keys.sizes(), " of ", to_string(keys.dtype()));
  const Tensor vectors = given.numbers(table.name(), {keys.size(0), table.dim()});
  std::vector<int64_t> sorted(keys.data<int64_t>(), keys.data<int64_t>() + keys.numel());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  TERCEL_CHECK(twice == sorted.end(), DataError, given.file(), ": tensor '", printable(name), "': key ", *twice,
               " occurs twice");
  return {&table, keys, vectors};
}

}  // namespace

std::vector<io::NamedTensor> named_tensors(Model& model) {
  const NoGradGuard guard;
  std::vector<io::NamedTensor> all;
  const auto add = [&all](const std::string& name, Tensor tensor) {
    for (const io::NamedTensor& other : all)
      TERCEL_CHECK(other.name != name, ValueError, "model: two of its tensors are called '", printable(name), "'");
    all.push_back({name, std::move(tensor)});
  };
  for (const io::NamedTensor& tensor : dense_file(model).tensors) add(tensor.name, clone(tensor.tensor));
  for (const auto& table : model.embeddings().tables()) {
    const Tensor weight = table->weight().detach();
    if (table->rows_without_key() == 0) {
      add(table->name(), weight);
      continue;
    }
    const KeyRows content = rows_of_keys(*table);
    add(table->name(), index_select(weight, 0, content.rows));
    add(keys_of(*table), content.keys);
  }
  return all;
}

int64_t set_named_tensors(Model& model, Span<io::NamedTensor> tensors, const std::string& file) {
  const NoGradGuard guard;
  const Given given(tensors, file);
  std::vector<std::string> names;
  std::vector<std::pair<Tensor, Tensor>> dense;  // of the model, of the file
  for (const io::NamedTensor& tensor : dense_file(model).tensors) {
    names.push_back(tensor.name);
    dense.emplace_back(tensor.tensor, given.numbers(tensor.name, tensor.tensor.sizes()));
  }
  std::vector<TableContent> tables;
  for (const auto& table : model.embeddings().tables()) {
    names.push_back(table->name());
    if (table->rows_without_key() == 0) {
      tables.push_back({table.get(), {}, given.numbers(table->name(), {table->rows(), table->dim()})});
    } else {
      names.push_back(keys_of(*table));
      tables.push_back(growing_content(*table, given));
    }
  }
  for (const io::NamedTensor& tensor : tensors)
    TERCEL_CHECK(std::find(names.begin(), names.end(), tensor.name) != names.end(), DataError, given.file(),
                 ": has a tensor '", printable(tensor.name), "' ", tensor.tensor.sizes(),
                 ", which the model does not have");
  int64_t rows = 0;
  for (const TableContent& content : tables) {
    if (content.keys.defined()) {
      try {
        set_vectors(*content.table, content.keys, contiguous(to(content.vectors, kFloat64)));
      } catch (const RuntimeError& e) {  // more than its capacity
        throw_error<DataError>({given.file(), ": ", e.what()});
      }
    } else {
      copy_(content.table->weight().detach(), content.vectors);
    }
    rows += content.vectors.size(0);
  }
  for (auto& [target, values] : dense) copy_(target, values);
  return rows;
}

}  // namespace tercel::recsys
