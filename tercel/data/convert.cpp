#include "tercel/data/convert.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>

#include "tercel/data/conversion_settings_impl.h"
#include "tercel/data/converter_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

/** What libsvm's and libffm's options leave open is found in the files. */
template <class Options>
ConvertResult convert_features(std::string tool, TextFormat (*format_of)(const Options&), bool find_fields,
                               const std::vector<std::string>& sources, const std::string& folder,
                               const Options& options, bool replace, ConvertProgressFunction progress) {
  Converter converter({tool, sources, folder, options, replace}, format_of(options), progress);
  Options resolved = options;
  if (find_fields || options.values == FeatureValues::Auto) {
    const FeatureScan scan = converter.scan();
    if (options.values == FeatureValues::Auto && !scan.all_ones) resolved.values = FeatureValues::Weights;
    if constexpr (std::is_same_v<Options, LibffmOptions>) {
      if (find_fields)
        for (const int64_t number : scan.fields) resolved.field_numbers.push_back(str_cat({number}));
      TERCEL_CHECK(!resolved.field_numbers.empty(), DataError, printable(sources.front()),
                   ": expected features, found none");
    }
    converter.set_format(format_of(resolved));
  }
  converter.survey();
  return converter.write(settings_of(resolved));
}

template <class Options>
std::vector<Conversion::Setting> settings_like(const Conversion& like, const Options& options) {
  std::vector<Conversion::Setting> settings = like.settings;
  for (const Conversion::Setting& own : settings_of(options)) {
    const auto found = std::find_if(settings.begin(), settings.end(),
                                    [&](const Conversion::Setting& setting) { return setting.name == own.name; });
    if (found == settings.end())
      settings.push_back(own);
    else
      found->value = own.value;
  }
  return settings;
}

}  // namespace

int64_t ConvertResult::clicks(PartName part) const {
  return part == PartName::Train ? train_clicks : part == PartName::Valid ? valid_clicks : test_clicks;
}

int64_t ConvertResult::categories() const {
  return std::accumulate(fields.begin(), fields.end(), int64_t{0},
                         [](int64_t sum, const FieldSummary& field) { return sum + field.categories; });
}

ConvertResult convert_criteo(const std::vector<std::string>& sources, const std::string& folder,
                             const CriteoOptions& options, bool replace, ConvertProgressFunction progress) {
  Converter converter({"criteo", sources, folder, options, replace}, criteo_format(options), progress);
  converter.survey();
  return converter.write(settings_of(options));
}

ConvertResult convert_csv(const std::vector<std::string>& sources, const std::string& folder, const CsvOptions& options,
                          bool replace, ConvertProgressFunction progress) {
  Converter converter({"csv", sources, folder, options, replace}, csv_format(options), progress);
  converter.survey();
  // Later text must have the same number of columns.
  CsvOptions resolved = options;
  if (options.no_header) resolved.columns = converter.num_columns();
  return converter.write(settings_of(resolved));
}

ConvertResult convert_libsvm(const std::vector<std::string>& sources, const std::string& folder,
                             const LibsvmOptions& options, bool replace, ConvertProgressFunction progress) {
  return convert_features("libsvm", libsvm_format, false, sources, folder, options, replace, progress);
}

ConvertResult convert_libffm(const std::vector<std::string>& sources, const std::string& folder,
                             const LibffmOptions& options, bool replace, ConvertProgressFunction progress) {
  return convert_features("libffm", libffm_format, options.field_numbers.empty(), sources, folder, options, replace,
                          progress);
}

ConvertResult convert_like(const Dataset& like, const std::vector<std::string>& sources, const std::string& folder,
                           const LikeOptions& options, bool replace, ConvertProgressFunction progress) {
  check_options(options, "like");
  const std::string name = printable(like.folder);
  TERCEL_CHECK(like.conversion && like.conversion->vocabulary, ConfigError, name,
               ": expected a dataset that was converted from text, with a vocabulary, found one without");
  const Conversion& conversion = *like.conversion;
  TextFormat format = text_format_of(conversion);
  if (options.test_from.empty() && options.valid_from.empty()) format.time_column.clear();
  ConvertOptions all;
  static_cast<SplitOptions&>(all) = options;
  all.rows_per_file = options.rows_per_file;
  all.dense_transform = conversion.dense_transform;
  all.format = options.format ? options.format : like.format;
  Converter converter({conversion.tool, sources, folder, all, replace, &like}, std::move(format), progress);
  converter.survey();
  return converter.write(settings_like(conversion, options));
}

}  // namespace tercel::data
