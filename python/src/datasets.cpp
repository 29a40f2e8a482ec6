// Datasets: opening, describing, converting and generating them. Classes and argument names are in
// python/tercel/data.
#include "python/src/datasets.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/src/convert.h"
#include "python/src/exchange.h"
#include "python/src/options.h"
#include "tercel/data/arrow_module.h"
#include "tercel/data/arrow_table.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/convert.h"
#include "tercel/data/convert_dataset.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/data/generate.h"
#include "tercel/data/movielens.h"
#include "tercel/data/random_access_file.h"
#include "tercel/data/verify_dataset.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::python {

namespace {

std::string absolute(const std::string& path) {
  return path.empty() || is_url(path) ? path : std::filesystem::absolute(path).string();
}

/** A description that has no folder, with absolute paths. */
data::Dataset located(data::Dataset dataset) {
  for (const auto& [name, part] : dataset.parts()) {
    part.file_list = absolute(part.file_list);
    for (data::DataFile& file : part.files) file.path = absolute(file.path);
  }
  return dataset;
}

template <OptionStruct S>
nb::dict to_dict(const S& options) {
  return options_to_dict(option_table<S>(), &options);
}

nb::list files_of(const data::Dataset& dataset, const data::DataPart& part) {
  nb::list files;
  for (const data::DataFile& file : part.files) {
    data::DataFile rest = file;
    rest.path.clear();  // it may be no UTF-8
    nb::dict one = to_dict(rest);
    one["path"] = from_path(dataset.path_of(file));
    files.append(one);
  }
  return files;
}

/** A description as text would hold another path. */
void check_utf8(const std::string& path) {
  TERCEL_CHECK(is_utf8(path), ConfigError, printable(path), ": expected a path in UTF-8, as descriptions require");
}

nb::object truth_of(const data::DataPart& part) {
  if (!part.truth) return nb::none();
  return to_dict(*part.truth);
}

void register_dataset(nb::module_& m) {
  using data::Dataset;
  nb::class_<Dataset>(m, "_Dataset")
      .def_static("load",
                  [](nb::handle path) {
                    const std::string folder = to_absolute_path(path);
                    return released([&] { return data::load_dataset(folder); });
                  })
      .def_static("from_json",
                  [](const std::string& text, nb::handle folder) {
                    Dataset dataset = data::dataset_from_json(text, std::string(data::kDatasetFile));
                    dataset.folder = to_path(folder);
                    return dataset;
                  })
      .def("to_json",
           [](const Dataset& dataset) {
             for (const auto& [name, part] : dataset.parts()) {
               check_utf8(part.file_list);
               for (const data::DataFile& file : part.files) check_utf8(file.path);
             }
             return to_str(data::dataset_to_json(dataset));
           })
      .def("folder", [](const Dataset& dataset) { return from_path(dataset.folder); })
      .def("schema", [](const Dataset& dataset) { return schema_to_dict(dataset.schema); })
      .def("format",
           [](const Dataset& dataset) {
             const data::DatasetFormat& format = dataset.checked_format();
             return nb::make_tuple(to_str(format.name()), options_to_dict(format.option_table(), format.options()));
           })
      .def("part",
           [](const Dataset& dataset, const std::string& name) {
             const data::DataPart& part = dataset.part(to_part(name));
             return nb::make_tuple(part.rows(), part.bytes(), files_of(dataset, part), truth_of(part));
           })
      .def("conversion", [](const Dataset& dataset) -> nb::object {
        if (!dataset.conversion) return nb::none();
        return to_dict(*dataset.conversion);
      });
}

/** Describes files of another tool; with a folder, the description is written there. */
data::Dataset open_files(const std::string& format, nb::handle folder, bool replace, const nb::dict& values) {
  const data::FormatEntry& entry = data::find_format(format, "open_files");
  const std::unique_ptr<data::FilesSpec> spec = entry.make_spec();
  set_options(values, spec->option_table(), spec->options(), entry.name);
  if (folder.is_none()) return released([&] { return located(spec->describe()); });
  const std::string target = to_absolute_path(folder);
  return released(
      [&] { return data::describe_files(replace ? spec->describe_for(target) : spec->describe(), target, replace); });
}

std::vector<std::string_view> names_of(OptionTable table) {
  std::vector<std::string_view> names;
  for (const OptionField& field : table) names.push_back(field.name);
  return names;
}

/** Defaults, or those of a recipe that the values name. */
template <class Options>
Options initial_options(const nb::dict& values) {
  if constexpr (std::is_same_v<Options, data::CriteoOptions>) {
    data::CriteoRecipe recipe = data::CriteoRecipe::None;
    // A name that is none is refused when the options are set.
    std::string name;
    if (values.contains("recipe") && nb::try_cast(values["recipe"], name)) static_cast<void>(parse_enum(name, recipe));
    return data::criteo_recipe(recipe);
  }
  return {};
}

/** Sets options of a tool that writes a dataset, and those of the format of its files. */
template <class Options>
Options writing_options(const nb::dict& values, const std::shared_ptr<data::DatasetFormat>& format,
                        std::string_view owner) {
  auto options = initial_options<Options>(values);
  set_options(values, option_table<Options>(), &options, owner, names_of(format->option_table()));
  set_options(values, format->option_table(), format->options(), owner, names_of(option_table<Options>()));
  options.format = format;
  return options;
}

/** Called during work without the GIL: lets Ctrl-C end it, and tells a function how far it is. */
template <class... A>
void report(nb::handle function, const A&... numbers) {
  const WithGil scope;
  if (PyErr_CheckSignals() != 0) raise_pending();
  if (!function.is_none()) function(numbers...);
}

nb::object generate(nb::handle folder, const std::string& format, bool replace, nb::handle progress,
                    const nb::dict& values) {
  const std::string target = to_absolute_path(folder);
  const auto options =
      writing_options<data::GenerateOptions>(values, data::make_format(format, "generate"), "generate");
  data::GenerateResult result = released([&] {
    return data::generate_dataset(target, options, replace,
                                  [&](int64_t rows) { report(progress, rows, options.rows); });
  });
  return nb::make_tuple(std::move(result.dataset), result.train_clicks, result.test_clicks);
}

nb::object to_result(data::ConvertResult result) {
  nb::list fields;
  for (const data::FieldSummary& field : result.fields)
    fields.append(nb::make_tuple(to_str(field.name), field.categories, field.dropped_categories, field.values,
                                 field.dropped_values));
  return nb::make_tuple(std::move(result.dataset), result.train_clicks, result.valid_clicks, result.test_clicks, fields,
                        result.cut_values, result.left_out_negatives);
}

std::vector<std::string> to_paths(const nb::list& list) {
  std::vector<std::string> paths;
  for_each_item(list.ptr(), [&](PyObject* path, Py_ssize_t) { paths.push_back(to_path(path)); });
  return paths;
}

template <class Options>
nb::object convert(data::ConvertResult (*work)(const std::vector<std::string>&, const std::string&, const Options&,
                                               bool, data::ConvertProgressFunction),
                   std::string_view owner, const nb::list& sources, nb::handle folder, const std::string& format,
                   bool replace, nb::handle progress, const nb::dict& values, nb::handle source_folder) {
  const std::vector<std::string> files = to_paths(sources);
  const std::string target = to_absolute_path(folder);
  auto options = writing_options<Options>(values, data::make_format(format, owner), owner);
  options.source_folder = to_path(source_folder);
  return to_result(released([&] {
    return work(files, target, options, replace,
                [&](const data::ConvertProgress& now) { report(progress, now.bytes_done, now.bytes_total); });
  }));
}

nb::object convert_movielens(const nb::list& sources, nb::handle folder, const std::string& format_name, bool replace,
                             nb::handle progress, const nb::dict& values) {
  const std::vector<std::string> files = to_paths(sources);
  const std::string target = to_absolute_path(folder);
  data::Dataset like;
  like.format = data::MovielensOptions{}.format;
  const auto options = writing_options<data::MovielensOptions>(
      values, data::make_format_like(like, format_name, "movielens"), "movielens");
  data::MovielensResult result = released([&] {
    return data::convert_movielens(files, target, options, replace,
                                   [&](double share, int64_t) { report(progress, share); });
  });
  return nb::make_tuple(std::move(result.dataset), result.train_positives, result.test_positives);
}

nb::object convert_like(const data::Dataset& like, const nb::list& sources, nb::handle folder, bool replace,
                        nb::handle progress, const nb::dict& values) {
  const std::vector<std::string> files = to_paths(sources);
  const std::string target = to_absolute_path(folder);
  data::LikeOptions options;
  set_options(values, option_table<data::LikeOptions>(), &options, "like");
  return to_result(released([&] {
    return data::convert_like(like, files, target, options, replace, [&](const data::ConvertProgress& now) {
      report(progress, now.bytes_done, now.bytes_total);
    });
  }));
}

nb::object convert_dataset(const data::Dataset& source, nb::handle folder, const std::string& format_name, bool replace,
                           nb::handle progress, const nb::dict& values) {
  const std::string target = to_absolute_path(folder);
  constexpr std::string_view kOwner = "convert_dataset";
  const auto options =
      writing_options<data::ConvertDatasetOptions>(values, data::make_format_like(source, format_name, kOwner), kOwner);
  const int64_t rows = source.rows();
  data::ConvertDatasetResult result = released([&] {
    return data::convert_dataset(source, target, options, replace, [&](int64_t done) { report(progress, done, rows); });
  });
  return nb::cast(std::move(result.dataset));
}

/** Of capsules of streams; valid and test may be None. */
data::Dataset arrow_dataset(nb::handle train, nb::handle valid, nb::handle test, nb::handle progress,
                            const nb::dict& values) {
  data::ArrowTableOptions options;
  set_options(values, option_table<data::ArrowTableOptions>(), &options, "arrow");
  const auto take = [](nb::handle capsule, std::string_view owner) {
    return capsule.is_none() ? OwnedStream() : take_stream(capsule, owner);
  };
  const OwnedStream streams[] = {take(train, "train table"), take(valid, "valid table"), take(test, "test table")};
  return released([&] {
    return data::dataset_from_arrow({streams[0].get(), streams[1].get(), streams[2].get()}, options,
                                    [&](int64_t rows) { report(progress, rows); });
  });
}

/** The Parquet files that sources are, or None: data::parquet_files_of(). */
nb::object parquet_files(const nb::list& sources) {
  const std::vector<std::string> given = to_paths(sources);
  const std::optional<std::vector<std::string>> files = released([&] { return data::parquet_files_of(given); });
  if (!files) return nb::none();
  nb::list paths;
  for (const std::string& path : *files) paths.append(from_path(path));
  return paths;
}

/** Bytes of an open file, fewer than asked for only at its end. */
nb::bytes read_at(const data::RandomAccessFile& file, int64_t offset, int64_t count) {
  TERCEL_CHECK(offset >= 0 && count >= 0, ValueError, "read_at: expected an offset and a number of bytes, found ",
               offset, " and ", count);
  std::string bytes(static_cast<size_t>(std::min(count, std::max<int64_t>(0, file.size() - offset))), '\0');
  const size_t found = released([&] { return file.read_at(bytes.data(), bytes.size(), offset); });
  return nb::bytes(bytes.data(), found);
}

nb::object verify_dataset(const data::Dataset& dataset, nb::handle progress, const nb::dict& values) {
  data::VerifyOptions options;
  set_options(values, option_table<data::VerifyOptions>(), &options, "verify");
  const data::VerifyResult result = released([&] {
    return data::verify_dataset(
        dataset, options, [&](const data::VerifyProgress& now) { report(progress, now.bytes_done, now.bytes_total); });
  });
  nb::list faults;
  for (const std::string& fault : result.faults) faults.append(to_str(fault));
  return faults;
}

/** describe_options() of every function that takes options: "batches", "generate", "open_files.norm" ... */
nb::dict options_of_functions() {
  nb::dict out;
  const auto add = [&]<class S>(std::string_view name, const S& defaults) {
    out[to_str(name)] = describe_options(option_table<S>(), &defaults);
  };
  add("batches", data::ReaderOptions{});
  add("position", data::ReaderPosition{});
  add("generate", data::GenerateOptions{});
  add("criteo", data::CriteoOptions{});
  add("csv", data::CsvOptions{});
  add("convert_dataset", data::ConvertDatasetOptions{});
  add("verify", data::VerifyOptions{});
  add("arrow", data::ArrowTableOptions{});
  add("libsvm", data::LibsvmOptions{});
  add("libffm", data::LibffmOptions{});
  add("like", data::LikeOptions{});
  add("movielens", data::MovielensOptions{});
  for (const data::FormatEntry& entry : data::dataset_formats()) {
    const std::unique_ptr<data::FilesSpec> spec = entry.make_spec();
    const std::unique_ptr<data::DatasetFormat> format = entry.make();
    out[to_str(str_cat({"open_files.", entry.name}))] = describe_options(spec->option_table(), spec->options());
    out[to_str(str_cat({"format.", entry.name}))] = describe_options(format->option_table(), format->options());
  }
  return out;
}

}  // namespace

nb::dict schema_to_dict(const data::Schema& schema) {
  nb::dict values = to_dict(schema);
  values["num_keys"] = schema.num_keys();
  return values;
}

data::Schema to_schema(const nb::dict& values) {
  data::Schema schema;
  constexpr std::string_view kDerived[] = {"num_keys"};
  set_options(values, option_table<data::Schema>(), &schema, "schema", kDerived);
  schema.check("schema");
  return schema;
}

data::PartName to_part(std::string_view name) {
  data::PartName part = data::PartName::Train;
  TERCEL_CHECK(parse_enum(name, part), ConfigError, "dataset: expected a part 'train', 'valid' or 'test', found '",
               printable(name), "'");
  return part;
}

void register_datasets(nb::module_& m) {
  register_dataset(m);
  m.def("_open_dataset_files", open_files, nb::arg("format"), nb::arg("folder").none(), nb::arg("replace"),
        nb::arg("values"));
  m.def("_generate_dataset", generate, nb::arg("folder"), nb::arg("format"), nb::arg("replace"),
        nb::arg("progress").none(), nb::arg("values"));
  const auto define = [&m](const char* name, auto* work, std::string_view owner) {
    m.def(
        name,
        [work, owner](const nb::list& sources, nb::handle folder, const std::string& format, bool replace,
                      nb::handle progress, const nb::dict& values, nb::handle source_folder) {
          return convert(work, owner, sources, folder, format, replace, progress, values, source_folder);
        },
        nb::arg("sources"), nb::arg("folder"), nb::arg("format"), nb::arg("replace"), nb::arg("progress").none(),
        nb::arg("values"), nb::arg("source_folder") = "");
  };
  define("_convert_criteo", data::convert_criteo, "criteo");
  define("_convert_csv", data::convert_csv, "csv");
  m.def("_convert_dataset", convert_dataset, nb::arg("source"), nb::arg("folder"), nb::arg("format"),
        nb::arg("replace"), nb::arg("progress").none(), nb::arg("values"));
  m.def("_arrow_dataset", arrow_dataset, nb::arg("train"), nb::arg("valid").none(), nb::arg("test").none(),
        nb::arg("progress").none(), nb::arg("values"));
  m.def("_parquet_files", parquet_files, nb::arg("sources"));
  nb::class_<data::RandomAccessFile>(m, "_DataFile")
      .def_static("open",
                  [](nb::handle path) {
                    const std::string name = to_path(path);
                    return released([&] { return data::open_data_file(name); }).release();
                  })
      .def("size", &data::RandomAccessFile::size)
      .def("read_at", read_at, nb::arg("offset"), nb::arg("count"));
  m.def("_verify_dataset", verify_dataset, nb::arg("dataset"), nb::arg("progress").none(), nb::arg("values"));
  define("_convert_libsvm", data::convert_libsvm, "libsvm");
  define("_convert_libffm", data::convert_libffm, "libffm");
  m.def("_convert_movielens", convert_movielens, nb::arg("sources"), nb::arg("folder"), nb::arg("format"),
        nb::arg("replace"), nb::arg("progress").none(), nb::arg("values"));
  m.def("_convert_like", convert_like, nb::arg("like"), nb::arg("sources"), nb::arg("folder"), nb::arg("replace"),
        nb::arg("progress").none(), nb::arg("values"));
  m.def("_text_description", [](nb::handle path) {
    const std::string folder = to_absolute_path(path);
    return released([&] {
      return recsys::is_model_folder(folder) ? recsys::text_description(folder) : data::load_dataset(folder);
    });
  });
  m.def("_dataset_options", options_of_functions);
  m.def("_set_arrow_folder", [](nb::handle folder) { data::set_arrow_folder(to_path(folder)); });
  m.def("_check_schema", [](const nb::dict& values) { to_schema(values); });
}

}  // namespace tercel::python
