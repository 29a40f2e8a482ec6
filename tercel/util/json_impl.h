// JSON with nlohmann's type, parsed with limits and with errors that name the position. Private: never included by
// public headers.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

/** Keys stay in the order of the text. */
using Json = nlohmann::ordered_json;

/** The error for invalid JSON: ConfigError for a configuration, DataError for data. */
enum class JsonErrors : uint8_t { Config, Data };

struct JsonLimits {
  int64_t max_bytes = int64_t{16} << 20;
  int64_t max_depth = 64;  // of nested lists and objects
};

/** Strict JSON (UTF-8, no comments, no duplicate keys, nothing after the value); errors name file, line and column. */
TERCEL_API Json parse_json(std::string_view text, std::string_view name, JsonErrors errors,
                           const JsonLimits& limits = {});

/** parse_json of a file's content. */
TERCEL_API Json read_json_file(const std::string& path, JsonErrors errors, const JsonLimits& limits = {});

/** Indented, with a line end; invalid UTF-8 becomes replacement characters. */
TERCEL_API std::string dump_json(const Json& value);

/** On one line, without a line end. */
TERCEL_API std::string dump_json_line(const Json& value);

/** Describes a value for messages: `"three"`, `2.5`, `true`, `null`, `a list`, `an object`. */
TERCEL_API std::string describe_json(const Json& value);

}  // namespace tercel
