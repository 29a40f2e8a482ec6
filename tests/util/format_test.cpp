#include "tercel/util/format.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <cstdint>

namespace tercel {
namespace {

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB") << "not 1024.0 KiB";
  EXPECT_EQ(format_bytes(INT64_MAX), "8.0 EiB");
  EXPECT_EQ(format_bytes(-2048), "-2.0 KiB");
}

TEST(Format, Durations) {
  EXPECT_EQ(format_duration(0), "0 ns");
  EXPECT_EQ(format_duration(850e-9), "850 ns");
  EXPECT_EQ(format_duration(12.34e-6), "12.3 us");
  EXPECT_EQ(format_duration(0.9999999), "1.0 s");
  EXPECT_EQ(format_duration(4.25), "4.2 s");
  EXPECT_EQ(format_duration(59.99), "1 min 00 s");
  EXPECT_EQ(format_duration(185), "3 min 05 s");
  EXPECT_EQ(format_duration(7620), "2 h 07 min");
  EXPECT_EQ(format_duration(-2), "-2.0 s");
  EXPECT_EQ(format_duration(INFINITY), "unknown");
  EXPECT_EQ(format_duration(1e300), "ages");
  EXPECT_EQ(format_clock(38), "00:00:38");
  EXPECT_EQ(format_clock(360'000), "100:00:00");
  EXPECT_EQ(format_clock(NAN), "--:--:--");
}

TEST(Format, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(INT64_MIN), "-9,223,372,036,854,775,808");
  EXPECT_EQ(format_short(950), "950");
  EXPECT_EQ(format_short(1.5), "1.50");
  EXPECT_EQ(format_short(999.7), "1.00k");
  EXPECT_EQ(format_short(12'345), "12.3k");
  EXPECT_EQ(format_short(8'214'000), "8.21M");
  EXPECT_EQ(format_short(-312'000), "-312k");
  EXPECT_EQ(format_short(1e18), "1000000T");
}

TEST(Format, DoublesReadBack) {
  EXPECT_EQ(format_double(0.1), "0.1");
  EXPECT_EQ(format_double(1e-7), "1e-07");
  EXPECT_EQ(format_double(3), "3");
  EXPECT_EQ(format_double(NAN), "nan");
  EXPECT_EQ(std::stod(format_double(1.0 / 3)), 1.0 / 3);
}

TEST(Format, LocaleDoesNotMatter) {
  if (std::setlocale(LC_NUMERIC, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "this machine has no de_DE.UTF-8";
  EXPECT_EQ(format_double(0.5), "0.5");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Format, PrintableIsOneLineOfUtf8) {
  EXPECT_EQ(printable("plain /path.txt"), "plain /path.txt");
  EXPECT_EQ(printable("a\nb\tc\x7f\x1b[0m"), "a\\nb\\tc\\x7f\\x1b[0m");
  EXPECT_EQ(printable("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") << "é€😀";
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b[31m\xc2\xa0"), "\\xc2\\x9b[31m\xc2\xa0") << "a control character of two bytes";
  EXPECT_EQ(printable_lines("a\n\x1b]0;x\x07\n\xff\r"), "a\n\\x1b]0;x\\x07\n\\xff\\x0d");
  EXPECT_EQ(printable_lines(std::string(600, 'x')), std::string(600, 'x'));
  EXPECT_EQ(printable_lines(""), "");
  EXPECT_EQ(printable(std::string(600, 'x')), std::string(512, 'x') + "...");
}

TEST(Format, Utf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\n\xc3\xa9\xf4\x8f\xbf\xbf"));
  EXPECT_FALSE(is_utf8("a\xc3"));
  EXPECT_FALSE(is_utf8("\xe2\x28\xa1"));
  EXPECT_FALSE(is_utf8("\x80"));
}

}  // namespace
}  // namespace tercel
