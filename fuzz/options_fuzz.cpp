// Any text is valid options or a ConfigError, as a JSON file and as NAME=VALUE; valid options survive a round
// trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/options_impl.h"

namespace {

using tercel::option_field;
using tercel::option_list;

enum class Mode : uint8_t { Sum, Mean };
constexpr auto enum_names(Mode) {
  return std::to_array<tercel::EnumName<Mode>>({{Mode::Sum, "sum"}, {Mode::Mean, "mean"}});
}

struct Inner {
  double lr = 0.1;
  std::string name;
  static constexpr auto fields() {
    return option_list(option_field<&Inner::lr>("lr", "a number", tercel::above(0)),
                       option_field<&Inner::name>("name", "a text"));
  }
};

struct Outer {
  bool flag = false;
  int64_t count = 0;
  uint64_t seed = 0;
  Mode mode = Mode::Sum;
  std::vector<int64_t> units;
  std::vector<std::vector<double>> ranges;
  std::vector<Inner> list;
  Inner inner;
  static constexpr auto fields() {
    return option_list(option_field<&Outer::flag>("flag", "a flag"),
                       option_field<&Outer::count>("count", "a count", tercel::at_least(-5)),
                       option_field<&Outer::seed>("seed", "a seed"), option_field<&Outer::mode>("mode", "a name"),
                       option_field<&Outer::units>("units", "numbers"), option_field<&Outer::ranges>("ranges", "lists"),
                       option_field<&Outer::list>("list", "structs"), option_field<&Outer::inner>("inner", "a struct"));
  }
};

// Valid options must survive a round trip.
void round_trip(const Outer& options) {
  const tercel::Json json = tercel::write_options(options);
  Outer back;
  tercel::read_options(tercel::parse_json(tercel::dump_json(json), "again", tercel::JsonErrors::Config), back, "again");
  if (tercel::write_options(back) != json) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Outer options;
    tercel::read_options(tercel::parse_json(text, "fuzz", tercel::JsonErrors::Config), options, "fuzz");
    round_trip(options);
  } catch (const tercel::ConfigError&) {
  }
  try {
    Outer options;
    tercel::set_option(options, "--set", text);
    round_trip(options);
  } catch (const tercel::ConfigError&) {
  }
  return 0;
}
