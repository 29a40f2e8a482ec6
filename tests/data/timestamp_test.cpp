#include "tercel/data/timestamp_impl.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace tercel::data {
namespace {

double seconds(const char* text) {
  Timestamp time;
  EXPECT_TRUE(parse_iso_time(text, time)) << text;
  return time.number;
}

std::string parts(const char* text, TimeUnit unit = TimeUnit::Seconds) {
  Timestamp time;
  if (!parse_time(text, unit, time)) return "none";
  std::string all;
  for (const auto& [part, name] : enum_names(TimePart{})) all += std::string(time_part_text(time, part)) + " ";
  return all;
}

TEST(Timestamp, IsoTimesAreSecondsFrom1970) {
  EXPECT_EQ(seconds("1970-01-01"), 0);
  EXPECT_EQ(seconds("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(seconds("2000-02-29T12:30:15"), 951827415);
  EXPECT_EQ(seconds("2000-02-29 12:30"), 951827400);
  EXPECT_EQ(seconds("1969-12-31T23:59:59.5"), -0.5);
  EXPECT_EQ(seconds("2024-05-01T02:00:00+02:00"), seconds("2024-05-01"));
  EXPECT_EQ(seconds("2024-04-30T19:30:00-0430"), seconds("2024-05-01"));
  EXPECT_EQ(seconds("2024-05-01T05:00+05"), seconds("2024-05-01"));
  EXPECT_EQ(seconds("0001-01-01"), -62135596800);
  EXPECT_EQ(seconds("9999-12-31T23:59:59"), 253402300799);
  for (const char* text : {"",
                           "2024",
                           "2024-05",
                           "2024-5-1",
                           "2024-13-01",
                           "2024-00-01",
                           "2023-02-29",
                           "1900-02-29",
                           "2024-04-31",
                           "2024-05-01T",
                           "2024-05-01T24:00",
                           "2024-05-01T12",
                           "2024-05-01T12:60",
                           "2024-05-01T12:00:61",
                           "2024-05-01T12:00:00.",
                           "2024-05-01T12:00:00 Z",
                           "2024-05-01T12:00:00+2",
                           "2024-05-01T12:00:00+24:00",
                           "2024-05-01T12:00:00+02:",
                           "2024-05-01T12:00:00+02:00x",
                           "2024-05-01x",
                           "0000-01-01",
                           "-001-01-01"}) {
    Timestamp time;
    EXPECT_FALSE(parse_iso_time(text, time)) << text;
  }
}

TEST(Timestamp, PartsAreThoseOfTheCalendar) {
  EXPECT_EQ(parts("2024-02-29T23:05:00"), "2024 2 29 4 23 5 ");
  EXPECT_EQ(parts("2024-03-03"), "2024 3 3 7 0 0 ") << "a Sunday";
  EXPECT_EQ(parts("2024-03-04T10:00:00+09:00"), "2024 3 4 1 10 0 ") << "in the zone of the text";
  EXPECT_EQ(parts("0"), "1970 1 1 4 0 0 ");
  EXPECT_EQ(parts("-1"), "1969 12 31 3 23 59 ");
  EXPECT_EQ(parts("951827415"), "2000 2 29 2 12 30 ");
  EXPECT_EQ(parts("951827415999", TimeUnit::Milliseconds), "2000 2 29 2 12 30 ");
  EXPECT_EQ(parts("951827415000000", TimeUnit::Microseconds), "2000 2 29 2 12 30 ");
  EXPECT_EQ(parts("951827415000000000", TimeUnit::Nanoseconds), "2000 2 29 2 12 30 ");
  for (const char* text : {"", "soon", "nan", "inf", "1e20", "-1e20", "253402300800"}) EXPECT_EQ(parts(text), "none");
}

TEST(Timestamp, EveryDayFollowsTheOneBefore) {
  constexpr int64_t kDay = 86400;
  const auto number = [](const Timestamp& time, TimePart part) {
    return std::stoll(std::string(time_part_text(time, part)));
  };
  std::tuple<int64_t, int64_t, int64_t> before;
  for (int64_t day = -719162; day < 2932897; day += day % 1000 == 0 ? 5 : 1) {
    const Timestamp time{0, day * kDay};
    const std::tuple now{number(time, TimePart::Year), number(time, TimePart::Month), number(time, TimePart::Day)};
    ASSERT_LT(before, now) << day;
    before = now;
    if (day % 97 != 0) continue;
    char text[32];
    std::snprintf(text, sizeof(text), "%04d-%02d-%02d", static_cast<int>(std::get<0>(now)),
                  static_cast<int>(std::get<1>(now)), static_cast<int>(std::get<2>(now)));
    ASSERT_EQ(seconds(text), static_cast<double>(day * kDay)) << text;
  }
}

}  // namespace
}  // namespace tercel::data
