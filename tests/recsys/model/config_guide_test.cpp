// Checks that docs/guide/config.md lists every entry of a configuration as in fields().
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tercel/recsys/layers/layers_impl.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/graph_options_impl.h"

namespace tercel::recsys {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/** The folder of the sources, from the build folder, where the test is bin/test_recsys. */
std::filesystem::path source_folder() {
  const std::filesystem::path build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const std::string cache = content_of(build / "CMakeCache.txt"), key = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  const size_t at = cache.find(key);
  if (at == std::string::npos) return {};
  return cache.substr(at + key.size(), cache.find('\n', at) - at - key.size());
}

/** Rows of the table of these options; nested ones as "outer.inner". */
std::string rows_of(OptionTable table, const void* defaults, const std::string& prefix = "") {
  std::string rows;
  for (const OptionField& field : table) {
    const std::string name = prefix + std::string(field.name);
    void* const member = field.locate(const_cast<void*>(defaults));
    if (field.type->kind == OptionKind::Struct) {
      rows += rows_of(field.type->nested(), member, name + ".");
      continue;
    }
    const std::string value = option_text(field, defaults);
    const std::string standard = field.rules.required ? "required" : value.empty() ? "none" : "`" + value + "`";
    std::string type = option_type_text(field);
    for (size_t at = 0; (at = type.find('|', at)) != std::string::npos; ++at) type.replace(at, 1, ", ");
    if (const size_t at = type.find(", required"); at != std::string::npos) type.erase(at, 10);
    rows += "| `" + name + "` | " + type + " | " + standard + " | " + std::string(field.help) + " |\n";
  }
  return rows;
}

/** Checks that the guide has a section with this heading and exactly these rows in its table. */
void expect_section(const std::string& guide, const std::string& heading, const std::string& rows) {
  const size_t start = guide.find("\n" + heading + "\n");
  ASSERT_NE(start, std::string::npos) << "docs/guide/config.md has no section '" << heading << "'";
  const size_t next = guide.find("\n#", start + 1);
  const std::string section = guide.substr(start, next - start);
  std::string found;
  for (size_t at = section.find("\n| `"); at != std::string::npos; at = section.find("\n| `", at + 1))
    found += section.substr(at + 1, section.find('\n', at + 1) - at);
  EXPECT_EQ(found, rows) << "docs/guide/config.md, section '" << heading << "', should have the table\n\n"
                         << "| option | type | default | meaning |\n|---|---|---|---|\n"
                         << rows;
}

template <class S>
std::string rows_of() {
  const S defaults;
  return rows_of(option_table<S>(), &defaults);
}

TEST(ConfigGuide, ListsEveryEntry) {
  const std::string guide = content_of(source_folder() / "docs/guide/config.md");
  ASSERT_FALSE(guide.empty()) << "no docs/guide/config.md in '" << source_folder().string() << "'";
  expect_section(guide, "## solver", rows_of<SolverOptions>());
  expect_section(guide, "## optimizer", rows_of<optim::OptimizerOptions>());
  expect_section(guide, "## data", rows_of<DataOptions>());
  expect_section(guide, "### Data: label", rows_of<LabelOptions>());
  expect_section(guide, "### Data: dense", rows_of<DenseOptions>());
  expect_section(guide, "### Data: sparse", rows_of<SparseOptions>());
  expect_section(guide, "### Embeddings", rows_of<EmbeddingParameters>());
  expect_section(guide, "### EmbeddingLookup", rows_of<LookupOptions>());
  for (const LayerEntry& layer : layer_entries())
    layer.show_options([&](OptionTable table, const void* defaults) {
      expect_section(guide, "### " + std::string(layer.type), rows_of(table, defaults));
    });
}

}  // namespace
}  // namespace tercel::recsys
