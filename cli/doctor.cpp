#include <xxhash.h>
#include <zlib.h>

#include "cli/command.h"
#include "cli/console.h"
#include "tercel/core/dispatch.h"
#include "tercel/util/cpu_info.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/parallel.h"
#include "tercel/util/version.h"

namespace tercel::cli {

CommandFunction run_doctor;

int run_doctor(CommandLine& line) {
  CommonOptions common;
  line.options(common);
  line.example("tercel doctor");
  if (!line.parse()) return 0;

  const MemoryInfo memory = memory_info();
  const Json json{{"version", str_cat({version(), revision().empty() ? "" : " ", revision()})},
                  {"processor", cpu_model_name()},
                  {"instruction sets", str_cat({"generic", has_avx2() ? ", avx2" : "", has_avx512() ? ", avx512" : "",
                                                "; in use: ", to_string(cpu_isa())})},
                  {"threads", str_cat({num_threads(), ", of ", usable_cpus(), " usable CPUs"})},
                  {"memory", str_cat({format_bytes(memory.total), ", ", format_bytes(memory.available), " available"})},
                  {"huge pages", std::string(to_string(huge_page_mode()))},
                  {"gpu", "not used by this version"},
                  {"libraries",
                   {{"zlib", zlibVersion()},
                    {"xxHash", std::to_string(XXH_versionNumber())},
                    {"nlohmann-json", str_cat({NLOHMANN_JSON_VERSION_MAJOR, ".", NLOHMANN_JSON_VERSION_MINOR, ".",
                                               NLOHMANN_JSON_VERSION_PATCH})}}}};
  for (const auto& [name, value] : json.items()) {
    print_text(common, name + ":" + (value.is_object() ? "" : " " + value.get<std::string>()) + "\n");
    if (value.is_object())
      for (const auto& [library, number] : value.items())
        print_text(common, "  " + library + " " + number.get<std::string>() + "\n");
  }
  const auto warn = [&](bool condition, std::string_view text) {
    if (condition) print_warning(common, text);
  };
  warn(!has_avx2(), "this CPU has no AVX2: training will be several times slower");
  warn(huge_page_mode() == HugePageMode::Never,
       "transparent huge pages are off: large tables are read more slowly "
       "(/sys/kernel/mm/transparent_hugepage/enabled: madvise)");
  warn(memory.available < int64_t{1} << 30, "less than 1 GiB of memory is available");
  if (common.json) print_line(dump_json_line(json));
  return 0;
}

}  // namespace tercel::cli
