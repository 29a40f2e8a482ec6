// The manifest of a checkpoint, and the files with a checksum of their content. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/recsys/checkpoint.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

constexpr std::string_view kManifest = "manifest.json";

/** A file of tensors. */
struct FileEntry {
  std::string name;
  int64_t bytes = 0;
  std::string checksum;

  static constexpr auto fields() {
    return option_list(option_field<&FileEntry::name>("name", "file in the checkpoint's folder", required()),
                       option_field<&FileEntry::bytes>("bytes", "size", at_least(0), required()),
                       option_field<&FileEntry::checksum>("checksum", "XXH3-64 in hexadecimal digits", required()));
  }
};

/** A RowRun. */
struct RunEntry {
  int64_t first = 0, count = 0, step = 1;

  static constexpr auto fields() {
    constexpr double kMost = 1e15;  // sums of them do not overflow
    return option_list(
        option_field<&RunEntry::first>("first", "row", at_least(0), at_most(kMost), required()),
        option_field<&RunEntry::count>("count", "of rows", at_least(0), at_most(kMost), required()),
        option_field<&RunEntry::step>("step", "from row to row", at_least(1), at_most(kMost), required()));
  }
};

/** What a file has that is a part of another. */
struct ShardEntry {
  std::string name, of;
  std::vector<RunEntry> rows;

  static constexpr auto fields() {
    return option_list(option_field<&ShardEntry::name>("name", "file in the checkpoint's folder", required()),
                       option_field<&ShardEntry::of>("of", "the file that it is a shard of", required()),
                       option_field<&ShardEntry::rows>("rows", "which rows it has, in its order"));
  }
};

/** What a checkpoint is. */
struct Manifest {
  std::string tercel_version;
  std::string instruction_set;
  CheckpointInfo info;
  ModelConfig config;
  data::DataIdentity data;
  std::vector<FileEntry> files;
  std::vector<ShardEntry> shards;
  std::string state;

  static constexpr auto fields() {  // the configuration and the shards are read and written beside them
    return option_list(option_field<&Manifest::tercel_version>("tercel_version", "that wrote it", required()),
                       option_field<&Manifest::instruction_set>("instruction_set", "that trained it", required()),
                       option_field<&Manifest::info>("info", "its contents", required()),
                       option_field<&Manifest::data>("data", "what it was trained on", required()),
                       option_field<&Manifest::files>("files", "its files", required()),
                       option_field<&Manifest::state>("state", "of the trainer"));
  }
};
/** The rows of a shard. */
RowRuns runs_of(Span<RunEntry> entries);
/** Adds a file to those of a manifest. */
void add_written(const WrittenFile& file, Manifest& manifest);

/** The text of a file with a checksum of its content, in the format of what has no shards. */
std::string sealed(Json content);
/** The content of such a file, without the format. DataError, CheckpointVersionError. */
Json read_sealed(const std::string& path);
/** Writes the manifest of a folder. */
void write_manifest(const std::string& folder, const Manifest& manifest);
/** The manifest of a folder. DataError, CheckpointVersionError. */
Manifest read_manifest(const std::string& folder);

}  // namespace tercel::recsys
