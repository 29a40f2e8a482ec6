#include "tercel/recsys/checkpoint_manifest_impl.h"

#include <utility>

#include "tercel/recsys/model/config_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/version.h"

namespace tercel::recsys {

namespace {

// Those that are read. What has no shards is written in the second one, which earlier versions read.
constexpr int64_t kOldestFormat = 2, kFormat = 3, kShardedFormat = 4;

struct ShardList {
  std::vector<ShardEntry> shards;

  static constexpr auto fields() {
    return option_list(option_field<&ShardList::shards>("shards", "files that are a part of one"));
  }
};

struct WrittenList {
  std::vector<FileEntry> files;
  std::vector<ShardEntry> shards;

  static constexpr auto fields() {
    return option_list(option_field<&WrittenList::files>("files", "that were written"),
                       option_field<&WrittenList::shards>("shards", "those of them that are a part of one"));
  }
};

constexpr std::string_view kConfig = "config", kShards = "shards";
constexpr std::string_view kOthers[] = {kConfig, kShards};

// Every version, past and future, can verify it: what is intact in another format must not be taken for damaged.
std::string content_checksum(const Json& content) {
  const std::string text = dump_json_line(content);
  return checksum_to_hex(checksum(text.data(), text.size()));
}

/**
 * The text of a file with a checksum of its content. From format 3 on the content has the format too: a changed digit
 * must not turn one format into another that is read.
 */
std::string sealed(Json content, int64_t format) {
  Json json = {{"format", format}};
  content["format"] = format;
  json["checksum"] = content_checksum(content);
  json["content"] = std::move(content);
  return dump_json(json);
}

std::vector<RunEntry> entries_of(Span<RowRun> runs) {
  std::vector<RunEntry> entries;
  for (const RowRun& run : runs) entries.push_back({run.first, run.count, run.step});
  return entries;
}

/** Adds a file to what a manifest, or a list, has of it. */
template <class List>
void add_to(const WrittenFile& file, List& list) {
  list.files.push_back({file.name, file.bytes, file.checksum});
  if (!file.shard_of.empty()) list.shards.push_back({file.name, file.shard_of, entries_of(file.rows)});
}

}  // namespace

RowRuns runs_of(Span<RunEntry> entries) {
  RowRuns runs;
  for (const RunEntry& entry : entries) runs.push_back({entry.first, entry.count, entry.step});
  return runs;
}

void add_written(const WrittenFile& file, Manifest& manifest) { add_to(file, manifest); }

std::string sealed(Json content) { return sealed(std::move(content), kFormat); }

Json read_sealed(const std::string& path) {
  Json json = read_json_file(path, JsonErrors::Data);
  const auto entry = [&json](const char* key) {
    return json.is_object() && json.contains(key) ? json.at(key) : Json();
  };
  const Json format = entry("format");
  TERCEL_CHECK(format.is_number_integer(), DataError, path, ": format: expected an integer but found ",
               describe_json(format));
  Json content = entry("content");
  const std::string sum = content_checksum(content);
  TERCEL_CHECK(entry("checksum") == sum, DataError, path, ": expected checksum ", describe_json(entry("checksum")),
               " but the content has \"", sum, "\"");
  const bool repeats = content.is_object() && content.contains("format");
  TERCEL_CHECK(repeats ? content.at("format") == format : format <= kOldestFormat, DataError, path,
               ": format: expected that of the content, ", repeats ? describe_json(content.at("format")) : "2",
               ", but found ", describe_json(format));
  if (format < kOldestFormat || format > kShardedFormat) {
    const bool says = content.is_object() && content.contains("tercel_version");
    throw_error<CheckpointVersionError>({path, ": expected format ", kOldestFormat, " to ", kShardedFormat,
                                         ", which Tercel ", version(), " reads, but found ",
                                         printable(dump_json_line(format)), " of Tercel ",
                                         says ? printable(dump_json_line(content.at("tercel_version"))) : "unknown"});
  }
  if (repeats) content.erase("format");
  return content;
}

void write_manifest(const std::string& folder, const Manifest& manifest) {
  Json content = write_options(manifest);
  content[kConfig] = config_to_json(manifest.config);
  if (!manifest.shards.empty()) content[kShards] = write_options(ShardList{manifest.shards})[kShards];
  write_file(join_path(folder, kManifest),
             sealed(std::move(content), manifest.shards.empty() ? kFormat : kShardedFormat));
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = join_path(folder, kManifest);
  TERCEL_CHECK(exists(path), DataError, folder, ": no checkpoint: there is no ", kManifest);
  const Json content = read_sealed(path);
  Manifest manifest;
  try {
    read_options(content, manifest, path, kOthers);
    TERCEL_CHECK(content.contains(kConfig), ConfigError, path, ": config: expected an object but found nothing");
    manifest.config = config_from_json(content.at(kConfig), path);
    if (content.contains(kShards)) {
      ShardList list;
      read_options(Json{{kShards, content.at(kShards)}}, list, path);
      manifest.shards = std::move(list.shards);
    }
    manifest.data.schema.check(path);
  } catch (const ConfigError& e) {
    // Versions with the same format may have different options.
    if (manifest.tercel_version != version() && !manifest.tercel_version.empty())
      throw_error<CheckpointVersionError>(
          {e.what(), " (written by Tercel ", printable(manifest.tercel_version), ", this is Tercel ", version(), ")"});
    throw DataError(e.what());
  }
  for (const FileEntry& file : manifest.files)
    TERCEL_CHECK(file.name.find('/') == std::string::npos && !file.name.starts_with("."), DataError, path,
                 ": a file is called '", printable(file.name), "'");
  return manifest;
}

std::string to_json(Span<WrittenFile> files) {
  WrittenList list;
  for (const WrittenFile& file : files) add_to(file, list);
  return dump_json_line(write_options(list));
}

std::vector<WrittenFile> written_files(const std::string& json) {
  const std::string where = "list of files";
  WrittenList list;
  try {
    read_options(parse_json(json, where, JsonErrors::Data), list, where);
  } catch (const ConfigError& e) {
    throw DataError(e.what());
  }
  std::vector<WrittenFile> files;
  for (const FileEntry& entry : list.files) {
    files.push_back({entry.name, entry.bytes, entry.checksum, {}, {}});
    for (const ShardEntry& shard : list.shards)
      if (shard.name == entry.name) {
        files.back().shard_of = shard.of;
        files.back().rows = runs_of(shard.rows);
      }
  }
  return files;
}

}  // namespace tercel::recsys
