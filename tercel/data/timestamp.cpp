#include "tercel/data/timestamp_impl.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tercel/data/text_number_impl.h"
#include "tercel/util/error.h"

namespace tercel::data {

namespace {

constexpr int64_t kDay = 86400;
constexpr double kUnits[] = {1, 1e3, 1e6, 1e9};  // of a second
constexpr int64_t kMostYear = 9999;
constexpr int64_t kFirstSecond = -62135596800, kLastSecond = 253402300799;  // of the years 1 and 9999

/** Days from 1970-01-01 in the Gregorian calendar, years counted from March so that leap days are the last. */
int64_t days_of(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = y / 400, in_era = y - era * 400;  // years are at least 0 here
  const int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

struct Date {
  int64_t year, month, day;
};

/** Reverse of days_of(). */
Date date_of(int64_t days) {
  days += 719468;
  const int64_t era = days / 146097, in_era = days - era * 146097;
  const int64_t year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
  const int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t m = (5 * in_year + 2) / 153;
  const int64_t month = m < 10 ? m + 3 : m - 9;
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, in_year - (153 * m + 2) / 5 + 1};
}

int64_t days_in(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return kDays[static_cast<size_t>(month - 1)] + (leap ? 1 : 0);
}

/** Takes `count` digits from the front. */
bool take_digits(std::string_view& text, size_t count, int64_t& out) {
  if (text.size() < count) return false;
  out = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    out = out * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return true;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

bool take_date(std::string_view& text, int64_t& days) {
  int64_t year = 0, month = 0, day = 0;
  if (!take_digits(text, 4, year) || !take(text, '-') || !take_digits(text, 2, month) || !take(text, '-') ||
      !take_digits(text, 2, day))
    return false;
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in(year, month)) return false;
  days = days_of(year, month, day);
  return true;
}

/** The time of the day behind a date, with an optional fraction of the second. */
bool take_clock(std::string_view& text, int64_t& seconds, double& fraction) {
  int64_t hour = 0, minute = 0, second = 0;
  if (!take_digits(text, 2, hour) || !take(text, ':') || !take_digits(text, 2, minute)) return false;
  if (take(text, ':')) {
    if (!take_digits(text, 2, second)) return false;
    if (take(text, '.')) {
      double unit = 1;
      int64_t digit = 0, digits = 0;
      for (; take_digits(text, 1, digit); ++digits) fraction += (unit /= 10) * static_cast<double>(digit);
      if (digits == 0) return false;
    }
  }
  seconds = hour * 3600 + minute * 60 + second;
  return hour < 24 && minute < 60 && second <= 60;  // 60: a leap second, which is the next minute's first here
}

/** "Z", "+02:00", "+0200", "-05", or nothing. */
bool take_offset(std::string_view& text, int64_t& seconds) {
  if (text.empty() || take(text, 'Z')) return text.empty();
  const bool east = text.front() == '+';
  if (!take(text, '+') && !take(text, '-')) return false;
  int64_t hours = 0, minutes = 0;
  if (!take_digits(text, 2, hours)) return false;
  if (!text.empty()) {
    if (text.front() == ':') text.remove_prefix(1);
    if (!take_digits(text, 2, minutes)) return false;
  }
  if (!text.empty() || hours > 23 || minutes > 59) return false;
  seconds = (hours * 3600 + minutes * 60) * (east ? 1 : -1);
  return true;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

bool parse_iso_time(std::string_view text, Timestamp& out) {
  int64_t days = 0, seconds = 0, offset = 0;
  double fraction = 0;
  if (!take_date(text, days)) return false;
  if (!text.empty()) {
    if (!take(text, 'T') && !take(text, ' ')) return false;
    if (!take_clock(text, seconds, fraction) || !take_offset(text, offset)) return false;
  }
  out.seconds = days * kDay + seconds;
  out.number = static_cast<double>(out.seconds - offset) + fraction;
  return out.seconds <= kLastSecond;
}

bool parse_number_or_time(std::string_view text, TimeUnit unit, double& out) {
  if (Timestamp iso; parse_iso_time(text, iso)) {
    out = iso.number * kUnits[static_cast<size_t>(unit)];
    return true;
  }
  return parse_number(text, out) && std::isfinite(out);
}

bool parse_time(std::string_view text, TimeUnit unit, Timestamp& out) {
  if (parse_iso_time(text, out)) return true;
  if (!parse_number(text, out.number)) return false;
  const double seconds = std::floor(out.number / kUnits[static_cast<size_t>(unit)]);
  if (!(seconds >= static_cast<double>(kFirstSecond) && seconds <= static_cast<double>(kLastSecond))) return false;
  out.seconds = static_cast<int64_t>(seconds);
  return true;
}

std::string_view time_part_text(const Timestamp& time, TimePart part) {
  static const std::vector<std::string>* const texts = [] {
    auto* all = new std::vector<std::string>();
    for (int64_t i = 0; i <= kMostYear; ++i) all->push_back(str_cat({i}));
    return all;
  }();
  const int64_t days = floor_div(time.seconds, kDay), clock = time.seconds - days * kDay;
  const Date date = date_of(days);
  int64_t value = 0;
  switch (part) {
    case TimePart::None: break;
    case TimePart::Year: value = date.year; break;
    case TimePart::Month: value = date.month; break;
    case TimePart::Day: value = date.day; break;
    case TimePart::Weekday: value = (days % 7 + 7 + 3) % 7 + 1; break;  // 1970-01-01 was a Thursday
    case TimePart::Hour: value = clock / 3600; break;
    case TimePart::Minute: value = clock / 60 % 60; break;
  }
  return (*texts)[static_cast<size_t>(value)];
}

}  // namespace tercel::data
