#include "cli/command.h"

#include <gtest/gtest.h>

#include "cli/console.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

struct Options {
  int64_t rows = 5;
  bool flag = false;
  bool kept = true;
  std::vector<std::string> names;
  std::string text = "x";

  static constexpr auto fields() {
    return option_list(option_field<&Options::rows>("row_count", "rows", at_least(1)),
                       option_field<&Options::flag>("flag", "a flag"), option_field<&Options::kept>("kept", "keep it"),
                       option_field<&Options::names>("names", "some names"),
                       option_field<&Options::text>("text", "a text"));
  }
};

/** A command with two arguments around a list, and options. */
struct Parsed {
  Options options;
  CommonOptions common;
  std::string first, last;
  std::vector<std::string> middle;
  bool wanted = false;

  explicit Parsed(std::vector<std::string> words) {
    CommandLine line("tercel test", "test it", std::move(words));
    line.argument("FIRST", "the first one", first);
    line.arguments("MIDDLE", "some", middle);
    line.argument("LAST", "the last one", last);
    line.options(options);
    line.options(common);
    line.example("tercel test a b c");
    wanted = line.parse();
  }
};

TEST(CommandLine, FillsArgumentsAroundAList) {
  const Parsed parsed({"a", "b", "c", "d"});
  EXPECT_TRUE(parsed.wanted);
  EXPECT_EQ(parsed.first, "a");
  EXPECT_EQ(parsed.middle, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(parsed.last, "d");
  EXPECT_EQ(parsed.options.rows, 5);
  TERCEL_EXPECT_THROW(Parsed({"a", "b"}), ConfigError,
                      "test: argument LAST is missing; usage: tercel test FIRST MIDDLE... LAST [options]");
}

TEST(CommandLine, TakesFlagsAnywhereInEitherSpelling) {
  const Parsed parsed({"--flag", "a", "--row-count", "7", "b", "--text=--x", "c", "--no-kept", "--json"});
  EXPECT_TRUE(parsed.options.flag);
  EXPECT_FALSE(parsed.options.kept);
  EXPECT_TRUE(parsed.common.json);
  EXPECT_EQ(parsed.options.rows, 7);
  EXPECT_EQ(parsed.options.text, "--x");
  EXPECT_EQ(parsed.middle, (std::vector<std::string>{"b"}));
  EXPECT_EQ(Parsed({"a", "b", "c", "--row_count=8"}).options.rows, 8);
  EXPECT_EQ(Parsed({"a", "b", "c", "--text", "a_b=c_d"}).options.text, "a_b=c_d");
  EXPECT_EQ(Parsed({"a", "b", "c", "--text="}).options.text, "");
  EXPECT_EQ(Parsed({"a", "b", "c", "--text", "-5"}).options.text, "-5");
  EXPECT_FALSE(Parsed({"a", "b", "c", "--kept=false"}).options.kept);
}

TEST(CommandLine, ListsAreGivenOnceOrManyTimes) {
  EXPECT_EQ(Parsed({"a", "b", "c", "--names", "x,y"}).options.names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(Parsed({"a", "b", "c", "--names", "x", "--names", "y"}).options.names,
            (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(Parsed({"a", "b", "c", "--names", R"(["x,1", "y"])"}).options.names,
            (std::vector<std::string>{"x,1", "y"}));
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--text", "x", "--text", "y"}), ConfigError,
                      "test: option --text is given 2 times");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--names", "[\"x\"]", "--names", "y"}), ConfigError, "one JSON list");
}

TEST(CommandLine, BehindTwoDashesAllAreArguments) {
  const Parsed parsed({"--flag", "--", "-a", "--flag", "--row_count"});
  EXPECT_EQ(parsed.first, "-a");
  EXPECT_EQ(parsed.middle, (std::vector<std::string>{"--flag"}));
  EXPECT_EQ(parsed.last, "--row_count");
  EXPECT_EQ(Parsed({"-", "b", "-"}).first, "-") << "a dash is the standard input";
}

TEST(CommandLine, SaysWhatIsWrong) {
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--rowcount=1"}), ConfigError,
                      "test: unknown option '--rowcount'; did you mean '--row-count'?");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "-x"}), ConfigError, "unknown option '-x'");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--row-count"}), ConfigError, "option --row-count: expected a value");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--row-count=0"}), ConfigError,
                      "'row_count': expected at least 1, found 0");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--row-count", "--", "5"}), ConfigError,
                      "test: option --row-count: expected a value, found none");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--text", "--row_count", "5"}), ConfigError,
                      "test: option --text: expected a value, found the option --row-count; a value that looks so is "
                      "given as --text=--row_count");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--flag=maybe"}), ConfigError,
                      "'flag': expected true or false, found \"maybe\"");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--no-kept=true"}), ConfigError,
                      "test: option --no-kept: expected no value, found 'true'");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--flag", "--flag"}), ConfigError, "option --flag is given 2 times");
  TERCEL_EXPECT_THROW(Parsed({"a", "b", "c", "--no-flag"}), ConfigError, "unknown option '--no-flag'");
}

TEST(CommandLine, HelpNamesAllAndParsesNothing) {
  testing::internal::CaptureStdout();
  const Parsed parsed({"--help", "--row-count", "6"});
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_FALSE(parsed.wanted);
  for (const char* text : {"tercel test: test it", "usage: tercel test FIRST MIDDLE... LAST [options]",
                           "  --row-count  ", "rows (integer, at least 1; default 5)", "  --no-kept  ", "not: keep it",
                           "  --json  ", "example:\n  tercel test a b c\n"})
    EXPECT_NE(help.find(text), std::string::npos) << text << " in\n" << help;
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = help.find('\n', begin);
    EXPECT_LE(end - begin, 110u) << help.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Console, AnErrorIsOneLine) {
  testing::internal::CaptureStderr();
  print_error("file: two\r\nlines");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tercel: error: file: two  lines\n");
}

TEST(Console, TextGoesWhereJsonDoesNot) {
  for (const bool json : {false, true}) {
    for (const bool quiet : {false, true}) {
      testing::internal::CaptureStdout();
      testing::internal::CaptureStderr();
      CommonOptions common;
      common.json = json;
      common.quiet = quiet;
      print_text(common, "text\n");
      flush_output();
      EXPECT_EQ(testing::internal::GetCapturedStdout(), json || quiet ? "" : "text\n");
      EXPECT_EQ(testing::internal::GetCapturedStderr(), json && !quiet ? "text\n" : "");
    }
  }
}

TEST(PrepareOutputFolder, TakesWhatIsNewOrEmpty) {
  const test::TemporaryFolder folder;
  prepare_output_folder(folder / "new", false);
  folder.put("full/file", "");
  TERCEL_EXPECT_THROW(prepare_output_folder(folder / "full", false), IoError, "--force");
  TERCEL_EXPECT_THROW(prepare_output_folder(folder / "full/file", false), IoError, "full/file: expected a new folder");
  prepare_output_folder(folder / "full", true);
  std::filesystem::create_directory(folder / "empty");
  prepare_output_folder(folder / "empty", false);
}

}  // namespace
}  // namespace tercel::cli
